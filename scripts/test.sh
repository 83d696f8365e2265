#!/usr/bin/env bash
# Runs the tests in .venv. Without Docker it leaves out the tests that need containers, and
# says so at the end. Arguments go to pytest.
set -euo pipefail

REPO="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
cd "$REPO"

# Some tests make an image that holds a static busybox and nothing else; some reach this machine
# as a host over SSH, by an sshd of their own on a high port.
missing=()
command -v busybox >/dev/null || missing+=(busybox-static)
PATH="$PATH:/usr/sbin" command -v sshd >/dev/null || missing+=(openssh-server)
command -v ssh >/dev/null || missing+=(openssh-client)
if [ "$(cat .venv/.osmosis-docker 2>/dev/null)" = ready ] && [ "${#missing[@]}" -gt 0 ]; then
    for part in say apt; do
        # shellcheck source=/dev/null
        . "$REPO/scripts/lib/$part.sh"
    done
    ! apt_usable || apt_install "${missing[@]}"
fi

if [ "$(cat .venv/.osmosis-docker 2>/dev/null)" = ready ]; then
    exec .venv/bin/python -m pytest "$@"
fi

code=0
.venv/bin/python -m pytest -m 'not docker' "$@" || code=$?
printf '\nLEFT OUT: every test marked "docker" (see "deselected" above): they need a Docker engine with Compose, which this machine does not have.\nRun scripts/setup.sh to see what to install.\n'
exit "$code"
