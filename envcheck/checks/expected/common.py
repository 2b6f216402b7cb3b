"""What the checks on a profile share: its tables for this machine, and the comparison with a fact."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...attributes.bounds import fits
from ...attributes.readers import Fact
from ...attributes.registry import SECTIONS, Key
from ...attributes.values import gpus_counted
from ...facts.profile import ProductTables, Profile, Value, Wanted
from ..reading import CannotJudge, CouldNotRun, Skip, SnapshotView, Unavailable, need
from ..verdicts import Evidence, Finding, Subject, Unjudged, fail

_NOT_THERE = ("absent", "not-supported")  # known not to be there
NONE = "none"  # how a profile says that
CHANGE = "Change the machine to match the profile, or correct the profile."

_SENTENCE = "The profile wants {what} {wanted} ({place}); here it is {found}."
DIFFERS = fail(
    "differs-from-profile",
    "{what} is not what the profile says",
    _SENTENCE,
    CHANGE,
    cases=("what",),
)
DEVICE_DIFFERS = fail(
    "device-differs-from-profile",
    "has not the {what} that the profile wants",
    _SENTENCE,
    CHANGE,
    cases=("what",),
)


def wanted_tables(view: SnapshotView, *sections: str) -> dict[str, list[dict[str, Wanted]]]:
    """What a profile wants of these sections, for all machines and for this one's product.

    Raises Skip if no profile was given or it has none of these sections.
    """
    profile, product = profile_of(view), product_of(view)
    own = {} if product is None else product.tables
    found = {
        name: _merged(name, profile.tables.get(name, []), own.get(name, [])) for name in sections
    }
    if not any(found.values()):
        named = ", ".join(f"[{name}]" for name in sections)
        of_it = " of a machine like this one" if profile.products and product is None else ""
        raise Skip(f"the profile says nothing of this{of_it} ({named})")
    return found


def _merged(
    section: str, common: list[dict[str, Wanted]], own: list[dict[str, Wanted]]
) -> list[dict[str, Wanted]]:
    """The tables of a section; in a section of one table, the product's keys override the common ones."""
    every = [table for table in [*common, *own] if table]
    if (section in SECTIONS and SECTIONS[section].many) or not every:
        return every
    return [{key: wanted for table in every for key, wanted in table.items()}]


def product_of(view: SnapshotView) -> ProductTables | None:
    """The profile's product of this machine, else the only one with other counts of the same GPUs."""
    products = profile_of(view).products
    if not products:
        return None
    try:
        gpus = view.gpus
    except CannotJudge:
        return None
    here = _plain(gpus_counted(gpus))
    for product in products:
        if _plain(str(product.name.value)) == here:
            return product
    same = [one for one in products if _names(_plain(str(one.name.value))) == _names(here)]
    return same[0] if len(same) == 1 else None


def _plain(name: str) -> str:
    return " ".join(name.replace(" x ", " × ").split()).casefold()


def _names(name: str) -> set[str]:
    """Of "7 × nvidia l4, 1 × nvidia t4"."""
    return {part.partition(" × ")[2] for part in name.split(", ")}


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
