"""Puts the files of a build context into a directory, and over nothing that is not envcheck's."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from ...exit_codes import Cannot, UsageError

_STAGE = ".envcheck-"
_TEXTS = ("Dockerfile", "requirements*.txt", "envcheck-*.txt", "pylock.toml")
UV = "envcheck-uv"  # a program, as the wheel its name says whose it is
_BINARIES = ("envcheck_gpu-*.whl", UV)


def check(folder: Path) -> None:
    """Raises UsageError where the directory cannot be written, or has a file of such a name that is not
    envcheck's."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"--dockerfile {folder}: this is not a directory")
    if not folder.exists() and not folder.parent.is_dir():
        raise UsageError(f"--dockerfile {folder}: there is no directory {folder.parent}")
    written = folder if folder.exists() else folder.parent
    if not os.access(written, os.R_OK | os.W_OK | os.X_OK):
        raise UsageError(f"--dockerfile {folder}: no permission to write in {written}")
    for path in _there(folder, _TEXTS):
        if not _is_own(path):
            raise UsageError(
                f"--dockerfile {folder}: {path.name} exists, and envcheck did not make it",
                hint="name another directory, or move the file away",
            )


def write(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write them all, and remove what envcheck wrote there before and is not among them.

    The Dockerfile goes first and comes last: where it is, the rest is whole. Of what does not fit on the
    disk (Cannot), nothing is put there.
    """
    check(folder)
    new = not folder.exists()
    try:
        folder.mkdir(exist_ok=True)
        for left in folder.glob(f"{_STAGE}*"):  # of one that was killed
            shutil.rmtree(left, ignore_errors=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=_STAGE) as stage:
            for name, data in files.items():
                made = Path(stage) / name
                made.write_bytes(data)
                made.chmod(0o755 if name == UV else 0o644)  # whoever builds may be another
            (folder / "Dockerfile").unlink(missing_ok=True)
            for name in sorted(files, key="Dockerfile".__eq__):
                (Path(stage) / name).replace(folder / name)
        for path in _there(folder, (*_TEXTS, *_BINARIES)):
            if path.name not in files:
                path.unlink()
    except OSError as error:
        if new:
            with suppress(OSError):  # not empty
                folder.rmdir()
        kind = Cannot if error.errno in (errno.ENOSPC, errno.EDQUOT) else UsageError
        raise kind(f"--dockerfile {folder}: {error.strerror or error}") from None


def _there(folder: Path, patterns: tuple[str, ...]) -> list[Path]:
    return sorted(path for pattern in patterns for path in folder.glob(pattern))


def _is_own(path: Path) -> bool:
    if not path.is_file():  # to open a FIFO would wait for its writer
        return False
    with path.open("rb") as file:
        first = file.readline(4096)
    return first.startswith(b"#") and b"envcheck" in first
