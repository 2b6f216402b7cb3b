#!/usr/bin/env bash
# Fetches what tests/gpu/first.sh needs on a GPU machine without a network (about 30 MB), from wherever pip is
# configured to:  tests/gpu/wheels.sh FOLDER [PYTHON-VERSION]      the version is that machine's; default 3.12
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=${1:?tests/gpu/wheels.sh FOLDER [PYTHON-VERSION]} version=${2:-3.12}

python=python3
[ ! -x .venv/bin/python ] || python=.venv/bin/python
# The dependencies as pyproject.toml names them; of the tests' packages those that tests/gpu needs, which has no
# use for an assembler.
read -r -d '' listed <<'END' || true
import re, sys
text = open("pyproject.toml", encoding="utf-8").read()
block = re.search(r"^dependencies = \[\n(.*?)^\]", text, re.S | re.M)[1]
print("\n".join(re.findall(r'^ *"([^"]+)"', block, re.M)))
END
wanted=$("$python" -c "$listed")
mapfile -t requirements <<<"$wanted"
mkdir -p "$folder"
"$python" -m pip download --quiet --disable-pip-version-check --dest "$folder" --only-binary :all: \
    --python-version "$version" --implementation cp \
    --platform manylinux_2_28_x86_64 --platform manylinux_2_17_x86_64 --platform manylinux2014_x86_64 --platform any \
    "${requirements[@]}" pytest pytest-xdist hypothesis jsonschema hatchling editables
du -sh "$folder"
