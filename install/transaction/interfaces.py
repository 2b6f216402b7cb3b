"""What a transaction is run over: what is installed, one side that builds it, and one that judges it."""

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


class Artifact(msgspec.Struct, frozen=True, kw_only=True):
    """What is installed, to the byte: a lock, or an image."""

    file_name: str  # where its text lies in a version's ``.envcheck/``: "pylock.toml", "image.json"
    text: str
    digest: str  # 64 hexadecimal digits; two equal ones are the same installation
    versions: dict[str, str] = {}  # of the packages that are installed; {} where that is not known
    building: dict[str, str] = {}  # of those that sdists are built with


class Builder(Protocol):
    """Makes a version. What it raises ends the installation and undoes it."""

    def stages(self) -> Sequence[Stage]:
        """The parts in their order.

        The version's directory exists, and in it `.envcheck/` alone, with the lock and ``logs/``. An image
        is written down by ``engine_images.hold`` in a stage of its own, "held", before an engine gets any of
        it; what starts it, in ``version.start``.
        """

    def result(self) -> Built:
        """Asked when all stages are done."""


class Verification(msgspec.Struct, frozen=True, kw_only=True):
    """What the doctor says of a new version."""

    health: Health
    failures: list[str] = []  # why it is not verified, a sentence each; none: it is
    report: bytes = b""  # the doctor's report, JSON
    snapshot: bytes = b""  # the facts that it rests on, to be judged again


# Looks at a new version. The second is the version in use, whose troubles are no reason against it.
Verify = Callable[[Path, Path | None], Verification]
