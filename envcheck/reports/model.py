"""The report: a Diagnosis counted, with its verdict and the machine it is about.

It is made from the Snapshot and the Diagnosis alone (no clock, no file name, no user's options), so
that `envcheck doctor --from FILE` gives byte for byte what the live run gave.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from .. import __version__
from ..facts.base import known
from ..facts.host import Host
from ..facts.snapshot import Snapshot
from ..findings.model import Diagnosis, Outcome
from ..findings.states import State
from ..tensorcores.mode_verdict import ModeVerdict
from .machine import MachineDescription, TargetDescription, describe_machine, describe_target, facts
from .plain import number_of, together
from .results import AnyResult, ReportedResult, reported_results
from .tensorcore_rows import ordered
from .verdict import OverallVerdict, verdict_of

SCHEMA = 2  # 1 had a text for each subject

# The engine's words for a check that the user did not ask for.
LEFT_OUT = "left out by --only or --skip"

# Worst first. A check that passed says more than one that was skipped.
_SEVERITY: tuple[Outcome, ...] = ("fail", "could-not-run", "warn", "pass", "skipped")


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """How many checks had which outcome. Of the skipped ones, ``consequences`` follow from another
    check's failure, and the user did not want ``left_out`` (--only, --skip)."""

    passed: int = msgspec.field(name="pass")
    warn: int
    fail: int
    skipped: int
    could_not_run: int = msgspec.field(name="could-not-run")
    consequences: int
    left_out: int = msgspec.field(name="left-out")


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What `envcheck doctor` says. ``results`` holds every registered check, in registry order. verdict:
    one line, and headlines what it counts, most important first. simulated: what a made-up Snapshot shows,
    or "". root: what running as root would add, or "". tensor_cores: empty where no product ran."""

    schema: int
    simulated: str
    envcheck: str
    status: State
    verdict: str
    headlines: list[str]
    counts: Counts
    machine: MachineDescription
    target: TargetDescription | None
    root: str
    tensor_cores: list[ModeVerdict]
    results: list[ReportedResult]


def build(snapshot: Snapshot, diagnosis: Diagnosis) -> Report:
    """The report on a diagnosed Snapshot."""
    results = reported_results(diagnosis)
    counts = count(results)
    machine = describe_machine(snapshot)
    judged = _tensor_cores(snapshot, results)
    verdict = verdict_of(results, machine, snapshot, judged, counts.left_out)
    return Report(
        schema=SCHEMA,
        simulated=snapshot.simulated,
        envcheck=__version__,
        status=status_of(results),
        verdict=verdict.text(),
        headlines=verdict.items,
        counts=counts,
        machine=machine,
        target=describe_target(snapshot.target),
        root=_root_notice(snapshot, results),
        tensor_cores=judged,
        results=results,
    )


def verdict(report: Report, snapshot: Snapshot) -> OverallVerdict:
    """The report's verdict in its parts, for who lays it out."""
    left_out = report.counts.left_out
    return verdict_of(report.results, report.machine, snapshot, report.tensor_cores, left_out)


def _tensor_cores(snapshot: Snapshot, results: list[ReportedResult]) -> list[ModeVerdict]:
    documents = [snapshot.machine] + ([snapshot.target] if snapshot.target is not None else [])
    ran = any(document.micro_kernels is not None for document in documents)
    if tensor_cores_left_out(results) or not ran:
        return []
    from ..tensorcores.judge import judge  # here: a quick look has no use for twenty modules

    try:
        return ordered(judge(snapshot))
    except Exception:  # noqa: BLE001 - the area's checks rest on the same, and tell of the crash
        return []


def tensor_cores_left_out(results: Iterable[ReportedResult]) -> bool:
    """Whether the user did not want to hear of Tensor Cores (--only, --skip)."""
    asked = [was_left_out(result) for result in results if result.area == "tensorcores"]
    return bool(asked) and all(asked)


def worst(results: Iterable[AnyResult]) -> Outcome:
    """The worst outcome: "fail", "could-not-run", "warn", "pass" or, where all were, "skipped"."""
    outcomes = {result.outcome for result in results}
    return next((outcome for outcome in _SEVERITY if outcome in outcomes), "skipped")


def status_of(results: Iterable[AnyResult]) -> State:
    judged = [result for result in results if result.outcome not in ("pass", "skipped")]
    degrading = [result for result in judged if any(one.degrades for one in result.findings)]
    failed = [result for result in judged if result.outcome == "fail"]
    if any(_breaks(result) for result in failed):
        return "broken"
    if degrading:
        return "degraded"
    return "silent" if worst(judged) == "could-not-run" else "healthy"


def _breaks(failed: AnyResult) -> bool:
    found = [one.degrades for one in failed.findings if one.level == "fail"]
    return not found or not all(found)


def count(results: Iterable[ReportedResult]) -> Counts:
    results = list(results)
    numbers = Counter(result.outcome for result in results)
    return Counts(
        passed=numbers["pass"],
        warn=numbers["warn"],
        fail=numbers["fail"],
        skipped=numbers["skipped"],
        could_not_run=numbers["could-not-run"],
        consequences=sum(bool(result.consequence_of) for result in results),
        left_out=sum(map(was_left_out, results)),
    )


def was_left_out(result: ReportedResult) -> bool:
    return result.outcome == "skipped" and result.reason == LEFT_OUT


def by_area(results: Iterable[ReportedResult]) -> dict[str, list[ReportedResult]]:
    return together((result.area, result) for result in results)


def tally(counts: Counts) -> str:
    """ "1 check failed, 60 passed, 12 skipped (3 follow from a failure)"; zeros are left out."""
    verb = "follows" if counts.consequences == 1 else "follow"
    cause = "warning" if counts.warn and not counts.fail else "failure"
    following = f" ({counts.consequences} {verb} from a {cause})" if counts.consequences else ""
    numbers = [
        (counts.fail, "failed"),
        (counts.could_not_run, "could not run"),
        (counts.warn, "warned"),
        (counts.passed, "passed"),
        (counts.skipped - counts.left_out, f"skipped{following}"),
        (counts.left_out, "left out"),
    ]
    pieces = [(number, word) for number, word in numbers if number]
    if not pieces:
        return "no check was there"
    (number, word), *rest = pieces
    return ", ".join([f"{number_of(number, 'check')} {word}", *(f"{n} {w}" for n, w in rest)])


def _root_notice(snapshot: Snapshot, results: Iterable[ReportedResult]) -> str:
    """All facts that only root may read, in one sentence, with the codes of their checks."""
    codes: dict[str, list[str]] = {}
    for result in results:
        for gap in result.unjudged if not result.consequence_of else []:
            if gap.needs_root and result.code not in codes.setdefault(gap.what or gap.reason, []):
                codes[gap.what or gap.reason].append(result.code)
    if not codes:
        return ""
    list_of = ", ".join(f"{what} ({', '.join(of_it)})" for what, of_it in codes.items())
    if known((facts(snapshot.machine.host) or Host()).is_root):
        return f"Not readable here, even as root: {list_of}."
    return f"As root, envcheck would also read: {list_of}."
