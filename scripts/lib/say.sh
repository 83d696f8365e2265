# What set-up says: one short line per step on stdout, problems on stderr.

say() {
    printf 'setup: %s\n' "$*"
}

warn() {
    printf 'setup: %s\n' "$*" >&2
}

die() {
    warn "$*"
    exit 1
}
