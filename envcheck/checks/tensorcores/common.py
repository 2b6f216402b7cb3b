"""What the checks on Tensor Cores share: the judged runs of a level, and how they are called."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...facts.micro_kernels import Level, MicroKernels, Mode
from ...findings.model import NO_KERNELS
from ...tensorcores import judge
from ...tensorcores.circumstances import command, directory
from ...tensorcores.judge import Case
from ...tensorcores.rates import figure, name, unit
from ..driver_state import NO_GPUS_THERE
from ..reading import FRAMEWORKS, Probe, Skip, SnapshotView, facts_of
from ..verdicts import Evidence, Passed, Remedy, Unjudged

WHAT = "the micro-kernels"
# Failures that explain why nothing could be run on a GPU at all.
NOTHING_RUNS = (*NO_GPUS_THERE, "DRV-004", "DRV-010")
LEVELS: dict[Level, str] = {
    "L0": "through the driver alone",
    "L1": "in cuBLAS",
    "L2": "in the framework",
}
SOURCES = (
    "github.com/north-numerical-computing/MATLAB-tensor-core; github.com/microsoft/MMA-Sim",
    "envcheck/data: tensor_units.csv, sm_throughput.csv, kernel_names.csv, verdicts.csv",
)


def all_cases(view: SnapshotView) -> tuple[Case, ...]:
    """Every judged run of the Snapshot; none where there are no micro-kernels in it."""
    return judge.cases(view.snapshot)


def any_cases(view: SnapshotView) -> tuple[Case, ...]:
    """As `all_cases`; raises CannotJudge where there is nothing, with the reason."""
    found = all_cases(view)
    if not found:
        probe = view.machine.micro_kernels
        _facts(probe)
        why = probe.reason if probe is not None else ""
        _asked_for_gpus(view)
        raise Skip("no GPU to run on" + (f": {why}" if why else ""))
    return found


def _asked_for_gpus(view: SnapshotView) -> None:
    """Raises CouldNotRun where libcuda was not asked in the end: there may be a GPU, after all."""
    if view.machine.cuda is not None:
        facts_of(view.machine.cuda, "the GPUs that libcuda lists")


def level_cases(view: SnapshotView, level: Level) -> list[Case]:
    """The judged runs of one level; raises CannotJudge where there is none, with the reason."""
    if view.snapshot.target is None and level != "L0":
        any_cases(view)  # where not even L0 ran, that says more than the missing target
    document = view.machine if level == "L0" else view.target
    facts = _facts(document.micro_kernels)
    if level not in facts.levels:
        raise Skip(f"{level} was left out (--kernels)")
    found = [case for case in all_cases(view) if case.judged.level == level]
    if not found:
        probe = document.micro_kernels
        why = probe.reason if probe is not None else ""
        _asked_for_gpus(view)
        nothing = "no framework ran L2" if level == "L2" and not why else "no GPU to run on"
        raise Skip(nothing + (f": {why}" if why else ""))
    return found


def _facts(probe: Probe[MicroKernels] | None) -> MicroKernels:
    if probe is None:
        raise Skip(NO_KERNELS)
    return facts_of(probe, WHAT)


def where(case: Case) -> str:
    """Where products ran: "through the driver alone", "in libcublas 12.9.1", "in PyTorch"."""
    judged = case.judged
    if judged.level == "L0":
        return LEVELS["L0"]
    return f"in {FRAMEWORKS.get(judged.framework) or judged.library}"


def products(mode: Mode) -> str:
    return f"{name(mode)} products"


def lines_of(view: SnapshotView, case: Case) -> list[Evidence]:
    """The three lines of evidence of a run."""
    judged, path = case.judged, case.seen.path
    return [
        view.evidence(f"{path}.{field}", f"{line.says}: {line.text}")
        for field, line in (
            ("signatures", judged.bits),
            ("rate", judged.rate),
            ("hardware", judged.hardware),
        )
    ]


def inline(cause: str) -> str:
    """A cause's sentence, to stand behind a colon."""
    first, _, rest = cause.partition(" ")
    return f"{first.lower()} {rest}" if first in ("A", "The", "At", "Another", "Neither") else cause


def run_again(view: SnapshotView, case: Case) -> Remedy:
    """The remedy where no other is known: the same again."""
    return Remedy(
        "Run it again, and look at the raw facts.", [command(case.seen.run, directory(view))]
    )


def not_run(case: Case) -> Unjudged:
    """Why a run gave nothing to judge: skipped where nobody asked for it or it is not there."""
    broken = case.seen.mode.outcome in ("error", "out-of-memory", "timeout", "crashed")
    place = "" if case.judged.level == "L0" else f" ({where(case)})"
    return Unjudged(
        "could-not-run" if broken else "skipped",
        f"{name(case.judged.mode)}{place}: {case.judged.reason}",
        case.judged.subjects,
    )


def passed(cases: Iterable[Case], words: str) -> Iterator[Passed]:
    """One Passed for what is well on all GPUs at one place: "in PyTorch: proven on 8 GPUs, 640 to ..."."""
    places: dict[str, list[Case]] = {}
    for case in cases:
        places.setdefault("" if case.judged.level == "L0" else where(case), []).append(case)
    for place, some in places.items():
        count = len({case.judged.gpu for case in some})
        rates = sorted(case.judged.tflops for case in some if case.judged.tflops is not None)
        speed = f", {_range(rates)} {unit(some[0].judged.mode)}" if rates else ""
        sliced = any(gpu.kind == "mig-instance" for case in some if (gpu := case.judged.gpu))
        gpus = f"{count} {'MIG instance' if sliced else 'GPU'}{'' if count == 1 else 's'}"
        yield Passed((f"{place}: " if place else "") + f"{words} on {gpus}{speed}")


def _range(rates: list[float]) -> str:
    low, high = figure(rates[0]), figure(rates[-1])
    return low if low == high else f"{low} to {high}"
