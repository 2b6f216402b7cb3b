"""What is checked of a lock that was brought along, and which indexes it names."""

from __future__ import annotations

from collections.abc import Sequence

from packaging.utils import parse_wheel_filename

from ...exit_codes import Cannot
from ..catalogue.model import PUBLIC, Index, Stack
from ..lockfile import Lockfile
from ..pythons.interpreter import Interpreter


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
