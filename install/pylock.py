"""The lock as a file: `pylock.toml` (PEP 751), in which every package has exactly one file.

What PEP 751 has no place for stands in ``[tool.envcheck]``. The same Lockfile gives the same bytes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import msgspec
import tomli
import tomli_w
from packaging.markers import Marker
from packaging.pylock import (
    Package,
    PackageSdist,
    PackageWheel,
    Pylock,
    PylockUnsupportedVersionError,
    PylockValidationError,
)
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from ..exit_codes import UsageError
from .lockfile import LockedFile, LockedPackage, Lockfile, problem

CREATOR = "envcheck"

_SAME = ("stack", "release", "python", "architecture")  # of a lock and of [tool.envcheck]


class _Ours(msgspec.Struct, forbid_unknown_fields=True, rename="kebab"):
    """``[tool.envcheck]``."""

    stack: str
    release: str
    python: str
    architecture: str
    gpu: bool = True
    created_at: str = ""
    provided: dict[str, str] = {}
    building: list[dict[str, Any]] = []


def text(lock: Lockfile) -> str:
    """The lock as pylock.toml; credentials in URLs are left out."""
    ours: dict[str, Any] = {name: getattr(lock, name) for name in _SAME}
    if not lock.gpu:  # an older envcheck reads other locks as ever
        ours["gpu"] = False
    if lock.created_at:
        ours["created-at"] = lock.created_at
    if lock.provided:
        ours["provided"] = dict(sorted(lock.provided.items()))
    if lock.building:
        ours["building"] = _pylock(lock, lock.building).to_dict()["packages"]
    return tomli_w.dumps({**_pylock(lock, lock.packages).to_dict(), "tool": {CREATOR: ours}})


def read(path: Path) -> Lockfile:
    """The lock that ``text`` wrote.

    Raises UsageError, with the file and the place in it, for anything else: a lock of uv's or pip's
    own holds several files for a package, and does not say which stack and Python it is for.
    """
    try:
        content = path.read_bytes().decode("utf-8")
    except OSError as error:
        raise UsageError(f"{path}: the lock cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not a lock: it is not UTF-8 text") from None
    return parse(content, str(path))


def parse(content: str, where: str) -> Lockfile:
    """``read``, of a text; ``where`` is what errors call it."""
    try:
        raw = tomli.loads(content)
    except tomli.TOMLDecodeError as error:
        place = f"{where}:{error.lineno}:{error.colno}"
        raise UsageError(f"{place}: the lock is not valid TOML: {error.msg}") from None
    except RecursionError:
        raise UsageError(f"{where}: this is not a lock: it is nested too deeply") from None
    except ValueError:  # Python's own limit on digits
        raise UsageError(f"{where}: this is not a lock: a number in it is too long") from None
    pylock = _validated(raw, where)
    ours = _ours(raw, pylock, where)
    building = _validated({**raw, "packages": ours.building}, f"{where}: tool.envcheck.building")
    lock = Lockfile(
        **{name: getattr(ours, name) for name in (*_SAME, "provided", "gpu", "created_at")},
        packages=[_locked(package, where) for package in pylock.packages],
        building=[_locked(package, where) for package in building.packages],
    )
    if wrong := problem(lock):
        raise UsageError(f"{where} is not a valid lock: {wrong}")
    return lock


def digest(lock: Lockfile) -> str:
    """sha256 of what is installed, whenever it was locked: 64 hexadecimal digits."""
    timeless = msgspec.structs.replace(lock, created_at="", gpu=True)
    return hashlib.sha256(text(timeless).encode()).hexdigest()


def for_uv(packages: Iterable[LockedPackage], address: Callable[[LockedFile], str]) -> str:
    """The pylock.toml that uv installs these from, with hashes. address: of a file, its URL.

    By the index uv finds in its cache what it has unpacked before.
    """
    listed = []
    for package in packages:
        url = address(package.file)
        file = {"name": package.file.name, "url": url, "hashes": {"sha256": package.file.sha256}}
        kind = {"wheels": [file]} if package.file.kind == "wheel" else {"sdist": file}
        of = {"index": package.index} if package.index and url == package.file.url else {}
        listed.append({"name": package.name, "version": package.version, **of, **kind})
    return tomli_w.dumps({"lock-version": "1.0", "created-by": CREATOR, "packages": listed})


def for_pip(packages: Iterable[LockedPackage]) -> str:
    """Requirements with hashes, a line for each package."""
    return "".join(f"{p.name}=={p.version} --hash=sha256:{p.file.sha256}\n" for p in packages)


def _pylock(lock: Lockfile, packages: Sequence[LockedPackage]) -> Pylock:
    return Pylock(
        lock_version=Version("1.0"),
        environments=[
            Marker(f"sys_platform == 'linux' and platform_machine == '{lock.architecture}'")
        ],
        requires_python=SpecifierSet(f"=={lock.python}.*"),
        created_by=CREATOR,
        packages=[_package(package) for package in packages],
    )


def _package(package: LockedPackage) -> Package:
    file = package.file
    parts: dict[str, Any] = {
        "name": file.name,
        "url": _public(file.url),
        "size": file.size,
        "hashes": {"sha256": file.sha256},
    }
    wheel = file.kind == "wheel"
    return Package(
        name=canonicalize_name(package.name),
        version=Version(package.version),
        index=_public(package.index) or None,
        wheels=[PackageWheel(**parts)] if wheel else None,
        sdist=None if wheel else PackageSdist(**parts),
        tool={CREATOR: {"needed-by": package.needed_by}} if package.needed_by else None,
    )


def _public(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def _validated(raw: Mapping[str, Any], where: str) -> Pylock:
    try:
        return Pylock.from_dict(raw)
    except PylockUnsupportedVersionError as error:
        raise UsageError(f"{where}: {error}; envcheck reads version 1.0 of pylock.toml") from None
    except PylockValidationError as error:
        raise UsageError(f"{where} is not a valid lock: {error}") from None


def _ours(raw: Mapping[str, Any], pylock: Pylock, where: str) -> _Ours:
    section = (pylock.tool or {}).get(CREATOR)
    if section is None:
        raise UsageError(
            f"{where} was made by {pylock.created_by!r} and has no [tool.envcheck], so that neither "
            "its stack nor its Python is known",
            hint="let envcheck lock: `envcheck bundle` and every environment of envcheck's hold a lock",
        )
    try:
        ours = msgspec.convert(section, _Ours)
    except msgspec.ValidationError as error:
        message = str(error).replace("`$.", "`").replace(" - at `$`", "")
        raise UsageError(f"{where}: [tool.envcheck] is not valid: {message}") from None
    return ours


def _locked(package: Package, where: str) -> LockedPackage:
    place = f"{where}: package {package.name}"
    files: list[PackageWheel | PackageSdist] = list(package.wheels or [])
    if package.sdist:
        files.append(package.sdist)
    if len(files) != 1 or package.version is None:
        raise UsageError(
            f"{place}: {len(files)} files and version {package.version}; envcheck's lock has one "
            "wheel or sdist for each package, and its version"
        )
    (file,) = files
    name, url, sha256 = file.filename, file.url or "", file.hashes.get("sha256", "")
    if not url.startswith(("https://", "http://", "file://")):
        raise UsageError(f"{place}: {name} has no address (url = {url!r})")
    needed_by = ((package.tool or {}).get(CREATOR) or {}).get("needed-by", [])
    return LockedPackage(
        name=package.name,
        version=str(package.version),
        index=package.index or "",
        file=LockedFile(name=name, url=url, sha256=sha256, size=file.size),
        needed_by=[str(one) for one in needed_by],
    )
