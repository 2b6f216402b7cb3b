"""A tar with an image in the OCI layout. Only its index, manifest and config are read here: the engine loads
the layers, and holds them to their digests.

Source: the OCI image specification 1.1 (image-layout.md, annotations.md).
"""

from __future__ import annotations

import posixpath
import re
import stat
import tarfile
from collections.abc import Iterator
from pathlib import Path

import msgspec

from ... import json_text
from ...bounded_tar import BoundedTar
from ...exit_codes import Cannot, CouldNotLook, UsageError
from ...json_text import T
from ..registry import documents, reference
from ..registry.documents import ImageIndex
from ..registry.image import Blob, Image
from ..registry.reference import Reference
from .image_lock import NAME as LOCK
from .image_lock import ImageFile
from .layout_writer import FULL_NAME, INDEX, REF_NAME, WHEELS, name_of

_LARGEST_LOCK = 20 << 20  # bytes: a manifest and a config, with every letter of them escaped
_MOST = 256  # manifests
_DEEPEST = 3  # indexes in indexes
_ATTESTS = "vnd.docker.reference.type"  # a manifest about another one, and no image
_COPY = "copy it again from where it was made"


class ImageArchive:
    """Raises UsageError for what holds no one image or is damaged, Cannot for an image for others."""

    def __init__(self, place: str, machine: str) -> None:
        """machine: as ``uname -m`` has it."""
        self.path = Path(place)
        try:
            if not stat.S_ISREG(self.path.stat().st_mode):
                raise self._wrong("this is not a file")
            self._tar = self._table()
            self.image = self._image(machine)
        except CouldNotLook as error:  # in the words for a registry
            raise UsageError(str(error), error.hint) from None
        except tarfile.TarError as error:
            hint = "a compressed one has to be unpacked first, with gunzip or unzstd"
            raise self._wrong(f"this is not a whole tar: {error}", hint) from None
        except (OSError, ValueError) as error:
            words = error.strerror if isinstance(error, OSError) else None
            raise self._wrong(str(words or error)) from None

    def _image(self, machine: str) -> Image:
        """The one for this machine. Raises Cannot where all are for others."""
        wanted = f"linux/{documents.architecture_of(machine)}"
        every = {image.manifest.digest: image for image in reversed(list(self._images()))}
        found = [image for image in every.values() if image.platform == wanted]
        if not every:
            raise self._wrong("there is no image in it")
        if not found:
            there = ", ".join(dict.fromkeys(image.platform for image in reversed(every.values())))
            raise Cannot(
                f"{self.path}: the image in it is for {there}, and this machine is {wanted}"
            )
        if len(found) > 1:
            names = ", ".join(_shown(image.reference) for image in found[:5])
            raise self._wrong(
                f"there are {len(found)} images for {wanted} in it, and one is installed: {names}",
                "save only the one that you want",
            )
        return self._as_locked(found[0]) if LOCK in self._tar else found[0]

    def _images(self) -> Iterator[Image]:
        if INDEX not in self._tar:
            if any(posixpath.basename(name) == WHEELS for name in self._tar):
                raise self._wrong(
                    "this is a bundle of the wheel mode", "install it with --mode wheel"
                )
            raise self._wrong(
                f"there is no image in it in the OCI layout: no {INDEX}",
                "envcheck bundle --mode container, podman save --format oci-archive, and docker save from"
                " version 25 on write one; skopeo copy docker-archive:FILE oci-archive:NEW makes one",
            )
        listed = list(self._listed(self._read(INDEX), _DEEPEST))
        for blob, names in listed:
            try:
                yield self._named(self._described(blob), names)
            except Cannot:  # not for linux
                if len(listed) == 1:
                    raise

    def _listed(self, data: bytes, deepest: int) -> Iterator[tuple[Blob, list[str]]]:
        """What an index lists, with its names; of the platforms of an inner one some alone may be there."""
        index = self._decoded(INDEX, data, ImageIndex)
        if len(index.manifests) > _MOST:
            raise self._wrong(f"its index names more than {_MOST} manifests")
        for each in index.manifests:
            notes = each.annotations or {}
            names = [notes[key] for key in (FULL_NAME, REF_NAME) if notes.get(key)]
            if _ATTESTS in notes or (each.platform and each.platform.os == "unknown"):
                continue
            if each.media_type in documents.INDEX_TYPES:
                inner = self._blob(each.blob) if deepest else b'{"manifests": []}'
                for blob, more in self._listed(inner, deepest - 1):
                    yield blob, [*names, *more]
            elif deepest == _DEEPEST or name_of(each.digest) in self._tar:
                yield each.blob, names

    def _described(self, blob: Blob) -> Image:
        within = Reference(registry=str(self.path), repository="image", digest=blob.digest)
        manifest = documents.read(within, self._blob(blob), blob.media_type)
        if isinstance(manifest, ImageIndex):
            raise self._wrong("its image is an index, which its own index does not say")
        config = self._blob(manifest.config)
        for layer in manifest.layers:
            self._check_size(layer)
        return documents.image_of(within, blob.digest, manifest, config)

    def _as_locked(self, image: Image) -> Image:
        """The lock of a bundle has the image's name, and its registry's digest for that."""
        locked = self._decoded(LOCK, self._read(LOCK, _LARGEST_LOCK), ImageFile).image
        if locked.manifest.digest != image.manifest.digest:
            raise self._wrong(
                f"{LOCK} is the lock of {locked.manifest.digest}, and the image in it is"
                f" {image.manifest.digest}",
                "make the bundle again",
            )
        if not re.fullmatch(r"sha256:[0-9a-f]{64}", locked.digest):
            raise self._wrong(f"{LOCK} is not what it should be: {_shown(locked.digest)[:80]}")
        named = str(reference.parse(locked.reference))
        return msgspec.structs.replace(image, reference=named, digest=locked.digest)

    def _named(self, image: Image, names: list[str]) -> Image:
        """Under the first of its names that is one; a tag alone, or none, gets the archive's name."""
        for name in names:
            if "/" in name or ":" in name:
                try:
                    whole = str(reference.parse(name))
                except UsageError:
                    continue
                return msgspec.structs.replace(image, reference=whole)
        stem = re.sub(r"[^a-z0-9]+", "-", self.path.stem.lower()).strip("-") or "image"
        tag = next((name for name in names if re.fullmatch(r"\w[\w.-]{0,127}", name, re.ASCII)), "")
        named = reference.parse(f"localhost/{stem}:{tag or reference.LATEST}")
        return msgspec.structs.replace(image, reference=str(named))

    def _blob(self, blob: Blob) -> bytes:
        """A small one, verified."""
        self._check_size(blob)
        data = self._read(name_of(blob.digest))
        found = documents.digest_of(data)
        if found != blob.digest:
            raise self._damaged(blob, f"it should be {blob.digest}, and is {found}")
        return data

    def _check_size(self, blob: Blob) -> None:
        size = self._member(name_of(blob.digest)).size
        if size != blob.size:
            raise self._damaged(blob, f"it has {size} bytes, and should have {blob.size}")

    def _read(self, name: str, limit: int = documents.LARGEST) -> bytes:
        member = self._member(name)
        if member.size > limit:
            raise self._wrong(f"{_shown(name)} has {member.size} bytes, and may have {limit}")
        with self.path.open("rb") as file:
            file.seek(member.offset_data)
            return file.read(member.size)

    def _member(self, name: str) -> tarfile.TarInfo:
        """A plain file: no link is followed, and no device read."""
        member = self._tar.get(name)
        if member is None or not member.isreg():
            raise self._wrong(f"{_shown(name)} is not in it, or is not a file", _COPY)
        return member

    def _table(self) -> dict[str, tarfile.TarInfo]:
        """By name. A name that is there twice would be one file to one program, and another to the next."""
        found: dict[str, tarfile.TarInfo] = {}
        with self.path.open("rb") as file:
            for member in BoundedTar(file):
                name = posixpath.normpath(member.name)
                if name in found and not (member.isdir() and found[name].isdir()):
                    raise self._wrong(f"{_shown(name)} is in it twice")
                found[name] = member
        return found

    def _decoded(self, name: str, data: bytes, kind: type[T]) -> T:
        try:
            return json_text.read_utf8(data, kind)
        except ValueError as error:
            raise self._wrong(f"{_shown(name)} is not what it should be: {error}") from None

    def _damaged(self, blob: Blob, what: str) -> UsageError:
        return self._wrong(f"{name_of(blob.digest)} is damaged: {what}", _COPY)

    def _wrong(self, what: str, hint: str = "") -> UsageError:
        return UsageError(f"{self.path}: {what}", hint)


def _shown(name: str) -> str:
    return ascii(name)[1:-1]
