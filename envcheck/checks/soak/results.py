"""Whether a soak's results stayed what they were, to the bit."""

from __future__ import annotations

from ...facts.soak import Mismatch
from ..declared import declared_causes
from ..driver_state import REPORT
from ..reading import SnapshotView
from ..verdicts import Finding, Passed, Unjudged, Verdicts, check
from .common import Soaked, after, soak_of, soaked

CAUSE = declared_causes(__name__)

_WHERE = {
    "product": "product {0.product} was not what the first one with the same operands was",
    "first": "of product {0.product}, parts that must be equal were not",
    "memory": "its memory did not hold what was written",
    "peers": "product {0.product} was not what the other GPUs of its name computed",
}


@check("SOAK-001")
def results_stayed(view: SnapshotView) -> Verdicts:
    compared = 0
    for one in soaked(view):
        if one.gpu.mismatches or one.gpu.wrong:
            yield _wrong(view, one)
        elif not one.gpu.products:
            yield Unjudged("could-not-run", one.gpu.reason or "nothing was computed", [one.subject])
        else:
            compared += one.gpu.products
            if not one.gpu.memory_mib:
                yield Unjudged("skipped", "no memory was free for a pattern", [one.subject])
    if compared:
        yield Passed(f"{compared:,} products, each compared to the bit")


def _wrong(view: SnapshotView, one: Soaked) -> Finding:
    gpu, index = one.gpu, one.subject.index
    units = {seen.unit for seen in gpu.mismatches}
    same = ""
    if len(units) == 1 and None not in units and len(gpu.mismatches) > 1:
        unit = f"multiprocessor {next(iter(units))}: a defect of that one"
        same = f" All {len(gpu.mismatches)} that were recorded came from {unit}."
    counted = f"{gpu.wrong} of {gpu.products} products and {gpu.passes} passes"
    first = [_mismatch_line(seen) for seen in gpu.mismatches[:3]]
    return CAUSE["wrong-results-under-load"].found(
        [one.subject],
        [
            one.evidence(view, "wrong", counted),
            *(one.evidence(view, f"mismatches[{n}]", words) for n, words in enumerate(first)),
        ],
        commands=[
            f"nvidia-smi -q -d ECC,ROW_REMAPPER,TEMPERATURE -i {one.selected}",
            *([] if index is None else [f"envcheck soak --for 1h --gpu {index}"]),
            REPORT,
        ],
        count=gpu.wrong or len(gpu.mismatches),
        first=first[0] if first else "none was recorded",
        same=same,
    )


def _mismatch_line(seen: Mismatch) -> str:
    words = f"{after(seen.seconds)}, {_WHERE[seen.what].format(seen)}"
    if seen.row is not None:
        words += f": row {seen.row}, column {seen.column} is {seen.found} instead of {seen.wanted}"
    if seen.unit is not None:
        words += f", on multiprocessor {seen.unit}"
    if seen.addresses:
        words += f": {seen.addresses}, bits {seen.bits}"
    return words + (f" ({seen.words:,} words differ)" if seen.words > 1 else "")


@check("SOAK-002")
def gpus_lived(view: SnapshotView) -> Verdicts:
    soak = soak_of(view)
    for gpu in soak.gpus:
        if gpu.outcome in ("busy", "not-run"):
            yield Unjudged("could-not-run", f"GPU {gpu.index}: {gpu.reason or gpu.outcome}")
    alive = 0
    for one in soaked(view):
        if one.gpu.outcome in ("died", "hung") or one.gpu.lost:
            yield _died(view, one)
        elif one.gpu.outcome == "ok":
            alive += 1
        else:
            yield Unjudged("could-not-run", one.gpu.reason or "nothing was computed", [one.subject])
    if alive:
        yield Passed(f"{alive} GPU{'' if alive == 1 else 's'}, {after(soak.seconds)}")


def _died(view: SnapshotView, one: Soaked) -> Finding:
    gpu = one.gpu
    shown = [one.evidence(view, "outcome", gpu.outcome)]
    if gpu.lost:
        shown.append(one.evidence(view, "lost", gpu.lost))
    shown += [one.evidence(view, f"log[{n}]", line) for n, line in enumerate(gpu.log[:2])]
    return one.found(
        CAUSE["died-under-load"],
        *shown,
        how=gpu.outcome if gpu.outcome in ("died", "hung") else "was lost",
        when=after(gpu.ended if gpu.ended is not None else gpu.lost_at),
        why=gpu.reason or f"NVML: {gpu.lost}",
        lost=f" NVML lost it {after(gpu.lost_at)} ({gpu.lost})." if gpu.lost else "",
    )
