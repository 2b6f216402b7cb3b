"""An image in an engine's storage: pulled or loaded, named, and removed."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from ...exit_codes import EnvcheckError, NotPutBack, PutBack
from ..engine import EngineImage
from ..registry.image import Image, PullOptions
from . import image_inspect, pull_command
from .client import FETCHES, WORKS, ask, words
from .pull_command import LOGIN, PullCommand
from .troubles import told

FOLDER = "engine"  # of a version's temporary directory: what an engine writes on its way

Tick = Callable[[list[str]], None]  # called between looks, with the lines that the engine printed


def has(held: EngineImage) -> bool:
    """Whether the engine has the image. Raises CouldNotLook where it does not answer."""
    if _is_file(held):
        return Path(held.image_id).is_file()
    return image_inspect.find(held, held.image_id) is not None


def size(held: EngineImage) -> int:
    """Bytes that the image takes in the engine's storage; 0 for a file of the version's own."""
    stored = None if _is_file(held) else image_inspect.find(held, held.image_id)
    return 0 if stored is None else stored.size


def is_free(held: EngineImage, name: str) -> bool:
    """Whether no image of the engine's has this name. Raises CouldNotLook where it does not answer."""
    return not _is_file(held) and image_inspect.find(held, name) is None


def pull(
    held: EngineImage, image: Image, access: PullOptions, tmp: Path, tick: Tick | None = None
) -> EngineImage:
    """Have the engine pull the image from its registry, and name it.

    tmp: a directory of the version's; what the engine writes on the way lies in its FOLDER, and is
    removed. tick: what it raises ends the engine. Returns ``held`` with the id that this engine knows the
    image by. Raises PutBack.
    """
    with _folder(tmp) as folder:
        result = _run(held, pull_command.pull(held, image, access, folder), folder, tick)
        if not result.ok:
            raise _failed(held, f"could not pull {held.reference}", result, folder)
    return _named(held, image, image.pinned)


def load(
    held: EngineImage, image: Image, archive: Path, tmp: Path, tick: Tick | None = None
) -> EngineImage:
    """The same from an archive. Raises Cannot, PutBack."""
    called = image.tagged
    other = image_inspect.find(held, called) if called and not _is_file(held) else None
    with _folder(tmp) as folder:
        result = _run(held, pull_command.load(held, archive, folder), folder, tick)
        if not result.ok:
            what = f"could not load {held.reference} from {archive}"
            raise _failed(held, what, result, folder)
    loaded = _named(held, image, image.manifest.digest)
    if not _is_file(held):
        _drop_names(loaded)
    if other is not None and other.id != loaded.image_id and not held.name:
        ask(held.program, ["tag", other.id, called])  # the user's image keeps its name
    return loaded


def name(held: EngineImage) -> None:
    """Give the image envcheck's tag, and its own name where that is free. Raises PutBack."""
    for each in filter(None, (held.tag, held.name)):
        result = ask(held.program, ["tag", held.image_id, each])
        if not result.ok:
            raise _failed(held, f"could not tag the image {held.image_id} as {each}", result)


def release(held: EngineImage) -> None:
    """Take envcheck's tag away, and the image, unless it was there before or has another name.

    What is not there is no error. Raises NotPutBack with the command that does it, CouldNotLook where the
    engine does not answer.
    """
    stored = image_inspect.find(held, held.image_id) or image_inspect.find(held, held.tag)
    if stored is None:
        return
    if held.tag in stored.tags:  # it goes last: only an image with this tag is envcheck's
        for each in [held.tag] if held.before else [held.name, held.tag]:
            if each in stored.tags:
                _untag(held, stored, each)
    if held.before or [tag for tag in stored.tags if tag not in (held.tag, held.name)]:
        return
    if image_inspect.find(held, stored.id) is not None:
        _remove(held, ["rmi", stored.id])


def _drop_names(held: EngineImage) -> None:
    """Of the names that an archive gave the image, it keeps envcheck's and its own."""
    if stored := image_inspect.find(held, held.image_id):
        for each in stored.tags:
            if each not in (held.tag, held.name):
                _untag(held, stored, each)


def _untag(held: EngineImage, stored: image_inspect.Stored, tag: str) -> None:
    if held.engine == "podman":
        _remove(held, ["untag", stored.id, tag])
    elif not held.before or [one for one in stored.tags + stored.digests if one != held.tag]:
        _remove(held, ["rmi", tag])  # with docker, an image's last name takes the image along


def _remove(held: EngineImage, arguments: list[str]) -> None:
    result = ask(held.program, arguments, deadline=WORKS)
    if result.ok or image_inspect.gone(words(result)):
        return
    said, hint = told(held.engine, words(result))
    again = f"{held.program} {' '.join(arguments)}"
    raise NotPutBack(
        f"the image {held.reference} in {held.engine}: {said}",
        f"{hint}; then {again}" if hint else again,
    )


def _named(held: EngineImage, image: Image, pulled: str) -> EngineImage:
    """The image under its tag, once it is seen to be the right one; else it is taken back."""
    if _is_file(held):
        if not Path(held.image_id).is_file():
            raise PutBack(f"{held.engine} reported success, but there is no {held.image_id}.")
        return held
    stored = image_inspect.find(held, held.image_id) or image_inspect.find(held, pulled)
    if stored is None:
        raise PutBack(f"{held.engine} reported success, but the image is missing: {held.image_id}.")
    # docker with containerd's image store names an image by its manifest.
    if stored.id not in (image.config.digest, image.manifest.digest):
        with contextlib.suppress(EnvcheckError):
            _remove(held, ["rmi", stored.id])
        raise PutBack(
            f"{held.engine} has the image as {stored.id}, and the registry's manifest says"
            f" {image.config.digest}: it was removed again.",
            "try again; if it happens again, something between envcheck and the engine changes images",
        )
    known = msgspec.structs.replace(held, image_id=stored.id)
    name(known)
    return known


def _run(held: EngineImage, command: PullCommand, folder: Path, tick: Tick | None) -> Any:
    if command.login:
        (folder / LOGIN).write_text(
            command.login, encoding="utf-8"
        )  # the folder is the user's alone
    variables = command.variables
    return ask(held.program, command.arguments, deadline=FETCHES, variables=variables, tick=tick)


def _failed(held: EngineImage, what: str, result: Any, folder: Path | None = None) -> PutBack:
    """folder: where the engine wrote on the way."""
    said, hint = told(held.engine, words(result))
    if folder is not None and "no space left" in said and str(folder) in said:
        hint = "make room there, or name another place: --path DIR"
    return PutBack(f"{held.engine} {what}: {said}.", hint)


@contextlib.contextmanager
def _folder(parent: Path) -> Iterator[Path]:
    """A directory for the engine, removed afterwards with all that a killed one left in it."""
    path = parent / FOLDER
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True, mode=0o700)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _is_file(held: EngineImage) -> bool:
    return held.engine in ("apptainer", "enroot")
