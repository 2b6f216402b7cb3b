"""Which images an OCI archive holds, by its index; and the one that is for this machine.

Sources: the OCI image specification 1.1 (image-layout.md, annotations.md); what `docker save`,
`podman save` and `skopeo copy` write.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

import msgspec

from ...exit_codes import Cannot, UsageError
from ..registry import documents
from ..registry.image import Blob
from .members import Members

INDEX = "index.json"
REF_NAME = "org.opencontainers.image.ref.name"
FULL_NAME = "io.containerd.image.name"

_ATTESTS = "vnd.docker.reference.type"  # a manifest that tells of another one, and is no image
_MOST = 256  # manifests
_DEEPEST = 3  # indexes in indexes


class _Platform(msgspec.Struct):
    architecture: str = ""
    os: str = ""


class _Descriptor(msgspec.Struct, rename="camel"):
    digest: Annotated[str, msgspec.Meta(pattern=r"^sha256:[0-9a-f]{64}$")]
    size: Annotated[int, msgspec.Meta(ge=0, lt=1 << 50)]
    media_type: str = ""
    platform: _Platform | None = None
    annotations: dict[str, str] | None = None


class _Index(msgspec.Struct):
    manifests: list[_Descriptor]


class _Config(msgspec.Struct):
    architecture: str = ""
    os: str = ""


class _Manifest(msgspec.Struct):
    config: _Descriptor | None = None


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """An image of the archive."""

    manifest: Blob
    names: list[str]  # "nvcr.io/nvidia/tensorflow:23.03-tf1-py3", "23.03-tf1-py3"
    platform: str  # "linux/amd64"


def name_of(digest: str) -> str:
    """Where a blob lies in an OCI layout."""
    return f"blobs/{digest.replace(':', '/')}"


def the_image(members: Members, machine: str) -> Found:
    """The one for this machine. Raises UsageError where there is none or several, Cannot where all are for
    others.

    machine: as ``uname -m`` has it.
    """
    wanted = f"linux/{documents.architecture_of(machine)}"
    found = _merged(_images(members, members.small(INDEX, documents.LARGEST), _DEEPEST))
    if not found:
        raise UsageError(f"{members.place}: there is no image in it")
    fitting = [image for image in found if image.platform == wanted]
    if not fitting:
        there = ", ".join(dict.fromkeys(image.platform for image in found))
        raise Cannot(
            f"{members.place}: the image in it is for {there}, and this machine is {wanted}"
        )
    if len(fitting) > 1:
        raise UsageError(
            f"{members.place}: there are {len(fitting)} images for {wanted} in it, and one is installed:"
            f" {_listed(fitting)}",
            "save only the one that you want",
        )
    return fitting[0]


def _images(members: Members, data: bytes, deepest: int) -> Iterator[Found]:
    index = _decoded(members, INDEX, data, _Index)
    if len(index.manifests) > _MOST:
        raise UsageError(f"{members.place}: its index names more than {_MOST} manifests")
    for each in index.manifests:
        notes = each.annotations or {}
        if _ATTESTS in notes or (each.platform and each.platform.os == "unknown"):
            continue
        names = [notes[key] for key in (FULL_NAME, REF_NAME) if notes.get(key)]
        if each.media_type in documents.INDEX_TYPES:
            if deepest:
                inner = blob(members, Blob(digest=each.digest, size=each.size, media_type=""))
                for image in _images(members, inner, deepest - 1):
                    yield msgspec.structs.replace(image, names=[*names, *image.names])
            continue
        # Of the platforms of a list, an archive may hold some alone.
        if name_of(each.digest) in members or not (each.platform and deepest < _DEEPEST):
            yield _found(members, each, names)


def _found(members: Members, each: _Descriptor, names: list[str]) -> Found:
    manifest = Blob(digest=each.digest, size=each.size, media_type=each.media_type)
    platform = each.platform
    if platform is None or not platform.architecture:
        data = blob(members, manifest)
        config = _decoded(members, name_of(each.digest), data, _Manifest).config
        if config is None:
            raise UsageError(f"{members.place}: {name_of(each.digest)} is not an image's manifest")
        told = blob(members, Blob(digest=config.digest, size=config.size, media_type=""))
        read = _decoded(members, name_of(config.digest), told, _Config)
        platform = _Platform(architecture=read.architecture, os=read.os)
    return Found(manifest=manifest, names=names, platform=f"{platform.os}/{platform.architecture}")


def blob(members: Members, wanted: Blob) -> bytes:
    """A small blob, verified. Raises UsageError."""
    name = name_of(wanted.digest)
    data = members.small(name, documents.LARGEST)
    if len(data) != wanted.size or documents.digest_of(data) != wanted.digest:
        raise damaged(members, name, wanted, documents.digest_of(data), len(data))
    return data


def damaged(members: Members, name: str, wanted: Blob, digest: str, size: int) -> UsageError:
    """A blob that is not what it should be."""
    if size != wanted.size:
        words = f"it has {size} bytes, and should have {wanted.size}"
    else:
        words = f"it should be {wanted.digest}, and is {digest}"
    return UsageError(
        f"{members.place}: {name} is damaged: {words}", "copy it again from where it was made"
    )


def _merged(images: Iterator[Found]) -> list[Found]:
    """One that is named twice is one."""
    found: dict[str, Found] = {}
    for image in images:
        known = found.get(image.manifest.digest)
        names = [*(known.names if known else []), *image.names]
        found[image.manifest.digest] = msgspec.structs.replace(
            image, names=list(dict.fromkeys(names))
        )
    return list(found.values())


def _listed(images: Sequence[Found]) -> str:
    shown = [image.names[0] if image.names else image.manifest.digest for image in images]
    return ", ".join(repr(name)[1:-1] for name in shown[:5]) + (", …" if len(shown) > 5 else "")


def _decoded(members: Members, name: str, data: bytes, kind: type[documents.T]) -> documents.T:
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(f"{members.place}: {name} is not what it should be: {error}") from None
