#!/bin/sh
# Sets envcheck up in ./.venv and runs it:  sh setup.sh doctor
# With "test" it adds what the tests need and runs them:  sh setup.sh test
# Run it as often as you like. It changes nothing outside this directory, except that a Debian or Ubuntu
# without the venv module gets the package python3-venv (it says so first).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
venv="$here/.venv"
# Where pip's other settings would take the packages, and how they would stop it.
export PIP_USER=0 PIP_REQUIRE_VIRTUALENV=0 PIP_DISABLE_PIP_VERSION_CHECK=1
unset PIP_TARGET PIP_PREFIX PIP_ROOT

say() { printf 'setup: %s\n' "$*" >&2; }
die() { say "$*"; exit 2; }

recent() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; }

find_python() {
    if [ -n "${PYTHON:-}" ]; then
        recent "$PYTHON" || die "PYTHON=$PYTHON is no Python 3.10 or newer"
        command -v "$PYTHON"
        return
    fi
    for name in python3 python3.14 python3.13 python3.12 python3.11 python3.10; do
        if recent "$name"; then
            command -v "$name"
            return
        fi
    done
    die "needs Python 3.10 or newer, and found none (PYTHON=/path/to/python3 sh setup.sh ... names one)"
}

has_venv_module() { "$python" -c 'import ensurepip, venv' 2>/dev/null; }

# Debian splits the venv module off: without python3-venv there is no pip to put into an environment.
install_venv_module() {
    package=$("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
    command -v apt-get >/dev/null 2>&1 ||
        die "$python has no venv module (ensurepip): install it, then run this again"
    as_root=
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null 2>&1 ||
            die "$python has no venv module: as root, apt-get install $package, then run this again"
        as_root=sudo
    fi
    say "$python has no venv module: installing $package with apt-get"
    { $as_root apt-get update -qq || say "apt-get update failed: trying with the lists that are there"; } >&2
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y "$package" >&2 ||
        die "could not install $package: install it, then run this again"
    has_venv_module || die "$python still has no venv module (ensurepip): is it Debian's own Python?"
}

# An environment that works, and of the Python that PYTHON names, if it names one.
is_there() {
    recent "$venv/bin/python" && "$venv/bin/python" -c 'import pip' 2>/dev/null &&
        { [ -z "${PYTHON:-}" ] || [ "$("$PYTHON" -V 2>&1)" = "$("$venv/bin/python" -V 2>&1)" ]; }
}

make_environment() {
    python=$(find_python)
    has_venv_module || install_venv_module
    say "making .venv with $python"
    { rm -rf "$venv" && "$python" -m venv "$venv"; } >&2 ||
        die "$python could not make a virtual environment in $venv"
}

# install NAME EXTRA: envcheck itself, editable, with the packages of that extra. Once for each
# pyproject.toml and place: a checkout that was moved has its old place in its environment.
install() {
    wanted="$(cksum <"$here/pyproject.toml") $here"
    [ "$(cat "$venv/.installed-$1" 2>/dev/null || :)" != "$wanted" ] || return 0
    say "installing envcheck and its packages"
    (cd "$here" && "$venv/bin/python" -m pip install --quiet --editable ".$2") >&2 ||
        die "pip could not install envcheck, and says why above (if it is the network:" \
            "https_proxy=... or PIP_INDEX_URL=... names a way out); then run this again"
    printf '%s\n' "$wanted" >"$venv/.installed-$1"
}

[ $# -gt 0 ] || die "say what to do: sh setup.sh doctor, sh setup.sh test, or any other envcheck command"
is_there || make_environment
if [ "$1" = test ]; then
    shift
    install test '[test]'
    cd "$here"
    unset PYTHONDONTWRITEBYTECODE  # each of the tests' processes would compile all of them
    exec "$venv/bin/python" -m pytest -n auto "$@"
fi
install base ''
ENVCHECK_COMMAND="sh $0" exec "$venv/bin/envcheck" "$@"
