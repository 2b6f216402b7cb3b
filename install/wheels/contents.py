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
    suspects: set[str] = set()
    wrong: set[str] = set()
    for record in site.glob("*.dist-info/RECORD"):
        times = []
        for row in filter(None, csv.reader(record.read_text("utf-8", "replace").splitlines())):
            path = os.path.normpath(site / row[0])
            hashes.setdefault(path, set()).add(row[1] if row[1:] else "")
            try:
                status = os.lstat(path)
            except OSError:
                wrong.add(path)
                continue
            times.append((status.st_mtime, path))
            if not stat.S_ISREG(status.st_mode):
                wrong.add(path)
        # A wheel is unpacked one file after the other: what comes after a pause was written later.
        times.sort()
        gaps = [n for n in range(1, len(times)) if times[n][0] - times[n - 1][0] > _PAUSE]
        if linked and gaps:
            suspects.update(path for _, path in times[gaps[0] :])
    wanted = [path for path in sorted(suspects - wrong) if "" not in hashes[path]]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        sums = zip(wanted, pool.map(_sha256, wanted), strict=True)
        wrong |= {path for path, checksum in sums if checksum not in hashes[path]}
    extra = files(site) - hashes.keys() - {f"{site}/.lock"}
    return sorted((wrong | extra) - before)


def _sha256(path: str) -> str:
    """As a RECORD has it."""
    found = hashlib.sha256()
    for piece in read(Path(path)):
        found.update(piece)
    return "sha256=" + base64.urlsafe_b64encode(found.digest()).decode().rstrip("=")
