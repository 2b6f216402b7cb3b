"""Holds what uv has installed against the wheels that the lock names.

uv links files from its cache of unpacked wheels and does not look at them again. What was changed there, for
example by an editor in an environment that is linked to the same file, would be installed once more. The
wheels themselves are verified, and say what their files hold.
"""

from __future__ import annotations

import base64
import csv
import io
import os
import stat
import zipfile
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from ..store.store import PIECE, hash_of

_AT_ONCE = 8  # threads; hashing lets others run
_WRITTEN = {"RECORD", "INSTALLER", "REQUESTED", "direct_url.json", "uv_cache.json", "uv_build.json"}
_START = b"#!python"  # of a script whose first line the installer writes


class Unpacked:
    """A context manager. The files of added wheels are read while others are still being installed."""

    def __init__(self, site: Path, prefix: Path) -> None:
        """site: where modules go. prefix: the environment, or the directory in its place."""
        self._site = site
        self._prefix = prefix
        self._claimed: dict[Path, list[Path]] = {}  # installed file → wheels that hold it
        self._before = set(_files(site))
        self._pool = ThreadPoolExecutor(min(_AT_ONCE, os.cpu_count() or 1))
        self._jobs: list[Future[list[Path]]] = []

    def __enter__(self) -> Unpacked:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown(cancel_futures=kind is not None)

    def add(self, wheel: Path) -> None:
        """Every file of this wheel has been installed. Raises OSError, zipfile.BadZipFile."""
        with zipfile.ZipFile(wheel) as archive:
            hashes = _recorded(archive)
            files = {path: entry for entry in archive.infolist() if (path := self._place(entry))}
        for path in files:
            self._claimed.setdefault(path, []).append(wheel)
        whole = [(path, entry, hashes.get(entry.filename, "")) for path, entry in files.items()]
        whole.sort(key=lambda file: -file[1].file_size)
        for part in range(min(_AT_ONCE, len(whole))):
            self._jobs.append(self._pool.submit(_wrong, wheel, whole[part::_AT_ONCE]))

    def differing(self) -> list[Path]:
        """Installed files that are not what their wheels hold, or that no wheel holds."""
        suspects = [path for job in self._jobs for path in job.result()]
        wrong = {path for path in suspects if not self._is_another_wheel_s(path)}
        known = self._before | self._claimed.keys()
        there = set(_files(self._site)) - known
        return sorted(wrong | {path for path in there if not self._is_written(path)})

    def _place(self, entry: zipfile.ZipInfo) -> Path | None:
        """Where an installer puts it; None for a directory, and for what it writes itself."""
        parts = tuple(entry.filename.split("/"))
        if entry.is_dir() or (parts[0].endswith(".dist-info") and parts[-1] in _WRITTEN):
            return None
        if not parts[0].endswith(".data") or len(parts) < 3:
            return self._site.joinpath(*parts)
        kind, rest = parts[1], parts[2:]
        if kind in ("purelib", "platlib"):
            return self._site.joinpath(*rest)
        if kind in ("scripts", "data"):
            return self._prefix.joinpath(*(["bin"] if kind == "scripts" else []), *rest)
        return None  # headers: nothing that runs, and their place depends on the Python

    def _is_written(self, path: Path) -> bool:
        """Whether an installer, or the environment's own Python, writes it."""
        if path.parent.name.endswith(".dist-info"):
            return path.name in _WRITTEN
        if path.parent.name == "__pycache__":
            return path.name.startswith("_virtualenv.")
        return path in (self._site / ".lock", self._prefix / "bin" / path.name)

    def _is_another_wheel_s(self, path: Path) -> bool:
        """Whether it is what another of the wheels holds that have a file there: one overwrites the other."""
        for wheel in self._claimed[path]:
            with zipfile.ZipFile(wheel) as archive:
                for entry in archive.infolist():
                    if self._place(entry) == path and _is_same(path, archive, entry):
                        return True
        return False


def _recorded(archive: zipfile.ZipFile) -> dict[str, str]:
    """By name, the sha256 that the wheel's RECORD has of it, as hexadecimal digits."""
    name = next(
        (n for n in archive.namelist() if n.endswith(".dist-info/RECORD") and n.count("/") == 1), ""
    )
    rows = csv.reader(io.StringIO(archive.read(name).decode("utf-8", "replace") if name else ""))
    found = {}
    for row in rows:
        kind, _, digest = row[1].partition("=") if len(row) > 1 else ("", "", "")
        if kind == "sha256":
            with suppress(ValueError):
                found[row[0]] = base64.urlsafe_b64decode(digest + "=" * (-len(digest) % 4)).hex()
    return found


def _wrong(wheel: Path, files: list[tuple[Path, zipfile.ZipInfo, str]]) -> list[Path]:
    """Those that are not what the wheel holds."""
    wrong = [(path, entry) for path, entry, sha256 in files if not _has(path, entry, sha256)]
    if not wrong:
        return []
    with zipfile.ZipFile(wheel) as archive:  # a RECORD may be wrong, and no installer minds
        return [path for path, entry in wrong if not _is_same(path, archive, entry)]


def _has(path: Path, entry: zipfile.ZipInfo, sha256: str) -> bool:
    try:
        status = path.lstat()
        return (
            stat.S_ISREG(status.st_mode)
            and status.st_size == entry.file_size
            and hash_of(path) == sha256
        )
    except OSError:
        return False


def _is_same(path: Path, archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bool:
    """Byte by byte; of a script whose first line the installer has written, the others."""
    try:
        if path.is_symlink():
            return False
        with path.open("rb") as installed, archive.open(entry) as source:
            first = source.readline(PIECE)
            if not first.startswith(_START):
                source.seek(0)
            elif first.endswith(b"\n"):
                return installed.read().endswith(source.read())
            while piece := source.read(PIECE):
                if installed.read(len(piece)) != piece:
                    return False
            return not installed.read(1)
    except OSError:
        return False


def _files(top: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(top):
        links = [name for name in folders if os.path.islink(f"{folder}/{name}")]  # noqa: PTH114
        yield from (Path(folder, name) for name in (*names, *links))
