"""What podman's and docker's storage holds under a name or an id."""

from __future__ import annotations

import re

import msgspec

from ...exit_codes import UsageError
from .. import foreign_json
from ..engine import EngineImage
from ..registry import reference
from .client import ask, no_answer, words

_ABSENT = re.compile(r"no such image|image not known|tag not known|no such object", re.IGNORECASE)


class Stored(msgspec.Struct, frozen=True, kw_only=True):
    """An image in an engine's storage."""

    id: str  # "sha256:…"
    tags: list[str] = []  # names with a tag
    digests: list[str] = []  # names with a digest
    entrypoint: list[str] = []
    size: int = 0  # bytes that the engine says it takes; 0: it does not say


class _InspectedConfig(msgspec.Struct, rename="pascal"):
    entrypoint: list[str] | None = None


class _Inspected(msgspec.Struct, rename="pascal"):
    id: str
    repo_tags: list[str] | None = None
    repo_digests: list[str] | None = None
    config: _InspectedConfig | None = None
    size: int | None = None


def find(held: EngineImage, name: str) -> Stored | None:
    """The image by a name or an id; None where the engine has none. Raises CouldNotLook."""
    result = ask(held.program, ["image", "inspect", name])
    if not result.ok:
        if result.outcome == "exited" and gone(words(result)):
            return None
        raise no_answer(held.engine, held.program, result)
    return read(result.stdout.decode("utf-8", "replace"))


def gone(said: str) -> bool:
    """Whether an engine's words say that there is no such image, or no such name of one."""
    return _ABSENT.search(said) is not None


def read(text: str) -> Stored | None:
    """What `image inspect` prints, of podman or of docker."""
    try:
        (image,) = foreign_json.decode(text.encode(), list[_Inspected])
    except ValueError:
        return None
    return Stored(
        entrypoint=(image.config and image.config.entrypoint) or [],
        id=image.id if image.id.startswith("sha256:") else f"sha256:{image.id}",
        tags=[_whole(name) for name in image.repo_tags or []],
        digests=image.repo_digests or [],
        size=image.size or 0,
    )


def _whole(name: str) -> str:
    """docker leaves "docker.io/library/" away."""
    try:
        return str(reference.parse(name))
    except UsageError:
        return name
