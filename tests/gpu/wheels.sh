#!/usr/bin/env bash
# Fetches what tests/gpu/first.sh needs on a GPU machine without a network, from wherever pip and uv are
# configured to:  tests/gpu/wheels.sh FOLDER [PYTHON-VERSION…]
# Versions: those that the GPU machine may have; default: 3.10 to 3.14. ARCH=aarch64 is for Arm machines.
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=${1:?tests/gpu/wheels.sh FOLDER [PYTHON-VERSION…]}
shift
[ $# -gt 0 ] || set -- 3.10 3.11 3.12 3.13 3.14
arch=${ARCH:-x86_64}
[ -x .venv/bin/uv ] || { echo "wheels: no .venv/bin/uv: run sh setup.sh doctor first" >&2; exit 2; }

mkdir -p "$folder"
list=$(mktemp)
trap 'rm -f "$list"' EXIT
# pip would take the markers of a requirement for those of its own Python, so uv resolves and pip only fetches.
for version; do
    sed -n '/^dependencies = \[/,/^\]/s/^ *"\([^"]*\)".*/\1/p' pyproject.toml |
        cat - <(printf '%s\n' pytest pytest-xdist hypothesis jsonschema hatchling editables) |
        .venv/bin/uv pip compile --quiet --no-header --no-annotate --only-binary :all: --output-file "$list" \
            --python-version "$version" --python-platform "$arch-manylinux_2_28" -
    platforms=(--platform any)
    for glibc in $(seq 28 -1 17); do platforms+=(--platform "manylinux_2_${glibc}_$arch"); done
    .venv/bin/python -m pip download --quiet --disable-pip-version-check --dest "$folder" --no-deps \
        --only-binary :all: --implementation cp --python-version "$version" \
        "${platforms[@]}" --platform "manylinux2014_$arch" --requirement "$list"
done
du -sh "$folder"
