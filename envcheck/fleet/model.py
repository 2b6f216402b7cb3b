"""What is kept of a machine that was judged, and what holds for all together. Contract of the reports."""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec.structs import replace

from ..attributes.model import Attribute, Measurement
from ..findings.model import Level
from ..findings.states import State
from .folder import Outcome
from .network.model import NetworkResult

SCHEMA = 2  # 1 called outliers "odd"


class FleetProblem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a check found. headline: a phrase without the machine's own devices. first_seen: the time of the
    earliest Snapshot with it; "" where only one was judged."""

    code: str
    cause: str = ""
    level: Level
    title: str
    headline: str
    message: str = ""
    remedy: str = ""
    commands: list[str] = []
    degrades: bool = False
    first_seen: str = ""


class MachineProblem(FleetProblem, frozen=True, kw_only=True, omit_defaults=True):
    """One finding of a check that failed or warned on a machine (consequences of others left out).
    devices: "GPU 3". kind: the same on machines with the same problem."""

    devices: list[str] = []
    kind: str = ""


class JudgedMachine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is kept of one machine, once its Snapshot was judged. Small: there may be thousands. product:
    what makes machines comparable: "8 × NVIDIA H100 80GB HBM3". cards: its GPUs on the bus, each the device's
    id and the driver's name, "" for none. groups: as of a Member, and what the Snapshot itself tells (the
    operating system's image). less: in what it is less than its peers, if no problem says so. looks: how many
    Snapshots its rates are the mean of. identities: the UUIDs of its GPUs, where they are not redacted, and a
    digest of its Snapshot. page: its own page beside the fleet's, "" for none."""

    name: str
    state: State
    answer: Outcome = "answered"
    reason: str = ""  # why it did not answer, or what could not be looked at and nothing failed
    verdict: str = ""
    product: str = ""
    cards: list[tuple[str, str]] = []
    summary: str = ""
    collected_at: str = ""
    simulated: str = ""
    groups: list[tuple[str, str]] = []
    problems: list[MachineProblem] = []
    less: list[str] = []
    attributes: list[Attribute] = []
    rates: list[Measurement] = []
    looks: int = 1
    identities: list[str] = []
    page: str = ""


class ProblemGroup(FleetProblem, frozen=True, kw_only=True, omit_defaults=True):
    """Machines with the same problem. hosts: the machines folded, "gpu[01-16,20]". of_one: the machine
    whose message, remedy and commands are shown, where those of the others differ."""

    machines: list[str]
    hosts: str
    of_one: str = ""


class FleetOutlier(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A machine that differs from others of its product. devices: those that differ; none for the machine
    itself. because: the code of a problem that is about the same. also: what else differs with it."""

    machine: str
    product: str
    key: str
    words: str
    devices: list[str] = []
    because: str = ""
    also: list[str] = []
    first_seen: str = ""


class AttributeOutlier(FleetOutlier, frozen=True, kw_only=True, omit_defaults=True):
    """What differs on a machine from most of its product: ``agree`` of ``of`` have the usual value. value,
    usual: "" where there is none (a package that is not installed). per: what is counted."""

    value: str
    usual: str
    agree: int
    of: int
    per: Literal["machine", "device"] = "machine"


class RateOutlier(FleetOutlier, frozen=True, kw_only=True, omit_defaults=True):
    """Rates of a machine beyond the spread of the healthy ones of its product, by its worst figure. value:
    of ``device``. below: by which share of the median it is worse; deviations: the same in robust standard
    deviations. of: how many figures there are."""

    value: float
    unit: str
    median: float
    below: float
    deviations: float
    of: int
    device: str = ""
    under: str = ""


class Camp(msgspec.Struct, frozen=True, kw_only=True):
    """Machines that agree among each other. value: "" where there is none."""

    value: str
    machines: list[str]
    hosts: str


class Split(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What machines of one product differ in, where no machine is an outlier: without a clear majority, or as
    some have moved to another version together. camps: the largest first. also: what moved with it."""

    product: str
    key: str
    words: str
    camps: list[Camp]
    also: list[str] = []


class SharedFault(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A fault that the machines of one place have, and others of their product have not. kind, name: of the
    place: ("switch", "leaf3"). machines: those of its ``of`` that have it. elsewhere: how many others have
    it. also: other places with exactly the same machines."""

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


# Worst first, as a report lists them.
Change = Literal[
    "broken", "degraded", "problem", "unreachable", "gone", "new", "reachable", "solved", "healthy"
]


class MachineChange(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What changed on a machine since another look. problems: those that came, or that are solved."""

    machine: str
    kind: Change
    problems: list[str] = []


class Unanswered(msgspec.Struct, frozen=True, kw_only=True):
    """Machines that did not answer, for the same reason."""

    outcome: Outcome
    reason: str
    machines: list[str]
    hosts: str


class FleetCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Machines by their states. unanswered: those of the silent that have no Snapshot."""

    machines: int
    healthy: int
    degraded: int
    broken: int
    silent: int
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
    copies: list[list[str]] = []  # names of one machine
    since: list[MachineChange] | None = None  # what changed; None: nothing was compared
    network: NetworkResult | None = None  # of network.json; None: there is none

    def without_values(self) -> FleetResult:
        """Without the machines' attributes and rates, which are most of it."""
        machines = [replace(one, attributes=[], rates=[], cards=[]) for one in self.machines]
        return replace(self, machines=machines)
