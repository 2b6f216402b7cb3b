"""The list of all checks, each with its stable code and what `envcheck explain` says of it.

An area is a package in this folder, with a line in OWN; its modules register their checks by the decorator
`check`. Another package adds checks by an entry point of the group ``envcheck.checks``
(docs/extending.md): its module is imported, and its checks are run, in processes of their own (`foreign`).
Whatever is wrong with it is reported by PLG-001, and nothing of it is registered.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
import sys
from collections.abc import Callable, Iterable
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec

from .. import plugins, safe_text
from ..data import rows
from ..facts.missing import CouldNotRun
from ..facts.view import SnapshotView
from ..findings.causes import Cause
from ..findings.model import BENCH, DEEPER, NO_KERNELS, SOAK, Verdict
from .declared import DeclaredCheck, causes_of, declared_check

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Judge = Callable[[SnapshotView], Iterable[Verdict]]


class Area(msgspec.Struct, frozen=True, kw_only=True):
    """A group of checks: a package in this folder, or what another package adds.

    position: its place in the report, from the hardware (10) up to Tensor Cores (130).
    of_target: its checks are about the target alone, and are skipped where none was looked at.
    section: where neither document has this one ("profile": where none was given), all its checks are
    skipped, with the reason ``without``, and their modules are not imported.
    """

    name: str
    title: str
    position: int
    of_target: bool = False
    section: str = ""
    without: str = ""


# envcheck's own: a package in this folder each.
OWN = (
    Area(name="host", title="Host", position=10),
    Area(name="pci", title="PCI", position=20),
    Area(name="kernel", title="Kernel", position=30),
    Area(name="driver", title="Driver", position=40),
    Area(name="gpu", title="GPUs", position=50),
    Area(name="container", title="Containers", position=60),
    Area(name="boundary", title="Boundary", position=70, of_target=True),
    Area(name="network", title="Network", position=75),
    Area(name="config", title="pip and uv", position=80, of_target=True),
    Area(name="packages", title="Packages", position=90, of_target=True),
    Area(name="libraries", title="Libraries", position=100, of_target=True),
    Area(name="framework", title="Framework", position=110, of_target=True),
    Area(name="environment", title="Environment", position=120),
    Area(
        name="expected",
        title="Profile",
        position=125,
        section="profile",
        without="no profile was given (--expect FILE)",
    ),
    Area(
        name="tensorcores",
        title="Tensor Cores",
        position=130,
        section="micro_kernels",
        without=NO_KERNELS,
    ),
    Area(
        name="memory",
        title="Memory and links",
        position=135,
        section="acceleration",
        without=DEEPER,
    ),
    Area(
        name="acceleration",
        title="Acceleration",
        position=140,
        section="acceleration",
        without=DEEPER,
    ),
    Area(name="bench", title="Bench", position=142, section="bench", without=BENCH),
    Area(name="soak", title="Soak", position=145, section="soak", without=SOAK),
    Area(name="plugins", title="Plug-ins", position=1000),
)


class ListedCheck(msgspec.Struct, frozen=True):
    """A row of checks.csv (by tests/generate.py): what is known of a check without its module."""

    check: str
    area: str
    title: str
    sections: str  # that it reads


class CheckText(msgspec.Struct, frozen=True, kw_only=True):
    """What a check says of itself.

    causes: all that it can find.
    follows: codes of checks whose failure explains this one's: it is then shown as a consequence.
    about: what it means, for `envcheck explain`; sources: where the knowledge comes from.
    systems: the acceleration systems that it judges ("xla"), by which names --only takes it, too.
    """

    code: str
    area: str
    title: str
    about: str
    sources: tuple[str, ...]
    follows: tuple[str, ...]
    systems: tuple[str, ...] = ()
    causes: tuple[Cause, ...] = ()


class Check(CheckText, frozen=True, kw_only=True):
    """One registered check. plugin: the entry point that it comes from; None of envcheck's own."""

    judge: Judge
    plugin: Any = None


class Described(msgspec.Struct, frozen=True):
    areas: list[Area]
    checks: list[CheckText]


_CODE = re.compile(r"[A-Z][A-Z0-9]{1,15}-\d{3}")

_areas: dict[str, Area] = {}
_checks: dict[str, Check] = {}


def check(
    code: str,
    *,
    title: str = "",
    causes: Iterable[Cause] = (),
    about: str = "",
    sources: Iterable[str] = (),
    follows: Iterable[str] = (),
    systems: Iterable[str] = (),
) -> Callable[[Judge], Judge]:
    """Register the decorated generator as the check ``code``, in the AREA of its module or package.

    Without a title its texts and causes are those of the TOML file beside its module (`declared`), beside the
    given causes and ``follows``. It yields Findings, Passed and Unjudged, or raises CannotJudge; yielding
    nothing is a pass.
    """

    given = DeclaredCheck(
        title=title,
        about=about,
        sources=tuple(sources),
        systems=tuple(systems),
    )
    more, follows = tuple(causes), tuple(follows)

    def register(judge: Judge) -> Judge:
        texts = given if title else declared_check(judge.__module__, code)
        declared = more if title else (*causes_of(judge.__module__, code), *more)
        area = _area_around(judge.__module__)
        if len({cause.key for cause in declared}) < len(declared):
            raise ValueError(f"{code} declares a cause twice")
        if code in _checks:
            raise ValueError(f"{code} is registered twice")
        if _areas.setdefault(area.name, area) != area:
            raise ValueError(f"the area {area.name} is registered twice")
        _checks[code] = Check(
            code=code,
            area=area.name,
            title=texts.title,
            about=texts.about,
            sources=texts.sources,
            follows=(*follows, *texts.follows),
            judge=judge,
            systems=texts.systems,
            causes=declared,
        )
        return judge

    return register


