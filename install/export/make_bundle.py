"""Puts everything for a machine without a network into one directory or tar.

That is: a stack's packages with their lock and their Python, or an image; and envcheck with what it needs.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

import msgspec
from filelock import FileLock, Timeout

from ... import __version__, scratch
from ...exit_codes import Cannot, CouldNotLook
from .. import pipeline, places, pylock, survey
from ..bundle import writing
from ..bundle.index import BundleIndex
from ..downloads import Downloads
from ..fit import select
from ..fit.models import Choice
from ..images import layout_writer
from ..images.mode import ImageMode
from ..mode import Reporter
from ..progress import Meter
from ..pythons.interpreter import Interpreter
from ..request import InstallOptions, Request
from ..wheels import given_lock
from . import bundle_parts, elsewhere, own_python, own_requirements, own_wheel
from .destinations import Destinations
from .own_python import OwnPython


def make(
    request: Request,
    output: Path,
    *,
    wanted: Destinations,
    jobs: int = 8,
    reporter: Reporter,
) -> BundleIndex:
    """Write a bundle for these machines. Only from the main thread. Raises EnvcheckError."""
    writing.check(output, request.mode)
    own = own_wheel.build()
    interpreters = wanted.of_envcheck()
    with pipeline.prepared(request):
        if request.mode == "container":
            runners = own_requirements.runners(interpreters, own.requires_python)
            return _of_image(request, output, runners, jobs, reporter)
        with elsewhere.ElsewhereShop(request, jobs, reporter) as shop:
            return _of_wheels(request, output, wanted, shop, reporter)


def _of_wheels(
    request: Request,
    output: Path,
    wanted: Destinations,
    shop: elsewhere.ElsewhereShop,
    reporter: Reporter,
) -> BundleIndex:
    given = pylock.read(Path(request.lock)) if request.lock else None
    if given is not None:
        stack, release = request.stack or given.stack, given.release
        request = msgspec.structs.replace(request, stack=stack, release=release)
        wanted = msgspec.structs.replace(wanted, own=wanted.own or given.python)
    choice = _chosen(request, wanted, shop, reporter)
    if given is not None:
        given_lock.check(given, choice, request.lock)
    lock = given or shop.lock(choice)
    with scratch.directory() as folder:
        python = _own_python(lock.python, wanted, folder, reporter)
        interpreters = [*wanted.of_envcheck(), wanted.with_python(lock.python)]
        return shop.write(
            output,
            bundle_parts.index_of(lock),
            own_requirements.runners(interpreters, shop.own_python),
            lock,
            bundle_parts.stack_text(choice),
            python=python,
        )


def _chosen(
    request: Request, wanted: Destinations, shop: elsewhere.ElsewhereShop, reporter: Reporter
) -> Choice:
    """The newest release for these machines. Raises Cannot where none fits, or each needs another one."""
    snapshots = wanted.machines
    if not snapshots:
        reporter.say("looking at this machine")
        snapshots = {"": survey.collecting().result().snapshot}
    interpreters = wanted.of_stack()
    request = msgspec.structs.replace(request, python="")
    choices = [
        select.choose(request, snapshot, interpreters, [], shop.answers)
        for snapshot in snapshots.values()
    ]
    first = choices[0]
    for one in choices[1:]:
        if (one.stack.name, one.candidate.release) != (first.stack.name, first.candidate.release):
            raise Cannot(
                f"{first.stack.name} {first.candidate.release.release} fits one of these machines best, and"
                f" {one.stack.name} {one.candidate.release.release} another",
                "name the stack and the release, or make a bundle for each of them",
            )
    return first


def _own_python(
    minor: str, wanted: Destinations, folder: Path, reporter: Reporter
) -> OwnPython | None:
    """None where uv cannot get it."""
    reporter.say(f"getting Python {minor}, for machines that have none")
    try:
        return own_python.get(minor, wanted.architecture, folder)
    except CouldNotLook as error:
        reporter.say(f"the bundle carries no Python of its own: {error}")
        return None


def _of_image(
    request: Request,
    output: Path,
    runners: dict[str, Interpreter],
    jobs: int,
    reporter: Reporter,
) -> BundleIndex:
    own = own_wheel.build()
    with ExitStack() as exits:
        mode = ImageMode(request, InstallOptions(jobs=jobs), reporter, exits)
        _alone(exits, reporter.say)
        choice = mode.fit()
        image, client = mode.pin(choice)
        assert client is not None, "a bundle is not made from a bundle"
        layers = client.layers(image)
        downloads = Downloads(mode.session, jobs)
        locks = own_requirements.locks(own, runners, request, mode.session, reporter)
        missing = [file for file in layers if not downloads.has(file)]
        files = [*layers, *own_requirements.files(locks)]
        bundle_parts.check_room(output, files, missing)
        reporter.say(f"fetching {len(files)} files")
        Downloads(client.registry_of(image), jobs).fetch(layers, Meter(reporter.progress))
        downloads.fetch(files, Meter(reporter.progress))
        paths = {file.sha256: downloads.path(file) for file in layers}
        contents = layout_writer.contents(image, lambda blob: paths[blob.sha256])
        index = BundleIndex(
            envcheck=__version__,
            mode="container",
            stack=choice.stack.name,
            release=choice.candidate.release.release,
            image=image.reference,
            digest=image.manifest.digest,
            architecture=mode.architecture,
            created_at=image.created_at,
            pythons=list(locks),
            files={},
        )
        contents |= own_requirements.contents(own, locks, downloads, index, output)
        index = bundle_parts.write(output, index, contents, reporter)
        downloads.discard(missing)  # gigabytes that no other image has
    return index


def _alone(exits: ExitStack, say: Callable[[str], None]) -> None:
    """One image at a time: its end removes layers that another may be about to read."""
    folder = places.downloads()
    lock = FileLock(folder / "layers.lock")
    with suppress(OSError, NotImplementedError):  # a file system without locks
        folder.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            say("waiting for another envcheck that writes an image into a bundle")
            lock.acquire()
        exits.callback(lock.release)
