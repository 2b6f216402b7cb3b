"""What the files in Dockerfiles/ have to be; `python tests/unit/committed_dockerfiles.py` writes them anew.

wheel-tf2 and ngc are rendered from the lists that are committed beside them. NVIDIA's index could not be
asked where this was written, so there is no list for wheel-tf1: its steps do not depend on what is in one.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from envcheck.install.catalogue.load import load
from envcheck.install.export import requirement_lists
from envcheck.install.export.dockerfile import render, render_over_image
from envcheck.install.lockfile import LockedFile, LockedPackage, Lockfile

FOLDER = Path(__file__).parents[2] / "Dockerfiles"


def texts() -> dict[str, str]:
    """File name → text."""
    return {
        "wheel-tf1.Dockerfile": _wheel_tf1(),
        "wheel-tf2.Dockerfile": _wheel_tf2(),
        "ngc.Dockerfile": _ngc(),
    }


def _wheel_tf1() -> str:
    stack = load("nvidia-tf1")
    (nvidia,) = stack.indexes
    lock = Lockfile(
        stack=stack.name,
        release="23.03",
        python="3.8",
        architecture="x86_64",
        packages=[
            _package("pip", ""),
            _package("six", ""),
            _package(stack.distribution, nvidia.urls[0]),
        ],
        provided=stack.provides,
    )
    locked = requirement_lists.of_lock(stack, lock)
    replace = msgspec.structs.replace
    return render(replace(locked, of=replace(locked.of, digest="")))


def _wheel_tf2() -> str:
    kept = requirement_lists.read(FOLDER / "wheel-tf2")
    assert kept is not None
    return render(kept)


def _ngc() -> str:
    of = requirement_lists.read_of(FOLDER / "ngc" / requirement_lists.ENVCHECK)
    assert of is not None
    return render_over_image(of.digest)


def _package(name: str, index: str) -> LockedPackage:
    file = LockedFile(name=f"{name}-1-py3-none-any.whl", url="", sha256="0" * 64)
    return LockedPackage(name=name, version="1", index=index, file=file)


if __name__ == "__main__":
    for name, text in texts().items():
        (FOLDER / name).write_text(text)
