"""Images that were pulled for an installation that then failed: they stay in their engine, which has fetched
gigabytes for them, until an installation takes them or `envcheck prune` removes them.

One record for each, in the state directory, as a version's ``held.json`` names an image.
"""

from __future__ import annotations

import hashlib
import re
from contextlib import suppress
from pathlib import Path

import msgspec

from .. import durable, places
from ..engine import EngineImage

PREFIX = "localhost/envcheck/"
IMAGE_ID = re.compile(r"sha256:[0-9a-f]{64}")
_TAG = re.compile(rf"{PREFIX}[a-z0-9-]+:[A-Za-z0-9_.-]+")


def keep(image: EngineImage) -> None:
    """Write it down. Raises OSError."""
    _folder().mkdir(parents=True, exist_ok=True)
    data = msgspec.json.format(msgspec.json.encode(image), indent=1)
    durable.write(_path(image), data + b"\n")


def every() -> list[EngineImage]:
    """All of them; what is no such record is passed over."""
    found = []
    with suppress(OSError):
        for path in sorted(_folder().iterdir()):
            with suppress(OSError, ValueError):
                image = durable.load(path, EngineImage)
                if _path(image) == path and _is_ours(image):
                    found.append(image)
    return found


def forget(image: EngineImage) -> None:
    """Raises OSError."""
    _path(image).unlink(missing_ok=True)


def _folder() -> Path:
    return places.state() / "kept-images"


def _path(image: EngineImage) -> Path:
    name = hashlib.sha256(f"{image.engine} {image.image_id}".encode()).hexdigest()
    return _folder() / f"{name[:16]}.json"


def _is_ours(image: EngineImage) -> bool:
    """Whether it names an image by a tag of envcheck's own: no other is ever removed."""
    known_as = image.reference.partition("@")[0]
    return bool(
        not image.before
        and image.reference.isprintable()
        and IMAGE_ID.fullmatch(image.image_id)
        and _TAG.fullmatch(image.tag)
        and image.name.rpartition(":")[0] in ("", known_as)
    )
