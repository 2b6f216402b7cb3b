"""The image that an engine holds for a version, as the version's ``held.json`` names it, checked.

Only where a version has such a file an engine is asked to remove what it names.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from ...exit_codes import EnvcheckError, NotPutBack
from .. import durable
from ..engine import EngineImage
from .layout import Version

PREFIX = "localhost/envcheck/"
_IMAGE_ID = re.compile(r"sha256:[0-9a-f]{64}")
# Beside PATH's, as the collector looks for programs.
_USUAL = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/snap/bin"


class Unreadable(Exception):
    """``held.json`` is there, and does not name what an engine holds for this version."""


def tag_of(root: Path, version_id: str) -> str:
    """The one version's own name of an image in an engine, whatever its environment is called."""
    name = re.sub(r"[^a-z0-9]+", "-", root.name.lower()).strip("-") or "environment"
    return f"{PREFIX}{name}-{sha256(os.fsencode(root)).hexdigest()[:8]}:{_as_tag(version_id)}"


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
        and re.fullmatch(rf"{PREFIX}[a-z0-9-]+:{re.escape(_as_tag(version.id))}", image.tag)
    ):
        raise Unreadable
    return image


def of(version: Version) -> EngineImage | None:
    """The same; None also where the record of it is unreadable."""
    with suppress(Unreadable):
        return read(version)
    return None


def hold(version: Version, image: EngineImage) -> None:
    """Write down what the engine is about to hold, before it does. Raises OSError.

    Called again where the engine knows the image by another id.
    """
    durable.dump(version.held, image)


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


def release(version: Version) -> str:
    """Have the engine remove what it holds for the version, if it has it. Raises NotPutBack.

    Returns the image's name ("…@sha256:… in podman"); "" where it stays under another name, or was there
    before.
    """
    try:
        image = read(version)
    except Unreadable:
        raise NotPutBack(
            f"{version.held}: this does not say which image an engine holds",
            f"remove {version.held} and, in the engine, the image tagged {version.id} yourself",
        ) from None
    if image is None:
        return ""
    what = f"the image {image.tag} in {image.engine}"
    if why := _program_trouble(image):
        hint = "where that is the engine you installed, put it on PATH and try again"
        raise NotPutBack(f"{what}: {why}", hint)
    from ..engines import engine_storage

    try:
        return _name(image) if engine_storage.release(image) else ""
    except EnvcheckError as error:
        own = isinstance(error, NotPutBack)
        by_hand = (
            f"{image.program} rmi {image.tag} removes the image; once {image.engine} no longer has it, or"
            f" is removed itself, remove {version.held} and try again"
        )
        raise NotPutBack(
            str(error) if own else f"{what}: {error}", (error.hint if own else "") or by_hand
        ) from None


def brought(versions: Iterable[Version]) -> list[str]:
    """The names of the images that envcheck brought for these versions, each once."""
    held = filter(None, map(of, versions))
    return list(dict.fromkeys(_name(image) for image in held if not image.before))


def _program_trouble(image: EngineImage) -> str:
    """ "", or why the program is not started: a record does not decide what runs on this machine."""
    path = Path(image.program)
    folders = f"{os.environ.get('PATH', '')}:{_USUAL}".split(":")
    if path.name == image.engine and str(path.parent) in folders and path.is_absolute():
        return ""
    return f"{image.program!r} is no {image.engine} in a directory of PATH, and is not started"


def _as_tag(version_id: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]", "-", version_id)


def _name(image: EngineImage) -> str:
    return f"{image.reference} in {image.engine}"
