"""The `setup.sh` of a bundle: installs envcheck from it, without a network and without pip being there."""

from __future__ import annotations

import shlex

_TEXT = """\
#!/bin/sh
# Installs envcheck from this bundle, without a network:   sh setup.sh [DIRECTORY]
# It makes a virtual environment in DIRECTORY (default: "venv" beside this file) and changes nothing else.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
where=${1:-$here/venv}
mark=.envcheck-setup  # in what this script made, and may make anew

say() { printf 'setup: %s\\n' "$*" >&2; }
die() { say "$*"; exit 2; }
minor_of() { "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null || :; }
sha256_of() { sha256sum "$1" | cut -d ' ' -f 1; }

# PYTHON=/path/to/python3 names one.
find_python() {
    if [ -n "${PYTHON:-}" ]; then set -- "$PYTHON"; else set -- @NAMES@; fi
    for name in "$@"; do
        minor=$(minor_of "$name")
        if [ -n "$minor" ] && [ -f "$here/envcheck/requirements-$minor.txt" ]; then
            command -v "$name"
            return
        fi
    done
    die "this bundle's envcheck is for Python @PYTHONS@, and none is here (PYTHON=/path/to/python3 names one)"
}

python=$(find_python)
minor=$(minor_of "$python")
if [ -e "$where" ] && [ ! -f "$where/$mark" ]; then
    die "$where exists, and this script did not make it: name another directory"
fi
[ "$(sha256_of "$here/envcheck/@PIP@")" = @PIP_SHA256@ ] ||
    die "envcheck/@PIP@ is damaged: copy the bundle again"
say "making $where with $python"
# pip runs out of its own wheel: Debian's Python has none to put into an environment.
"$python" -m venv --clear --without-pip "$where" ||
    die "$python could not make a virtual environment in $where"
: > "$where/$mark"
PIP_CONFIG_FILE=/dev/null "$where/bin/python" "$here/envcheck/@PIP@/pip" --isolated \\
    --disable-pip-version-check install --quiet --no-index --no-deps --require-hashes --only-binary=:all: \\
    --find-links "$here/envcheck" --requirement "$here/envcheck/requirements-$minor.txt" >&2 ||
    die "envcheck could not be installed, and pip says why above"
# An image may be left in the tar that this file came out of, which is read as it is.
place=$here
[ -f "$here/bundle.json" ] || place=$here/@TAR@
say "envcheck is installed; now:"
printf '%s install --mode @MODE@ --offline %s\\n' "'$where/bin/envcheck'" "'$place'"
"""


def script(pythons: list[str], pip: str, pip_sha256: str, mode: str, tar: str) -> str:
    """The script; pythons: minor versions that envcheck's wheels are for; pip: its wheel's name; tar: the
    bundle's name where it is one."""
    names = " ".join(["python3", *(f"python{minor}" for minor in pythons)])
    values = {
        "@NAMES@": names,
        "@PYTHONS@": " or ".join(pythons),
        "@PIP@": pip,
        "@PIP_SHA256@": pip_sha256,
        "@MODE@": mode,
        "@TAR@": shlex.quote(tar) if tar else "",
    }
    text = _TEXT
    for mark, value in values.items():
        text = text.replace(mark, value)
    return text
