"""Puts everything for a machine without a network into one directory or tar.

That is: the packages of a stack with their lock, or an image; and envcheck itself with all that it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from pathlib import Path
from typing import Any

import msgspec
import tomli_w

from ... import __version__
from .. import places, pylock
from ..bundle import writing
from ..bundle.index import FILES, LOCK, STACK, BundleFile, BundleIndex
from ..bundle.writing import Content
from ..fit.models import Choice
from ..images import layout_writer
from ..images.mode import ImageMode
from ..lockfile import LockedFile, Lockfile
from ..mode import Mode, Reporter
from ..store.fetch import Fetcher
from ..store.progress import Meter
from ..store.store import NoLocks, Store, take
from ..wheels.mode import WheelMode
from . import own_requirements, own_wheel


class _Part(msgspec.Struct, frozen=True, kw_only=True):
    """What a mode puts into a bundle."""

    index: BundleIndex  # without the files, and without envcheck itself
    files: list[LockedFile]  # to fetch
    contents: Callable[[], dict[str, Content]]  # once they are fetched


def make(
    opened: AbstractContextManager[Mode],
    output: Path,
    *,
    pythons: Sequence[str] = (),
    jobs: int = 8,
    reporter: Reporter,
) -> BundleIndex:
    """Write a bundle for machines like this one. Only from the main thread. Raises EnvcheckError.

    opened: the request's mode, which looks at this machine when it is entered. pythons: as
    ``own_requirements.interpreters`` takes them.
    """
    writing.check(output)
    own = own_wheel.build()
    runners = own_requirements.interpreters(pythons, own.requires_python)
    store = Store(places.store())
    with opened as mode, ExitStack() as exits:
        assert isinstance(mode, WheelMode | ImageMode)
        if isinstance(mode, WheelMode):
            part, fetcher = _packages(mode, store), mode.fetcher
        else:
            _alone(store, exits, reporter.say)
            part = _image(mode, store)
            meter = Meter(reporter.fetching)
            fetcher = exits.enter_context(Fetcher(store, mode.session, jobs, meter))
        reporter.say(f"resolving what envcheck itself needs, for Python {', '.join(runners)}")
        locks = {
            minor: own_requirements.locked(own, one, mode.request, mode.session)
            for minor, one in runners.items()
        }
        missing = [file for file in part.files if not store.has(file.sha256)]
        wanted = [*part.files, *own_requirements.files(locks)]
        check_room(output, store, wanted, missing)
        reporter.say(f"fetching {len(wanted)} files")
        fetcher.want_all(wanted)
        fetcher.wait()
        contents = part.contents()
        contents |= own_requirements.contents(own, locks, store, part.index.mode, output)
        listed = {name: BundleFile(c.sha256, c.size) for name, c in sorted(contents.items())}
        index = msgspec.structs.replace(part.index, pythons=list(locks), files=listed)
        reporter.say(f"writing {output}")
        writing.write(output, index, contents)
        for file in missing if index.mode == "container" else []:
            store.remove(file.sha256)  # gigabytes that no other image has
    return index


def _packages(mode: WheelMode, store: Store) -> _Part:
    resolved = mode.resolve(mode.fit())
    lock = resolved.lock

    def contents() -> dict[str, Content]:
        made = {f"{FILES}/{file.name}": Content.stored(store, file) for file in lock.files}
        made[LOCK] = Content.of(pylock.text(lock).encode())
        made[STACK] = Content.of(stack_text(resolved.choice).encode())
        return made

    return _Part(index=index_of(lock), files=resolved.downloads.files, contents=contents)


def index_of(lock: Lockfile) -> BundleIndex:
    """Without the files, and without envcheck itself."""
    return BundleIndex(
        envcheck=__version__,
        stack=lock.stack,
        release=lock.release,
        python=lock.python,
        architecture=lock.architecture,
        created_at=lock.created_at,
        pythons=[],
        files={},
    )


def _image(mode: ImageMode, store: Store) -> _Part:
    choice = mode.fit()
    image, client = mode.pin(choice)
    assert client is not None, "a bundle is not made from a bundle"
    index = BundleIndex(
        envcheck=__version__,
        mode="container",
        stack=choice.stack.name,
        release=choice.candidate.release.release,
        image=image.reference,
        digest=image.manifest.digest,
        architecture=mode.architecture,
        created_at=image.created_at,
        pythons=[],
        files={},
    )
    return _Part(
        index=index,
        files=client.layers(image),
        contents=lambda: layout_writer.contents(image, lambda blob: store.path(blob.sha256)),
    )


def _alone(store: Store, exits: ExitStack, say: Callable[[str], None]) -> None:
    """One image at a time: its end removes layers from the store that another may be about to read."""
    path = store.root / "locks" / "layers"
    with suppress(OSError, NoLocks):  # whoever writes to the store says what is wrong with it
        store.make_room_for(path)
        lock = take(path)
        if lock is None:
            say("waiting for another envcheck that writes an image into a bundle")
            lock = take(path, -1)
        if lock is not None:
            exits.callback(lock.release)


def check_room(
    output: Path, store: Store, files: Sequence[LockedFile], missing: Sequence[LockedFile]
) -> None:
    """Raises Cannot. On the way a file is there twice: in the store, and in what is written."""
    needed = sum(file.size or 0 for file in files)
    cache = next(folder for folder in (store.root, *store.root.parents) if folder.is_dir())
    if cache.stat().st_dev == output.parent.stat().st_dev:
        needed += sum(file.size or 0 for file in missing)
    writing.check_room(output, needed)


def stack_text(choice: Choice) -> str:
    """The stack as TOML, as it was chosen from: of its releases, the one."""
    stack = msgspec.structs.replace(choice.stack, releases=[choice.candidate.release])
    filled: dict[str, Any] = _filled(msgspec.to_builtins(stack))
    return tomli_w.dumps(filled)


def _filled(value: Any) -> Any:
    """Without what says nothing: "", 0, [] and {}. What is false stays, and says so."""
    if isinstance(value, dict):
        return {key: _filled(one) for key, one in value.items() if one or one is False}
    return [_filled(one) for one in value] if isinstance(value, list) else value
