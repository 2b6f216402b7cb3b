"""An archive's layers for the mirror, from where they lie: nothing of them is copied first."""

from __future__ import annotations

from typing import BinaryIO

from ..lockfile import LockedFile
from ..store.errors import FetchError
from ..store.store import Store
from ..store.transfer import Transfer
from .archive_reading import Archive
from .members import Place


class ArchiveFiles:
    """In a Fetcher's place, for an archive that was verified before."""

    def __init__(self, archive: Archive) -> None:
        self._places = {blob.sha256: archive.place(blob) for blob in archive.image.layers}
        self._store = _InPlace(archive, self._places)

    def want(self, file: LockedFile, *, first: bool = False) -> Transfer:
        """The layer, complete from the beginning."""
        transfer = Transfer(file, self._store)
        transfer.offset = self._places[file.sha256].offset
        transfer.finished(self._places[file.sha256].size)
        return transfer


class _InPlace(Store):
    """A store that holds an archive's layers, and into which nothing is put."""

    def __init__(self, archive: Archive, places: dict[str, Place]) -> None:
        super().__init__(archive.path)
        self._places = places

    def open(self, sha256: str) -> BinaryIO:
        """The file that the layer is in."""
        path = self._places[sha256].path
        try:
            return path.open("rb")
        except OSError as error:
            raise FetchError(f"{path} cannot be read: {error.strerror}") from None

    def touch(self, sha256: str) -> None:
        """Nothing is noted beside an archive."""
