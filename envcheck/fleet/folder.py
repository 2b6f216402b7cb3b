"""A fleet's directory: a Snapshot for each machine that answered, and what became of the others.

DIR/fleet.json      which machines were asked, by what, and what became of each (a directory without it
                    is well, too: then each NAME.json is the machine NAME)
DIR/NAME.json       the Snapshot of the machine that the inventory calls NAME
DIR/NAME.2.json     a further one of the same machine, of which only the rates count; up to NAME.99.json. A
                    machine that is itself called NAME.2 has fleet.json to say so, or no NAME.json beside it
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Collection
from pathlib import Path
from typing import Literal
from urllib.parse import quote, unquote

import msgspec

from .. import json_text
from ..exit_codes import UsageError
from ..facts import snapshot as snapshots
from ..install import durable
from . import hosts

SCHEMA = 1
ROSTER = "fleet.json"
NETWORK = "network.json"  # of `envcheck fleet network`

# unreachable: no connection. timed-out: reached, and silent for too long. failed: what was started there
# ended with an error. unreadable: what came is no Snapshot. not-asked: the run was ended before its turn.
Outcome = Literal["answered", "unreachable", "timed-out", "failed", "unreadable", "not-asked"]

_LOOK = re.compile(r"(.+)\.([2-9]|[1-9][0-9])")
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,200}")
_LONGEST_NAME = 201  # bytes of a file's name, without what is put before and after it
_HALF_QUOTED = re.compile(r"%.?$")


class Member(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A machine as its inventory calls it, and what came of asking it. groups: whatever the engine knows of
    its place, as (kind, name): ("group", "rack-7") of Ansible, ("partition", "a100"), ("switch", "leaf3")
    of Slurm. reason: one sentence, without a secret."""

    name: str
    outcome: Outcome = "answered"
    reason: str = ""
    groups: list[tuple[str, str]] = []


class Roster(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """fleet.json."""

    schema: int
    engine: str  # "ansible", "slurm"
    members: list[Member]


class FleetFolder:
    """A fleet's directory, to write into and to read from. look: which Snapshot of each machine is written;
    the first replaces all earlier ones of its machine, and the roster is of the first."""

    def __init__(self, path: Path, look: int = 1) -> None:
        self.path, self.look = path, look
        self._others: dict[str, Path] = {}  # files that others have named
        self._looks: dict[str, list[Path]] = {}

    def file(self, name: str) -> Path:
        """The Snapshot's file of the machine with this name."""
        suffix = f".{self.look}.json" if self.look > 1 else ".json"
        return self._others.get(name) or self.path / f"{file_name(name)}{suffix}"

    def files(self, name: str) -> list[Path]:
        """The machine's Snapshot and its further ones, once ``members`` has listed them."""
        first = self.file(name)
        return [first, *self._looks.get(first.stem, ())]

    def keep(self, name: str, answer: bytes, groups: list[tuple[str, str]]) -> Member:
        """Keep what a machine answered, where it is a Snapshot; says what became of it."""
        try:
            snapshots.load(answer)
        except snapshots.SnapshotError as error:
            return Member(name=name, outcome="unreadable", reason=str(error), groups=groups)
        durable.write(self.file(name), answer)
        return Member(name=name, groups=groups)

    def write_roster(self, engine: str, members: list[Member], anew: Collection[str] = ()) -> None:
        """anew: those of this run that answered, whose further Snapshots are of another time."""
        if self.look > 1:
            return
        self._find_looks({file_name(member.name) for member in members})
        for name in anew:
            for earlier in self._looks.get(file_name(name), ()):
                earlier.unlink(missing_ok=True)
        roster = Roster(schema=SCHEMA, engine=engine, members=members)
        durable.write(self.path / ROSTER, msgspec.json.format(msgspec.json.encode(roster)))

    def members(self) -> list[Member]:
        """Every machine, in the order of their names. Raises UsageError."""
        file = self.path / ROSTER
        try:
            roster = json_text.read(file.read_bytes(), Roster)
        except FileNotFoundError:
            return self._listed()
        except OSError as error:
            raise UsageError(f"{file}: {error.strerror}") from None
        except json_text.NotReadable as error:
            raise UsageError(f"{file}: {error}") from None
        self._find_looks({file_name(member.name) for member in roster.members})
        found: dict[str, Member] = {}
        for member in roster.members:
            twice = {"outcome": "unreadable", "reason": f"it is in {ROSTER} twice"}
            changes = twice if member.name in found else {}
            found[member.name] = msgspec.structs.replace(member, **changes)
        return [found[name] for name in hosts.natural(found)]

    def _listed(self) -> list[Member]:
        """A machine for each file; of two files of one machine (%61.json, a.json) the last one is read."""
        self._others.clear()  # files come and go
        paths = self._snapshots()
        self._find_looks({path.stem for path in paths if not _LOOK.fullmatch(path.stem)})
        looks = {path for several in self._looks.values() for path in several}
        for path in paths:
            if path not in looks:
                # of a name that is not UTF-8, the bytes are shown
                name = unquote(os.fsencode(path.stem).decode("utf-8", "backslashreplace"))
                self._others[name] = path
        return [Member(name=name) for name in hosts.natural(self._others)]

    def _snapshots(self) -> list[Path]:
        """Without what macOS leaves beside a file."""
        try:
            paths = sorted(self.path.iterdir())
        except OSError as error:
            raise UsageError(f"{self.path}: {error.strerror}") from None
        paths = [one for one in paths if one.suffix == ".json" and not one.name.startswith("._")]
        return [one for one in paths if one.name not in (ROSTER, NETWORK)]

    def _find_looks(self, stems: set[str]) -> None:
        """stems: of the first Snapshots' files."""
        self._looks.clear()
        for path in self._snapshots():
            found = _LOOK.fullmatch(path.stem)
            if found and found[1] in stems and path.stem not in stems:
                self._looks.setdefault(found[1], []).append(path)


def read(path: Path) -> bytes:
    """What a Snapshot's file holds. Raises SnapshotError, with one sentence."""
    try:
        if path.is_fifo():  # reading one without a writer would never end
            raise snapshots.SnapshotError("its Snapshot is no file")
        with path.open("rb") as file:
            return file.read(snapshots.LIMIT + 1)  # more is refused where it is loaded
    except FileNotFoundError:
        raise snapshots.SnapshotError("there is no Snapshot of it") from None
    except OSError as error:
        raise snapshots.SnapshotError(f"its Snapshot: {error.strerror or error}") from None


def file_name(name: str) -> str:
    """A machine's name as a file's: the same for almost all, quoted where it could be no file's name. Of a
    name that is too long for a file its beginning and its hash."""
    if _PLAIN.fullmatch(name) and name not in ("fleet", "index", "network"):
        return name
    data = name.encode("utf-8", "surrogatepass")
    quoted = "".join(f"%{byte:02X}" for byte in name[:1].encode("utf-8", "surrogatepass"))
    quoted += quote(name[1:], safe="", errors="surrogatepass")
    if len(quoted) <= _LONGEST_NAME:
        return quoted
    return f"{_HALF_QUOTED.sub('', quoted[:100])}%{hashlib.sha256(data).hexdigest()}"
