#!/usr/bin/env bash
# Runs the tests on SkyPilot's sandbox SDK, with the double of tests/doubles in its place, in an
# environment of its own (.venv-skypilot): SkyPilot pins packages that the lock has newer.
# Made anew only when what it is made from changes. Arguments go to pytest; `--setup` installs
# what the tests need and runs nothing.
set -euo pipefail

REPO="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
for part in say apt python uv venv; do
    # shellcheck source=/dev/null
    . "$REPO/scripts/lib/$part.sh"
done

ensure_venv || die "the Python environment cannot be set up; see above"
ensure_uv "$REPO/.venv/bin/python" || die "uv is needed"
use_pip_index "$REPO/.venv/bin/python"
sky="$REPO/.venv-skypilot"
wanted="harbor-0.25 $(venv_wanted) $(sha256sum <"$REPO/tests/doubles/pyproject.toml")"
if [ "$(cat "$sky/.osmosis-made-from" 2>/dev/null)" != "$wanted" ]; then
    say "SkyPilot: installing into .venv-skypilot"
    rm -rf "$sky"
    run_quietly "$UV" venv -q --python "$REPO/.venv/bin/python" "$sky"
    # Run in the repository, where uv finds the override of uvicorn.
    VIRTUAL_ENV="$sky" run_quietly env -C "$REPO" "$UV" pip install -q \
        --group dev --editable "$REPO[server,skypilot]" 'harbor>=0.25,<0.26'
    VIRTUAL_ENV="$sky" run_quietly "$UV" pip install -q --no-deps --editable "$REPO/tests/doubles"
    echo "$wanted" >"$sky/.osmosis-made-from"
fi

# Images are pushed to a registry of this machine.
if ! command -v docker-registry >/dev/null; then
    apt_usable || die "docker-registry is needed: install it"
    apt_install docker-registry || die "docker-registry cannot be installed"
fi
[ "${1:-}" != --setup ] || exit 0
cd "$REPO"
unset PYTHONDONTWRITEBYTECODE  # as in test.sh
say "SkyPilot $("$sky/bin/python" -c 'from importlib.metadata import version; print(version("skypilot"))')"
[ "$#" -gt 0 ] || set -- tests/harbor_backend/places/skypilot
exec "$sky/bin/python" -m pytest "$@"
