"""From the choice to the lockfile: every package's version, and the one file of it that is installed.

uv resolves at the real indexes. Which file is taken is decided here, by the interpreter's tags.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from datetime import datetime, timezone
from itertools import chain

import msgspec
from packaging.requirements import Requirement
from packaging.tags import Tag, create_compatible_tags_selector
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import Version

from ...exit_codes import Cannot, CouldNotLook
from ..catalogue.model import Stack
from ..catalogue.pythons import seed
from ..fit.models import Choice
from ..lockfile import LockedFile, LockedPackage, Lockfile
from ..pythons.interpreter import plain_tags
from . import origin, resolution, uv_compile
from .indexes import Indexes
from .pins import PROJECT, NoSolution, Pin, Target

Selector = Callable[[Iterable[tuple[LockedFile, AbstractSet[Tag]]]], Iterator[LockedFile]]


def resolve(choice: Choice, indexes: Indexes) -> Lockfile:
    """Ask the indexes and lock what they answer; nothing is installed.

    Raises Cannot where the requirements cannot be met or a package comes from another index than its own;
    CouldNotLook where an index or uv fails.
    """
    stack, candidate, release = choice.stack, choice.candidate, choice.candidate.release
    target = Target.of(candidate.python_to_get, candidate.interpreter)
    likely = [Requirement(line).name for line in release.constraints]
    bounds = [*stack.constraints, *release.constraints]
    wanted = [stack.requirement.format(version=release.version), *release.extra_requirements]
    try:
        wanted += seed(target.minor)  # this Python's pip
        pins = resolution.solve(wanted, bounds, target, indexes, likely=likely)
        packages = _locked(pins, indexes, target)
        building = _building(packages, stack, target, indexes)
    except NoSolution as error:
        raise Cannot(
            f"{stack.name} {release.release} cannot be resolved for Python {target.minor}: {error}",
            hint=" ".join(error.hints),
        ) from None
    return Lockfile(
        stack=stack.name,
        release=release.release,
        python=target.minor,
        architecture=target.architecture,
        packages=packages,
        building=building,
        provided=dict(stack.provides),
        gpu=stack.gpu,
        created_at=datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
    )


def best_file(files: Iterable[LockedFile], select: Selector) -> LockedFile | None:
    """The wheel that the interpreter likes best, by tag and then build number; else the sdist."""
    listed = list(files)
    wheels = []
    for file in listed:
        with suppress(InvalidWheelFilename):
            _, _, build, offered = parse_wheel_filename(file.name)
            wheels.append((build, file, offered))
    wheels.sort(key=lambda wheel: wheel[0], reverse=True)
    sdists = (file for file in listed if file.kind == "sdist")
    return next(chain(select((file, offered) for _, file, offered in wheels), sdists), None)


def selector(target: Target) -> Selector:
    """Chooses among tagged wheels."""
    listed = target.interpreter.tags if target.interpreter else []
    listed = listed or plain_tags(target.minor, target.architecture, target.glibc)
    return create_compatible_tags_selector([Tag(*tag.split("-")) for tag in listed])


def _locked(pins: Sequence[Pin], indexes: Indexes, target: Target) -> list[LockedPackage]:
    """The pins with the one file of each that fits best, and its hash."""
    select = selector(target)

    found = []
    for pin in pins:
        best = best_file(pin.files, select)
        if best is None:
            raise CouldNotLook(f"no file of {pin.name} {pin.version} fits this Python")
        file = _hashed(pin, best, target, indexes)
        origin.check_file(pin, file, indexes.stack)
        found.append(
            LockedPackage(
                name=pin.name,
                version=str(Version(pin.version)),
                index=indexes.public_url(indexes.stack.index_of(pin.name)),
                file=file,
                needed_by=[name for name in pin.needed_by if name != PROJECT],
            )
        )
    return found


def _hashed(pin: Pin, file: LockedFile, target: Target, indexes: Indexes) -> LockedFile:
    """The file with its sha256. Of a source distribution only the stack's will do, and uv verifies it."""
    if file.sha256:
        return file
    if file.kind == "wheel":
        return uv_compile.hashed(pin, file, target, indexes)
    known = [one for one in indexes.stack.sdists if canonicalize_name(one.name) == pin.name]
    same = [one.sha256 for one in known if Version(one.version) == Version(pin.version)]
    return msgspec.structs.replace(file, sha256=next(iter(same), ""))


def _building(
    packages: Sequence[LockedPackage], stack: Stack, target: Target, indexes: Indexes
) -> list[LockedPackage]:
    """What the sdists among them are built with, each file once."""
    allowed = {sdist.sha256: sdist for sdist in stack.sdists}
    found: dict[str, LockedPackage] = {}
    for package in packages:
        sdist = allowed.get(package.file.sha256)
        if sdist is None or not sdist.build.requires:
            continue
        pins = resolution.solve(sdist.build.requires, [], target, indexes)
        for tool in _locked(pins, indexes, target):
            needed_by = tool.needed_by or [package.name]
            found[tool.file.sha256] = msgspec.structs.replace(tool, needed_by=needed_by)
    return sorted(found.values(), key=lambda tool: (tool.name, Version(tool.version)))
