"""The check on what RDMA ports count: errors of their links, lost packets, congestion."""

from __future__ import annotations

from collections.abc import Mapping

from ...data import table
from ...facts.network import Network, RdmaPort
from ..reading import Skip, SnapshotView, known, need
from ..verdicts import Passed, Verdicts, about_file, check, warn
from . import common

ERRORS = warn(
    "rdma-link-errors",
    "an RDMA link has many errors",
    "{port} has had far more errors on its link than others have ({state}): transfers are repeated, or end"
    " with 'IBV_WC_RETRY_EXC_ERR'.",
    "Clean and reseat its cable or transceiver at both ends, or change it; then set the counters to"
    " zero and compare them later.",
    "rdma link show",
    "sudo perfquery -x",
    "sudo perfquery -R  # sets them to zero",
    source="openfabrics.org, Overview of Error Counters; NVIDIA UFM, InfiniBand Port Counters",
)
GROWING = ERRORS.variant(
    "rdma-link-errors-now",
    headline="an RDMA link has errors right now",
    sentence="{port} has errors on its link right now ({state} in {seconds:.1f} s): transfers are repeated,"
    " or end with 'IBV_WC_RETRY_EXC_ERR'.",
    remedy="Clean and reseat its cable or transceiver at both ends, or change it.",
    commands=("rdma link show", "sudo perfquery -x"),
    source="rdma_counters.csv, a source in every row",
)
LOSS = GROWING.variant(
    "rdma-packets-lost-now",
    headline="an RDMA port loses packets right now",
    sentence="Packets are lost on {port} right now ({state} in {seconds:.1f} s): transfers wait and are"
    " repeated, and all machines of a job wait for them.",
    remedy="Look which machines it exchanges data with. With RoCE, compare flow control (PFC) and ECN of this"
    " port and of the switch's: both need the same priorities.",
    commands=("rdma statistic show",),
)
_FAR = 10  # times the errors of the others
# {counter: its row}. "congestion" is no fault. per_second: by which it may grow; per_hour: on average
# since the machine started, from ``least`` on.
_ROWS = {row["counter"]: row for row in table("rdma_counters")}


@check(
    "NET-013",
    title="RDMA ports carry packets without errors",
    causes=[ERRORS, GROWING, LOSS],
    about="The counters of each active port are read twice. What grows in between faster than it may is"
    " reported. Errors of the time before are reported where they are many for the time since the machine"
    " started, and the other ports of their kind have far fewer. Congestion alone is no fault.",
    sources=("rdma_counters.csv, a source in every row",),
    follows=("NET-010",),
)
def counted(view: SnapshotView) -> Verdicts:
    facts = common.network(view)
    need(facts.rdma, "RDMA adapters")
    active = [one for one in common.each_port(facts) if common.is_active(one[1])]
    if not active or not common.gpus(view):
        raise Skip("no active RDMA port, or no GPU")
    seconds = need(facts.counted_s, "what RDMA ports count")
    congested = []
    for device, port in active:
        name = common.named([(device, port)])
        now = _now(seconds, port)
        if now["congestion"]:
            congested.append(f"{name} ({_shown(now['congestion'])})")
        for cause, numbers in (
            (GROWING, now["link"]),
            (LOSS, now["loss"]),
            (ERRORS, {} if now["link"] else _before(facts, (device, port), active)),
        ):
            if numbers:
                yield cause.found(
                    about_file(f"/sys/class/infiniband/{device.name}/ports/{port.port}"),
                    [view.evidence("machine.network.rdma", f"{name} {_shown(numbers)}")],
                    port=name,
                    state=", ".join(f"{_ROWS[key]['means']}: {n}" for key, n in numbers.items()),
                    seconds=seconds,
                )
    yield Passed(f"congestion now: {', '.join(congested)}" if congested else "none that grow")


def _shown(numbers: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {number}" for name, number in numbers.items())


def _now(seconds: float, port: RdmaPort) -> dict[str, dict[str, int]]:
    """{kind: {counter: by how much it grew}}, of those that grew faster than they may."""
    found: dict[str, dict[str, int]] = {"link": {}, "loss": {}, "congestion": {}}
    for name, row in _ROWS.items():
        grown = port.growth.get(name, 0)
        if grown and seconds > 0 and grown / seconds > float(row["per_second"] or 0):
            found[row["kind"]][name] = grown
    return found


def _before(facts: Network, one: common.Port, active: list[common.Port]) -> dict[str, int]:
    """{counter: number} of all, where one is too many for this uptime and far beyond the other ports'."""
    hours, has = (known(facts.uptime_s) or 0) / 3600, one[1].counters
    link = {name: has[name] for name in _ROWS if name in has and _ROWS[name]["kind"] == "link"}
    for name, number in link.items():
        least, rate = _ROWS[name]["least"], _ROWS[name]["per_hour"]
        if not rate or number < int(least) or number <= float(rate) * hours:
            continue
        others = [p for d, p in active if d.board == one[0].board and p is not one[1]]
        if all(number >= _FAR * other.counters.get(name, 0) for other in others):
            return link
    return {}
