"""Compares the installed CUDA libraries with the set that a TensorFlow build was released with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from packaging.utils import canonicalize_name
from packaging.version import Version

from ...data import releases
from ...data.packages import TensorFlowBuild, component, tensorflow_builds
from ...data.releases import MonthlyRelease
from ...data.sonames import component_of
from ...data.versions import parse_version
from ...facts.base import known
from ...facts.missing import NotKnown
from ...facts.target import Distribution
from ...facts.view import SnapshotView
from ...findings.model import Finding, Passed, Remedy, Verdict
from ...findings.subjects import about
from ..target import framework_facts, named, pip_install


class Observed(NamedTuple):
    """A component as it stands in the target: in a wheel, or as a library that was really loaded."""

    component: str  # "cublas"
    name: str  # the distribution's, or the library's
    version: str


class ReleaseDifference(NamedTuple):
    observed: Observed
    released: str  # what the release has
    allowed: bool | None  # by the release's own rule; None: no rule is known


def observed(view: SnapshotView, installed: dict[str, Distribution]) -> list[Observed]:
    """Each component once: its wheel, else the library that a framework mapped or the loader finds."""
    found: dict[str, Observed] = {}
    for name, one in installed.items():
        part = component(name)
        short = "tensorrt" if name in ("tensorrt", "nvidia-tensorrt") else part and part.name
        if short:
            found.setdefault(short, Observed(short, one.name, one.version))
    loader = view.target.loader
    libraries = [] if loader is None or loader.facts is None else loader.facts.libraries
    for library in [*(lib for one in framework_facts(view) for lib in one.libraries), *libraries]:
        short = "tensorrt" if library.name == "libnvinfer" else component_of(library.name)
        version = known(library.version)
        if short and version and known(library.path) and library.name != "libcupti":
            found.setdefault(short, Observed(short, library.name, version))
    return list(found.values())


def same(one: str, other: str, parts: int = 9) -> bool:
    """Versions agree as far as both are written: "12.1" and "12.1.0.26" do; "8.9" and "8.8" do not."""
    first, second = parse_version(one), parse_version(other)
    if first is None or second is None:
        return one == other
    length = min(len(first.release), len(second.release), parts)
    return first.release[:length] == second.release[:length]


def nvidia_release(
    view: SnapshotView, tensorflow: Distribution, installed: dict[str, Distribution]
) -> Iterator[Verdict]:
    """Names the release that nvidia-tensorflow is of, and judges what stands beside it.

    Raises NotKnown where no release of that version, or nothing of its libraries, is on record.
    """
    version = parse_version(tensorflow.version)
    release = releases.by_wheel(version) if version else None
    near = release or (releases.nearest(version) if version else None)
    if near is None:
        raise NotKnown(f"which of NVIDIA's releases {named(tensorflow)} is")
    compared, differences = compare(near, observed(view, installed))
    told = "; ".join(_tell(difference, near) for difference in differences)
    if release is None:
        what = f"the release of {named(tensorflow)}; the nearest on record is {near.month}"
        raise NotKnown(what + (f", from which differs: {told}" if told else ""))
    if not near.libraries_known:
        raise NotKnown(
            f"the libraries of NVIDIA's release {near.month}, which {named(tensorflow)} is of"
            + _same_month(near)
        )
    if not compared:
        raise NotKnown(
            f"whether this is NVIDIA's release {near.month}: none of its libraries is here"
        )
    broken = [difference for difference in differences if _is_wrong(difference)]
    for difference in broken:
        seen = difference.observed
        yield Finding(
            "warn",
            f"{seen.name} {seen.version} is not what NVIDIA's release {near.month} was built with "
            f"({difference.released}), and not a version that its wheel asks for.",
            subjects=about("package", seen.name),
            evidence=[
                view.evidence("target.packages.distributions", named(tensorflow)),
                view.evidence("target.packages.distributions", f"{seen.name} {seen.version}"),
            ],
            remedy=_remedy(view, difference, installed),
        )
    if not broken:
        detail = f"NVIDIA's release {near.month}, compared in {', '.join(sorted(compared))}"
        moved = f"; moved on since, within its rules: {told}" if told else ""
        yield Passed(detail + moved)


def compare(
    release: MonthlyRelease, seen: list[Observed]
) -> tuple[list[str], list[ReleaseDifference]]:
    """The components that could be compared, and those that differ."""
    has = {
        "cuda-runtime": release.cuda,
        "cublas": release.cublas,
        "cudnn": release.cudnn,
        "nccl": release.nccl,
        "tensorrt": release.tensorrt,
        "dali-nvtf-plugin": release.dali,
        "horovod": release.horovod,
    }
    compared, differences = [], []
    for one in seen:
        released = has.get(one.component)
        if not released:
            continue
        compared.append(one.component)
        # The runtime's wheel counts builds where the toolkit counts updates: 12.1.55 is CUDA 12.1.0.
        parts = 2 if one.component == "cuda-runtime" else 9
        if same(one.version, released, parts):
            continue
        rule = releases.rule(release.month, one.name)
        allowed = releases.allows(rule, released, one.version) if rule else None
        differences.append(ReleaseDifference(one, released, allowed))
    return compared, differences


def _is_wrong(difference: ReleaseDifference) -> bool:
    """Against the rule; where no rule is known, only another major is known to be another library."""
    if difference.allowed is not None:
        return not difference.allowed
    seen, released = parse_version(difference.observed.version), parse_version(difference.released)
    return seen is not None and released is not None and seen.major != released.major


def _tell(difference: ReleaseDifference, release: MonthlyRelease) -> str:
    seen = difference.observed
    return f"{seen.name} {seen.version} ({release.month}: {difference.released})"


def _same_month(release: MonthlyRelease) -> str:
    """What that month's other containers hold, said as what it is."""
    sister = releases.sister(release.month)
    cells = [
        f"{title} {sister[key]}"
        for key, title in (("cuda", "CUDA"), ("cudnn", "cuDNN"), ("nccl", "NCCL"))
        if sister.get(key)
    ]
    return (
        f" (its same-month base image, not confirmed for it: {', '.join(cells)})" if cells else ""
    )


def _remedy(
    view: SnapshotView, difference: ReleaseDifference, installed: dict[str, Distribution]
) -> Remedy | None:
    name = difference.observed.name
    if canonicalize_name(name) not in installed:
        return None
    version = Version(difference.released)
    wanted = f"{name}~={version.major}.{version.minor}"
    return Remedy(
        "Install the version that the release was made with.", [pip_install(view, wanted)]
    )


class Pinned(NamedTuple):
    """How the NVIDIA wheels compare with what ``tensorflow[and-cuda]`` of one version asks for."""

    present: list[str]
    missing: list[str]  # requirements
    different: list[str]  # "nvidia-cublas-cu12 12.6.1.4 (==12.5.3.2)"


def pinned(build: TensorFlowBuild, installed: dict[str, Distribution]) -> Pinned:
    result = Pinned([], [], [])
    for requirement in build.and_cuda:
        found = installed.get(canonicalize_name(requirement.name))
        version = parse_version(found.version) if found else None
        if found is None:
            result.missing.append(str(requirement))
        elif version and not requirement.specifier.contains(version, prereleases=True):
            result.different.append(f"{named(found)} ({requirement.specifier})")
        else:
            result.present.append(found.name)
    return result


def installable(build: TensorFlowBuild) -> TensorFlowBuild | None:
    """The build itself, or the next one, whose [and-cuda] does not pin TensorRT wheels."""
    later = (one for one in tensorflow_builds() if one.version >= build.version)
    return next((one for one in later if not one.tensorrt_pins), None)
