"""Every file of a version with size and time, so that a look tells whether it is as it was installed.

Sizes and times are compared, not bytes: the locks' hashes were checked when the files were unpacked, and
30,000 files have to be looked at in a fraction of a second. Byte code is left out, since running Python
writes it.
"""

from __future__ import annotations

import os
from contextlib import suppress
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
    except msgspec.DecodeError:
        return Difference(unreadable=f"{version.files}: this is not a list of files")
    found = scan(version.directory)
    missing, changed, added = [], [], []
    for folder in sorted(noted.keys() | found.keys()):
        before, after = noted.get(folder, {}), found.get(folder, {})
        if before == after:
            continue
        missing += [_join(folder, name) for name in sorted(before.keys() - after.keys())]
        added += [_join(folder, name) for name in sorted(after.keys() - before.keys())]
        changed += [
            _join(folder, name)
            for name in sorted(before.keys() & after.keys())
            if before[name] != after[name]
        ]
    if version.is_container:
        missing += [f"{OWN}/{path.name}" for path in version.of_image if not path.exists()]
    elif not version.python.exists():  # a link, whose target is not the version's
        missing.append("bin/python, or the Python that it leads to,")
    return Difference(missing=missing, changed=changed, added=added)


def scan(directory: Path) -> Files:
    """Every file and link below it, without byte code and envcheck's own files."""
    files: Files = {}
    waiting = [""]
    while waiting:
        folder = waiting.pop()
        names: dict[str, tuple[int, int]] = {}
        for entry in _listing(directory / folder):
            name = entry.name
            if entry.is_dir(follow_symlinks=False):
                if name != _BYTE_CODE and not (folder == "" and name == OWN):
                    waiting.append(_join(folder, name))
            elif not name.endswith(_GENERATED):
                with suppress(OSError):  # gone since, or too deep for a path
                    status = entry.stat(follow_symlinks=False)
                    names[name] = (status.st_size, status.st_mtime_ns)
        if names:
            files[folder] = names
    return files


def blocks(directories: list[Path]) -> dict[tuple[int, int], tuple[int, int, int]]:
    """Every file below them by device and inode: (allocated bytes, its links, its links below them)."""
    found: dict[tuple[int, int], tuple[int, int, int]] = {}
    waiting = list(directories)
    while waiting:
        for entry in _listing(waiting.pop()):
            try:
                status = entry.stat(follow_symlinks=False)
            except OSError:  # gone since, or too deep for a path
                continue
            folder = entry.is_dir(follow_symlinks=False)
            if folder:
                waiting.append(Path(entry.path))
            key = (status.st_dev, status.st_ino)
            seen = found.get(key, (0, 0, 0))[2]
            links = 1 if folder else status.st_nlink
            found[key] = (status.st_blocks * 512, links, seen + 1)
    return found


def usage(directories: list[Path]) -> Usage:
    """What directories take together, and how much of it is linked from outside of them too."""
    found = blocks(directories).values()
    return Usage(
        total=sum(size for size, _, _ in found),
        shared=sum(size for size, links, here in found if links > here),
    )


def _listing(path: Path) -> list[os.DirEntry[str]]:
    """What is in it; nothing where there is nothing (any more), or we may not look."""
    try:
        with os.scandir(path) as entries:
            return list(entries)
    except OSError:
        return []


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _sentence(paths: list[str], one: str, many: str) -> str:
    shown = ", ".join(paths[:3])
    if len(paths) == 1:
        return f"{shown} {one}"
    rest = len(paths) - 3
    return f"{shown} and {rest} more {many}" if rest > 0 else f"{shown} {many}"
