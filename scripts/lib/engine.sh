# A Docker engine: the one that answers, else Debian's, started by hand where nothing starts it.
#
# RUN_DIR and PROC_DIR (default /var/run and /proc) are for tests.

ENGINE_WAIT_SECONDS=60
DOCKERD_LOG="${DOCKERD_LOG:-/var/log/osmosis-dockerd.log}"

# engine_answers: through the client when there is one, else on the socket itself.
engine_answers() {
    local socket="${RUN_DIR:-/var/run}/docker.sock"
    if command -v docker >/dev/null 2>&1; then
        timeout 20 docker version --format '{{.Server.Version}}' >/dev/null 2>&1 </dev/null
        return
    fi
    case "${DOCKER_HOST:-}" in
    '') ;;
    unix://*) socket="${DOCKER_HOST#unix://}" ;;
    *) return 1 ;;
    esac
    [ -S "$socket" ] && "${PYTHON:-$REPO/.venv/bin/python}" -I -c '
import http.client, socket, sys
s = socket.socket(socket.AF_UNIX); s.settimeout(10); s.connect(sys.argv[1])
c = http.client.HTTPConnection("engine"); c.sock = s; c.request("GET", "/_ping")
sys.exit(c.getresponse().status != 200)' "$socket" 2>/dev/null
}

# lives PID NAME: whether that process has that name, and is not a zombie that nobody has
# reaped (in a container, often nobody does).
lives() {
    [ -n "$1" ] && awk -v name="$2" '$1 == "Name:" && $2 == name { named = 1 }
        $1 == "State:" && $2 !~ /[ZX]/ { lives = 1 }
        END { exit !(named && lives) }' "${PROC_DIR:-/proc}/$1/status" 2>/dev/null
}

# living_dockerd: the pid of a daemon on this machine; fails when there is none. A second one
# would delete the first one's bridge.
living_dockerd() {
    local pid
    pid="$(cat "${RUN_DIR:-/var/run}/docker.pid" 2>/dev/null || true)"
    if lives "$pid" dockerd; then
        printf '%s\n' "$pid"
        return 0
    fi
    while IFS= read -r pid; do
        pid="${pid%/comm}" pid="${pid##*/}"
        if lives "$pid" dockerd; then
            printf '%s\n' "$pid"
            return 0
        fi
    done <<PROCESSES
$(grep -l '^dockerd$' "${PROC_DIR:-/proc}"/[0-9]*/comm 2>/dev/null)
PROCESSES
    return 1
}

# drop_stale_pids: a killed daemon leaves its own pid file and that of its containerd, and
# each stops the next daemon.
drop_stale_pids() {
    drop_stale_pid "${RUN_DIR:-/var/run}/docker.pid" dockerd
    drop_stale_pid "${RUN_DIR:-/var/run}/docker/containerd/containerd.pid" containerd
}

# drop_stale_pid FILE NAME
drop_stale_pid() {
    if [ -f "$1" ] && ! lives "$(cat "$1")" "$2"; then
        say "engine: removing the pid file of a $2 that is gone"
        rm -f "$1"
    fi
}

# wait_for_engine: bounded; fails early when the daemon dies.
wait_for_engine() {
    local deadline=$(($(date +%s) + ENGINE_WAIT_SECONDS))
    while ! engine_answers; do
        if [ "$(date +%s)" -ge "$deadline" ] || ! living_dockerd >/dev/null; then
            return 1
        fi
        sleep 0.5
    done
}

# start_engine: by the service manager where there is one, else by hand.
start_engine() {
    if living_dockerd >/dev/null; then
        say "engine: a daemon is running (pid $(living_dockerd)); waiting for it to answer"
    elif [ -d /run/systemd/system ]; then
        say "engine: starting the docker service"
        run_quietly systemctl start docker || return 1
    else
        drop_stale_pids
        say "engine: starting dockerd by hand (log: $DOCKERD_LOG)"
        # Its own session: it outlives this terminal and make. No inherited lock, no stdin.
        setsid -f dockerd >"$DOCKERD_LOG" 2>&1 </dev/null 9>&-
        sleep 0.5
    fi
    if ! wait_for_engine; then
        warn "engine: it does not answer. The last lines of $DOCKERD_LOG:"
        tail -n 8 "$DOCKERD_LOG" >&2 2>/dev/null || true
        return 1
    fi
}

# engine_packages: Debian 13 has the client apart from the engine, Debian 12 has not.
engine_packages() {
    printf 'docker.io'
    [ -z "$(apt_candidate docker-cli)" ] || printf ' docker-cli'
    printf '\n'
}

# install_engine: the daemon and its client.
install_engine() {
    if ! apt_usable || [ "$(os_field ID)" != debian ]; then
        warn "no Docker engine answers, and this is not root on Debian: install Docker Engine 20.10 or newer with Compose v2, and start it"
        return 1
    fi
    apt_update || return 1
    # shellcheck disable=SC2046 # a list of package names
    apt_install $(engine_packages)
}

# install_client: for an engine that is already there or elsewhere.
install_client() {
    if ! apt_usable || [ "$(os_field ID)" != debian ]; then
        warn "there is no 'docker' command to drive the Docker engine with: install the Docker CLI"
        return 1
    fi
    apt_update || return 1
    if [ -n "$(apt_candidate docker-cli)" ]; then
        apt_install docker-cli
    else
        # Debian 12 has the client only together with an engine, which is not wanted here.
        apt_add_suite trixie bookworm && apt_install docker-cli/trixie
    fi
}

# ensure_engine: 0 when an engine answers and `docker` can drive it. One process at a time.
ensure_engine() {
    local lock="/run/lock/osmosis-engine.lock"
    # Only the client can reach an engine that is elsewhere.
    if [ -n "${DOCKER_HOST:-}" ] && ! command -v docker >/dev/null 2>&1; then
        install_client || return 1
    fi
    if ! engine_answers; then
        if [ -n "${DOCKER_HOST:-}" ]; then
            warn "the engine at DOCKER_HOST=$DOCKER_HOST does not answer: start it, or unset DOCKER_HOST to use one on this machine"
            return 1
        fi
        if ! command -v dockerd >/dev/null 2>&1 && ! living_dockerd >/dev/null; then
            install_engine || return 1
        fi
        if [ "$(id -u)" -ne 0 ]; then
            warn "Docker is installed, but its engine does not answer to this user: start it (as root: systemctl start docker, or dockerd), and add the user to the group docker"
            return 1
        fi
        mkdir -p "${lock%/*}"
        {
            flock -w 120 9 || { warn "engine: another set-up holds $lock"; return 1; }
            engine_answers || start_engine || return 1
        } 9>"$lock"
    fi
    command -v docker >/dev/null 2>&1 || install_client || return 1
    say "engine: Docker $(docker version --format '{{.Server.Version}}') answers"
}
