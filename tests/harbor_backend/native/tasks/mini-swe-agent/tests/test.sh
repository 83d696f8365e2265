#!/bin/sh
# The reward says whether the file holds the word.
if [ "$(cat /app/colour.txt)" = blue ]; then reward=1; else reward=0; fi
echo "$reward" > /logs/verifier/reward.txt
