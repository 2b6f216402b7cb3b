"""What machines answer of the network between them, what is kept of a run, and its result."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from ..folder import Member

SCHEMA = 1


class PairReport(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One end of a pair. outcome: "ok", or "timeout", "error", "crashed" in ``step``: "connect", "group",
    "small", "send 65536", "receive 65536", "sum". rank: 0 keeps the store. named: both took the interface
    that leads to the others. offset: seconds that the other's clock is ahead, to within rtt / 2. sent:
    {bytes: best seconds} towards the other; reduced: of an all-reduce. wrong: numbers that came damaged."""

    other: str
    outcome: str = "ok"
    step: str = ""
    reason: str = ""
    round: int = 0
    rank: int = 0
    gpu: int | None = None
    named: bool = False
    offset: float | None = None
    rtt: float | None = None
    sent: dict[int, float] = {}
    reduced: dict[int, float] = {}
    wrong: int = 0


class CollectiveReport(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """seconds: the best on this machine; None with the reason why the framework has no such collective."""

    collective: str
    bytes: int
    seconds: float | None = None
    wrong: int = 0
    reason: str = ""


class TogetherReport(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    outcome: str = "ok"
    step: str = ""
    reason: str = ""
    collective: list[CollectiveReport] = []


class PeerFacts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """As of the collector's interfaces.facts, and the versions of what the target tests with. reached_at: the
    address that the inventory or Slurm has of it. slot: seconds of a round. loopback: {bytes: best seconds}
    of what it sends itself."""

    torch: str = ""
    tensorflow: str = ""
    horovod: str = ""
    host: str = ""
    resolves: str = ""
    by_name: str = ""
    towards: str = ""
    address: str = ""
    reached_at: str = ""
    mtu: int = 0
    link_mbit: int = 0
    link_is_adapter: bool = False
    settings: dict[str, str] = {}
    slot: float = 0.0
    loopback: dict[int, float] = {}

    @property
    def claimed(self) -> float:
        """Bytes a second of its link; 0 where the number is only a virtual interface's."""
        return self.link_mbit * 125e3 if self.link_is_adapter else 0.0

    @property
    def variable(self) -> str:
        """By which Gloo is given an interface."""
        return "HOROVOD_GLOO_IFACE" if self.horovod else "GLOO_SOCKET_IFNAME"

    @property
    def offers(self) -> str:
        """The interface whose address Gloo offers the others."""
        return self.settings.get(self.variable) or self.by_name

    @property
    def is_misnamed(self) -> bool:
        return bool(self.towards and self.resolves and self.offers != self.towards)


class Answer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one machine answered. outcome: "ok", or why it did not come to its end, or did not begin."""

    outcome: str
    reason: str = ""
    collected_at: str = ""
    facts: PeerFacts = PeerFacts()
    pairs: list[PairReport] = []
    together: TogetherReport | None = None


class Pass(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One start of the program on the machines."""

    members: list[Member]
    answers: dict[str, Answer] = {}
    together: list[str] = []


class NetworkRun(msgspec.Struct, frozen=True, kw_only=True):
    """network.json."""

    schema: int
    engine: str
    passes: Annotated[list[Pass], msgspec.Meta(min_length=1)]


class NetworkFinding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    cause: str
    level: Literal["fail", "warn"]
    degrades: bool = False
    headline: str
    message: str
    machines: list[str]
    remedy: str = ""
    commands: list[str] = []


class CollectiveResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Of all machines together. bus_mb_s: bus bandwidth of the slowest machine's best, in MB/s. share: of
    what the slowest pair of them reaches."""

    collective: str
    bytes: int
    machines: int
    bus_mb_s: float | None = None
    share: float | None = None
    reason: str = ""


class MachineRates(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Medians over a machine's pairs: MB/s in each direction, µs. link_mbit: what its interface claims."""

    name: str
    pairs: int = 0
    failed: int = 0
    sends_mb_s: float | None = None
    receives_mb_s: float | None = None
    latency_us: float | None = None
    link_mbit: int = 0


class NetworkResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What `envcheck fleet network --format json` says. tested_at: when the last machine began. silent:
    (machines, why nothing is known of them). unsteady: pairs that failed once and not the second time. links:
    (machines, why the rates of their links are not judged)."""

    schema: int
    envcheck: str
    verdict: str
    outcome: Literal["pass", "warn", "fail", "could-not-run"]
    findings: list[NetworkFinding]
    silent: list[tuple[list[str], str]]
    machines: list[MachineRates]
    together: list[CollectiveResult]
    tested_at: str = ""
    unsteady: int = 0
    together_reason: str = ""
    links: list[tuple[list[str], str]] = []
