"""The same problem with the same remedy on many machines, as one group.

Whose problem it is does not matter: before they are compared, a machine's own devices (the addresses, UUIDs
and names that its Snapshot lists, and what a finding is about), its tokens ("<home-1>"), and in prose its
numbers lose their names. Numbers in commands stay: they must be right on every machine of a group.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from ..facts.base import known
from ..facts.missing import CannotJudge
from ..facts.snapshot import Snapshot
from ..facts.view import view_of
from ..findings.model import CheckResult, Diagnosis, Finding
from ..findings.subjects import Subject
from ..reports.plain import worst_first
from . import hosts
from .model import JudgedMachine, MachineProblem, ProblemGroup

# Kinds of subjects that are one machine's own: the same library, package or file may be on all of them.
_OWN = ("gpu", "mig-instance", "nvswitch", "pci-device", "process", "container")

_DEVICE = "<device>"
_SEVERAL = re.compile(r"<device>(?:[ ,]{1,3}<device>)+")
_ADDRESS = re.compile(
    r"(?<![\w:])(?:[0-9A-Fa-f]{4,8}:)?[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f](?!\w)"
)
_NODE = re.compile(r"(/dev/nvidia|(?<!\w)-i )[0-9]{1,4}(?!\w)")
_DIGITS = re.compile(r"[0-9]{1,10}")
_TOKEN = re.compile(r"<([a-z]{1,20})-[0-9]{1,6}>")
# An Xid's number is what happened.
_NUMBER = re.compile(r"(?<![\w.])(?<!Xid )[0-9][0-9.,]{0,40}")


def problems(diagnosis: Diagnosis, snapshot: Snapshot) -> list[MachineProblem]:
    """What was found on a machine, causes first: the same of several devices as one."""
    names = _device_names(snapshot)
    found: dict[str, MachineProblem] = {}
    for result in worst_first(diagnosis.results):
        for finding in result.findings:
            problem = _problem(result, finding, names)
            first = found.setdefault(problem.kind, problem)
            if first is not problem:
                found[problem.kind] = msgspec.structs.replace(
                    first,
                    devices=list(dict.fromkeys(first.devices + problem.devices)),
                    commands=list(dict.fromkeys(first.commands + problem.commands)),
                )
    return list(found.values())


def _problem(result: CheckResult, finding: Finding, names: list[str]) -> MachineProblem:
    headline = finding.headline or finding.message
    remedy, commands = "", []
    if finding.remedy is not None:
        remedy, commands = finding.remedy.text, finding.remedy.commands
    own = _longest_first([*names, *_own_names(finding.subjects)])
    pids = [subject.pid for subject in finding.subjects if subject.pid is not None]
    same = (
        result.code,
        finding.level,
        _NUMBER.sub("#", _masked(headline, own, pids)),
        _NUMBER.sub("#", _masked(remedy, own, pids)),
        *dict.fromkeys(_masked(command, own, pids) for command in commands),
    )
    digest = hashlib.blake2b("\0".join(same).encode("utf-8", "replace"), digest_size=8)
    return MachineProblem(
        code=result.code,
        level=finding.level,
        title=result.title,
        headline=headline,
        message=finding.message,
        devices=list(dict.fromkeys(subject.text for subject in finding.subjects)),
        remedy=remedy,
        commands=list(commands),
        kind=f"{result.code} {digest.hexdigest()}",
    )


def _masked(text: str, own: Iterable[str], pids: Sequence[int]) -> str:
    for name in own:
        if name in text:
            text = text.replace(name, _DEVICE)
    if pids:
        text = _DIGITS.sub(lambda m: "<process>" if int(m[0]) in pids else m[0], text)
    text = _NODE.sub(rf"\1{_DEVICE}", _ADDRESS.sub(_DEVICE, text))
    return _SEVERAL.sub(_DEVICE, _TOKEN.sub(r"<\1>", text))


def _own_names(subjects: Iterable[Subject]) -> Iterator[str]:
    for subject in subjects:
        if subject.kind in _OWN:
            index = f"GPU {subject.index}" if subject.index is not None else ""
            yield from filter(None, (subject.text, subject.address, subject.uuid, index))


def _device_names(snapshot: Snapshot) -> list[str]:
    """What this machine's own devices are called; their addresses are known by their form."""
    found = []
    try:
        for gpu in view_of(snapshot).gpus:
            found.append(known(gpu.uuid) or "")
    except CannotJudge:
        pass
    probe: Any = snapshot.machine.network
    network = None if probe is None else probe.facts
    for device in (known(network.rdma) or ()) if network is not None else ():
        found.append(device.name)
    return [name for name in found if len(name) > 3]


def _longest_first(names: Iterable[str]) -> list[str]:
    return sorted(set(names), key=lambda name: (-len(name), name))


def grouped(machines: Sequence[JudgedMachine]) -> list[ProblemGroup]:
    """Failures before warnings, and of these what most machines have first."""
    found: dict[str, list[tuple[str, MachineProblem]]] = {}
    for machine in machines:
        for problem in machine.problems:
            found.setdefault(problem.kind, []).append((machine.name, problem))
    groups = [_group(these) for these in found.values()]
    return sorted(groups, key=lambda group: (group.level != "fail", -len(group.machines)))


def _group(these: list[tuple[str, MachineProblem]]) -> ProblemGroup:
    names = hosts.natural(dict(these))
    shown = next(problem for name, problem in these if name == names[0])
    alike = len({_words(problem) for _, problem in these}) == 1
    return ProblemGroup(
        code=shown.code,
        level=shown.level,
        title=shown.title,
        headline=shown.headline,
        machines=names,
        hosts=hosts.folded(names),
        limit=hosts.limit(names),
        message=shown.message,
        remedy=shown.remedy,
        commands=shown.commands,
        of_one="" if alike else names[0],
    )


def _words(problem: MachineProblem) -> tuple[str, ...]:
    return (problem.headline, problem.message, problem.remedy, *problem.commands)
