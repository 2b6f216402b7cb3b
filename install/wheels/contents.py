"""Compares what uv has installed with the RECORD of each wheel.

uv links files from its cache and does not look at them again. What was changed there, for example by an
editor in an environment that is linked to the same file, would be installed once more.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from ..downloads import read

_AT_ONCE = 8  # threads; hashing lets others run
_PAUSE = 30.0  # seconds between two files of one unpacking: the largest has 1.2 GB


def files(top: Path) -> set[str]:
    """Every file below a folder, links included. Strings: there are tens of thousands."""
    found: set[str] = set()
    for folder, folders, names in os.walk(top):
        links = [name for name in folders if os.path.islink(f"{folder}/{name}")]  # noqa: PTH114
        found.update(f"{folder}/{name}" for name in (*names, *links))
    return found


def differing(site: Path, before: set[str], *, linked: bool) -> list[str]:
    """Installed files that are not as recorded, or that no wheel records.

    site: where modules go. before: files that were there already. linked: by hard links; then files that were
    changed after their wheel was unpacked are read. Others are not: a RECORD may be wrong, and no installer
    minds.
    """
    hashes: dict[str, set[str]] = {}  # one wheel may overwrite another's file
    wrong: set[str] = set()
    suspects: set[str] = set()
    for record in site.glob("*.dist-info/RECORD"):
        times = []
        for path, digest in _entries(record).items():
            hashes.setdefault(path, set()).add(digest)
            try:
                status = os.lstat(path)
            except OSError:
                wrong.add(path)
                continue
            times.append((status.st_mtime, path))
            if not stat.S_ISREG(status.st_mode):
                wrong.add(path)
        suspects |= _changed_later(times) if linked else set()
    with ThreadPoolExecutor(min(_AT_ONCE, os.cpu_count() or 1)) as pool:
        wanted = sorted(suspects - wrong)
        same = pool.map(lambda path: "" in hashes[path] or _sha256(path) in hashes[path], wanted)
        wrong |= {path for path, is_same in zip(wanted, same, strict=True) if not is_same}
    extra = files(site) - hashes.keys() - {f"{site}/.lock"}
    return sorted((wrong | extra) - before)


def _entries(record: Path) -> dict[str, str]:
    """The files of a wheel, each with "sha256=…"; "" where its RECORD has none."""
    site, found = str(record.parent.parent), {}
    for row in csv.reader(record.read_text("utf-8", "replace").splitlines()):
        if row:
            path = f"{site}/{row[0]}"
            digest = row[1] if len(row) > 1 else ""
            found[os.path.normpath(path) if ".." in path else path] = digest
    return found


def _changed_later(times: list[tuple[float, str]]) -> set[str]:
    """Files that are newer than their wheel's unpacking, which writes one after the other."""
    times.sort()
    for number in range(1, len(times)):
        if times[number][0] - times[number - 1][0] > _PAUSE:
            return {path for _, path in times[number:]}
    return set()


def _sha256(path: str) -> str:
    """As a RECORD has it."""
    found = hashlib.sha256()
    with suppress(OSError):
        for piece in read(Path(path)):
            found.update(piece)
    return "sha256=" + base64.urlsafe_b64encode(found.digest()).decode().rstrip("=")
