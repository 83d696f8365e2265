# The project's own environment: .venv, with what requirements.lock holds and nothing else.

# venv_wanted: a hash of what decides the environment's content.
venv_wanted() {
    local file
    for file in pyproject.toml requirements.lock; do
        [ ! -f "$REPO/$file" ] || cat "$REPO/$file"
    done | sha256sum | cut -d ' ' -f 1
}

# venv_current: true when .venv runs and was made from what is wanted now.
venv_current() {
    [ -x "$REPO/.venv/bin/python" ] &&
        [ "$(cat "$REPO/.venv/.osmosis-made-from" 2>/dev/null)" = "$(venv_wanted)" ] &&
        python_version "$REPO/.venv/bin/python" >/dev/null
}

# apt_has_python: whether this machine's release packages a Python that is new enough.
apt_has_python() {
    apt_usable && apt_update &&
        [ "$(apt_candidate python3 | cut -d . -f 2)" -ge 12 ] 2>/dev/null
}

# ensure_python: sets PYTHON and, when it had to be downloaded, UV.
ensure_python() {
    if PYTHON="$(find_python)"; then
        say "Python $(python_version "$PYTHON"): $PYTHON"
        return 0
    fi
    say "no $PYTHON_WANTED on PATH or under pyenv"
    if apt_has_python; then
        apt_install python3 python3-pip || return 1
        PYTHON="$(find_python)" && return 0
    fi
    ensure_uv || return 1
    if ! PYTHON="$(download_python "$UV")"; then
        warn "no $PYTHON_WANTED found, and uv cannot download one. Install one: Debian 13 has it (apt-get install python3 python3-venv); elsewhere 'pyenv install 3.12' or a build from python.org on PATH"
        return 1
    fi
    say "Python: downloaded $PYTHON"
}

# ensure_venv: .venv as wanted; at once when it already is.
ensure_venv() {
    local stamp="$REPO/.venv/.osmosis-made-from"
    if venv_current; then
        say ".venv is up to date (Python $(python_version "$REPO/.venv/bin/python"))"
        return 0
    fi
    ensure_python || return 1
    [ -n "${UV:-}" ] || ensure_uv "$PYTHON" || return 1
    use_pip_index "$PYTHON"
    rm -f "$stamp"
    if ! python_version "$REPO/.venv/bin/python" >/dev/null; then
        rm -rf "$REPO/.venv"
        run_quietly "$UV" venv -q --python "$PYTHON" "$REPO/.venv" || return 1
    fi
    # Bytecode is compiled here and now: PYTHONDONTWRITEBYTECODE may be set, and then every
    # start of every process would compile every import.
    export VIRTUAL_ENV="$REPO/.venv"
    if [ -f "$REPO/requirements.lock" ]; then
        say ".venv: installing requirements.lock, with hashes"
        run_quietly "$UV" pip sync -q --require-hashes --compile-bytecode \
            "$REPO/requirements.lock" || return 1
        run_quietly "$UV" pip install -q --no-deps --editable "$REPO" || return 1
    else
        say ".venv: no requirements.lock; installing what pyproject.toml asks for"
        run_quietly env -C "$REPO" "$UV" pip install -q --compile-bytecode \
            --group dev --editable "${REPO}[full]" || return 1
    fi
    venv_wanted >"$stamp"
    say ".venv: ready"
}
