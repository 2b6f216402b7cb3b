"""What a transaction works with: an artifact, a builder that makes a version of it, and a verifier."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from .journal import Step
from .layout import Version
from .record import Built, Health

# A part of the building, and what the journal says when it is done.
Stage = tuple[Step, Callable[[Version], None]]
Tell = Callable[[str], None]


class Artifact(msgspec.Struct, frozen=True, kw_only=True):
    """What is installed, to the byte: a lock, or an image."""

    file_name: str  # of its text in a version's ``.envcheck/``: "pylock.toml", "image.json"
    text: str
    digest: str  # 64 hexadecimal digits
    versions: dict[str, str] = {}  # of the packages that are installed; {} where that is not known
    building: dict[str, str] = {}  # of those that sdists are built with


class Builder(Protocol):
    """Makes a version. What it raises ends the installation and undoes it."""

    def stages(self) -> Sequence[Stage]:
        """The parts in their order. The version's directory exists, with ``.envcheck/`` alone in it.

        The stage "held" of an image calls ``engine_images.hold`` before an engine gets any of it.
        """

    def result(self) -> Built:
        """Called after all stages."""


class Verification(msgspec.Struct, frozen=True, kw_only=True):
    """The doctor's answer on a new version."""

    health: Health
    failures: list[str] = []  # why it is not verified, a sentence each
    report: bytes = b""  # the doctor's report, JSON
    snapshot: bytes = b""  # the facts that it rests on


# Judges a new version. The second is the version in use, whose problems are no reason against it.
Verify = Callable[[Path, Path | None], Verification]
