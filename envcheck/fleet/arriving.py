"""Snapshots of many machines that come in one stream: an archive of tar, or what clush, pdsh, kubectl or
parallel-ssh print, a name in front of each line.
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterable
from io import BufferedReader, BytesIO
from pathlib import PurePosixPath

import msgspec

from ..bounded_tar import BoundedTar
from ..exit_codes import UsageError
from ..facts import snapshot as snapshots
from .folder import ROSTER, FleetFolder, Member, Roster
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


def _of_archive(stream: BufferedReader, folder: FleetFolder) -> list[Member]:
    """NAME.json wherever it lies in the archive; fleet.json where it is there."""
    found: dict[str, Member] = {}
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
            _keep(path.stem, data, folder, found)
    if not found:
        raise UsageError("standard input: there is no NAME.json in this archive")
    if roster is None:
        return _sorted(found.values())
    members = [
        member if member.outcome != "answered" else _arrived(member, found)
        for member in roster.members
    ]
    return _sorted([*members, *found.values()])


def _arrived(member: Member, found: dict[str, Member]) -> Member:
    came = found.pop(member.name, None)
    reason = "its Snapshot is not in the archive"
    if came is None:
        return msgspec.structs.replace(member, outcome="unreadable", reason=reason)
    return msgspec.structs.replace(came, groups=member.groups)


def _roster(data: bytes) -> Roster:
    try:
        return msgspec.json.decode(data, type=Roster)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(f"standard input: {ROSTER}: {error}") from None


def _of_lines(stream: BufferedReader, folder: FleetFolder) -> list[Member]:
    """What each name says, put together. Without names, each "{" in the first column begins one; so do
    values right behind each other, and {"name": …, "snapshot": …} names its own."""
    said: dict[str, list[bytes]] = {}
    found: dict[str, Member] = {}
    unnamed: list[bytes] = []
    for line in iter(lambda: stream.readline(snapshots.LIMIT + 1), b""):
        if prefix := _PREFIX.match(line):
            name = _machine((prefix[1] or prefix[2]).decode("utf-8", "backslashreplace"))
            said.setdefault(name, []).append(line[prefix.end() :])
            continue
        if line.startswith(b"{"):
            _keep_unnamed(unnamed, folder, found)
        unnamed.append(line)
    _keep_unnamed(unnamed, folder, found)
    for name, lines in said.items():
        _keep(name, b"".join(lines), folder, found)
    if not found:
        raise UsageError(
            "standard input: it is empty, and not a Snapshot",
            hint="clush -w gpu[01-16] python3 - < collector.py | envcheck fleet report -",
        )
    return _sorted(found.values())


def _keep_unnamed(lines: list[bytes], folder: FleetFolder, found: dict[str, Member]) -> None:
    text = b"".join(lines)
    lines.clear()
    for value in values(BytesIO(text)):
        name, snapshot = named(value) or (_unnamed(value, len(found) + 1), value)
        _keep(name, snapshot, folder, found)


def _machine(prefix: str) -> str:
    """ "pod/NAME/CONTAINER" is NAME."""
    return prefix.split("/")[1] if prefix.startswith("pod/") else prefix


def _unnamed(text: bytes, number: int) -> str:
    """The host's name, where the Snapshot still has it; else a number."""

    try:
        name = msgspec.json.decode(text, type=_Named).machine.host.facts.hostname
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        name = ""
    return name if name and not name.startswith("<") else f"machine-{number}"


def _keep(name: str, data: bytes, folder: FleetFolder, found: dict[str, Member]) -> None:
    if name in found:
        raise UsageError(f"standard input: two Snapshots are of a machine called {name}")
    found[name] = folder.keep(name, data, [])


def _sorted(members: Iterable[Member]) -> list[Member]:
    return sorted(members, key=lambda member: member.name)
