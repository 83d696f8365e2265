#!/bin/bash
# Zeros until the checks have run to their end, and written whatever happens.
chmod 700 /tests
echo '{"reward": 0.0, "accuracy": 0.0, "speedup": 0.0}' > /tests/scores.json
python3 -I /tests/check.py /tests/scores.json
rm -f /logs/verifier/reward.json /logs/verifier/reward.txt
cp /tests/scores.json /logs/verifier/reward.json
