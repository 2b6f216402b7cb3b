"""The profile against single facts: the machine, its driver, its tools, the target."""

from __future__ import annotations

import msgspec

from ...attributes.named import NAMED
from ...attributes.readers import Fact, package
from ...attributes.registry import PACKAGES, SECTIONS, Key
from ...data import rows
from ...facts.profile import Wanted
from ..reading import SnapshotView, known, show
from ..verdicts import Passed, Verdicts, about, check
from .common import DIFFERS, compared, wanted_tables

_MOST = 12  # names that a pass lists
_SHOWN_BY = {
    "machine": "envcheck doctor -v --only host pci",
    "driver": "nvidia-smi",
    "tools": "envcheck doctor -v --only container",
    "target": "envcheck doctor -v --only environment",
}


class ProfileCheck(msgspec.Struct, frozen=True):
    """A check of a profile's sections: profile_checks.csv."""

    check: str
    title: str
    about: str
    sections: tuple[str, ...]
    follows: tuple[str, ...]
    source: str


def _register(row: ProfileCheck) -> None:
    text, sources, follows = row.about, (row.source,), row.follows

    @check(
        row.check, title=row.title, causes=[DIFFERS], about=text, sources=sources, follows=follows
    )
    def as_expected(view: SnapshotView) -> Verdicts:
        tables = wanted_tables(view, *row.sections)
        every = [(name, table) for name in row.sections for table in tables[name]]
        found = [one for name, table in every for one in _table(view, name, table)]
        yield from found
        if not found:
            names = [key for _, table in every for key in table]
            more = [f"and {len(names) - _MOST} more"] if len(names) > _MOST else []
            yield Passed(f"as the profile says: {', '.join(names[:_MOST] + more)}")


for _row in rows("profile_checks", ProfileCheck):
    _register(_row)


def _table(view: SnapshotView, section: str, table: dict[str, Wanted]) -> Verdicts:
    keys = {key.name: key for key in SECTIONS[section].keys} if section in SECTIONS else {}
    fact: Fact
    for name, wanted in table.items():
        subjects = []
        if section in NAMED:
            named = NAMED[section]
            fact, see, at = named.fact(view, name), named.see, named.at
            key = Key(name, named.kind, named.words % name, "", lambda _view: "", "")
            if section == PACKAGES:
                fact, subjects = package(view, name), about("package", name)
            evidence = view.evidence(at, f"{name}: {show(fact)}")
        else:
            key, see = keys[name], _SHOWN_BY[section]
            fact = key.fact(view)
            at = f"{SECTIONS[section].document}.{key.path}"
            evidence = view.evidence(at, known(fact))
        yield from compared(view, key, wanted, fact, evidence, [see], subjects)
