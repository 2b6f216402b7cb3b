"""What the checks on a profile share: what it wants, and the finding where something else is there."""

from __future__ import annotations

from collections.abc import Iterator

from ...comparison.attributes import gpus_counted
from ...facts.base import Unavailable
from ...facts.evidence import Evidence
from ...facts.missing import CannotJudge, CouldNotRun, Skip
from ...facts.profile import ProductTables, Profile, Value, Wanted
from ...facts.view import SnapshotView, need, show
from ...findings.model import Finding, Remedy, Unjudged
from ...findings.subjects import Subject
from ...profiles.fits import fits
from ...profiles.keys import SECTIONS, Fact, Key
from ...profiles.rates import RATES

_NOT_THERE = ("absent", "not-supported")  # somebody looked, and it is not what is wanted
NONE = "none"  # what a profile calls what is not there
RAISED = "Make the machine what the profile says, or, if it is right as it is, correct the profile."


def wanted_tables(view: SnapshotView, *sections: str) -> dict[str, list[dict[str, Wanted]]]:
    """What a profile wants of these sections, of all machines and of this one's product.

    Raises Skip where no profile was given, or it says nothing of that.
    """
    profile, product = profile_of(view), product_of(view)
    own = {} if product is None else product.tables
    found = {
        name: _together(name, profile.tables.get(name, []), own.get(name, [])) for name in sections
    }
    if not any(found.values()):
        named = ", ".join(f"[{name}]" for name in sections)
        of_it = " of a machine like this one" if profile.products and product is None else ""
        raise Skip(f"the profile says nothing of this{of_it} ({named})")
    return found


def _together(
    section: str, common: list[dict[str, Wanted]], own: list[dict[str, Wanted]]
) -> list[dict[str, Wanted]]:
    """Tables of one section; where a section has one table, the product's keys come before all machines'."""
    every = [table for table in [*common, *own] if table]
    if section == RATES or (section in SECTIONS and SECTIONS[section].many) or not every:
        return every
    return [{key: wanted for table in every for key, wanted in table.items()}]


def product_of(view: SnapshotView) -> ProductTables | None:
    """The profile's product that this machine is one of; one with other counts of the same GPUs, where no
    other product has these; None for neither."""
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
    alike = [one for one in products if _names(_plain(str(one.name.value))) == _names(here)]
    return alike[0] if len(alike) == 1 else None


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
