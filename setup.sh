#!/bin/sh
# Sets envcheck up in ./.venv and runs it:  sh setup.sh doctor
# With "test" it adds what the tests need and runs them:  sh setup.sh test
# Where there is no Python 3.10 or newer, uv can get one:  sh setup.sh --get-python doctor
# Run it as often as you like. It changes nothing outside this directory, except that a Debian or Ubuntu
# without the venv module gets the package python3-venv (it says so first).
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
venv="$here/.venv"
newer=3.12 # what uv gets
log=       # what apt, pip and uv say; kept where one of them fails
# Where pip's other settings would take the packages, and how they would stop it.
export PIP_USER=0 PIP_REQUIRE_VIRTUALENV=0 PIP_DISABLE_PIP_VERSION_CHECK=1
unset PIP_TARGET PIP_PREFIX PIP_ROOT
unset PYTHONDONTWRITEBYTECODE # every run would compile everything
(: <&0) 2>/dev/null || exec </dev/null

say() { printf 'setup: %s\n' "$*" >&2; }
die() { say "$*"; exit 2; }

open_log() {
    [ -n "$log" ] || log=$(mktemp "${TMPDIR:-/tmp}/envcheck-setup.XXXXXX") || die "cannot write to ${TMPDIR:-/tmp}"
}

# quietly COMMAND…: what it says goes into the log. Every Python in this script is isolated (-I), so that it
# runs no module of the current directory; the Pythons that pip and uv start get no PYTHONPATH either.
quietly() {
    open_log
    (
        unset PYTHONPATH PYTHONHOME PYTHONUSERBASE
        export PYTHONNOUSERSITE=1 PYTHONSAFEPATH=1
        exec "$@"
    ) >>"$log" 2>&1
}

# failed SENTENCE: with the last words of what failed, and where all of them are.
failed() {
    tail -n 3 "$log" | sed 's/^/    /' >&2
    die "$* (everything it said: $log)"
}

# How this script was called, as a shell takes it.
called() {
    case "$0" in
        *[!A-Za-z0-9_./+:@%,=-]*) printf "sh '%s'" "$(printf '%s' "$0" | sed "s/'/'\\\\''/g")" ;;
        *) printf 'sh %s' "$0" ;;
    esac
}

recent() { "$1" -I -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; }
version() { "$1" -I -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])' 2>/dev/null; }

# Sets python, or where all are too old: old, the first of them.
find_python() {
    python='' old=''
    if [ -n "${PYTHON:-}" ]; then
        found=$(version "$PYTHON") || die "PYTHON=$PYTHON is not a Python interpreter"
        recent "$PYTHON" || die "PYTHON=$PYTHON is Python $found; envcheck needs 3.10 or newer"
        python=$(command -v "$PYTHON")
        return
    fi
    for name in python3 python3.14 python3.13 python3.12 python3.11 python3.10 python; do
        if recent "$name"; then
            python=$(command -v "$name")
            return
        fi
        [ -n "$old" ] || ! version "$name" >/dev/null || old=$(command -v "$name")
    done
}

# May uv get a Python? Asked on a terminal, or said by --get-python.
may_get_python() {
    found=none
    [ -z "$old" ] || found="Python $(version "$old") ($old)"
    if [ -z "$get_python" ] && [ -t 0 ] && [ -t 2 ]; then
        printf 'setup: envcheck needs Python 3.10 or newer; found %s.\n' "$found" >&2
        printf 'setup: May uv get Python %s into .venv (about 35 MB)? [y/N] ' "$newer" >&2
        read -r answer || answer=
        case "$answer" in [yY]*) get_python=yes ;; esac
    fi
    [ -n "$get_python" ] || die "needs Python 3.10 or newer; found $found. uv can get one into .venv:" \
        "$(called) --get-python ${1:-doctor}; PYTHON=/path/to/python3 names one that you have"
}

get_python() {
    mkdir -p "$venv"
    uv=$(command -v uv) || get_uv
    say "getting Python $newer with uv"
    open_log
    export UV_PYTHON_INSTALL_DIR="$venv/python" UV_PYTHON_INSTALL_BIN=0
    (cd "$venv" && quietly "$uv" python install "$newer") || failed "uv could not get Python $newer"
    for python in "$venv/python/cpython-$newer"*/bin/python3; do return; done
}

get_uv() {
    [ -n "$old" ] || die "there is neither uv nor a Python that could get it: install one of them first"
    has_venv_module "$old" || install_venv_module "$old"
    say "getting uv with $old"
    quietly "$old" -I -m venv "$venv/uv" &&
        quietly "$venv/uv/bin/python" -I -m pip install --upgrade pip &&
        quietly "$venv/uv/bin/python" -I -m pip install uv || failed "pip could not get uv"
    uv="$venv/uv/bin/uv"
}

