#!/bin/bash
set -e
cp /solution/pairs.py /app/pairs.py
