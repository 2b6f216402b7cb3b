"""Makes a build context: the lock's lists, envcheck's own wheel with what it needs, and the Dockerfile.

A directory that holds lists already keeps its lock: what is missing beside them is written, and no index is
asked for more than what envcheck itself needs, where that list is missing.
"""

from __future__ import annotations

import os
import platform
from contextlib import ExitStack
from pathlib import Path

import msgspec

from ... import __version__
from ...exit_codes import Cannot, UsageError
from .. import pylock
from ..catalogue.model import Stack
from ..lockfile import Lockfile
from ..mode import InstallOptions, Reporter
from ..pipeline import opened
from ..pythons.interpreter import Interpreter, tags
from ..registry import reference
from ..request import Request
from ..signals import ending_raises
from ..wheels import uv
from . import context_writer, dockerfile, own_lock, own_wheel, requirement_lists
from .own_wheel import OwnWheel

PYLOCK = "pylock.toml"
_GLIBC = "2.17"  # the oldest that the wheels of what envcheck needs have to run on


class _Locked(msgspec.Struct, frozen=True, kw_only=True):
    """A lock as it goes into the directory."""

    stack: Stack
    lock: Lockfile
    digest: str
    files: dict[str, bytes]


def make(request: Request, folder: Path, options: InstallOptions, reporter: Reporter) -> list[str]:
    """Write the context of a wheel stack: the names of its files. Only from the main thread.

    Raises EnvcheckError.
    """
    context_writer.check(folder)
    own = own_wheel.build()
    with ending_raises(), ExitStack() as exits:
        made = _kept(request, folder, options) or _locked(request, options, reporter, exits)
        lock = made.lock
        if tuple(map(int, lock.python.split("."))) < dockerfile.OLDEST:
            raise Cannot(
                f"the Dockerfile's uv makes environments for Python 3.8 and newer, and this lock is for"
                f" {lock.python}",
                "choose a release for a newer Python, or build upon NVIDIA's image: --mode container",
            )
        runs_on = _interpreter(dockerfile.envcheck_python(lock.python), lock.architecture)
        listed = _needs(request, folder, own, runs_on, options, reporter)
    text = dockerfile.render(
        made.stack, lock, dockerfile.DockerfileOptions(envcheck=__version__, digest=made.digest)
    )
    return _written(
        folder, {**made.files, **_itself(own), requirement_lists.ENVCHECK: listed}, text
    )


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
        interpreter = _interpreter(dockerfile.PYTHON, platform.machine())
        listed = _needs(request, folder, own, interpreter, options, reporter)
    text = dockerfile.render_over_image(
        dockerfile.DockerfileOptions(
            envcheck=__version__, digest=requirement_lists.digest(listed), base=image
        )
    )
    return _written(folder, {**_itself(own), requirement_lists.ENVCHECK: listed}, text)


def _with_digest(request: Request, reporter: Reporter) -> str:
    """The request's image as NAME@sha256:DIGEST; "" where it names none."""
    if not request.image or "@sha256:" in request.image:
        return request.image
    from ..network.session import Session
    from ..registry.client import RegistryClient

    reporter.say(f"asking for {request.image}")
    with Session(request.allow_insecure) as session:
        client = RegistryClient(session)
        found = client.resolve(reference.parse(request.image), platform.machine())
    return f"{found.name}@{found.digest}"


def _written(folder: Path, files: dict[str, bytes], text: str) -> list[str]:
    files = {**files, context_writer.UV: _uv().read_bytes(), "Dockerfile": text.encode()}
    context_writer.write(folder, files)
    return sorted(files)


def _uv() -> Path:
    """The program that the build runs: envcheck's own."""
    found = uv.binary()
    if found is None:
        raise Cannot("no uv runs here, and the Dockerfile needs one beside it", "pip install uv")
    return found


def _kept(request: Request, folder: Path, options: InstallOptions) -> _Locked | None:
    """The lock that the directory holds, unless something else is asked for."""
    if options.upgrade or request.stack or request.release or request.lock or request.python:
        return None
    kept = requirement_lists.read(folder)
    if kept is None:
        return None
    names = list(requirement_lists.texts(kept.stack, kept.lock))
    if (folder / PYLOCK).exists():
        names.append(PYLOCK)
    files = {name: (folder / name).read_bytes() for name in names}
    return _Locked(stack=kept.stack, lock=kept.lock, digest=kept.digest, files=files)


def _locked(
    request: Request, options: InstallOptions, reporter: Reporter, exits: ExitStack
) -> _Locked:
    mode = exits.enter_context(opened(request, options, reporter))
    resolved = mode.resolve(mode.fit())
    stack, lock = resolved.choice.stack, resolved.lock
    files = {name: text.encode() for name, text in requirement_lists.texts(stack, lock).items()}
    files[PYLOCK] = b"# written by envcheck\n" + pylock.text(lock).encode()
    return _Locked(stack=stack, lock=lock, digest=pylock.digest(lock), files=files)


def _itself(own: OwnWheel) -> dict[str, bytes]:
    line = f"{own_wheel.DISTRIBUTION}=={__version__} --hash=sha256:{own.sha256}"
    return {requirement_lists.ITSELF: requirement_lists.text([line]).encode(), own.name: own.data}


def _needs(
    request: Request,
    folder: Path,
    own: OwnWheel,
    interpreter: Interpreter,
    options: InstallOptions,
    reporter: Reporter,
) -> bytes:
    """The list of what envcheck needs: the directory's own, where it is for this Python."""
    there = folder / requirement_lists.ENVCHECK
    found = requirement_lists.read_of(there)
    wanted = (__version__, interpreter.minor, interpreter.architecture)
    if (
        found
        and wanted == (found.release, found.python, found.architecture)
        and not options.upgrade
    ):
        return there.read_bytes()
    reporter.say(f"resolving what envcheck itself needs, for Python {interpreter.minor}")
    lock = _resolved(request, own, interpreter, options, reporter)
    packages = [package for package in lock.packages if package.name != "pip"]
    lines = pylock.for_pip(lock, packages).splitlines()
    return requirement_lists.text(lines, requirement_lists.of(lock)).encode()


def _resolved(
    request: Request,
    own: OwnWheel,
    interpreter: Interpreter,
    options: InstallOptions,
    reporter: Reporter,
) -> Lockfile:
    from ..network.public_index import public_index
    from ..network.session import Session

    public = public_index(dict(os.environ))
    with Session(request.allow_insecure) as session:
        return own_lock.lock_of(own, interpreter, request, public=public, session=session)


def _interpreter(python: str, architecture: str) -> Interpreter:
    """A plain CPython of that version: the wheels are chosen for one that need not be on this machine."""
    abi = f"cpython-{python.replace('.', '')}"
    return Interpreter(
        path="python3",
        version=f"{python}.0",
        found_in="the image",
        architecture=architecture,
        tags=tags(python, abi, architecture, _GLIBC),
    )
