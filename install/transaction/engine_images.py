"""The image that an engine holds for a version, as the version's ``held.json`` names it, checked.

Only where a version has such a file an engine is asked to remove what it names.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from ...exit_codes import EnvcheckError, NotPutBack
from .. import durable
from ..engine import EngineImage
from . import roots
from .layout import Root, Version

_PREFIX = "localhost/envcheck/"
_IMAGE_ID = re.compile(r"sha256:[0-9a-f]{64}")
# Beside PATH's, as the collector looks for programs.
_USUAL = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/snap/bin"


class Unreadable(Exception):
    """``held.json`` is there, and does not name what an engine holds for this version."""


class Freed(NamedTuple):
    """Images by name: "…@sha256:… in podman"."""

    images: list[str]  # that are removed with the versions
    kept: list[str]  # that were there before, or that another version has


def tag_of(environment: str, version_id: str) -> str:
    """envcheck's own name of an image in an engine, whatever its environment is called."""
    name = re.sub(r"[^a-z0-9]+", "-", environment.lower()).strip("-") or "environment"
    return f"{_PREFIX}{name}:{_as_tag(version_id)}"


def read(version: Version) -> EngineImage | None:
    """Raises Unreadable for what envcheck does not write there: no other image is ever removed."""
    try:
        image = durable.load(version.held, EngineImage)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError):
        raise Unreadable from None
    if not (
        image.reference.isprintable()
        and _IMAGE_ID.fullmatch(image.image_id)
        and re.fullmatch(rf"{_PREFIX}[a-z0-9-]+:{re.escape(_as_tag(version.id))}", image.tag)
        and image.name.rpartition(":")[0] in ("", image.reference.partition("@")[0])
    ):
        raise Unreadable
    return image


def of(version: Version) -> EngineImage | None:
    """The same; None also where the record of it is unreadable."""
    with suppress(Unreadable):
        return read(version)
    return None


def hold(version: Version, image: EngineImage) -> EngineImage:
    """Write down what the engine is about to hold, before it does, and return that. Raises OSError.

    An image that another version of envcheck's brought was not there before. Called again where the engine
    knows the image by another id.
    """
    brought = [other.before for other in _of_others([version]) if _is_same(other, image)]
    if brought:
        image = msgspec.structs.replace(image, before=image.before and all(brought))
    if image.before:  # the user's image keeps the names that it has
        image = msgspec.structs.replace(image, name="")
    durable.dump(version.held, image)
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
    if image is None:
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
    """Have the engine remove what it holds for the version, if it has it. Raises NotPutBack.

    released: versions that still exist and need their images no longer.
    """
    try:
        image = read(version)
    except Unreadable:
        raise NotPutBack(
            f"{version.held}: this does not say which image an engine holds",
            f"remove {version.held} and, in the engine, the image tagged {version.id} yourself",
        ) from None
    if image is None:
        return
    others = _of_others([version, *released])
    if any((other.engine, other.tag) == (image.engine, image.tag) for other in others):
        return  # a version of another root has it by the same name
    if any(_is_same(image, other) for other in others):
        image = msgspec.structs.replace(image, before=True)  # only its name goes
    what = f"the image {image.tag} in {image.engine}"
    if why := _program_trouble(image):
        hint = "where that is the engine you installed, put it on PATH and try again"
        raise NotPutBack(f"{what}: {why}", hint)
    from ..engines import engine_storage

    try:
        engine_storage.release(image)
    except EnvcheckError as error:
        own = isinstance(error, NotPutBack)
        by_hand = (
            f"{image.program} rmi {image.tag} removes the image; once {image.engine} no longer has it, or"
            f" is removed itself, remove {version.held} and try again"
        )
        raise NotPutBack(
            str(error) if own else f"{what}: {error}", (error.hint if own else "") or by_hand
        ) from None


def freed(versions: list[Version]) -> Freed:
    """What engines remove when these versions are removed."""
    others = _of_others(versions)
    found = Freed([], [])
    for image in filter(None, map(of, versions)):
        stays = image.before or any(_is_same(image, other) for other in others)
        names = found.kept if stays else found.images
        name = f"{image.reference} in {image.engine}"
        if name not in names:
            names.append(name)
    return found


def _program_trouble(image: EngineImage) -> str:
    """ "", or why the program is not started: a record does not decide what runs on this machine."""
    path = Path(image.program)
    folders = f"{os.environ.get('PATH', '')}:{_USUAL}".split(":")
    if path.name == image.engine and str(path.parent) in folders and path.is_absolute():
        return ""
    return f"{image.program!r} is no {image.engine} in a directory of PATH, and is not started"


def _as_tag(version_id: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]", "-", version_id)


def _of_others(without: list[Version]) -> list[EngineImage]:
    """The images of every other version, also of other roots."""
    excepted = {version.directory for version in without}
    paths = {root.path for root in roots.known()} | {path.parent for path in excepted}
    every = [one for path in sorted(paths) for one in Root(path).versions()]
    return [image for one in every if one.directory not in excepted and (image := of(one))]


def _is_same(one: EngineImage, other: EngineImage) -> bool:
    return (one.engine, one.image_id) == (other.engine, other.image_id)
