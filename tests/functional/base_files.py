"""The files of the tests' base image, as a tar: copies of this machine's own, without network or download.

A Python with its standard library, a shell, a few programs, and the shared libraries that they load.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from collections.abc import Iterable
from pathlib import Path

import msgspec._core
import pytest
from processes import ran
from uv import find_uv_bin

MINOR = f"{sys.version_info[0]}.{sys.version_info[1]}"
USER = 1000
_LARGE = 8 << 20  # bytes

_PROGRAMS = {
    "sh", "cat", "chmod", "chown", "cp", "cut", "df", "dirname", "echo", "env", "false", "head", "id",
    "ldconfig", "ln", "ls", "mkdir", "mv", "pwd", "rm", "sha256sum", "sleep", "sort", "stat", "tail", "test",
    "touch", "tr", "true", "uname", "wc",
}  # fmt: skip
# Of the standard library, what nobody imports in a container.
_WITHOUT = {
    "curses", "dbm", "dist-packages", "ensurepip", "idlelib", "lib2to3", "msilib", "pydoc_data",
    "site-packages", "sqlite3", "test", "tests", "tkinter", "turtledemo", "wsgiref",
}  # fmt: skip
_WITHOUT_EXTENSION = re.compile(
    r"_?(codecs_|ctypes_test|curses|dbm|gdbm|nis|ossaudiodev|readline|sqlite3|test|tkinter|xx)"
)
_LINKS = {
    "bin": "usr/bin",
    "lib": "usr/lib",
    "lib64": "usr/lib64",
    "sbin": "usr/sbin",
    "usr/local/bin/python": f"python{MINOR}",
    "usr/local/bin/python3": f"python{MINOR}",
}
_TEXTS: dict[str, str | Path] = {
    "etc/os-release": 'ID=envcheck-test\nVERSION_ID="1"\nPRETTY_NAME="envcheck test image"\n',
    "etc/passwd": f"root:x:0:0::/root:/bin/sh\nworker:x:{USER}:{USER}::/home/worker:/bin/sh\n",
    "etc/group": f"root:x:0:\nworker:x:{USER}:\n",
    "etc/ld.so.conf": "/usr/local/lib\n",
}
_FOLDERS = {
    "dev", "home/worker", "proc", "root", "run", "sys", "tmp", "usr/lib64", "usr/sbin", "var/tmp",
}  # fmt: skip

Files = dict[str, str | Path]  # name in the image → its text, or where it lies


def base_tar(path: Path) -> Path:
    """Write the tar: about two seconds, 40 MB. Skips the test where a program of it is missing."""
    files = _files()
    folders = {str(parent) for name in {*files, *_LINKS} for parent in Path(name).parents} - {"."}
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as tar:
        for name in sorted(_FOLDERS | folders):
            add(tar, name, kind=tarfile.DIRTYPE, mode=0o1777 if name.endswith("tmp") else 0o755)
        for name, target in _LINKS.items():
            add(tar, name, kind=tarfile.SYMTYPE, mode=0o777, link=target)
        for name, source in sorted(files.items()):
            if isinstance(source, str):
                add(tar, name, source.encode())
            else:  # with its time, by which Python knows that a compiled file is up to date
                mode = 0o755 if os.access(source, os.X_OK) else 0o644
                add(tar, name, _stripped(source), mode=mode, at=int(source.stat().st_mtime))
    return path


def add(
    tar: tarfile.TarFile,
    name: str,
    data: bytes = b"",
    *,
    kind: bytes = tarfile.REGTYPE,
    mode: int = 0o644,
    link: str = "",
    at: int = 0,
) -> None:
    """Add one member; it is root's, but for the worker's home."""
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode, entry.linkname, entry.mtime = kind, mode, link, at
    entry.size = len(data)
    if name.startswith("home/worker"):
        entry.uid = entry.gid = USER
    tar.addfile(entry, io.BytesIO(data))


def libraries(binaries: Iterable[Path]) -> list[Path]:
    """The shared libraries that they load, and the loader, under the names by which they are loaded."""
    output = subprocess.run(
        ["ldd", *binaries],
        capture_output=True,
        text=True,
        check=False,  # a library that has no dependencies is an error to it
        env={"PATH": os.environ["PATH"]},
    ).stdout
    found = re.findall(r"(?:=> |^\s+)(/\S+) \(0x", output, re.MULTILINE)
    return [Path(one) for one in sorted(set(found))]


def _stripped(path: Path) -> bytes:
    """Without debug information, of which a Python that was built here has 20 MB."""
    strip = shutil.which("strip")
    if strip is None or path.stat().st_size < _LARGE:
        return path.read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / path.name
        done = ran([strip, "-g", "-o", made, path])
        return path.read_bytes() if done.returncode else made.read_bytes()


def _files() -> Files:
    python = Path(sys.base_prefix) / "bin" / f"python{MINOR}"
    modules = _standard_library(Path(sysconfig.get_path("stdlib")))
    programs = {name: _program(name) for name in sorted(_PROGRAMS)}
    files = _TEXTS | {f"usr/local/bin/python{MINOR}": python}
    files |= {f"usr/local/lib/python{MINOR}/{name}": path for name, path in modules.items()}
    files |= {f"usr/bin/{name}": path for name, path in programs.items()}
    extensions = [path for name, path in modules.items() if name.endswith(".so")]
    own = [Path(msgspec._core.__file__), Path(find_uv_bin())]  # for envcheck itself in an image
    for path in libraries([python, *extensions, *programs.values(), *own]):
        files[_place(path)] = path
    return files


def _standard_library(folder: Path) -> dict[str, Path]:
    """Compiled files stay, for quick starts."""
    found = {}
    for place, folders, names in os.walk(folder):
        folders[:] = [f for f in folders if f not in _WITHOUT and not f.startswith("config-")]
        for name in names:
            wanted = name.endswith((".py", ".so")) or re.search(r"\.cpython-\d+\.pyc$", name)
            if wanted and not (name.endswith(".so") and _WITHOUT_EXTENSION.match(name)):
                path = Path(place, name)
                found[path.relative_to(folder).as_posix()] = path
    return found


def _program(name: str) -> Path:
    search = f"{os.environ['PATH']}:/usr/bin:/bin:/usr/sbin:/sbin"
    # Ubuntu's ldconfig is a script around the program.
    found = shutil.which(f"{name}.real", path=search) or shutil.which(name, path=search)
    if found is None:
        pytest.skip(f"there is no {name} on this machine, and the test image needs it")
    return Path(found).resolve()


def _place(library: Path) -> str:
    """Where it is found in the image: as here, or in the loader's own folder for one from elsewhere."""
    usual = str(library).lstrip("/").removeprefix("usr/")
    if usual.startswith(("lib/", "lib64/")):
        return f"usr/{usual}"
    triplet = sysconfig.get_config_var("MULTIARCH") or "x86_64-linux-gnu"
    return f"usr/lib/{triplet}/{library.name}"