def _area_around(module: str) -> Area:
    """The AREA of a module, or of the nearest package around it."""
    parts = module.split(".")
    names = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    areas = (getattr(sys.modules.get(name), "AREA", None) for name in names)
    found = next((area for area in areas if isinstance(area, Area)), None)
    if found is None:
        raise ValueError(f"neither {module} nor a package around it has an AREA")
    return found


@cache
def listed() -> dict[str, ListedCheck]:
    """envcheck's own checks by their codes."""
    return {row.check: row for row in rows("checks", ListedCheck)}


@cache
def _load(area: str) -> None:
    package = importlib.import_module(f"{__package__}.{area}")
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        importlib.import_module(module.name)


@cache
def _load_plugins() -> bool:
    """Whether there are any; their checks stand beside all of envcheck's own."""
    entries = plugins.use("envcheck.checks", lambda entry: entry)
    if entries:
        for area in OWN:
            _load(area.name)
        _add_all(list(entries.values()))
    return bool(entries)


def registered() -> tuple[dict[str, Area], dict[str, Check]]:
    """What has been registered in this process by the modules that are imported already."""
    return _areas, _checks


def _add_all(entries: list[EntryPoint]) -> None:
    """Register the plug-ins' checks, of each all or none."""
    from ..plugins import apart  # here: most machines have no plug-in

    job = "envcheck.checks.foreign:describe"
    own = frozenset(_checks)
    answers = apart.ask([apart.task(entry, job) for entry in entries])
    for entry, (answer,) in zip(entries, answers, strict=True):
        try:
            if answer.reason:
                raise ValueError(answer.reason)
            _add(entry, msgspec.json.decode(answer.value, type=Described), own)
        except ValueError as error:
            plugins.add_problem(entry.group, entry.name, safe_text.one_line(str(error)))


def _add(entry: EntryPoint, described: Described, own: frozenset[str]) -> None:
    """Raises ValueError where the plug-in may not have these checks."""
    if not described.checks:
        raise ValueError("it registers no check")
    systems = {system for code in own for system in _checks[code].systems}
    for area in described.areas:
        if _areas.get(area.name, area) != area or area.name in systems:
            raise ValueError(f"the area {area.name} is registered twice")
    for one in described.checks:
        _accept(one, own)
    _areas.update((area.name, area) for area in described.areas)
    for one in described.checks:
        fields = {name: getattr(one, name) for name in one.__struct_fields__}
        _checks[one.code] = Check(**fields, judge=_elsewhere, plugin=entry)


def _accept(one: CheckText, own: frozenset[str]) -> None:
    if one.code in _checks:
        raise ValueError(f"{one.code} is registered twice")
    if not _CODE.fullmatch(one.code):
        raise ValueError(f"{one.code!r} is not a code such as FAN-001")
    prefix = one.code.partition("-")[0]
    if any(code.startswith(f"{prefix}-") for code in own):
        raise ValueError(f"{one.code}: codes that begin with {prefix}- are envcheck's own")
    if one.systems:
        raise ValueError(f"{one.code}: acceleration systems are envcheck's own")


def _elsewhere(view: SnapshotView) -> Iterable[Verdict]:
    raise CouldNotRun("it is not judged in this process")


@cache
def areas() -> dict[str, Area]:
    """Every area by its name, in the report's order."""
    added = _areas.values() if _load_plugins() else ()
    every = sorted({*OWN, *added}, key=lambda a: (a.position, a.name))
    return {a.name: a for a in every}


def area_title(name: str) -> str:
    """An area's title; the name itself where no check here is of that area."""
    return areas()[name].title if name in areas() else name


@cache
def all_checks() -> tuple[Check, ...]:
    """Every check, by area in the report's order, then by code."""
    return checks_without(frozenset())


@cache
def checks_without(unneeded: frozenset[str]) -> tuple[Check, ...]:
    """The same; checks of envcheck's own in these areas only as checks.csv lists them, not imported."""
    order = list(areas())
    for area in OWN:
        if area.name not in unneeded:
            _load(area.name)
    blank: Any = {"about": "", "sources": (), "follows": (), "judge": _elsewhere}
    found = [
        Check(code=one.check, area=one.area, title=one.title, **blank)
        for one in listed().values()
        if one.area in unneeded and one.check not in _checks
    ]
    every = [*_checks.values(), *found]
    return tuple(sorted(every, key=lambda c: (order.index(c.area), c.code)))


@cache
def all_systems() -> dict[str, tuple[Check, ...]]:
    names = sorted({system for one in all_checks() for system in one.systems})
    return {name: tuple(one for one in all_checks() if name in one.systems) for name in names}


for _area in OWN:  # where a plug-in that adds a check to one of them imports it from
    vars(importlib.import_module(f"{__package__}.{_area.name}"))["AREA"] = _area
