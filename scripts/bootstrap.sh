#!/bin/sh
# Makes .venv from the locks, once; needs only Python 3.11 or later.
#
#   bootstrap.sh LOCK... [-- LOCK...]   set up, or do nothing when .venv already holds what the locks
#                                       say, or what the locks behind -- say: those hold more
#   bootstrap.sh --find                 print the Python that would be used, or fail with one line
#                                       that helps
#
# PYTHON=... chooses the Python. Everything comes from the locks, checked by hash.
set -eu
cd "$(dirname "$0")/.."

usable='import sys; sys.exit(sys.version_info < (3, 11))'
can_make_venv='import ensurepip, venv'
venv=.venv
stamp=$venv/set-up.stamp

say() { printf '%s\n' "$*" >&2; }

# A name on the PATH proves nothing: version managers leave shims that fail when called.
find_python() {
    without_venv=
    for candidate in ${PYTHON:-python3.13 python3.12 python3.11 python3}; do
        "$candidate" -c "$usable" >/dev/null 2>&1 || continue
        if "$candidate" -c "$can_make_venv" >/dev/null 2>&1; then
            command -v "$candidate"
            return
        fi
        without_venv=${without_venv:-$candidate}
    done
    if [ -n "$without_venv" ]; then
        version=$("$without_venv" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
        say "s3-compactor: $without_venv lacks the venv module; install it, then try again" \
            "(Debian, Ubuntu: apt-get install python$version-venv)."
    elif [ -n "${PYTHON:-}" ]; then
        say "s3-compactor: PYTHON=$PYTHON is not a working Python 3.11 or later."
    else
        say "s3-compactor: no working Python 3.11 or later found; install one, or name it:" \
            "make PYTHON=/path/to/python3.11 ..."
    fi
    return 1
}

# What .venv was, or is to be, made from. Contents count, not times: a checkout changes those.
fingerprint() { cat pyproject.toml requirements-bootstrap.txt scripts/bootstrap.sh "$@" | cksum; }

# True when .venv's Python still works, and is of the version that PYTHON asks for, if it does.
venv_usable() {
    "$venv/bin/python" -c "$usable" >/dev/null 2>&1 || return 1
    [ -z "${PYTHON:-}" ] || [ "$("$PYTHON" -V 2>&1)" = "$("$venv/bin/python" -V)" ]
}

up_to_date() {
    [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$(fingerprint "$@")" ] && venv_usable
}

# pip alone would do, and does where uv cannot reach the package index (uv reads no settings of
# pip, such as a mirror), but uv needs a quarter of the time.
#
# pyspark comes as source only. It is built by the setuptools of requirements-bootstrap.txt:
# isolated, the build would fetch the newest one, which no lock has a hash of.
install_locks() {
    python=$venv/bin/python
    if "$python" -m pip install --quiet --require-hashes -r requirements-bootstrap.txt &&
        "$venv/bin/uv" pip sync --quiet --system-certs --python "$python" --require-hashes \
            --no-build-isolation requirements-bootstrap.txt "$@"
    then
        return
    fi
    say "uv could not install the locks; trying pip, which takes about two minutes."
    with_option=
    for lock in requirements-bootstrap.txt "$@"; do with_option="$with_option -r $lock"; done
    # shellcheck disable=SC2086 # one word per lock is meant
    "$python" -m pip install --quiet --require-hashes --no-build-isolation $with_option
}

set_up() {
    started=$(date +%s)
    rm -f "$stamp"
    if ! venv_usable; then
        python=$(find_python)
        say "Setting up .venv with $("$python" -V) (once; up to a minute) ..."
        rm -rf "$venv"
        "$python" -m venv "$venv"
    else
        say "Setting up .venv again, because what it is made from changed ..."
    fi
    install_locks "$@"
    "$venv/bin/python" -m pip install --quiet --no-deps --no-build-isolation --editable .
    fingerprint "$@" >"$stamp"
    say "Set up .venv in $(($(date +%s) - started)) s: $(du -sm "$venv" | cut -f 1) MB. Packages stay in" \
        "$("$venv/bin/uv" cache dir) for the next time."
}

export PIP_DISABLE_PIP_VERSION_CHECK=1
if [ "${1:-}" = --find ]; then
    find_python
    exit
fi
locks=
while [ $# -gt 0 ] && [ "$1" != -- ]; do
    locks="$locks $1"
    shift
done
if [ -z "$locks" ]; then
    say "usage: bootstrap.sh LOCK... [-- LOCK...] | --find"
    exit 2
fi
# shellcheck disable=SC2086 # one word per lock is meant
if [ $# -gt 1 ] && shift && up_to_date "$@"; then
    :
elif ! up_to_date $locks; then
    set_up $locks
fi
