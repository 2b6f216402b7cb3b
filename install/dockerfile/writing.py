"""Puts the files of a build context into a directory, and over nothing that is not envcheck's."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path

from ...exit_codes import UsageError

_TEXTS = ("Dockerfile", "requirements*.txt", "envcheck-*.txt", "pylock.toml")
_WHEELS = ("envcheck_gpu-*.whl",)  # its name says whose it is


def check(folder: Path) -> None:
    """Raises UsageError where the directory cannot be written, or has a file of such a name that is not
    envcheck's."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"--dockerfile {folder}: this is not a directory")
    if not folder.exists() and not folder.parent.is_dir():
        raise UsageError(f"--dockerfile {folder}: there is no directory {folder.parent}")
    for path in _there(folder, _TEXTS):
        if not _is_own(path):
            raise UsageError(
                f"--dockerfile {folder}: {path.name} is there, and is not from envcheck",
                hint="name another directory, or move the file away",
            )


def write(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write them all, and remove what envcheck wrote there before and is not among them."""
    check(folder)
    try:
        folder.mkdir(exist_ok=True)
        for name, data in files.items():
            _replace(folder / name, data)
        for path in _there(folder, (*_TEXTS, *_WHEELS)):
            if path.name not in files:
                path.unlink()
    except OSError as error:
        named = error.filename or folder
        raise UsageError(f"--dockerfile {folder}: {named}: {error.strerror}") from None


def _there(folder: Path, patterns: tuple[str, ...]) -> list[Path]:
    if not folder.is_dir():
        return []
    return [
        path
        for path in sorted(folder.iterdir())
        if any(fnmatchcase(path.name, pattern) for pattern in patterns)
    ]


def _is_own(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            first = file.readline(4096)
    except OSError:
        return False
    return first.startswith(b"#") and b"envcheck" in first


def _replace(path: Path, data: bytes) -> None:
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(temporary).chmod(0o644)  # whoever builds may be another
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
