"""Checks on whether the target's distributions fit each other and its Python."""

from __future__ import annotations

from collections.abc import Container

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from ...data.packages import TENSORFLOWS, component, cuda_major
from ...data.sonames import COMPONENT, component_of
from ...data.versions import parse_version
from ..reading import Distribution, Skip, SnapshotView, fact, facts_of, known
from ..target import (
    PLACE,
    framework_facts,
    installed,
    loaded,
    named,
    pip,
    pip_install,
    version_of,
)
from ..verdicts import Passed, Verdicts, about, check, fail, warn, words
from .common import found
from .jax import misfits as jax_misfits
from .requirements import Unmet, half_extra, marker_environment, requirements, together, unmet

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


_UNMET = "a package's requirement is not met"
_REQUIRES = "{package} requires {requirements}"
_INSTALL = (
    "Install what it requires; if two packages require different versions, give each an environment of its"
    " own."
)
FAILS = fail("needed-requirement-unmet", _UNMET, _REQUIRES + ": {consequence}.", _INSTALL)
UNMET = warn("requirement-unmet", _UNMET, _REQUIRES + ".", _INSTALL)

# Required by frameworks that run without them.
_UNUSED = frozenset(
    ("libclang", "setuptools", "tensorboard", "tensorflow-io-gcs-filesystem", "wheel")
)
_OF_FRAMEWORKS = (*TENSORFLOWS, "torch", "jax")


@check(
    "PKG-009",
    title="Requirements of the installed packages are met",
    causes=[FAILS, UNMET],
    about="A later installation may have replaced or removed what an earlier package requires; pip prints"
    " that once and continues. It fails where use does: a framework's requirement that is gone or of a"
    " later major version, a package compiled for another version of the framework, and CUDA's wheels.",
    sources=("the packages' own metadata (Requires-Dist)",),
    follows=("PKG-002", "ENV-011"),
)
def requirements_met(view: SnapshotView) -> Verdicts:
    environment = marker_environment(facts_of(view.target.interpreter, "the target's interpreter"))
    distributions = installed(view)
    reported = {one.normalized for one in jax_misfits(distributions)}
    reported |= {"jaxlib"} & distributions.keys()  # PKG-017 compares those that are there
    asked = [one for one in distributions.values() if known(one.requires) is not None]
    if not asked:
        raise Skip("none of the target's packages says what it requires")
    collected = fact(view.target.packages, "required") or []
    every = [one for each in asked for one in requirements(each, environment)]
    broken = 0
    for one in asked:
        gaps = unmet(one, distributions, environment, collected)
        gaps = [gap for gap in gaps if gap.requirement.name not in reported]
        missing = half_extra(one, distributions, environment)
        gaps += [Unmet(gone, None) for gone in missing if not _elsewhere(view, gone.name)]
        if not gaps:
            continue
        broken += 1
        wanted = [f"{gap.requirement.name}{gap.requirement.specifier}" for gap in gaps]
        states = [f"(is {gap.found.version})" if gap.found else "(is missing)" for gap in gaps]
        consequences = [why for gap in gaps if (why := _consequence(one, gap, collected))]
        cause = FAILS if consequences and "+nv" not in one.version else UNMET
        yield found(
            view,
            cause,
            one,
            evidence=[view.evidence(PLACE, named(gap.found)) for gap in gaps if gap.found],
            commands=[pip_install(view, *_wanted(one, gaps, every))],
            requirements=", ".join(map(" ".join, zip(wanted, states, strict=True))),
            consequence="; ".join(consequences[:2]),
        )
    if not broken:
        yield Passed(f"{len(asked)} packages of this field have what they require")


def _elsewhere(view: SnapshotView, wheel: str) -> bool:
    """Whether the loader finds this wheel's library in another place, or it holds none that it knows."""
    part = component(wheel)
    libraries = [one for each in framework_facts(view) for one in each.libraries]
    libraries += fact(view.target.loader, "libraries") or []
    there = {component_of(one.name) for one in libraries if loaded(one)}
    return part is None or part.name not in COMPONENT.values() or part.name in there


def _consequence(one: Distribution, gap: Unmet, collected: Container[str]) -> str:
    """What fails without it, as the end of a sentence; "" where nothing is known to."""
    name, of_framework = gap.requirement.name, one.normalized in _OF_FRAMEWORKS
    if gap.found is None:
        if canonicalize_name(name) in _UNUSED:
            return ""
        if name.startswith("nvidia"):
            return f"without {name} it does not use the GPU"
        ours = of_framework or one.normalized in collected
        return f"what imports {name} fails" if ours else ""
    pinned = any(bound.operator in ("==", "===") for bound in gap.requirement.specifier)
    if pinned and gap.found.normalized in _OF_FRAMEWORKS:
        return f"it is compiled for that {name} alone, and fails with another"
    has, last = version_of(gap.found), _last_major(gap.requirement)
    if of_framework and has is not None and last is not None and has.major > last:
        return f"what it uses of {name} may be gone in {gap.found.version}"
    return ""


def _last_major(requirement: Requirement) -> int | None:
    """The highest major version that a requirement allows; None where it has no upper bound."""
    majors = []
    for bound in requirement.specifier:
        version = parse_version(bound.version.removesuffix(".*"))
        if version is not None and bound.operator in ("<", "<=", "==", "~="):
            below = bound.operator == "<" and not any(version.release[1:])
            majors.append(version.major - below)
    return min(majors, default=None)


def _wanted(one: Distribution, gaps: list[Unmet], every: list[Requirement]) -> list[str]:
    """What to install: of two that do not fit, not the framework but what was compiled for another one."""
    wanted = []
    for gap in gaps:
        name = gap.requirement.name
        if gap.found is not None and gap.found.normalized in _OF_FRAMEWORKS:
            wanted += [f"{one.name}!={one.version}", f"{gap.found.name}=={gap.found.version}"]
        else:
            specifier = together(canonicalize_name(name), gap.requirement.specifier, every)
            wanted.append(f"{name}{specifier}")
    return list(dict.fromkeys(wanted))
