"""Judges the machines of a fleet's directory, one Snapshot at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..checks.engine import diagnose
from ..comparison.attributes import attributes
from ..comparison.measurements import measurements
from ..facts import snapshot as snapshots
from ..facts.profile import Profile
from ..facts.view import view_of
from ..reports.machine import gpu_phrase
from ..reports.model import build
from .folder import FleetFolder, Member
from .model import JudgedMachine, MachineProblem


def judged(
    folder: FleetFolder, members: Iterable[Member], profile: Profile | None = None
) -> Iterator[JudgedMachine]:
    """Every machine, in the members' order."""
    for member in members:
        yield judge(folder, member, profile)


def judge(folder: FleetFolder, member: Member, profile: Profile | None = None) -> JudgedMachine:
    if member.outcome != "answered":
        return _unanswered(member)
    try:
        snapshot = snapshots.load(folder.file(member.name).read_bytes())
    except (OSError, snapshots.SnapshotError) as error:
        return _unanswered(Member(name=member.name, outcome="unreadable", reason=str(error)))
    diagnosis = diagnose(snapshot, profile=profile)
    report = build(snapshot, diagnosis)
    view = view_of(snapshot)
    problems = [
        MachineProblem(
            code=result.code,
            level=finding.level,
            title=result.title,
            headline=finding.headline or finding.message,
            message=finding.message,
            devices=[subject.text for subject in finding.subjects],
            remedy=finding.remedy.text if finding.remedy else "",
            commands=finding.remedy.commands if finding.remedy else [],
            kind=f"{result.code} {finding.remedy.text if finding.remedy else ''}",
        )
        for result in diagnosis.results
        if not result.consequence_of
        for finding in result.findings
    ]
    return JudgedMachine(
        name=member.name,
        state=report.status,
        verdict=report.verdict,
        product=gpu_phrase(report.machine.gpus),
        summary=report.machine.summary,
        collected_at=report.machine.collected_at,
        simulated=report.simulated,
        groups=member.groups,
        problems=problems,
        attributes=attributes(view),
        rates=measurements(view),
    )


def _unanswered(member: Member) -> JudgedMachine:
    return JudgedMachine(
        name=member.name,
        state="unanswered",
        answer=member.outcome,
        reason=member.reason,
        groups=member.groups,
    )
