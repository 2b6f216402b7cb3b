"""Every file of a version with size and time, so that a look tells whether it is as it was installed.

Sizes and times are compared, not bytes: the locks' hashes were checked when the files were unpacked, and
30,000 files have to be looked at in a fraction of a second. Byte code is left out, since running Python
writes it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path

import msgspec

from .. import durable
from .layout import OWN, Version

_BYTE_CODE = "__pycache__"
_GENERATED = (".pyc", ".pyo")

# directory → name → (bytes, modified in nanoseconds)
Files = dict[str, dict[str, tuple[int, int]]]


class FileList(msgspec.Struct, frozen=True):
    files: Files


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """What is not as it was installed; paths are relative to the version."""

    missing: list[str] = []
    changed: list[str] = []
    added: list[str] = []  # by the user's own `pip install`, as a rule
    unreadable: str = ""  # there is no manifest to compare with

    @property
    def intact(self) -> bool:
        """Whether all that was installed is there; more may be."""
        return not (self.missing or self.changed or self.unreadable)

    def sentences(self) -> list[str]:
        """One for each kind, with the first few paths; none where nothing differs."""
        kinds = [
            (self.missing, "is gone", "are gone"),
            (self.changed, "was changed", "were changed"),
            (self.added, "was added", "were added"),
        ]
        told = [_sentence(*kind) for kind in kinds if kind[0]]
        return [*filter(None, [self.unreadable]), *told]


class Usage(msgspec.Struct, frozen=True):
    """What directories take on the disk, in bytes of allocated blocks, each file once."""

    total: int
    shared: int  # of it, in files that are also linked from elsewhere: uv's cache, another version


def write(version: Version) -> None:
    """Note down what is there now, activation scripts where they will be. Raises OSError."""
    files = scan(version.directory)
    for names in scan(version.activate).values():
        files.setdefault("bin", {}).update(names)
    durable.write(version.files, msgspec.json.encode(FileList(files)))


def compare(version: Version) -> Difference:
    """What differs from what was noted down."""
    try:
        noted = durable.load(version.files, FileList).files
    except OSError as error:
        return Difference(unreadable=f"{version.files}: {error.strerror}")
    except ValueError:
        return Difference(unreadable=f"{version.files}: this is not a list of files")
    found = scan(version.directory)
    missing, changed, added = [], [], []
    for folder in sorted(noted.keys() | found.keys()):
        before, after = noted.get(folder, {}), found.get(folder, {})
        for name in sorted(before.keys() | after.keys()) if before != after else ():
            path = _join(folder, name)
            if name not in after:
                missing.append(path)
            elif name not in before:
                added.append(path)
            elif before[name] != after[name]:
                changed.append(path)
    if version.is_container:
        missing += [f"{OWN}/{path.name}" for path in version.of_image if not path.exists()]
    elif not version.python.exists():  # a link, whose target is not the version's
        missing.append("bin/python, or the Python that it leads to,")
    return Difference(missing=missing, changed=changed, added=added)


def scan(directory: Path) -> Files:
    """Every file and link below it, without byte code and envcheck's own files."""
    files: Files = {}
    for folder, name, status in _walk(directory, passed_over=(_BYTE_CODE, OWN)):
        if not stat.S_ISDIR(status.st_mode) and not name.endswith(_GENERATED):
            files.setdefault(folder, {})[name] = (status.st_size, status.st_mtime_ns)
    return files


def blocks(directories: list[Path]) -> dict[tuple[int, int], tuple[int, int, int]]:
    """Every file below them by device and inode: (allocated bytes, its links, its links below them)."""
    found: dict[tuple[int, int], tuple[int, int, int]] = {}
    for _, _, status in chain.from_iterable(map(_walk, directories)):
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


def _walk(
    top: Path, passed_over: tuple[str, ...] = ()
) -> Iterator[tuple[str, str, os.stat_result]]:
    """Everything below it: (its folder, "" or "lib/…", its name, its status), no link followed.

    passed_over: names of directories. What is gone since, may not be read or is too deep for a path is left
    out.
    """
    waiting = [""]
    while waiting:
        folder = waiting.pop()
        with suppress(OSError), os.scandir(top / folder) as entries:
            for entry in entries:
                is_directory = entry.is_dir(follow_symlinks=False)
                if is_directory and entry.name in passed_over:
                    continue
                with suppress(OSError):
                    status = entry.stat(follow_symlinks=False)
                    if is_directory:
                        waiting.append(_join(folder, entry.name))
                    yield folder, entry.name, status


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _sentence(paths: list[str], one: str, many: str) -> str:
    shown = ", ".join(paths[:3])
    if len(paths) == 1:
        return f"{shown} {one}"
    rest = len(paths) - 3
    return f"{shown} and {rest} more {many}" if rest > 0 else f"{shown} {many}"
