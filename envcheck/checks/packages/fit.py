"""Checks on whether the target's distributions fit each other and its Python."""

from __future__ import annotations

import re
from collections.abc import Container

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from ...data.packages import TENSORFLOWS, component, cuda_major
from ...data.sonames import COMPONENT, component_of
from ...data.unstated import built_for, mended_in
from ...data.versions import parse_version
from ..builds import builds_of
from ..declared import declared_causes
from ..reading import Distribution, Skip, SnapshotView, fact, facts_of, known
from ..target import (
    PLACE,
    framework_facts,
    installed,
    loaded,
    named,
    pip,
    pip_install,
    pip_restore,
    version_of,
)
from ..verdicts import Passed, Remedy, Verdicts, about, check, words
from .common import found
from .jax import misfits as jax_misfits
from .requirements import (
    Unmet,
    half_extra,
    marker_environment,
    of_parts,
    requirements,
    together,
    unmet,
    why_unstated,
)

CAUSE = declared_causes(__name__)


@check("PKG-008")
def cuda_majors(view: SnapshotView) -> Verdicts:
    parts: dict[str, list[tuple[Distribution, int]]] = {}
    for name, one in installed(view).items():
        part, major = component(name), cuda_major(name, one.version)
        if part is not None and major is not None:
            parts.setdefault(part.name, []).append((one, major))
    if not parts:
        raise Skip("no NVIDIA library wheels in the target")
    mixed = {name: wheels for name, wheels in parts.items() if len({m for _, m in wheels}) > 1}
    if mixed:
        every = [one for wheels in mixed.values() for one, _ in wheels]
        pairs = [" and ".join(named(one) for one, _ in wheels) for wheels in mixed.values()]
        yield CAUSE["cuda-majors-mixed"].found(
            [subject for name in mixed for subject in about("package", name)],
            [view.evidence(PLACE, pair) for pair in pairs],
            commands=[pip(view, f"show {words([one.name for one in every])}")],
            packages="; ".join(pairs),
        )
    else:
        majors = {major for wheels in parts.values() for _, major in wheels}
        yield Passed(f"{len(parts)} libraries, all for CUDA {' or '.join(map(str, majors))}")


_INSTALL = "Install what it requires."
_ANOTHER = "Install a release of it that fits what is here, or give it an environment of its own."

# Required by frameworks that run without them.
_UNUSED = frozenset(
    ("libclang", "setuptools", "tensorboard", "tensorflow-io-gcs-filesystem", "wheel")
)
_OF_FRAMEWORKS = (*TENSORFLOWS, "torch", "jax")


@check("PKG-009")
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
    frameworks = [one for one in asked if one.normalized in _OF_FRAMEWORKS]
    imported = {one.name for each in frameworks for one in requirements(each, environment)}
    imported |= set(collected)
    broken = 0
    for one in asked:
        gaps = unmet(one, distributions, environment, collected)
        gaps = [gap for gap in gaps if not _said(one, gap, reported, imported)]
        missing = half_extra(one, distributions, environment)
        gaps += [Unmet(gone, None) for gone in missing if not _elsewhere(view, gone.name)]
        if not gaps:
            continue
        broken += 1
        wanted = [f"{gap.requirement.name}{gap.requirement.specifier}" for gap in gaps]
        states = [f"(is {gap.found.version})" if gap.found else "(is missing)" for gap in gaps]
        consequences = [why for gap in gaps if (why := _consequence(view, one, gap, collected))]
        cause = (
            CAUSE["needed-requirement-unmet"]
            if consequences and "+nv" not in one.version
            else CAUSE["requirement-unmet"]
        )
        yield found(
            view,
            cause,
            one,
            evidence=[view.evidence(PLACE, named(gap.found)) for gap in gaps if gap.found],
            advice=_advice(view, one, gaps, every),
            requirements=", ".join(map(" ".join, zip(wanted, states, strict=True))),
            consequence="; ".join(consequences[:2]),
        )
    if not broken:
        yield Passed(f"{len(asked)} packages of this field have what they require")


def _said(
    one: Distribution, gap: Unmet, reported: Container[str], imported: Container[str]
) -> bool:
    """Whether another check says it: PKG-017, or the import of the framework that needs it."""
    name = gap.requirement.name
    of_import = one.normalized in imported and why_unstated(one, gap.requirement) != ""
    return name in reported or of_import


def _elsewhere(view: SnapshotView, wheel: str) -> bool:
    """Whether the loader finds this wheel's library in another place, or it holds none that it knows."""
    part = component(wheel)
    libraries = [one for each in framework_facts(view) for one in each.libraries]
    libraries += fact(view.target.loader, "libraries") or []
    there = {component_of(one.name) for one in libraries if loaded(one)}
    return part is None or part.name not in COMPONENT.values() or part.name in there


