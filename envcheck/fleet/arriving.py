"""Snapshots of many machines on standard input: a name before each line, as clush, pdsh and kubectl print."""

from __future__ import annotations

import re
from collections.abc import Iterator
from io import BufferedReader

from ..exit_codes import UsageError
from ..facts import snapshot as snapshots
from .folder import FleetFolder, Member, unreadable

# "gpu01: {…", of clush and pdsh; "[pod/envcheck-x7k2p/envcheck] {…", of kubectl logs --prefix
_PREFIX = re.compile(rb"(?:\[([^\s\[\]{}\"]{1,300})\]|([^\s:\[\]{}\"']{1,300}):) ?")
# Where one Snapshot of a machine ends and another begins.
_AGAIN = re.compile(rb"\}\s*\n\{")


def unpack(stream: BufferedReader, folder: FleetFolder) -> list[Member]:
    """Keep every Snapshot in the directory; lines without a name are ignored.

    Raises UsageError where none comes, OSError.
    """
    answers: dict[str, _Answer] = {}
    for line in iter(lambda: stream.readline(snapshots.LIMIT + 1), b""):
        prefix = _PREFIX.match(line)
        if prefix:
            name = _machine((prefix[1] or prefix[2]).decode("utf-8", "backslashreplace"))
            answers.setdefault(name, _Answer()).add(line[prefix.end() :])
    if not answers:
        raise UsageError(
            "standard input: no line has a machine's name in front of it",
            hint="clush -w gpu[01-16] python3 - < collector.py | envcheck fleet report -",
        )
    return list(_kept(answers, folder))


def _kept(answers: dict[str, _Answer], folder: FleetFolder) -> Iterator[Member]:
    """Of two Snapshots under one name it is not known which one is the machine's: neither is used."""
    for name in sorted(answers):
        data = answers[name].text()
        if _AGAIN.search(data):
            yield unreadable(Member(name=name), "several Snapshots came under this name")
        else:
            yield folder.keep(name, data, [])


class _Answer:
    """Lines of one machine, until they are too many for a Snapshot."""

    def __init__(self) -> None:
        self._lines: list[bytes] = []
        self._size = 0

    def add(self, line: bytes) -> None:
        if self._size <= snapshots.LIMIT:
            self._lines.append(line)
            self._size += len(line)

    def text(self) -> bytes:
        return b"".join(self._lines)


def _machine(prefix: str) -> str:
    """ "pod/NAME/CONTAINER" is NAME."""
    return prefix.split("/")[1] if prefix.startswith("pod/") else prefix
