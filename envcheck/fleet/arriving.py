"""Snapshots of many machines that come in one stream: an archive of tar, or what clush, pdsh, kubectl or
parallel-ssh print, a name in front of each line.
"""

from __future__ import annotations

import re
import tarfile
from collections import Counter
from io import BufferedReader, BytesIO
from pathlib import PurePosixPath

import msgspec

from .. import json_text
from ..bounded_tar import BoundedTar
from ..exit_codes import UsageError
from ..facts import snapshot as snapshots
from .folder import ROSTER, FleetFolder, Member, Roster, unreadable
from .stream import named, values

# "gpu01: {…", of clush and pdsh; "[pod/envcheck-x7k2p/envcheck] {…", of kubectl logs --prefix
_PREFIX = re.compile(rb"(?:\[([^\s\[\]{}\"]{1,300})\]|([^\s:\[\]{}\"']{1,300}):) ?")
_MAGIC = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00")


class _HostName(msgspec.Struct):
    hostname: str = ""


class _HostProbe(msgspec.Struct):
    facts: _HostName = msgspec.field(default_factory=_HostName)


class _HostOfMachine(msgspec.Struct):
    host: _HostProbe = msgspec.field(default_factory=_HostProbe)


class _Named(msgspec.Struct):
    """What a Snapshot says of its machine's name."""

    machine: _HostOfMachine = msgspec.field(default_factory=_HostOfMachine)


def unpack(stream: BufferedReader, folder: FleetFolder) -> list[Member]:
    """Keep every Snapshot that comes, in the directory. Raises UsageError where none does, OSError."""
    if _is_archive(stream):
        try:
            return _of_archive(stream, folder)
        except tarfile.TarError as error:
            raise UsageError(f"standard input: this archive cannot be read: {error}") from None
    return _of_lines(stream, folder)


def _is_archive(stream: BufferedReader) -> bool:
    first = stream.peek(512)
    return first.startswith(_MAGIC) or first[257:262] == b"ustar"


class _Arrived:
    """What came under each name."""

    def __init__(self, folder: FleetFolder) -> None:
        self.members: dict[str, Member] = {}
        self._folder = folder
        self._counts: Counter[str] = Counter()

    def keep(self, name: str, data: bytes) -> None:
        """Of two Snapshots under one name nobody can say which one is the machine's: neither is believed."""
        self._counts[name] += 1
        if name not in self.members:
            self.members[name] = self._folder.keep(name, data, [])
        else:
            reason = f"{self._counts[name]} Snapshots came under this name"
            self.members[name] = unreadable(self.members[name], reason)

    def free_name(self) -> str:
        """For a Snapshot that names no machine."""
        number = len(self.members) + 1
        while f"machine-{number}" in self.members:
            number += 1
        return f"machine-{number}"

    def sorted(self) -> list[Member]:
        return [self.members[name] for name in sorted(self.members)]


def _of_archive(stream: BufferedReader, folder: FleetFolder) -> list[Member]:
    """NAME.json wherever it lies in the archive; fleet.json where it is there."""
    found = _Arrived(folder)
    roster: Roster | None = None
    archive = BoundedTar(stream, stream=True)
    for entry in archive:
        path = PurePosixPath(entry.name)
        if not entry.isreg() or path.suffix != ".json":
            continue
        data = archive.open(entry).read(snapshots.LIMIT + 1)
        if path.name == ROSTER:
            roster = _roster(data)
        else:
            found.keep(path.stem, data)
    if not found.members:
        raise UsageError("standard input: there is no NAME.json in this archive")
    for member in roster.members if roster else ():
        found.members[member.name] = _listed(member, found.members.get(member.name))
    return found.sorted()


def _listed(member: Member, came: Member | None) -> Member:
    """What is known of a machine of the roster: where it answered, what came of it in the archive."""
    if member.outcome != "answered":
        return member
    if came is None:
        return unreadable(member, "its Snapshot is not in the archive")
    return msgspec.structs.replace(came, groups=member.groups)


def _roster(data: bytes) -> Roster:
    try:
        roster: Roster = json_text.read(data, Roster)
    except json_text.NotReadable as error:
        raise UsageError(f"standard input: {ROSTER}: {error}") from None
    return roster


def _of_lines(stream: BufferedReader, folder: FleetFolder) -> list[Member]:
    """What each name says, put together. Without names, each "{" in the first column begins one; so do
    values right behind each other, and {"name": …, "snapshot": …} names its own."""
    said: dict[str, _MachineLines] = {}
    found = _Arrived(folder)
    unnamed = _MachineLines()
    for line in iter(lambda: stream.readline(snapshots.LIMIT + 1), b""):
        if prefix := _PREFIX.match(line):
            name = _machine((prefix[1] or prefix[2]).decode("utf-8", "backslashreplace"))
            said.setdefault(name, _MachineLines()).add(line[prefix.end() :])
            continue
        if line.startswith(b"{") or unnamed.is_full:
            _keep_unnamed(unnamed.taken(), found)
        unnamed.add(line)
    _keep_unnamed(unnamed.taken(), found)
    for name, lines in said.items():
        found.keep(name, lines.taken())
    if not found.members:
        raise UsageError(
            "standard input: it is empty, and not a Snapshot",
            hint="clush -w gpu[01-16] python3 - < collector.py | envcheck fleet report -",
        )
    return found.sorted()


class _MachineLines:
    """Lines of one machine, until they are too many for a Snapshot: the rest of a flood is dropped."""

    def __init__(self) -> None:
        self._lines: list[bytes] = []
        self._size = 0

    @property
    def is_full(self) -> bool:
        return self._size > snapshots.LIMIT

    def add(self, line: bytes) -> None:
        if not self.is_full:
            self._lines.append(line)
            self._size += len(line)

    def taken(self) -> bytes:
        """All of them; there are none afterwards."""
        text = b"".join(self._lines)
        self._lines, self._size = [], 0
        return text


def _keep_unnamed(text: bytes, found: _Arrived) -> None:
    for value in values(BytesIO(text)):
        name, snapshot = named(value) or (_hostname(value) or found.free_name(), value)
        found.keep(name, snapshot)


def _machine(prefix: str) -> str:
    """ "pod/NAME/CONTAINER" is NAME."""
    return prefix.split("/")[1] if prefix.startswith("pod/") else prefix


def _hostname(text: bytes) -> str:
    """The host's name, where the Snapshot still has it."""
    try:
        name = json_text.read(text, _Named).machine.host.facts.hostname
    except json_text.NotReadable:
        return ""
    return "" if name.startswith("<") else name
