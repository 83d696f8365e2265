#!/usr/bin/env bash
# Runs the Harbor tests on the newest Harbor that is supported, in an environment of its own
# (.venv-harbor-next): it needs a newer mcp than Strands allows, so the lock cannot hold it.
# Arguments go to pytest; `--setup` makes the environment and runs nothing.
set -euo pipefail

REPO="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
for part in say apt python uv venv; do
    # shellcheck source=/dev/null
    . "$REPO/scripts/lib/$part.sh"
done

ensure_venv || die "the Python environment cannot be set up; see above"
ensure_uv "$REPO/.venv/bin/python" || die "uv is needed"
use_pip_index "$REPO/.venv/bin/python"
next="$REPO/.venv-harbor-next"
wanted="harbor-0.26 $(venv_wanted)"
if [ "$(cat "$next/.osmosis-made-from" 2>/dev/null)" != "$wanted" ]; then
    say "Harbor 0.26: installing into .venv-harbor-next"
    rm -rf "$next"
    run_quietly "$UV" venv -q --python "$REPO/.venv/bin/python" "$next"
    overrides="$(mktemp)"
    trap 'rm -f "$overrides"' EXIT
    echo 'mcp>=2.3' >"$overrides"
    VIRTUAL_ENV="$next" run_quietly env -C "$REPO" "$UV" pip install -q \
        --override "$overrides" --group dev --editable "$REPO[server,harbor,strands]" \
        'harbor>=0.26,<0.27'
    echo "$wanted" >"$next/.osmosis-made-from"
fi
[ "${1:-}" != --setup ] || exit 0
cd "$REPO"
unset PYTHONDONTWRITEBYTECODE  # as in test.sh
say "Harbor $("$next/bin/python" -c 'from importlib.metadata import version; print(version("harbor"))')"
exec "$next/bin/python" -m pytest "$@"
