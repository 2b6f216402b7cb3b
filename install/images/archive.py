"""An archive with an image: which one is in it. Only its index, manifest and config are read here; its layers
are the engine's, which loads the archive and holds them to their digests.

Sources: the OCI image specification 1.1 (image-layout.md, annotations.md); moby's image/spec/v1.2, as
`docker save` before version 25 and `podman save` write it.
"""

from __future__ import annotations

import posixpath
import re
import stat
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, NamedTuple

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
from .layout_writer import DOCKER_MANIFEST, FULL_NAME, INDEX, REF_NAME, WHEELS, name_of

_LARGEST_LOCK = 20 << 20  # bytes: a manifest and a config, with every letter of them escaped
_MOST = 256  # manifests
_DEEPEST = 3  # indexes in indexes
_MOST_LINKS = 8  # from one name in a tar to the next
_ATTESTS = "vnd.docker.reference.type"  # a manifest that tells of another one, and is no image


class _DockerImage(msgspec.Struct, rename="pascal"):
    """An entry of docker's manifest.json."""

    config: str
    layers: Annotated[list[str], msgspec.Meta(max_length=1000)]
    repo_tags: list[str] | None = None


class _Extent(NamedTuple):
    """Where bytes lie."""

    file: Path
    offset: int
    size: int


class ImageArchive:
    """A tar, or a directory in the OCI layout. Raises UsageError for what holds no one image, or is damaged;
    Cannot for an image for other machines."""

    def __init__(self, place: str, machine: str) -> None:
        """machine: as ``uname -m`` has it."""
        self.path = Path(place)
        try:
            mode = self.path.stat().st_mode
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                raise self._wrong("this is neither a file nor a directory")
            self._tar = None if stat.S_ISDIR(mode) else self._table()
            self.image = self._image(machine)
        except CouldNotLook as error:  # in the words for a registry
            raise UsageError(str(error), error.hint) from None
        except tarfile.TarError as error:
            hint = "a compressed one has to be unpacked first, with gunzip or unzstd"
            raise self._wrong(f"this is not a whole tar: {error}", hint) from None
        except (OSError, ValueError) as error:
            words = error.strerror if isinstance(error, OSError) else None
            raise self._wrong(str(words or error)) from None

    @contextmanager
    def for_engine(self, engine: str, tmp: Path) -> Iterator[Path]:
        """What the engine loads: the archive itself; docker loads no directory, and gets a tar of it.

        tmp: where that is made. Raises UsageError.
        """
        if engine != "docker" or self._tar is not None:
            yield self.path
            return
        copy = tmp / "image.tar"
        try:
            with tarfile.open(copy, "w") as tar:
                tar.add(self.path, ".")
            yield copy
        except OSError as error:
            raise self._wrong(error.strerror or str(error)) from None
        finally:
            copy.unlink(missing_ok=True)

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
            more = ", …" if len(found) > 5 else ""
            raise self._wrong(
                f"there are {len(found)} images for {wanted} in it, and one is installed: {names}{more}",
                "save only the one that you want",
            )
        return self._as_locked(found[0]) if self._find(LOCK) else found[0]

    def _images(self) -> Iterator[Image]:
        if self._find(INDEX):
            listed = list(self._listed(self._read(INDEX), _DEEPEST))
            for blob, names in listed:
                try:
                    yield self._named(self._described(blob), names)
                except Cannot:  # not for linux
                    if len(listed) == 1:
                        raise
        elif self._tar is not None and self._find(DOCKER_MANIFEST):
            yield from self._of_docker()
        elif self._find(WHEELS) or self._find(f"{self.path.stem}/{WHEELS}"):
            raise self._wrong("this is a bundle of the wheel mode", "install it with --mode wheel")
        else:
            raise self._wrong(
                f"there is no image in it: neither {INDEX} nor {DOCKER_MANIFEST}",
                "envcheck bundle --mode container, podman save or docker save write one",
            )

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
            elif deepest == _DEEPEST or self._find(name_of(each.digest)):
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

    def _of_docker(self) -> Iterator[Image]:
        """It has no manifest with digests: one is made here, from its config."""
        for entry in self._decoded(
            DOCKER_MANIFEST, self._read(DOCKER_MANIFEST), list[_DockerImage]
        ):
            config = self._read(entry.config)
            sizes = [self._needed(name).size for name in entry.layers]
            within = Reference(registry=str(self.path), repository="image")
            made = documents.made(within, config, sizes)
            image = documents.image_of(within, made.blob.digest, made, config)
            yield self._named(image, entry.repo_tags or [])

    def _as_locked(self, image: Image) -> Image:
        """The lock of a bundle knows what the image was asked for as, and what its registry calls that."""
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
        size = self._needed(name_of(blob.digest)).size
        if size != blob.size:
            raise self._damaged(blob, f"it has {size} bytes, and should have {blob.size}")

    def _read(self, name: str, limit: int = documents.LARGEST) -> bytes:
        where = self._needed(name)
        if where.size > limit:
            raise self._wrong(f"{_shown(name)} has {where.size} bytes, and may have {limit}")
        with where.file.open("rb") as file:
            file.seek(where.offset)
            return file.read(where.size)

    def _needed(self, name: str) -> _Extent:
        where = self._find(name)
        if where is None:
            raise self._wrong(f"{_shown(name)} is not in it, or is not a file", _COPY)
        return where

    def _find(self, name: str) -> _Extent | None:
        """A plain file's place; None for what is not there, or is a device, a FIFO, a link out of a tar."""
        if self._tar is None:
            with suppress(OSError):
                found = (self.path / name).lstat()
                if stat.S_ISREG(found.st_mode):
                    return _Extent(self.path / name, 0, found.st_size)
            return None
        for _ in range(_MOST_LINKS):  # `docker save` writes a layer that comes twice as a link
            member = self._tar.get(name)
            if member is None or not (member.issym() or member.islnk()):
                break
            folder = posixpath.dirname(name) if member.issym() else ""
            name = posixpath.normpath(posixpath.join(folder, member.linkname))
        if member is None or not member.isreg():
            return None
        return _Extent(self.path, member.offset_data, member.size)

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


_COPY = "copy it again from where it was made"
