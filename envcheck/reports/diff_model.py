"""What `envcheck diff` says: which checks turned and why, then facts and rates that changed. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from .. import __version__
from ..attributes.difference import ChangedFact, ChangedRate, Differences, OneSided, differences
from ..facts.base import Facts, Unavailable
from ..facts.snapshot import Snapshot
from ..facts.view import SnapshotView, show
from ..findings.model import Diagnosis, Outcome
from .machine import gpu_phrase
from .model import build, status_of
from .results import ReportedResult, reported_results
from .verdict import Status

SCHEMA = 1
_GOOD: dict[Outcome, int] = {"skipped": 0, "pass": 0, "warn": 1, "could-not-run": 2, "fail": 3}
_STATUS: dict[Status, int] = {"healthy": 0, "could-not-look": 1, "problems": 2}
_DECIDE = ("fail", "could-not-run")
_PART = re.compile(r"([A-Za-z_][A-Za-z0-9_]{0,63})((?:\[\d{1,6}\]){0,3})")
_DEVICE = re.compile(r"([A-Za-z_.]{1,80}\.(?:gpus|devices|rdma))\[\d{1,6}\]")
_LONGEST = 300  # characters of a value
_MOST = 8  # facts that are told under a check


class EvidenceChange(msgspec.Struct, frozen=True, kw_only=True):
    """A fact that a finding rests on, and that is another one now; "" where it is too long to tell."""

    fact: str  # its path in the Snapshot
    before: str
    after: str


class TurnedCheck(msgspec.Struct, frozen=True, kw_only=True):
    """A check with another outcome than before, or with the same about more or others.

    decides: it explains the change of the verdict. messages: of its findings, now; of one that has none
    any more, before. because: what changed of the facts that these rest on.
    """

    code: str
    area: str
    title: str
    before: Outcome
    after: Outcome
    worse: bool
    decides: bool
    messages: list[str]
    subjects: list[str]
    because: list[EvidenceChange]


class DiffSide(msgspec.Struct, frozen=True, kw_only=True):
    """One of the two Snapshots. product: "8 × NVIDIA H100 80GB HBM3"."""

    status: Status
    verdict: str
    summary: str
    product: str
    collected_at: str
    simulated: str = ""


class DiffReport(msgspec.Struct, frozen=True, kw_only=True):
    """verdict: how the status turned; where only one of them has a target, of the checks that judged in
    both. target_of_one: only one of them has a target. other_machine: why these are not the same machine,
    "" where they may be. worse: a check turned for the worse, or a rate fell beyond its spread. changed:
    anything did. judged_in_one: codes of checks that judged in one of the two alone."""

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
    sides = _side(before, judged_before), _side(after, judged_after)
    found = differences(SnapshotView(before), SnapshotView(after))
    then, now = _comparable(before, after, judged_before, judged_after)
    towards = _STATUS[status_of(now.results)] - _STATUS[status_of(then.results)]
    turned, one_sided = _turned(before, after, judged_before, judged_after, towards)
    worse = any(one.worse for one in turned) or any(one.worse for one in found.rates)
    return DiffReport(
        schema=SCHEMA,
        envcheck=__version__,
        verdict="worse" if towards > 0 else "better" if towards else "same",
        target_of_one=(before.target is None) != (after.target is None),
        other_machine=_other_machine(found, *sides),
        worse=worse,
        changed=bool(turned or found.rates or found.facts),
        before=sides[0],
        after=sides[1],
        turned=turned,
        rates=found.rates,
        facts=found.facts,
        only=found.only,
        judged_in_one=one_sided,
        facts_compared=found.facts_compared,
        rates_compared=found.rates_compared,
    )


def _comparable(
    before: Snapshot, after: Snapshot, judged_before: Diagnosis, judged_after: Diagnosis
) -> tuple[Diagnosis, Diagnosis]:
    """Where only one of them has a target, the results of the checks that judged in both."""
    if (before.target is None) == (after.target is None):
        return judged_before, judged_after
    judged = [
        {result.code for result in diagnosis.results if result.outcome != "skipped"}
        for diagnosis in (judged_before, judged_after)
    ]
    both = judged[0] & judged[1]
    then, now = (
        Diagnosis([result for result in diagnosis.results if result.code in both])
        for diagnosis in (judged_before, judged_after)
    )
    return then, now


def _side(snapshot: Snapshot, diagnosis: Diagnosis) -> DiffSide:
    report = build(snapshot, diagnosis)
    return DiffSide(
        status=report.status,
        verdict=report.verdict,
        summary=report.machine.summary,
        product=gpu_phrase(report.machine.gpus),
        collected_at=report.machine.collected_at,
        simulated=report.simulated,
    )


def _other_machine(found: Differences, before: DiffSide, after: DiffSide) -> str:
    """Of one that lost a GPU, the others are still there."""
    for fact in found.facts:
        if fact.key == "gpus.count" and _names(fact.before).isdisjoint(_names(fact.after)):
            return f"{before.product}, and {after.product}"
    for fact in found.facts:
        if fact.key == "machine.cpu" and "none" not in (fact.before, fact.after):
            return f"{fact.before}, and {fact.after}"
    return ""


def _names(counted: str) -> set[str]:
    """Of "8 × NVIDIA L4, 1 × NVIDIA T4"."""
    return {part.partition(" × ")[2] for part in counted.split(", ")}


def _turned(
    before: Snapshot,
    after: Snapshot,
    judged_before: Diagnosis,
    judged_after: Diagnosis,
    towards: int,
) -> tuple[list[TurnedCheck], list[str]]:
    old = {result.code: result for result in reported_results(judged_before)}
    target_of_one = (before.target is None) != (after.target is None)
    turned, one_sided = [], []
    for now in reported_results(judged_after):
        then = old.get(now.code)
        if then is None:
            continue
        outcomes = _outcome(then), _outcome(now)
        bad = [_GOOD[outcome] for outcome in outcomes]
        of_one = target_of_one and "skipped" in (then.outcome, now.outcome)
        if of_one or not any(bad):
            if outcomes[0] != outcomes[1]:
                one_sided.append(now.code)
            continue
        of_more = _subjects(now) - _subjects(then)
        of_fewer = _subjects(then) - _subjects(now)
        if bad[0] == bad[1] and not (of_more or of_fewer):
            continue
        worse = bad[1] > bad[0] or (bad[0] == bad[1] and bool(of_more))
        turns = bool(towards) and worse is (towards > 0) and bad[0] != bad[1]
        decides = turns and outcomes[1 if towards > 0 else 0] in _DECIDE
        if outcomes[1] == "skipped" and not decides:
            one_sided.append(now.code)
            continue
        telling = now if now.findings or now.unjudged else then
        turned.append(
            TurnedCheck(
                code=now.code,
                area=now.area,
                title=now.title,
                before=outcomes[0],
                after=outcomes[1],
                worse=worse,
                decides=decides,
                messages=_messages(telling),
                subjects=sorted(of_more or of_fewer)[:64],
                because=list(_because(telling, telling is now, before, after))[:_MOST],
            )
        )
    turned.sort(key=lambda one: (not one.decides, not one.worse, -_GOOD[one.after], one.code))
    return turned, one_sided


def _outcome(result: ReportedResult) -> Outcome:
    """What follows from another check's failure is that check's matter."""
    return "skipped" if result.consequence_of else result.outcome


def _subjects(result: ReportedResult) -> set[str]:
    return {subject.text for finding in result.findings for subject in finding.subjects}


def _messages(result: ReportedResult) -> list[str]:
    told = [finding.message for finding in result.findings] or [
        gap.reason for gap in result.unjudged
    ]
    return list(dict.fromkeys(told))[:_MOST]


def _because(
    result: ReportedResult, is_now: bool, before: Snapshot, after: Snapshot
) -> Iterator[EvidenceChange]:
    """The facts under its findings that are others now; the same path once."""
    seen = set()
    for evidence in (one for finding in result.findings for one in finding.evidence):
        if evidence.fact in seen:
            continue
        seen.add(evidence.fact)
        here, there = (after, before) if is_now else (before, after)
        found = _resolved(here, evidence.fact), _resolved(there, _as_in(here, there, evidence.fact))
        if found[0] == found[1] or found == (None, None):
            continue
        texts = [_text(value) for value in found]
        if not all(texts):
            texts = [evidence.value[:_LONGEST], ""]
        old, new = (texts[1], texts[0]) if is_now else (texts[0], texts[1])
        yield EvidenceChange(fact=evidence.fact, before=old, after=new)


def _text(value: Any) -> str:
    """A plain fact as text; "" for what is no plain one."""
    if value is None:
        return "not there"
    if isinstance(value, (Unavailable, bool, int, float, str)):
        return show(value)[:_LONGEST]
    return ""


def _resolved(snapshot: Snapshot, path: str) -> Any:
    """The fact at a path of evidence ("machine.nvml.gpus[3].ecc_enabled"); None where there is none."""
    found: Any = snapshot
    for number, part in enumerate(path.split(".")):
        match = _PART.fullmatch(part)
        if match is None or not isinstance(found, (Facts, dict)):
            return None
        found = found.get(match[1]) if isinstance(found, dict) else getattr(found, match[1], None)
        for place in re.findall(r"\d{1,6}", match[2]):
            if not isinstance(found, list) or int(place) >= len(found):
                return None
            found = found[int(place)]
        if number == 1:
            found = getattr(found, "facts", None)
    return found


def _as_in(here: Snapshot, there: Snapshot, path: str) -> str:
    """The path of the same device's fact in the other Snapshot, where it may have another place."""
    match = _DEVICE.match(path)
    if match is None:
        return path
    several, rest = match[1], path[match.end() :]
    address = _address(_resolved(here, path[: match.end()]))
    if address is None:
        return path
    others = _resolved(there, several)
    for place, other in enumerate(others if isinstance(others, list) else []):
        if _address(other) == address:
            return f"{several}[{place}]{rest}"
    return ""


def _address(device: Any) -> str | None:
    found = getattr(device, "pci_address", None) or getattr(device, "address", None)
    return found if isinstance(found, str) else None


def schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) that every such report obeys."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The report of envcheck diff",
        **msgspec.json.schema(DiffReport),
    }
