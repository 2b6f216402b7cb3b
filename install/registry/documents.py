"""What registries say in JSON about an image: manifests, indexes, configs. Pure: bytes in, an Image out.

Sources: the OCI image specification 1.1, and Docker's image manifest version 2, schema 2.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Annotated

import msgspec

from ...exit_codes import Cannot, CouldNotLook, UsageError
from .. import foreign_json
from ..foreign_json import T
from .image import Blob, Image
from .reference import Reference

INDEX_TYPES = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)
MANIFEST_TYPES = (
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
ACCEPT = ", ".join((*INDEX_TYPES, *MANIFEST_TYPES))
LARGEST = 4 << 20  # bytes of a manifest or a config: what engines take too

_CONFIG_TYPES = (
    "application/vnd.oci.image.config.v1+json",
    "application/vnd.docker.container.image.v1+json",
)
_LAYER_TYPE = "application/vnd.oci.image.layer.v1.tar"  # unpacked
_MOST_LAYERS = 1000

# What uname says, as images name it (Go's names), where the two differ.
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}

_Digest = Annotated[str, msgspec.Meta(pattern=r"\Asha256:[0-9a-f]{64}\Z")]
_Size = Annotated[int, msgspec.Meta(ge=0, lt=1 << 50)]


class _Platform(msgspec.Struct):
    architecture: str = ""
    os: str = ""
    variant: str = ""


class _Descriptor(msgspec.Struct, rename="camel"):
    digest: _Digest
    size: _Size
    media_type: str = ""
    platform: _Platform | None = None
    annotations: dict[str, str] | None = None

    @property
    def blob(self) -> Blob:
        return Blob(digest=self.digest, size=self.size, media_type=self.media_type)


class _Head(msgspec.Struct, rename="camel"):
    """What tells the kinds of documents apart."""

    media_type: str = ""
    manifests: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    layers: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class ImageIndex(msgspec.Struct, rename="camel"):
    manifests: list[_Descriptor]


class _Manifest(msgspec.Struct, rename="camel"):
    config: _Descriptor
    layers: Annotated[list[_Descriptor], msgspec.Meta(max_length=_MOST_LAYERS)]


class _Run(msgspec.Struct, rename="pascal"):
    entrypoint: list[str] | None = None
    cmd: list[str] | None = None
    user: str | None = None
    env: list[str] | None = None
    labels: dict[str, str] | None = None


class _RootFs(msgspec.Struct):
    diff_ids: list[str] = []


class _Config(msgspec.Struct):
    architecture: str = ""
    os: str = ""
    variant: str | None = None
    created: str | None = None
    config: _Run | None = None
    rootfs: _RootFs | None = None


class ImageManifest(msgspec.Struct, frozen=True, kw_only=True):
    """An image's manifest, before its config is there."""

    blob: Blob
    text: str
    config: Blob
    layers: list[Blob]


def architecture_of(machine: str) -> str:
    """ "amd64" for the "x86_64" of ``uname -m``."""
    return _ARCHITECTURES.get(machine, machine)


