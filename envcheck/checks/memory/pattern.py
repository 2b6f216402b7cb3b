"""Whether a GPU's memory gives back what was written into it."""

from __future__ import annotations

from ..acceleration.common import number
from ..declared import declared_causes
from ..reading import SnapshotView
from ..verdicts import Passed, Verdicts, check
from .common import Measured, each_gpu_run, words, words_of

CAUSE = declared_causes(__name__)

PATTERNS = ("pattern", "inverted pattern")
_UNCORRECTABLE = "ECC_UNCORRECTABLE"


@check("MEM-001")
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
                CAUSE["memory-gives-back-other-data"],
                wrong,
                words=words(sum(number(trial, "wrong") for trial in wrong)),
                mib=max(number(trial, "MiB") for trial in wrong),
                at=f", at device addresses {where}" if where else "",
                bits=f" (bits that differ: {bits})" if bits else "",
            )
        elif broken:
            yield one.found(CAUSE["memory-uncorrectable-error"], broken[:1], error=broken[0].reason)
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
