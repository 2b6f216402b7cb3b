"""The profile against what there is one of: the machine, its driver, its tools, the target."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...facts.base import known
from ...facts.profile import Wanted
from ...facts.view import SnapshotView, show
from ...findings.model import Finding, Passed, Remedy, Unjudged, Verdict
from ...findings.subjects import about
from ...profiles.keys import PACKAGES, SECTIONS, Key, package
from ...profiles.named import NAMED, Named
from ..driver_state import NO_GPUS
from ..registry import check
from .common import RAISED, held, wanted_tables

_MOST = 12  # names that are told of what is well
_SEE = {
    "machine": "envcheck doctor -v --only host pci",
    "driver": "nvidia-smi",
    "tools": "envcheck doctor -v --only container",
    "target": "envcheck doctor -v --only environment",
}


def _held(view: SnapshotView, *sections: str) -> Iterator[Verdict]:
    """What is not as the profile says, in these sections of it."""
    tables = {name: table for name in sections for table in wanted_tables(view, *sections)[name]}
    found = [one for name, table in tables.items() for one in _table(view, name, table)]
    yield from found
    if not found:
        yield Passed(f"as the profile says: {', '.join(_few(tables.values()))}")


def _few(tables: Iterable[dict[str, Wanted]]) -> list[str]:
    names = [name for table in tables for name in table]
    return names if len(names) <= _MOST else [*names[:_MOST], f"and {len(names) - _MOST} more"]


def _table(
    view: SnapshotView, section: str, table: dict[str, Wanted]
) -> Iterator[Finding | Unjudged]:
    if section in NAMED:
        for name, wanted in table.items():
            yield from _by_name(view, NAMED[section], name, wanted)
        return
    keys = {key.name: key for key in SECTIONS[section].keys}
    document = SECTIONS[section].document
    for name, wanted in table.items():
        key = keys[name]
        fact = key.fact(view)
        yield from held(
            view,
            key,
            wanted,
            fact,
            view.evidence(f"{document}.{key.at}", known(fact)),
            [],
            Remedy(RAISED, [_SEE[section]]),
        )


def _by_name(
    view: SnapshotView, named: Named, name: str, wanted: Wanted
) -> Iterator[Finding | Unjudged]:
    fact = named.fact(view, name)
    yield from held(
        view,
        Key(name, named.kind, named.words % name, "", lambda _view: fact, ""),
        wanted,
        fact,
        view.evidence(named.at, f"{name}: {show(fact)}"),
        [],
        Remedy(RAISED, [named.see]),
    )


@check(
    "EXP-001",
    title="The machine is what the profile says",
    problem="the machine is not what its profile says",
    about="With --expect FILE a machine is held against a profile: operating system, kernel, processors,"
    " memory, NUMA nodes, NVSwitches. What is not as the profile says is a failure; what it asks for and"
    " nobody could look at, could not run. `envcheck collect --as-profile` writes a profile of a machine"
    " that is well, with a comment at each key.",
    sources=("the profile",),
)
def machine_is_as_expected(view: SnapshotView) -> Iterator[Verdict]:
    return _held(view, "machine")


@check(
    "EXP-002",
    title="The driver is what the profile says",
    problem="the driver is not what its profile says",
    about="The driver's version and kind, the newest CUDA that it supports, and the services beside it, as"
    ' a profile wants them: "570" is any 570.x, ">= 570, < 580" bounds it.',
    sources=("the profile",),
    follows=NO_GPUS,
)
def driver_is_as_expected(view: SnapshotView) -> Iterator[Verdict]:
    return _held(view, "driver")


@check(
    "EXP-008",
    title="The tools are what the profile says",
    problem="a tool is not what the profile says",
    about="The versions of the NVIDIA Container Toolkit and of container engines that a profile wants.",
    sources=("the profile",),
)
def tools_are_as_expected(view: SnapshotView) -> Iterator[Verdict]:
    return _held(view, "tools")


@check(
    "EXP-009",
    title="The target's packages are what the profile says",
    problem="a package is not what the profile says",
    about="The versions of frameworks and NVIDIA's libraries that a profile wants in the target. A package"
    " that is not there is a failure; without a target, this could not run.",
    sources=("the profile",),
)
def packages_are_as_expected(view: SnapshotView) -> Iterator[Verdict]:
    (table,) = wanted_tables(view, PACKAGES)[PACKAGES]
    found = [one for name, wanted in table.items() for one in _package(view, name, wanted)]
    yield from found
    if not found:
        yield Passed(f"as the profile says: {', '.join(_few([table]))}")


@check(
    "EXP-010",
    title="The target's Python and libraries are what the profile says",
    problem="a library is not what the profile says",
    about="The Python of the target, and the versions of the NVIDIA libraries that it really loads (cuDNN,"
    " NCCL, TensorRT, cuBLAS), as a profile wants them. Packages may be right where another library comes"
    " first.",
    sources=("the profile",),
    follows=("EXP-009",),
)
def libraries_are_as_expected(view: SnapshotView) -> Iterator[Verdict]:
    return _held(view, "target", "libraries")


@check(
    "EXP-011",
    title="Parameters and settings are what the profile says",
    problem="a setting is not what the profile says",
    about="Parameters of the driver's module, the driver's packages of the operating system, and variables"
    " and settings that change what a GPU stack does, as a profile wants them.",
    sources=("the profile",),
    follows=(*NO_GPUS, "EXP-002"),
)
def settings_are_as_expected(view: SnapshotView) -> Iterator[Verdict]:
    return _held(view, "parameters", "system_packages", "network_settings", "settings")


def _package(view: SnapshotView, name: str, wanted: Wanted) -> Iterator[Finding | Unjudged]:
    version = package(view, name)
    key = Key(name, "version", f"{name} in the target", "", lambda _view: version, "")
    yield from held(
        view,
        key,
        wanted,
        version,
        view.evidence("target.packages.distributions", f"{name}: {show(version)}"),
        about("package", name),
        Remedy(RAISED, ["envcheck doctor -v --only packages"]),
    )
