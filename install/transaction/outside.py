"""What a version keeps outside of its directory: an image in an engine, as its ``held.json`` names it.

The engine is asked only where a version has such a file: an environment of wheels costs nothing more.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import msgspec

from ...exit_codes import EnvcheckError, NotPutBack
from .. import durable
from ..engine import EngineImage
from . import file_list, held_file, record, roots
from .file_list import Difference
from .held_file import Unreadable
from .interfaces import RemovalError
from .layout import Root, Version


class ImageStore(Protocol):
    """Knows what an engine holds."""

    def intact(self, held: EngineImage) -> str:
        """ "", or the sentence of what is wrong with it."""

    def release(self, held: EngineImage) -> None:
        """Take envcheck's tag away, and the image, unless it was there before or something else uses it.

        What is not there (any more) is no error: whoever was killed here comes again. Raises RemovalError.
        """


class Engines:
    """The real keeper."""

    def intact(self, held: EngineImage) -> str:
        from ..engines import engine_storage

        if why := held_file.program_trouble(held):
            return f"its image in {held.engine} cannot be looked at: {why}"
        try:
            there = engine_storage.has(held)
        except EnvcheckError as error:
            return f"its image in {held.engine} cannot be looked at: {error}"
        return "" if there else f"its image ({held.reference}) is not in {held.engine} any more"

    def release(self, held: EngineImage) -> None:
        from ..engines import engine_storage

        if why := held_file.program_trouble(held):
            raise RemovalError(
                f"the image {held.tag} in {held.engine}: {why}",
                "where that is the engine you installed, put it on PATH and try again",
            )
        try:
            engine_storage.release(held)
        except NotPutBack as error:
            raise RemovalError(str(error), error.hint) from None
        except EnvcheckError as error:
            raise RemovalError(f"the image {held.tag} in {held.engine}: {error}") from None


keeper: ImageStore = Engines()


def hold(version: Version, held: EngineImage) -> EngineImage:
    """Write down what the engine is about to hold, before it does. Gives what was written. Raises OSError.

    An image that is there because another version of envcheck's brought it was not there before. Called
    again where the engine turns out to know the image by another id.
    """
    brought = [
        other.before
        for one in _others([version])
        if (other := held_by(one)) is not None and _is_same_image(other, held)
    ]
    if brought:
        held = msgspec.structs.replace(held, before=held.before and all(brought))
    durable.write(version.held, msgspec.json.format(msgspec.json.encode(held), indent=1) + b"\n")
    return held


def held_by(version: Version) -> EngineImage | None:
    """What an engine holds for a version; None: nothing, or only envcheck's record of it is unreadable."""
    try:
        return held_file.read(version)
    except Unreadable:
        return None


def intact(version: Version) -> str:
    """ "", or what is wrong with what an engine holds for the version, in a sentence."""
    try:
        held = held_file.read(version)
    except Unreadable:
        return f"{version.held}: this does not say what an engine holds"
    return keeper.intact(held) if held is not None and held.tag else ""


def compare(version: Version) -> Difference:
    """What differs from what was installed, in the version's directory and outside of it."""
    difference = file_list.compare(version)
    if not difference.intact:  # whatever the engine says, which takes longer to ask
        return difference
    return msgspec.structs.replace(difference, outside=intact(version))


def release(version: Version) -> None:
    """Have the engine let go of what it holds for the version. RemovalError has the command for it."""
    try:
        held = held_file.read(version)
    except Unreadable:
        raise RemovalError(
            f"{version.held}: this does not say which image an engine holds",
            f"remove {version.held} and, in the engine, the image tagged {version.id} yourself",
        ) from None
    if held is None or not held.tag:
        return
    others = list(filter(None, map(held_by, _others([version]))))
    if any((other.engine, other.tag) == (held.engine, held.tag) for other in others):
        return  # a version of another root has it by the same name
    if any(_is_same_image(held, other) for other in others):
        held = msgspec.structs.replace(held, before=True)  # also one that has no name for it yet
    try:
        keeper.release(held)
    except RemovalError as left:
        raise RemovalError(str(left), left.hint or _by_hand(version, held)) from None


def image_bytes(versions: Iterable[Version]) -> int:
    """What engines hold for these versions, as their records noted it; each image once."""
    sizes = {}
    for version in versions:
        held = held_by(version)
        if held is not None and held.tag and (noted := record.read(version)) is not None:
            sizes[(held.engine, held.image_id)] = noted.image_bytes
    return sum(sizes.values())


def freed_bytes(versions: list[Version]) -> int:
    """Of those, the bytes of images that go with these versions: nobody else has them."""
    others = list(filter(None, map(held_by, _others(versions))))
    return image_bytes(
        version
        for version in versions
        if (held := held_by(version)) is not None and not _stays(held, others)
    )


def images(versions: list[Version]) -> tuple[list[str], list[str]]:
    """The images that go with these versions, and those that stay, a name each ("…@sha256:… in podman")."""
    others = list(filter(None, map(held_by, _others(versions))))
    helds = [held for held in map(held_by, versions) if held is not None and held.tag]
    names = {f"{held.reference} in {held.engine}": _stays(held, others) for held in helds}
    return [n for n, stays in names.items() if not stays], [n for n, s in names.items() if s]


def _others(versions: list[Version]) -> list[Version]:
    """Every other version there is, also of other roots."""
    these = {version.directory for version in versions}
    paths = {root.path for root in roots.known()} | {path.parent for path in these}
    every = [one for path in sorted(paths) for one in Root(path).versions()]
    return [one for one in every if one.directory not in these]


def _stays(held: EngineImage, others: Iterable[EngineImage]) -> bool:
    return held.before or any(_is_same_image(held, other) for other in others)


def _is_same_image(one: EngineImage, other: EngineImage) -> bool:
    return (one.engine, one.image_id) == (other.engine, other.image_id)


def _by_hand(version: Version, held: EngineImage) -> str:
    return (
        f"{held.program} rmi {held.tag} removes the image; once {held.engine} no longer has it, or is"
        f" removed itself, remove {version.held} and try again"
    )
