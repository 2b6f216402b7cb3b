"""Drains this node in Slurm for what the doctor found on it: the rules, and Slurm's commands.

Only failed checks of the driver, of the GPUs and of the PCI bus drain a node, and where that is wanted, those
that found it degraded. How many nodes envcheck has drained within the hour is asked of Slurm, before and
after: see ``drain``.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple, Protocol

import msgspec

from ... import json_text, safe_text
from ...exit_codes import UsageError
from ...reports.results import ReportedResult, fails
from . import slurm
from .slurm_nodes import SlurmNodeState

ANSWER = 4.0  # seconds that Slurm has for each answer
SETTLES = 2.0  # seconds after which slurmctld's clock shows another second
WINDOW = timedelta(hours=1)  # in which so many nodes may be drained
LONGEST = 200  # characters of what a Reason says of the node

_DRAINS = re.compile(r"(?:DRV|GPU|PCI)-\d{1,6}")
# A licence server is not this node: without it every node with a virtual GPU fails.
_NEVER = frozenset({"GPU-017"})
_OURS = "envcheck: "
_NOT_PLAIN = re.compile(r"[^A-Za-z0-9 .,:()/%+_#*@-]")


class _Report(msgspec.Struct, frozen=True):
    results: list[ReportedResult]


class Decision(NamedTuple):
    """What became of the node, in a sentence. done: it is drained."""

    done: bool
    sentence: str


class Slurm(Protocol):
    """What is asked of Slurm. Every method raises CouldNotLook where it gives no answer."""

    def nodes(self) -> dict[str, SlurmNodeState]: ...
    def update(self, node: str, **settings: str) -> None: ...


class SlurmCommands:
    """Slurm by its commands."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._tools = slurm.find({**environ, "TZ": "UTC0"})

    def nodes(self) -> dict[str, SlurmNodeState]:
        return self._tools.nodes("--all", deadline=ANSWER)

    def update(self, node: str, **settings: str) -> None:
        words = [f"NodeName={node}", *(f"{name}={value}" for name, value in settings.items())]
        self._tools.says(self._tools.scontrol, "update", *words, deadline=ANSWER)


def problem(report: bytes, fail_on: str) -> str:
    """What of the doctor's JSON report a node is drained for, in words; "" for nothing. fail_on: "fail" or
    "degraded". Raises UsageError."""
    try:
        found = json_text.read(report, _Report).results
    except json_text.NotReadable as error:
        raise UsageError(f"this is no JSON report of the doctor: {error}") from None
    failed = [one for one in found if may_drain(one.code) and fails(one, fail_on)]
    return sentence(failed) if failed else ""


def may_drain(code: str) -> bool:
    """Whether a check with this code can drain a node."""
    return bool(_DRAINS.fullmatch(code)) and code not in _NEVER


def sentence(results: Sequence[ReportedResult]) -> str:
    """The first result in words, and how many more there are."""
    first, *more = results
    found = sorted(first.findings, key=lambda one: (one.level != "fail", not one.degrades))
    words = found[0].message if found else first.reason
    others = f" (and {len(more)} more)" if more else ""
    return safe_text.one_line(f"{first.code} {words}")[:LONGEST] + others


def plain(text: str) -> str:
    """Letters, digits and harmless signs of ASCII in one line: no quotes, escapes, "=" or brackets."""
    return " ".join(_NOT_PLAIN.sub(" ", text.replace("'", "")).split())


def _is_ours_since(node: SlurmNodeState, moment: datetime) -> bool:
    return node.reason.startswith(_OURS) and node.since is not None and node.since >= moment


def limit(nodes: Mapping[str, SlurmNodeState], percent: float) -> int:
    """How many nodes envcheck may drain within the hour: of those with GPUs, at least one."""
    return max(1, int(sum(row.gpus > 0 for row in nodes.values()) * percent / 100))


def drain(
    cluster: Slurm,
    node: str,
    found: str,
    *,
    percent: float,
    now: Callable[[], datetime],
    sleep: Callable[[float], None] = time.sleep,
) -> Decision:
    """Drain this node for what was found on it ("": nothing), unless envcheck has drained too many within
    the hour. Many nodes may do this at the same moment. So each asks again after it has drained itself, and
    resumes itself where the limit was reached by those before it (by slurmctld's time, then name). Raises
    CouldNotLook."""
    if not found:
        return Decision(False, "nothing failed that a node is drained for")
    nodes = cluster.nodes()
    row = nodes.get(node)
    if row is None or not row.gpus:
        return Decision(False, f"Slurm has no GPU on {node}: it stays in service")
    if row.is_drained and row.reason.startswith(_OURS):
        sleep(3 * SETTLES)  # another job's prolog may have done it just now, and take it back
        row = cluster.nodes()[node]
        if not row.is_drained:
            return Decision(False, "NOT drained: another job's prolog found the limit reached")
    if row.is_drained:
        return Decision(True, f"is drained already: {safe_text.one_line(row.reason)}")
    most, words = limit(nodes, percent), f"{_OURS}{plain(found)}"
    refused = Decision(
        False,
        f"NOT drained, for envcheck has drained {most} of the nodes within the hour, which is its limit:"
        f" {words.removeprefix(_OURS)}",
    )
    since = now() - WINDOW
    if sum(_is_ours_since(one, since) for one in nodes.values()) >= most:
        return refused
    cluster.update(node, State="DRAIN", Reason=words)
    sleep(SETTLES)
    nodes = cluster.nodes()
    row = nodes[node]
    if not row.is_drained or row.reason != words or row.since is None:
        return Decision(row.is_drained, "somebody else changed the node's state meanwhile")
    before = [one for one in nodes.values() if _is_ours_since(one, row.since - WINDOW)]
    if sum((one.since, one.name) < (row.since, row.name) for one in before) < most:
        return Decision(True, f"drained: {words}")
    cluster.update(node, State="RESUME")
    return refused
