"""The profile against single facts: the machine, its driver, its tools, the target."""

from __future__ import annotations

from ...attributes.named import NAMED
from ...attributes.readers import Fact, package
from ...attributes.registry import PACKAGES, SECTIONS, Key
from ...facts.profile import Wanted
from ..driver_state import NO_GPUS
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


def _register(
    code: str, title: str, text: str, sections: tuple[str, ...], follows: tuple[str, ...] = ()
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


_register(
    "EXP-001",
    "The machine is what the profile says",
    "With --expect FILE a machine is compared with a profile, which `envcheck collect --as-profile` writes"
    " of a healthy one: operating system, kernel, processors, memory, NUMA nodes, NVSwitches.",
    ("machine",),
)
_register(
    "EXP-002",
    "The driver is what the profile says",
    "The driver's version and kind, the newest CUDA that it supports, and the services beside it, as a"
    ' profile wants them: "570" is any 570.x, ">= 570, < 580" bounds it.',
    ("driver",),
    NO_GPUS,
)
_register(
    "EXP-008",
    "The tools are what the profile says",
    "The versions of the NVIDIA Container Toolkit and of container engines that a profile wants.",
    ("tools",),
)
_register(
    "EXP-009",
    "The target's packages are what the profile says",
    "The versions of frameworks and NVIDIA's libraries that a profile wants in the target.",
    (PACKAGES,),
)
_register(
    "EXP-010",
    "The target's Python and libraries are what the profile says",
    "The Python of the target, and the versions of the NVIDIA libraries that it loads, as a profile wants"
    " them. Packages may be right while another library is loaded.",
    ("target", "libraries"),
    ("EXP-009",),
)
_register(
    "EXP-011",
    "Parameters and settings are what the profile says",
    "Parameters of the driver's module, the driver's packages of the operating system, and variables and"
    " settings that change what a GPU stack does, as a profile wants them.",
    ("parameters", "system_packages", "network_settings", "settings"),
    (*NO_GPUS, "EXP-002"),
)


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
