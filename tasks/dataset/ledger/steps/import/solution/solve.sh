#!/bin/bash
set -e
cp /solution/ledger.py /app/ledger.py
python3 /app/ledger.py import /app/january.csv --db /app/ledger.db
