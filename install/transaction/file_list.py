"""Every file of a version with size and time, so that a look shows whether it is as it was installed.

Sizes and times are compared, not bytes: 30,000 files have to be compared in a fraction of a second. Byte code
is excluded, since running Python writes it.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from os import scandir, stat_result
from pathlib import Path

import msgspec

from .. import durable
from .layout import OWN, Version

_BYTE_CODE = "__pycache__"
_GENERATED = (".pyc", ".pyo")

# path, relative to the version → (bytes, modified in nanoseconds)
Files = dict[str, tuple[int, int]]


class FileList(msgspec.Struct, frozen=True):
    files: dict[str, Files]  # by directory, then by name


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """What is not as it was installed; paths are relative to the version."""

    missing: list[str] = []
    changed: list[str] = []
    added: list[str] = []  # by the user's own `pip install`, as a rule
    unreadable: str = ""  # there is no list to compare with

    @property
    def intact(self) -> bool:
        """Whether all that was installed is there; more may be."""
        return not (self.missing or self.changed or self.unreadable)

    def sentences(self) -> list[str]:
        """One for each kind, with the first few paths."""
        kinds = ((self.missing, "gone"), (self.changed, "changed"), (self.added, "added"))
        found = [_sentence(paths, what) for paths, what in kinds if paths]
        return [*filter(None, [self.unreadable]), *found]


class Usage(msgspec.Struct, frozen=True):
    """What directories take on the disk, in bytes of allocated blocks, each file once."""

    total: int
    shared: int  # of it, in files that are also linked from elsewhere: uv's cache, another version


def write(version: Version) -> None:
    """Write down what is there now. Raises OSError."""
    found: dict[str, Files] = {}
    for path, of in _scan(version.directory).items():
        folder, _, name = path.rpartition("/")
        found.setdefault(folder, {})[name] = of
    durable.write(version.files, msgspec.json.encode(FileList(found)))


def compare(version: Version) -> Difference:
    """What differs from what was written down."""
    try:
        noted = durable.load(version.files, FileList).files
    except OSError as error:
        return Difference(unreadable=f"{version.files}: {error.strerror}")
    except ValueError:
        return Difference(unreadable=f"{version.files}: this is not a list of files")
    before = {
        f"{folder}/{name}".lstrip("/"): of
        for folder, all_ in noted.items()
        for name, of in all_.items()
    }
    after = _scan(version.directory)
    missing = sorted(before.keys() - after.keys())
    if version.is_container:
        missing += [f"{OWN}/{path.name}" for path in version.of_image if not path.exists()]
    elif not version.python.exists():  # a link, whose target is not the version's
        missing.append("bin/python, or the Python that it leads to,")
    changed = sorted(path for path in before.keys() & after.keys() if before[path] != after[path])
    return Difference(missing=missing, changed=changed, added=sorted(after.keys() - before.keys()))


def blocks(directories: list[Path]) -> dict[tuple[int, int], tuple[int, int, int]]:
    """Every file below them by device and inode: (allocated bytes, its links, its links below them)."""
    found: dict[tuple[int, int], tuple[int, int, int]] = {}
    for _, status in chain.from_iterable(map(_walk, directories)):
        key = (status.st_dev, status.st_ino)
        seen = found.get(key, (0, 0, 0))[2]
        links = 1 if stat.S_ISDIR(status.st_mode) else status.st_nlink
        found[key] = (status.st_blocks * 512, links, seen + 1)
    return found


def usage(directories: list[Path]) -> Usage:
    """What directories take together, and how much of it is linked from outside of them too."""
    found = blocks(directories).values()
    return Usage(
        total=sum(size for size, _, _ in found),
        shared=sum(size for size, links, here in found if links > here),
    )


def _scan(directory: Path) -> Files:
    """Every file and link below it, without byte code and envcheck's own files."""
    return {
        path: (status.st_size, status.st_mtime_ns)
        for path, status in _walk(directory, without=(_BYTE_CODE, OWN))
        if not stat.S_ISDIR(status.st_mode) and not path.endswith(_GENERATED)
    }


def _walk(top: Path, without: tuple[str, ...] = ()) -> Iterator[tuple[str, stat_result]]:
    """Everything below it: its path ("lib/…") and its status, no link followed.

    without: names of directories. What is gone or cannot be read is skipped.
    """
    waiting = [""]
    while waiting:
        folder = waiting.pop()
        with suppress(OSError), scandir(top / folder) as entries:
            for entry in entries:
                is_directory = entry.is_dir(follow_symlinks=False)
                if is_directory and entry.name in without:
                    continue
                with suppress(OSError):
                    status = entry.stat(follow_symlinks=False)
                    path = folder + entry.name
                    if is_directory:
                        waiting.append(f"{path}/")
                    yield path, status


def _sentence(paths: list[str], what: str) -> str:
    are, more = ("is", "are") if what == "gone" else ("was", "were"), len(paths) - 3
    return f"{', '.join(paths[:3])}{f' and {more} more' if more > 0 else ''} {are[len(paths) > 1]} {what}"
