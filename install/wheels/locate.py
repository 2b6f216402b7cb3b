"""Where this machine's indexes have the files of a lock that was made elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from packaging.version import Version

from ...exit_codes import CouldNotLook, UsageError
from ..catalogue.model import Sdist, Stack
from ..lockfile import LockedPackage, Lockfile
from ..pythons.interpreter import Interpreter
from . import resolution, sdists
from .indexes import Indexes
from .pins import NoSolution, Pin, Target


def located(lock: Lockfile, interpreter: Interpreter | None, indexes: Indexes) -> Lockfile:
    """The lock with its files' addresses at this machine's indexes; what is installed stays the same.

    Raises UsageError, with both hashes, where an index has another file under the same name;
    CouldNotLook where it has none.
    """
    target = Target.of(lock.python, interpreter)
    there: dict[tuple[str, str], Pin] = {}
    for part in _without_twins([*lock.packages, *lock.building]):
        exact = [f"{one.name}=={one.version}" for one in part]
        try:
            pins = resolution.exactly(exact, _sdists(part, indexes.stack), target, indexes)
        except NoSolution as error:
            raise _not_available(part[0], str(error)) from None
        there |= {(pin.name, str(Version(pin.version))): pin for pin in pins}
    other: list[str] = []

    def here(package: LockedPackage) -> LockedPackage:
        file = package.file
        pin = there[package.name, str(Version(package.version))]
        same = next((one for one in pin.files if one.name == file.name), None)
        if same is None:
            raise _not_available(package, f"{pin.index} does not have it")
        if same.sha256 and same.sha256 != file.sha256:
            other.append(
                f"{file.name} has sha256 {file.sha256} in the lock, and {same.sha256} at the index"
            )
        size = same.size if file.size is None else file.size
        return msgspec.structs.replace(
            package, file=msgspec.structs.replace(file, url=same.url, size=size)
        )

    packages, building = list(map(here, lock.packages)), list(map(here, lock.building))
    if other:
        more = f" (and {len(other) - 1} more)" if len(other) > 1 else ""
        raise UsageError(
            f"the lock disagrees with the index: {other[0]}{more}",
            "take a lock from the same index, or name that index with --index; nothing was touched",
        )
    return msgspec.structs.replace(lock, packages=packages, building=building)


def _without_twins(packages: Sequence[LockedPackage]) -> list[list[LockedPackage]]:
    """In parts that hold each package in one version; two sdists may be built with two setuptools."""
    parts: list[dict[str, LockedPackage]] = []
    for package in packages:
        part = next((part for part in parts if package.name not in part), None)
        if part is None:
            parts.append(part := {})
        part[package.name] = package
    return [list(part.values()) for part in parts]


def _sdists(packages: Sequence[LockedPackage], stack: Stack) -> list[Sdist]:
    """Those of the stack that these packages are locked as. Raises Cannot for one that it does not name."""
    return [
        sdists.allowed(one.name, one.version, one.file, stack)
        for one in packages
        if one.file.kind == "sdist"
    ]


def _not_available(package: LockedPackage, why: str) -> CouldNotLook:
    return CouldNotLook(
        f"{package.file.name}, which the lock names, is not available: {why}",
        f"it was locked from {package.index}: --index names an index",
    )
