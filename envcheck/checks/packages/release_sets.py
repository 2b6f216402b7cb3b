"""Compares the installed CUDA libraries with the set that a TensorFlow build was released with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from packaging.utils import canonicalize_name
from packaging.version import Version

from ...data import releases
from ...data.packages import component
from ...data.releases import MonthlyRelease
from ...data.sonames import component_of
from ...data.versions import parse_version
from ...facts.base import known
from ...facts.missing import NotKnown
from ...facts.target import Distribution
from ...facts.view import SnapshotView, fact
from ...findings.causes import Cause
from ...findings.model import Passed, Verdict
from ...findings.subjects import about
from ..target import PLACE, framework_facts, named, pip_install

OTHER_VERSION = Cause(
    "not-of-release",
    "warn",
    "the libraries are not those of NVIDIA's release",
    "{library} {version} is not what NVIDIA's release {month} was built with ({released}), and not a version"
    " that its wheel asks for.",
    "Install the version that the release was made with.",
)


class Observed(NamedTuple):
    """A component as it stands in the target: in a wheel, or as a library that was really loaded."""

    component: str  # "cublas"
    name: str  # the distribution's, or the library's
    version: str


class ReleaseDifference(NamedTuple):
    observed: Observed
    released: str  # what the release has
    allowed: bool  # by the release's own rule; without one, only another major is known to be wrong

    def __str__(self) -> str:
        return f"{self.observed.name} {self.observed.version} (released: {self.released})"


def observed(view: SnapshotView, installed: dict[str, Distribution]) -> list[Observed]:
    """Each component once: its wheel, else the library that a framework mapped or the loader finds."""
    found: dict[str, Observed] = {}
    for name, one in installed.items():
        part = component(name)
        short = "tensorrt" if name in ("tensorrt", "nvidia-tensorrt") else part and part.name
        if short:
            found.setdefault(short, Observed(short, one.name, one.version))
    libraries = [library for one in framework_facts(view) for library in one.libraries]
    for library in [*libraries, *(fact(view.target.loader, "libraries") or [])]:
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
    """Names the release that nvidia-tensorflow is of, and judges the libraries beside it.

    Raises NotKnown where no release of that version, or nothing of its libraries, is on record.
    """
    version = parse_version(tensorflow.version)
    release = releases.by_wheel(version) if version else None
    near = release or (releases.nearest(version) if version else None)
    if near is None:
        raise NotKnown(f"which of NVIDIA's releases {named(tensorflow)} is")
    compared, differences = compare(near, observed(view, installed))
    shown = "; ".join(map(str, differences))
    if release is None:
        what = f"the release of {named(tensorflow)}; the nearest on record is {near.month}"
        raise NotKnown(what + (f", from which differs: {shown}" if shown else ""))
    if not near.libraries_known:
        month = f"the libraries of NVIDIA's release {near.month}"
        raise NotKnown(f"{month}, which {named(tensorflow)} is of")
    if not compared:
        raise NotKnown(
            f"whether this is NVIDIA's release {near.month}: none of its libraries is here"
        )
    broken = [difference for difference in differences if not difference.allowed]
    for difference in broken:
        seen, released = difference.observed, Version(difference.released)
        wanted = f"{seen.name}~={released.major}.{released.minor}"
        is_wheel = canonicalize_name(seen.name) in installed
        yield OTHER_VERSION.found(
            about("package", seen.name),
            [view.evidence(PLACE, named(tensorflow)), view.evidence(PLACE, str(difference))],
            commands=[pip_install(view, wanted)] if is_wheel else [],
            library=seen.name,
            version=seen.version,
            month=near.month,
            released=difference.released,
        )
    if not broken:
        moved = f"; moved on since, within its rules: {shown}" if shown else ""
        yield Passed(
            f"NVIDIA's release {near.month}, compared in {', '.join(sorted(compared))}{moved}"
        )


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
    seen = [one for one in seen if has.get(one.component)]
    differences = []
    for one in seen:
        released = has[one.component]
        # The runtime's wheel counts builds where the toolkit counts updates: 12.1.55 is CUDA 12.1.0.
        if same(one.version, released, 2 if one.component == "cuda-runtime" else 9):
            continue
        rule = releases.rule(release.month, one.name)
        allowed = releases.allows(rule, released, one.version) if rule else None
        if allowed is None:
            allowed = same(one.version, released, 1) or parse_version(one.version) is None
        differences.append(ReleaseDifference(one, released, allowed))
    return [one.component for one in seen], differences
