"""Reads an archive with an image, in place: envcheck's own bundle, or what `podman save`, `docker save` or
`skopeo copy` wrote.

archive = Archive("/media/usb/tf.tar", "x86_64")
archive.image          # the lock, as if its registry had said it
archive.verify()       # reads every byte
archive.place(blob)    # where a layer lies
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable
from pathlib import Path

import msgspec

from ...exit_codes import CouldNotLook, UsageError
from ..registry import documents, reference
from ..registry.image import Blob, Image
from ..registry.reference import Reference
from ..store import errors
from ..store.store import Store
from . import archive_index, docker_archive, image_lock
from .members import Members, Place

LOCK = "image.json"
WHEELS = "pylock.toml"  # in a bundle of the wheel mode
_LARGEST_LOCK = 20 << 20  # bytes

Read = Callable[[int], None]  # told how many bytes were read, since the last time


class Archive:
    """Raises UsageError for what holds no one image, or is damaged; Cannot for one for other machines.

    place: a tar, or a directory in the OCI layout. machine: as ``uname -m`` has it.
    """

    def __init__(self, place: str, machine: str) -> None:
        self.path = Path(place)
        self.members = Members(place)
        self._layers: dict[str, Place] = {}
        try:
            self.image = self._read(machine)
        except CouldNotLook as error:  # in the words for a registry
            raise UsageError(str(error), error.hint) from None
        for blob in self._each_layer():
            self.place(blob)

    def place(self, blob: Blob) -> Place:
        """Where a layer lies. Raises UsageError where it is not there, or not of its size."""
        name = archive_index.name_of(blob.digest)
        place = self._layers.get(blob.digest) or self.members.find(name)
        if place is None:
            raise UsageError(
                f"{self.path}: {name} is not in it, and the image in it needs it", "copy it again"
            )
        if place.size != blob.size:
            raise archive_index.damaged(self.members, name, blob, "", place.size)
        return place

    def verify(self, read: Read = lambda size: None) -> None:
        """Read every layer. Raises UsageError for the first that is damaged."""
        for blob in self._each_layer():
            name = archive_index.name_of(blob.digest)
            try:
                digest = f"sha256:{self.place(blob).sha256()}"
            except OSError as error:
                raise self._unreadable(name, error) from None
            if digest != blob.digest:
                raise archive_index.damaged(self.members, name, blob, digest, blob.size)
            read(blob.size)

    def adopt(self, store: Store, read: Read = lambda size: None) -> None:
        """Put the layers into the store, each verified.

        Raises UsageError for damage, FetchError for the disk.
        """
        for blob in self._each_layer():
            if not store.has(blob.sha256):
                self._adopt(blob, store)
            read(blob.size)

    def _adopt(self, blob: Blob, store: Store) -> None:
        name = archive_index.name_of(blob.digest)
        target = store.path(blob.sha256)
        place = self.place(blob)
        try:
            store.make_room_for(target)
            with tempfile.TemporaryDirectory(dir=target.parent, prefix=".archive-") as folder:
                copy = Path(folder) / blob.sha256
                with copy.open("wb") as file:
                    digest = f"sha256:{place.sha256(file.write)}"
                if digest != blob.digest:
                    raise archive_index.damaged(self.members, name, blob, digest, place.size)
                copy.replace(target)
        except OSError as error:
            raise errors.of_disk(error, store.root, name, blob.size) from None
        store.touch(blob.sha256)

    def _each_layer(self) -> list[Blob]:
        return list({blob.digest: blob for blob in self.image.layers}.values())

    def _read(self, machine: str) -> Image:
        if archive_index.INDEX in self.members:
            return self._read_layout(machine)
        if docker_archive.MANIFEST in self.members and self.members.is_tar:
            return self._read_docker(machine)
        for name in (WHEELS, f"{self.path.stem}/{WHEELS}"):
            if name in self.members:
                raise UsageError(
                    f"{self.path}: this is a bundle of the wheel mode",
                    "install it with --mode wheel",
                )
        raise UsageError(
            f"{self.path}: there is no image in it: neither {archive_index.INDEX} nor"
            f" {docker_archive.MANIFEST}",
            "envcheck bundle --mode container, podman save or docker save write one",
        )

    def _read_layout(self, machine: str) -> Image:
        found = archive_index.the_image(self.members, machine)
        data = archive_index.blob(self.members, found.manifest)
        manifest = documents.read(self._within(found.manifest), data, found.manifest.media_type)
        if isinstance(manifest, documents.Index):
            raise UsageError(
                f"{self.path}: its image is an index, which its own index does not say"
            )
        config = archive_index.blob(self.members, manifest.config)
        image = self._image(manifest, config, machine)
        if LOCK in self.members:
            return self._as_locked(image)
        return self._named(image, found.names)

    def _read_docker(self, machine: str) -> Image:
        found = docker_archive.the_image(self.members, machine)
        self._layers = found.layers
        manifest = documents.read(self._within(None), found.manifest, "")
        assert not isinstance(manifest, documents.Index), "it was made as a manifest"
        return self._named(self._image(manifest, found.config, machine), found.names)

    def _image(self, manifest: documents.Manifest, config: bytes, machine: str) -> Image:
        within = self._within(manifest.blob)
        return documents.image_of(within, manifest.blob.digest, manifest, config, machine)

    def _within(self, blob: Blob | None) -> Reference:
        """What errors name it by: its place in the archive."""
        return Reference(
            registry=str(self.path), repository="image", digest="" if blob is None else blob.digest
        )

    def _as_locked(self, image: Image) -> Image:
        """The lock knows what the image was asked for as, and what its registry calls that."""
        locked = image_lock.parse(self.members.small(LOCK, _LARGEST_LOCK), f"{self.path}: {LOCK}")
        if locked.manifest.digest != image.manifest.digest:
            raise UsageError(
                f"{self.path}: {LOCK} is the lock of {locked.manifest.digest}, and the image in it is"
                f" {image.manifest.digest}",
                "make the bundle again",
            )
        return locked

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

    def _unreadable(self, name: str, error: OSError) -> UsageError:
        return UsageError(f"{self.path}: {name}: {error.strerror or error}")
