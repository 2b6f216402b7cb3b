"""The image that an engine holds for a version, as the version's ``held.json`` names it, checked.

Engines are asked to remove what it says, and only where a version has such a file: an environment of wheels
never starts one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from ...exit_codes import EnvcheckError, NotPutBack
from .. import durable
from ..engine import EngineImage
from . import kept_images, roots
from .kept_images import IMAGE_ID, PREFIX
from .layout import Root, Version

_FILES = ("apptainer",)  # whose image is a file of the version's directory, without a tag
# Beside PATH's, as the collector looks for programs.
_USUAL = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/snap/bin"


class Unreadable(Exception):
    """``held.json`` is there, and does not say what an engine holds for this version."""


def tag_of(environment: str, version_id: str) -> str:
    """envcheck's own name of an image in an engine, whatever its environment is called."""
    name = re.sub(r"[^a-z0-9]+", "-", environment.lower()).strip("-") or "environment"
    return f"{PREFIX}{name}:{_as_tag(version_id)}"


def read(version: Version) -> EngineImage | None:
    """Raises Unreadable."""
    try:
        image = durable.load(version.held, EngineImage)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError):
        raise Unreadable from None
    if not image.reference.isprintable() or not _may_be_ours(version, image):
        raise Unreadable
    return image


def of(version: Version) -> EngineImage | None:
    """The same; None also where only the record of it is unreadable."""
    try:
        return read(version)
    except Unreadable:
        return None


def hold(version: Version, image: EngineImage) -> EngineImage:
    """Write down what the engine is about to hold, before it does. Gives what was written. Raises OSError.

    An image that is there because another version of envcheck's brought it was not there before. Called
    again where the engine turns out to know the image by another id.
    """
    brought = [other.before for other in _of_others([version]) if _is_same(other, image)]
    if brought:
        image = msgspec.structs.replace(image, before=image.before and all(brought))
    if image.before:  # the user's image keeps the names that it has
        image = msgspec.structs.replace(image, name="")
    durable.write(version.held, msgspec.json.format(msgspec.json.encode(image), indent=1) + b"\n")
    return image


def gave(engine: str, name: str) -> bool:
    """Whether a version of envcheck's has given an image in this engine this name."""
    return bool(name) and any((one.engine, one.name) == (engine, name) for one in _of_others([]))


def trouble(version: Version) -> str:
    """ "", or what is wrong with what an engine holds for the version, in a sentence."""
    try:
        image = read(version)
    except Unreadable:
        return f"{version.held}: this does not say what an engine holds"
    if image is None or not image.tag:
        return ""
    from ..engines import engine_storage

    why = _program_trouble(image)
    try:
        if not why and not engine_storage.has(image):
            return f"its image ({image.reference}) is not in {image.engine} any more"
    except EnvcheckError as error:
        why = str(error)
    return f"its image in {image.engine} cannot be looked at: {why}" if why else ""


def release(version: Version, released: Iterable[Version] = ()) -> None:
    """Have the engine let go of what it holds for the version. Raises NotPutBack with the command for it.

    What the engine does not have (any more) is no error: whoever was killed here comes again. released:
    versions that are still there and need their images no longer.
    """
    try:
        image = read(version)
    except Unreadable:
        raise NotPutBack(
            f"{version.held}: this does not say which image an engine holds",
            f"remove {version.held} and, in the engine, the image tagged {version.id} yourself",
        ) from None
    if image is not None and image.tag:
        _let_go(image, _of_others([version, *released]), version.held)


def keep(version: Version) -> str:
    """Leave what was pulled for a version that is about to go in its engine, and write that down.

    Gives a sentence about it; "" where there is nothing to keep, or it cannot be written down.
    """
    image = of(version)
    if image is None or not image.tag or image.before:
        return ""
    try:
        kept_images.keep(image)
    except OSError:  # the disk is full, as a rule: then the image goes with the version
        return ""
    return f"the image stays in {image.engine} and is not fetched again; envcheck prune removes it"


def take_over(version: Version) -> None:
    """The image of an installed version is kept by that version alone."""
    image = of(version)
    for kept in kept_images.every():
        if image is not None and _is_same(kept, image):
            with suppress(EnvcheckError, OSError):  # prune does it
                drop_kept(kept, [image])


