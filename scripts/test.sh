#!/usr/bin/env bash
# Runs the tests in .venv. Tests that need Docker or PostgreSQL, where these cannot be had, are
# left out, and it says so at the end; with REQUIRE_ALL set it fails instead. Arguments go to
# pytest; `--setup` installs what tests need and runs nothing.
set -euo pipefail

REPO="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
cd "$REPO"
for part in say apt postgres; do
    # shellcheck source=/dev/null
    . "$REPO/scripts/lib/$part.sh"
done

without=()
left_out=()

if [ "$(cat .venv/.osmosis-docker 2>/dev/null)" = ready ]; then
    # Some tests make an image that holds a static busybox and nothing else; some reach this
    # machine as a host over SSH, by an sshd of their own on a high port.
    missing=()
    command -v busybox >/dev/null || missing+=(busybox-static)
    PATH="$PATH:/usr/sbin" command -v sshd >/dev/null || missing+=(openssh-server)
    command -v ssh >/dev/null || missing+=(openssh-client)
    [ ${#missing[@]} -eq 0 ] || ! apt_usable || apt_install "${missing[@]}"
else
    without+=("not docker")
    left_out+=('LEFT OUT: every test marked "docker" (see "deselected" above): they need a Docker engine with Compose, which this machine does not have.')
fi

if ! ensure_postgres; then
    [ -z "${REQUIRE_ALL:-}" ] || die "PostgreSQL is required here and cannot be had; see above"
    without+=("not postgres")
    left_out+=('LEFT OUT: every test marked "postgres" (see "deselected" above): they need the programs of a PostgreSQL server, which this machine does not have.')
fi

[ "${1:-}" != --setup ] || exit 0
# The project is installed as its source: compile that once, not at every start of a process.
unset PYTHONDONTWRITEBYTECODE
if [ ${#without[@]} -eq 0 ]; then
    exec .venv/bin/python -m pytest "$@"
fi

code=0
printf -v expression '%s and ' "${without[@]}"
.venv/bin/python -m pytest -m "${expression% and }" "$@" || code=$?
printf '\n%s\n' "${left_out[@]}"
printf 'Run scripts/setup.sh to see what to install.\n'
exit "$code"
