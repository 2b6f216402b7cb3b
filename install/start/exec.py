"""envcheck's process becomes the command's: exit codes, signals and the terminal pass by themselves.

No process is started, so the collector's process.py has no part in it; tests/unit/test_walls.py knows it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import NoReturn

from ...exit_codes import NotExecutable, NotFound

_ABSENT = (errno.ENOENT, errno.ENOTDIR)
# Python ignores these, and what is ignored stays so in the program that it becomes.
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)


def become(command: Sequence[str], environment: Mapping[str, str]) -> NoReturn:
    """Become the command, looked up on the PATH of ``environment``. Raises NotFound, NotExecutable."""
    program = lookup(command[0], environment)
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    for number in _IGNORED_BY_PYTHON:
        signal.signal(number, signal.SIG_DFL)
    for handle in range(3):  # what envcheck put in the place of a closed one would not be passed on
        with contextlib.suppress(OSError):
            os.set_inheritable(handle, True)
    try:
        os.execve(program, list(command), dict(environment))
    except (OSError, ValueError) as error:
        raise NotExecutable(f"{program}: cannot be executed: {_why(error)}") from None


def lookup(name: str, environment: Mapping[str, str]) -> str:
    """The file that a shell would execute. Raises NotFound, NotExecutable."""
    if not name:
        raise NotFound("the command is empty")
    unfit = ""
    for path in _candidates(name, environment):
        try:
            mode = os.stat(path).st_mode  # noqa: PTH116 - any name at all
        except (OSError, ValueError) as error:
            if os.sep in name and getattr(error, "errno", None) not in _ABSENT:
                raise NotExecutable(f"{path!r}: cannot be executed: {_why(error)}") from None
            continue
        if stat.S_ISREG(mode) and os.access(path, os.X_OK):
            return path
        if stat.S_ISREG(mode):
            unfit = unfit or f"{path}: exists, and is not executable"
        elif os.sep in name:
            unfit = f"{path}: this is not a program"
    if unfit:
        raise NotExecutable(unfit)
    where = "" if os.sep in name else ", in the environment or elsewhere on PATH"
    raise NotFound(f"{name}: there is no such command{where}")


def _candidates(name: str, environment: Mapping[str, str]) -> Iterator[str]:
    if os.sep in name:
        yield name
        return
    for folder in environment.get("PATH", os.defpath).split(os.pathsep):
        yield os.path.join(folder or os.curdir, name)  # noqa: PTH118 - kept as it is written


def _why(error: Exception) -> str:
    if isinstance(error, ValueError):
        return "its name, an argument or a variable holds a null byte"
    assert isinstance(error, OSError)
    if error.errno == errno.ENOENT:
        return "the interpreter that its first line names, or its loader, is not there"
    return error.strerror or str(error)
