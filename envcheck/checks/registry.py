"""The list of all checks, each with its stable code and what `envcheck explain` says of it.

An area is a package in this folder whose ``__init__`` has an ``AREA``. Every module of it is imported
when the list is first asked for, and registers its checks by the decorator `check`.

Another package adds an area of its own, with codes of its own, in a module that an entry point of the
group ``envcheck.checks`` names (see `envcheck.plugins`):

    from envcheck.checks.registry import Area, check
    from envcheck.findings.model import (Finding, Remedy)

    AREA = Area(name="fans", title="Fans", position=200, needs=frozenset(("host", "acme_fans")))

    @check("FAN-001", title="Fans turn", problem="a fan stands still", about="...", sources=["..."])
    def fans_turn(view):
        ...
        yield Finding("fail", "Fan 2 stands still.", remedy=Remedy("Replace the fan."))

It may not use the prefix of one of our codes (``GPU-``), nor the name of one of our areas; a module that
imports the AREA of one of ours instead of making one adds checks to it. Whatever is wrong with it is
reported by PLG-001, and nothing of it is registered.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from types import ModuleType
from typing import TYPE_CHECKING

import msgspec

from ..facts.view import SnapshotView
from ..findings.model import Verdict
from ..plugins import use

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Judge = Callable[[SnapshotView], Iterable[Verdict]]

# The Snapshot's sections that many areas rest on.
MACHINE = frozenset(("host", "pci", "kernel", "nvml", "nvidia_smi"))
TARGET = frozenset(
    ("interpreter", "environment", "packages", "lock", "loader", "tensorflow", "torch", "jax")
)


class Area(msgspec.Struct, frozen=True, kw_only=True):
    """A group of checks: a package in this folder, or what another package adds.

    position: its place in the report, from the hardware (10) up to Tensor Cores (130).
    needs: the Snapshot's sections that its checks rest on: with --only and --skip, nothing else is
    collected or looked at. The host's are always among them, for they say how a remedy is to be written.
    of_target: its checks are about the target alone, and are skipped where none was looked at.
    """

    name: str
    title: str
    position: int
    needs: frozenset[str]
    of_target: bool = False


class Check(msgspec.Struct, frozen=True):
    """One registered check.

    problem: what is wrong where it finds something, in about 50 characters, for a verdict of one line: a
    predicate that follows a device ("has PCIe errors"), or a phrase that stands alone ("no NVIDIA GPU on
    the PCI bus"). A Finding's own headline says more.
    follows: codes of checks whose failure explains this one's: it is then shown as a consequence.
    about: what it means, for `envcheck explain`; sources: where the knowledge comes from.
    needs: the Snapshot's sections that it rests on, where those are fewer than its area's.
    systems: the acceleration systems that it judges ("xla"), by which names --only takes it, too.
    """

    code: str
    area: str
    title: str
    about: str
    sources: tuple[str, ...]
    follows: tuple[str, ...]
    judge: Judge
    problem: str
    needs: frozenset[str] = frozenset()
    systems: tuple[str, ...] = ()

    @property
    def sections(self) -> frozenset[str]:
        """The Snapshot's sections that it rests on."""
        return self.needs or areas()[self.area].needs


_CODE = re.compile(r"[A-Z][A-Z0-9]{1,15}-\d{3}")

_areas: dict[str, Area] = {}
_checks: dict[str, Check] = {}


def check(
    code: str,
    *,
    title: str,
    problem: str,
    about: str,
    sources: Iterable[str],
    follows: Iterable[str] = (),
    needs: frozenset[str] = frozenset(),
    systems: Iterable[str] = (),
) -> Callable[[Judge], Judge]:
    """Register the decorated generator as the check ``code``, in the AREA of its module or package.

    ``needs``, ``systems``: as of Check.
    It yields Findings, Passed and Unjudged, or raises CannotJudge; yielding nothing is a pass.
    """

    def register(judge: Judge) -> Judge:
        area = _area_around(judge.__module__)
        if code in _checks:
            raise ValueError(f"{code} is registered twice")
        if _areas.setdefault(area.name, area) != area:
            raise ValueError(f"the area {area.name} is registered twice")
        _checks[code] = Check(
            code,
            area.name,
            title,
            about,
            tuple(sources),
            tuple(follows),
            judge,
            problem,
            needs,
            tuple(systems),
        )
        return judge

    return register


def _area_around(module: str) -> Area:
    """The AREA of a module, or of the nearest package around it."""
    name = module
    while name:
        area = getattr(sys.modules.get(name), "AREA", None)
        if isinstance(area, Area):
            return area
        name = name.rpartition(".")[0]
    raise ValueError(f"neither {module} nor a package around it has an AREA")


@cache
def _load() -> None:
    for package in _modules(__package__ or ""):
        if package.ispkg:
            for module in _modules(package.name):
                importlib.import_module(module.name)
    own = frozenset(map(_prefix, _checks))
    use("envcheck.checks", partial(_add, own=own))


def _add(entry: EntryPoint, own: frozenset[str]) -> None:
    """Register a plug-in's checks, all or none. ``own``: the prefixes of envcheck's own codes."""
    areas_before, checks_before = dict(_areas), dict(_checks)
    try:
        loaded = entry.load()
        if not isinstance(loaded, ModuleType):
            loaded()
        _accept([code for code in _checks if code not in checks_before], own)
    except BaseException:
        for registered, before in ((_areas, areas_before), (_checks, checks_before)):
            registered.clear()
            registered.update(before)  # type: ignore[arg-type]  # each of its own kind
        raise


def _accept(codes: list[str], own: frozenset[str]) -> None:
    """Raises ValueError where a plug-in may not have these codes."""
    if not codes:
        raise ValueError("it registers no check")
    for code in codes:
        if not _CODE.fullmatch(code):
            raise ValueError(f"{code!r} is not a code such as FAN-001")
        if _prefix(code) in own:
            raise ValueError(f"{code}: codes that begin with {_prefix(code)}- are envcheck's own")


def _prefix(code: str) -> str:
    return code.partition("-")[0]


def _modules(package: str) -> Iterator[pkgutil.ModuleInfo]:
    found = importlib.import_module(package)
    return pkgutil.iter_modules(found.__path__, f"{package}.")


@cache
def areas() -> dict[str, Area]:
    """Every area by its name, in the report's order."""
    _load()
    return {a.name: a for a in sorted(_areas.values(), key=lambda a: (a.position, a.name))}


def area_title(name: str) -> str:
    """An area's title; the name itself where no check here is of that area."""
    return areas()[name].title if name in areas() else name


@cache
def all_checks() -> tuple[Check, ...]:
    """Every check, by area in the report's order, then by code."""
    order = list(areas())
    return tuple(sorted(_checks.values(), key=lambda c: (order.index(c.area), c.code)))


@cache
def all_systems() -> dict[str, tuple[Check, ...]]:
    """Every acceleration system that a check judges, with its checks."""
    found: dict[str, list[Check]] = {}
    for one in all_checks():
        for system in one.systems:
            found.setdefault(system, []).append(one)
    return {name: tuple(checks) for name, checks in sorted(found.items())}
