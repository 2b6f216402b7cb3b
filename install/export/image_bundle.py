"""Puts an image and envcheck itself into one archive or directory, for a machine without a network."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

from ... import __version__
from .. import places
from ..bundle import writing
from ..bundle.index import BundleFile, BundleIndex
from ..bundle.writing import Content
from ..fit.models import ImageChoice
from ..images import layout_writer
from ..images.mode import ImageMode
from ..lockfile import LockedFile
from ..mode import InstallOptions, Reporter
from ..network.public_index import public_index
from ..pipeline import opened
from ..registry.image import Image
from ..request import Request
from ..store.fetch import Fetcher
from ..store.progress import Meter
from ..store.store import NoLocks, Store, take
from . import own_lock as needs
from . import own_parts, own_wheel


def make(
    request: Request,
    output: Path,
    *,
    pythons: Sequence[str] = (),
    jobs: int = 8,
    reporter: Reporter,
) -> BundleIndex:
    """Write a bundle with the image for machines like this one. Only from the main thread.

    pythons: as ``own_parts.interpreters`` takes them. Raises EnvcheckError.
    """
    say = reporter.say
    writing.check(output)
    own = own_wheel.build()
    runners = own_parts.interpreters(pythons, own.requires_python)
    store, options = Store(places.store()), InstallOptions(jobs=jobs)
    with opened(request, options, reporter) as mode, ExitStack() as exits:
        assert isinstance(mode, ImageMode), "the request names a container"
        fetcher = exits.enter_context(Fetcher(store, mode.session, jobs, Meter(reporter.fetching)))
        choice = mode.fit()
        image, client = mode.pin(choice)
        assert client is not None, "a bundle is not made from a bundle"
        say(f"resolving what envcheck itself needs, for Python {own_parts.listed(list(runners))}")
        public = public_index(dict(os.environ))
        tools = {
            minor: needs.lock_of(own, one, request, public=public, session=mode.session)
            for minor, one in runners.items()
        }
        _alone(store, exits, say)
        wanted = client.layers(image)
        missing = [file for file in wanted if not store.has(file.sha256)]
        files = [*wanted, *own_parts.files(tools)]
        _check_room(output, store, files, missing)
        say(f"fetching {len(wanted)} layers and {len(files) - len(wanted)} files")
        fetcher.want_all(files)
        fetcher.wait()
        contents = layout_writer.contents(image, lambda blob: store.path(blob.sha256))
        contents |= own_parts.contents(own, tools, store.path, "container", output)
        manifest = _manifest(choice, image, list(tools), mode.architecture, contents)
        say(f"writing {output}")
        writing.write(output, manifest, contents)
        for file in missing:  # gigabytes that no other image has
            store.remove(file.sha256)
    return manifest


def _alone(store: Store, exits: ExitStack, say: Callable[[str], None]) -> None:
    """One at a time: its end removes layers from the store that another may be about to read."""
    path = store.root / "locks" / "layers"
    with suppress(OSError, NoLocks):  # whoever writes to the store says what is wrong with it
        store.make_room_for(path)
        lock = take(path)
        if lock is None:
            say("waiting for another envcheck that writes an image into a bundle")
            lock = take(path, -1)
        if lock is not None:
            exits.callback(lock.release)


def _check_room(
    output: Path, store: Store, files: Sequence[LockedFile], missing: Sequence[LockedFile]
) -> None:
    """Raises Cannot. On the way a layer is there twice: in the store, and in what is written."""
    needed = sum(file.size or 0 for file in files)
    cache = next(folder for folder in (store.root, *store.root.parents) if folder.is_dir())
    if cache.stat().st_dev == output.parent.stat().st_dev:
        needed += sum(file.size or 0 for file in missing)
    writing.check_room(output, needed)


def _manifest(
    choice: ImageChoice,
    image: Image,
    pythons: list[str],
    architecture: str,
    contents: dict[str, Content],
) -> BundleIndex:
    return BundleIndex(
        mode="container",
        envcheck=__version__,
        stack=choice.stack.name,
        release=choice.candidate.release.release,
        image=image.reference,
        digest=image.manifest.digest,
        architecture=architecture,
        created_at=image.created_at,
        pythons=pythons,
        files={name: BundleFile(c.sha256, c.size) for name, c in sorted(contents.items())},
    )
