"""What the checks on a bench share: its rows as they were judged, their subjects, evidence and remedies."""

from __future__ import annotations

from typing import Any

from ...bench.records import BenchResult, RowResult
from ...bench.results import gpus_of, results
from ...facts.recording import once
from ...findings.model import BENCH
from ...tensorcores.circumstances import directory
from ..driver_state import NO_GPUS_THERE
from ..reading import FRAMEWORKS, Skip, SnapshotView, facts_of
from ..verdicts import Cause, Evidence, Finding, Remedy, Subject, about, gpu_subject, word

SOURCE = "the model, run"
NOTHING_RUNS = (*NO_GPUS_THERE, "FRM-001", "FRM-002", "FRM-003", "FRM-004", "FRM-005", "FRM-007")
_FRAMEWORK_OF = {"session": "tensorflow", "keras": "tensorflow", "torch": "torch", "jax": "jax"}
_MOST = 8  # subjects of a finding, and findings of a check
_POWER = (
    "Look at its power limit and power supply under load.",
    ["nvidia-smi -q -d POWER,PERFORMANCE{gpu}", "envcheck doctor {target}-v --only gpu"],
)
_CLOCKS = (
    "Look at which clocks are set, and what it reaches under load.",
    ["nvidia-smi -q -d CLOCK,PERFORMANCE{gpu}", "envcheck doctor {target}-v --only gpu"],
)
# What to do about a slow row, by its first suspect.
_REMEDIES = {
    "neighbour": (
        "Run it again while no other process uses that GPU.",
        ["nvidia-smi --query-compute-apps=pid,name,used_memory --format=csv{gpu}", "{again}"],
    ),
    "heat": (
        "Look at its temperatures under load, then at airflow, fans and dust.",
        ["nvidia-smi -q -d TEMPERATURE,PERFORMANCE{gpu}", "envcheck doctor {target}-v --only gpu"],
    ),
    "power-brake": _POWER,
    "slowdown": _POWER,
    "power-cap": _POWER,
    "clocks-set": _CLOCKS,
    "clocks-low": _CLOCKS,
    "pcie": (
        "Look at its link under load: generation, width, and what shares the way to it.",
        ["envcheck doctor {target}-v --only gpu pci", "envcheck doctor {target}--level deep"],
    ),
    "": (
        "The samples do not show why: check whether the machine, its Tensor Cores, memory and links are"
        " healthy, each by itself.",
        ["envcheck doctor {target}--level deep", "{again}"],
    ),
}


@once
def bench(view: SnapshotView) -> BenchResult:
    """Raises Skip where no bench was run, CouldNotRun where it failed as a whole."""
    target = view.snapshot.target
    if target is None or target.bench is None:
        raise Skip(BENCH)
    facts_of(target.bench, "the bench")
    found = results(view.snapshot)
    if found is None or not found.rows:
        raise Skip("the bench had no rows")
    return found


def timed(view: SnapshotView) -> list[RowResult]:
    """The rows that have a rate; raises Skip where none has."""
    found = [one for one in bench(view).rows if one.rate is not None]
    if not found:
        raise Skip("no row of the bench was timed")
    return found


def subjects(view: SnapshotView, one: RowResult) -> list[Subject]:
    """Its GPUs; the framework where it ran on a CPU."""
    there = gpus_of(view.snapshot)
    found = [gpu_subject(there[address]) for address in one.run.row.gpus if address in there]
    return found[:_MOST] or about("framework", FRAMEWORKS[_FRAMEWORK_OF[one.run.row.style]])


def evidence(view: SnapshotView, one: RowResult) -> list[Evidence]:
    """Its rate, the references, and what the samples show."""
    path = place(view, one)
    found = []
    if one.rate is not None:
        rate = one.rate
        words = f"{rate.median:,.0f} {rate.unit} ({rate.least:,.0f} to {rate.most:,.0f})"
        found.append(Evidence(path, f"{one.run.row.name}: {words}", SOURCE))
    for reference in one.references[:2]:
        words = f"{reference.about}: {reference.rate:,.0f}"
        found.append(Evidence(f"{path}.reference", words, reference.source))
    if one.suspect:
        found.append(Evidence(f"{path}.samples", one.suspect, "NVML, while it ran"))
    found += [Evidence(f"{path}.log", line, "its standard error") for line in one.run.log[-1:]]
    return found


def place(view: SnapshotView, one: RowResult) -> str:
    number = next(n for n, row in enumerate(bench(view).rows) if row.run is one.run)
    return f"target.bench.rows[{number}]"


def again(view: SnapshotView, one: RowResult) -> str:
    """The command that runs these rows again."""
    return f"envcheck bench {target(view)}{one.run.row.what}"


def target(view: SnapshotView) -> str:
    """ "--target PATH ", or nothing where that is not known."""
    where = directory(view)
    return f"--target {word(where)} " if where else ""


def slow_remedy(view: SnapshotView, one: RowResult) -> Remedy:
    """What to look at, by the first suspect."""
    text, commands = _REMEDIES.get(one.suspect_kind, _REMEDIES[""])
    known = {
        "gpu": "".join(f" -i {word(address)}" for address in one.run.row.gpus[:1]),
        "target": target(view),
        "again": again(view, one),
    }
    return Remedy(text, [command.format(**known) for command in commands])


def found(view: SnapshotView, cause: Cause, one: RowResult, **more: Any) -> Finding:
    """The cause, found in a row; more: as Cause.found."""
    suspect = f" First suspect: {one.suspect}." if one.suspect else ""
    more = {"row": one.run.row.name, "suspect": suspect, **more}
    return cause.found(subjects(view, one), evidence(view, one), **more)


def worst(rows: list[RowResult]) -> list[RowResult]:
    """The rows that get a finding of their own, the slowest first."""
    return sorted(rows, key=lambda one: one.share if one.share is not None else 1.0)[:_MOST]
