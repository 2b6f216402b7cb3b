#!/usr/bin/env bash
# The first run on a GPU machine, in one command of at most 9 minutes, without a network, pip or the venv module:
#   tests/gpu/wheels.sh .wheels                   beforehand, where there is a network
#   tests/gpu/first.sh FOLDER [WHEELS [PYTHON]]   there, in the checkout; default: .wheels and python3
# PYTHON is looked into: all levels of the proof run on each framework that it has. Every fact is in FOLDER
# before anything is asserted; a step that fails or takes too long leaves the others alone.
set -uo pipefail
cd "$(dirname "$0")/../.."
folder=${1:?tests/gpu/first.sh FOLDER [WHEELS [PYTHON]]} wheels=${2:-.wheels}
mkdir -p "$folder"
folder=$(realpath "$folder") wheels=$(realpath "$wheels")
# The interpreter itself: a python3 may be a script, or itself one of a virtual environment.
python=$("${3:-python3}" -c 'import sys; print(sys.executable)') || exit 2
own=$(mktemp -d)
trap 'rm -rf "$own"' EXIT
export PYTHONUNBUFFERED=1 ENVCHECK_TARGET=$python ENVCHECK_RUN=$folder
export UV_NO_CONFIG=1 UV_OFFLINE=1 UV_NO_INDEX=1 UV_FIND_LINKS=$wheels UV_PYTHON_DOWNLOADS=never
export UV_CACHE_DIR=$own/cache UV_LINK_MODE=copy
unset PYTHONPATH
envcheck=$own/venv/bin/envcheck
: >"$folder/log.txt"

tell() { printf '%s\n' "$*" | tee -a "$folder/log.txt"; }

# step NAME SECONDS COMMAND…: what it says goes into the log. SIGINT lets pytest, bench and soak write what they
# have; manner=--foreground sends it once, and to the command alone.
manner=
step() {
    name=$1 limit=$2
    shift 2
    started=$SECONDS
    printf '\n== %s\n' "$name" >>"$folder/log.txt"
    # shellcheck disable=SC2086
    timeout $manner --signal=INT --kill-after=10 "$limit" "$@" >>"$folder/log.txt" 2>&1 </dev/null
    code=$?
    case $code in
        0) word=done ;;
        124 | 137) word="stopped after its $limit s" ;;
        *) word="exit code $code" ;;
    esac
    tell "$name: $word ($((SECONDS - started)) s)"
    return $code
}

# What a step's Snapshot says of the proof, in a line; on a machine without a GPU, that there is none.
proof() {
    if [ ! -s "$folder/$1.json" ]; then
        tell "  no Snapshot"
        return
    fi
    "$own/venv/bin/python" - "$folder/$1.json" <<'END' 2>&1 | tee -a "$folder/log.txt"
import sys
from collections import Counter
from pathlib import Path

from envcheck.facts.snapshot import load
from envcheck.tensorcores.judge import judge

snapshot = load(Path(sys.argv[1]).read_bytes())
nvml = snapshot.machine.nvml
gpus = nvml.facts.gpus if nvml and nvml.facts and isinstance(nvml.facts.gpus, list) else []
verdicts = Counter((one.level, one.verdict) for one in judge(snapshot))
print(f"  {len(gpus)} GPU(s) seen by NVML" if gpus else "  no GPU")
for (level, verdict), count in sorted(verdicts.items()):
    print(f"  {level}: {count} {verdict}")
END
}

# What each row of the bench came to, and the soak, a line each.
rows() {
    if [ ! -s "$folder/$1.json" ]; then
        tell "  no Snapshot"
        return
    fi
    "$own/venv/bin/python" - "$folder/$1.json" <<'END' 2>&1 | tee -a "$folder/log.txt"
import sys
from pathlib import Path

from envcheck.facts.snapshot import load

snapshot = load(Path(sys.argv[1]).read_bytes())
bench = snapshot.target.bench if snapshot.target else None
for run in bench.facts.rows if bench and bench.facts else []:
    print(f"  {run.row.name}: {run.outcome}, {len(run.repetitions)} repetitions {run.reason[:120]}")
END
}

