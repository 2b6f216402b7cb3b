"""From the choice to the lockfile: every package's version, and the one file of it that is installed.

uv resolves at the real indexes. Which file is taken is decided here, by the interpreter's tags.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from datetime import datetime, timezone
from itertools import chain

import msgspec
from packaging.requirements import Requirement
from packaging.tags import Tag, create_compatible_tags_selector
from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import Version

from ...exit_codes import Cannot, CouldNotLook
from ..catalogue.model import Stack
from ..catalogue.pythons import seed
from ..fit.models import Choice
from ..lockfile import LockedFile, LockedPackage, Lockfile
from ..network.session import Session
from ..network.transport import pieces
from ..pythons.interpreter import tags
from . import origin, resolution
from .indexes import Indexes
from .pins import PROJECT, NoSolution, OfferedFile, Pin, Target

Selector = Callable[[Iterable[tuple[OfferedFile, AbstractSet[Tag]]]], Iterator[OfferedFile]]


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


def best_file(files: Iterable[OfferedFile], select: Selector) -> OfferedFile | None:
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
    if not listed:
        major, minor = target.minor.split(".")
        flavour = "m" if (int(major), int(minor)) < (3, 8) else ""  # pymalloc's mark, until 3.7
        abi = f"cpython-{major}{minor}{flavour}"
        listed = tags(target.minor, abi, target.architecture, target.glibc)
    return create_compatible_tags_selector([Tag(*tag.split("-")) for tag in listed])


def _locked(pins: Sequence[Pin], indexes: Indexes, target: Target) -> list[LockedPackage]:
    """The pins with the one file of each that fits best, and its hash."""
    select = selector(target)

    found = []
    for pin in pins:
        best = best_file(pin.files, select)
        if best is None:
            raise CouldNotLook(f"no file of {pin.name} {pin.version} fits this Python")
        file = _hashed(best, indexes.session)
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


def _hashed(file: OfferedFile, session: Session) -> LockedFile:
    """The file with its sha256: where its index gives another hash or none, it is fetched once.

    Nothing vouches for the first file but the connection to the index; from then on, the lock does. Raises
    CouldNotLook where it has not the hash or the size that the index gives.
    """
    locked = LockedFile(name=file.name, url=file.url, sha256=file.sha256, size=file.size)
    if file.sha256:
        return locked
    algorithm, _, expected = file.other_hash.partition("=")
    sums = [hashlib.sha256(), *([hashlib.new(algorithm)] if algorithm else [])]
    size = 0
    with session.get(file.url, headers={"Accept-Encoding": "identity"}, file=True) as response:
        for piece in pieces(response):
            size += len(piece)
            for checksum in sums:
                checksum.update(piece)
    found = [(f"{size} bytes", f"{file.size if file.size is not None else size} bytes")]
    if algorithm:
        found.append((f"the {algorithm} {sums[1].hexdigest()}", f"the {algorithm} {expected}"))
    for has, says in found:
        if has != says:
            raise CouldNotLook(f"{session.public(file.url)} has {has}, and its index says {says}")
    return msgspec.structs.replace(locked, sha256=sums[0].hexdigest(), size=size)


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
