"""What is kept of a machine that was judged, and what is said of all together. Contract of the reports."""

from __future__ import annotations

from typing import Literal

import msgspec

from ..comparison.model import Attribute, Measurement
from ..findings.model import Level
from .folder import Outcome

SCHEMA = 1

# unanswered: there is no Snapshot of it.
State = Literal["healthy", "problems", "could-not-look", "unanswered"]


class MachineProblem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One finding of a check that failed or warned on a machine (consequences of others left out).

    headline: a phrase without the machine's own devices. devices: "GPU 3". kind: the same on machines
    with the same problem and the same remedy, different on others.
    """

    code: str
    level: Level
    title: str
    headline: str
    message: str
    devices: list[str] = []
    remedy: str = ""
    commands: list[str] = []
    kind: str = ""


class JudgedMachine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is kept of one machine, once its Snapshot was judged. Small: there may be thousands.

    product: what machines are alike by: "8 × NVIDIA H100 80GB HBM3". groups: as of a Member, and what the
    Snapshot itself tells (the operating system's image). page: its own page beside the fleet's, "" for none.
    """

    name: str
    state: State
    answer: Outcome = "answered"
    reason: str = ""  # why it did not answer, or what could not be looked at
    verdict: str = ""
    product: str = ""
    summary: str = ""
    collected_at: str = ""
    simulated: str = ""
    groups: list[tuple[str, str]] = []
    problems: list[MachineProblem] = []
    attributes: list[Attribute] = []
    rates: list[Measurement] = []
    page: str = ""


class ProblemGroup(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Machines with the same problem and the same remedy. hosts: their names, folded: "gpu[01-16,20]"."""

    code: str
    level: Level
    title: str
    headline: str
    machines: list[str]
    hosts: str
    remedy: str = ""
    commands: list[str] = []


class OddAttribute(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What differs on a machine from most of its product: ``agree`` of ``of`` have the usual value."""

    machine: str
    product: str
    key: str
    words: str
    value: str
    usual: str
    agree: int
    of: int
    device: str = ""


class OddRate(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A rate that lies beyond the spread of the healthy ones of its product.

    below: by which share of the median it is worse. deviations: the same in robust standard deviations
    (1.4826 times the MAD, or the least spread that is told from noise). of: how many figures there are.
    """

    machine: str
    product: str
    key: str
    words: str
    value: float
    unit: str
    median: float
    below: float
    deviations: float
    of: int
    device: str = ""
    under: str = ""


class SharedFault(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A problem (or silence) that the machines of one place have and others of their product have not.

    kind, name: of the place, as in a Member's groups: ("switch", "leaf3"). code: of the problem, "" for
    machines that did not answer. of: how many machines the place has.
    """

    kind: str
    name: str
    code: str
    words: str
    machines: list[str]
    hosts: str
    of: int


class Unanswered(msgspec.Struct, frozen=True, kw_only=True):
    """Machines that did not answer, for the same reason."""

    outcome: Outcome
    reason: str
    machines: list[str]
    hosts: str


class FleetCounts(msgspec.Struct, frozen=True, kw_only=True):
    machines: int
    healthy: int
    problems: int
    could_not_look: int = msgspec.field(name="could-not-look")
    unanswered: int


class FleetResult(msgspec.Struct, frozen=True, kw_only=True):
    """What `envcheck fleet doctor` says; its JSON is this, without the machines' attributes and rates."""

    schema: int
    envcheck: str
    counts: FleetCounts
    groups: list[ProblemGroup]
    odd_attributes: list[OddAttribute]
    odd_rates: list[OddRate]
    shared: list[SharedFault]
    unanswered: list[Unanswered]
    machines: list[JudgedMachine]
