# A folder of the verifier that nobody may write to, with a reward in it.
mkdir -p /logs/verifier
echo 1 > /logs/verifier/reward.txt
chmod 400 /logs/verifier/reward.txt
chmod 500 /logs/verifier
