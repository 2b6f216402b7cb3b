"""An interpreter for a bundle: the archive that uv downloads, for a machine without a Python that fits."""

from __future__ import annotations

import hashlib
import os
import platform
from pathlib import Path

import msgspec

from ...exit_codes import CouldNotLook
from ..bundle.writing import Content
from ..wheels import uv


class OwnPython(msgspec.Struct, frozen=True, kw_only=True):
    name: str  # as uv calls its folder: "cpython-3.13.9-linux-x86_64-gnu"
    minor: str
    content: Content  # a gzipped tar with one folder, "python"

    @property
    def file_name(self) -> str:
        return f"{self.name}.tar.gz"


def get(minor: str, architecture: str, folder: Path) -> OwnPython:
    """Have uv download it into ``folder``, which must outlive the result.

    Raises CouldNotLook where uv cannot or may not.
    """
    cache, installed = folder / "archives", folder / "python"
    environ = {
        **os.environ,
        "UV_PYTHON_CACHE_DIR": str(cache),
        "UV_PYTHON_INSTALL_DIR": str(installed),
    }
    native = architecture == platform.machine()
    uv.get_python(minor if native else f"cpython-{minor}-linux-{architecture}-gnu", environ)
    names = [
        path.name for path in installed.glob(f"cpython-{minor}.*-gnu") if not path.is_symlink()
    ]
    archives = [path for path in cache.rglob("*.tar.gz") if path.is_file()]
    if len(names) != 1 or len(archives) != 1:
        raise CouldNotLook(f"uv got Python {minor}, and it is not known as which archive")
    return OwnPython(name=names[0], minor=minor, content=_content(archives[0]))


def _content(archive: Path) -> Content:
    checksum = hashlib.sha256(archive.read_bytes()).hexdigest()
    return Content(source=archive, sha256=checksum, size=archive.stat().st_size)
