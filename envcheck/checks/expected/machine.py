"""The profile against single facts: the machine, its driver, its tools, the target."""

from __future__ import annotations

from collections.abc import Iterator

from ...attributes.named import NAMED
from ...attributes.readers import Fact, package
from ...attributes.registry import PACKAGES, SECTIONS, Key
from ...facts.profile import Wanted
from ..driver_state import NO_GPUS
from ..reading import SnapshotView, known, show
from ..verdicts import Finding, Passed, Unjudged, Verdicts, about, check
from .common import DIFFERS, compared, wanted_tables

_MOST = 12  # names that a pass lists
_SHOWN_BY = {
    "machine": "envcheck doctor -v --only host pci",
    "driver": "nvidia-smi",
    "tools": "envcheck doctor -v --only container",
    "target": "envcheck doctor -v --only environment",
}

# (code, sections, title, what it is about, checks whose failure explains it)
_CHECKS: tuple[tuple[str, tuple[str, ...], str, str, tuple[str, ...]], ...] = (
    (
        "EXP-001",
        ("machine",),
        "The machine is what the profile says",
        "With --expect FILE a machine is compared with a profile, which `envcheck collect --as-profile`"
        " writes of a healthy one: operating system, kernel, processors, memory, NUMA nodes, NVSwitches.",
        (),
    ),
    (
        "EXP-002",
        ("driver",),
        "The driver is what the profile says",
        "The driver's version and kind, the newest CUDA that it supports, and the services beside it, as"
        ' a profile wants them: "570" is any 570.x, ">= 570, < 580" bounds it.',
        NO_GPUS,
    ),
    (
        "EXP-008",
        ("tools",),
        "The tools are what the profile says",
        "The versions of the NVIDIA Container Toolkit and of container engines that a profile wants.",
        (),
    ),
    (
        "EXP-009",
        (PACKAGES,),
        "The target's packages are what the profile says",
        "The versions of frameworks and NVIDIA's libraries that a profile wants in the target.",
        (),
    ),
    (
        "EXP-010",
        ("target", "libraries"),
        "The target's Python and libraries are what the profile says",
        "The Python of the target, and the versions of the NVIDIA libraries that it loads, as a profile wants"
        " them. Packages may be right while another library is loaded.",
        ("EXP-009",),
    ),
    (
        "EXP-011",
        ("parameters", "system_packages", "network_settings", "settings"),
        "Parameters and settings are what the profile says",
        "Parameters of the driver's module, the driver's packages of the operating system, and variables"
        " and settings that change what a GPU stack does, as a profile wants them.",
        (*NO_GPUS, "EXP-002"),
    ),
)


def _register(
    code: str, sections: tuple[str, ...], title: str, text: str, follows: tuple[str, ...]
) -> None:
    sources = ("the profile",)

    @check(code, title=title, causes=[DIFFERS], about=text, sources=sources, follows=follows)
    def as_expected(view: SnapshotView) -> Verdicts:
        tables = wanted_tables(view, *sections)
        every = [(name, table) for name in sections for table in tables[name]]
        found = [one for name, table in every for one in _table(view, name, table)]
        yield from found
        if not found:
            names = [key for _, table in every for key in table]
            more = [f"and {len(names) - _MOST} more"] if len(names) > _MOST else []
            yield Passed(f"as the profile says: {', '.join(names[:_MOST] + more)}")


for _check in _CHECKS:
    _register(*_check)


def _table(
    view: SnapshotView, section: str, table: dict[str, Wanted]
) -> Iterator[Finding | Unjudged]:
    keys = {key.name: key for key in SECTIONS[section].keys} if section in SECTIONS else {}
    fact: Fact
    for name, wanted in table.items():
        if section == PACKAGES:
            fact = package(view, name)
            key = Key(name, "version", f"{name} in the target", "", lambda _view: "", "")
            at, subjects = "target.packages.distributions", about("package", name)
            see = "envcheck doctor -v --only packages"
            evidence = view.evidence(at, f"{name}: {show(fact)}")
        elif section in NAMED:
            named, subjects = NAMED[section], []
            fact, see = named.fact(view, name), named.see
            key = Key(name, named.kind, named.words % name, "", lambda _view: "", "")
            evidence = view.evidence(named.at, f"{name}: {show(fact)}")
        else:
            key, see, subjects = keys[name], _SHOWN_BY[section], []
            fact = key.fact(view)
            evidence = view.evidence(f"{SECTIONS[section].document}.{key.path}", known(fact))
        yield from compared(view, key, wanted, fact, evidence, [see], subjects)
