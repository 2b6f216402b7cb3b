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
from ...facts.view import SnapshotView
from ...findings.causes import Cause
from ...findings.model import Finding, Passed, Remedy, Verdict
from ...findings.subjects import Subject, about, about_gpu
from ..driver_state import NO_GPUS, driver_version, on_wsl
from ..registry import check
from ..system_commands import on_system
from ..target import PLACE, framework_facts, installed, of_component, pip_install
from .common import fabric, gpus, network

_NAMES = {"driver": "Driver", "nccl": "NCCL", "torch": "PyTorch"}


class Found(NamedTuple):
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
    about="Some versions of the driver, of NCCL and of PyTorch are known to hang, or to damage what GPUs send"
    " to each other, on some GPUs: all is well but for that. The table known_bad.csv has them, each with the"
    " report in which it was confirmed, the version that mends it, and the circumstances, without which"
    " nothing is said: so many GPUs of that kind, an RDMA adapter, a variable. What few programs meet is a"
    " detail.",
    sources=(
        "nccl#1637",
        "xgboost#11242",
        "pytorch#153960",
        "NVIDIA NCCL release notes",
        "known_bad.csv, a source in every row",
    ),
    follows=NO_GPUS,
)
def versions(view: SnapshotView) -> Iterator[Verdict]:
    if not gpus(view):
        raise Skip("there is no GPU")
    found = _components(view)
    if not any(found.values()):
        raise Skip("neither the driver's version nor NCCL's is known")
    details = []
    told = False
    for row in known_bad():
        for component in found[row.what]:
            if not row.covers(component.version):
                continue
            affected = _affected(view, row)
            if len(affected) < row.least or not _holds(view, row):
                continue
            if row.level == "detail":
                details.append(
                    f"{_NAMES[row.what]} {component.version}: {row.symptom} ({row.source})"
                )
            else:
                told = True
                yield _finding(view, row, component, affected)
            break
    if not told:
        yield Passed("; ".join(details) or "none in the table of known troubles")


def _components(view: SnapshotView) -> dict[str, list[Found]]:
    found: dict[str, list[Found]] = {"driver": [], "nccl": [], "torch": []}
    text, path = driver_version(view)
    driver = parse_version(known(text) or "")
    if driver is not None and not on_wsl(view):
        found["driver"].append(Found(driver, view.evidence(path)))
    if view.snapshot.target is not None:
        found["nccl"] = list(_nccl(view))
        for one in framework_facts(view):
            version = parse_version(known(one.version) or "")
            if one.name == "torch" and version is not None and known(one.cuda_build):
                found["torch"].append(
                    Found(version, view.evidence("target.torch.version"), "torch")
                )
    return found


def _nccl(view: SnapshotView) -> Iterator[Found]:
    """What the frameworks mapped; else what a wheel would give them."""
    mapped = False
    for one in framework_facts(view):
        for library in one.libraries:
            version = parse_version(known(library.version) or "")
            if library.name == "libnccl" and version is not None:
                mapped = True
                shown = f"{known(library.path) or library.name}: {version}"
                path = f"target.{one.name}.libraries"
                yield Found(version, view.evidence(path, shown), known(library.distribution) or "")
    if mapped:
        return
    try:
        wheels = of_component(installed(view), "nccl")
    except CannotJudge:
        return
    for wheel in wheels:
        version = parse_version(wheel.version)
        if version is not None:
            shown = f"{wheel.name} {wheel.version}"
            yield Found(version, view.evidence(PLACE, shown), wheel.name)


def _affected(view: SnapshotView, row: KnownBad) -> list[Gpu]:
    return [
        gpu
        for gpu in gpus(view)
        if row.gpus.search(known(gpu.name) or "")
        and (
            not row.capability
            or (known(gpu.compute_capability) or "").split(".")[0] == row.capability
        )
    ]


def _holds(view: SnapshotView, row: KnownBad) -> bool:
    """Whether the circumstances are there; not where nobody knows."""
    host = view.machine.host
    facts = None if host is None else host.facts
    if row.when == "p2p":
        nvml = view.machine.nvml
        pairs = None if nvml is None or nvml.facts is None else known(nvml.facts.pairs)
        return any(known(pair.p2p_read) == "ok" for pair in pairs or [])
    if row.when == "rdma":
        try:
            return bool(fabric(network(view)))
        except CannotJudge:
            return False
    if row.when == "aarch64":
        return facts is not None and known(facts.architecture) == "aarch64"
    if row.when == "amd":
        return facts is not None and "AMD" in (known(facts.cpu_model) or "")
    if row.when.startswith("env:"):
        name, _, value = row.when.removeprefix("env:").partition("=")
        target = view.snapshot.target
        environment = None if target is None else target.environment
        variables = (
            {} if environment is None or environment.facts is None else environment.facts.variables
        )
        return variables.get(name) == value
    return True


def _finding(view: SnapshotView, row: KnownBad, found: Found, affected: list[Gpu]) -> Finding:
    name = _NAMES[row.what]
    subjects: list[Subject] = (
        about("package", found.package)
        if found.package
        else [subject for gpu in affected for subject in about_gpu(gpu)]
        if row.gpus.pattern or row.capability
        else []
    )
    names = ", ".join(dict.fromkeys(known(gpu.name) or "a GPU" for gpu in affected))
    return KNOWN_BAD.found(
        subjects,
        [found.evidence, *[view.gpu_evidence(gpu, "name") for gpu in affected[:2]]],
        advice=_remedy(view, row, found),
        component=name,
        version=str(found.version),
        count=len(affected),
        gpus=names,
        symptom=row.symptom,
        report=row.source,
    )


def _remedy(view: SnapshotView, row: KnownBad, found: Found) -> Remedy:
    text = (
        f"It is mended in {row.fixed}: upgrade to that or later."
        if row.fixed
        else "Use another version."
    )
    around = row.workaround
    commands: list[str] = []
    if row.what == "driver":
        commands = on_system(view, "update-driver")
    elif found.package:
        commands = [pip_install(view, f"{found.package}>={row.fixed}")] if row.fixed else []
    if around and " " not in around:
        text += f" Until then {around} gets around it."
        commands.append(f"export {around}")
    elif around.startswith("unset "):
        text += f" Until then: {around}."
        commands.append(around)
    elif around:
        text += f" Or use {around}."
    return Remedy(text, commands)
