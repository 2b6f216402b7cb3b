"""What a transaction is run over: one side builds a version, the other one judges it."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import msgspec

from ...exit_codes import PutBack
from ..pythons.interpreter import Interpreter
from .record import Health


class Builder(Protocol):
    """Makes a version, a step at a time. What it raises ends the installation and undoes it."""

    def get_python(self) -> Interpreter: ...

    def fetch(self) -> None:
        """Get the lock's files, or begin to: ``install`` may take them as they come."""

    def create(self, directory: Path) -> None:
        """Make an empty environment; the directory exists, and in it `.envcheck/` alone."""

    def install(self, directory: Path) -> None: ...

    def configure(self, directory: Path) -> None: ...


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What the doctor says of a new version."""

    health: Health
    failures: list[str] = []  # why it is not verified, a sentence each; none: it is
    report: bytes = b""  # the doctor's report, JSON
    snapshot: bytes = b""  # the facts that it rests on, to be judged again


class NotVerified(PutBack):
    """The doctor found failures in the new version that were not there before."""


class Verifier(Protocol):
    def verify(self, directory: Path, old: Path | None) -> Verdict:
        """Look at a new version. old: the version in use, whose troubles are no reason against it."""
