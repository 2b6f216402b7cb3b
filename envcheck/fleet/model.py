"""What is kept of a machine that was judged, and what is said of all together. Contract of the reports."""

from __future__ import annotations

from typing import Literal

import msgspec

from ..attributes.model import Attribute, Measurement
from ..findings.model import Level
from .folder import Outcome

SCHEMA = 2  # 1 called outliers "odd"

# unanswered: there is no Snapshot of it.
State = Literal["healthy", "problems", "could-not-look", "unanswered"]


class MachineProblem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One finding of a check that failed or warned on a machine (consequences of others left out).

    headline: a phrase without the machine's own devices. devices: "GPU 3". kind: the same on machines with
    the same problem.
    """

    code: str
    cause: str = ""
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
    """Machines with the same problem.

    machines: their names, in the order of hosts.natural. hosts: the same folded, as Slurm and clush read it:
    "gpu[01-16,20]". limit: the same for Ansible's --limit, which reads no such ranges: "gpu01,gpu02,…"; ""
    where a name means something else there. of_one: the machine whose words these are, where message,
    remedy or commands name devices (or numbers) of its own, and those of the others differ; "" where they
    are the same on all.
    """

    code: str
    cause: str = ""
    level: Level
    title: str
    headline: str
    machines: list[str]
    hosts: str
    limit: str = ""
    message: str = ""
    remedy: str = ""
    commands: list[str] = []
    of_one: str = ""


class AttributeOutlier(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What differs on a machine from most of its product: ``agree`` of ``of`` have the usual value.

    value, usual: "" where there is none (a package that is not installed). devices: of this machine, those
    that differ in this way ("GPU 3"); none for the machine itself. per: what agree and of count: machines, or
    devices of all machines of the product. because: the code of a problem of this machine that is about the
    same, "" for none.
    """

    machine: str
    product: str
    key: str
    words: str
    value: str
    usual: str
    agree: int
    of: int
    devices: list[str] = []
    per: Literal["machine", "device"] = "machine"
    because: str = ""


class RateOutlier(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Rates of a machine that lie beyond the spread of the healthy ones of its product: one for a machine,
    about its worst figure.

    value: the worst figure, of ``device``. median: of all that can be compared. below: by which share of the
    median it is worse. deviations: the same in robust standard deviations (1.4826 times the MAD, or the
    least spread that is told from noise). of: how many figures there are. devices: all of this machine that
    are slow ("GPU 0", "GPU 3"). also: what else is slow on them, "FP8 at L0: 5.1 % below". because: the
    code of a problem of this machine that explains it, "" for none.
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
    devices: list[str] = []
    also: list[str] = []
    because: str = ""


class Camp(msgspec.Struct, frozen=True, kw_only=True):
    """Machines that agree among each other. value: "" where there is none."""

    value: str
    machines: list[str]
    hosts: str


class Split(msgspec.Struct, frozen=True, kw_only=True):
    """What machines of one product differ in, without a clear majority: nobody is the outlier.

    camps: the largest first.
    """

    product: str
    key: str
    words: str
    camps: list[Camp]


class SharedFault(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A fault that the machines of one place have, and others of their product have not.

    kind, name: of the place, as in a Member's groups: ("switch", "leaf3"); or what the Snapshots tell:
    ("kernel", "6.8.0-45-generic"). about: a problem (then code is its code), silence, or rates that are low.
    words: the fault. machines: those of the place that have it, of its ``of``. elsewhere: how many others
    have it. also: other places with exactly the same machines.
    """

    kind: str
    name: str
    code: str
    words: str
    machines: list[str]
    hosts: str
    of: int
    about: Literal["problem", "silence", "slow"] = "problem"
    elsewhere: int = 0
    also: list[tuple[str, str]] = []


class MachineChange(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What changed on a machine since another look. problems: those that came, or that are solved."""

    machine: str
    kind: Literal[
        "gone", "new", "unreachable", "reachable", "failed", "healthy", "problem", "solved"
    ]
    problems: list[str] = []


class Unanswered(msgspec.Struct, frozen=True, kw_only=True):
    """Machines that did not answer, for the same reason. limit: as of a ProblemGroup."""

    outcome: Outcome
    reason: str
    machines: list[str]
    hosts: str
    limit: str = ""


class FleetCounts(msgspec.Struct, frozen=True, kw_only=True):
    machines: int
    healthy: int
    problems: int
    could_not_look: int = msgspec.field(name="could-not-look")
    unanswered: int


class FleetResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What `envcheck fleet doctor` says; its JSON is this, without the machines' attributes and rates."""

    schema: int
    envcheck: str
    counts: FleetCounts
    groups: list[ProblemGroup]
    attribute_outliers: list[AttributeOutlier]
    rate_outliers: list[RateOutlier]
    splits: list[Split]
    shared: list[SharedFault]
    unanswered: list[Unanswered]
    machines: list[JudgedMachine]
    since: list[MachineChange] | None = None  # what changed; None: nothing was compared
