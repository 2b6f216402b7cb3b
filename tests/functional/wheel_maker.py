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
    tags: as in the file name ("py2.py3-none-any" is two).
    modules: path in the wheel → text; None: one module that knows its version. scripts: name →
    "module:function". payload: bytes that do not compress, in one file.
    """
    stem = f"{escaped(name)}-{version.replace('-', '_')}"
    version = inside or version
    info = f"{escaped(name)}-{version.replace('-', '_')}.dist-info"
    texts = _modules(name, version, modules)
    if scripts:
        lines = [f"{script} = {target}" for script, target in sorted(scripts.items())]
        texts[f"{info}/entry_points.txt"] = "\n".join(["[console_scripts]", *lines, ""])
    texts[f"{info}/METADATA"] = _metadata(name, version, requires, extras, requires_python)
    texts[f"{info}/WHEEL"] = _wheel_file(tags)
    files = {place: text.encode() for place, text in sorted(texts.items())}
    if payload:
        place = f"{escaped(name)}_payload/bytes.bin"
        files = {place: random.Random(f"{name} {version}").randbytes(payload), **files}
    record = [f"{_quoted(place)},{_digest(data)},{len(data)}" for place, data in files.items()]
    files[f"{info}/RECORD"] = "\n".join([*record, f"{info}/RECORD,,", ""]).encode()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{stem}-{tags}.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for place, data in files.items():
            entry = zipfile.ZipInfo(place, EPOCH)
            entry.external_attr, entry.create_system = 0o100644 << 16, 3
            kind = zipfile.ZIP_STORED if place.endswith("bytes.bin") else zipfile.ZIP_DEFLATED
            archive.writestr(entry, data, kind)
    return path


def sdist(
    folder: Path,
    name: str,
    version: str,
    *,
    modules: Mapping[str, str] | None = None,
    setup: str = "",
) -> Path:
    """Make a source distribution with a setup.py, as old ones are. setup: its text, where it is to do
    something else than build (a placeholder raises); the rest is as for ``wheel``."""
    stem = f"{name}-{version}"
    files = _modules(name, version, modules)
    arguments = {
        "name": name,
        "version": version,
        "packages": sorted({str(Path(p).parent).replace("/", ".") for p in files if "/" in p}),
        "py_modules": sorted(p.removesuffix(".py") for p in files if "/" not in p),
    }
    files["setup.py"] = setup or f"from setuptools import setup\n\nsetup(**{arguments!r})\n"
    files["PKG-INFO"] = _metadata(name, version)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{stem}.tar.gz"
    with (
        path.open("wb") as raw,
        gzip.GzipFile("", "wb", mtime=0, fileobj=raw) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for inside, text in sorted(files.items()):
            entry = tarfile.TarInfo(f"{stem}/{inside}")
            entry.size, entry.mode = len(text.encode()), 0o644
            archive.addfile(entry, io.BytesIO(text.encode()))
    return path


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def stand_ins(requirements: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Names and versions that meet requirements: 90.0, or something below their upper bound."""
    for requirement in map(Requirement, requirements):
        least = next((one.version for one in requirement.specifier if one.operator == ">="), "1")
        found = [version for version in ("90.0", f"{least}.99") if version in requirement.specifier]
        yield requirement.name, found[0]


def _metadata(
    name: str,
    version: str,
    requires: Sequence[str] = (),
    extras: Mapping[str, Sequence[str]] | None = None,
    requires_python: str = "",
) -> str:
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", "Summary: a stand-in"]
    lines += [f"Requires-Python: {requires_python}"] if requires_python else []
    lines += [f"Requires-Dist: {wanted}" for wanted in requires]
    for extra, wanted in (extras or {}).items():
        lines.append(f"Provides-Extra: {extra}")
        lines += [f'Requires-Dist: {one} ; extra == "{extra}"' for one in wanted]
    return "\n".join([*lines, ""])


def _modules(name: str, version: str, modules: Mapping[str, str] | None) -> dict[str, str]:
    if modules is None:
        return {f"{escaped(name)}.py": f'__version__ = "{version}"\n'}
    return dict(modules)


def _wheel_file(tags: str) -> str:
    pythons, abis, platforms = (part.split(".") for part in tags.split("-"))
    pure = str(platforms == ["any"]).lower()
    lines = ["Wheel-Version: 1.0", "Generator: wheel_maker (1.0)", f"Root-Is-Purelib: {pure}"]
    lines += [f"Tag: {p}-{a}-{on}" for p in pythons for a in abis for on in platforms]
    return "\n".join([*lines, ""])


def _digest(data: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest())
    return "sha256=" + digest.rstrip(b"=").decode()


def _quoted(place: str) -> str:
    return f'"{place}"' if "," in place else place
