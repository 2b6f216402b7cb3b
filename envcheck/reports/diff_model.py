"""What `envcheck diff` finds: checks with another outcome, then facts and rates that changed. Pure."""

from __future__ import annotations

from typing import Literal, get_args

import msgspec

from .. import __version__
from ..attributes.difference import ChangedFact, ChangedRate, Differences, OneSided, differences
from ..facts.snapshot import Snapshot
from ..facts.view import SnapshotView
from ..findings.model import Diagnosis, Outcome
from ..findings.states import State
from .machine import GpuGroup, gpu_phrase
from .model import Report, build, status_of
from .results import ReportedResult

SCHEMA = 2  # 1 had the evidence that changed under each check
_BAD: dict[Outcome, int] = {"skipped": 0, "pass": 0, "warn": 1, "could-not-run": 2, "fail": 3}
_WORST_FIRST: tuple[State, ...] = get_args(State)
_DECIDE = ("fail", "could-not-run")
_MOST = 8  # messages of a check


class TurnedCheck(msgspec.Struct, frozen=True, kw_only=True):
    """A check with another outcome than before, or with the same about more or others. decides: it explains
    the change of the verdict. messages: of its findings, now; of one that has none any more, before."""

    code: str
    area: str
    title: str
    before: Outcome
    after: Outcome
    worse: bool
    decides: bool
    messages: list[str]
    subjects: list[str]


class DiffSide(msgspec.Struct, frozen=True, kw_only=True):
    status: State
    verdict: str
    summary: str
    gpus: list[GpuGroup]
    collected_at: str
    simulated: str = ""


class DiffReport(msgspec.Struct, frozen=True, kw_only=True):
    """verdict: how the status turned; where only one of them has a target, of the checks that judged in
    both. other_machine: why these are not the same machine, "" where they may be. worse: a check turned for
    the worse, or a rate fell beyond its spread. judged_in_one: codes of checks that judged in one alone."""

    schema: int
    envcheck: str
    verdict: Literal["same", "better", "worse"]
    other_machine: str
    target_of_one: bool
    worse: bool
    changed: bool
    before: DiffSide
    after: DiffSide
    turned: list[TurnedCheck]
    rates: list[ChangedRate]
    facts: list[ChangedFact]
    only: list[OneSided]
    judged_in_one: list[str]
    facts_compared: int
    rates_compared: int


def compare(
    before: Snapshot, after: Snapshot, judged_before: Diagnosis, judged_after: Diagnosis
) -> DiffReport:
    then, now = build(before, judged_before), build(after, judged_after)
    target_of_one = (before.target is None) != (after.target is None)
    found = differences(SnapshotView(before), SnapshotView(after))
    sides = _comparable(then, now, target_of_one)
    places = [_WORST_FIRST.index(status_of(results)) for results in sides]
    towards = places[0] - places[1]
    turned, judged_in_one = _turned(then, now, target_of_one, towards)
    return DiffReport(
        schema=SCHEMA,
        envcheck=__version__,
        verdict="worse" if towards > 0 else "better" if towards else "same",
        target_of_one=target_of_one,
        other_machine=_other_machine(found, then, now),
        worse=any(one.worse for one in turned) or any(one.worse for one in found.rates),
        changed=bool(turned or found.rates or found.facts),
        before=_side(then),
        after=_side(now),
        turned=turned,
        judged_in_one=judged_in_one,
        **msgspec.structs.asdict(found),
    )


def _comparable(then: Report, now: Report, target_of_one: bool) -> list[list[ReportedResult]]:
    """Where only one of them has a target, the results of the checks that judged in both."""
    sides = [then.results, now.results]
    if not target_of_one:
        return sides
    judged = [{one.code for one in results if one.outcome != "skipped"} for results in sides]
    both = judged[0] & judged[1]
    return [[one for one in results if one.code in both] for results in sides]


def _side(report: Report) -> DiffSide:
    return DiffSide(
        status=report.status,
        verdict=report.verdict,
        summary=report.machine.summary,
        gpus=report.machine.gpus or [],
        collected_at=report.machine.collected_at,
        simulated=report.simulated,
    )


def _other_machine(found: Differences, then: Report, now: Report) -> str:
    """A machine that lost a GPU still has the others."""
    gpus = [side.machine.gpus or [] for side in (then, now)]
    names = [{group.name for group in groups} for groups in gpus]
    changed = {fact.key for fact in found.facts}
    if "gpus.count" in changed and all(names) and names[0].isdisjoint(names[1]):
        return f"{gpu_phrase(gpus[0])}, and {gpu_phrase(gpus[1])}"
    for fact in found.facts:
        if fact.key == "machine.cpu" and fact.change == "changed":
            return f"{fact.before}, and {fact.after}"
    return ""


def _turned(
    before: Report, after: Report, target_of_one: bool, towards: int
) -> tuple[list[TurnedCheck], list[str]]:
    """The checks that turned; the codes of those that judged in one of the two."""
    old = {result.code: result for result in before.results}
    turned, judged_in_one = [], []
    for now in (one for one in after.results if one.code in old):
        then = old[now.code]
        outcomes = _outcome(then), _outcome(now)
        bad = [_BAD[outcome] for outcome in outcomes]
        of_one = target_of_one and "skipped" in (then.outcome, now.outcome)
        more, fewer = _subjects(now) - _subjects(then), _subjects(then) - _subjects(now)
        worse = bad[1] > bad[0] or (bad[0] == bad[1] and bool(more))
        decides = bool(towards) and worse is (towards > 0) and bad[0] != bad[1]
        side = now if towards > 0 else then
        degrades = any(finding.degrades for finding in side.findings)
        decides = decides and (degrades or outcomes[towards > 0] in _DECIDE)
        if of_one or not any(bad) or (any(bad) and outcomes[1] == "skipped" and not decides):
            if outcomes[0] != outcomes[1]:
                judged_in_one.append(now.code)
        elif bad[0] != bad[1] or more or fewer:
            shown = now if now.findings or now.unjudged else then
            check = TurnedCheck(
                code=now.code,
                area=now.area,
                title=now.title,
                before=outcomes[0],
                after=outcomes[1],
                worse=worse,
                decides=decides,
                messages=_messages(shown),
                subjects=sorted(more or fewer)[:64],
            )
            turned.append(check)
    turned.sort(key=lambda one: (not one.decides, not one.worse, -_BAD[one.after], one.code))
    return turned, judged_in_one


def _outcome(result: ReportedResult) -> Outcome:
    """What follows from another check's failure is not counted again."""
    return "skipped" if result.consequence_of else result.outcome


def _subjects(result: ReportedResult) -> set[str]:
    return {subject.text for finding in result.findings for subject in finding.subjects}


def _messages(result: ReportedResult) -> list[str]:
    found = [finding.message for finding in result.findings]
    return list(dict.fromkeys(found or [gap.reason for gap in result.unjudged]))[:_MOST]
