"""The lock: every file of an environment, with its hash and the index that it comes from."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

# What a lock may say: its words end up in Dockerfiles, settings, file names and commands to paste, and it may
# come from anybody. Checked where a lock is read (pylock).
_Name = Annotated[str, Meta(pattern=r"\A[a-z0-9-]{1,200}\Z")]
_Release = Annotated[str, Meta(pattern=r"\A[A-Za-z0-9][A-Za-z0-9.+_-]{0,100}\Z")]
_Minor = Annotated[str, Meta(pattern=r"\A[0-9]{1,4}\.[0-9]{1,4}\Z")]
_Architecture = Annotated[str, Meta(pattern=r"\A[A-Za-z0-9_]{1,40}\Z")]
_Time = Annotated[str, Meta(pattern=r"\A([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z)?\Z")]
_Distribution = Annotated[str, Meta(pattern=r"\A[A-Za-z0-9][A-Za-z0-9._-]{0,200}\Z")]
_Version = Annotated[str, Meta(pattern=r"\A[A-Za-z0-9][A-Za-z0-9.!+_-]{0,200}\Z")]
_FileName = Annotated[str, Meta(pattern=r"\A[A-Za-z0-9][A-Za-z0-9.!+_-]{0,400}\Z")]
_Url = Annotated[str, Meta(pattern=r"\A((https?|file)://[!-~]{1,4000})?\Z")]
_Sha256 = Annotated[str, Meta(pattern=r"\A[0-9a-f]{64}\Z")]


class LockedFile(msgspec.Struct, frozen=True, kw_only=True):
    """The one file that is installed for a package."""

    name: _FileName  # "tensorflow-2.21.0-cp311-cp311-manylinux_2_27_x86_64.whl"
    url: _Url  # at the index, without credentials
    sha256: _Sha256
    size: int | None = None  # bytes; None where the index does not say

    @property
    def kind(self) -> Literal["wheel", "sdist"]:
        return "wheel" if self.name.endswith(".whl") else "sdist"


class LockedPackage(msgspec.Struct, frozen=True, kw_only=True):
    name: _Name  # normalised
    version: _Version
    index: _Url  # the index's URL, without credentials
    file: LockedFile
    needed_by: list[str] = []


class Lockfile(msgspec.Struct, frozen=True, kw_only=True):
    """What will be installed, to the byte.

    ``building`` are the packages that allowed sdists are built with; they are fetched and hashed like
    the others and do not end up in the environment.
    """

    stack: _Name
    release: _Release
    python: _Minor  # "3.8": the minor version that the wheels are for
    architecture: _Architecture  # "x86_64"
    packages: list[LockedPackage]
    building: list[LockedPackage] = []
    provided: dict[_Distribution, str] = {}  # the stack's ``provides``
    gpu: bool = True  # the stack's
    created_at: _Time = ""  # UTC, "2026-11-21T17:00:00Z"

    @property
    def files(self) -> list[LockedFile]:
        """Every file to fetch, each once."""
        return list({p.file.sha256: p.file for p in [*self.packages, *self.building]}.values())

    @property
    def size(self) -> int:
        """Bytes of them, as far as they are known."""
        return sum(file.size or 0 for file in self.files)


def problem(lock: Lockfile) -> str:
    """Where a lock says what envcheck never writes: "packages[0].file.sha256 is not of the form …"; "" where
    nowhere."""
    try:
        msgspec.convert(msgspec.to_builtins(lock), Lockfile)
    except msgspec.ValidationError as error:
        place = str(error).rpartition("$.")[2].rstrip("`")
        return f"{place} is not of the form that a lock of envcheck's has"
    return ""
