"""Where a lock comes from: the indexes' answers, a file, or a bundle; and what is checked of it."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol
from urllib.parse import urlsplit, urlunsplit

import msgspec
from packaging.utils import parse_wheel_filename

from ...exit_codes import Cannot, CouldNotLook, UsageError
from ..catalogue.model import PUBLIC, Index, Stack
from ..index.simple import ProjectFile
from ..lockfile import LockedPackage, Lockfile
from ..pythons.interpreter import Interpreter

_AT_ONCE = 8  # pages


class Pages(Protocol):
    """Of the open index, what checking a lock needs."""

    def project(self, name: str) -> list[ProjectFile] | None: ...
    def explain(self, name: str) -> str: ...


def located(lock: Lockfile, pages: Pages) -> Lockfile:
    """The lock with its files' addresses at this machine's indexes; what is installed stays the same.

    Raises UsageError, with both hashes, where an index has another file under the same name;
    CouldNotLook where it has none.
    """
    packages = [*lock.packages, *lock.building]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        found = list(pool.map(lambda package: _at_the_index(package, pages), packages))
    there = [package for package, _why in found if package is not None]
    other = [why for package, why in found if package is None]
    if other:
        more = f" (and {len(other) - 1} more)" if len(other) > 1 else ""
        raise UsageError(
            f"the lock disagrees with the index: {other[0]}{more}",
            "take a lock from the same index, or name that index with --index; nothing was touched",
        )
    replace = msgspec.structs.replace
    split = len(lock.packages)
    return replace(lock, packages=there[:split], building=there[split:])


def _at_the_index(package: LockedPackage, pages: Pages) -> tuple[LockedPackage | None, str]:
    """(the package with its file's address there, ""), or (None, how the two differ)."""
    file = package.file
    offered = pages.project(package.name)
    same = [one for one in offered or [] if one.filename == file.name]
    if not same:
        why = pages.explain(package.name) or "the index does not have it"
        raise CouldNotLook(
            f"{file.name}, which the lock names, is not available: {why}",
            f"it was locked from {package.index}: --index names an index",
        )
    told = same[0].sha256
    if told and told != file.sha256:
        return None, f"{file.name} has sha256 {file.sha256} in the lock, and {told} at the index"
    here = msgspec.structs.replace(
        file, url=_plain(same[0].url), size=file.size if file.size is not None else same[0].size
    )
    return msgspec.structs.replace(package, file=here), ""


def _plain(url: str) -> str:
    """Without fragment and credentials, which the session finds again by the host."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], fragment=""))


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
    for package in lock.packages if taken else []:
        file = package.file
        if file.kind == "wheel" and not taken & {
            str(t) for t in parse_wheel_filename(file.name)[3]
        }:
            raise Cannot(
                f"{where} holds {file.name}, which {interpreter.path} ({_platform(interpreter)}) cannot"
                " take",
                "make one on a machine with the same Python and a C library that is not newer",
            )


def _platform(interpreter: Interpreter) -> str:
    """The best platform that its tags name: "manylinux_2_17_x86_64"."""
    best = interpreter.tags[0] if interpreter.tags else ""
    return f"Python {interpreter.version}, {best.partition('-')[2].partition('-')[2]}"


def public_of(stack: Stack, lock: Lockfile) -> str:
    """The public index that a lock was made with; "" where all is from the stack's own."""
    for package in lock.packages:
        if index_name(stack.indexes, package.name) == PUBLIC:
            return package.index
    return ""


def index_name(indexes: Sequence[Index], package: str) -> str:
    """Which of a stack's indexes claims a package, else the public one."""
    for index in indexes:
        if index.claims(package):
            return index.name
    return PUBLIC
