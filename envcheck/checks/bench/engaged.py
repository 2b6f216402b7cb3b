"""The checks on what a bench's rows are: that the mode that was asked for engaged, and that they ran."""

from __future__ import annotations

from collections.abc import Iterator

from ...bench.records import RowResult
from ...facts.missing import Skip
from ...facts.view import SnapshotView
from ...findings.model import Finding, Passed, Remedy, Unjudged, Verdict
from ..registry import check
from .common import HELD_BACK, NOTHING_RUNS, again, bench, evidence, folded, subjects, target

_DIED = ("crashed", "timeout", "error")
# Checks that say why a mode does nothing.
_EXPLAIN = (
    *(f"ACC-0{number:02}" for number in (1, 2, 3, 4, 6, 7, 8, 10)),
    "ENV-004",
    "ENV-006",
    "ENV-012",
    "ENV-014",
    "ENV-015",
)


@check(
    "BEN-003",
    title="What a row asks for engages",
    problem="what was asked for does nothing",
    about=(
        "A row in AMP must have its convolutions and products in 16 bits, one in TF32 the bits of TF32, one "
        "that is compiled a compiled module, one with TensorRT an engine; the row in FP32 that it is held "
        "against has none of these. A failure where the row's own graph shows that the mode did not engage: "
        "its rate is shown and no speed-up. What a compiler hides is not known, and no failure."
    ),
    sources=("docs/acceleration.md: how each system is proven engaged",),
    follows=(*NOTHING_RUNS, *_EXPLAIN),
)
def modes_engage(view: SnapshotView) -> Iterator[Verdict]:
    rows = [one for one in bench(view).rows if one.run.evidence and one.run.row.scaler != "stuck"]
    asked = [one for one in rows if one.proof in ("engaged", "not-engaged")]
    if not asked:
        raise Skip("no row of the bench shows whether a mode engaged")
    idle = [one for one in asked if one.proof == "not-engaged"]
    for one in folded(idle):
        yield _idle(view, one)
    if not idle:
        yield Passed(", ".join(dict.fromkeys(_mode(one) for one in asked)))


def _mode(one: RowResult) -> str:
    row = one.run.row
    return f"{row.precision.upper()} compiled" if row.compiled else row.precision.upper()


def _idle(view: SnapshotView, one: RowResult) -> Finding:
    row = one.run.row
    plain = row.precision == "fp32" and not row.compiled and not row.tensorrt
    what = "is not the FP32 that it is to be" if plain else "did not engage what it asks for"
    return Finding(
        "warn" if plain else "fail",
        f"{row.name} {what}: {one.proof_words}.",
        subjects(view, one),
        evidence(view, one),
        Remedy(
            "See which system does nothing here, and why: each is tried by itself.",
            [f"envcheck doctor {target(view)}--level deep -v --only acceleration environment"],
        ),
        f"{row.name}: {one.proof_words}",
    )


@check(
    "BEN-004",
    title="Rows run to their end",
    problem="a row of the bench does not come to its end",
    about=(
        "A row whose process crashed, got stuck or ended with an error is a failure, with its last words. "
        "What a version or a GPU does not have, memory that is too small for a batch, and what its user "
        "ended are no failures; a GPU that somebody else uses could not be measured."
    ),
    sources=("envcheck bench: a process a row, with deadlines of its own",),
    follows=(*NOTHING_RUNS, *HELD_BACK, "FRM-006", "FRM-010", "ACC-007", "ACC-008", "ACC-011"),
)
def rows_come_to_their_end(view: SnapshotView) -> Iterator[Verdict]:
    rows = bench(view).rows
    dead = [one for one in rows if one.run.outcome in _DIED]
    for one in folded(dead):
        words = {"crashed": "crashed", "timeout": "got stuck", "error": "failed"}
        what = words[one.run.outcome]
        yield Finding(
            "fail",
            f"{one.run.row.name} {what}: {one.run.reason or 'it said nothing'}.".replace("..", "."),
            subjects(view, one),
            evidence(view, one),
            Remedy("Run it anew, by itself.", [again(view, one)]),
            f"{one.run.row.name} {what}",
        )
    for one in [one for one in rows if one.run.outcome in ("busy", "not-run")][:8]:
        why = one.run.reason or one.run.outcome
        yield Unjudged("could-not-run", f"{one.run.row.name}: {why}", subjects(view, one))
    ran = sum(one.run.outcome == "ok" for one in rows)
    if ran and not dead:
        yield Passed(f"{ran} of {len(rows)} rows")
