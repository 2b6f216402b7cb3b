"""The check on losses: rows that began with the same seed, in FP32 and in faster modes."""

from __future__ import annotations

from collections.abc import Iterator

from ...bench.parity import AGREE, ParityCurve, ParityResult
from ...bench.records import RowResult
from ...facts.evidence import Evidence
from ...facts.missing import Skip
from ...facts.view import SnapshotView
from ...findings.model import Finding, Passed, Remedy, Unjudged, Verdict
from ..registry import check
from .common import HELD_BACK, NOTHING_RUNS, SOURCE, again, bench, place, subjects, target


@check(
    "BEN-005",
    title="Losses agree in all modes",
    problem="does not train as FP32 does",
    about=(
        "The same model from the same seed, in FP32, TF32 and AMP, for some hundred steps on the same "
        f"batches: the smoothed losses must stay within {AGREE:.0%} of FP32's. Two controls must not: a loss "
        "scaler that skips every step, and everything in 16 bits, weights too. Where both controls agree, "
        "the steps were too few to show anything, and nothing is judged. A loss that is no number any more "
        "is a failure."
    ),
    sources=("Micikevicius et al.: Mixed Precision Training, ICLR 2018",),
    follows=(*NOTHING_RUNS, *HELD_BACK, "ACC-003", "ACC-004", "ACC-010", "BEN-003", "BEN-004"),
)
def losses_agree(view: SnapshotView) -> Iterator[Verdict]:
    found = bench(view)
    rows = {one.run.row.name: one for one in found.rows}
    if not found.parity:
        raise Skip("no row of the bench kept its losses")
    for one in found.parity:
        for curve in one.parted:
            yield _parted(view, rows[curve.name], curve)
        yield from _rest(view, one, rows[one.reference])


def _rest(view: SnapshotView, one: ParityResult, reference: RowResult) -> Iterator[Verdict]:
    """What is said where every mode agrees, or could not be judged."""
    modes = [curve for curve in one.curves if not curve.control]
    controls = [curve for curve in one.curves if curve.control]
    for curve in modes:
        if curve.agreement == "not-judged":
            why = f"{curve.name}: {curve.words}"
            yield Unjudged("could-not-run", why, subjects(view, reference))
    agreed = [curve for curve in modes if curve.agreement == "agrees"]
    if not agreed or one.parted:
        return
    if controls and len(one.blind) == len(controls):
        names = " and ".join(curve.label for curve in controls)
        why = f"{names} agree with FP32, too: {one.steps} steps do not show a fault"
        yield Unjudged("could-not-run", why, subjects(view, reference))
        return
    told = ", ".join(f"{curve.label} {curve.words}" for curve in agreed)
    parts = [curve.label for curve in controls if curve.agreement == "parts"]
    yield Passed(f"{told}; {' and '.join(parts)} part" if parts else told)


def _parted(view: SnapshotView, one: RowResult, curve: ParityCurve) -> Finding:
    path = f"target.bench.rows[{place(view, one)}].losses"
    return Finding(
        "fail",
        f"{curve.label} does not train as FP32 does: {curve.words}.",
        subjects(view, one),
        [Evidence(path, f"{curve.name}: {curve.words}", SOURCE)],
        Remedy(
            "Run it anew; where it stays so, see whether the arithmetic and the loss scaler are well, "
            "each by itself.",
            [
                again(view, one),
                f"envcheck doctor {target(view)}--level deep -v --only acceleration tensorcores",
            ],
        ),
        f"{curve.label}: {curve.words}",
    )
