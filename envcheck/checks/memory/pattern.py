"""Whether a GPU's memory gives back what was written into it."""

from __future__ import annotations

from ...facts.acceleration import SystemTrial
from ..acceleration.common import NOTHING_RUNS, number
from ..driver_state import REPORT
from ..reading import SnapshotView
from ..verdicts import Cause, Finding, Passed, Verdicts, check
from .common import Measured, each_gpu_run, words, words_of

PATTERNS = ("pattern", "inverted pattern", "with the host")
_UNCORRECTABLE = "ECC_UNCORRECTABLE"


_REMEDY = (
    "Take the GPU out of use. Undo raised clocks and voltages, reset it, and run this again; if words still"
    " differ, have the vendor's field diagnostic check it and replace the board.",
    (
        "nvidia-smi -q -d ECC,ROW_REMAPPER,PAGE_RETIREMENT -i {gpu}",
        REPORT,
        "sudo nvidia-smi --gpu-reset -i {gpu}",
    ),
)
WRONG = Cause(
    "memory-gives-back-other-data",
    "fail",
    "gives back other data than was written: {words}",
    "{words} of 8 bytes in {mib:,.0f} MiB of the memory of {gpu} came back different from what was written"
    "{at}{bits}: results of any job on it may be wrong.",
    *_REMEDY,
)
UNCORRECTABLE = Cause(
    "memory-uncorrectable-error",
    "fail",
    "has an uncorrectable error in its memory",
    "Reading the memory of {gpu} meets an uncorrectable error ({error}): every job that gets this part of it"
    " dies.",
    *_REMEDY,
)


@check(
    "MEM-001",
    title="Memory pattern",
    causes=(WRONG, UNCORRECTABLE),
    about="A pattern in which no two words are equal, and then its inverse, is written into a quarter of"
    " the GPU's free memory and compared afterwards; a part is written, and a part read, by the host. A"
    " word that comes back different means broken or overclocked memory.",
    sources=["NVIDIA DCGM documentation, Memory and Memtest plugins"],
    follows=NOTHING_RUNS,
    systems=("memory",),
)
def memory_pattern(view: SnapshotView) -> Verdicts:
    whole: list[Measured] = []

    def judge(one: Measured) -> Verdicts:
        trials = [trial for name in PATTERNS if (trial := one.seen.trial(name)) is not None]
        wrong = [trial for trial in trials if number(trial, "wrong") > 0]
        broken = [trial for trial in one.seen.run.trials if _UNCORRECTABLE in trial.reason]
        if wrong or broken:
            yield (
                _wrong(one, wrong)
                if wrong
                else one.found(UNCORRECTABLE, broken[:1], error=broken[0].reason)
            )
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
    where = next((said for trial in trials if (said := words_of(trial, "where"))), "")
    bits = next((said for trial in trials if (said := words_of(trial, "bits"))), "")
    at = f", at device addresses {where}" if where else ""
    differs = f" (bits that differ: {bits})" if bits else ""
    return one.found(
        WRONG,
        trials,
        words=words(sum(number(trial, "wrong") for trial in trials)),
        mib=max(number(trial, "MiB") for trial in trials),
        at=at,
        bits=differs,
    )
