"""What the checks on a profile share: its tables for this machine, and the comparison with a fact."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...attributes.bounds import fits
from ...attributes.readers import Fact
from ...attributes.registry import Key
from ...facts.profile import Profile, Value, Wanted
from ..declared import declared_causes
from ..reading import CannotJudge, CouldNotRun, Skip, SnapshotView, Unavailable, need
from ..verdicts import Evidence, Finding, Subject, Unjudged

CAUSE = declared_causes(__name__)

_NOT_THERE = ("absent", "not-supported")  # known not to be there
NONE = "none"  # how a profile says that

DIFFERS = CAUSE["differs-from-profile"]
DEVICE_DIFFERS = CAUSE["device-differs-from-profile"]


def wanted_tables(view: SnapshotView, *sections: str) -> dict[str, list[dict[str, Wanted]]]:
    """What a profile wants of these sections. Raises Skip if it has none of them, or none was given."""
    tables = profile_of(view).tables
    found = {name: [table for table in tables.get(name, []) if table] for name in sections}
    if not any(found.values()):
        named = ", ".join(f"[{name}]" for name in sections)
        raise Skip(f"the profile says nothing of this ({named})")
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


def place(view: SnapshotView) -> str:
    """ "h100.toml" """
    return profile_of(view).where.rpartition("/")[2]


def differs(
    view: SnapshotView,
    what: str,
    wanted: Wanted,
    found: Fact,
    subjects: Sequence[Subject],
    evidence: Evidence,
    commands: Sequence[str],
) -> Finding:
    if isinstance(found, Unavailable):
        here = found.detail or found.unavailable.replace("-", " ")
    else:
        here = words_of(found)
    cause = DEVICE_DIFFERS if any(one.kind == "gpu" for one in subjects) else DIFFERS
    return cause.found(
        subjects,
        [evidence],
        commands=commands,
        what=what,
        wanted=words_of(wanted.value),
        place=place(view),
        found=here,
    )


def compared(
    view: SnapshotView,
    key: Key,
    wanted: Wanted,
    found: Fact,
    evidence: Evidence,
    commands: Sequence[str],
    subjects: Sequence[Subject] = (),
) -> Iterator[Finding | Unjudged]:
    """Nothing if the fact is what is wanted; a Finding if it is not; else why it is not known."""
    if isinstance(found, Unavailable):
        if found.unavailable == "absent" and fits(wanted.value, NONE, "text"):
            return
        if found.unavailable not in _NOT_THERE:
            why = _not_known(found, key)
            yield Unjudged("could-not-run", str(why), list(subjects), why.needs_root, why.what)
            return
    elif fits(wanted.value, found, key.kind):
        return
    yield differs(view, key.words, wanted, found, subjects, evidence, commands)


def _not_known(found: Unavailable, key: Key) -> CannotJudge:
    """A wanted fact that could not be collected is never taken as right."""
    if found.unavailable == "not-collected" and found.detail:
        return CouldNotRun(f"{key.words}: {found.detail}")
    try:
        need(found, key.words)
    except CannotJudge as why:
        return why
    return CouldNotRun(key.words)