def drop_kept(kept: EngineImage, taken: Sequence[EngineImage] = ()) -> None:
    """Have the engine let go of a kept image, unless a version has it. taken: what versions have, also where
    their root is not among the known ones. Raises NotPutBack, OSError."""
    others = [one for one in kept_images.every() if not _is_same(one, kept)]
    _let_go(kept, [*taken, *_of_versions([]), *others], None)
    kept_images.forget(kept)


def _let_go(image: EngineImage, others: list[EngineImage], written: Path | None) -> None:
    """others: what everybody else has. written: where the image is written down."""
    if any((other.engine, other.tag) == (image.engine, image.tag) for other in others):
        return  # a version of another root has it by the same name
    if any(_is_same(image, other) for other in others):
        image = msgspec.structs.replace(image, before=True)  # also one that has no name for it yet
    what = f"the image {image.tag} in {image.engine}"
    if why := _program_trouble(image):
        hint = "where that is the engine you installed, put it on PATH and try again"
        raise NotPutBack(f"{what}: {why}", hint)
    from ..engines import engine_storage

    by_hand = f"{image.program} rmi {image.tag} removes the image"
    if written is not None:
        by_hand += (
            f"; once {image.engine} no longer has it, or is removed itself, remove {written} and try"
            " again"
        )
    try:
        engine_storage.release(image)
    except NotPutBack as error:
        raise NotPutBack(str(error), error.hint or by_hand) from None
    except EnvcheckError as error:
        raise NotPutBack(f"{what}: {error}", by_hand) from None


class Freed(NamedTuple):
    """Images by name: "…@sha256:… in podman"."""

    images: list[str]  # that go with the versions
    left: list[str]  # that stay: they were there before, or another version has them


def freed(versions: list[Version]) -> Freed:
    """What engines let go of when these versions are removed."""
    others = _of_others(versions)
    images: dict[str, None] = {}
    left: dict[str, None] = {}
    for version in versions:
        image = of(version)
        if image is None or not image.tag:
            continue
        stays = image.before or any(_is_same(image, other) for other in others)
        (left if stays else images)[named(image)] = None
    return Freed(list(images), list(left))


def named(image: EngineImage) -> str:
    """For people: "nvcr.io/nvidia/tensorflow@sha256:… in podman"."""
    return f"{image.reference} in {image.engine}"


def _program_trouble(image: EngineImage) -> str:
    """ "", or why the program is not started: a record does not say what runs on this machine."""
    path = Path(image.program)
    folders = f"{os.environ.get('PATH', '')}:{_USUAL}".split(":")
    if path.name == image.engine and str(path.parent) in folders and path.is_absolute():
        return ""
    return f"{image.program!r} is no {image.engine} in a directory of PATH, and is not started"


def _may_be_ours(version: Version, image: EngineImage) -> bool:
    """Whether it names an image by envcheck's own tag of this version, or a file: that goes with it."""
    if image.engine in _FILES:
        return not image.tag
    ours = rf"{PREFIX}[a-z0-9-]+:{re.escape(_as_tag(version.id))}"
    known_as = image.reference.partition("@")[0]
    return bool(
        IMAGE_ID.fullmatch(image.image_id)
        and re.fullmatch(ours, image.tag)
        and image.name.rpartition(":")[0] in ("", known_as)
    )


def _as_tag(version_id: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]", "-", version_id)


def _of_others(versions: list[Version]) -> list[EngineImage]:
    """The images of every other version, and those that are kept for none."""
    return [*_of_versions(versions), *kept_images.every()]


def _of_versions(without: list[Version]) -> list[EngineImage]:
    """The images of every version there is but these, also of other roots."""
    excepted = {version.directory for version in without}
    paths = {root.path for root in roots.known()} | {path.parent for path in excepted}
    every = [one for path in sorted(paths) for one in Root(path).versions()]
    return [image for one in every if one.directory not in excepted and (image := of(one))]


def _is_same(one: EngineImage, other: EngineImage) -> bool:
    return (one.engine, one.image_id) == (other.engine, other.image_id)
