"""Drains this node in Slurm for what the doctor found on it, and takes it back: rules and Slurm's commands.

Only failed checks of the driver, of the GPUs and of the PCI bus drain a node. How many nodes envcheck has
drained within the hour is asked of Slurm, before and after: see ``drain``.
"""

from __future__ import annotations

import re
import time
import zlib
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import NamedTuple, Protocol

import msgspec

from ... import safe_text
from ...exit_codes import CouldNotLook, UsageError
from .. import hosts
from . import slurm, slurm_told
from .slurm_told import SlurmNodeState

ANSWER = 4.0  # seconds that Slurm has for each answer
SETTLES = 2.0  # seconds after which slurmctld's clock shows another second
WINDOW = timedelta(hours=1)  # in which so many nodes may be drained
LONGEST = 200  # characters of what a Reason says of the node

# For `sinfo --Node --noheader`; the reason, which may be anything, last. Times are in TZ.
FORMAT = "%N|%T|%G|%H|%u|%E"

_DRAINS = re.compile(r"(?:DRV|GPU|PCI)-\d{1,6}")
# A licence server is not this node: without it every node with a virtual GPU fails.
_NEVER = frozenset({"GPU-017"})
_OURS = "envcheck: "
_REASON = re.compile(rf"{_OURS}((\S+)(?: .*)?) \[([0-9a-f]{{8}})\]")
_NOT_PLAIN = re.compile(r"[^A-Za-z0-9 .,:()/%+_#*@-]")
_TIME = "%Y-%m-%dT%H:%M:%SZ"
_REFUSED = re.compile(rf"{_OURS}not drained at (\S+), (limit \d+ an hour: .*)")
_DRAINED = frozenset({"drained", "drain", "draining", "drng"})


class _Finding(msgspec.Struct, frozen=True):
    level: str = ""
    message: str = ""


class DoctorResult(msgspec.Struct, frozen=True):
    """Of the doctor's JSON report, what is needed of one check."""

    code: str
    outcome: str
    findings: list[_Finding] = []


class _Report(msgspec.Struct, frozen=True):
    results: list[DoctorResult]


class SlurmNodeRow(NamedTuple):
    """A node as sinfo shows it. since: when the reason was set; None where there is none."""

    name: str
    state: str
    gpus: int
    since: datetime | None
    user: str
    reason: str

    @property
    def is_drained(self) -> bool:
        return SlurmNodeState(self.name, self.state).base in _DRAINED

    def is_ours_since(self, moment: datetime) -> bool:
        return self.reason.startswith(_OURS) and self.since is not None and self.since >= moment


class Decision(NamedTuple):
    """What became of the node, in a sentence. done: it is drained, or was resumed."""

    done: bool
    sentence: str


class Slurm(Protocol):
    """What is asked of Slurm. Every method raises CouldNotLook where it gives no answer."""

    def nodes(self) -> dict[str, SlurmNodeRow]: ...
    def comments(self, node: str = "") -> dict[str, str]: ...
    def update(self, node: str, **settings: str) -> None: ...


class SlurmCommands:
    """Slurm by its commands."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._tools = slurm.find({**environ, "TZ": "UTC0"})

    def nodes(self) -> dict[str, SlurmNodeRow]:
        words = ("--all", "--Node", "--noheader", f"--format={FORMAT}")
        return rows(self._says(self._tools.sinfo, *words))

    def comments(self, node: str = "") -> dict[str, str]:
        """Of one node, or of all."""
        words = ("--oneliner", "show", "node", *([node] if node else []))
        return comments(self._says(self._tools.scontrol, *words))

    def update(self, node: str, **settings: str) -> None:
        words = [f"{name}={value}" for name, value in settings.items()]
        self._says(self._tools.scontrol, "update", f"NodeName={node}", *words)

    def _says(self, program: Path, *arguments: str) -> str:
        return self._tools.says(program, *arguments, deadline=ANSWER)


def rows(text: str) -> dict[str, SlurmNodeRow]:
    """What sinfo says with FORMAT, in which a node has a line for each of its partitions."""
    found = {}
    for line in text.splitlines():
        fields = [field.strip() for field in line.split("|", 5)]
        if len(fields) == 6 and fields[0]:
            name, state, gres, since, user, reason = fields
            found[name] = SlurmNodeRow(
                name, state, slurm_told.gpus(gres), _moment(since), user, reason
            )
    return found


def _moment(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text).replace(tzinfo=timezone.utc)
    except ValueError:
        return None


def comments(text: str) -> dict[str, str]:
    """{node: its Comment}, of `scontrol --oneliner show node`."""
    found = {}
    for line in text.splitlines():
        name = re.match(r"NodeName=(\S+) ", line)
        comment = re.search(r" Comment=(.*?)(?= [A-Z][A-Za-z]*=|$)", line)
        if name and comment and comment[1] != "(null)":
            found[name[1]] = comment[1].strip()
    return found


def results(report: bytes) -> list[DoctorResult]:
    """Of the doctor's JSON report, the checks that a node may be drained for. Raises UsageError."""
    try:
        found = msgspec.json.decode(report, type=_Report).results
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        words = safe_text.one_line(str(error))[:200]
        raise UsageError(f"this is no JSON report of the doctor: {words}") from None
    return [one for one in found if _DRAINS.fullmatch(one.code) and one.code not in _NEVER]


