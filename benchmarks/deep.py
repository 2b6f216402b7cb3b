"""How long the deep level takes beyond the frameworks' imports, and whether repetitions give the same states:

    .venv/bin/python benchmarks/deep.py [--target DIR ...] [--rounds 10] [--only SYSTEM ...]

Without a target, the machine alone. Prints, as Markdown to be kept, date, machine, the command, each figure
beside its limit (20 s without a GPU, 90 s with one), and every system's seconds, the slowest first. Nothing
is asserted: a limit that is missed is said, and so is a state that was not the same each time.
"""

from __future__ import annotations

import argparse
import datetime
import json
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from envcheck.checks.registry import areas
from envcheck.reports.acceleration import AREAS

ENVCHECK = str(Path(sys.executable).parent / "envcheck")
LIMITS = {"cpu": 20.0, "gpu": 90.0}  # seconds beyond the imports

Json = dict[str, Any]


class Look:
    """One run of the doctor's deep level: the report, and the Snapshot under it."""

    def __init__(self, target: str | None, only: list[str]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            saved = Path(folder) / "snapshot.json"
            argv = [ENVCHECK, "doctor", "--level", "deep", "--format", "json", "--exit-zero", "-q"]
            argv += ["--save", str(saved), "--only", *only]
            argv += ["--target", target] if target else []
            started = time.perf_counter()
            done = subprocess.run(argv, capture_output=True, check=False)
            self.seconds = time.perf_counter() - started
            if done.returncode:
                sys.exit(f"{shlex.join(argv)}: {done.stderr.decode().strip()}")
            report: Json = json.loads(done.stdout)
            snapshot: Json = json.loads(saved.read_bytes())
        self.size = len(json.dumps(snapshot))
        self.machine: str = report["machine"]["summary"]
        sections = [(snapshot[one] or {}).get("acceleration") for one in ("machine", "target")]
        facts = [section["facts"] for section in sections if section and section.get("facts")]
        self.runs: list[Json] = [run for one in facts for run in one.get("runs", [])]
        self.wall = max((one.get("seconds", 0.0) for one in facts), default=0.0)
        self.states = {
            f"{one['code']} {one['title']}": str(one["outcome"])
            for one in report["results"]
            if one["area"] in AREAS
        }
        for run in self.runs:
            trials = [f"{one['name']} {one['outcome']}" for one in run.get("trials", [])]
            self.states[name(run)] = "; ".join([run["outcome"], *trials])

    @property
    def imports(self) -> float:
        return float(sum(run.get("import_seconds", 0.0) for run in self.runs))

    @property
    def work(self) -> float:
        return float(sum(run.get("seconds", 0.0) for run in self.runs))

    @property
    def device(self) -> str:
        used = any(run.get("gpus") and run.get("seconds") for run in self.runs)
        return "gpu" if used else "cpu"


def name(run: Json) -> str:
    return " ".join(filter(None, (run["system"], run.get("framework"), *run.get("gpus", []))))


def main() -> None:
    options = arguments()
    print(f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d}, deep level:", end=" ")
    print(f"`{shlex.join(['benchmarks/deep.py', *sys.argv[1:]])}`\n")
    for target in options.target or [None]:
        tell(target, [Look(target, options.only) for _ in range(options.rounds)])


def tell(target: str | None, looks: list[Look]) -> None:
    first = looks[0]
    limit = LIMITS[first.device]
    print(f"{target or 'no target'}; {first.machine}; median of {len(looks)}:\n")
    print("| what | seconds | limit |\n|---|---|---|")
    work = median(look.work for look in looks)
    missed = "" if work <= limit else " MISSED"
    print(f"| the systems' work, added up | {work:.1f} | {limit:g}{missed} |")
    print(f"| the imports before it, added up | {median(k.imports for k in looks):.1f} | |")
    print(f"| all systems, by the clock | {median(look.wall for look in looks):.1f} | |")
    print(f"| the whole doctor, by the clock | {median(look.seconds for look in looks):.1f} | |")
    print(f"| the Snapshot, in KiB | {max(look.size for look in looks) / 1024:.0f} | |\n")
    by_name: dict[str, list[Json]] = defaultdict(list)
    for look in looks:
        for run in look.runs:
            by_name[name(run)].append(run)
    print("| system | work | at most | import | outcome |\n|---|---|---|---|---|")
    for system, runs in sorted(by_name.items(), key=lambda item: -work_of(item[1])):
        most = max(run.get("seconds", 0.0) for run in runs)
        loading = median(run.get("import_seconds", 0.0) for run in runs)
        outcomes = ", ".join(sorted({run["outcome"] for run in runs}))
        print(f"| {system} | {work_of(runs):.1f} | {most:.1f} | {loading:.1f} | {outcomes} |")
    seen: dict[str, set[str]] = defaultdict(set)
    for look in looks:
        for one in {*seen, *look.states}:
            seen[one].add(look.states.get(one, "not there"))
    changed = {one: states for one, states in seen.items() if len(states) > 1}
    print(f"\n{len(looks)} repetitions: {'the same states' if not changed else 'NOT the same:'}")
    for one, states in sorted(changed.items()):
        print(f"- {one}: {' / '.join(sorted(states))}")
    print(flush=True)


def work_of(runs: list[Json]) -> float:
    return median(run.get("seconds", 0.0) for run in runs)


def median(values: Any) -> float:
    return float(statistics.median(values))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--target", action="append", help="an environment; several in turn")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--only", nargs="+", default=[one for one in AREAS if one in areas()])
    return parser.parse_args()


if __name__ == "__main__":
    main()
