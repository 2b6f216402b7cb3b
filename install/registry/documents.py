"""The JSON documents of registries: manifests, indexes and configs. Pure: bytes in, an Image out.

Sources: the OCI image specification 1.1, and Docker's image manifest version 2, schema 2.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Annotated

import msgspec

from ... import json_text
from ...exit_codes import Cannot, CouldNotLook, UsageError
from ...json_text import T
from .image import Blob, Image
from .reference import Reference

_CONFIG_TYPES = (
    "application/vnd.oci.image.config.v1+json",
    "application/vnd.docker.container.image.v1+json",
)
# `uname -m` → Go's name, where the two differ
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}

_Digest = Annotated[str, msgspec.Meta(pattern=r"\Asha256:[0-9a-f]{64}\Z")]
_Size = Annotated[int, msgspec.Meta(ge=0, lt=1 << 50)]


class _Platform(msgspec.Struct):
    architecture: str = ""
    os: str = ""
    variant: str | None = None  # "v8": of arm64, any does


class _Descriptor(msgspec.Struct, rename="camel"):
    digest: _Digest
    size: _Size
    media_type: str = ""
    platform: _Platform | None = None

    @property
    def blob(self) -> Blob:
        return Blob(digest=self.digest, size=self.size)


class ImageIndex(msgspec.Struct, rename="camel"):
    manifests: list[_Descriptor]


class ImageManifest(msgspec.Struct, rename="camel"):
    config: _Descriptor
    layers: Annotated[list[_Descriptor], msgspec.Meta(min_length=1, max_length=1000)]


class _Run(msgspec.Struct, rename="pascal"):
    entrypoint: list[str] | None = None
    user: str | None = None
    env: list[str] | None = None


class _Config(msgspec.Struct):
    architecture: str = ""
    os: str = ""
    config: _Run | None = None


def architecture_of(machine: str) -> str:
    """ "amd64" for the "x86_64" of ``uname -m``."""
    return _ARCHITECTURES.get(machine, machine)


def digest_of(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def read(reference: Reference, data: bytes) -> ImageIndex | ImageManifest:
    """Parse an index or a manifest.

    Raises CouldNotLook for a broken document, UsageError for something other than a container image.
    """
    keys = _decode(reference, data, dict[str, msgspec.Raw], "manifest").keys()
    if {"manifests", "layers"} <= keys:
        # Readers would disagree about which it is, so that one digest would be two images.
        raise _broken(reference, "manifest", "it is a manifest and an index at once")
    if "manifests" in keys:
        return _decode(reference, data, ImageIndex, "index")
    manifest = _decode(reference, data, ImageManifest, "manifest")
    if manifest.config.media_type not in _CONFIG_TYPES:
        kind = manifest.config.media_type or "unknown"
        raise UsageError(
            f"{reference} is not a container image: its type is {kind!r}",
            "Name an image that podman or docker can run.",
        )
    return manifest


def chosen(reference: Reference, index: ImageIndex, machine: str) -> str:
    """The digest of the index's manifest for linux on this machine. Raises Cannot, which lists the platforms.

    If no entry matches, one without a platform is taken: its config then has to match.
    """
    wanted = ("linux", architecture_of(machine))
    platforms = [(each, each.platform or _Platform()) for each in index.manifests]
    fitting = [(each, p) for each, p in platforms if (p.os, p.architecture) == wanted]
    fitting = fitting or [(each, p) for each, p in platforms if not p.architecture]
    if not fitting:
        there = dict.fromkeys(f"{p.os}/{p.architecture}" for _, p in platforms if p.os != "unknown")
        raise _no_such_platform(reference, "/".join(wanted), list(there))
    # Prefer the one that needs no special generation of the processor.
    return min(fitting, key=lambda pair: bool(pair[1].variant))[0].digest


def image_of(
    reference: Reference,
    digest: str,
    data: bytes,
    manifest: ImageManifest,
    config: bytes,
    machine: str,
) -> Image:
    """Combine what was read. digest: the registry's for the reference. data: the manifest's bytes.

    Raises CouldNotLook for a broken config, Cannot for one of another platform.
    """
    parsed = _decode(reference, config, _Config, "config")
    wanted = architecture_of(machine)
    if (parsed.os, parsed.architecture) != ("linux", wanted):
        there = [f"{parsed.os}/{parsed.architecture}"] if parsed.os and parsed.architecture else []
        raise _no_such_platform(reference, f"linux/{wanted}", there)
    run = parsed.config or _Run()
    return Image(
        reference=str(reference),
        digest=digest,
        manifest=Blob(digest=digest_of(data), size=len(data)),
        config=manifest.config.blob,
        layers=[layer.blob for layer in manifest.layers],
        architecture=parsed.architecture,
        entrypoint=run.entrypoint or [],
        user=run.user or "",
        environment={text.partition("=")[0]: text.partition("=")[2] for text in run.env or []},
    )


def _decode(reference: Reference, data: bytes, kind: type[T], what: str) -> T:
    try:
        return json_text.read_utf8(data, kind)
    except ValueError as error:
        raise _broken(reference, what, str(error)) from None


def _broken(reference: Reference, what: str, why: str) -> CouldNotLook:
    return CouldNotLook(f"{reference.registry} sends a broken {what} for {reference}: {why}")


def _no_such_platform(reference: Reference, wanted: str, there: Sequence[str]) -> Cannot:
    has = f"only for {', '.join(there)}" if there else "and it does not name its platform"
    return Cannot(f"{reference} does not exist for {wanted}, {has}")
