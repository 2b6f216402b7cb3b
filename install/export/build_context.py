"""Makes a build context: the lock's lists, envcheck's wheel with what it needs, uv, and the Dockerfile."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from ...exit_codes import Cannot
from .. import pylock
from ..bundle import writing
from ..bundle.writing import Content
from ..mode import Reporter
from ..network.access import Access
from ..request import Request
from ..signals import ending_raises
from ..wheels import uv
from ..wheels.mode import WheelMode
from . import (
    destinations,
    dockerfile,
    own_requirements,
    own_wheel,
    requirement_lists,
)
from .own_wheel import OwnWheel
from .requirement_lists import ENVCHECK, ITSELF

_OPTION = "--dockerfile"
_GLIBC = "2.17"  # the oldest that the wheels of what envcheck needs have to run on


def make(
    opened: AbstractContextManager[WheelMode],
    request: Request,
    folder: Path,
    reporter: Reporter,
) -> list[str]:
    """Write the context: the names of its files. Only from the main thread. Raises EnvcheckError.

    opened: the request's mode.
    """
    writing.check(folder, option=_OPTION)
    own = own_wheel.build()
    with ending_raises():
        with opened as mode:
            resolved = mode.resolve(mode.fit())
            stack, lock = resolved.choice.stack, resolved.lock
        if dockerfile.minor_numbers(lock.python) < dockerfile.OLDEST:
            raise Cannot(
                f"the Dockerfile's uv makes environments for Python 3.8 and newer, and this lock is for"
                f" {lock.python}",
                "choose a release for a newer Python, or take NVIDIA's image: Dockerfiles/ngc.Dockerfile",
            )
        lists = requirement_lists.of_lock(stack, lock)
        files = {one.name: requirement_lists.text(one.lines) for one in lists}
        files["pylock.toml"] = b"# written by envcheck\n" + pylock.text(lock).encode()
        python = dockerfile.envcheck_python(lock.python)
        files[ENVCHECK] = _needs(request, own, python, lock.architecture, reporter)
    text = dockerfile.render(stack, lock, lists, pylock.digest(lock))
    return _write(folder, own, files, text)


def _needs(
    request: Request, own: OwnWheel, python: str, architecture: str, reporter: Reporter
) -> bytes:
    """The list of what envcheck needs."""
    reporter.say(f"resolving what envcheck itself needs, for Python {python}")
    interpreter = destinations.interpreter(python, _GLIBC, architecture)
    lock = own_requirements.locked(own, interpreter, request, Access(request.allow_insecure))
    return requirement_lists.text(own_requirements.lines(lock))


def _write(folder: Path, own: OwnWheel, files: dict[str, bytes], text: str) -> list[str]:
    program = uv.binary()
    if program is None:
        raise Cannot("no uv runs here, and the Dockerfile needs one beside it", "pip install uv")
    files = {
        **files,
        ITSELF: requirement_lists.text([own.requirement]),
        own.name: own.data,
        "envcheck-uv": program.read_bytes(),
        "Dockerfile": text.encode(),
    }
    contents = {name: Content.of(data) for name, data in files.items()}
    writing.put(folder, contents, option=_OPTION)
    return sorted(files)
