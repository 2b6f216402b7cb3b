"""Whether a GPU's memory gives back what was written into it."""

from __future__ import annotations

from ..acceleration.common import NOTHING_RUNS, number
from ..driver_state import REPORT
from ..reading import SnapshotView
from ..verdicts import Passed, Verdicts, check, fail
from .common import Measured, each_gpu_run, words, words_of

PATTERNS = ("pattern", "inverted pattern")
_UNCORRECTABLE = "ECC_UNCORRECTABLE"

WRONG = fail(
    "memory-gives-back-other-data",
    "gives back other data than was written: {words}",
    "{words} of 8 bytes in {mib:,.0f} MiB of the memory of {gpu} came back different from what was"
    " written{at}{bits}: results of any job on it may be wrong.",
    "Take the GPU out of use. Undo raised clocks and voltages, reset it, and run this again; if words still"
    " differ, have the vendor's field diagnostic check it and replace the board.",
    "nvidia-smi -q -d ECC,ROW_REMAPPER,PAGE_RETIREMENT -i {gpu}",
    REPORT,
    "sudo nvidia-smi --gpu-reset -i {gpu}",
)
UNCORRECTABLE = WRONG.variant(
    "memory-uncorrectable-error",
    headline="has an uncorrectable error in its memory",
    sentence="Reading the memory of {gpu} meets an uncorrectable error ({error}): jobs there die.",
)


@check(
    "MEM-001",
    title="Memory pattern",
    causes=(WRONG, UNCORRECTABLE),
    about="A pattern in which no two words are equal, and then its inverse, is written into a quarter of the"
    " GPU's free memory and compared afterwards.",
    sources=["NVIDIA DCGM documentation, Memory plugin; NVIDIA GPU Memory Error Management"],
    follows=NOTHING_RUNS,
    systems=("memory",),
)
def memory_pattern(view: SnapshotView) -> Verdicts:
    whole: list[Measured] = []

    def judge(one: Measured) -> Verdicts:
        trials = [trial for name in PATTERNS if (trial := one.seen.trial(name)) is not None]
        wrong = [trial for trial in trials if number(trial, "wrong") > 0]
        broken = [trial for trial in one.seen.run.trials if _UNCORRECTABLE in trial.reason]
        unfinished = [trial for trial in trials if trial.outcome != "ok"]
        if wrong:
            where = next(filter(None, (words_of(trial, "where") for trial in wrong)), "")
            bits = next(filter(None, (words_of(trial, "bits") for trial in wrong)), "")
            yield one.found(
                WRONG,
                wrong,
                words=words(sum(number(trial, "wrong") for trial in wrong)),
                mib=max(number(trial, "MiB") for trial in wrong),
                at=f", at device addresses {where}" if where else "",
                bits=f" (bits that differ: {bits})" if bits else "",
            )
        elif broken:
            yield one.found(UNCORRECTABLE, broken[:1], error=broken[0].reason)
        elif not any(trial.outcome == "ok" and "wrong" in trial.evidence for trial in trials):
            yield one.why_not("pattern")
        else:
            if unfinished:
                yield one.why_not(unfinished[0].name)
            whole.append(one)

    yield from each_gpu_run(view, "memory", judge)
    if whole:
        sizes = [
            one.value("pattern", "MiB") or one.value("inverted pattern", "MiB") for one in whole
        ]
        of = f"{len(whole)} GPUs, {{}} or more of each" if len(whole) > 1 else "{}"
        text = of.format(f"{min(sizes):,.0f} MiB")
        yield Passed(f"{text} written and read back, nothing wrong")
