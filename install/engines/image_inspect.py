"""What podman's and docker's storage holds under a name or an id."""

from __future__ import annotations

import json
import re

import msgspec

from ...exit_codes import UsageError
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
        (image,) = json.loads(text)
        identity = str(image["Id"])
    except (ValueError, KeyError, TypeError):
        return None
    config = image.get("Config")
    entrypoint = config.get("Entrypoint") if isinstance(config, dict) else None
    return Stored(
        entrypoint=list(map(str, entrypoint)) if isinstance(entrypoint, list) else [],
        id=identity if identity.startswith("sha256:") else f"sha256:{identity}",
        tags=[_whole(str(name)) for name in image.get("RepoTags") or []],
        digests=[str(name) for name in image.get("RepoDigests") or []],
        size=size if isinstance(size := image.get("Size"), int) else 0,
    )


def _whole(name: str) -> str:
    """docker leaves "docker.io/library/" away."""
    try:
        return str(reference.parse(name))
    except UsageError:
        return name
