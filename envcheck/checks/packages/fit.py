"""Checks on whether the target's distributions fit each other and its Python."""

from __future__ import annotations

from ...data.packages import component, cuda_major
from ..reading import Distribution, Skip, SnapshotView, facts_of, known
from ..target import PLACE, installed, named, pip, pip_install
from ..verdicts import Passed, Verdicts, about, check, warn, words
from .common import found
from .jax import misfits as jax_misfits
from .requirements import marker_environment, unmet

MIXED = warn(
    "cuda-majors-mixed",
    "CUDA libraries of several majors are mixed",
    "{packages} are the same library for several CUDA majors: they overwrite each other's files, and one"
    " process may load both.",
    "Give each framework an environment of its own; see which of them requires which.",
)


@check(
    "PKG-008",
    title="CUDA libraries are of one CUDA major",
    causes=[MIXED],
    about="NVIDIA's wheels for CUDA 11 and CUDA 12 unpack into the same directories, and files whose name"
    " carries no CUDA version (cuDNN, NCCL, cuRAND, cuSOLVER) overwrite each other.",
    sources=("files in the nvidia-*-cu11 and nvidia-*-cu12 wheels", "pytorch#185512 and #188892"),
)
def cuda_majors(view: SnapshotView) -> Verdicts:
    parts: dict[str, list[tuple[Distribution, int]]] = {}
    for name, one in installed(view).items():
        part, major = component(name), cuda_major(name, one.version)
        if part is not None and major is not None:
            parts.setdefault(part.name, []).append((one, major))
    if not parts:
        raise Skip("no NVIDIA library wheels in the target")
    mixed = {name: wheels for name, wheels in parts.items() if len({m for _, m in wheels}) > 1}
    for name, wheels in mixed.items():
        names = " and ".join(named(one) for one, _ in wheels)
        yield MIXED.found(
            about("package", name),
            [view.evidence(PLACE, names)],
            commands=[pip(view, f"show {words([one.name for one, _ in wheels])}")],
            packages=names,
        )
    if not mixed:
        majors = {major for wheels in parts.values() for _, major in wheels}
        yield Passed(f"{len(parts)} libraries, all for CUDA {' or '.join(map(str, majors))}")


UNMET = warn(
    "requirement-unmet",
    "a package's requirement is not met",
    "{package} requires {requirements}.",
    "Install what it requires; if two packages require different versions, give each an environment of its"
    " own.",
)


@check(
    "PKG-009",
    title="Requirements of the installed packages are met",
    causes=[UNMET],
    about="A later installation may have replaced or removed what an earlier package requires; pip prints"
    " that once and continues. Whether it still works is what the framework's checks prove.",
    sources=("the packages' own metadata (Requires-Dist)",),
    follows=("PKG-002",),
)
def requirements_met(view: SnapshotView) -> Verdicts:
    environment = marker_environment(facts_of(view.target.interpreter, "the target's interpreter"))
    distributions = installed(view)
    reported = {"jaxlib", *(one.normalized for one in jax_misfits(distributions))}
    asked = [one for one in distributions.values() if known(one.requires) is not None]
    if not asked:
        raise Skip("none of the target's packages says what it requires")
    broken = 0
    for one in asked:
        gaps = unmet(one, distributions, environment)
        gaps = [gap for gap in gaps if gap.requirement.name not in reported]
        if not gaps:
            continue
        broken += 1
        wanted = [f"{gap.requirement.name}{gap.requirement.specifier}" for gap in gaps]
        states = [f"(is {gap.found.version})" if gap.found else "(is missing)" for gap in gaps]
        yield found(
            view,
            UNMET,
            one,
            evidence=[view.evidence(PLACE, named(gap.found)) for gap in gaps if gap.found],
            commands=[pip_install(view, *wanted)],
            requirements=", ".join(map(" ".join, zip(wanted, states, strict=True))),
        )
    if not broken:
        yield Passed(f"{len(asked)} packages of this field have what they require")
