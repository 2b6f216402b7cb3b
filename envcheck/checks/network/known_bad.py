"""The check on versions that are known to hang, or to corrupt what GPUs send each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from packaging.version import Version

from ...data.known_bad import KnownBad, known_bad
from ...data.versions import parse_version
from ...facts.base import known
from ...facts.evidence import Evidence
from ...facts.gpu import Gpu
from ...facts.missing import CannotJudge, Skip
from ...facts.view import SnapshotView, fact
from ...findings.causes import Cause
from ...findings.model import Finding, Passed, Remedy, Verdict
from ...findings.subjects import Subject, about, about_gpu
from ..driver_state import NO_GPUS, driver_version, on_wsl
from ..registry import check
from ..system_commands import on_system
from ..target import PLACE, framework_facts, installed, of_component, pip_install
from .common import fabric, gpus, network

_NAMES = {"driver": "Driver", "nccl": "NCCL", "torch": "PyTorch"}


class VersionHere(NamedTuple):
    """A component that is here. package: the distribution that holds it."""

    version: Version
    evidence: Evidence
    package: str = ""


KNOWN_BAD = Cause(
    "known-bad-version",
    "warn",
    headline="a version here is known to hang or to corrupt data",
    sentence="{component} {version} is known for this on {count} x {gpus}: {symptom} ({report}).",
)


@check(
    "NET-008",
    title="No version here is known to hang or to corrupt",
    causes=[KNOWN_BAD],
    about="Some versions of the driver, of NCCL and of PyTorch are known to hang, or to corrupt data"
    " between GPUs, on some GPUs and under some conditions. A problem that few programs meet is shown"
    " as a detail.",
    sources=(
        "nccl#1637, xgboost#11242, pytorch#153960",
        "known_bad.csv, a source in every row",
    ),
    follows=NO_GPUS,
)
def versions(view: SnapshotView) -> Iterator[Verdict]:
    if not gpus(view):
        raise Skip("there is no GPU")
    components = _components(view)
    if not any(components.values()):
        raise Skip("neither the driver's version nor NCCL's is known")
    details: list[str] = []
    found: list[Finding] = []
    for row in known_bad():
        one = next((c for c in components[row.what] if row.covers(c.version)), None)
        affected = _affected(view, row)
        if one is None or len(affected) < row.least or not _holds(view, row):
            continue
        if row.level == "detail":
            details.append(f"{_NAMES[row.what]} {one.version}: {row.symptom} ({row.source})")
        else:
            found.append(_finding(view, row, one, affected))
    yield from found
    if not found:
        yield Passed("; ".join(details) or "none in the table of known troubles")


def _components(view: SnapshotView) -> dict[str, list[VersionHere]]:
    found: dict[str, list[VersionHere]] = {"driver": [], "nccl": [], "torch": []}
    text, path = driver_version(view)
    driver = parse_version(known(text) or "")
    if driver is not None and not on_wsl(view):
        found["driver"].append(VersionHere(driver, view.evidence(path)))
    if view.snapshot.target is None:
        return found
    found["nccl"] = list(_mapped_nccl(view)) or list(_nccl_wheels(view))
    for one in framework_facts(view):
        version = parse_version(known(one.version) or "")
        if one.name == "torch" and version is not None and known(one.cuda_build):
            shown = view.evidence("target.torch.version")
            found["torch"].append(VersionHere(version, shown, "torch"))
    return found


def _mapped_nccl(view: SnapshotView) -> Iterator[VersionHere]:
    for one in framework_facts(view):
        for library in one.libraries:
            version = parse_version(known(library.version) or "")
            if library.name == "libnccl" and version is not None:
                shown = f"{known(library.path) or library.name}: {version}"
                evidence = view.evidence(f"target.{one.name}.libraries", shown)
                yield VersionHere(version, evidence, known(library.distribution) or "")


def _nccl_wheels(view: SnapshotView) -> Iterator[VersionHere]:
    try:
        wheels = of_component(installed(view), "nccl")
    except CannotJudge:
        return
    for wheel in wheels:
        version = parse_version(wheel.version)
        if version is not None:
            shown = view.evidence(PLACE, f"{wheel.name} {wheel.version}")
            yield VersionHere(version, shown, wheel.name)


def _affected(view: SnapshotView, row: KnownBad) -> list[Gpu]:
    return [
        gpu
        for gpu in gpus(view)
        if row.is_about(known(gpu.name) or "")
        and row.capability in ("", (known(gpu.compute_capability) or "").split(".")[0])
    ]


def _holds(view: SnapshotView, row: KnownBad) -> bool:
    """Whether the row's circumstances are there; not where that is not known."""
    host = view.machine.host
    kind, _, setting = row.when.partition(":")
    match kind:
        case "p2p":
            pairs = fact(view.machine.nvml, "pairs") or []
            return any(known(pair.p2p_read) == "ok" for pair in pairs)
        case "rdma":
            try:
                return bool(fabric(network(view)))
            except CannotJudge:
                return False
        case "aarch64":
            return bool(fact(host, "architecture") == "aarch64")
        case "amd":
            return "AMD" in (fact(host, "cpu_model") or "")
        case "env":
            name, _, value = setting.partition("=")
            target = view.snapshot.target
            variables = None if target is None else fact(target.environment, "variables")
            return bool((variables or {}).get(name) == value)
    return True


def _finding(view: SnapshotView, row: KnownBad, one: VersionHere, affected: list[Gpu]) -> Finding:
    subjects: list[Subject] = []
    if one.package:
        subjects = about("package", one.package)
    elif row.gpus or row.capability:
        subjects = [subject for gpu in affected for subject in about_gpu(gpu)]
    names = ", ".join(dict.fromkeys(known(gpu.name) or "a GPU" for gpu in affected))
    return KNOWN_BAD.found(
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
