"""A lock as lists of requirements, a file each, which uv installs from.

They hold names, versions and hashes, and no address: an index may be somebody's own. The first line of each
says which lock it is of, so that a directory with nothing but its lists can be built from again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Literal

import msgspec

from ... import safe_text
from ...exit_codes import UsageError
from .. import lockfile, pylock
from ..catalogue import load as catalogue
from ..catalogue.model import PUBLIC, Sdist, Stack
from ..lockfile import Lockfile

ENVCHECK = "envcheck-requirements.txt"  # what envcheck itself needs
ITSELF = "envcheck-itself.txt"  # its own wheel's hash
_MARK = "# envcheck lock: "
_PACKAGES, _BUILDING, _SDIST = "requirements", "requirements-build", "requirements-sdist"
_LINE = re.compile(r"[a-z0-9-]+==[\w.!+-]+ --hash=sha256:[0-9a-f]{64}", re.ASCII)

Use = Literal["environment", "building", "sdist"]


class RequirementList(msgspec.Struct, frozen=True, kw_only=True):
    """Packages of one index, which one `uv pip install` is given."""

    name: str  # of its file
    use: Use
    index: str  # its name; PUBLIC
    url: str  # that it was locked from; "" of the public one
    lines: list[str]
    sdist: Sdist | None = None  # that this one package is built from


class LockSummary(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a list's first line says of its lock."""

    stack: str
    release: str
    python: str
    architecture: str
    digest: str = ""  # of the pylock.toml, 64 hexadecimal digits
    created_at: str = ""
    provided: list[str] = []  # names that the stack says how it provides


class LockedLists(msgspec.Struct, frozen=True, kw_only=True):
    """All that is known of a lock without its addresses: it can be built from, and not be fetched."""

    stack: Stack
    of: LockSummary
    lists: list[RequirementList]  # in the order in which they are installed

    @property
    def texts(self) -> dict[str, str]:
        """File name → text. They are what the Dockerfile of that lock copies."""
        return {one.name: text(one.lines, self.of) for one in self.lists}


def of_lock(stack: Stack, lock: Lockfile) -> LockedLists:
    """Each package of the lock in exactly one list."""
    sdists = {sdist.sha256: sdist for sdist in stack.sdists}
    lines: dict[str, list[str]] = {}
    urls: dict[str, str] = {}
    for stem, packages in ((_PACKAGES, lock.packages), (_BUILDING, lock.building)):
        for package in sorted(packages, key=lambda package: package.name):
            index = _index_of(stack, package.name)
            if index != PUBLIC:
                urls.setdefault(index, package.index)
            sdist = sdists.get(package.file.sha256)
            name = f"{_SDIST}-{sdist.name}.txt" if sdist else _name(stem, index)
            lines.setdefault(name, []).extend(pylock.for_pip([package]).splitlines())
    return LockedLists(stack=stack, of=summary(lock), lists=list(_lists(stack, lines, urls)))


def summary(lock: Lockfile) -> LockSummary:
    return LockSummary(
        stack=lock.stack,
        release=lock.release,
        python=lock.python,
        architecture=lock.architecture,
        digest=pylock.digest(lock),
        created_at=lock.created_at,
        provided=sorted(lock.provided),
    )


def read(folder: Path) -> LockedLists | None:
    """The lists that lie in a directory; None where there are none.

    Raises UsageError for what is not of one lock, or not written as envcheck writes it.
    """
    of = held(folder)
    if of is None:
        return None
    provided = dict.fromkeys(of.provided, "")
    told = msgspec.structs.asdict(of) | {"provided": provided, "packages": []}
    told.pop("digest")
    if wrong := lockfile.problem(Lockfile(**told)):
        raise UsageError(f"{folder}: its lists are of no valid lock: {wrong}")
    stack = catalogue.load(of.stack)
    lines = {path.name: _lines(path) for path in folder.glob("requirements*.txt") if read_of(path)}
    urls = {index.name: index.urls[0] for index in stack.indexes}
    return LockedLists(stack=stack, of=of, lists=list(_lists(stack, lines, urls)))


def held(folder: Path) -> LockSummary | None:
    """The lock that a directory's lists are of; None where there are none. Raises UsageError for two."""
    found = {path.name: read_of(path) for path in sorted(folder.glob("requirements*.txt"))}
    known = {name: one for name, one in found.items() if one is not None}
    if len({one.digest for one in known.values()}) > 1:
        raise UsageError(f"{folder}: its lists are of several locks: {', '.join(known)}")
    return next(iter(known.values()), None)


def read_of(path: Path) -> LockSummary | None:
    """What a list says of its lock; None where there is no such file, or it is not envcheck's."""
    try:
        with path.open(encoding="utf-8") as file:
            first = file.readline()
    except (OSError, UnicodeDecodeError):
        return None
    if not first.startswith(_MARK):
        return None
    try:
        return msgspec.json.decode(first[len(_MARK) :], type=LockSummary)
    except msgspec.MsgspecError as error:
        raise UsageError(f"{path}: its first line cannot be read: {error}") from None


def text(lines: Iterable[str], of: LockSummary | None = None) -> str:
    """A list with its first line."""
    first = "# written by envcheck"
    if of:
        first = _MARK + safe_text.json_text(msgspec.json.encode(of).decode())
    return "\n".join([first, *lines, ""])


def _lists(
    stack: Stack, lines: Mapping[str, list[str]], urls: Mapping[str, str]
) -> Iterator[RequirementList]:
    """In the order in which they are installed: the public index's first, and what is built last."""
    indexes = [PUBLIC, *sorted(index.name for index in stack.indexes)]
    named: list[tuple[str, Use, str, Sdist | None]] = [
        *((_name(_PACKAGES, index), "environment", index, None) for index in indexes),
        *((_name(_BUILDING, index), "building", index, None) for index in indexes),
        *(
            (f"{_SDIST}-{sdist.name}.txt", "sdist", _index_of(stack, sdist.name), sdist)
            for sdist in stack.sdists
        ),
    ]
    for name, use, index, sdist in named:
        found = lines.get(name, [])
        if found and (sdist is None or sdist.sha256 in found[0]):
            url = urls.get(index, "")
            yield RequirementList(
                name=name, use=use, index=index, url=url, lines=found, sdist=sdist
            )


def _name(stem: str, index: str) -> str:
    return f"{stem}.txt" if index == PUBLIC else f"{stem}-{index}.txt"


def _index_of(stack: Stack, package: str) -> str:
    """The name of the one index that the package comes from."""
    return next((index.name for index in stack.indexes if index.claims(package)), PUBLIC)


def _lines(path: Path) -> list[str]:
    lines = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.startswith("#") and line.strip():
            if not _LINE.fullmatch(line):
                raise UsageError(f"{path}:{number}: this is not NAME==VERSION --hash=sha256:HASH")
            lines.append(line)
    return lines
