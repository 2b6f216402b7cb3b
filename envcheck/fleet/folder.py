"""A fleet's directory: a Snapshot for each machine that answered, and what became of the others.

DIR/fleet.json      which machines were asked, by what, and what became of each (a directory without it
                    is well, too: then each NAME.json is the machine NAME)
DIR/NAME.json       the Snapshot of the machine that the inventory calls NAME
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal
from urllib.parse import quote, unquote

import msgspec

from .. import safe_text
from ..exit_codes import UsageError
from ..facts import snapshot as snapshots
from ..install import durable

SCHEMA = 1
ROSTER = "fleet.json"

# unreachable: no connection. timed-out: reached, and silent for too long. failed: what was started there
# ended with an error. unreadable: what came is no Snapshot. not-asked: the run was ended before its turn.
Outcome = Literal["answered", "unreachable", "timed-out", "failed", "unreadable", "not-asked"]

_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,200}")


class Member(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A machine as its inventory calls it, and what came of asking it.

    groups: whatever the engine knows of its place, as (kind, name): ("group", "rack-7") of Ansible,
    ("partition", "a100"), ("switch", "leaf3") of Slurm. reason: one sentence, without a secret.
    """

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
    """A fleet's directory, to write into and to read from."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def file(self, name: str) -> Path:
        """The Snapshot's file of the machine with this name."""
        return self.path / f"{file_name(name)}.json"

    def keep(self, name: str, answer: bytes, groups: list[tuple[str, str]]) -> Member:
        """Keep what a machine answered, where it is a Snapshot; says what became of it."""
        try:
            if len(answer) > snapshots.LIMIT:
                raise snapshots.SnapshotError(
                    f"the answer has more than {snapshots.LIMIT >> 20} MiB"
                )
            snapshots.load(answer)
        except snapshots.SnapshotError as error:
            reason = safe_text.one_line(str(error))
            return Member(name=name, outcome="unreadable", reason=reason, groups=groups)
        durable.write(self.file(name), answer)
        return Member(name=name, groups=groups)

    def write_roster(self, engine: str, members: list[Member]) -> None:
        roster = Roster(schema=SCHEMA, engine=engine, members=members)
        durable.write(self.path / ROSTER, msgspec.json.format(msgspec.json.encode(roster)))

    def members(self) -> list[Member]:
        """Every machine, in the order of their names. Raises UsageError."""
        try:
            data = (self.path / ROSTER).read_bytes()
        except FileNotFoundError:
            return [Member(name=name) for name in sorted(self._names())]
        except OSError as error:
            raise UsageError(f"{self.path / ROSTER}: {error.strerror}") from None
        try:
            roster = msgspec.json.decode(data, type=Roster)
        except msgspec.MsgspecError as error:
            raise UsageError(f"{self.path / ROSTER}: {error}") from None
        return sorted(roster.members, key=lambda member: member.name)

    def _names(self) -> Iterator[str]:
        try:
            for path in self.path.iterdir():
                if path.suffix == ".json" and path.name != ROSTER:
                    yield unquote(path.stem)
        except OSError as error:
            raise UsageError(f"{self.path}: {error.strerror}") from None


def file_name(name: str) -> str:
    """A machine's name as a file's: the same for almost all, quoted where it could be no file's name."""
    if _PLAIN.fullmatch(name) and name not in ("fleet", "index"):
        return name
    return "".join(f"%{byte:02X}" for byte in name[:1].encode()) + quote(name[1:], safe="")
