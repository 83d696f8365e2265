#!/bin/bash
set -e
cp /solution/stackvm.py /app/stackvm.py
