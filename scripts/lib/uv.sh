# Finding uv, or installing it into .venv-tools, away from the system's own packages.

# find_uv: the path of a uv that runs; fails when there is none.
find_uv() {
    local candidate
    for candidate in "$(command -v uv 2>/dev/null)" "$REPO/.venv-tools/bin/uv"; do
        if [ -n "$candidate" ] && "$candidate" --version >/dev/null 2>&1 </dev/null; then
            printf '%s\n' "$candidate"
            return 0
        fi
    done
    return 1
}

# pip_of PYTHON…: the first of these interpreters that has pip.
pip_of() {
    local candidate
    for candidate in "$@"; do
        if [ -n "$candidate" ] && "$candidate" -m pip --version >/dev/null 2>&1 </dev/null; then
            printf '%s\n' "$candidate"
            return 0
        fi
    done
    return 1
}

# install_uv [PYTHON]: put uv into .venv-tools with the pip of PYTHON or of any other python3.
# `--target` leaves the interpreter's own packages alone, so it also works on a Debian whose
# Python is externally managed; it needs neither python3-venv nor a recent interpreter.
install_uv() {
    local any target="$REPO/.venv-tools" python
    any="$(command -v python3 2>/dev/null || true)"
    if ! python="$(pip_of "${1:-}" "$any" /usr/bin/python3)"; then
        if apt_usable; then
            apt_install python3 python3-pip || return 1
            python="$(pip_of /usr/bin/python3)" || return 1
        else
            warn "neither uv nor a Python with pip is here: install one of them (apt-get install python3-pip)"
            return 1
        fi
    fi
    mkdir -p "$target"
    printf '*\n' >"$target/.gitignore"
    run_quietly "$python" -m pip install -q --disable-pip-version-check --no-warn-script-location \
        --upgrade --target "$target/packages" uv || return 1
    mkdir -p "$target/bin"
    ln -sf ../packages/bin/uv "$target/bin/uv"
}

# trust_system_cas: uv brings its own list of CAs, and lacks those that this machine was given.
trust_system_cas() {
    local bundle="${CA_BUNDLE:-/etc/ssl/certs/ca-certificates.crt}"
    if [ -z "${SSL_CERT_FILE:-}" ] && [ -s "$bundle" ]; then
        export SSL_CERT_FILE="$bundle"
    fi
}

# ensure_uv [PYTHON]: sets UV.
ensure_uv() {
    trust_system_cas
    if UV="$(find_uv)"; then
        say "uv: $UV"
        return 0
    fi
    say "uv: installing into .venv-tools"
    install_uv "${1:-}" && UV="$(find_uv)"
}

# pip_index: the package index that pip is told to use here; empty for the public one.
# uv does not read pip's configuration.
pip_index() {
    local python
    if [ -n "${PIP_INDEX_URL:-}" ]; then
        printf '%s\n' "$PIP_INDEX_URL"
    elif python="$(pip_of "${1:-}" "$(command -v python3 2>/dev/null || true)")"; then
        "$python" -m pip config get global.index-url 2>/dev/null </dev/null || true
    fi
}

# use_pip_index [PYTHON]: have uv use it too, unless uv was told something itself.
use_pip_index() {
    local index
    [ -z "${UV_DEFAULT_INDEX:-}${UV_INDEX_URL:-}${UV_CONFIG_FILE:-}" ] || return 0
    index="$(pip_index "${1:-}")"
    case "$index" in
    http://* | https://*) export UV_DEFAULT_INDEX="$index" ;;
    esac
}
