"""What the checks on a profile share: what it wants, and the finding where something else is there."""

from __future__ import annotations

from collections.abc import Iterator

from ...facts.base import Unavailable
from ...facts.evidence import Evidence
from ...facts.missing import CannotJudge, CouldNotRun, Skip
from ...facts.profile import Profile, Value, Wanted
from ...facts.view import SnapshotView, need, show
from ...findings.model import Finding, Remedy, Unjudged
from ...findings.subjects import Subject
from ...profiles.fits import fits
from ...profiles.keys import Fact, Key

_NOT_THERE = ("absent", "not-supported")  # somebody looked, and it is not what is wanted
NONE = "none"  # what a profile calls what is not there
RAISED = "Make the machine what the profile says, or, if it is right as it is, correct the profile."


def wanted_tables(view: SnapshotView, *sections: str) -> dict[str, list[dict[str, Wanted]]]:
    """The tables of these sections; raises Skip where no profile was given, or it says nothing of that."""
    profile = profile_of(view)
    found = {name: [table for table in profile.tables.get(name, []) if table] for name in sections}
    if not any(found.values()):
        raise Skip(
            f"the profile says nothing of this ({', '.join(f'[{name}]' for name in sections)})"
        )
    return found


def profile_of(view: SnapshotView) -> Profile:
    if view.profile is None:
        raise Skip("no profile was given (--expect FILE)")
    return view.profile


def words_of(wanted: Value) -> str:
    if isinstance(wanted, list):
        return " or ".join(words_of(item) for item in wanted)
    if isinstance(wanted, bool):
        return "on" if wanted else "off"
    return str(wanted)


def place(view: SnapshotView, wanted: Wanted) -> str:
    """ "h100.toml, line 7" """
    where = profile_of(view).where.rpartition("/")[2]
    return f"{where}, line {wanted.line}" if wanted.line else where


def told(view: SnapshotView, what: str, wanted: Wanted, found: object) -> str:
    if isinstance(found, Unavailable):
        is_so = found.detail or found.unavailable.replace("-", " ")
    else:
        is_so = words_of(found) if isinstance(found, (bool, int, float, str)) else show(found)
    return (
        f"The profile wants {what} {words_of(wanted.value)} ({place(view, wanted)}); here it is"
        f" {is_so}."
    )


def held(
    view: SnapshotView,
    key: Key,
    wanted: Wanted,
    found: Fact,
    evidence: Evidence,
    subjects: list[Subject],
    remedy: Remedy,
) -> Iterator[Finding | Unjudged]:
    """Nothing where the fact is what is wanted; a Finding where it is not; else why it is not known."""
    if isinstance(found, Unavailable):
        if found.unavailable == "absent" and fits(wanted.value, NONE, "text"):
            return
        if found.unavailable not in _NOT_THERE:
            why = _not_known(found, key)
            yield Unjudged("could-not-run", str(why), subjects, why.needs_root)
            return
    elif fits(wanted.value, found, key.kind):
        return
    yield Finding("fail", told(view, key.words, wanted, found), subjects, [evidence], remedy)


def _not_known(found: Unavailable, key: Key) -> CannotJudge:
    """A fact that somebody wants and that nobody could see was never seen to be right."""
    if found.unavailable == "not-collected" and found.detail:
        return CouldNotRun(f"{key.words}: {found.detail}")
    try:
        need(found, key.words)
    except CannotJudge as why:
        return why
    return CouldNotRun(key.words)
