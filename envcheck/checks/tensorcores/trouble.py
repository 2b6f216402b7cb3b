"""Checks on what went wrong with the micro-kernels: wrong results, dead processes, slow or busy GPUs."""

from __future__ import annotations

from ...tensorcores.causes import LOOK_FOR_XIDS, STICKY
from ...tensorcores.judge import Case
from ..declared import declared_causes
from ..gpus import together
from ..nvidia_devices import event_evidence, known_kernel
from ..reading import Skip, SnapshotView, known
from ..verdicts import Evidence, Finding, Passed, Verdicts, check
from .common import any_cases, lines_of, products, run_again, where

CAUSE = declared_causes(__name__)

_DIED = {"timeout": "hung", "crashed": "died", "error": "broke its CUDA context"}


@check("TC-401")
def results_are_right(view: SnapshotView) -> Verdicts:
    cases = [case for case in any_cases(view) if case.seen.mode.signatures]
    if not cases:
        raise Skip("no product gave a result")
    wrong = [case for case in cases if case.seen.reading.wrong]
    if not wrong:
        yield Passed("every result is one that a known unit gives")
    for case in wrong:
        yield CAUSE["wrong-products"].found(
            case.judged.subjects,
            [view.evidence(f"{case.seen.path}.signatures", case.judged.bits.text)],
            products=products(case.judged.mode),
            where=where(case),
            what=case.seen.reading.wrong,
        )


@check("TC-402")
def kernels_come_back(view: SnapshotView) -> Verdicts:
    seen: set[str] = set()
    cases = any_cases(view)
    for case in cases:
        how = _death(case)
        if not how or case.seen.path in seen:
            continue
        seen.add(case.seen.path)  # a level that died as a whole is reported once
        reported = ".modes[" in case.seen.path
        what = products(case.judged.mode) if reported else "The process that multiplies"
        yield CAUSE["kernel-died"].found(
            case.judged.subjects,
            [
                view.evidence(case.seen.path, f"{case.seen.mode.outcome}: {case.seen.mode.reason}"),
                *_xids(view, case),
            ],
            advice=LOOK_FOR_XIDS,
            what=what,
            where=where(case),
            how=how,
            reason=case.seen.mode.reason.rstrip(".") or "no reason was given",
        )
    if not any(case.seen.mode.outcome != "not-run" for case in cases):
        raise Skip("nothing was run")
    if not seen:
        yield Passed("nothing hung or died")


def _death(case: Case) -> str:
    outcome = case.seen.mode.outcome
    if outcome == "error" and not STICKY.search(case.seen.mode.reason):
        return ""
    return _DIED.get(outcome, "")


def _xids(view: SnapshotView, case: Case) -> list[Evidence]:
    """What the kernel's log says of this GPU."""
    kernel = known_kernel(view)
    address = known(case.seen.run.pci_address)
    if kernel is None or address is None:
        return []
    return [
        event_evidence(view, event)
        for event in known(kernel.log) or []
        if event.kind in ("xid", "fallen-off-bus") and known(event.pci_address) == address
    ]


@check("TC-403")
def fast_enough(view: SnapshotView) -> Verdicts:
    cases = [case for case in any_cases(view) if case.judged.verdict in ("proven", "indicated")]
    if not any(case.judged.share is not None for case in cases):
        raise Skip("no rate can be compared with a known peak")
    slow = [case for case in cases if case.seen.speed.low]
    if not slow:
        yield Passed("nothing is far below its peak")
    yield from together(_slow(view, case) for case in slow)


def _slow(view: SnapshotView, case: Case) -> Finding:
    judged = case.judged
    ran = "below its peak"
    if judged.share is not None:
        ran = f"at {judged.share:.0%} of the peak that its clock allows"
    why = judged.slow.rstrip(".") or "the driver gives no reason"
    return CAUSE["slow-tensor-cores"].found(
        judged.subjects,
        [lines_of(view, case)[1]],
        commands=[
            "nvidia-smi -q -d PERFORMANCE,CLOCK,POWER,TEMPERATURE",
            *run_again(view, case).commands,
        ],
        products=products(judged.mode),
        where=where(case),
        rate=ran,
        why=why[:1].lower() + why[1:],
    )
