"""The profile against what there is one of: the machine, its driver, its tools, the target."""

from __future__ import annotations

from collections.abc import Iterator

from ...facts.base import known
from ...facts.profile import Wanted
from ...facts.view import SnapshotView, show
from ...findings.model import Finding, Passed, Remedy, Unjudged, Verdict
from ...findings.subjects import about
from ...profiles.keys import PACKAGES, SECTIONS, Key, package
from ..driver_state import NO_GPUS
from ..registry import check
from .common import RAISED, held, wanted_tables

_SEE = {
    "machine": "envcheck doctor -v --only host pci",
    "driver": "nvidia-smi",
    "tools": "envcheck doctor -v --only container",
}


def _section(view: SnapshotView, section: str) -> Iterator[Verdict]:
    keys = {key.name: key for key in SECTIONS[section].keys}
    (table,) = wanted_tables(view, section)
    found: list[Finding | Unjudged] = []
    for name, wanted in table.items():
        key = keys[name]
        found += held(
            view,
            key,
            wanted,
            key.fact(view),
            view.evidence(f"machine.{key.at}", known(key.fact(view))),
            [],
            Remedy(RAISED, [_SEE[section]]),
        )
    yield from found
    if not found:
        yield Passed(f"as the profile says: {', '.join(table)}")


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
    return _section(view, "machine")


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
    return _section(view, "driver")


@check(
    "EXP-008",
    title="The tools are what the profile says",
    problem="a tool is not what the profile says",
    about="The versions of the NVIDIA Container Toolkit and of container engines that a profile wants.",
    sources=("the profile",),
)
def tools_are_as_expected(view: SnapshotView) -> Iterator[Verdict]:
    return _section(view, "tools")


@check(
    "EXP-009",
    title="The target's packages are what the profile says",
    problem="a package is not what the profile says",
    about="The versions of frameworks and NVIDIA's libraries that a profile wants in the target. A package"
    " that is not there is a failure; without a target, this could not run.",
    sources=("the profile",),
)
def packages_are_as_expected(view: SnapshotView) -> Iterator[Verdict]:
    (table,) = wanted_tables(view, PACKAGES)
    found = [one for name, wanted in table.items() for one in _package(view, name, wanted)]
    yield from found
    if not found:
        yield Passed(f"as the profile says: {', '.join(table)}")


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
