"""The checks on what a bench's rows are: that they ran, that their modes engaged, and their losses."""

from __future__ import annotations

from ...bench.records import RowResult
from ..declared import declared_causes
from ..reading import Skip, SnapshotView
from ..verdicts import Passed, Unjudged, Verdicts, check, fail
from . import common
from .common import again, bench, subjects, target, worst

CAUSE = declared_causes(__name__)

_AGAIN = "Run it again, by itself."
_DIED = {
    "crashed": fail("row-crashed", "{row} crashed", "{row} crashed: {reason}.", _AGAIN),
    "timeout": fail("row-hung", "{row} hung", "{row} hung: {reason}.", _AGAIN),
    "error": fail("row-failed", "{row} failed", "{row} failed: {reason}.", _AGAIN),
}


@check("BEN-003")
def modes_engage(view: SnapshotView) -> Verdicts:
    rows = [one for one in bench(view).rows if one.run.evidence]
    asked = [one for one in rows if one.proof in ("engaged", "not-engaged")]
    if not asked:
        raise Skip("no row of the bench shows whether a mode engaged")
    for one in worst([one for one in asked if one.proof == "not-engaged"]):
        row = one.run.row
        plain = row.precision == "fp32" and not row.compiled
        deep = f"envcheck doctor {target(view)}--level deep -v --only acceleration environment"
        cause = CAUSE["fp32-not-plain"] if plain else CAUSE["mode-not-engaged"]
        yield common.found(view, cause, one, commands=[deep], proof=one.proof_words)
    yield Passed(", ".join(dict.fromkeys(_mode(one) for one in asked)))


def _mode(one: RowResult) -> str:
    row = one.run.row
    return f"{row.precision.upper()} compiled" if row.compiled else row.precision.upper()


@check("BEN-004", causes=_DIED.values())
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


@check("BEN-005")
def losses_stay_numbers(view: SnapshotView) -> Verdicts:
    rows = [one for one in bench(view).rows if one.run.losses]
    if not rows:
        raise Skip("no row of the bench kept its loss")
    for one in worst([one for one in rows if None in one.run.losses]):
        deep = f"envcheck doctor {target(view)}--level deep -v --only acceleration tensorcores"
        yield common.found(view, CAUSE["loss-no-number"], one, commands=[again(view, one), deep])
    yield Passed(f"{len(rows)} rows")
