"""Makes a build context: the lock's lists, envcheck's own wheel with what it needs, and the Dockerfile.

A directory that holds lists already keeps its lock: what is missing beside them is written, and no index is
asked for more than what envcheck itself needs, where that list is missing.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import msgspec

from ... import __version__
from ...exit_codes import Cannot, UsageError
from ...reports import dockerfile
from ...reports.dockerfile import inside, options
from .. import places, pylock
from ..catalogue.model import Stack
from ..lockfile import Lockfile
from ..pythons import wheel_tags
from ..pythons.interpreter import Interpreter
from ..registry import reference
from ..request import Request
from ..signals import ending_raises
from ..store.progress import Fetching
from . import context_writer as writing
from . import own_lock as needs
from . import own_wheel
from . import requirement_lists as listing
from .own_wheel import OwnWheel

PYLOCK = "pylock.toml"
_GLIBC = "2.17"  # envcheck's own wheels have to run wherever a base may come from

Say = Callable[[str], None]


class How(msgspec.Struct, frozen=True, kw_only=True):
    """How it is made, and who is told how far it is."""

    upgrade: bool = False  # resolve again what the directory holds already
    jobs: int = 8  # downloads at once
    say: Say
    fetching: Callable[[Fetching], None]


class _Locked(msgspec.Struct, frozen=True, kw_only=True):
    """A lock as it goes into the directory."""

    stack: Stack
    lock: Lockfile
    digest: str
    files: dict[str, bytes]


def make(request: Request, folder: Path, how: How) -> list[str]:
    """Write the context of a wheel stack: the names of its files. Only from the main thread.

    Raises EnvcheckError.
    """
    writing.check(folder)
    own = own_wheel.build()
    with ending_raises(), ExitStack() as exits:
        made = _kept(request, folder, how) or _locked(request, how, exits)
        lock = made.lock
        context = _context(lock.python, lock.architecture)
        runs_on = context.standalone.python if context.standalone else lock.python
        listed = _needs(request, folder, own, _interpreter(runs_on, lock.architecture), how)
    text = dockerfile.render(
        made.stack,
        lock,
        dockerfile.Options(envcheck=__version__, digest=made.digest, context=context),
    )
    return _written(folder, {**made.files, **_itself(own), inside.NEEDS: listed}, text)


def make_over(request: Request, folder: Path, how: How) -> list[str]:
    """The same for an image that has its framework already: the request's (NAME@sha256:DIGEST), or the
    pinned one."""
    image = request.image
    if image:
        reference.parse(image)
    if image and "@sha256:" not in image:
        raise UsageError(
            f"--image {image}: a Dockerfile is built upon a digest, because a tag moves",
            hint=f"{image}@sha256:… with the digest that the registry names",
        )
    writing.check(folder)
    if listing.held(folder) is not None:
        raise UsageError(f"--dockerfile {folder}: this directory holds the lists of a wheel stack")
    own = own_wheel.build()
    architecture = platform.machine()
    brought = options.standalone(architecture)
    if brought is None:
        raise Cannot(f"no Python that envcheck could bring to an image of {architecture} is known")
    with ending_raises():
        interpreter = _interpreter(brought.python, architecture)
        listed = _needs(request, folder, own, interpreter, how)
    context = dockerfile.Context(standalone=brought)
    text = dockerfile.render_over(
        dockerfile.Options(
            envcheck=__version__, digest=listing.digest(listed), base=image, context=context
        )
    )
    return _written(folder, {**_itself(own), inside.NEEDS: listed}, text)


def _written(folder: Path, files: dict[str, bytes], text: str) -> list[str]:
    files = {**files, "Dockerfile": text.encode()}
    writing.write(folder, files)
    return sorted(files)


def _kept(request: Request, folder: Path, how: How) -> _Locked | None:
    """The lock that the directory holds, unless something else is asked for."""
    if how.upgrade or request.stack or request.release or request.lock or request.python:
        return None
    kept = listing.read(folder)
    if kept is None:
        return None
    names = list(listing.texts(kept.stack, kept.lock))
    if (folder / PYLOCK).exists():
        names.append(PYLOCK)
    files = {name: (folder / name).read_bytes() for name in names}
    return _Locked(stack=kept.stack, lock=kept.lock, digest=kept.digest, files=files)


def _locked(request: Request, how: How, exits: ExitStack) -> _Locked:
    from ..running import prepare

    prepared = prepare.prepare(request, how.jobs, how.say, how.fetching, exits)
    stack, lock = prepared.choice.stack, prepared.lock
    files = {name: text.encode() for name, text in listing.texts(stack, lock).items()}
    files[PYLOCK] = b"# written by envcheck\n" + pylock.text(lock).encode()
    return _Locked(stack=stack, lock=lock, digest=pylock.digest(lock), files=files)


def _context(python: str, architecture: str) -> dockerfile.Context:
    """Raises Cannot where neither the base's Python is new enough nor another is known."""
    if not options.is_too_old(python):
        return dockerfile.Context()
    brought = options.standalone(architecture)
    if brought is None:
        raise Cannot(
            f"envcheck needs Python 3.10 or newer, the image has {python}, and for {architecture} no other"
            " is known",
            hint="--dockerfile without a directory makes an image without envcheck",
        )
    return dockerfile.Context(standalone=brought)


def _itself(own: OwnWheel) -> dict[str, bytes]:
    line = f"{own_wheel.DISTRIBUTION}=={__version__} --hash=sha256:{own.sha256}"
    return {inside.ITSELF: listing.text([line]).encode(), own.name: own.data}


def _needs(
    request: Request, folder: Path, own: OwnWheel, interpreter: Interpreter, how: How
) -> bytes:
    """The list of what envcheck needs: the directory's own, where it is for this Python."""
    there = folder / inside.NEEDS
    found = listing.read_of(there)
    wanted = (__version__, interpreter.minor, interpreter.architecture)
    if found and wanted == (found.release, found.python, found.architecture) and not how.upgrade:
        return there.read_bytes()
    how.say(f"resolving what envcheck itself needs, for Python {interpreter.minor}")
    lock = _resolved(request, own, interpreter, how)
    packages = [package for package in lock.packages if package.name != "pip"]
    lines = pylock.for_pip(lock, packages).splitlines()
    return listing.text(lines, listing.of(lock)).encode()


def _resolved(request: Request, own: OwnWheel, interpreter: Interpreter, how: How) -> Lockfile:
    from ..network.public_index import public_index
    from ..network.session import Session
    from ..store.fetch import Fetcher
    from ..store.fetch_rate import Meter
    from ..store.store import Store

    store = Store(places.store())
    with (
        Session(request.allow_insecure) as session,
        Fetcher(store, session, how.jobs, Meter(how.fetching)) as fetcher,
    ):
        return needs.lock_of(
            own,
            interpreter,
            request,
            public=public_index(dict(os.environ)),
            session=session,
            store=store,
            fetcher=fetcher,
        )


def _interpreter(python: str, architecture: str) -> Interpreter:
    """A plain CPython of that version: the wheels are chosen for one that need not be on this machine."""
    abi = f"cpython-{python.replace('.', '')}"
    return Interpreter(
        path="python3",
        version=f"{python}.0",
        found_in="the image",
        architecture=architecture,
        tags=wheel_tags.tags(python, abi, architecture, _GLIBC),
    )
