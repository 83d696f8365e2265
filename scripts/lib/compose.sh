# Docker Compose v2 and buildx, as plug-ins of whichever `docker` comes first on PATH.

compose_ready() {
    docker compose version >/dev/null 2>&1 && docker buildx version >/dev/null 2>&1
}

# compose_packages CODENAME: what to install here. Prefers the packages of the source that
# the engine came from; Debian 12 has neither plug-in, its `docker-compose` is the old v1.
compose_packages() {
    local version
    if [ -n "$(apt_candidate docker-compose-plugin)" ]; then
        echo docker-compose-plugin docker-buildx-plugin
        return 0
    fi
    version="$(version_major "$(apt_candidate docker-compose)")"
    if [ "${version:-0}" -ge 2 ] && [ -n "$(apt_candidate docker-buildx)" ]; then
        echo docker-compose docker-buildx
    elif [ "$1" = bookworm ]; then
        echo docker-compose/trixie docker-buildx/trixie
    else
        return 1
    fi
}

# ensure_compose: 0 when both plug-ins answer at the end.
ensure_compose() {
    local packages
    if compose_ready; then
        say "Compose $(docker compose version --short) and buildx are there"
        return 0
    fi
    if ! apt_usable || [ "$(os_field ID)" != debian ]; then
        warn "Docker Compose v2 or buildx is missing: install both as Docker CLI plug-ins"
        return 1
    fi
    apt_update || return 1
    if ! packages="$(compose_packages "$(os_field VERSION_CODENAME)")"; then
        warn "no source of this machine has Docker Compose v2 and buildx: install them as Docker CLI plug-ins"
        return 1
    fi
    case "$packages" in
    */trixie*)
        apt_add_suite trixie bookworm || return 1
        # A mirror without trixie must not break this machine's next `apt-get update`.
        apt_update || { apt_drop_suite trixie; return 1; }
        ;;
    esac
    # shellcheck disable=SC2086 # a list of package names
    apt_install $packages || return 1
    if ! compose_ready; then
        warn "Compose and buildx are installed, but '$(command -v docker) compose version' or 'buildx version' fails: is another Docker client first on PATH?"
        return 1
    fi
    say "Compose $(docker compose version --short) and buildx are installed"
}
