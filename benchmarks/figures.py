"""envcheck's figures, measured side by side in one run:

    .venv/bin/python benchmarks/figures.py [--target DIR] [--rounds 7] [--setup] [--tests]

Every line is the median of the rounds. Ratios compare runs that were taken in turn, so that a noisy
machine disturbs both alike; what one process computes is its CPU time. Nothing here is asserted: a limit
that is missed is said.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table

REPOSITORY = Path(__file__).resolve().parents[1]
ENVCHECK = [str(Path(sys.executable).parent / "envcheck")]
DEMOS = REPOSITORY / "envcheck" / "data" / "demos"
FRAMEWORKS = ("tensorflow", "torch", "jax")

MEMORY = """\
import resource, sys
from envcheck.__main__ import main
sys.argv = ["envcheck", "doctor", "--exit-zero", "--output", "/dev/null"]
main()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""

HANG = """\
import subprocess, sys, time
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
time.sleep(600)
"""


def seconds(argv: Sequence[str], **environment: str) -> float:
    """Wall time of one run of a program; its output is dropped."""
    started = time.perf_counter()
    subprocess.run(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=clean_environment() | environment,
        check=False,
    )
    return time.perf_counter() - started


def clean_environment() -> dict[str, str]:
    """This environment without an active environment: the doctor then looks at the machine alone."""
    return {k: v for k, v in os.environ.items() if k not in ("VIRTUAL_ENV", "CONDA_PREFIX")}


def in_turn(rounds: int, *measures: Callable[[], float]) -> list[float]:
    """The median of each, taken in turn; the first round warms caches and does not count."""
    taken: list[list[float]] = [[] for _ in measures]
    for number in range(rounds + 1):
        for values, measure in zip(taken, measures, strict=True):
            value = measure()
            if number:
                values.append(value)
    return [statistics.median(values) for values in taken]


class Figures:
    """The table as it grows."""

    def __init__(self) -> None:
        self.table = Table(title="envcheck's figures", title_justify="left")
        for name in ("figure", "measured", "limit", ""):
            self.table.add_column(name)

    def add(self, name: str, value: float, limit: float, unit: str, extra: str = "") -> None:
        word = "ok" if value <= limit else f"MISSED by {value - limit:.3g} {unit}"
        self.table.add_row(name, f"{value:.3g} {unit}{extra}", f"<= {limit:g} {unit}", word)


def start_up(figures: Figures, rounds: int) -> None:
    bare, help_, version = in_turn(
        rounds * 2,
        lambda: seconds([sys.executable, "-c", "pass"]),
        lambda: seconds([*ENVCHECK, "--help"]),
        lambda: seconds([*ENVCHECK, "--version"]),
    )
    for name, value in (("--help", help_), ("--version", version)):
        times = f" ({value * 1000:.0f} ms; python -c pass: {bare * 1000:.0f} ms)"
        figures.add(f"envcheck {name}, against python -c pass", value / bare, 5, "x", times)


def doctor_of_the_machine(figures: Figures, rounds: int) -> None:
    doctor = [*ENVCHECK, "doctor", "--exit-zero"]
    without = {"PATH": without_engines()}
    plain, engines = in_turn(rounds, lambda: seconds(doctor, **without), lambda: seconds(doctor))
    figures.add("doctor, machine alone, no container engine", plain, 0.6, "s")
    found = [e for e in ("docker", "podman", "apptainer", "enroot") if shutil.which(e)]
    figures.add(f"doctor, machine alone, with {', '.join(found) or 'no engine'}", engines, 1.0, "s")
    result = subprocess.run(
        [sys.executable, "-c", MEMORY],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=clean_environment(),
        check=True,
    )
    figures.add(
        "peak memory of envcheck's own process", float(result.stdout.split()[-1]), 80, "MiB"
    )


