#!/bin/sh
if [ -e /app/second ]; then reward=1; else reward=0; fi
echo "$reward" > /logs/verifier/reward.txt
