"""The lock: every file of an environment, with its hash and the index that it comes from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec


class LockedFile(msgspec.Struct, frozen=True, kw_only=True):
    """The one file that is installed for a package."""

    name: str  # "tensorflow-2.21.0-cp311-cp311-manylinux_2_27_x86_64.whl"
    url: str  # at the index, without credentials
    sha256: str
    size: int | None = None  # bytes; None where the index does not say

    @property
    def kind(self) -> Literal["wheel", "sdist"]:
        return "wheel" if self.name.endswith(".whl") else "sdist"


class LockedPackage(msgspec.Struct, frozen=True, kw_only=True):
    name: str  # normalised
    version: str
    index: str  # the index's URL, without credentials
    file: LockedFile
    needed_by: list[str] = []


class Lockfile(msgspec.Struct, frozen=True, kw_only=True):
    """What will be installed, to the byte.

    ``building`` are the packages that allowed sdists are built with; they are fetched and hashed like
    the others and do not end up in the environment.
    """

    stack: str
    release: str
    python: str  # "3.8": the minor version that the wheels are for
    architecture: str  # "x86_64"
    packages: list[LockedPackage]
    building: list[LockedPackage] = []
    provided: dict[str, str] = {}  # the stack's ``provides``
    gpu: bool = True  # the stack's
    created_at: str = ""  # UTC, "2026-11-21T17:00:00Z"

    @property
    def files(self) -> list[LockedFile]:
        """Every file to fetch, each once."""
        return list({p.file.sha256: p.file for p in [*self.packages, *self.building]}.values())

    @property
    def size(self) -> int:
        """Bytes of them, as far as they are known."""
        return sum(file.size or 0 for file in self.files)


class Downloads(Lockfile, frozen=True, kw_only=True):
    """What is fetched and installed: a lock's packages at today's addresses, and what the user had added.

    It is never written anywhere.
    """

    @classmethod
    def of(cls, located: Lockfile, added: Sequence[LockedPackage] = ()) -> Downloads:
        fields = {name: getattr(located, name) for name in located.__struct_fields__}
        return cls(**{**fields, "packages": [*located.packages, *added]})
