#!/usr/bin/env bash
# Writes requirements.lock from pyproject.toml: every extra of the default install and the
# development tools, for every supported Python and platform, with hashes. Arguments go to uv
# (for example --upgrade-package NAME).
set -euo pipefail

REPO="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
for part in say apt python uv; do
    # shellcheck source=/dev/null
    . "$REPO/scripts/lib/$part.sh"
done

ensure_uv || die "uv is needed to write the lock"
use_pip_index
cd "$REPO"
"$UV" pip compile --universal --python-version 3.12 --generate-hashes --no-header \
    --no-emit-index-url --no-emit-find-links --quiet \
    --extra server --extra postgres --extra otel --extra harbor --extra strands --extra openai-agents --extra litellm \
    --group dev --output-file requirements.lock "$@" pyproject.toml
say "requirements.lock: $(grep -c '^[a-z0-9].*==' requirements.lock) packages"
