"""A folder of wheels and sdists as a lock, and as what fetches its files: no network behind it."""

from __future__ import annotations

import platform
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import virtualenv
from packaging.utils import canonicalize_name, parse_sdist_filename, parse_wheel_filename
from processes import PATIENCE
from wheel_maker import sha256

from envcheck.install.lockfile import LockedFile, LockedPackage, Lockfile

ORIGIN = "https://index.example/files/"
INDEX = "https://index.example/simple/"


class Arrived:
    """A transfer that has ended."""

    complete = True
    error: Exception | None = None

    def __init__(self, path: Path) -> None:
        self._path = path
        self.total: int | None = path.stat().st_size

    def named(self) -> Path:
        return self._path


class FolderFetcher:
    """Has every file of the folder at once; takes the place of a Fetcher."""

    def __init__(self, folder: Path) -> None:
        self.files = {sha256(path): path for path in sorted(folder.iterdir()) if path.is_file()}

    def want(self, file: LockedFile, *, first: bool = False) -> Arrived:
        return Arrived(self.files[file.sha256])


def lock_of(folder: Path, python: str, building: Iterable[str] = ()) -> Lockfile:
    """Everything in the folder, locked; the files of the names in ``building`` as build tools."""
    packages: dict[bool, list[LockedPackage]] = {True: [], False: []}
    for key, path in FolderFetcher(folder).files.items():
        parsed = parse_wheel_filename if path.suffix == ".whl" else parse_sdist_filename
        name, version = parsed(path.name)[:2]
        file = LockedFile(
            name=path.name, url=ORIGIN + path.name, sha256=key, size=path.stat().st_size
        )
        package = LockedPackage(
            name=canonicalize_name(name), version=str(version), index=INDEX, file=file
        )
        packages[package.name in building].append(package)
    return Lockfile(
        stack="test",
        release="1",
        python=python,
        architecture=platform.machine(),
        packages=sorted(packages[False], key=lambda package: package.name),
        building=packages[True],
    )


def bundled(name: str, folder: Path, python: str = "") -> Path:
    """The wheel of pip or setuptools that came with virtualenv, or with an old Python's ensurepip."""
    if python:
        asked = [python, "-c", "import ensurepip; print(ensurepip.__file__)"]
        told = subprocess.run(asked, capture_output=True, text=True, timeout=PATIENCE, check=True)
        shelf = Path(told.stdout.strip()).parent / "_bundled"
    else:
        shelf = Path(virtualenv.__file__).parent / "seed" / "wheels" / "embed"
    newest = max(shelf.glob(f"{name}-*.whl"), key=lambda path: parse_wheel_filename(path.name)[1])
    folder.mkdir(parents=True, exist_ok=True)
    return Path(shutil.copy(newest, folder))
