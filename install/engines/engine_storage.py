"""An image in an engine's storage: taken in, named, and let go of."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec

from ...exit_codes import EnvcheckError, NotPutBack, PutBack
from ..engine import EngineImage
from ..registry.image import Image
from . import image_inspect, orders
from .client import FETCHES, WORKS, ask, surroundings, words
from .troubles import told

Tick = Callable[[], None]


class Mirror(orders.Mirror, Protocol):
    """What the pull sees of images/mirror.py's server."""

    @property
    def errors(self) -> Sequence[Exception]:
        """What went wrong behind it, the first first."""


def has(held: EngineImage) -> bool:
    """Whether the engine has the image. Raises CouldNotLook where it does not answer."""
    if _is_file(held):
        return Path(held.image_id).is_file()
    return image_inspect.find(held, held.image_id) is not None


def size(held: EngineImage) -> int:
    """Bytes that the image takes in the engine's storage; 0 for a file of the version's own."""
    stored = None if _is_file(held) else image_inspect.find(held, held.image_id)
    return 0 if stored is None else stored.size


def pull(
    held: EngineImage,
    image: Image,
    mirror: Mirror,
    tmp: Path,
    tick: Tick | None = None,
    *,
    there: bool | None = None,
) -> EngineImage:
    """Have the engine take the image from the mirror, unless it has it, and give it envcheck's tag.

    tmp: a directory of the version's, for what the engine writes on the way; all of it is removed. tick:
    called between looks; what it raises ends the engine. there: whether the engine has it, where that was
    asked a moment ago. Returns ``held`` with the id that this engine
    knows the image by. Raises what went wrong behind the mirror, else PutBack.
    """

    def look() -> None:
        if mirror.errors:
            raise mirror.errors[0]
        if tick is not None:
            tick()

    if has(held) if there is None else there:
        return _named(held, image, held.image_id)
    secret = mirror.repository.partition("/")[0]
    name = orders.at_mirror(image, mirror) if held.engine == "docker" else image.pinned
    with _folder(tmp) as folder:
        order = orders.pull(held, image, mirror, folder)
        result = _run(held, order, folder, look)
    if mirror.errors:
        raise mirror.errors[0]
    if not result.ok:
        raise _failed(held, f"could not take {held.reference}", result, secret, folder)
    try:
        return _named(held, image, name)
    finally:
        if held.engine == "docker":
            ask(held.program, ["rmi", "--no-prune", name])


def load(
    held: EngineImage, image: Image, archive: Path, tmp: Path, tick: Tick | None = None
) -> EngineImage:
    """The same from an archive. Raises Cannot, PutBack."""
    with _folder(tmp) as folder:
        result = _run(held, orders.load(held, archive, folder), folder, tick)
    if not result.ok:
        raise _failed(
            held, f"could not take {held.reference} from {archive}", result, folder=folder
        )
    return _named(held, image, image.manifest.digest)


def tag(held: EngineImage) -> None:
    """Give the image envcheck's own name. Raises PutBack."""
    result = ask(held.program, ["tag", held.image_id, held.tag])
    if not result.ok:
        raise _failed(held, f"could not tag the image {held.image_id} as {held.tag}", result)


def release(held: EngineImage) -> None:
    """Take envcheck's tag away, and the image, unless it was there before or has another name.

    What is not there is no error. Raises NotPutBack with the command that does it, CouldNotLook where the
    engine does not answer.
    """
    stored = image_inspect.find(held, held.image_id) or image_inspect.find(held, held.tag)
    if stored is None:
        return
    if held.tag in stored.tags:
        _untag(held, stored)
    if held.before or [name for name in stored.tags if name != held.tag]:
        return
    if image_inspect.find(held, stored.id) is not None:
        _remove(held, ["rmi", stored.id])


def _untag(held: EngineImage, stored: image_inspect.Stored) -> None:
    if held.engine == "podman":
        _remove(held, ["untag", stored.id, held.tag])
    elif not held.before or [name for name in stored.tags + stored.digests if name != held.tag]:
        _remove(held, ["rmi", held.tag])  # with docker, an image's last name takes the image along


def _remove(held: EngineImage, arguments: list[str]) -> None:
    result = ask(held.program, arguments, deadline=WORKS)
    if result.ok or image_inspect.gone(words(result)):
        return
    sentence, hint = told(held.engine, words(result))
    again = f"{held.program} {' '.join(arguments)}"
    raise NotPutBack(
        f"the image {held.reference} in {held.engine}: {sentence}",
        f"{hint}; then {again}" if hint else again,
    )


def _named(held: EngineImage, image: Image, name: str) -> EngineImage:
    """The image under its tag, once it is seen to be the right one; else it is taken back."""
    if _is_file(held):
        if not Path(held.image_id).is_file():
            raise PutBack(f"{held.engine} reported success, but there is no {held.image_id}.")
        return held
    stored = image_inspect.find(held, held.image_id) or image_inspect.find(held, name)
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
    tag(known)
    return known


def _run(held: EngineImage, order: orders.Order, folder: Path, look: Tick | None) -> Any:
    for name, text in order.files.items():
        (folder / name).write_text(text, encoding="utf-8")
    env = surroundings(**order.variables)
    return ask(held.program, order.arguments, deadline=FETCHES, env=env, look=look)


def _failed(
    held: EngineImage, what: str, result: Any, secret: str = "", folder: Path | None = None
) -> PutBack:
    """folder: where the engine wrote on the way."""
    sentence, hint = told(held.engine, words(result), secret)
    if folder is not None and sentence.startswith("there is no space") and str(folder) in sentence:
        hint = "make room there, or name another place: --path DIR"
    return PutBack(f"{held.engine} {what}: {sentence}.", hint)


@contextlib.contextmanager
def _folder(parent: Path) -> Iterator[Path]:
    """A directory for the engine, removed afterwards with all that a killed one left in it."""
    path = parent / "engine"
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True, mode=0o700)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _is_file(held: EngineImage) -> bool:
    return held.engine in ("apptainer", "enroot")
