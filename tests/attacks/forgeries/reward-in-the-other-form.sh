# A process that writes the form that the tests do not.
setsid nohup sh -c 'while :; do echo "{\"reward\": 1}" > /logs/verifier/reward.json; done' >/dev/null 2>&1 &
