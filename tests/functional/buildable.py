"""Stand-ins for the bases of images: the test image with a whole Python of another version and what a build
needs, and beside an old one the Python that envcheck runs under, in the place of uv's.

They are named as stand-ins: nothing of Ubuntu's or NVIDIA's is in them.
"""

from __future__ import annotations

import os
import shutil
import ssl
import subprocess
from pathlib import Path

import base_files
import pytest
import pythons
from base_files import Files
from podman import PodmanWorld
from processes import PATIENCE

_WITHOUT = ("test", "idlelib", "tkinter", "turtledemo", "lib2to3", "__pycache__", "site-packages")
_PROGRAMS = ("sha256sum", "tar", "gzip", "grep", "cut", "sed")
# What wheels' own code loads, and no program here does.
_LOADED = (
    "libpthread.so.0",
    "libdl.so.2",
    "librt.so.1",
    "libutil.so.1",
    "libgcc_s.so.1",
    "libstdc++.so.6",
)
_LIBRARIES = Path("/usr/lib/x86_64-linux-gnu")
_USERADD = """\
#!/bin/sh
# A stand-in: --create-home --uid NUMBER NAME
mkdir -p "/home/$4" && chmod 777 "/home/$4"
echo "$4:x:$3:$3::/home/$4:/bin/sh" >> /etc/passwd
"""


def prefix(minor: int) -> Path:
    """Where a Python lies that can be copied; skips where it belongs to the distribution."""
    asked = [pythons.need(minor), "-c", "import sys; print(sys.base_prefix)"]
    told = subprocess.run(
        asked, capture_output=True, text=True, check=True, timeout=PATIENCE
    ).stdout
    found = Path(told.strip())
    if found in (Path("/usr"), Path("/usr/local"), Path("/")):
        pytest.skip(f"Python 3.{minor} is the distribution's own and cannot be copied from {found}")
    return found


def base(world: PodmanWorld, minor: int, *lines: str, files: Files | None = None) -> str:
    """A stand-in for Ubuntu, or for an image of NVIDIA's, whose python3 is this one: its name.

    lines: of a Dockerfile, at its end; files: what they copy.
    """
    kind = f"standin-3.{minor}"
    if kind not in world.made:
        world.made[kind] = _base(world, f"localhost/envcheck-test/{kind}:1", minor)
    if not lines:
        return world.made[kind]
    recipe = "\n".join([f"FROM {world.made[kind]}", *lines, ""])
    return world.build(f"localhost/envcheck-test/{kind}-more:1", recipe, files or {})


def _base(world: PodmanWorld, name: str, minor: int) -> str:
    tree = world.folder / f"python-3.{minor}"
    _copy(prefix(minor), tree)
    programs = [Path(shutil.which(name) or pytest.skip(f"no {name} here")) for name in _PROGRAMS]
    pythons_here = [prefix(minor), prefix(12)]
    binaries = [*programs, *(b for one in pythons_here for b in _binaries(one))]
    found = {f"usr-lib/{path.name}": path for path in base_files.libraries(binaries)}
    for library in _LOADED:
        if (_LIBRARIES / library).exists():
            found[f"usr-lib/{library}"] = (_LIBRARIES / library).resolve()
    all_files: Files = {"python": tree, "useradd": _USERADD, **found}
    own: list[str] = []
    if minor != 12:
        _copy(prefix(12), tree.with_name("python-own"))
        all_files["python-own"] = tree.with_name("python-own")
        own = [
            "COPY python-own /opt/own",
            "RUN rm /opt/own/bin/python3",
            "ENV PATH=$PATH:/opt/own/bin",
        ]
    all_files |= {f"programs/{path.name}": path for path in programs}
    recipe = [
        f"FROM {world.image('base')}",
        "RUN rm /usr/local/bin/*",
        "COPY python /usr/local",
        f"COPY usr-lib {_LIBRARIES}/",
        "COPY programs /usr/bin/",
        "COPY useradd /usr/sbin/useradd",
        *own,
        f"RUN chmod 755 /usr/sbin/useradd && ldconfig && cd /usr/local/bin && rm -f python python3"
        f" && ln -s python3.{minor} python3",
        "",
    ]
    made = world.build(name, "\n".join(recipe), all_files)
    shutil.rmtree(tree)
    shutil.rmtree(tree.with_name("python-own"), ignore_errors=True)
    return made


def certificate() -> str:
    """A file with the authorities that this machine's own index is trusted by; "" for the usual ones."""
    named = os.environ.get("PIP_CERT") or os.environ.get("SSL_CERT_FILE")
    return named or ssl.get_default_verify_paths().cafile or ""


def _copy(source: Path, to: Path) -> None:
    shutil.copytree(
        source,
        to,
        symlinks=True,
        ignore=shutil.ignore_patterns(*_WITHOUT, "config-*", "*.a", "include", "share"),
    )


def _binaries(python: Path) -> list[Path]:
    return [
        *(p for p in (python / "bin").glob("python3.*") if p.name.count(".") == 1 and p.is_file()),
        *python.glob("lib/python3*/lib-dynload/*.so"),
    ]
