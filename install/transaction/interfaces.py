"""What a transaction is run over: one side builds a version, another says what it is, the last judges it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

import msgspec

from ...exit_codes import PutBack
from .journal import Step
from .layout import Version
from .record import Health

Details = dict[str, str]


class RemovalError(Exception):
    """Something could not be removed; the message names it and says why. hint: how a user removes it."""

    def __init__(self, sentence: str, hint: str = "") -> None:
        super().__init__(sentence)
        self.hint = hint


class Artifact(Protocol):
    """What is installed, to the byte: a lock, or an image."""

    @property
    def file_name(self) -> str:
        """Where its text lies in a version's ``.envcheck/``: "pylock.toml", "image.json"."""

    @property
    def digest(self) -> str:
        """64 hexadecimal digits. Two equal ones are the same installation."""

    @property
    def versions(self) -> Mapping[str, str]:
        """Of the packages that are installed; {} where that is not known."""

    @property
    def building(self) -> Mapping[str, str]:
        """Of those that sdists are built with."""

    def text(self) -> str: ...


class Stage(NamedTuple):
    """A part of the building. When ``act`` is done, ``step`` goes into the journal with what it gives."""

    step: Step
    act: Callable[[Version], Details]


class BuildResult(msgspec.Struct, frozen=True, kw_only=True):
    """What only the building tells; it goes into the version's record, but for the notes."""

    python: str = ""  # "3.11.7"
    interpreter: str = ""  # its path; "" in a container
    installer: str = ""  # "uv 0.13.9"
    engine: str = ""  # "podman"
    image: str = ""  # the reference as it was asked for: "nvcr.io/nvidia/tensorflow:23.03-tf1-py3"
    image_digest: str = ""  # of its manifest, "sha256:…"
    image_bytes: int = (
        0  # that the engine's storage has of it; 0 where it is a file of the version's
    )
    wiring: str = ""  # how GPUs get into the container: "by CDI (/etc/cdi/nvidia.yaml)"
    added: dict[str, str] = {}  # packages beside the lock's
    notes: list[str] = []  # told once, at the end of the installation


class Builder(Protocol):
    """Makes a version. What it raises ends the installation and undoes it."""

    def about(self) -> Details:
        """For the journal's first entry: a container's "engine" and "image"."""

    def stages(self) -> Sequence[Stage]:
        """The parts in their order.

        The version's directory exists, and in it `.envcheck/` alone, with the lock and ``logs/``. An image
        is written down by ``outside.hold`` in a stage of its own, "held", before an engine gets any of it;
        what starts it, in ``version.start``.
        """

    def result(self) -> BuildResult:
        """Asked when all stages are done."""


class Verification(msgspec.Struct, frozen=True, kw_only=True):
    """What the doctor says of a new version."""

    health: Health
    failures: list[str] = []  # why it is not verified, a sentence each; none: it is
    report: bytes = b""  # the doctor's report, JSON
    snapshot: bytes = b""  # the facts that it rests on, to be judged again


class NotVerified(PutBack):
    """The doctor found failures in the new version that were not there before."""


class Verifier(Protocol):
    def verify(self, directory: Path, old: Path | None) -> Verification:
        """Look at a new version. old: the version in use, whose troubles are no reason against it."""
