"""What was done in a root, one line after the other, each on the disk before the next thing is done."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec

from .. import durable
from .layout import VersionId, now

# What has been done. "begun" comes before anything is; "undone" and "removed" say that nothing of the
# version is left. "swapped" is also written by a rollback. "held": what an engine is about to hold is written
# down, and "pulled" comes when it does.
Step = Literal[
    "begun",
    "python",
    "fetched",
    "created",
    "installed",
    "held",
    "pulled",
    "configured",
    "verified",
    "swapped",
    "done",
    "undone",
    "removed",
]
WHEEL_STEPS: tuple[Step, ...] = (
    "begun",
    "python",
    "fetched",
    "created",
    "installed",
    "configured",
    "verified",
    "swapped",
    "done",
)
IMAGE_STEPS: tuple[Step, ...] = (
    "begun",
    "held",
    "pulled",
    "configured",
    "verified",
    "swapped",
    "done",
)
FINISHED: frozenset[Step] = frozenset({"swapped", "done"})
OVER: frozenset[Step] = frozenset({"undone", "removed"})


class Entry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    time: str  # UTC
    version: VersionId
    step: Step
    details: dict[
        str, str
    ] = {}  # "lock": its digest; "engine", "image"; "before": what was current


class Journal:
    """JSON lines that are only ever appended."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def append(self, version: str, step: Step, **details: str) -> None:
        """Write one entry and wait until it is on the disk. Raises OSError."""
        entry = Entry(time=now(), version=version, step=step, details=details)
        line = msgspec.json.encode(entry) + b"\n"
        fresh = not self._path.exists()
        handle = self._opened()
        try:
            with durable.named(self._path):
                size = os.fstat(handle).st_size
                if size and os.pread(handle, 1, size - 1) != b"\n":
                    line = b"\n" + line  # a torn line, which must not take this one with it
                _write_all(handle, line)
                os.fsync(handle)
        finally:
            os.close(handle)
        if fresh:
            durable.sync_directory(self._path.parent)

    def entries(self) -> list[Entry]:
        """All entries, oldest first. A line that was cut (power, a full disk) is as if never written."""
        return [entry for entry in self._read() if isinstance(entry, Entry)]

    def foreign(self) -> list[int]:
        """The numbers of lines that this envcheck would never write: they count as never written."""
        lines = enumerate(self._read(), start=1)
        return [number for number, line in lines if isinstance(line, msgspec.ValidationError)]

    def _read(self) -> Iterator[Entry | msgspec.DecodeError]:
        try:
            lines = durable.read(self._path).splitlines()
        except OSError:
            return
        for line in lines:
            try:
                yield durable.decode(line, Entry)
            except msgspec.DecodeError as error:
                yield error

    def _opened(self) -> int:
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
        handle = durable.opened(self._path, flags)
        if os.fstat(handle).st_nlink <= 1:
            return handle
        os.close(handle)
        durable.write(
            self._path, durable.read(self._path)
        )  # another file's name must not get lines
        return durable.opened(self._path, flags)


def last_steps(entries: list[Entry]) -> dict[str, Step]:
    """Each version's last step."""
    return {entry.version: entry.step for entry in entries}


def _write_all(handle: int, data: bytes) -> None:
    while data:
        data = data[os.write(handle, data) :]
