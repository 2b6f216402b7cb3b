"""Images that were pulled for an installation that then failed: they stay in their engine until an
installation takes them or `envcheck prune` removes them. One record for each, in the state directory.
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
_IMAGE_ID = re.compile(r"sha256:[0-9a-f]{64}")


def is_ours(image: EngineImage, version_tag: str = r"[A-Za-z0-9_.-]+") -> bool:
    """Whether a record names an image by a tag of envcheck's own: no other is ever removed."""
    known_as = image.reference.partition("@")[0]
    return bool(
        image.reference.isprintable()
        and _IMAGE_ID.fullmatch(image.image_id)
        and re.fullmatch(rf"{PREFIX}[a-z0-9-]+:{version_tag}", image.tag)
        and image.name.rpartition(":")[0] in ("", known_as)
    )


def keep(image: EngineImage) -> None:
    """Write it down. Raises OSError."""
    _folder().mkdir(parents=True, exist_ok=True)
    data = msgspec.json.format(msgspec.json.encode(image), indent=1)
    durable.write(_path(image), data + b"\n")


def every() -> list[EngineImage]:
    """All of them; what is no such record is skipped."""
    found = []
    with suppress(OSError):
        for path in sorted(_folder().iterdir()):
            with suppress(OSError, ValueError):
                image = durable.load(path, EngineImage)
                if _path(image) == path and is_ours(image) and not image.before:
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
