"""Whether a GPU's memory gives back what was written into it."""

from __future__ import annotations

from collections.abc import Iterator

from ...facts.acceleration import SystemTrial
from ...facts.view import SnapshotView
from ...findings.model import Finding, Passed, Remedy, Verdict
from ..acceleration.common import NOTHING_RUNS, number
from ..driver_state import REPORT
from ..registry import check
from .common import Measured, each_gpu_run, words, words_of

PATTERNS = ("pattern", "inverted pattern", "with the host")
_UNCORRECTABLE = "ECC_UNCORRECTABLE"


@check(
    "MEM-001",
    title="Memory pattern",
    problem="has memory that gives back something else",
    about="A pattern in which no two words are equal, and then its inverse, is written into a quarter of the"
    " GPU's free memory by the GPU itself, and looked at by it afterwards; a part is written, and a part"
    " read, by the host. A word that comes back different is a failure: memory, its controller or the board"
    " is broken, or it is overclocked, and results are wrong without any error. Memory without ECC"
    " (GeForce, or ECC off) has nothing else that would tell.",
    sources=(
        "NVIDIA DCGM documentation, Memory and Memtest plugins",
        "NVIDIA GPU Memory Error Management, Error containment",
    ),
    follows=NOTHING_RUNS,
    systems=("memory",),
)
def memory_pattern(view: SnapshotView) -> Iterator[Verdict]:
    whole: list[Measured] = []

    def judge(one: Measured) -> Iterator[Verdict]:
        trials = [trial for name in PATTERNS if (trial := one.seen.trial(name)) is not None]
        wrong = [trial for trial in trials if number(trial, "wrong") > 0]
        broken = [trial for trial in one.seen.run.trials if _UNCORRECTABLE in trial.reason]
        if wrong or broken:
            yield _wrong(one, wrong) if wrong else _uncorrectable(one, broken[0])
        elif not any(trial.outcome == "ok" and "wrong" in trial.evidence for trial in trials[:2]):
            yield one.why_not("pattern")
        else:
            if any(trial.outcome != "ok" for trial in trials):
                first = next(trial for trial in trials if trial.outcome != "ok")
                yield one.why_not(first.name)
            whole.append(one)

    yield from each_gpu_run(view, "memory", judge)
    if whole:
        least = min(
            one.told("pattern", "MiB") or one.told("inverted pattern", "MiB") for one in whole
        )
        each = f"{len(whole)} GPUs, {least:,.0f} MiB or more of each" if len(whole) > 1 else ""
        yield Passed(f"{each or f'{least:,.0f} MiB'} written and read back, nothing wrong")


def _wrong(one: Measured, trials: list[SystemTrial]) -> Finding:
    told = words(sum(number(trial, "wrong") for trial in trials))
    mib = max(number(trial, "MiB") for trial in trials)
    where = next((said for trial in trials if (said := words_of(trial, "where"))), "")
    bits = next((said for trial in trials if (said := words_of(trial, "bits"))), "")
    at = f", at device addresses {where}" if where else ""
    differs = f" (bits that differ: {bits})" if bits else ""
    return Finding(
        "fail",
        f"{told} of 8 bytes in {mib:,.0f} MiB of the memory of {one.called} came back"
        f" different from what was written{at}{differs}: results of any job on it may be wrong.",
        one.subjects,
        one.seen.evidence(*trials),
        _remedy(one),
        f"gives back other data than was written: {told}",
    )


def _uncorrectable(one: Measured, trial: SystemTrial) -> Finding:
    return Finding(
        "fail",
        f"Reading the memory of {one.called} meets an uncorrectable error ({trial.reason}): every job that"
        " gets this part of it dies.",
        one.subjects,
        one.seen.evidence(trial),
        _remedy(one),
        "has an uncorrectable error in its memory",
    )


def _remedy(one: Measured) -> Remedy:
    return Remedy(
        "Take the GPU out of use. Set clocks and voltages that somebody raised back, reset it, and run this"
        " again; if words still differ, have the vendor's field diagnostic look at it and replace the board.",
        [
            f"nvidia-smi -q -d ECC,ROW_REMAPPER,PAGE_RETIREMENT -i {one.own_address}",
            REPORT,
            f"sudo nvidia-smi --gpu-reset -i {one.own_address}",
        ],
    )
