"""Puts an image and envcheck itself into one archive or directory, for a machine without a network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from ... import __version__
from ...exit_codes import CouldNotLook
from .. import places, survey
from ..bundle import writing
from ..bundle.index import BundleIndex, Entry
from ..bundle.writing import Content
from ..fit.machine import machine_of
from ..fit.models import ImageChoice
from ..fit.select import choose_image
from ..images import layers, layout_writer
from ..lockfile import LockedFile
from ..network.session import Session
from ..registry import client as registry
from ..registry import reference
from ..registry.image import Image
from ..request import Request
from ..signals import ending_raises
from ..store.fetch import Fetcher
from ..store.fetch_rate import Meter
from ..store.progress import Fetching
from ..store.store import Store
from ..survey import Machine
from . import own_lock as needs
from . import own_parts, own_wheel

Say = Callable[[str], None]


def make(
    request: Request,
    output: Path,
    *,
    pythons: Sequence[str] = (),
    jobs: int = 8,
    say: Say,
    fetching: Callable[[Fetching], None],
) -> BundleIndex:
    """Write a bundle with the image for machines like this one. Only from the main thread.

    pythons: as ``own_parts.interpreters`` takes them. Raises EnvcheckError.
    """
    writing.check(output)
    own = own_wheel.build()
    runners = own_parts.interpreters(pythons, own.requires_python)
    store = Store(places.store())
    with ending_raises(), ExitStack() as exits:
        session = exits.enter_context(Session(request.allow_insecure))
        fetcher = exits.enter_context(Fetcher(store, session, jobs, Meter(fetching)))
        say("looking at this machine")
        machine = survey.look(request)
        choice = choose_image(request, machine.snapshot)
        say(f"asking for {choice.candidate.release.reference}")
        image = registry.resolve(
            session, reference.parse(choice.candidate.release.reference), _architecture(machine)
        )
        say(f"resolving what envcheck itself needs, for Python {own_parts.listed(list(runners))}")
        assert machine.public is not None, "a bundle is not made from a bundle"
        tools = {
            minor: needs.lock_of(
                own, one, request,
                public=machine.public, session=session,
            )
            for minor, one in runners.items()
        }  # fmt: skip
        remove = exits.enter_context(layers.in_use(store))
        wanted = registry.layers(image)
        missing = [file for file in wanted if not store.has(file.sha256)]
        files = [*wanted, *own_parts.files(tools)]
        _check_room(output, store, files, missing)
        say(f"fetching {len(wanted)} layers and {len(files) - len(wanted)} files")
        fetcher.want_all(files)
        fetcher.wait()
        contents = layout_writer.contents(image, lambda blob: store.path(blob.sha256))
        contents |= own_parts.contents(own, tools, store.path, "container", output)
        manifest = _manifest(choice, image, list(tools), _architecture(machine), contents)
        say(f"writing {output}")
        writing.write(output, manifest, contents)
        remove(file.sha256 for file in missing)  # gigabytes that no other image has
    return manifest


def _architecture(machine: Machine) -> str:
    found = machine_of(machine.snapshot).architecture
    if not found:
        raise CouldNotLook(
            "this machine's architecture is not known, and so not which image is for it"
        )
    return found


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
        files={name: Entry(c.sha256, c.size) for name, c in sorted(contents.items())},
    )
