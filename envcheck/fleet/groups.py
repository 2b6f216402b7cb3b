"""The same problem on many machines, as one group: problems are the same where code and cause are.

Where a cause is about something that machines share (a package, a library), or declares parameters that
distinguish its cases (an Xid's number), these count, too. A machine's own devices do not.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from ..findings.causes import Finding
from ..findings.model import CheckResult, Diagnosis
from ..reports.headlines import OF_SEVERAL
from ..reports.plain import together, worst_first
from . import hosts
from .model import FleetProblem, JudgedMachine, MachineProblem, ProblemGroup

# Kinds of subjects that are one machine's own: the same library, package or file may be on all of them.
_OWN = ("gpu", "mig-instance", "nvswitch", "pci-device", "process", "container", "file")


def problems(diagnosis: Diagnosis) -> list[MachineProblem]:
    """What was found on a machine, causes first; the same cause on several devices is one problem."""
    results = worst_first(diagnosis.results)
    each = [_problem(result, finding) for result in results for finding in result.findings]
    return [
        replace(
            several[0],
            devices=list(dict.fromkeys(device for one in several for device in one.devices)),
            commands=list(dict.fromkeys(command for one in several for command in one.commands)),
        )
        for several in together((one.kind, one) for one in each).values()
    ]


def _problem(result: CheckResult, finding: Finding) -> MachineProblem:
    cause, remedy = finding.cause, finding.remedy
    shared = sorted({one.name or one.text for one in finding.subjects if one.kind not in _OWN})
    cases = [str(finding.params[name]) for name in cause.cases]
    return MachineProblem(
        code=result.code,
        cause=cause.key,
        level=finding.level,
        degrades=finding.degrades,
        title=result.title,
        headline=_of_class(finding),
        message=finding.message,
        devices=list(dict.fromkeys(subject.text for subject in finding.subjects)),
        remedy="" if remedy is None else remedy.text,
        commands=[] if remedy is None else list(remedy.commands),
        kind=" ".join([result.code, cause.key, *shared, *cases]),
    )


def _of_class(finding: Finding) -> str:
    """ "is not initialized" of an NVSwitch: what else it may be about than a GPU is named."""
    verb = finding.headline.partition(" ")[0]
    kind = finding.subjects[0].kind if finding.subjects else "gpu"
    if verb not in OF_SEVERAL or kind in ("gpu", "gpu-model"):
        return finding.headline
    name = {"mig-instance": "MIG instance", "nvswitch": "NVSwitch", "pci-device": "PCI device"}
    noun = name.get(kind, kind)
    return f"a{'n' * noun.startswith(('N', 'e'))} {noun} {finding.headline}"


def grouped(machines: Sequence[JudgedMachine]) -> list[ProblemGroup]:
    """The worst first, and of these what most machines have."""
    each = ((machine.name, problem) for machine in machines for problem in machine.problems)
    found = together((problem.kind, (name, problem)) for name, problem in each)
    groups = [_group(members) for members in found.values()]
    return sorted(
        groups, key=lambda one: (one.level != "fail", not one.degrades, -len(one.machines))
    )


def _group(members: Sequence[tuple[str, MachineProblem]]) -> ProblemGroup:
    names = hosts.natural(dict(members))
    shown = next(problem for name, problem in members if name == names[0])
    words = {(one.headline, one.message, one.remedy, *one.commands) for _, one in members}
    found = {name: getattr(shown, name) for name in FleetProblem.__struct_fields__}
    found["first_seen"] = min(problem.first_seen for _, problem in members)
    of_one = "" if len(words) == 1 else names[0]
    return ProblemGroup(machines=names, hosts=hosts.folded(names), of_one=of_one, **found)
