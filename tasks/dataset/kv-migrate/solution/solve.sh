#!/bin/bash
set -e
python3 /solution/migrate.py