def may_drain(code: str) -> bool:
    """Whether a check with this code can drain a node."""
    return bool(_DRAINS.fullmatch(code)) and code not in _NEVER


def reason(failed: Iterable[DoctorResult]) -> str:
    """Slurm's Reason for the failed checks: short, of plain ASCII, with a checksum over its words."""
    first, *more = failed
    message = next((one.message for one in first.findings if one.level == "fail"), "")
    words = plain(f"{first.code} {message}", LONGEST) + (f" (and {len(more)} more)" if more else "")
    return f"{_OURS}{words} [{zlib.crc32(words.encode()):08x}]"


def plain(text: str, longest: int) -> str:
    """Letters, digits and harmless signs of ASCII in one line: no quotes, escapes, "=" or brackets."""
    return " ".join(_NOT_PLAIN.sub(" ", text[: 10 * longest].replace("'", "")).split())[
        :longest
    ].rstrip()


def own_code(text: str) -> str:
    """The check's code in a Reason that envcheck wrote, and nobody has changed since; else ""."""
    found = _REASON.fullmatch(text)
    return found[2] if found and f"{zlib.crc32(found[1].encode()):08x}" == found[3] else ""


def limit(nodes: Mapping[str, SlurmNodeRow], percent: float) -> int:
    """How many nodes envcheck may drain within the hour: of those with GPUs, at least one."""
    return max(1, int(sum(row.gpus > 0 for row in nodes.values()) * percent / 100))


def drain(
    cluster: Slurm,
    node: str,
    found: Iterable[DoctorResult],
    *,
    percent: float,
    now: Callable[[], datetime],
    sleep: Callable[[float], None] = time.sleep,
) -> Decision:
    """Drain this node for what failed on it, unless envcheck has drained too many within the hour.

    Many nodes may do this at the same moment, and each sees a number that is still low. So each asks again
    after it has drained itself, once the second is over in which slurmctld wrote down its time, and takes
    itself back where the limit was reached by those before it (time, then name). All that come before it are
    in that answer, for slurmctld gives the times: no more than the limit stay drained. Raises CouldNotLook.
    """
    failed = [one for one in found if one.outcome == "fail"]
    if not failed:
        return Decision(False, "nothing failed that a node is drained for")
    nodes = cluster.nodes()
    row = nodes.get(node)
    if row is None or not row.gpus:
        return Decision(False, f"Slurm has no GPU on {node}: it is left in service")
    if row.is_drained and row.reason.startswith(_OURS):
        sleep(3 * SETTLES)  # another job's prolog may have done it just now, and take it back
        row = cluster.nodes()[node]
        if not row.is_drained:
            return Decision(
                False, "NOT drained: the limit was reached, as another job's prolog has said"
            )
    if row.is_drained:
        return Decision(True, f"is drained already: {safe_text.one_line(row.reason)}")
    most, words = limit(nodes, percent), reason(failed)
    since = now() - WINDOW
    if sum(one.is_ours_since(since) for one in nodes.values()) >= most:
        return _refused(cluster, node, words, most, now())
    cluster.update(node, State="DRAIN", Reason=words)
    sleep(SETTLES)
    nodes = cluster.nodes()
    row = nodes[node]
    if not row.is_drained or row.reason != words or row.since is None:
        return Decision(row.is_drained, "somebody else changed the node's state meanwhile")
    before = [one for one in nodes.values() if one.is_ours_since(row.since - WINDOW)]
    if sum((one.since, one.name) < (row.since, row.name) for one in before) < most:
        return Decision(True, f"drained: {words}")
    cluster.update(node, State="RESUME")
    return _refused(cluster, node, words, most, now())


