"""Why a check cannot judge: what it needs does not apply here, is not known, or could not be read."""

from __future__ import annotations

from typing import Literal


class CannotJudge(Exception):
    """Raised by a check: it does not apply here, or a fact that it needs is missing."""

    outcome: Literal["skipped", "could-not-run"] = "skipped"
    needs_root = False
    what = ""  # the fact that only root may read


class Skip(CannotJudge):
    """The check does not apply to this machine or target, or nobody asked for its facts."""


class NotKnown(Skip):
    """The tables have no value for this: never a pass."""

    def __init__(self, what: str) -> None:
        super().__init__(f"not known: {what}")


class NeedsRoot(Skip):
    """The fact is there, and only root may read it."""

    needs_root = True

    def __init__(self, what: str) -> None:
        super().__init__(f"{what}: only root may read it")
        self.what = what


class CouldNotRun(CannotJudge):
    """The check applies, and the fact it needs could not be had."""

    outcome = "could-not-run"
