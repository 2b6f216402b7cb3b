"""envcheck's process becomes the command's: exit codes, signals and the terminal pass by themselves.

No process is started, so the collector's process.py has no part in it; tests/unit/test_walls.py knows it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
from collections.abc import Mapping, Sequence
from typing import NoReturn

from ...exit_codes import NotExecutable, NotFound

# Python ignores these, and what is ignored stays so in the program that it becomes.
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)


def become(command: Sequence[str], environment: Mapping[str, str]) -> NoReturn:
    """Become the command, looked up on the PATH of ``environment``. Raises NotFound, NotExecutable."""
    name = command[0]
    if not name:
        raise NotFound("the command is empty")
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    for number in _IGNORED_BY_PYTHON:
        signal.signal(number, signal.SIG_DFL)
    for handle in range(3):  # what envcheck put in the place of a closed one would not be passed on
        with contextlib.suppress(OSError):
            os.set_inheritable(handle, True)
    try:
        os.execvpe(name, list(command), dict(environment))
    except (FileNotFoundError, NotADirectoryError):
        if shutil.which(name, path=environment.get("PATH")) is None:
            where = "" if os.sep in name else ", in the environment or elsewhere on PATH"
            raise NotFound(f"{name}: there is no such command{where}") from None
        why = "the interpreter that its first line names, or its loader, is not there"
    except OSError as error:
        why = error.strerror or str(error)
    except ValueError:
        why = "its name, an argument or a variable holds a null byte"
    raise NotExecutable(f"{name}: cannot be executed: {why}")