def _refused(cluster: Slurm, node: str, words: str, most: int, now: datetime) -> Decision:
    """Say it in the node's Comment, where `envcheck fleet doctor --slurm` finds it, unless that is taken."""
    code_and_more = words.removeprefix(_OURS).rpartition(" [")[0]
    text = f"{_OURS}not drained at {now:{_TIME}}, limit {most} an hour: {code_and_more}"
    sentence = (
        f"NOT drained, for envcheck has drained {most} of the nodes within the hour, which is its limit:"
        f" {code_and_more}"
    )
    try:
        if cluster.comments(node).get(node, _OURS).startswith(_OURS):
            cluster.update(node, Comment=text)
    except CouldNotLook as error:
        sentence += f" (not written into the node's Comment: {error})"
    return Decision(False, sentence)


def resume(
    cluster: Slurm, node: str, found: Iterable[DoctorResult], before: SlurmNodeRow | None
) -> Decision:
    """Take this node back where envcheck drained it, nobody changed that since, and the doctor agrees.

    before: the node as it was before the doctor looked. Raises CouldNotLook.
    """
    if before is None or not before.is_drained:
        return Decision(False, f"{node} is not drained")
    code = own_code(before.reason)
    if not code:
        words = safe_text.one_line(before.reason)
        return Decision(
            False, f"{node} was drained by somebody else, or its reason changed: {words}"
        )
    outcomes = {one.code: one.outcome for one in found}
    for outcome, words in (("fail", "fails"), ("could-not-run", "could not be looked at")):
        if codes := [one for one, what in outcomes.items() if what == outcome]:
            return Decision(False, f"{node} stays drained: {', '.join(codes)} {words}")
    if outcomes.get(code) not in ("pass", "warn"):
        return Decision(False, f"{node} stays drained: the doctor did not judge {code} this time")
    row = cluster.nodes().get(node)
    if row is None or (row.reason, row.since, row.user) != (
        before.reason,
        before.since,
        before.user,
    ):
        return Decision(False, f"{node} was changed in Slurm while the doctor looked: run it again")
    cluster.update(node, State="RESUME")
    row = cluster.nodes().get(node)
    if row is None or row.is_drained:
        return Decision(False, f"Slurm did not take {node} back")
    return Decision(True, f"{node} is back in service: {code} {outcomes[code]}")


def sentences(
    nodes: Mapping[str, SlurmNodeRow], said: Mapping[str, str], now: datetime
) -> list[str]:
    """For people: nodes that envcheck drained, and those it left in service because of its limit.

    said: the nodes' Comments. What was refused more than a day ago is left out.
    """
    drained = {name: row.reason for name, row in nodes.items() if own_code(row.reason)}
    refused: dict[str, list[str]] = {}
    for name, comment in said.items():
        found = _REFUSED.fullmatch(comment)
        if found and name in nodes and name not in drained and _is_of_today(found[1], now):
            refused.setdefault(found[2], []).append(name)
    told = [
        f"{hosts.folded(names)}: envcheck's prolog found a fault and did NOT drain, for its limit was reached"
        f" ({words})"
        for words, names in refused.items()
    ]
    if drained:
        told.append(
            f"{hosts.folded(drained)}: drained by envcheck. Once mended, run there, as root, the prolog's"
            " script with the word resume, for example /etc/slurm/prolog.d/50-envcheck resume"
        )
    return told


def of_cluster(environ: Mapping[str, str], names: set[str]) -> list[str]:
    """The sentences on these nodes of a cluster; none where Slurm gives no answer."""
    try:
        cluster = SlurmCommands(environ)
        nodes = {name: row for name, row in cluster.nodes().items() if name in names}
        return sentences(nodes, cluster.comments(), datetime.now(timezone.utc))
    except CouldNotLook:
        return []


def _is_of_today(text: str, now: datetime) -> bool:
    moment = _moment(text.removesuffix("Z"))
    return moment is not None and now - moment < timedelta(days=1)