def digest_of(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def read(reference: Reference, data: bytes, said: str) -> ImageIndex | ImageManifest:
    """What a registry gave for a reference. said: its Content-Type, which the document itself overrides.

    Raises CouldNotLook for what is no such document, UsageError for what is not a container image.
    """
    head = _decoded(reference, data, _Head, "manifest")
    kind = head.media_type or said.partition(";")[0].strip()
    many, one = head.manifests is not msgspec.UNSET, head.layers is not msgspec.UNSET
    if many and one:
        # Which of them is meant depends on who reads it, so that one digest would be two images.
        raise _nonsense(reference, "manifest", "it is a manifest and an index at once")
    if kind in INDEX_TYPES or (many and kind not in MANIFEST_TYPES):
        return _decoded(reference, data, ImageIndex, "index")
    manifest = _decoded(reference, data, _Manifest, "manifest")
    known = kind if kind in MANIFEST_TYPES else MANIFEST_TYPES[0]
    _check_kinds(reference, manifest)
    return ImageManifest(
        blob=Blob(digest=digest_of(data), size=len(data), media_type=known),
        text=data.decode(),
        config=manifest.config.blob,
        layers=[layer.blob for layer in manifest.layers],
    )


def chosen(reference: Reference, index: ImageIndex, machine: str) -> Blob:
    """The manifest for linux on this machine; where none says so, one that names no platform, for then its
    config does. Raises Cannot, which names what there is."""
    wanted = ("linux", architecture_of(machine))
    platforms = [(each, each.platform or _Platform()) for each in index.manifests]
    fitting = [(each, p) for each, p in platforms if (p.os, p.architecture) == wanted]
    fitting = fitting or [(each, p) for each, p in platforms if not p.architecture]
    if not fitting:
        there = dict.fromkeys(f"{p.os}/{p.architecture}" for _, p in platforms if p.os != "unknown")
        raise _no_such_platform(reference, "/".join(wanted), list(there))
    # Of several, the one that asks for no special generation of the processor.
    return min(fitting, key=lambda pair: bool(pair[1].variant))[0].blob


def made(reference: Reference, config: bytes, sizes: Sequence[int]) -> ImageManifest:
    """A manifest for an image that has none: its layers are the unpacked ones that its config names.

    sizes: bytes of each layer. The image's id is the config's digest, and so what it was.
    """
    rootfs = _decoded(reference, config, _Config, "config").rootfs
    digests = rootfs.diff_ids if rootfs else []
    if len(digests) != len(sizes):
        what = f"it lists {len(digests)} layers, and the manifest lists {len(sizes)}"
        raise _nonsense(reference, "config", what)
    told = Blob(digest=digest_of(config), size=len(config), media_type=_CONFIG_TYPES[0])
    layers = [
        Blob(digest=digest, size=size, media_type=_LAYER_TYPE)
        for digest, size in zip(digests, sizes, strict=True)
    ]
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST_TYPES[0],
        "config": told.descriptor,
        "layers": [layer.descriptor for layer in layers],
    }
    found = read(reference, msgspec.json.encode(manifest), "")
    assert isinstance(found, ImageManifest), "it was made as one"
    return found


def image_of(
    reference: Reference, digest: str, manifest: ImageManifest, config: bytes, machine: str = ""
) -> Image:
    """All of it together. digest: the registry's for the reference. machine: "" for any.

    Raises CouldNotLook for a config that is none, Cannot for one of another platform.
    """
    read = _decoded(reference, config, _Config, "config")
    if not (read.os and read.architecture):
        raise _nonsense(reference, "config", "it does not name its platform")
    wanted = architecture_of(machine) if machine else read.architecture
    if (read.os, read.architecture) != ("linux", wanted):
        there = f"{read.os}/{read.architecture}"
        raise _no_such_platform(reference, f"linux/{wanted}", [there])
    layers = read.rootfs.diff_ids if read.rootfs else []
    if len(layers) != len(manifest.layers):
        what = f"it lists {len(layers)} layers, and the manifest lists {len(manifest.layers)}"
        raise _nonsense(reference, "config", what)
    run = read.config or _Run()
    return Image(
        reference=str(reference),
        digest=digest,
        manifest=manifest.blob,
        config=manifest.config,
        layers=manifest.layers,
        architecture=read.architecture,
        manifest_text=manifest.text,
        config_text=config.decode(),
        created_at=read.created or "",
        entrypoint=run.entrypoint or [],
        command=run.cmd or [],
        user=run.user or "",
        environment={text.partition("=")[0]: text.partition("=")[2] for text in run.env or []},
        labels=run.labels or {},
    )


def _check_kinds(reference: Reference, manifest: _Manifest) -> None:
    kind = manifest.config.media_type
    if kind not in _CONFIG_TYPES:
        raise UsageError(
            f"{reference} is not a container image: its registry has {kind or 'something unnamed'!r} there",
            "Name an image that podman or docker can run.",
        )
    if not manifest.layers:
        raise _nonsense(reference, "manifest", "it lists no layers")


def _decoded(reference: Reference, data: bytes, kind: type[T], what: str) -> T:
    try:
        return foreign_json.decode(data, kind)
    except ValueError as error:
        raise _nonsense(reference, what, str(error)) from None


def _nonsense(reference: Reference, what: str, why: str) -> CouldNotLook:
    return CouldNotLook(f"{reference.registry} sends a broken {what} of {reference}: {why}")


def _no_such_platform(reference: Reference, wanted: str, there: Sequence[str]) -> Cannot:
    has = f"it is there for {', '.join(there)}" if there else "it does not name its platform"
    return Cannot(f"{reference} is not there for {wanted}: {has}")
