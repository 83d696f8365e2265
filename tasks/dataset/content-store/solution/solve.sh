#!/bin/bash
set -e
cp /solution/store.py /home/worker/store.py
python3 /home/worker/store.py /data/incoming /data/store
