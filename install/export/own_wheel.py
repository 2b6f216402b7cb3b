"""envcheck's own wheel, made from the package that is running: for bundles and images.

It works from a checkout (installed editable) and from an installed wheel, and gives the same bytes for the
same files.
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

import msgspec

from ... import __version__
from ...exit_codes import CouldNotLook

DISTRIBUTION = "envcheck-gpu"
_PACKAGE = Path(__file__).parents[2]  # envcheck/, of which install/ may be a link
_DATE = (1980, 1, 1, 0, 0, 0)  # the first that a zip file can hold
_WHEEL = "Wheel-Version: 1.0\nGenerator: envcheck\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


class OwnWheel(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    data: bytes
    requires: list[str]  # what pip would install with it: "msgspec>=0.19"
    requires_python: str  # ">=3.10"

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()

    @property
    def requirement(self) -> str:
        """A line of a list of requirements."""
        return f"{DISTRIBUTION}=={__version__} --hash=sha256:{self.sha256}"


def build() -> OwnWheel:
    """The wheel; raises CouldNotLook where envcheck-gpu is not installed in this version."""
    distribution = _distribution()
    stem = f"{DISTRIBUTION.replace('-', '_')}-{__version__}"
    info = f"{stem}.dist-info"
    files = {f"envcheck/{name}": path.read_bytes() for name, path in _modules()}
    files[f"{info}/WHEEL"] = _WHEEL.encode()
    for name in ("METADATA", "entry_points.txt", "licenses/LICENSE"):
        files[f"{info}/{name}"] = (distribution.read_text(name) or "").encode()
    return OwnWheel(
        name=f"{stem}-py3-none-any.whl",
        data=_zip(files, f"{info}/RECORD"),
        requires=[line for line in distribution.requires or [] if "extra ==" not in line],
        requires_python=distribution.metadata["Requires-Python"],
    )


def _distribution() -> metadata.Distribution:
    try:
        found = metadata.distribution(DISTRIBUTION)
        if found.version == __version__:
            return found
        why = f"the installed metadata of {DISTRIBUTION} is of version {found.version}"
    except metadata.PackageNotFoundError:
        why = f"no metadata of {DISTRIBUTION} is installed"
    raise CouldNotLook(
        f"no wheel of envcheck {__version__} can be made: {why}",
        "install envcheck with pip (of a checkout: pip install -e .)",
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
