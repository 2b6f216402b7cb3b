"""Sections of a profile whose keys are names that a machine has: packages, libraries, parameters, settings.

A name belongs to no machine alone: what a scheduler gives to one job, where an environment lies, and whatever
holds a name, a serial number or a UUID of a machine is none of these.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from ..data import table
from ..facts.base import NOT_COLLECTED, Maybe, Unavailable, known
from ..facts.kernel import Kernel
from ..facts.network import Network
from ..facts.target import FRAMEWORKS, Library
from ..facts.view import SnapshotView
from .readers import Fact, facts_or
from .registry import Kind

_MOST = 4000  # names of a section that are kept: a Snapshot may come from anybody
_LONGEST = 2000  # characters of a value
# Redacted, or what would have been: a serial number, a UUID, a host, a user.
_OF_ONE_MACHINE = re.compile(
    r"<(?:uuid|serial|host|user|home)-\d{1,9}>|[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-"
)
_OF_ONE_JOB = re.compile(
    r"SLURM_|HOROVOD_(?:HOST|RANK|LOCAL|CROSS|SIZE|GLOO)|VIRTUAL_ENV|CONDA_PREFIX|[A-Z0-9_]{0,60}"
    r"(?:VISIBLE_DEVICES|_RANK|_ID|_ADDR|_ADDRESS|_PORT|_FILE|_DIRECTORY|CACHE_PATH|COORDINATOR)$"
)


class Named(NamedTuple):
    """facts: of a SnapshotView, {name: value}, or why nobody knows. words: "%s in the target".

    at: the facts' path.
    """

    comment: str
    kind: Kind  # of its values
    words: str
    facts: Callable[[SnapshotView], Maybe[dict[str, str]]]
    at: str
    see: str  # a command that shows them

    def fact(self, view: SnapshotView, name: str) -> Fact:
        found = self.facts(view)
        if isinstance(found, Unavailable):
            return found
        if name in found:
            return found[name]
        return Unavailable(unavailable="absent", detail="there is none")


def of_one_machine(value: str) -> bool:
    """Whether a value holds a token of redaction, or what is one once it is redacted."""
    return bool(_OF_ONE_MACHINE.search(value))


def _kept(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in pairs:
        if len(found) >= _MOST:
            break
        if len(value) <= _LONGEST and not of_one_machine(value):
            found.setdefault(name, value)
    return found


_NO_TARGET = Unavailable(unavailable="not-collected", detail="no target was looked at (--target)")


def packages(view: SnapshotView) -> Maybe[dict[str, str]]:
    target = view.snapshot.target
    facts = facts_or(target.packages) if target is not None else _NO_TARGET
    if isinstance(facts, Unavailable):
        return facts
    there = facts.distributions
    return _kept((one.normalized, one.version) for one in there if not one.shadowed)


def libraries(view: SnapshotView) -> Maybe[dict[str, str]]:
    """What a framework has loaded comes before what the loader alone would find."""
    target = view.snapshot.target
    if target is None:
        return _NO_TARGET
    probes = [getattr(target, name) for name in FRAMEWORKS] + [target.loader]
    lists = [probe.facts.libraries for probe in probes if probe is not None and probe.facts]
    if not lists:
        return NOT_COLLECTED
    every: list[Library] = [library for items in lists for library in items]
    return _kept((one.name, version) for one in every if (version := known(one.version)))


def parameters(view: SnapshotView) -> Maybe[dict[str, str]]:
    facts: Kernel | Unavailable = facts_or(view.machine.kernel)
    if isinstance(facts, Unavailable):
        return facts
    return _kept(facts.driver_parameters.items()) if facts.driver_parameters else NOT_COLLECTED


def system_packages(view: SnapshotView) -> Maybe[dict[str, str]]:
    facts: Kernel | Unavailable = facts_or(view.machine.kernel)
    there = facts if isinstance(facts, Unavailable) else facts.driver_packages
    if isinstance(there, Unavailable):
        return there
    versions: dict[str, list[str]] = {}
    for one in there:
        versions.setdefault(one.name, []).append(one.version)
    return _kept((name, ", ".join(sorted(several))) for name, several in versions.items())


def network_settings(view: SnapshotView) -> Maybe[dict[str, str]]:
    """Of NCCL, Gloo, Open MPI and UCX: those that count, from the environment or a file."""
    facts: Network | Unavailable = facts_or(view.machine.network)
    there = facts if isinstance(facts, Unavailable) else facts.settings
    if isinstance(there, Unavailable):
        return there
    return _kept(
        (one.name, f"{one.value} ({one.digest})" if one.digest else one.value)
        for one in there
        if one.digest or not _OF_ONE_JOB.match(one.name)
    )


def settings(view: SnapshotView) -> Maybe[dict[str, str]]:
    """Variables of the target, and what frameworks say of themselves."""
    target = view.snapshot.target
    environment = facts_or(target.environment) if target is not None else _NO_TARGET
    found = dict(_of_frameworks(view))
    if isinstance(environment, Unavailable):
        return found or environment
    found |= environment.variables
    return _kept((name, value) for name, value in found.items() if not _OF_ONE_JOB.match(name))


def _of_frameworks(view: SnapshotView) -> Mapping[str, str]:
    target = view.snapshot.target
    found: dict[str, str] = {}
    for name in FRAMEWORKS if target is not None else ():
        facts = facts_or(getattr(target, name))
        if isinstance(facts, Unavailable):
            continue
        found |= {f"{name}.{key}": value for key, value in facts.settings.items()}
        built = {"built_cuda": known(facts.built_cuda), "built_cudnn": known(facts.built_cudnn)}
        found |= {f"{name}.{key}": value for key, value in built.items() if value}
    return found


_FACTS = {
    one.__name__: one
    for one in (packages, libraries, system_packages, parameters, network_settings, settings)
}
NAMED = {
    row["section"]: Named(
        comment=row["comment"],
        kind=row["kind"],  # type: ignore[arg-type]  # a test holds the table to the literal
        words=row["words"],
        facts=_FACTS[row["section"]],
        at=row["path"],
        see=row["see"],
    )
    for row in table("named_attributes")
}
