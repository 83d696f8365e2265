#!/usr/bin/env bash
# Runs the tests in .venv. Without Docker it leaves out the tests that need containers, and
# says so at the end. Arguments go to pytest.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [ "$(cat .venv/.osmosis-docker 2>/dev/null)" = ready ]; then
    exec .venv/bin/python -m pytest "$@"
fi

code=0
.venv/bin/python -m pytest -m 'not docker' "$@" || code=$?
printf '\nLEFT OUT: every test marked "docker" (see "deselected" above): they need a Docker engine with Compose, which this machine does not have.\nRun scripts/setup.sh to see what to install.\n'
exit "$code"
