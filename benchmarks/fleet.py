"""What a fleet costs: judging a thousand Snapshots, and writing their pages.

    .venv/bin/python benchmarks/fleet.py [--machines 1000] [--scratch DIR]

Makes a simulated fleet (tests/unit/simulated_fleet.py) in a scratch directory, and prints, as Markdown to be
kept, a row for each command: seconds, and the peak of the memory of all its processes together. Nothing is
asserted: a limit that is missed is said.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
for folder in ("tests", "tests/unit", "tests/functional"):
    sys.path.insert(0, str(REPOSITORY / folder))

from envcheck.fleet.folder import FleetFolder  # noqa: E402

simulated_fleet = importlib.import_module("simulated_fleet")
ENVCHECK = str(Path(sys.executable).parent / "envcheck")
# (what, arguments behind the directory, seconds, MB) of a thousand machines on two cores
ROWS = (
    ("judged, grouped, outliers", (), 4.5, 100),
    ("the same, as JSON", ("--format", "json"), 4.5, 100),
    ("with a page of each machine", ("--format", "html"), 10.0, 400),
)


def memory_of(pid: int) -> int:
    """Bytes of a process and all below it, shared pages counted once."""
    total = 0
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                total += int(line.split()[1]) * 1024
        below = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except (OSError, IndexError):
        return total
    return total + sum(memory_of(int(child)) for child in below)


def measure(argv: list[str]) -> tuple[float, int]:
    """Seconds, and bytes at the peak."""
    started = time.perf_counter()
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    peak = 0
    while process.poll() is None:
        peak = max(peak, memory_of(process.pid))
        time.sleep(0.05)
    seconds = time.perf_counter() - started
    if process.returncode not in (0, 1, 4):
        assert process.stderr is not None
        sys.exit(f"{' '.join(argv)}: {process.stderr.read().decode().strip()}")
    return seconds, peak


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--machines", type=int, default=1000)
    parser.add_argument("--scratch", help="where to make the fleet")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as scratch:
        folder = Path(scratch) / "fleet"
        folder.mkdir()
        machines, _truth = simulated_fleet.simulated(0, arguments.machines)
        simulated_fleet.keep(FleetFolder(folder), machines)
        sizes = [len(one.snapshot) for one in machines if one.snapshot]
        now = datetime.datetime.now(datetime.timezone.utc).date()
        print(f"{now}, {os.cpu_count()} CPUs, Python {platform.python_version()}.")
        print(f"{len(sizes)} Snapshots of {min(sizes) >> 10} to {max(sizes) >> 10} KiB.\n")
        print("| what | seconds | at most | MB, all processes | at most |\n|---|---|---|---|---|")
        for what, options, limit, most in ROWS:
            argv = [ENVCHECK, "fleet", "doctor", str(folder), *options]
            if "html" in options:
                argv += ["--output", str(Path(scratch) / "pages")]
            seconds, peak = measure(argv)
            print(f"| {what} | {seconds:.1f} | {limit:g} | {peak / 1e6:.0f} | {most} |")


if __name__ == "__main__":
    main()
