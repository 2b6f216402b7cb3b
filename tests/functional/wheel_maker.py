"""Small wheels and source distributions, made by tests: valid, with right hashes, the same bytes every time.

wheel(folder, "nvidia-cublas-cu12", "12.1.3.1", tags="py3-none-manylinux1_x86_64", payload=1 << 20)
sdist(folder, "gast", "0.2.2", modules={"gast/__init__.py": "..."})
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import random
import re
import tarfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from packaging.requirements import Requirement

CHUNK = 1 << 20
EPOCH = (1980, 1, 1, 0, 0, 0)  # the first moment that a zip file can name


def escaped(name: str) -> str:
    """A distribution's name as file names have it: "nvidia_cublas_cu12"."""
    return re.sub(r"[-_.]+", "_", name)


def wheel(
    folder: Path,
    name: str,
    version: str,
    *,
    tags: str = "py3-none-any",
    build: str = "",
    requires: Sequence[str] = (),
    extras: Mapping[str, Sequence[str]] | None = None,
    requires_python: str = "",
    modules: Mapping[str, str] | None = None,
    scripts: Mapping[str, str] | None = None,
    payload: int = 0,
    inside: str = "",
) -> Path:
    """Make a wheel in ``folder``.

    inside: the version as the wheel itself writes it, where its file name has another spelling.
    tags: as in the file name ("py2.py3-none-any" is two). build: the build number in the file name.
    modules: path in the wheel → text; None: one module that knows its version. scripts: name →
    "module:function". payload: bytes that do not compress, in one file.
    """
    stem = f"{escaped(name)}-{version.replace('-', '_')}"
    version = inside or version
    info = f"{escaped(name)}-{version.replace('-', '_')}.dist-info"
    files = _modules(name, version, modules)
    if scripts:
        lines = [f"{script} = {target}" for script, target in sorted(scripts.items())]
        files[f"{info}/entry_points.txt"] = "\n".join(["[console_scripts]", *lines, ""])
    files[f"{info}/METADATA"] = metadata(name, version, requires, extras, requires_python)
    files[f"{info}/WHEEL"] = _wheel_file(tags, build)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / ("-".join(filter(None, [stem, build, tags])) + ".whl")
    record = []
    with zipfile.ZipFile(path, "w") as archive:
        if payload:
            place = f"{escaped(name)}_payload/bytes.bin"
            record.append(_add_payload(archive, place, f"{name} {version}", payload))
        for place, text in sorted(files.items()):
            record.append(_add(archive, place, text.encode()))
        record.append(f"{info}/RECORD,,")
        _add(archive, f"{info}/RECORD", "\n".join([*record, ""]).encode())
    return path


