"""envcheck's own wheel, made from the package that is running: for a bundle, which brings it along.

It works from a checkout (installed editable, or not at all) and from an installed wheel, and gives the
same bytes for the same files.
"""

from __future__ import annotations

import base64
import hashlib
import os
import zipfile
from collections.abc import Iterator
from importlib import metadata
from io import BytesIO
from pathlib import Path
from typing import Any

import msgspec

from ... import __version__
from ...exit_codes import CouldNotLook

DISTRIBUTION = "envcheck-gpu"
_PACKAGE = Path(__file__).parents[2]  # envcheck/, of which install/ may be a link
_DATE = (1980, 1, 1, 0, 0, 0)  # the first that a zip file can hold


class OwnWheel(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    data: bytes
    requires: list[str]  # what pip would install with it: "msgspec>=0.19"
    requires_python: str  # ">=3.10"

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()


class _Described(msgspec.Struct, frozen=True, kw_only=True):
    """What the distribution says of itself."""

    metadata: str
    entry_points: str
    licence: bytes
    requires: list[str]
    requires_python: str


def build() -> OwnWheel:
    """The wheel; raises CouldNotLook where neither a checkout nor an installed envcheck-gpu is there."""
    described = _of_a_checkout() or _of_an_installation()
    stem = f"{DISTRIBUTION.replace('-', '_')}-{__version__}"
    info = f"{stem}.dist-info"
    files = {f"envcheck/{name}": path.read_bytes() for name, path in _modules()}
    files[f"{info}/METADATA"] = described.metadata.encode()
    files[f"{info}/WHEEL"] = (
        f"Wheel-Version: 1.0\nGenerator: envcheck {__version__}\nRoot-Is-Purelib: true\n"
        "Tag: py3-none-any\n"
    ).encode()
    files[f"{info}/entry_points.txt"] = described.entry_points.encode()
    if described.licence:
        files[f"{info}/licenses/LICENSE"] = described.licence
    return OwnWheel(
        name=f"{stem}-py3-none-any.whl",
        data=_zip(files, f"{info}/RECORD"),
        requires=described.requires,
        requires_python=described.requires_python,
    )


def _modules() -> Iterator[tuple[str, Path]]:
    """Everything in the package that a wheel holds: names with "/", in order."""
    found = []
    for folder, folders, names in os.walk(_PACKAGE, followlinks=True):
        folders[:] = [name for name in folders if name != "__pycache__" and name[0] != "."]
        for name in names:
            if name[0] != "." and not name.endswith((".pyc", "~")):
                path = Path(folder) / name
                found.append((path.relative_to(_PACKAGE).as_posix(), path))
    yield from sorted(found)


def _zip(files: dict[str, bytes], record: str) -> bytes:
    lines = [f"{name},sha256={_digest(data)},{len(data)}" for name, data in files.items()]
    files = {**files, record: "\n".join([*lines, f"{record},,", ""]).encode()}
    out = BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name, _DATE)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3  # Unix, on which the next line is what permissions are
            entry.external_attr = 0o100644 << 16
            archive.writestr(entry, data)
    return out.getvalue()


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def _of_a_checkout() -> _Described | None:
    """From pyproject.toml beside the package: what an editable installation was told may be older."""
    path = _PACKAGE.parent / "pyproject.toml"
    if not path.is_file():
        return None
    import tomli

    project: dict[str, Any] = tomli.loads(path.read_text(encoding="utf-8")).get("project", {})
    if project.get("name") != DISTRIBUTION:
        return None
    lines = [
        "Metadata-Version: 2.4",
        f"Name: {DISTRIBUTION}",
        f"Version: {__version__}",
        f"Summary: {project['description']}",
        f"License-Expression: {project['license']}",
        "License-File: LICENSE",
        f"Requires-Python: {project['requires-python']}",
        *(f"Requires-Dist: {requirement}" for requirement in project["dependencies"]),
    ]
    scripts = [f"{name} = {target}" for name, target in project["scripts"].items()]
    return _Described(
        metadata="\n".join(lines) + "\n",
        entry_points="\n".join(["[console_scripts]", *scripts]) + "\n",
        licence=(path.parent / "LICENSE").read_bytes(),
        requires=list(project["dependencies"]),
        requires_python=project["requires-python"],
    )


def _of_an_installation() -> _Described:
    try:
        distribution = metadata.distribution(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        raise CouldNotLook(
            f"the metadata of {DISTRIBUTION} is not beside {_PACKAGE}, so no wheel can be made of it",
            "install envcheck with pip, or run it from a checkout",
        ) from None
    licence = distribution.read_text("licenses/LICENSE") or ""
    return _Described(
        metadata=distribution.read_text("METADATA") or "",
        entry_points=distribution.read_text("entry_points.txt") or "",
        licence=licence.encode(),
        requires=[r for r in distribution.requires or [] if "extra ==" not in r],
        requires_python=distribution.metadata["Requires-Python"] or ">=3.10",
    )
