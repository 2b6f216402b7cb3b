"""The checks on what a bench's rows are: that they ran, that their modes engaged, and their losses."""

from __future__ import annotations

from ...bench.records import RowResult
from ..reading import Skip, SnapshotView
from ..verdicts import Passed, Unjudged, Verdicts, check, fail, warn
from . import common
from .common import HELD_BACK, NOTHING_RUNS, again, bench, subjects, target, worst

# Checks that say why a mode does nothing.
_EXPLAIN = (
    *(f"ACC-{number:03}" for number in (1, 3, 4, 7, 8, 10)),
    *(f"ENV-{number:03}" for number in (4, 10, 15)),
)
_TRY_EACH = "Check which system does nothing here, and why: each is tried by itself."
IDLE = fail(
    "mode-not-engaged",
    "{row}: {proof}",
    "{row} did not engage what it asks for: {proof}.",
    _TRY_EACH,
)
NOT_PLAIN = warn(
    "fp32-not-plain",
    "{row}: {proof}",
    "{row} is not the FP32 that it is to be: {proof}.",
    _TRY_EACH,
)
_AGAIN = "Run it again, by itself."
_DIED = {
    "crashed": fail("row-crashed", "{row} crashed", "{row} crashed: {reason}.", _AGAIN),
    "timeout": fail("row-hung", "{row} hung", "{row} hung: {reason}.", _AGAIN),
    "error": fail("row-failed", "{row} failed", "{row} failed: {reason}.", _AGAIN),
}
NO_NUMBER = fail(
    "loss-no-number",
    "{row}: its loss is no number",
    "{row} trains to a loss that is no number (NaN or infinite).",
    "Run it again; if it happens again, check the arithmetic and the loss scaler by themselves.",
)


@check(
    "BEN-003",
    title="The mode of each row engages",
    causes=[IDLE, NOT_PLAIN],
    about=(
        "A row in AMP must have its convolutions and products in 16 bits, one in TF32 the bits of TF32, a"
        " compiled one a compiled module; the row in FP32 has none of these. If a compiler hides the"
        " evidence, the result is not known, and no failure."
    ),
    sources=("docs/acceleration.md: how each system is proven engaged",),
    follows=(*NOTHING_RUNS, *_EXPLAIN),
)
def modes_engage(view: SnapshotView) -> Verdicts:
    rows = [one for one in bench(view).rows if one.run.evidence]
    asked = [one for one in rows if one.proof in ("engaged", "not-engaged")]
    if not asked:
        raise Skip("no row of the bench shows whether a mode engaged")
    for one in worst([one for one in asked if one.proof == "not-engaged"]):
        row = one.run.row
        plain = row.precision == "fp32" and not row.compiled
        deep = f"envcheck doctor {target(view)}--level deep -v --only acceleration environment"
        cause = NOT_PLAIN if plain else IDLE
        yield common.found(view, cause, one, commands=[deep], proof=one.proof_words)
    yield Passed(", ".join(dict.fromkeys(_mode(one) for one in asked)))


def _mode(one: RowResult) -> str:
    row = one.run.row
    return f"{row.precision.upper()} compiled" if row.compiled else row.precision.upper()


@check(
    "BEN-004",
    title="Rows run to their end",
    causes=_DIED.values(),
    about=(
        "A row whose process crashed, hung or ended with an error is a failure, with its last message. Not"
        " failures: a mode that the version or GPU does not have, too little memory for a batch, a row that"
        " the user stopped."
    ),
    sources=("envcheck bench: a process a row, with deadlines of its own",),
    follows=(*NOTHING_RUNS, *HELD_BACK, "FRM-006", "FRM-010", "ACC-007", "ACC-008"),
)
def rows_come_to_their_end(view: SnapshotView) -> Verdicts:
    rows = bench(view).rows
    for one in worst([one for one in rows if one.run.outcome in _DIED]):
        cause, reason = _DIED[one.run.outcome], one.run.reason or "without a message"
        command = again(view, one)
        yield common.found(view, cause, one, commands=[command], reason=reason.rstrip("."))
    for one in [one for one in rows if one.run.outcome in ("busy", "not-run")][:8]:
        why = one.run.reason or one.run.outcome
        yield Unjudged("could-not-run", f"{one.run.row.name}: {why}", subjects(view, one))
    ran = sum(one.run.outcome == "ok" for one in rows)
    if ran:
        yield Passed(f"{ran} of {len(rows)} rows")


@check(
    "BEN-005",
    title="Losses stay numbers",
    causes=[NO_NUMBER],
    about="The loss after each repetition of a row. A loss that is no longer a number is a failure.",
    sources=("Micikevicius et al.: Mixed Precision Training, ICLR 2018",),
    follows=(*NOTHING_RUNS, *HELD_BACK, "ACC-003", "ACC-004", "ACC-010", "BEN-003", "BEN-004"),
)
def losses_stay_numbers(view: SnapshotView) -> Verdicts:
    rows = [one for one in bench(view).rows if one.run.losses]
    if not rows:
        raise Skip("no row of the bench kept its loss")
    for one in worst([one for one in rows if None in one.run.losses]):
        deep = f"envcheck doctor {target(view)}--level deep -v --only acceleration tensorcores"
        yield common.found(view, NO_NUMBER, one, commands=[again(view, one), deep])
    yield Passed(f"{len(rows)} rows")
