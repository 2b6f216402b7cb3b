"""What checks say: findings with their evidence and remedy, and each check's outcome."""

from __future__ import annotations

from typing import Literal

import msgspec

Level = Literal["fail", "warn"]
Outcome = Literal["pass", "warn", "fail", "skipped", "could-not-run"]


class Evidence(msgspec.Struct, frozen=True, gc=False):
    """One fact that a finding rests on: its path in the Snapshot, its value, where it came from."""

    fact: str  # "machine.kernel.driver_version"
    value: str
    source: str = ""


class Remedy(msgspec.Struct, frozen=True, omit_defaults=True):
    """What to do, in one sentence, and the commands to paste (none where none would help)."""

    text: str
    commands: list[str] = []


class Finding(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    level: Level
    message: str  # one sentence: what is wrong, and what it does to the user
    subject: str = ""  # "GPU 0000:01:00.0", a path, a package; empty: the whole machine or target
    evidence: list[Evidence] = []
    remedy: Remedy | None = None
    headline: str = (
        ""  # for a verdict of one line, as Check.problem, which stands in where it is empty
    )


class Unjudged(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A subject that the check applies to and could not judge."""

    outcome: Literal["skipped", "could-not-run"]
    reason: str
    subject: str = ""
    needs_root: bool = False


class Passed(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A subject that was judged and is healthy; ``detail`` is worth a reader's time."""

    detail: str
    subject: str = ""


class CheckResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """One check's outcome in one run. ``reason`` is set for skipped and could-not-run."""

    code: str
    area: str
    title: str
    outcome: Outcome
    reason: str = ""
    detail: str = ""  # of a pass
    consequence_of: str = ""  # the code of the failed check that this one's findings follow from
    findings: list[Finding] = []
    unjudged: list[Unjudged] = []


class Diagnosis(msgspec.Struct, frozen=True):
    """Every registered check's result, in registry order."""

    results: list[CheckResult]


class CannotJudge(Exception):
    """Raised by a check: it does not apply here, or a fact that it needs is missing."""

    outcome: Literal["skipped", "could-not-run"] = "skipped"
    needs_root = False


class Skip(CannotJudge):
    """The check does not apply to this machine or target, or nobody asked for its facts."""


class NotKnown(Skip):
    """The tables have no value for this: never a pass."""

    def __init__(self, what: str) -> None:
        super().__init__(f"not known: {what}")


class NeedsRoot(Skip):
    """The fact is there, and only root may read it."""

    needs_root = True


class CouldNotRun(CannotJudge):
    """The check applies, and the fact it needs could not be had."""

    outcome = "could-not-run"
