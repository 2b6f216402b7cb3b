"""Lists of requirements as files, and the lock that they are read back as.

They hold names, versions and hashes, and no address: an index may be somebody's own. The first line of each
says which lock it is of, so that a directory with nothing but its lists is a lock.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

import msgspec

from ... import safe_text
from ...exit_codes import UsageError
from .. import pylock, pylock_grammar
from ..catalogue import load as catalogue
from ..catalogue.model import PUBLIC, Sdist, Stack
from ..lockfile import LockedFile, LockedPackage, Lockfile

ENVCHECK = "envcheck-requirements.txt"  # what envcheck itself needs
ITSELF = "envcheck-itself.txt"  # its own wheel's hash
_MARK = "# envcheck lock: "
_LINE = re.compile(r"(?P<name>[a-z0-9-]+)==(?P<version>\S+) --hash=sha256:(?P<sha256>[0-9a-f]{64})")


class RequirementList(msgspec.Struct, frozen=True, kw_only=True):
    """Packages of one index, which one `uv pip install` is given."""

    name: str  # of its file
    use: Literal["environment", "building", "sdist"]
    index: str  # its name; PUBLIC
    packages: list[LockedPackage]  # by name
    sdist: Sdist | None = None  # that this one package is built from

    @property
    def lines(self) -> list[str]:
        return [f"{p.name}=={p.version} --hash=sha256:{p.file.sha256}" for p in self.packages]


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
    """A lock that was read back: without addresses, so it can be built from and not be fetched."""

    stack: Stack
    lock: Lockfile
    digest: str


def requirement_lists(stack: Stack, lock: Lockfile) -> list[RequirementList]:
    """Each package of the lock in exactly one list, in the order in which they are installed."""
    allowed = {sdist.sha256: sdist for sdist in stack.sdists}
    built = [p for p in lock.packages if p.file.sha256 in allowed]
    wheels = [p for p in lock.packages if p not in built]
    return [
        *_by_index(stack, wheels, "requirements", "environment"),
        *_by_index(stack, lock.building, "requirements-build", "building"),
        *(
            RequirementList(
                name=f"requirements-sdist-{p.name}.txt",
                use="sdist",
                index=index_of(stack, p),
                packages=[p],
                sdist=allowed[p.file.sha256],
            )
            for p in built
        ),
    ]


def index_of(stack: Stack, package: LockedPackage) -> str:
    """The name of the one index that the package comes from."""
    return next((index.name for index in stack.indexes if index.claims(package.name)), PUBLIC)


def _by_index(
    stack: Stack,
    packages: Iterable[LockedPackage],
    stem: str,
    use: Literal["environment", "building"],
) -> Iterator[RequirementList]:
    """The public index's first."""
    grouped: dict[str, list[LockedPackage]] = {}
    for package in packages:
        grouped.setdefault(index_of(stack, package), []).append(package)
    for index, found in sorted(grouped.items(), key=lambda item: (item[0] != PUBLIC, item[0])):
        name = f"{stem}.txt" if index == PUBLIC else f"{stem}-{index}.txt"
        ordered = sorted(found, key=lambda package: package.name)
        yield RequirementList(name=name, use=use, index=index, packages=ordered)


def texts(stack: Stack, lock: Lockfile) -> dict[str, str]:
    """The lists of a lock: file name → text. They are what the Dockerfile of that lock copies."""
    return {one.name: text(one.lines, of(lock)) for one in requirement_lists(stack, lock)}


def of(lock: Lockfile) -> LockSummary:
    return LockSummary(
        stack=lock.stack,
        release=lock.release,
        python=lock.python,
        architecture=lock.architecture,
        digest=pylock.digest(lock),
        created_at=lock.created_at,
        provided=sorted(lock.provided),
    )


def text(lines: list[str], of: LockSummary | None = None) -> str:
    first = "# written by envcheck"
    if of:
        first = _MARK + safe_text.json_text(msgspec.json.encode(of).decode())
    return "\n".join([first, *lines, ""])


def digest(content: bytes) -> str:
    """The digest of the lock that a list is of; "" where it does not say."""
    found = _of(content.decode().partition("\n")[0], "the list")
    return found.digest if found else ""


def read_of(path: Path) -> LockSummary | None:
    """What a list says of its lock; None where there is no such file, or it is not envcheck's."""
    try:
        with path.open(encoding="utf-8") as file:
            first = file.readline()
    except (OSError, UnicodeDecodeError):
        return None
    return _of(first, str(path))


def _of(first: str, where: str) -> LockSummary | None:
    if not first.startswith(_MARK):
        return None
    try:
        return msgspec.json.decode(first[len(_MARK) :], type=LockSummary)
    except msgspec.MsgspecError as error:
        raise UsageError(f"{where}: its first line cannot be read: {error}") from None


def held(folder: Path) -> LockSummary | None:
    """The lock that a directory's lists are of; None where there are none. Raises UsageError for two."""
    found = {path.name: read_of(path) for path in sorted(folder.glob("requirements*.txt"))}
    known = {name: one for name, one in found.items() if one is not None}
    if len({one.digest for one in known.values()}) > 1:
        raise UsageError(f"{folder}: its lists are of several locks: {', '.join(known)}")
    return next(iter(known.values()), None)


def read(folder: Path) -> LockedLists | None:
    """The lock whose lists lie in a directory; None where there are none. Raises UsageError."""
    found = held(folder)
    if found is None:
        return None
    stack = catalogue.load(found.stack)
    wheels, building, sdists = (
        list(_read_all(folder, stack, stem))
        for stem in ("requirements", "requirements-build", "requirements-sdist")
    )
    lock = Lockfile(
        stack=found.stack,
        release=found.release,
        python=found.python,
        architecture=found.architecture,
        packages=[*wheels, *sdists],
        building=building,
        provided={name: stack.provides.get(name, "") for name in found.provided},
        created_at=found.created_at,
    )
    if wrong := pylock_grammar.problem(lock):
        raise UsageError(f"{folder}: its lists are of no valid lock: {wrong}")
    return LockedLists(stack=stack, lock=lock, digest=found.digest)


def _read_all(folder: Path, stack: Stack, stem: str) -> Iterator[LockedPackage]:
    end = ".tar.gz" if stem == "requirements-sdist" else "-py3-none-any.whl"
    addresses = {PUBLIC: "", **{index.name: index.urls[0] for index in stack.indexes}}
    names = [f"{stem}.txt", *(f"{stem}-{index.name}.txt" for index in stack.indexes)]
    if stem == "requirements-sdist":
        names = [f"{stem}-{sdist.name}.txt" for sdist in stack.sdists]
    for name in names:
        for line in _lines(folder / name):
            package = line["name"]
            index = next((i.name for i in stack.indexes if i.claims(package)), PUBLIC)
            file = f"{package.replace('-', '_')}-{line['version']}{end}"
            yield LockedPackage(
                name=package,
                version=line["version"],
                index=addresses[index],
                file=LockedFile(name=file, url="", sha256=line["sha256"]),
            )


def _lines(path: Path) -> Iterator[re.Match[str]]:
    try:
        content = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read: {error}") from None
    for number, line in enumerate(content.splitlines(), 1):
        if line.startswith("#") or not line.strip():
            continue
        found = _LINE.fullmatch(line)
        if found is None:
            raise UsageError(f"{path}:{number}: this is not NAME==VERSION --hash=sha256:HASH")
        yield found
