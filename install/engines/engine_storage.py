"""An image in an engine's storage: pulled, named, and removed."""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path, PurePath
from typing import Any

import msgspec

from ... import json_text
from ...exit_codes import EnvcheckError, NotPutBack, PutBack, UsageError
from ..engine import EngineImage
from ..registry import reference
from ..registry.image import Image, PullOptions
from .client import FETCHES, WORKS, ask, explained, no_answer, words
from .skopeo import LOGIN, write_login

FOLDER = "engine"  # of a version's temporary directory: what an engine writes during a pull
_ABSENT = re.compile(r"no such image|image not known|tag not known|no such object", re.IGNORECASE)

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")

Tick = Callable[[list[str]], None]  # called regularly, with the lines that the engine printed


class Stored(msgspec.Struct, frozen=True, kw_only=True):
    """An image in the storage of podman or docker."""

    id: str  # "sha256:…"
    tags: list[str] = []  # names with a tag
    digests: list[str] = []  # names with a digest
    entrypoint: list[str] = []
    user: str = ""
    environment: dict[str, str] = {}
    architecture: str = ""  # as images name it: "amd64"
    digest: str = ""  # its manifest's, where the engine knows it
    size: int = 0  # bytes, as the engine counts them


class _InspectedConfig(msgspec.Struct, rename="pascal"):
    entrypoint: list[str] | None = None
    env: list[str] | None = None
    user: str | None = None


class _Inspected(msgspec.Struct, rename="pascal"):
    id: str
    digest: str | None = None  # of podman alone
    architecture: str | None = None
    repo_tags: list[str] | None = None
    repo_digests: list[str] | None = None
    config: _InspectedConfig | None = None
    size: int | None = None


def find(program: str, name: str) -> Stored | None:
    """The image by a name or an id; None if the engine does not have it. Raises CouldNotLook."""
    result = ask(program, ["image", "inspect", name])
    if result.ok:
        return read_inspected(result.stdout)
    if result.outcome == "exited" and _ABSENT.search(words(result)):
        return None
    raise no_answer(PurePath(program).name, program, result)


def read_inspected(data: bytes) -> Stored | None:
    """What `image inspect` prints."""
    try:
        (image,) = json_text.read(data, list[_Inspected])
    except ValueError:
        return None
    config = image.config or _InspectedConfig()
    digests = [image.digest or "", *(one.rpartition("@")[2] for one in image.repo_digests or [])]
    return Stored(
        entrypoint=config.entrypoint or [],
        user=config.user or "",
        environment=dict(text.partition("=")[::2] for text in config.env or []),
        architecture=image.architecture or "",
        digest=next(filter(_DIGEST.fullmatch, digests), ""),
        id=f"sha256:{image.id.removeprefix('sha256:')}",
        tags=[_full(name) for name in image.repo_tags or []],
        digests=image.repo_digests or [],
        size=image.size or 0,
    )


def has(held: EngineImage) -> bool:
    """Whether the engine has the image. Raises CouldNotLook if it does not answer."""
    return find(held.program, held.image_id) is not None


def size(held: EngineImage) -> int:
    """Bytes that the image takes in the engine's storage."""
    stored = find(held.program, held.image_id)
    return 0 if stored is None else stored.size


def pull(
    held: EngineImage, image: Image, options: PullOptions, tmp: Path, tick: Tick | None = None
) -> EngineImage:
    """Have the engine pull the image by its digest, and name it.

    The engine's own mirrors, blocked registries, signature policy, proxies and logins apply. tmp: a directory
    of the version; what the engine writes there is removed afterwards. tick: what it raises stops the engine.
    Returns ``held`` with the id that the engine gives the image. Raises PutBack.
    """
    with _folder(tmp) as folder:
        logged_in = write_login(options, folder)
        if held.engine == "podman":
            flags = ["--tls-verify=false"] if options.insecure else []
            flags += ["--authfile", str(folder / LOGIN)] if logged_in else []
            variables = {"TMPDIR": str(folder)}
        else:  # which registries may use plain http is the daemon's setting
            flags, variables = [], {"DOCKER_CONFIG": str(folder)} if logged_in else {}
        arguments = ["pull", *flags, image.pinned]
        result = ask(held.program, arguments, deadline=FETCHES, variables=variables, tick=tick)
        if not result.ok:
            raise _failed(held, f"could not pull {held.reference}", result, folder)
    return _named(held, image, image.pinned)


def name(held: EngineImage) -> None:
    """Give the image envcheck's tag. Raises PutBack."""
    result = ask(held.program, ["tag", held.image_id, held.tag])
    if not result.ok:
        raise _failed(held, f"could not tag the image {held.image_id} as {held.tag}", result)


def release(held: EngineImage) -> bool:
    """Remove envcheck's tag, and the image unless it was there before or has another name: whether it did.

    An image that is gone already is no error. Raises NotPutBack with the command that does it, CouldNotLook
    if the engine does not answer.
    """
    stored = find(held.program, held.image_id) or find(held.program, held.tag)
    if stored is None:
        return False
    if held.tag in stored.tags:
        _untag(held, stored)
    stays = held.before or any(tag != held.tag for tag in stored.tags)
    if not stays and find(held.program, stored.id) is not None:
        _remove(held, ["rmi", stored.id])
    return not stays


def _named(held: EngineImage, image: Image, pulled: str) -> EngineImage:
    """Name the image once it is verified to be the right one; otherwise remove it."""
    stored = find(held.program, held.image_id) or find(held.program, pulled)
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
    held = msgspec.structs.replace(held, image_id=stored.id)
    name(held)
    return held


def _untag(held: EngineImage, stored: Stored) -> None:
    if held.engine == "podman":
        _remove(held, ["untag", stored.id, held.tag])
    elif not held.before or [one for one in stored.tags + stored.digests if one != held.tag]:
        _remove(held, ["rmi", held.tag])  # docker removes an image with its last name


def _remove(held: EngineImage, arguments: list[str]) -> None:
    result = ask(held.program, arguments, deadline=WORKS)
    if not result.ok and not _ABSENT.search(words(result)):
        reason, hint = explained(held.engine, words(result))
        again = f"{held.program} {' '.join(arguments)}"
        raise NotPutBack(
            f"the image {held.reference} in {held.engine}: {reason}",
            f"{hint}; then {again}" if hint else again,
        )


def _failed(held: EngineImage, what: str, result: Any, folder: Path | None = None) -> PutBack:
    """folder: where the engine wrote during the pull."""
    reason, hint = explained(held.engine, words(result))
    if folder is not None and "no space left" in reason and str(folder) in reason:
        hint = "make room there, or name another place: --path DIR"
    return PutBack(f"{held.engine} {what}: {reason}.", hint)


@contextlib.contextmanager
def _folder(parent: Path) -> Iterator[Path]:
    """A directory for the engine, removed afterwards, with what a killed one left in it."""
    path = parent / FOLDER
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True, mode=0o700)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _full(name: str) -> str:
    """docker leaves out "docker.io/library/"."""
    try:
        return str(reference.parse(name))
    except UsageError:
        return name