def doctor_of_a_target(figures: Figures, rounds: int, target: str) -> None:
    python = str(Path(target) / "bin" / "python") if Path(target).is_dir() else target
    for framework in FRAMEWORKS:
        import_it = [python, "-c", f"import {framework}"]
        if subprocess.run(import_it, stderr=subprocess.DEVNULL, check=False).returncode:
            continue
        alone, doctor = in_turn(
            min(rounds, 5),
            partial(seconds, import_it),
            lambda: seconds([*ENVCHECK, "doctor", "--exit-zero", "--target", target]),
        )
        figures.add(
            f"doctor --target with {framework}, beyond its import",
            doctor - alone,
            1.5,
            "s",
            f" ({doctor:.2f} s; import alone {alone:.2f} s)",
        )


def hung_probe(figures: Figures, rounds: int) -> None:
    from envcheck.collector.runtime import process

    (took,) = in_turn(
        min(rounds, 3), lambda: process.run([sys.executable, "-c", HANG], 2.0).seconds
    )
    figures.add("a probe that hangs for ever, deadline 2 s", took, 3.0, "s")


def diagnosis(figures: Figures, rounds: int) -> None:
    """Of demos: a machine without micro-kernels, and one with them at all levels, its report included."""
    from envcheck.checks.engine import diagnose
    from envcheck.facts.snapshot import load
    from envcheck.reports.model import build

    plain = (DEMOS / "heat.json").read_bytes()
    full = (DEMOS / "healthy.json").read_bytes()

    def judged() -> float:
        started = time.process_time()
        diagnose(load(plain))
        return time.process_time() - started

    def reported() -> float:
        started = time.process_time()
        found = load(full)
        build(found, diagnose(found))
        return time.process_time() - started

    one, proof = in_turn(rounds * 3, judged, reported)
    size = f" (8 GPUs, a target; {len(plain) // 1024} KiB, read and judged)"
    figures.add("diagnosis of a Snapshot", one * 1000, 10, "ms", size)
    proved = f" (8 GPUs, L0, L1, L2; {len(full) // 1024} KiB, and its report)"
    figures.add("diagnosis of a Snapshot with micro-kernels", proof * 1000, 20, "ms", proved)
    figures.add("diagnosis of 1,000 Snapshots", sum(judged() for _ in range(1000)), 5, "s")


def setup(figures: Figures) -> None:
    """`sh setup.sh doctor` in a fresh checkout, whose packages another one has fetched before."""
    with tempfile.TemporaryDirectory(prefix="envcheck-figures-") as folder:
        took = 0.0
        for name in ("fetches", "measured"):
            checkout = Path(folder, name)
            clone = ["git", "clone", "--quiet", "--depth=1", REPOSITORY.as_uri(), str(checkout)]
            subprocess.run(clone, check=True)
            command = ["sh", str(checkout / "setup.sh"), "doctor", "--exit-zero"]
            took = seconds(command, HOME=folder)
            if not (checkout / ".venv" / "bin" / "envcheck").exists():
                sys.exit("sh setup.sh doctor failed in a fresh checkout: run it to see why")
    figures.add("sh setup.sh doctor, a fresh checkout, nothing to download", took, 5, "s")


def suite(figures: Figures) -> None:
    took = seconds(["sh", str(REPOSITORY / "setup.sh"), "test"])
    figures.add("sh setup.sh test", took / 60, 4, "min")


def without_engines() -> str:
    """PATH without the directories that hold a container engine."""
    engines = ("docker", "podman", "apptainer", "singularity", "enroot")
    folders = os.environ.get("PATH", "").split(os.pathsep)
    return os.pathsep.join(f for f in folders if not any(Path(f, e).exists() for e in engines))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--target", help="an environment with a framework")
    parser.add_argument("--setup", action="store_true", help="with setup.sh in a fresh checkout")
    parser.add_argument("--tests", action="store_true", help="with all tests, which take minutes")
    options = parser.parse_args()
    figures = Figures()
    start_up(figures, options.rounds)
    doctor_of_the_machine(figures, options.rounds)
    if options.target:
        doctor_of_a_target(figures, options.rounds, options.target)
    hung_probe(figures, options.rounds)
    diagnosis(figures, options.rounds)
    if options.setup:
        setup(figures)
    if options.tests:
        suite(figures)
    console = Console(width=120)
    console.print(figures.table)
    console.print(
        f"Python {platform.python_version()}, {os.cpu_count()} CPUs, {platform.platform()}"
    )


if __name__ == "__main__":
    main()
