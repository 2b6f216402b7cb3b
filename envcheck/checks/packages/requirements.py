"""Which requirements of the installed distributions are not met, as the target's Python reads them."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable
from functools import lru_cache
from typing import NamedTuple

from packaging.markers import UndefinedComparison, UndefinedEnvironmentName
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from ...data.unstated import unstated
from ...data.versions import parse_version
from ...facts.target import TargetInterpreter
from ..reading import Distribution, known

_EXTRA = re.compile(r"""extra == ["']([\w.-]{1,100})["']""")

# Names that the Snapshot holds wherever they are installed, and that nothing else stands in for.
_COLLECTED = re.compile(r"nvidia-.*|tensorrt|tf-keras|jaxlib")


class Unmet(NamedTuple):
    """One requirement that does not hold. ``found`` is None where the distribution is not there."""

    requirement: Requirement
    found: Distribution | None


def marker_environment(interpreter: TargetInterpreter) -> dict[str, str]:
    """What environment markers (PEP 508) mean in the target; nothing of envcheck's own Python."""
    version = interpreter.version.rstrip("+")
    return {
        "implementation_name": interpreter.implementation.lower(),
        "implementation_version": version,
        "os_name": "posix",
        "platform_machine": interpreter.architecture,
        "platform_python_implementation": interpreter.implementation,
        "platform_release": "",
        "platform_system": "Linux",
        "platform_version": "",
        "python_full_version": version,
        "python_version": ".".join(version.split(".")[:2]),
        "sys_platform": "linux",
        "extra": "",
    }


@lru_cache(maxsize=4096)  # the same wheels are met again and again
def _parsed(text: str) -> Requirement:
    return Requirement(text)


def requirements(distribution: Distribution, environment: dict[str, str]) -> list[Requirement]:
    """What a distribution requires there, without its extras; what cannot be read is left out.

    With what is known to be missing in its metadata.
    """
    found = []
    more = [text for text, _why in unstated(distribution.normalized, distribution.version)]
    for text in [*(known(distribution.requires) or []), *more]:
        try:
            requirement = _parsed(text)
            if requirement.marker is None or requirement.marker.evaluate(environment):
                found.append(requirement)
        except (UndefinedComparison, UndefinedEnvironmentName, ValueError):
            continue
    return found


def why_unstated(distribution: Distribution, requirement: Requirement) -> str:
    """What fails without a requirement that the metadata does not state; "" of any other."""
    rows = unstated(distribution.normalized, distribution.version)
    return next((why for text, why in rows if _parsed(text) == requirement), "")


def extra_requirements(distribution: Distribution, extra: re.Pattern[str]) -> list[Requirement]:
    """What a distribution requires by itself, or under one of its extras of which the name matches."""
    found = []
    for text in known(distribution.requires) or []:
        try:
            requirement = _parsed(text)
        except InvalidRequirement:
            continue
        named = _EXTRA.findall(str(requirement.marker or ""))
        if not named or any(extra.match(name) for name in named):
            found.append(requirement)
    return found


_PARTS = {"torch": "torch", "pytorch": "torch", "tf": "tensorflow", "tensorflow": "tensorflow"}
_PARTS |= {"jax": "jax", "flax": "jax"}


def of_parts(distribution: Distribution) -> list[Requirement]:
    """The least version of a framework that its part for that one takes: an extra of the framework's name."""
    found = []
    for text in known(distribution.requires) or []:
        extra = _EXTRA.search(text)
        part = _PARTS.get(extra[1]) if extra else None
        try:
            wanted = _parsed(text) if part else None
        except InvalidRequirement:
            continue
        if wanted is not None and wanted.name == part:
            least = [str(one) for one in wanted.specifier if one.operator in (">=", ">")]
            found += [Requirement(f"{part}{','.join(least)}")] if least else []
    return found


def unmet(
    distribution: Distribution,
    installed: dict[str, Distribution],
    environment: dict[str, str],
    collected: Container[str] = (),
) -> list[Unmet]:
    """The requirements that do not hold. ``installed`` is by normalised name.

    The Snapshot holds the distributions of this field, and the ``collected`` ones, wherever they are
    installed: another name that is not in it is unknown. What is not pip's may have them under other names.
    """
    ours = known(distribution.installer) not in (None, "conda")
    broken = []
    for requirement in [*requirements(distribution, environment), *of_parts(distribution)]:
        name = canonicalize_name(requirement.name)
        found = installed.get(name)
        if found is None:
            stated = not why_unstated(distribution, requirement)
            if _COLLECTED.fullmatch(name) or (ours and name in collected and stated):
                broken.append(Unmet(requirement, None))
            continue
        version = parse_version(found.version)
        if version is not None and not requirement.specifier.contains(version, prereleases=True):
            broken.append(Unmet(requirement, found))
    return broken


def half_extra(
    distribution: Distribution, installed: dict[str, Distribution], environment: dict[str, str]
) -> list[Requirement]:
    """What is missing of an extra of CUDA's wheels that is installed for the most part.

    No metadata says which extras were asked for: most of one is never there by chance.
    """
    base = {one.name for one in requirements(distribution, environment)}
    texts = " ".join(known(distribution.requires) or [])
    for extra in dict.fromkeys(_EXTRA.findall(texts)):
        every = requirements(distribution, environment | {"extra": extra})
        asked = [one for one in every if one.name not in base]
        missing = [one for one in asked if canonicalize_name(one.name) not in installed]
        if all(one.name.startswith("nvidia") for one in asked) and 2 * len(missing) < len(asked):
            return missing
    return []


def together(name: str, wanted: SpecifierSet, others: Iterable[Requirement]) -> SpecifierSet:
    """What all of them require of a name, where one version can fulfil it; else ``wanted`` alone."""
    every = wanted
    for one in others:
        if canonicalize_name(one.name) == name:
            every &= one.specifier
    bounds = [parse_version(one.version.removesuffix(".*")) for one in every]
    after = [parse_version(f"{one}.post0") for one in bounds if one is not None and not one.local]
    can = any(
        one is not None and every.contains(one, prereleases=True) for one in [*bounds, *after]
    )
    return every if can else wanted
