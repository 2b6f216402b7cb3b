"""The check on RDMA ports: they are up, and as fast as they can be."""

from __future__ import annotations

from collections.abc import Iterator

from ...data import numbers
from ...facts.network import Network, RdmaDevice, RdmaPort
from ..nvidia_devices import is_virtual
from ..reading import Skip, SnapshotView, known, need
from ..system_commands import systemctl
from ..verdicts import Cause, Passed, Verdicts, about_file, check, warn
from . import common

PORT_DOWN = warn(
    "rdma-port-down",
    "an RDMA port is down",
    "{down} is down ({state}), unlike {up}, of the same kind: NCCL leaves it out without a message, and"
    " jobs over several machines get less of the network here.",
    "Look at its cable or transceiver, and at the switch's port: its state has to become ACTIVE. A port that"
    " is left free on purpose needs nothing.",
)
NO_MANAGER = warn(
    "no-subnet-manager",
    "an InfiniBand port was never set up",
    "{down} has a link and is in the state {state}: no subnet manager has set it up, and nothing is sent"
    " over it.",
    "Start the fabric's subnet manager (opensm, on one machine or the switch), or look why it does not reach"
    " this port.",
)
NARROW = warn(
    "infiniband-link-narrow",
    "an InfiniBand link lost lanes",
    "{down} is active at {state}, and its kind has 4: everything between machines waits for its slow link.",
    "Look at its cable or transceiver: reseat it, or change it, at both ends.",
)
SLOW = NARROW.variant(
    "infiniband-link-slow",
    headline="an RDMA link is slower than its kind",
    sentence="{down} is active at {state}, while {up} of the same kind have more: everything between machines"
    " waits for the slowest link.",
)
BELOW_ITS_CHIP = NARROW.variant(
    "rdma-link-below-its-chip",
    headline="an RDMA link is far slower than its adapter",
    sentence="{down} is active at {state}: everything between machines waits for its slow link.",
)
LANES = NARROW.variant(
    "rdma-adapter-narrow",
    headline="an RDMA adapter has a part of its PCIe link",
    sentence="{down} has {state} of its PCIe link, which it and its slot share: it sends and receives at a"
    " part of its speed.",
    remedy="Reseat the adapter and its riser; check for a firmware setting that splits or slows the slot.",
)
_SLOWER = 4  # half the rate may be a switch for storage, or an older one


@check(
    "NET-010",
    title="RDMA ports are up, and as fast as others of their kind",
    causes=[PORT_DOWN, NO_MANAGER, NARROW, SLOW, BELOW_ITS_CHIP, LANES],
    about="NCCL takes the RDMA ports that are active, and no other, without a message. A card all of whose"
    " ports are down among cards of the same board that work is reported, and so is an InfiniBand port with a"
    " link that no subnet manager has set up. Of a card with two ports one is often left free. A port at half"
    " the rate is reported where it is the only one of its kind, and there are more GPUs than others.",
    sources=(
        "NVIDIA NCCL user guide, NCCL_IB_HCA",
        "Linux kernel, sysfs-class-infiniband: state, phys_state, rate; opensm(8)",
        "rdma_chips.csv, a source in every row",
    ),
)
def ports_are_up(view: SnapshotView) -> Verdicts:
    facts = common.network(view)
    need(facts.rdma, "RDMA adapters")
    ports = list(common.each_port(facts))
    if not ports or not common.gpus(view):
        raise Skip("no RDMA port, or no GPU")
    found = [
        *((NO_MANAGER, one, _state(one[1])) for one in ports if _is_waiting(one[1])),
        *((PORT_DOWN, one, _state(one[1])) for one in _down(ports, common.fabric(facts))),
        *_slow(view, facts, [one for one in ports if common.is_active(one[1])]),
    ]
    for cause, (device, port), state in found:
        name, kind = common.named([(device, port)]), known(device.board)
        every = [one for one in ports if known(one[0].board) == kind and common.is_active(one[1])]
        best = max((_rate(one) for one in every), default=0)
        up = [one for one in every if cause is not SLOW or _rate(one) == best]
        manager = systemctl("enable --now", "opensm") + "  # on one machine, if no switch has one"
        yield cause.found(
            about_file(f"/sys/class/infiniband/{device.name}/ports/{port.port}"),
            [view.evidence("machine.network.rdma", f"{name} {state}")],
            commands=["rdma link show", "ibstat  # of infiniband-diags"]
            + [manager] * (cause is NO_MANAGER),
            down=name,
            state=state,
            up=common.named(up),
        )
    yield Passed(f"{sum(common.is_active(port) for _device, port in ports)} of {len(ports)} active")


def _state(port: RdmaPort) -> str:
    return ", ".join(filter(None, map(known, (port.state, port.physical_state))))


def _is_waiting(port: RdmaPort) -> bool:
    return common.is_infiniband(port) and known(port.state) in ("INIT", "ARMED")


def _rate(one: common.Port) -> float:
    return known(one[1].rate_gbps) or 0


def _slow(
    view: SnapshotView, facts: Network, active: list[common.Port]
) -> Iterator[tuple[Cause, common.Port, str]]:
    """Active ports that are slower than the others of their kind, or than they could be."""
    count = len(common.gpus(view))
    rates = [(one, _rate(one) or None) for one in common.fabric(facts)]
    halved = [one for one, rate, _, usual in common.odd_ports(rates, count) if rate < usual]
    for one in active:
        device, port = one
        others = [p for p in active if known(p[0].board) == known(device.board) and p is not one]
        faster = [p for p in others if _rate(p) >= _SLOWER * _rate(one)]
        equal = [p for p in others if _rate(p) == _rate(one)]
        rate, most = f"{_rate(one):g} Gb/s", numbers("rdma_chips").get(known(device.chip) or "", 0)
        infiniband = common.is_infiniband(port) and _rate(one) > 0
        if common.is_infiniband(port) and known(port.lanes) == 1:
            yield NARROW, one, f"{rate} over one lane"
        elif one in halved or (infiniband and len(faster) > len(equal)):
            yield SLOW, one, rate
        elif infiniband and most > _SLOWER * _rate(one):
            yield BELOW_ITS_CHIP, one, f"{rate}, and its chip can have {most:g}"
        yield from () if is_virtual(view) else ((LANES, one, part) for part in _of_pcie(device))


def _of_pcie(device: RdmaDevice) -> Iterator[str]:
    for unit, now, most in (
        ("lanes", device.link_width, (device.max_link_width, device.slot_max_link_width)),
        ("GT/s", device.link_gts, (device.max_link_gts, device.slot_max_link_gts)),
    ):
        value, bounds = known(now), [known(one) for one in most]
        if value and all(bounds) and value < (least := min(filter(None, bounds))):
            yield f"{value:g} of {least:g} {unit}"


def _down(ports: list[common.Port], serving: list[common.Port]) -> list[common.Port]:
    """The ports that are down of whole cards, fewer than the cards of their kind that work."""
    kinds = {known(device.board) for device, _port in serving} - {None}
    up = {_card(one) for one in ports if common.is_active(one[1])}
    idle = [one for one in ports if known(one[0].board) in kinds and _card(one) not in up]
    found = [one for one in idle if known(one[1].state) == "DOWN"]
    return [
        one
        for one in found
        if len({_card(other) for other in found if other[0].board == one[0].board})
        <= len({_card(other) for other in serving if other[0].board == one[0].board})
    ]


def _card(one: common.Port) -> str:
    """Its PCI address without the function: a card of two ports often has two functions."""
    return (known(one[0].address) or one[0].name).partition(".")[0]
