"""The check on versions that are known to hang, or to corrupt what GPUs send each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from packaging.version import Version

from ...data.known_bad import KnownBad, known_bad
from ...data.versions import parse_version
from ..declared import declared_causes
from ..driver_state import driver_version, on_wsl
from ..reading import Gpu, Skip, SnapshotView, fact, known
from ..system_commands import on_system
from ..target import PLACE, framework_facts, installed_if_known, of_component, pip_install
from ..verdicts import Evidence, Finding, Passed, Remedy, Verdicts, about, about_gpu, check
from .common import gpus

CAUSE = declared_causes(__name__)

_NAMES = {"driver": "Driver", "nccl": "NCCL"}


class VersionHere(NamedTuple):
    """A component that is here. package: the distribution that holds it."""

    version: Version
    evidence: Evidence
    package: str = ""


@check("NET-008")
def versions(view: SnapshotView) -> Verdicts:
    if not gpus(view):
        raise Skip("there is no GPU")
    components = {"driver": list(_driver(view)), "nccl": list(nccl_here(view))}
    if not any(components.values()):
        raise Skip("neither the driver's version nor NCCL's is known")
    direct = any(known(one.p2p_read) == "ok" for one in fact(view.machine.nvml, "pairs") or [])
    holds = {"": True, "p2p": direct, "nccl": direct and bool(components["nccl"])}
    for row in known_bad():
        one = next((c for c in components[row.what] if row.covers(c.version)), None)
        affected = [
            gpu
            for gpu in gpus(view)
            if row.is_about(known(gpu.name) or "")
            and row.capability in ("", (known(gpu.compute_capability) or "").split(".")[0])
        ]
        if one is not None and len(affected) >= row.least and holds[row.when]:
            yield _finding(view, row, one, affected)
    yield Passed("none in the table of known troubles")


def _driver(view: SnapshotView) -> Iterator[VersionHere]:
    text, path = driver_version(view)
    version = parse_version(known(text) or "")
    if version is not None and not on_wsl(view):
        yield VersionHere(version, view.evidence(path))


def nccl_here(view: SnapshotView) -> list[VersionHere]:
    """Those that frameworks mapped, else those of wheels."""
    found: list[VersionHere] = []
    if view.snapshot.target is None:
        return found
    for one in framework_facts(view):
        for library in one.libraries:
            version = parse_version(known(library.version) or "")
            if library.name == "libnccl" and version is not None:
                shown = f"{known(library.path) or library.name}: {version}"
                evidence = view.evidence(f"target.{one.name}.libraries", shown)
                found.append(VersionHere(version, evidence, known(library.distribution) or ""))
    for wheel in [] if found else of_component(installed_if_known(view), "nccl"):
        if (version := parse_version(wheel.version)) is not None:
            shown_wheel = view.evidence(PLACE, f"{wheel.name} {wheel.version}")
            found.append(VersionHere(version, shown_wheel, wheel.name))
    return found


def _finding(view: SnapshotView, row: KnownBad, one: VersionHere, affected: list[Gpu]) -> Finding:
    subjects = [subject for gpu in affected for subject in about_gpu(gpu)] if row.gpus else []
    if one.package:
        subjects = about("package", one.package)
    names = ", ".join(dict.fromkeys(known(gpu.name) or "a GPU" for gpu in affected))
    return CAUSE["known-bad-version"].found(
        subjects,
        [one.evidence, *[view.gpu_evidence(gpu, "name") for gpu in affected[:2]]],
        advice=_remedy(view, row, one),
        component=_NAMES[row.what],
        version=str(one.version),
        count=len(affected),
        gpus=names,
        symptom=row.symptom,
        report=row.source,
    )


def _remedy(view: SnapshotView, row: KnownBad, one: VersionHere) -> Remedy:
    text = f"It is mended in {row.fixed}: upgrade to that or later." if row.fixed else ""
    commands: list[str] = []
    if row.what == "driver":
        commands = on_system(view, "update-driver")
    elif one.package and row.fixed:
        commands = [pip_install(view, f"{one.package}>={row.fixed}")]
    around = row.workaround
    if around.startswith("unset ") or (around and " " not in around):
        commands.append(around if " " in around else f"export {around}")
        around = f"Until then: {around}."
    elif around:
        around = f"Or use {around}."
    return Remedy(" ".join(filter(None, [text or "Use another version.", around])), commands)
