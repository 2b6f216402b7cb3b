"""What the checks on a bench share: its rows as they were judged, their subjects, evidence and remedies."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from ...bench.records import BenchResult, RowResult
from ...bench.results import results
from ...facts.base import known
from ...facts.evidence import Evidence
from ...facts.gpu import Gpu
from ...facts.missing import CannotJudge, Skip
from ...facts.target import FRAMEWORKS
from ...facts.view import SnapshotView, facts_of
from ...findings.model import BENCH, Remedy
from ...findings.shell import word
from ...findings.subjects import Subject, about, gpu_subject
from ...tensorcores.circumstances import directory
from ..driver_state import NO_GPUS_THERE

SOURCE = "the model, run"
NOTHING_RUNS = (*NO_GPUS_THERE, "FRM-001", "FRM-002", "FRM-003", "FRM-004", "FRM-005", "FRM-007")
# What holds a GPU back whatever runs on it: heat, power, clocks, its link, memory that is taken.
HELD_BACK = (
    "GPU-007",
    "GPU-008",
    "GPU-009",
    "GPU-010",
    "GPU-016",
    "GPU-018",
    "GPU-028",
    "GPU-029",
    "GPU-030",
    "GPU-034",
)
_FRAMEWORK_OF = {"session": "tensorflow", "keras": "tensorflow", "torch": "torch", "jax": "jax"}
_MOST = 8  # subjects and findings that are told one by one


@lru_cache(maxsize=1)  # for all checks on the same Snapshot
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
    there = gpus(view)
    found = [gpu_subject(there[address]) for address in one.run.row.gpus if address in there]
    return found[:_MOST] or about("framework", FRAMEWORKS[_FRAMEWORK_OF[one.run.row.style]])


def gpus(view: SnapshotView) -> dict[str, Gpu]:
    """By PCI address."""
    try:
        return {address: gpu for gpu in view.seen_gpus if (address := known(gpu.pci_address))}
    except CannotJudge:
        return {}


def evidence(view: SnapshotView, one: RowResult) -> list[Evidence]:
    """Its rate, what it is held against, and what the samples show."""
    path = f"target.bench.rows[{place(view, one)}]"
    found = []
    if one.rate is not None:
        rate = one.rate
        told = f"{rate.median:,.0f} {rate.unit} ({rate.least:,.0f} to {rate.most:,.0f})"
        found.append(Evidence(path, f"{one.run.row.name}: {told}", SOURCE))
    for reference in [one for one in one.references if one.fits][:2]:
        told = f"{reference.about}: {reference.rate:,.0f}"
        found.append(Evidence(f"{path}.reference", told, reference.source))
    if one.suspect:
        found.append(Evidence(f"{path}.samples", one.suspect, "NVML, while it ran"))
    found += [Evidence(f"{path}.log", line, "its standard error") for line in one.run.log[-1:]]
    return found


def place(view: SnapshotView, one: RowResult) -> int:
    return next(n for n, row in enumerate(bench(view).rows) if row.run is one.run)


def again(view: SnapshotView, one: RowResult) -> str:
    """The command that runs these rows anew."""
    return f"envcheck bench {target(view)}{one.run.row.what}"


def target(view: SnapshotView) -> str:
    """ "--target PATH ", or nothing where that is not known."""
    where = directory(view)
    return f"--target {word(where)} " if where else ""


def slow_remedy(view: SnapshotView, one: RowResult) -> Remedy:
    """What to look at, by the first suspect."""
    here = "".join(f" -i {word(address)}" for address in one.run.row.gpus[:1])
    match one.suspect_kind:
        case "neighbour":
            return Remedy(
                "Run it anew while nobody else is on that GPU.",
                [
                    f"nvidia-smi --query-compute-apps=pid,name,used_memory --format=csv{here}",
                    again(view, one),
                ],
            )
        case "input":
            return input_remedy(view, one)
        case "heat":
            return Remedy(
                "Look at its temperatures under load, then at airflow, fans and dust.",
                [f"nvidia-smi -q -d TEMPERATURE,PERFORMANCE{here}", f"{_doctor(view)}gpu"],
            )
        case "power-brake" | "slowdown" | "power-cap":
            return Remedy(
                "Look at its power limit and power supply under load.",
                [f"nvidia-smi -q -d POWER,PERFORMANCE{here}", f"{_doctor(view)}gpu"],
            )
        case "clocks-set" | "clocks-low":
            return Remedy(
                "Look at which clocks are set, and what it reaches under load.",
                [f"nvidia-smi -q -d CLOCK,PERFORMANCE{here}", f"{_doctor(view)}gpu"],
            )
        case "pcie":
            return Remedy(
                "Look at its link under load: generation, width, and what shares the way to it.",
                [f"{_doctor(view)}gpu pci", f"envcheck bench {target(view)}links"],
            )
    return Remedy(
        "Nothing in the samples says why: see whether the machine, its Tensor Cores, memory and links "
        "are well, each by itself.",
        [f"envcheck doctor {target(view)}--level deep", again(view, one)],
    )


def input_remedy(view: SnapshotView, one: RowResult) -> Remedy:
    """Of a row whose images come too slowly."""
    return Remedy(
        "Give reading more: more CPUs or workers, local disks, smaller images, or decoding on the GPU "
        "(DALI); the same row with data that is there already tells what can be had.",
        [again(view, one), "nproc"],
    )


def _doctor(view: SnapshotView) -> str:
    return f"envcheck doctor {target(view)}-v --only "


def folded(found: list[RowResult]) -> Iterator[RowResult]:
    """The rows that get a finding of their own: the worst, where there are many."""
    yield from sorted(found, key=lambda one: one.share if one.share is not None else 1.0)[:_MOST]
