"""What goes to the processes that judge machines, and what comes back."""

from __future__ import annotations

import msgspec

from .. import safe_text
from ..facts.profile import Profile
from .folder import Member
from .model import JudgedMachine

READY = b"ready"
LONGEST = 1 << 19  # bytes of a judged machine: with sixteen GPUs it has a third of that


class ToJudge(msgspec.Struct, frozen=True, kw_only=True):
    """A machine that answered, and the files of its Snapshots."""

    member: Member
    files: list[str]


class JudgeTask(msgspec.Struct, frozen=True, kw_only=True):
    """What a process reads on its standard input."""

    work: list[ToJudge]
    pages: str | None = None
    profile: Profile | None = None


class JudgedLine(msgspec.Struct, array_like=True):
    """A line: one machine. trouble: what keeps its page from being written."""

    machine: JudgedMachine
    trouble: str = ""


def unanswered(member: Member) -> JudgedMachine:
    return JudgedMachine(
        name=member.name,
        state="silent",
        answer=member.outcome,
        reason=safe_text.one_line(member.reason),
        groups=member.groups,
    )


def unreadable(member: Member, reason: str) -> JudgedMachine:
    return unanswered(msgspec.structs.replace(member, outcome="unreadable", reason=reason))
