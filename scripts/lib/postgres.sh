# PostgreSQL's server programs, for tests that start a server of their own in a temporary
# directory. No server of this machine is started, stopped or configured.
#
# POSTGRES_ROOT (default /usr/lib/postgresql) is for tests.

# postgres_present: whether the programs are there.
postgres_present() {
    local program
    for program in "${POSTGRES_ROOT:-/usr/lib/postgresql}"/*/bin/initdb; do
        [ ! -x "$program" ] || return 0
    done
    command -v initdb >/dev/null 2>&1
}

# postgres_package: the newest server that this release has.
postgres_package() {
    local version
    for version in 18 17 16 15 14; do
        if [ -n "$(apt_candidate "postgresql-$version")" ]; then
            printf 'postgresql-%s\n' "$version"
            return 0
        fi
    done
    return 1
}

# ensure_postgres: 0 when tests can start a server.
ensure_postgres() {
    local package made=
    postgres_present && return 0
    if ! apt_usable; then
        warn "there is no PostgreSQL server to test with, and this is not root on Debian: install PostgreSQL 14 or newer"
        return 1
    fi
    apt_update || return 1
    package="$(postgres_package)" || {
        warn "apt: no PostgreSQL server is among this machine's packages"
        return 1
    }
    # The package would make and start a server of the machine's own, which nobody asked for.
    if [ ! -e /etc/postgresql-common/createcluster.conf ]; then
        mkdir -p /etc/postgresql-common
        printf 'create_main_cluster = false\n' >/etc/postgresql-common/createcluster.conf
        made=yes
    fi
    if apt_install "$package"; then
        postgres_present
        return
    fi
    [ -z "$made" ] || rm -f /etc/postgresql-common/createcluster.conf
    return 1
}
