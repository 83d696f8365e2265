#!/usr/bin/env bash
# Sets this machine up: interpreter, uv, .venv, Docker engine, Compose and buildx, base image.
# Does what is missing and nothing else; the second run takes about two seconds.
#
#   --no-docker        leave Docker alone
#   --require-docker   fail when Docker or the base image cannot be had
#
# Without either, a machine that cannot have Docker is set up without it. .venv/.osmosis-docker
# then says "absent" instead of "ready".
set -euo pipefail

REPO="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
for part in say apt python uv venv engine compose; do
    # shellcheck source=/dev/null
    . "$REPO/scripts/lib/$part.sh"
done

docker_wanted=if-possible
for argument in "$@"; do
    case "$argument" in
    --no-docker) docker_wanted=no ;;
    --require-docker) docker_wanted=yes ;;
    *) die "unknown option '$argument'; known are --no-docker and --require-docker" ;;
    esac
done

# ensure_base_image: from the engine, a registry, or built from this machine's Debian release.
ensure_base_image() {
    local images=("$REPO/.venv/bin/python" -m sandbox_images) code=0
    cd "$REPO"
    "${images[@]}" fetch | sed 's/^/setup: /' || code=$?
    [ "$code" -eq 3 ] || return "$code"
    if ! command -v mmdebstrap >/dev/null 2>&1; then
        if ! apt_usable; then
            warn "no registry answers, and building the base image needs mmdebstrap: install it"
            return 1
        fi
        apt_install mmdebstrap || return 1
    fi
    "${images[@]}" build --no-registry | sed 's/^/setup: /'
}

ensure_venv || die "the Python environment cannot be set up; see above"

if [ "$docker_wanted" = no ]; then
    exit 0
fi
if ensure_engine && ensure_compose && ensure_base_image; then
    echo ready >"$REPO/.venv/.osmosis-docker"
    exit 0
fi
echo absent >"$REPO/.venv/.osmosis-docker"
[ "$docker_wanted" = if-possible ] || die "Docker is required here and cannot be had; see above"
warn "going on without Docker: everything that runs in containers is left out"
