"""An image as `docker save` wrote it before version 25, and `podman save` writes it still.

It has no manifest with digests: one is made here. The image's id stays what it was: that is the digest of its
config, whose bytes are there.
Source: moby's image/spec/v1.2.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from ...exit_codes import Cannot, UsageError
from ..registry import documents
from ..registry.image import Blob
from .members import Members, Place

MANIFEST = "manifest.json"

_PLAIN = "application/vnd.oci.image.layer.v1.tar"
_KINDS = ((b"\x1f\x8b", f"{_PLAIN}+gzip"), (b"\x28\xb5\x2f\xfd", f"{_PLAIN}+zstd"))
_CONFIG_TYPE = "application/vnd.oci.image.config.v1+json"


class _Entry(msgspec.Struct, rename="pascal"):
    config: str
    layers: Annotated[list[str], msgspec.Meta(max_length=1000)]
    repo_tags: list[str] | None = None


class _RootFs(msgspec.Struct, frozen=True):
    diff_ids: list[Annotated[str, msgspec.Meta(pattern=r"^sha256:[0-9a-f]{64}$")]] = []


class _Config(msgspec.Struct):
    architecture: str = ""
    os: str = ""
    rootfs: _RootFs = _RootFs()


class DockerImage(msgspec.Struct, frozen=True, kw_only=True):
    manifest: bytes  # made from the rest
    config: bytes
    names: list[str]
    layers: dict[str, Place]  # digest → where it lies


def the_image(members: Members, machine: str) -> DockerImage:
    """The one for this machine. Raises UsageError where there is none or several, Cannot for another's."""
    entries = _decoded(members, MANIFEST, members.small(MANIFEST, documents.LARGEST), list[_Entry])
    wanted = f"linux/{documents.architecture_of(machine)}"
    read = [(entry, *_config(members, entry)) for entry in entries]
    fitting = [one for one in read if f"{one[2].os}/{one[2].architecture}" == wanted]
    if not read:
        raise UsageError(f"{members.place}: there is no image in it")
    if not fitting:
        there = ", ".join(f"{config.os}/{config.architecture}" for _, _, config in read)
        raise Cannot(
            f"{members.place}: the image in it is for {there}, and this machine is {wanted}"
        )
    if len(fitting) > 1:
        names = ", ".join(
            repr((entry.repo_tags or [entry.config])[0])[1:-1] for entry, *_ in fitting
        )
        raise UsageError(
            f"{members.place}: there are {len(fitting)} images for {wanted} in it, and one is"
            f" installed: {names}",
            "save only the one that you want",
        )
    entry, text, config = fitting[0]
    return _made(members, entry, text, config.rootfs.diff_ids)


def _config(members: Members, entry: _Entry) -> tuple[bytes, _Config]:
    text = members.small(entry.config, documents.LARGEST)
    return text, _decoded(members, entry.config, text, _Config)


def _made(members: Members, entry: _Entry, config: bytes, layers: list[str]) -> DockerImage:
    if len(layers) != len(entry.layers):
        raise UsageError(
            f"{members.place}: its config lists {len(layers)} layers, and {MANIFEST} lists"
            f" {len(entry.layers)}"
        )
    placed = [_layer(members, *pair) for pair in zip(entry.layers, layers, strict=True)]
    told = Blob(digest=documents.digest_of(config), size=len(config), media_type=_CONFIG_TYPE)
    manifest = {
        "schemaVersion": 2,
        "mediaType": documents.MANIFEST_TYPES[0],
        "config": descriptor(told),
        "layers": [descriptor(blob) for blob, _place in placed],
    }
    return DockerImage(
        manifest=msgspec.json.encode(manifest),
        config=config,
        names=entry.repo_tags or [],
        layers={blob.digest: place for blob, place in placed},
    )


def _layer(members: Members, name: str, unpacked: str) -> tuple[Blob, Place]:
    """A plain tar has the digest that the config says; a compressed one has one of its own."""
    place = members.find(name)
    if place is None:
        raise UsageError(f"{members.place}: {name!a} is not in it, or is not a file")
    try:
        with place.open() as file:
            head = file.read(4)
        kind = next((kind for magic, kind in _KINDS if head.startswith(magic)), _PLAIN)
        digest = unpacked if kind == _PLAIN else f"sha256:{place.sha256()}"
    except OSError as error:
        raise UsageError(f"{members.place}: {error.strerror or error}") from None
    return Blob(digest=digest, size=place.size, media_type=kind), place


def descriptor(blob: Blob) -> dict[str, str | int]:
    """A blob as manifests and indexes name it."""
    return {"mediaType": blob.media_type, "digest": blob.digest, "size": blob.size}


def _decoded(members: Members, name: str, data: bytes, kind: type[documents.T]) -> documents.T:
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(f"{members.place}: {name!a} is not what it should be: {error}") from None