def _consequence(
    view: SnapshotView, one: Distribution, gap: Unmet, collected: Container[str]
) -> str:
    """What fails without it, as the end of a sentence; "" where nothing is known to."""
    name, of_framework = gap.requirement.name, one.normalized in _OF_FRAMEWORKS
    if gap.found is None:
        if canonicalize_name(name) in _UNUSED:
            return ""
        if name.startswith("nvidia"):
            return f"without {name} it does not use the GPU"
        ours = of_framework or one.normalized in collected
        return f"what imports {name} fails" if ours else ""
    if why := why_unstated(one, gap.requirement):
        return why
    if gap.requirement in of_parts(one):
        alone = len(framework_facts(view)) < 2  # else it may be used with another one
        return f"it works without {name} (Disabling {name}), and what needs that fails" * alone
    if gap.found.normalized in _OF_FRAMEWORKS and _minor_of(gap.requirement):
        return f"it is compiled for that {name} alone, and fails with another"
    for facts in framework_facts(view) if of_framework else ():
        error = known(facts.import_error) or ""
        if not facts.imported and canonicalize_name(name).replace("-", "_") in re.split(
            r"[^\w.]+|\.", error
        ):
            return f"its import fails over {name}"
    has, last = version_of(gap.found), _last_major(gap.requirement)
    if of_framework and has is not None and last is not None and has.major > last:
        return f"what it uses of {name} may be gone in {gap.found.version}"
    return ""


def _minor_of(requirement: Requirement) -> tuple[int, ...]:
    """The one minor version that a requirement allows: (2, 16) of ">=2.16,<2.17" or "==2.16.1"."""
    first: tuple[int, ...] = ()
    last: tuple[int, ...] = ()
    for bound in requirement.specifier:
        release = getattr(parse_version(bound.version.removesuffix(".*")), "release", ())[:2]
        if bound.operator in ("==", "==="):
            return tuple(release)
        first = max(first, release) if bound.operator in (">=", "~=") else first
        last = release if bound.operator == "<" else last
    return first if len(first) == len(last) == 2 and last == (first[0], first[1] + 1) else ()


def _last_major(requirement: Requirement) -> int | None:
    """The highest major version that a requirement allows; None where it has no upper bound."""
    majors = []
    for bound in requirement.specifier:
        version = parse_version(bound.version.removesuffix(".*"))
        if version is not None and bound.operator in ("<", "<=", "==", "~="):
            below = bound.operator == "<" and not any(version.release[1:])
            majors.append(version.major - below)
    return min(majors, default=None)


def _advice(
    view: SnapshotView, one: Distribution, gaps: list[Unmet], every: list[Requirement]
) -> Remedy:
    version = version_of(one)
    if version and any(built_for(version) == str(gap.requirement) for gap in gaps):
        again = pip_restore(view, one.name, version.public)
        text = "Build it again for the one that is here."
        return Remedy(text, [f"{again} --no-build-isolation --no-cache-dir"])
    wanted = _wanted(one, gaps, every)
    another = any(re.split(r"[=!<>~]", text)[0] == one.name for text in wanted)
    text = _ANOTHER if another else _INSTALL
    return Remedy(text, [pip_install(view, *wanted)])


def _wanted(one: Distribution, gaps: list[Unmet], every: list[Requirement]) -> list[str]:
    """What to install: of two that do not fit, not the framework but what was compiled for another one.

    Nor what another package needs as it is: then it is ``one`` that has to be another version.
    """
    wanted = []
    for gap in gaps:
        name, found = gap.requirement.name, gap.found
        others = [each for each in every if each != gap.requirement]
        specifier = together(canonicalize_name(name), gap.requirement.specifier, every)
        of_others = together(canonicalize_name(name), SpecifierSet(), others)
        fits = found is not None and one.normalized not in _OF_FRAMEWORKS
        like = [each.specifier for each in every if each.name == name]
        if fits and name == "torch" and len(like) > 1 and set(like) == {gap.requirement.specifier}:
            wanted.append(
                f"{name}{specifier}"
            )  # several are compiled for it, and nothing for this one
        elif found is not None and found.normalized in _OF_FRAMEWORKS:
            wanted += [_another(one, gap), f"{found.name}=={found.version}"]
        elif fits and specifier == gap.requirement.specifier and of_others:
            wanted += [_another(one, gap), f"{name}{of_others}"]
        else:
            wanted.append(f"{name}{specifier}")
    return list(dict.fromkeys(wanted))


def _another(one: Distribution, gap: Unmet) -> str:
    """Where its metadata does not say what it needs, a later one's may not either.

    What is released with each minor version of TensorFlow has its number: tf_keras, tensorflow-text.
    torchaudio had PyTorch's up to 2.11, its last: for PyTorch the builds are a table.
    """
    version, found, torch = version_of(one), version_of(gap.found), gap.requirement.name == "torch"
    if found and version and not torch and version.release[:2] == _minor_of(gap.requirement):
        return f"{one.name}~={found.major}.{found.minor}.0"
    if mended := mended_in(one.normalized, str(gap.requirement)):
        return f"{one.name}>={mended}"
    later = why_unstated(one, gap.requirement) or gap.requirement in of_parts(one)
    for build in builds_of("torch") if torch and not later else ():
        released = [each for each in build.beside if each.partition("==")[0] == one.name]
        if released and found and build.version.public == found.public:
            return released[0]
    return f"{one.name}{'<' if later else '!='}{one.version}"
