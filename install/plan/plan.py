"""What an installation would do, step by step, before it does any of it."""

from __future__ import annotations

from typing import Literal

import msgspec

StepName = Literal["python", "fetch", "create", "install", "configure", "verify", "swap"]


class Step(msgspec.Struct, frozen=True, kw_only=True):
    name: StepName
    sentence: str


class PlannedPackage(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    version: str
    file: str
    size: int | None  # bytes; None: the index does not say
    sha256: str
    index: str
    in_store: bool  # nothing is to be fetched for it
    building: bool = False  # needed to build an sdist, and not in the environment


class Room(msgspec.Struct, frozen=True, kw_only=True):
    """What one file system is asked to hold."""

    path: str
    what: list[str]  # "the environment", "fetched files", "uv's unpacked wheels"
    needed_mib: int
    free_mib: int | None
    estimated: bool  # not every size is known

    @property
    def missing_mib(self) -> int:
        return max(0, self.needed_mib - self.free_mib) if self.free_mib is not None else 0


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that will happen, printable as text, JSON or a Dockerfile."""

    stack: str
    release: str
    title: str
    reasons: list[str]  # why this stack and release, and not a newer one
    notes: list[str]
    directory: str  # "…/envs/tensorflow": holds the versions and the link "current"
    version: str  # the new version's directory in it
    python: str  # "3.11.7"
    interpreter: str  # its path; "" where it has to be got first
    installer: str  # "uv 0.13.9" or "pip 26.1"
    steps: list[Step]
    packages: list[PlannedPackage]
    provided: dict[str, str]
    rooms: list[Room]
    download_bytes: int
    in_store_bytes: int
    sizes_unknown: int  # packages whose size the index does not say
    seconds: float | None  # expected, at ``rate``
    rate: float  # bytes per second that ``seconds`` rests on
    rate_from: str  # "the last installation", "assumed"
