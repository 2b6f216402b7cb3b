"""A folder of wheels and sdists as a lock, installed from there without a network."""

from __future__ import annotations

import platform
import shutil
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import unquote, urlsplit

import virtualenv
from packaging.utils import canonicalize_name, parse_sdist_filename, parse_wheel_filename
from processes import ran
from wheel_maker import sha256

from envcheck.install.catalogue.model import Stack
from envcheck.install.downloads import Downloads, read
from envcheck.install.lockfile import LockedFile, LockedPackage, Lockfile
from envcheck.install.wheels import installing

INDEX = "https://index.example/simple/"


def install(directory: Path, lock: Lockfile, stack: Stack, folder: Path | None = None) -> None:
    """Install from files of this machine, without a network. folder: copied into the downloads first."""
    downloads = Downloads()
    for package in [*lock.packages, *lock.building]:
        path = Path(unquote(urlsplit(package.file.url).path))
        if folder is not None or package.file.kind == "sdist":
            downloads.add(package.file, read(path))
    target = installing.InstallTarget(directory, installing.FileSource(downloads, None))
    installing.install(target, lock, stack)


def lock_of(folder: Path, python: str, building: Iterable[str] = ()) -> Lockfile:
    """Everything in the folder, locked; the files of the names in ``building`` as build tools."""
    packages: dict[bool, list[LockedPackage]] = {True: [], False: []}
    for path in sorted(path for path in folder.iterdir() if path.is_file()):
        parsed = parse_wheel_filename if path.suffix == ".whl" else parse_sdist_filename
        name, version = parsed(path.name)[:2]
        file = LockedFile(
            name=path.name, url=path.as_uri(), sha256=sha256(path), size=path.stat().st_size
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
        result = ran(asked, text=True, check=True)
        shelf = Path(result.stdout.strip()).parent / "_bundled"
    else:
        shelf = Path(virtualenv.__file__).parent / "seed" / "wheels" / "embed"
    newest = max(shelf.glob(f"{name}-*.whl"), key=lambda path: parse_wheel_filename(path.name)[1])
    folder.mkdir(parents=True, exist_ok=True)
    return Path(shutil.copy(newest, folder))
