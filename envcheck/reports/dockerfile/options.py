"""What a Dockerfile says beside its stack and lock, and the pinned images and Pythons that it starts from."""

from __future__ import annotations

import msgspec

from ...data import table

OLDEST = (3, 10)  # that envcheck itself runs under


class Standalone(msgspec.Struct, frozen=True, kw_only=True):
    """A Python that runs on any glibc from ``glibc`` on, as one archive with "python/" at its top."""

    python: str  # "3.12"
    glibc: str  # "2.17"
    url: str
    sha256: str


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """What lies beside the Dockerfile: the lists of hashes, and envcheck with what it needs.

    standalone: the Python that envcheck runs under in the image; None: the base's own.
    """

    standalone: Standalone | None = None


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What a Dockerfile says beside its stack and lock."""

    envcheck: str  # the version that wrote it
    digest: str | None = (
        ""  # sha256 of the lock's text; None: not known yet, a build argument says it
    )
    base: str = ""  # "": the pinned Ubuntu with the lock's Python; where none is, python's image, by its tag
    context: Context | None = None  # None: everything in the one text


def base_of(python: str) -> str:
    """The pinned image whose own Python is this one ("3.12"); "" where the table has none."""
    return _reference("wheel", python)


def ngc_base() -> str:
    """The pinned image of NVIDIA's that is built upon where none is named."""
    return next(row["reference"] for row in table("image_bases") if row["use"] == "ngc")


def standalone(architecture: str) -> Standalone | None:
    """The Python for bases whose own is too old for envcheck; None where the table has none."""
    for row in table("standalone_pythons"):
        if row["architecture"] == architecture:
            return Standalone(
                python=row["python"], glibc=row["glibc"], url=row["url"], sha256=row["sha256"]
            )
    return None


def is_too_old(python: str) -> bool:
    """Whether envcheck itself does not run under this Python ("3.8")."""
    return tuple(int(part) for part in python.split(".")) < OLDEST


def _reference(use: str, python: str) -> str:
    rows = table("image_bases")
    return next((r["reference"] for r in rows if (r["use"], r["python"]) == (use, python)), "")
