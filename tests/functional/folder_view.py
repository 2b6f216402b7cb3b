"""A folder of wheels and sdists as a view for envcheck's loopback index: no network behind it."""

from __future__ import annotations

import platform
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

import virtualenv
from packaging.utils import canonicalize_name, parse_sdist_filename, parse_wheel_filename
from wheel_maker import sha256

from envcheck.install.index.simple import ProjectFile
from envcheck.install.index.views import Pinned
from envcheck.install.lockfile import LockedFile, LockedPackage, Lockfile

ORIGIN = "https://index.example/files/"
INDEX = "https://index.example/simple/"


class Arrived:
    """A transfer that has ended."""

    complete = True
    error = None
    offset = 0

    def __init__(self, path: Path) -> None:
        self._path = path
        self.total: int | None = path.stat().st_size

    def available(self) -> int:
        return self._path.stat().st_size

    def wait_beyond(self, offset: int, timeout: float) -> int:
        return self.available()

    def open(self) -> BinaryIO:
        return self._path.open("rb")

    def named(self) -> Path:
        return self._path


class FolderView:
    """Shows every file in the folder; takes the place of OpenIndex and of ClosedIndex."""

    def __init__(self, folder: Path, kept_out: dict[str, str] | None = None) -> None:
        self._files = {sha256(path): path for path in sorted(folder.iterdir()) if path.is_file()}
        self._kept_out = kept_out or {}
        self.asked: list[str] = []

    def project(self, name: str) -> list[ProjectFile] | None:
        self.asked.append(name)
        found = [
            shown for key, path in self._files.items() if (shown := _shown(key, path)).name == name
        ]
        return found or None

    def metadata(self, key: str) -> bytes | None:
        return None

    def file(self, key: str) -> Arrived | None:
        return Arrived(self._files[key]) if key in self._files else None

    def pin(self, keys: Iterable[str]) -> dict[str, Pinned]:
        return {key: self._pinned(key) for key in keys}

    def replace(self, key: str, path: Path) -> None:
        """Serve another file under this one's hash."""
        self._files[key] = path

    def explain(self, name: str) -> str:
        return self._kept_out.get(name, "")

    def _pinned(self, key: str) -> Pinned:
        path = self._files[key]
        file = LockedFile(
            name=path.name, url=ORIGIN + path.name, sha256=key, size=path.stat().st_size
        )
        return Pinned(file=file, index=INDEX, learnt=False)


def _shown(key: str, path: Path) -> ProjectFile:
    if path.name.endswith(".whl"):
        name, version = parse_wheel_filename(path.name)[:2]
    else:
        name, version = parse_sdist_filename(path.name)
    return ProjectFile(
        filename=path.name,
        url=ORIGIN + path.name,
        sha256=key,
        name=canonicalize_name(name),
        version=version,
    )


def lock_of(folder: Path, python: str, building: Iterable[str] = ()) -> Lockfile:
    """Everything in the folder, locked; the files of the names in ``building`` as build tools."""
    view = FolderView(folder)
    packages: dict[bool, list[LockedPackage]] = {True: [], False: []}
    for key, path in view._files.items():
        shown, pinned = _shown(key, path), view._pinned(key)
        package = LockedPackage(
            name=shown.name, version=str(shown.version), index=pinned.index, file=pinned.file
        )
        packages[shown.name in building].append(package)
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
        told = subprocess.run(asked, capture_output=True, text=True, timeout=60, check=True)
        shelf = Path(told.stdout.strip()).parent / "_bundled"
    else:
        shelf = Path(virtualenv.__file__).parent / "seed" / "wheels" / "embed"
    newest = max(shelf.glob(f"{name}-*.whl"), key=lambda path: parse_wheel_filename(path.name)[1])
    folder.mkdir(parents=True, exist_ok=True)
    return Path(shutil.copy(newest, folder))