# What each system's run came to, a line each.
systems() {
    if [ ! -s "$folder/deep.json" ]; then
        tell "  no Snapshot"
        return
    fi
    "$own/venv/bin/python" - "$folder/deep.json" <<'END' 2>&1 | tee -a "$folder/log.txt"
import sys
from pathlib import Path

from envcheck.facts.snapshot import load

snapshot = load(Path(sys.argv[1]).read_bytes())
for document in (snapshot.machine, snapshot.target):
    probe = document.acceleration if document else None
    for run in probe.facts.runs if probe and probe.facts else []:
        trials = ", ".join(f"{one.name} {one.outcome}" for one in run.trials) or run.reason
        print(f"  {run.system} {run.framework} ({run.device}): {run.outcome}, {run.seconds:.1f} s: {trials}")
END
}

# uv comes out of its own wheel, so neither pip nor the venv module is needed.
unpack_uv() {
    local wheel
    for wheel in "$wheels"/uv-*"$(uname -m)"*.whl; do "$python" -I -m zipfile -e "$wheel" "$own/wheel" || return; done
    mv "$own/wheel"/uv-*.data/scripts/uv "$own/uv" && chmod +x "$own/uv" &&
        "$own/uv" venv --quiet --python "$python" "$own/venv"
}
install() {
    "$own/uv" pip install --quiet --python "$own/venv" "$@" --editable . pytest pytest-xdist hypothesis jsonschema
}
export own python wheels
export -f unpack_uv install

# Before any time is spent: are these wheels for this machine's Python?
if ! step "look at the wheels" 10 bash -c 'unpack_uv && install --dry-run'; then
    version=$("$python" -I -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    tail -n 4 "$folder/log.txt" | sed 's/^/  /'
    tell "the wheels in $wheels do not install with Python $version on $(uname -m). Where there is a network:" \
        "ARCH=$(uname -m) tests/gpu/wheels.sh FOLDER $version (3.10 or newer)"
    exit 2
fi
step "install envcheck" 120 bash -c install || { tell "nothing else can run"; exit 1; }
step "nvidia-smi" 7 bash -c "nvidia-smi -q >'$folder/nvidia-smi.txt' 2>&1" || tell "  no GPU that nvidia-smi sees"
step "the driver alone (L0)" 30 "$envcheck" doctor --kernels L0 --exit-zero \
    --save "$folder/l0.json" --output "$folder/l0.txt"
proof l0
step "all levels, on $python" 75 "$envcheck" doctor --target "$python" --exit-zero \
    --save "$folder/all.json" --output "$folder/all.txt"
proof all
step "the acceleration systems, memory and links, on $python" 85 "$envcheck" doctor --target "$python" \
    --level deep --skip tensorcores -v --exit-zero --save "$folder/deep.json" --output "$folder/deep.txt"
systems
step "the report again, from the Snapshot" 5 "$envcheck" doctor --from "$folder/all.json" --format json \
    --exit-zero --output "$folder/all.report.json"
manner=--foreground
step "a quick bench, on $python" 70 "$envcheck" bench mlp resnet50 --rounds 3 --target "$python" --exit-zero \
    --save "$folder/bench.json" --format json --output "$folder/bench.report.json"
rows bench
# Two minutes, or what the steps before have left of the nine minutes, a minute for the tests kept back.
soak=$((540 - SECONDS - 73))
[ "$soak" -lt 120 ] || soak=120
step "a soak, by the driver alone" $((soak+13)) "$envcheck" soak --for "${soak}s" --save "$folder/soak.json" \
    --output "$folder/soak.txt"
manner=
# From here on something is asserted.
step "the GPU tests" 60 "$own/venv/bin/python" -m pytest tests/gpu -q -p no:cacheprovider -m gpu --junitxml="$folder/tests.xml"
tell "  $(grep -E '[0-9]+ (passed|failed|skipped|error)' "$folder/log.txt" | tail -n 1)"
tell "everything is in $folder; all.json is redacted and can be a fixture"
