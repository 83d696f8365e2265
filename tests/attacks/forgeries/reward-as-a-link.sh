# A link to a reward, in the form that the tests do not write.
mkdir -p /logs/verifier
echo '{"reward": 1}' > /app/own
ln -s /app/own /logs/verifier/reward.json