def sdist(
    folder: Path,
    name: str,
    version: str,
    *,
    requires: Sequence[str] = (),
    extras: Mapping[str, Sequence[str]] | None = None,
    requires_python: str = "",
    modules: Mapping[str, str] | None = None,
    setup: str = "",
    payload: int = 0,
) -> Path:
    """Make a source distribution with a setup.py, as old ones are. setup: its text, where it is to do
    something else than build (a placeholder raises); the rest is as for ``wheel``."""
    stem = f"{name}-{version}"
    files = _modules(name, version, modules)
    packages = sorted({str(Path(p).parent).replace("/", ".") for p in files if "/" in p})
    arguments = {
        "name": name,
        "version": version,
        "packages": packages,
        "py_modules": sorted(p.removesuffix(".py") for p in files if "/" not in p),
        "install_requires": list(requires),
        "extras_require": {extra: list(wanted) for extra, wanted in (extras or {}).items()},
    }
    if requires_python:
        arguments["python_requires"] = requires_python
    files["setup.py"] = setup or f"from setuptools import setup\n\nsetup(**{arguments!r})\n"
    files["PKG-INFO"] = metadata(name, version, requires, extras, requires_python)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{stem}.tar.gz"
    with (
        path.open("wb") as raw,
        gzip.GzipFile("", "wb", mtime=0, fileobj=raw) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for inside, text in sorted(files.items()):
            _add_to_tar(archive, f"{stem}/{inside}", text.encode())
        if payload:
            data = b"".join(_noise(f"{name} {version}", payload))
            _add_to_tar(archive, f"{stem}/payload.bin", data)
    return path


def metadata(
    name: str,
    version: str,
    requires: Sequence[str] = (),
    extras: Mapping[str, Sequence[str]] | None = None,
    requires_python: str = "",
) -> str:
    """The text of METADATA."""
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    lines.append("Summary: a stand-in, made by envcheck's tests")
    if requires_python:
        lines.append(f"Requires-Python: {requires_python}")
    lines += [f"Requires-Dist: {wanted}" for wanted in requires]
    for extra, wanted in (extras or {}).items():
        lines.append(f"Provides-Extra: {extra}")
        lines += [f"Requires-Dist: {_with_extra(one, extra)}" for one in wanted]
    return "\n".join([*lines, ""])


def sha256(path: Path) -> str:
    total = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            total.update(chunk)
    return total.hexdigest()


def _with_extra(requirement: str, extra: str) -> str:
    wanted, _, marker = requirement.partition(";")
    condition = f'extra == "{extra}"'
    if marker.strip():
        condition = f"({marker.strip()}) and {condition}"
    return f"{wanted.strip()} ; {condition}"


def _modules(name: str, version: str, modules: Mapping[str, str] | None) -> dict[str, str]:
    if modules is None:
        return {f"{escaped(name)}.py": f'__version__ = "{version}"\n'}
    return dict(modules)


def _wheel_file(tags: str, build: str) -> str:
    pythons, abis, platforms = (part.split(".") for part in tags.split("-"))
    pure = str(platforms == ["any"]).lower()
    lines = ["Wheel-Version: 1.0", "Generator: wheel_maker (1.0)", f"Root-Is-Purelib: {pure}"]
    lines += [f"Tag: {p}-{a}-{on}" for p in pythons for a in abis for on in platforms]
    if build:
        lines.append(f"Build: {build}")
    return "\n".join([*lines, ""])


def _noise(seed: str, size: int) -> Iterator[bytes]:
    """Bytes that do not compress, the same for the same seed."""
    source = random.Random(seed)
    while size > 0:
        yield source.randbytes(min(CHUNK, size))
        size -= CHUNK


def _zip_info(inside: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(inside, EPOCH)
    info.external_attr = 0o100644 << 16
    info.create_system = 3
    return info


def _add(archive: zipfile.ZipFile, inside: str, data: bytes) -> str:
    archive.writestr(_zip_info(inside), data, zipfile.ZIP_DEFLATED)
    return _record(inside, hashlib.sha256(data).digest(), len(data))


def _add_payload(archive: zipfile.ZipFile, inside: str, seed: str, size: int) -> str:
    total = hashlib.sha256()
    with archive.open(_zip_info(inside), "w", force_zip64=size > 1 << 31) as file:
        for chunk in _noise(seed, size):
            total.update(chunk)
            file.write(chunk)
    return _record(inside, total.digest(), size)


def _record(inside: str, digest: bytes, size: int) -> str:
    encoded = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
    quoted = f'"{inside}"' if "," in inside else inside
    return f"{quoted},sha256={encoded},{size}"


def _add_to_tar(archive: tarfile.TarFile, inside: str, data: bytes) -> None:
    info = tarfile.TarInfo(inside)
    info.size, info.mode = len(data), 0o644
    archive.addfile(info, io.BytesIO(data))


def stand_ins(requirements: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Names and versions that meet requirements: 90.0, or something below their upper bound."""
    for requirement in map(Requirement, requirements):
        least = next((one.version for one in requirement.specifier if one.operator == ">="), "1")
        found = [version for version in ("90.0", f"{least}.99") if version in requirement.specifier]
        yield requirement.name, found[0]
