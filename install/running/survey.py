"""What an installation looks at before it chooses: the machine, its Pythons, the public index."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import msgspec

from ... import collection
from ...collection import Collected
from ...facts.host import Disk
from ...snapshot import Snapshot
from .. import places
from ..fit.room import RoomAt, room_at, with_disk
from ..index.public import PublicIndex, public_index
from ..pythons import finding
from ..pythons.interpreter import Interpreter
from ..request import Request


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """``public`` is None for an installation that asks no index."""

    snapshot: Snapshot
    interpreters: list[Interpreter]
    obtainable: list[str]  # minor versions of Python that uv could get
    public: PublicIndex | None


def look(request: Request, python: str = "") -> Machine:
    """All of it side by side. Only from the main thread; python: in place of the request's.

    Raises UsageError for a --python or an index that is none, CouldNotLook where the collector fails.
    """
    collecting = _Collecting()
    interpreters = finding.interpreters(python or request.python)
    obtainable = [] if request.offline else finding.obtainable()
    public = None if request.offline else public_index(os.environ)
    return Machine(
        snapshot=collecting.result().snapshot,
        interpreters=interpreters,
        obtainable=obtainable,
        public=public,
    )


class _Collecting(threading.Thread):
    """The Snapshot, from a thread that does not keep an interrupted envcheck from ending."""

    def __init__(self) -> None:
        super().__init__(daemon=True, name="collector")
        self._collected: Collected | None = None
        self._error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            # Nothing of it is written or sent anywhere, and refusals name real paths.
            self._collected = collection.collect(redact=False)
        except BaseException as error:  # noqa: BLE001 - raised again where it is asked for
            self._error = error

    def result(self) -> Collected:
        self.join()
        if self._error is not None:
            raise self._error
        assert self._collected is not None, "a thread without an error has a result"
        return self._collected


def room(request: Request, snapshot: Snapshot) -> RoomAt:
    """Where the environment will lie, before its name is known."""
    return room_for(request.path or str(places.environments()), snapshot)


def room_for(path: str, snapshot: Snapshot) -> RoomAt:
    """The room at a path, with what the Snapshot knows beyond it of the same file system."""
    found = room_at(path)
    disk = _disk(found, snapshot)
    return with_disk(found, disk) if disk is not None else found


def _disk(found: RoomAt, snapshot: Snapshot) -> Disk | None:
    probe = snapshot.machine.host
    for disk in probe.facts.disks if probe is not None and probe.facts is not None else []:
        try:
            if _nearest(Path(disk.path)).stat().st_dev == found.device:
                return disk
        except OSError:
            continue
    return None


def _nearest(path: Path) -> Path:
    return next((p for p in (path, *path.parents) if p.exists()), Path("/"))
