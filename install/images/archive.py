"""A tar with one image in the OCI layout, as `podman save --format oci-archive` and `docker save` write it.

Its index, manifest and config are read here; the engine loads the layers and compares their digests.
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
from ..registry import documents, reference
from ..registry.documents import ImageIndex, ImageManifest
from ..registry.image import Blob, Image
from ..registry.reference import Reference

_INDEX = "index.json"
_NAMES = ("io.containerd.image.name", "org.opencontainers.image.ref.name")
_ATTESTS = "vnd.docker.reference.type"  # a manifest about another one, and no image
_MOST = 256  # manifests
_DEEPEST = 3  # indexes in indexes
_COPY = "copy it again from where it was made"
_MAKE = (
    "podman save --format oci-archive, docker save from version 25 on, and skopeo copy docker://IMAGE"
    " oci-archive:FILE make one"
)


class ImageArchive:
    """Raises UsageError for what holds no one image or is damaged, Cannot for an image for others."""

    def __init__(self, place: str, machine: str) -> None:
        """machine: as ``uname -m`` prints it."""
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
        except OSError as error:
            raise self._wrong(error.strerror or str(error)) from None
        except ValueError as error:
            raise self._wrong(f"this is not an image's archive: {error}") from None

    def _image(self, machine: str) -> Image:
        """The one for this machine."""
        if _INDEX not in self._tar:
            raise self._wrong(f"there is no image in it in the OCI layout: no {_INDEX}", _MAKE)
        blobs = {blob.digest: (blob, names) for blob, names in self._listed(self._read(_INDEX))}
        images = [self._described(blob, names) for blob, names in blobs.values()]
        wanted = f"linux/{documents.architecture_of(machine)}"
        found = [image for image in images if image.platform == wanted]
        if len(found) == 1:
            return found[0]
        if found or not images:
            many = f"{len(found) or 'no'} images for {wanted} are in it, and one is installed"
            raise self._wrong(many, "save only the one that you want")
        there = ", ".join(dict.fromkeys(image.platform for image in images))
        raise Cannot(f"{self.path}: the image in it is for {there}, and this machine is {wanted}")

    def _listed(self, data: bytes, depth: int = 0) -> Iterator[tuple[Blob, list[str]]]:
        """What an index lists, with its names; an inner index may list platforms that are not here."""
        index = json_text.read_utf8(data, ImageIndex)
        if len(index.manifests) > _MOST:
            raise self._wrong(f"its index names more than {_MOST} manifests")
        for each in index.manifests:
            notes = each.annotations or {}
            names = [notes[key] for key in _NAMES if notes.get(key)]
            if _ATTESTS in notes or (each.platform and each.platform.os == "unknown"):
                continue
            if each.media_type not in documents.INDEX_TYPES:
                if not depth or _name_of(each.digest) in self._tar:
                    yield each.blob, names
            elif depth < _DEEPEST:
                for blob, more in self._listed(self._blob(each.blob), depth + 1):
                    yield blob, [*names, *more]

    def _described(self, blob: Blob, names: list[str]) -> Image:
        within = Reference(registry=str(self.path), repository="image", digest=blob.digest)
        manifest = documents.read(within, self._blob(blob), blob.media_type)
        if not isinstance(manifest, ImageManifest):
            raise self._wrong("its image is an index, which its own index does not say")
        config = self._blob(manifest.config)
        for layer in manifest.layers:
            self._member(layer)
        image = documents.image_of(within, blob.digest, manifest, config)
        return msgspec.structs.replace(image, reference=self._reference(names))

    def _reference(self, names: list[str]) -> str:
        """The first of its names that is a whole one; a tag alone, or none, gets the archive's name."""
        for name in names:
            if "/" in name or ":" in name:
                try:
                    return str(reference.parse(name))
                except UsageError:
                    continue
        stem = re.sub(r"[^a-z0-9]+", "-", self.path.stem.lower()).strip("-") or "image"
        tags = [name for name in names if re.fullmatch(r"\w[\w.-]{0,127}", name, re.ASCII)]
        return str(reference.parse(f"localhost/{stem}:{(tags or [reference.LATEST])[0]}"))

    def _blob(self, blob: Blob) -> bytes:
        """A small one, verified."""
        self._member(blob)
        data = self._read(_name_of(blob.digest))
        found = documents.digest_of(data)
        if found != blob.digest:
            name = _name_of(blob.digest)
            raise self._wrong(
                f"{name} is damaged: it should be {blob.digest}, and is {found}", _COPY
            )
        return data

    def _member(self, blob: Blob) -> None:
        """Raises UsageError for one that is not there, or has another size."""
        name = _name_of(blob.digest)
        size = self._file(name).size
        if size != blob.size:
            raise self._wrong(f"{name} has {size} bytes, and should have {blob.size}", _COPY)

    def _read(self, name: str) -> bytes:
        member = self._file(name)
        if member.size > documents.LARGEST:
            raise self._wrong(f"{name} has {member.size} bytes, and may have {documents.LARGEST}")
        with self.path.open("rb") as file:
            file.seek(member.offset_data)
            return file.read(member.size)

    def _file(self, name: str) -> tarfile.TarInfo:
        """A plain file: no link is followed, and no device read."""
        member = self._tar.get(name)
        if member is None or not member.isreg():
            raise self._wrong(f"{name} is not in it, or is not a file", _COPY)
        return member

    def _table(self) -> dict[str, tarfile.TarInfo]:
        """By name. A name that is there twice would be one file to one program, and another to the next."""
        found: dict[str, tarfile.TarInfo] = {}
        with self.path.open("rb") as file:
            for member in BoundedTar(file):
                name = posixpath.normpath(member.name)
                if name in found and not (member.isdir() and found[name].isdir()):
                    raise self._wrong(f"{ascii(name)[1:-1]} is in it twice")
                found[name] = member
        return found

    def _wrong(self, what: str, hint: str = "") -> UsageError:
        return UsageError(f"{self.path}: {what}", hint)


def _name_of(digest: str) -> str:
    return f"blobs/{digest.replace(':', '/')}"
