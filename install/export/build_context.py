"""Makes a build context: the lock's lists, envcheck's own wheel with what it needs, and the Dockerfile.

A directory that holds lists already keeps its lock: what is missing beside them is written, and no index is
asked for more than what envcheck itself needs, where that list is missing.
"""

from __future__ import annotations

import platform
from contextlib import AbstractContextManager
from pathlib import Path

from ... import __version__
from ...exit_codes import Cannot, UsageError
from .. import pylock
from ..mode import Reporter
from ..network.session import Session
from ..pythons.interpreter import Interpreter
from ..registry import reference
from ..registry.client import RegistryClient
from ..request import InstallOptions, Request
from ..signals import ending_raises
from ..wheels import uv
from ..wheels.mode import WheelMode
from . import (
    context_writer,
    destinations,
    dockerfile,
    own_requirements,
    own_wheel,
    requirement_lists,
)
from .own_wheel import OwnWheel
from .requirement_lists import ENVCHECK, ITSELF

_PYLOCK = "pylock.toml"
_GLIBC = "2.17"  # the oldest that the wheels of what envcheck needs have to run on


def make(
    opened: AbstractContextManager[WheelMode],
    request: Request,
    folder: Path,
    options: InstallOptions,
    reporter: Reporter,
) -> list[str]:
    """Write the context of a wheel stack: the names of its files. Only from the main thread.

    opened: the request's mode, entered where a lock has to be made. Raises EnvcheckError.
    """
    context_writer.check(folder)
    own = own_wheel.build()
    named = request.stack or request.release or request.lock or request.python
    locked = None if options.upgrade or named else requirement_lists.read(folder)
    files: dict[str, bytes] = {}
    with ending_raises():
        if locked is None:
            with opened as mode:
                resolved = mode.resolve(mode.fit())
                lock = resolved.lock
            locked = requirement_lists.of_lock(resolved.choice.stack, lock)
            files = {name: text.encode() for name, text in locked.texts.items()}
            files[_PYLOCK] = b"# written by envcheck\n" + pylock.text(lock).encode()
        else:
            kept = [folder / name for name in (*locked.texts, _PYLOCK)]
            files = {path.name: path.read_bytes() for path in kept if path.exists()}
        python = locked.of.python
        if dockerfile.minor_numbers(python) < dockerfile.OLDEST:
            raise Cannot(
                f"the Dockerfile's uv makes environments for Python 3.8 and newer, and this lock is for"
                f" {python}",
                "choose a release for a newer Python, or build upon NVIDIA's image: --mode container",
            )
        runs_on = destinations.interpreter(
            dockerfile.envcheck_python(python), _GLIBC, locked.of.architecture
        )
        files[ENVCHECK], _ = _needs(request, folder, own, runs_on, options, reporter)
    return _write(folder, own, files, dockerfile.render(locked))


def make_over(
    request: Request, folder: Path, options: InstallOptions, reporter: Reporter
) -> list[str]:
    """The same for an image that has its framework already: the request's, or the pinned one. A tag is
    resolved to the digest that it has today."""
    if request.image:
        reference.parse(request.image)
    context_writer.check(folder)
    if requirement_lists.held(folder) is not None:
        raise UsageError(f"--dockerfile {folder}: this directory holds the lists of a wheel stack")
    own = own_wheel.build()
    with ending_raises():
        image = _with_digest(request, reporter)
        runs_on = destinations.interpreter(dockerfile.PYTHON, _GLIBC, platform.machine())
        needs, digest = _needs(request, folder, own, runs_on, options, reporter)
    return _write(folder, own, {ENVCHECK: needs}, dockerfile.render_over_image(digest, image))


def _with_digest(request: Request, reporter: Reporter) -> str:
    """The request's image as NAME@sha256:DIGEST; "" where it names none."""
    if not request.image or "@sha256:" in request.image:
        return request.image
    reporter.say(f"asking for {request.image}")
    with Session(request.allow_insecure) as session:
        client = RegistryClient(session)
        found = client.resolve(reference.parse(request.image), platform.machine())
    return f"{found.name}@{found.digest}"


def _needs(
    request: Request,
    folder: Path,
    own: OwnWheel,
    interpreter: Interpreter,
    options: InstallOptions,
    reporter: Reporter,
) -> tuple[bytes, str]:
    """The list of what envcheck needs, and its lock's digest: the directory's own, where it is for this
    Python."""
    there = folder / ENVCHECK
    of = requirement_lists.read_of(there)
    wanted = (__version__, interpreter.minor, interpreter.architecture)
    if of and wanted == (of.release, of.python, of.architecture) and not options.upgrade:
        return there.read_bytes(), of.digest
    reporter.say(f"resolving what envcheck itself needs, for Python {interpreter.minor}")
    with Session(request.allow_insecure) as session:
        lock = own_requirements.locked(own, interpreter, request, session)
    of = requirement_lists.summary(lock)
    return requirement_lists.text(own_requirements.lines(lock), of).encode(), of.digest


def _write(folder: Path, own: OwnWheel, files: dict[str, bytes], text: str) -> list[str]:
    program = uv.binary()
    if program is None:
        raise Cannot("no uv runs here, and the Dockerfile needs one beside it", "pip install uv")
    files = {
        **files,
        ITSELF: requirement_lists.text([own.requirement]).encode(),
        own.name: own.data,
        context_writer.UV: program.read_bytes(),
        "Dockerfile": text.encode(),
    }
    context_writer.write(folder, files)
    return sorted(files)
