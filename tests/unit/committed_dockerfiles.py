"""What the files in Dockerfiles/ have to be; `python tests/unit/committed_dockerfiles.py` writes them anew.

Their steps do not depend on what is in a lock, whose digest is a build argument.
"""

from __future__ import annotations

from pathlib import Path

from envcheck.install.catalogue.load import load
from envcheck.install.export.dockerfile import render
from envcheck.install.export.requirement_lists import of_lock
from envcheck.install.lockfile import LockedFile, LockedPackage, Lockfile

FOLDER = Path(__file__).parents[2] / "Dockerfiles"


def texts() -> dict[str, str]:
    """File name → text."""
    return {
        "wheel-tf1.Dockerfile": _wheel("nvidia-tf1", "23.03", "3.8"),
        "wheel-tf2.Dockerfile": _wheel("tensorflow", "2.21.0", "3.12"),
    }


def _wheel(name: str, release: str, python: str) -> str:
    stack = load(name)
    urls = [index.urls[0] for index in stack.indexes]
    lock = Lockfile(
        stack=stack.name,
        release=release,
        python=python,
        architecture="x86_64",
        packages=[_package("pip", ""), _package(stack.distribution, *urls or [""])],
        provided=stack.provides,
    )
    return render(stack, lock, of_lock(stack, lock))


def _package(name: str, index: str) -> LockedPackage:
    file = LockedFile(name=f"{name}-1-py3-none-any.whl", url="", sha256="0" * 64)
    return LockedPackage(name=name, version="1", index=index, file=file)


if __name__ == "__main__":
    for name, text in texts().items():
        (FOLDER / name).write_text(text)
