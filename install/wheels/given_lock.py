"""Whether a lock that was made elsewhere is for this machine."""

from __future__ import annotations

from packaging.utils import parse_wheel_filename

from ...exit_codes import Cannot, UsageError
from ..fit.models import Choice
from ..lockfile import Lockfile
from ..pythons.interpreter import Interpreter


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
