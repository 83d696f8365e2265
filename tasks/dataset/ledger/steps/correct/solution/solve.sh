#!/bin/bash
set -e
cp /solution/ledger.py /app/ledger.py
python3 /app/ledger.py correct /app/corrections.csv --db /app/ledger.db
