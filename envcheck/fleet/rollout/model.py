"""What a roll-out is going to do, and what became of it. Contract of its reports."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

SCHEMA = 1

# What became of a machine. failed: it is as it was, or exit_code says otherwise. left-out: it was never to be
# begun, and the reason says why. nothing: there was nothing to go back to, or to remove.
EndResult = Literal[
    "installed", "already", "back", "removed", "nothing",
    "failed", "unreachable", "timed-out", "not-begun", "left-out",
]  # fmt: skip


class FitGroup(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Machines that get the same, to the byte. pythons: of each, the one that envcheck runs with there."""

    name: str  # "envcheck_fit_1": of the group in the inventory that is made for Ansible
    stack: str
    release: str
    python: str = ""  # "3.11"
    architecture: str = ""
    machines: list[str]
    hosts: str  # the same, folded
    runners: list[str] = []  # minor versions that envcheck itself runs with there
    reasons: list[str] = []
    notes: list[str] = []
    files: int = 0
    size: int = 0  # bytes that each machine is sent, or fetches


class LeftOutMachines(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Machines that are not begun, for the same reason. exit_code: as of one machine."""

    reason: str
    machines: list[str]
    hosts: str
    exit_code: int
    hint: str = ""


class PlannedRollout(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """waves: how many machines each has."""

    groups: list[FitGroup]
    left_out: list[LeftOutMachines] = []
    waves: list[int] = []
    max_fail: str = "0"

    @property
    def machines(self) -> list[str]:
        return [name for group in self.groups for name in group.machines]


class MachineEnd(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """wave: from 1; 0 for a machine that was in none. log: where this machine's log lies."""

    name: str
    result: EndResult
    exit_code: Annotated[int, msgspec.Meta(ge=0, le=255)] = 0
    reason: str = ""
    version: str = ""
    verdict: str = ""
    unproven: Annotated[list[str], msgspec.Meta(max_length=1000)] = []
    wave: int = 0
    seconds: Annotated[float, msgspec.Meta(ge=0, le=1e9)] = 0.0
    carried: Annotated[int, msgspec.Meta(ge=0, le=1 << 50)] = 0  # bytes
    log: str = ""


class RolloutResult(msgspec.Struct, frozen=True, kw_only=True):
    """What `envcheck fleet install --format json` says; stopped: why no further machine was begun."""

    schema: int
    envcheck: str
    exit_code: int
    plan: PlannedRollout | None
    machines: list[MachineEnd]
    stopped: str = ""
    logs: str = ""