has_venv_module() { "$1" -I -c 'import ensurepip, venv' 2>/dev/null; }

# Debian splits the venv module off: without python3-venv there is no pip to put into an environment.
install_venv_module() {
    package=$("$1" -I -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
    command -v apt-get >/dev/null 2>&1 ||
        die "$1 has no venv module (ensurepip): install it, then run this again"
    as_root=
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null 2>&1 ||
            die "$1 has no venv module: as root, apt-get install $package, then run this again"
        as_root=sudo
    fi
    say "$1 has no venv module: installing $package with $as_root${as_root:+ }apt-get"
    quietly $as_root apt-get update || say "apt-get update failed: trying with the lists that are there"
    quietly $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y "$package" ||
        failed "could not install $package: as root, apt-get install $package, then run this again"
    has_venv_module "$1" || die "$1 still has no venv module (ensurepip): is it Debian's own Python?"
}

# An environment that works, and of the Python that PYTHON names, if it names one.
is_there() {
    "$venv/bin/python" -I -c 'import sys, importlib.util as u; sys.exit(sys.version_info < (3, 10) or not u.find_spec("pip"))' \
        2>/dev/null && { [ -z "${PYTHON:-}" ] || [ "$(version "$PYTHON")" = "$(version "$venv/bin/python")" ]; }
}

# The pip that comes with a Python, as a wheel, from which it runs without being installed.
pip_wheel() {
    "$1" -I -c 'import ensurepip, glob, os, sysconfig
folders = [sysconfig.get_config_var("WHEEL_PKG_DIR"), os.path.join(os.path.dirname(ensurepip.__file__), "_bundled"),
           "/usr/share/python-wheels"]
print(next(wheel for folder in folders if folder for wheel in glob.glob(os.path.join(folder, "pip-*.whl"))))' 2>/dev/null
}

make_environment() {
    find_python
    [ -n "$python" ] || may_get_python "$@"
    rm -rf "$venv"
    [ -n "$python" ] || get_python
    if has_venv_module "$python"; then
        set -- "$python" -I -m venv
        [ -z "$(pip_wheel "$python")" ] || set -- "$@" --without-pip # install adds it, in half the time
    elif command -v uv >/dev/null 2>&1; then
        set -- uv --no-config venv --allow-existing --seed --python "$python"
    elif "$python" -I -c 'import virtualenv' 2>/dev/null; then
        set -- "$python" -I -m virtualenv
    else
        install_venv_module "$python"
        set -- "$python" -I -m venv
    fi
    say "making .venv with Python $(version "$python") ($python)"
    quietly "$@" "$venv" || failed "$1 could not make a virtual environment in $venv"
}

# install NAME EXTRA: envcheck itself, editable, with the packages of that extra. Once for each
# pyproject.toml, version and place: a checkout that was moved has its old place in its environment.
install() {
    wanted="$(cat "$here/pyproject.toml" "$here/envcheck/collector/version.py" 2>/dev/null | cksum) $here"
    [ "$(cat "$venv/.installed-$1" 2>/dev/null || :)" != "$wanted" ] || return 0
    say "installing envcheck and its packages"
    name=$1 extra=$2
    set -- -m pip install
    if ! "$venv/bin/python" -I -c 'import pip' 2>/dev/null; then
        wheel=$(pip_wheel "$venv/bin/python")
        set -- "$wheel/pip" install pip --find-links "${wheel%/*}"
    fi
    open_log
    (cd "$here" && quietly "$venv/bin/python" -I "$@" --no-compile --progress-bar off --editable ".$extra") ||
        failed "pip could not install envcheck (if it is the network: https_proxy=... or PIP_INDEX_URL=..." \
            "names a way out)"
    printf '%s\n' "$wanted" >"$venv/.installed-$name"
}

get_python=
if [ "${1:-}" = --get-python ]; then
    get_python=yes
    shift
fi
[ $# -gt 0 ] || die "say what to do: sh setup.sh doctor, sh setup.sh test, or any other envcheck command"
is_there || make_environment "$@"
if [ "$1" = test ]; then
    install test '[test]'
else
    install base ''
fi
[ -z "$log" ] || rm -f "$log"
if [ "$1" = test ]; then
    shift
    cd "$here"
    unset PYTHONPATH PYTHONHOME
    exec "$venv/bin/python" -m pytest -n auto "$@"
fi
ENVCHECK_COMMAND=$(called) exec "$venv/bin/python" -I "$venv/bin/envcheck" "$@"
