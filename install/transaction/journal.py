"""What was done in a root, one line after the other, each on the disk before the next thing is done."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path
from typing import Literal

import msgspec

from ... import json_text
from .. import durable
from .layout import Root, VersionId, now

# "begun" comes before anything is done; "undone" and "removed" say that nothing of the version exists.
# "held": what an engine is about to hold is written down; "pulled": the engine has it.
_Building = Literal["begun", "python", "fetched", "created", "installed", "configured"]
Step = _Building | Literal["held", "pulled", "verified", "swapped", "done", "undone", "removed"]
ENDS: frozenset[Step] = frozenset({"swapped", "done", "undone", "removed"})


class Entry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    time: str  # UTC
    version: VersionId
    step: Step
    details: dict[str, str] = {}  # for readers: "lock", "before", "why"


class Journal:
    """JSON lines that are only appended, in a root's ``.envcheck/``."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def append(self, version: str, step: Step, **details: str) -> None:
        """Write one entry and wait until it is on the disk. Raises OSError."""
        entry = Entry(time=now(), version=version, step=step, details=details)
        line = msgspec.json.encode(entry) + b"\n"
        handle = self._opened()
        try:
            with durable.named(self._path):
                size = os.fstat(handle).st_size
                if size and os.pread(handle, 1, size - 1) != b"\n":
                    line = b"\n" + line  # a torn line, which must not take this one with it
                while line:
                    line = line[os.write(handle, line) :]
                os.fsync(handle)
        finally:
            os.close(handle)
        if not size:
            durable.sync_directory(self._path.parent)

    def entries(self) -> list[Entry]:
        """All entries, oldest first, without lines that were cut or that envcheck never writes."""
        found = []
        with suppress(OSError):
            for line in durable.read(self._path).splitlines():
                with suppress(ValueError):
                    found.append(json_text.read(line, Entry))
        return found

    def last_steps(self) -> dict[str, Step]:
        """Each version's last step."""
        return {entry.version: entry.step for entry in self.entries()}

    def _opened(self) -> int:
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
        if self._path.parent.is_symlink():
            raise NotADirectoryError(errno.ENOTDIR, "Not a directory", str(self._path.parent))
        handle = durable.opened(self._path, flags)
        if os.fstat(handle).st_nlink <= 1:
            return handle
        os.close(handle)
        durable.write(self._path, durable.read(self._path))  # another file's name gets no lines
        return durable.opened(self._path, flags)


def unfinished(root: Root, journal: Journal) -> list[str]:
    """Versions that were begun, neither swapped in nor undone, and of which something exists."""
    current = root.current_id()
    names = [name for name, step in journal.last_steps().items() if step not in ENDS]
    return [name for name in names if name != current and os.path.lexists(root.path / name)]
