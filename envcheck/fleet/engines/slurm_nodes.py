"""What Slurm says of its nodes, read: states and reasons, partitions and features. Pure.

Of sinfo and scontrol the plain forms are read, with a format of our own: every version has them. Their JSON
differs from version to version (scontrol 22.05 has none), and says no more of what is needed here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timezone
from typing import NamedTuple

from ... import safe_text
from ...reports.plain import together
from ..folder import Outcome

# For `sinfo --Node --noheader`: a line for each node and partition; the reason, which may be anything, last.
# Times are in TZ.
FORMAT = "%N|%P|%a|%T|%G|%f|%o|%H|%E"

# At the end of a state: what else Slurm says of the node.
_FLAGS = "*~#!%$@^-+"
_SILENT = "*"
_ASLEEP = "~!%"  # powered down, or about to be: a job would start it
_RESTARTING = "@^"

# The long names, which %T gives: node_state_string() in Slurm's src/common/slurm_protocol_defs.c.
_DOWN = frozenset({"down", "unknown", "future", "error", "no_respond"})
_CLOSED = frozenset({
    "drained", "draining", "fail", "failing", "inval", "perfctrs", "blocked", "boot", "reboot",
    "reboot_issued", "powered_down", "powering_down",
})  # fmt: skip
_DRAINED = frozenset({"drained", "draining"})
TAKEN = frozenset({"allocated", "completing", "mixed"})  # jobs run there now
_COUNT = re.compile(r"[0-9]{1,6}")  # of GPUs
_NO_REASON = frozenset({"", "none", "(null)", "Unknown"})


class SlurmNodeState(NamedTuple):
    """A node as sinfo tells it. partitions: those that take jobs, the default one first. since:
    when the reason was set, where TZ is UTC; None where there is none."""

    name: str
    state: str
    reason: str = ""
    partitions: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    gpus: int = 0
    since: datetime | None = None
    address: str = ""

    @property
    def base(self) -> str:
        """The state's first word, without Slurm's flags."""
        return self.state.rstrip(_FLAGS).partition("+")[0].lower()

    @property
    def flags(self) -> str:
        return self.state[len(self.state.rstrip(_FLAGS)) :]

    @property
    def is_drained(self) -> bool:
        return self.base in _DRAINED


def nodes(text: str) -> list[SlurmNodeState]:
    """What `sinfo --Node --noheader --format=FORMAT` says; lines that are no such lines are left out."""
    every = ([field.strip() for field in line.split("|", 8)] for line in text.splitlines())
    found = together((row[0], row) for row in every if len(row) == 9 and row[0])
    return [_node(name, rows) for name, rows in found.items()]


def _node(name: str, rows: Sequence[Sequence[str]]) -> SlurmNodeState:
    _, _, _, state, gres, features, address, since, reason = rows[0]
    named = {row[1] for row in rows if row[1] not in _NO_REASON}
    up = {row[1] for row in rows if row[2] == "up" and row[1] not in _NO_REASON} or named
    return SlurmNodeState(
        name=name,
        state=state,
        reason="" if reason in _NO_REASON else safe_text.one_line(reason),
        partitions=tuple(p.rstrip("*") for p in sorted(up, key=lambda p: (not p.endswith("*"), p))),
        features=tuple(f for f in features.split(",") if f not in _NO_REASON),
        gpus=gpus(gres),
        since=_moment(since),
        address=address,
    )


def _moment(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text).replace(tzinfo=timezone.utc)
    except ValueError:
        return None


def gpus(gres: str) -> int:
    """Of "gpu:h100:8(S:0-1),nic:2" eight; of several kinds their sum."""
    plain = re.sub(r"\([^()]*\)", "", gres)
    parts = [part.split(":") for part in plain.split(",")]
    return sum(int(p[-1]) for p in parts if p[0] == "gpu" and _COUNT.fullmatch(p[-1]))


def closed(node: SlurmNodeState) -> tuple[Outcome, str] | None:
    """The outcome and reason of a node that Slurm starts no job on; None where it may."""
    flags = set(node.flags)
    if node.base in _DOWN or _SILENT in flags:
        outcome: Outcome = "unreachable"
    elif node.base in _CLOSED or flags & {*_ASLEEP, *_RESTARTING}:
        outcome = "not-asked"
    else:
        return None
    words = "does not respond" if _SILENT in flags and not node.reason else node.reason
    state = safe_text.one_line(node.state.rstrip(_FLAGS) or node.state).lower()
    if flags & set(_ASLEEP):
        state = f"{state}, powered down"
    elif flags & set(_RESTARTING):
        state = f"{state}, to be restarted"
    return outcome, f"Slurm has it as {state}" + (f": {words}" if words else "")


def groups(node: SlurmNodeState) -> list[tuple[str, str]]:
    """Its place, as a Member's groups have it."""
    partitions = [("partition", name) for name in node.partitions]
    return [*partitions, *(("feature", name) for name in node.features)]
