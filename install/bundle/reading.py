"""Reads a bundle in place: uv installs from it what was verified."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import BinaryIO

import msgspec

from ... import json_text
from ...exit_codes import UsageError
from .. import durable, pylock
from ..lockfile import LockedFile, Lockfile
from . import index
from .index import BundleIndex

_CHUNK = 1 << 20
_LARGEST_TEXT = 16 * 1024 * 1024  # bytes of an index, lock or stack
_COPY_AGAIN = "copy the bundle again from where it was made"
_HINT = "envcheck bundle writes one, as a directory or as a tar to be unpacked"


class Bundle:
    """A directory. Raises UsageError for what is no bundle, is damaged, or is not whole."""

    def __init__(self, place: str) -> None:
        self.place = place
        if Path(place).suffix == ".tar":
            raise UsageError(
                f"{place}: a tar is unpacked first",
                f"tar -xf {place}, then --offline DIRECTORY",
            )
        if not Path(place).exists():
            raise self._wrong("No such file or directory")
        self.index = self._read_index()

    def lock(self) -> Lockfile:
        return pylock.parse(self._text(index.LOCK), f"{self.place}: {index.LOCK}")

    @property
    def stack_text(self) -> str:
        return self._text(index.STACK)

    def check(self, lock: Lockfile) -> None:
        """Whether the lock's files are in it, as its index tells."""
        for file in lock.files:
            name = f"{index.FILES}/{file.name}"
            listed = self.index.files.get(name)
            if listed is None:
                raise self._wrong(f"its lock needs {file.name}, which is not in it")
            if listed.sha256 != file.sha256:
                raise self._damaged(name, f"sha256 {file.sha256}", listed.sha256)
            if file.size not in (None, listed.size):
                raise self._damaged(name, f"{file.size} bytes", listed.size)

    def path(self, file: LockedFile) -> Path:
        return Path(self.place).absolute() / index.FILES / file.name

    def verify(self, lock: Lockfile) -> None:
        """Whether the lock's files are in it, to the byte."""
        self.check(lock)
        for file in lock.files:
            name, found = f"{index.FILES}/{file.name}", hashlib.sha256()
            with self._source(name) as source:
                while piece := source.read(_CHUNK):
                    found.update(piece)
            if found.hexdigest() != file.sha256:
                raise self._damaged(name, f"sha256 {file.sha256}", found.hexdigest())

    def _text(self, name: str) -> str:
        listed = self.index.files.get(name)
        if listed is None:
            raise self._wrong(f"not a bundle: it lists no {name}")
        data = self._small(name)
        if listed.sha256 != (found := hashlib.sha256(data).hexdigest()):
            raise self._damaged(name, f"sha256 {listed.sha256}", found)
        try:
            return data.decode()
        except UnicodeDecodeError:
            raise self._wrong(f"{name} is not UTF-8 text") from None

    def _read_index(self) -> BundleIndex:
        data = self._small(index.NAME)
        try:
            header = json_text.read(data, _BundleHeader)
            if header.format > index.FORMAT:
                raise UsageError(
                    f"{self.place}: a bundle of format {header.format}, and this envcheck reads format"
                    f" {index.FORMAT}",
                    "install the envcheck that is in it: sh setup.sh, in the bundle",
                )
            return json_text.read(data, BundleIndex)
        except ValueError as error:
            raise self._wrong(f"not a bundle: {index.NAME}: {error}") from None

    def _small(self, name: str) -> bytes:
        with self._source(name) as source:
            data = source.read(_LARGEST_TEXT + 1)
        if len(data) > _LARGEST_TEXT:
            raise self._wrong(f"not a bundle: {name} has more than {_LARGEST_TEXT >> 20} MiB")
        return data

    def _source(self, name: str) -> BinaryIO:
        """A regular file of the size that is listed, so that nothing endless is read."""
        try:
            data = os.fdopen(durable.opened(Path(self.place) / name, os.O_RDONLY), "rb")
        except OSError as error:
            raise self._wrong(f"not a bundle: {name}: {error.strerror}") from None
        size = os.fstat(data.fileno()).st_size
        listed = self.index.files.get(name) if name != index.NAME else None
        if listed is not None and size != listed.size:
            data.close()
            raise self._damaged(name, f"{listed.size} bytes", size)
        return data

    def _wrong(self, what: str) -> UsageError:
        return UsageError(f"{self.place}: {what}", _HINT)

    def _damaged(self, name: str, wanted: str, found: str | int) -> UsageError:
        return UsageError(
            f"{self.place}: {name} is damaged: it should have {wanted}, and has {found}",
            _COPY_AGAIN,
        )


class _BundleHeader(msgspec.Struct):
    format: int
