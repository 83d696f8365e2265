# Finding an interpreter that can run this project, by running each candidate.
#
# SYSTEM_PYTHONS (where Python is even when PATH does not say so) is for tests.

# shellcheck disable=SC2034 # used by venv.sh
PYTHON_WANTED="Python >= 3.12, < 3.15"

# python_version FILE: "3.12" when FILE runs, is new enough and has the modules that a build
# without the right libraries lacks; fails otherwise. A pyenv shim of a version that is not
# selected fails here, and so it should.
python_version() {
    "$1" -I -c '
import sys, ctypes, sqlite3, ssl, zlib
sys.exit(1) if not (3, 12) <= sys.version_info < (3, 15) else print("%d.%d" % sys.version_info[:2])
' 2>/dev/null </dev/null
}

# python_candidates: paths worth trying, one a line.
python_candidates() {
    local name found root
    for name in python3.12 python3.13 python3.14 python3 python; do
        found="$(command -v "$name" 2>/dev/null)" && printf '%s\n' "$found"
    done
    if command -v pyenv >/dev/null 2>&1; then
        root="$(pyenv root 2>/dev/null)"
    else
        root="${PYENV_ROOT:-${HOME:-}/.pyenv}"
    fi
    for found in "$root"/versions/3.1[234]*/bin/python; do
        [ ! -x "$found" ] || printf '%s\n' "$found"
    done
    for found in ${SYSTEM_PYTHONS-/usr/bin/python3 /usr/local/bin/python3}; do
        [ ! -x "$found" ] || printf '%s\n' "$found"
    done
}

# find_python: the path of the best interpreter of this machine; fails when it has none.
# 3.12 first, because the sandboxes' images carry it too, then 3.13, then 3.14.
find_python() {
    local candidate version best='' best_version=''
    while IFS= read -r candidate; do
        version="$(python_version "$candidate")" || continue
        if [ "$version" = 3.12 ]; then
            best="$candidate"
            break
        fi
        if [ -z "$best" ] || [ "${version#3.}" -lt "${best_version#3.}" ]; then
            best="$candidate" best_version="$version"
        fi
    done <<CANDIDATES
$(python_candidates)
CANDIDATES
    [ -n "$best" ] || return 1
    # A shim decides anew at each call; keep what it stands for.
    "$best" -I -c 'import sys; print(sys.executable)'
}

# download_python UV: let uv download an interpreter; prints its path.
download_python() {
    "$1" python install -q 3.12 >/dev/null 2>&1 </dev/null || return 1
    "$1" python find --no-project 3.12 2>/dev/null
}
