# Reading and using the machine's own apt configuration. Nothing here names a mirror: every
# address comes from the sources that the machine already has.
#
# APT_ROOT (default empty) is a directory to read /etc/apt below, for tests.

# True when this machine installs software with apt-get and we may do so.
apt_usable() {
    [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null 2>&1
}

# os_field NAME [FILE]: one field of os-release, without its quotes.
os_field() {
    sed -n "s/^$1=//p" "${2:-/etc/os-release}" 2>/dev/null | tr -d '"' | head -n 1
}

# One line per enabled binary source: "URI SUITE COMPONENT", as apt itself reads them. Asks what
# an update would fetch, because that needs no package lists yet.
apt_sources() {
    local root="${APT_ROOT:-}"
    apt-get -o Dir::Etc="$root/etc/apt" --print-uris update 2>/dev/null |
        sed -nE "s|^'(.*)/dists/(.*)/([^/]+)/binary-[^/]+/Packages.*|\1 \2 \3|p" | awk '!seen[$0]++'
}

# apt_mirror SUITE: the URI of the source that serves SUITE's main component.
apt_mirror() {
    apt_sources | awk -v suite="$1" '$2 == suite && $3 == "main" && !found++ { print $1 }'
}

# apt_key URI: the key file that the sources give for URI; empty when they give none or hold
# the key itself instead of naming a file.
apt_key() {
    local root="${APT_ROOT:-}" file key
    for file in "$root"/etc/apt/sources.list.d/*.sources "$root"/etc/apt/sources.list \
        "$root"/etc/apt/sources.list.d/*.list; do
        [ -f "$file" ] || continue
        key="$(apt_key_in "$file" "${1%/}")"
        if [ -n "$key" ]; then
            printf '%s\n' "$key"
            return 0
        fi
    done
}

# apt_key_in FILE URI: the same in one file, of either format.
apt_key_in() {
    case "$1" in
    *.sources)
        awk -v uri="$2" '
            function flush() { if (served && key ~ /^\//) { print key; found = 1; exit }
                               served = 0; key = "" }
            /^[ \t]*$/ { flush(); next }
            /^#/ { next }
            tolower($1) == "uris:" {
                for (i = 2; i <= NF; i++) { u = $i; sub(/\/$/, "", u); if (u == uri) served = 1 }
            }
            tolower($1) == "signed-by:" { key = $2 }
            END { if (!found) flush() }' "$1"
        ;;
    *)
        awk -v uri="$2" '
            $1 == "deb" && match($0, /signed-by=[^] \t,]+/) {
                key = substr($0, RSTART + 10, RLENGTH - 10)
                for (i = 2; i <= NF; i++) {
                    u = $i; sub(/\/$/, "", u); if (u == uri) { print key; exit }
                }
            }' "$1"
        ;;
    esac
}

# apt_stanza URI SUITE [KEYFILE]: a deb822 source for SUITE's main component.
apt_stanza() {
    printf 'Types: deb\nURIs: %s\nSuites: %s\nComponents: main\n' "$1" "$2"
    [ -z "${3:-}" ] || printf 'Signed-By: %s\n' "$3"
}

# apt_pin SUITE: keep SUITE out of ordinary upgrades and installs.
apt_pin() {
    printf 'Package: *\nPin: release n=%s\nPin-Priority: 100\n' "$1"
}

# apt_candidate PACKAGE: the version apt would install now; empty when there is none.
apt_candidate() {
    LC_ALL=C apt-cache policy "$1" 2>/dev/null |
        awk '$1 == "Candidate:" && $2 != "(none)" { print $2 }'
}

# version_major VERSION: "2" for "1:2.26.1-4", "1" for "1.29.2-3".
version_major() {
    local version="${1#*:}"
    printf '%s\n' "${version%%[!0-9]*}"
}

# apt_update: refresh the package lists at most once per run.
apt_update() {
    [ -z "${APT_UPDATED:-}" ] || return 0
    say "apt: refreshing the package lists"
    run_quietly apt-get -q update || return 1
    APT_UPDATED=1
}

# apt_install PACKAGE…: without recommended packages, without questions.
apt_install() {
    apt_update || return 1
    say "apt: installing $*"
    DEBIAN_FRONTEND=noninteractive run_quietly \
        apt-get -q install -y --no-install-recommends "$@"
}

# apt_add_suite SUITE LIKE: add SUITE from the mirror that serves LIKE, pinned low.
apt_add_suite() {
    local suite="$1" uri root="${APT_ROOT:-}"
    if [ -n "$(apt_mirror "$suite")" ]; then
        return 0
    fi
    uri="$(apt_mirror "$2")"
    if [ -z "$uri" ]; then
        warn "apt: none of this machine's sources serves $2, so $suite cannot be added"
        return 1
    fi
    say "apt: adding $suite from this machine's own mirror, pinned below everything else"
    mkdir -p "$root/etc/apt/preferences.d" "$root/etc/apt/sources.list.d"
    apt_pin "$suite" >"$root/etc/apt/preferences.d/osmosis-$suite"
    apt_stanza "$uri" "$suite" "$(apt_key "$uri")" >"$root/etc/apt/sources.list.d/osmosis-$suite.sources"
    APT_UPDATED=
}

# apt_drop_suite SUITE: undo apt_add_suite.
apt_drop_suite() {
    local root="${APT_ROOT:-}"
    rm -f "$root/etc/apt/sources.list.d/osmosis-$1.sources" \
        "$root/etc/apt/preferences.d/osmosis-$1"
    APT_UPDATED=
}

# run_quietly COMMAND…: show the command's last lines only when it fails.
run_quietly() {
    local log
    log="$(mktemp)"
    if "$@" >"$log" 2>&1 </dev/null; then
        rm -f "$log"
        return 0
    fi
    warn "failed: $*"
    tail -n 15 "$log" >&2
    rm -f "$log"
    return 1
}
