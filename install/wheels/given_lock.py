"""A lock that was made elsewhere: whether it is for this machine, and where its indexes have the files."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from packaging.utils import parse_wheel_filename
from packaging.version import Version

from ...exit_codes import Cannot, CouldNotLook, UsageError
from ..fit.models import Choice
from ..lockfile import LockedPackage, Lockfile
from ..pythons.interpreter import Interpreter
from . import resolution, sdists
from .indexes import Indexes
from .pins import NoSolution, Pin, Target


def check(lock: Lockfile, choice: Choice, where: str) -> None:
    """Raises UsageError for another stack's lock, Cannot where it is for another Python than the chosen."""
    if choice.stack.name != lock.stack:
        raise UsageError(f"{where} is a lock of {lock.stack}, and not of {choice.stack.name}")
    if choice.candidate.interpreter is not None:
        check_fits(lock, choice.candidate.interpreter, where)
    elif choice.candidate.python_to_get != lock.python:
        raise Cannot(
            f"{where} is for Python {lock.python}, and this would be for Python"
            f" {choice.candidate.python_to_get}",
            f"--python {lock.python}",
        )


def check_fits(lock: Lockfile, interpreter: Interpreter, where: str) -> None:
    """Raises Cannot where the lock is for another Python, architecture or C library than the machine's."""
    if interpreter.architecture != lock.architecture:
        raise Cannot(
            f"{where} is for {lock.architecture}, and this machine's Python is"
            f" {interpreter.architecture}"
        )
    if interpreter.minor != lock.python:
        raise Cannot(
            f"{where} is for Python {lock.python}, and {interpreter.path} is {interpreter.version}",
            f"--python names another interpreter; or make one for Python {interpreter.minor}",
        )
    taken = set(interpreter.tags)
    for file in [package.file for package in lock.packages if package.file.kind == "wheel"]:
        tags = {str(tag) for tag in parse_wheel_filename(file.name)[3]}
        if taken and not taken & tags:
            raise Cannot(
                f"{where} holds {file.name}, which {interpreter.path} (Python {interpreter.version},"
                f" {interpreter.tags[0]}) cannot take",
                "make one on a machine with the same Python and a C library that is not newer",
            )


def located(lock: Lockfile, interpreter: Interpreter | None, indexes: Indexes) -> Lockfile:
    """The lock with its files' addresses at this machine's indexes; what is installed stays the same.

    Raises UsageError, with both hashes, where an index has another file under the same name;
    CouldNotLook where it has none; Cannot for a source distribution that the stack does not name.
    """
    target = Target.of(lock.python, interpreter)
    there: dict[tuple[str, str], Pin] = {}
    for part in _without_twins([*lock.packages, *lock.building]):
        named = [
            sdists.allowed(one.name, one.version, one.file, indexes.stack)
            for one in part
            if one.file.kind == "sdist"
        ]
        exact = [f"{one.name}=={one.version}" for one in part]
        try:
            pins = resolution.exactly(exact, named, target, indexes)
        except NoSolution as error:
            raise _not_available(part[0], str(error)) from None
        there |= {(pin.name, str(Version(pin.version))): pin for pin in pins}

    def here(package: LockedPackage) -> LockedPackage:
        file = package.file
        pin = there[package.name, str(Version(package.version))]
        same = next((one for one in pin.files if one.name == file.name), None)
        if same is None:
            raise _not_available(package, f"{pin.index} does not have it")
        if same.sha256 and same.sha256 != file.sha256:
            raise UsageError(
                f"the lock disagrees with the index: {file.name} has sha256 {file.sha256} in the lock,"
                f" and {same.sha256} at the index",
                "take a lock from the same index, or name that index with --index; nothing was touched",
            )
        size = same.size if file.size is None else file.size
        file = msgspec.structs.replace(file, url=same.url, size=size)
        return msgspec.structs.replace(package, file=file)

    return msgspec.structs.replace(
        lock, packages=list(map(here, lock.packages)), building=list(map(here, lock.building))
    )


def _without_twins(packages: Sequence[LockedPackage]) -> list[list[LockedPackage]]:
    """In parts that hold each package in one version; two sdists may be built with two setuptools."""
    parts: list[dict[str, LockedPackage]] = []
    for package in packages:
        part = next((part for part in parts if package.name not in part), None)
        if part is None:
            parts.append(part := {})
        part[package.name] = package
    return [list(part.values()) for part in parts]


def _not_available(package: LockedPackage, why: str) -> CouldNotLook:
    return CouldNotLook(
        f"{package.file.name}, which the lock names, is not available: {why}",
        f"it was locked from {package.index}: --index names an index",
    )
