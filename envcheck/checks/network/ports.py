"""Checks on the ports of InfiniBand and RoCE adapters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ...facts.base import known
from ...facts.missing import Skip
from ...facts.network import Network, RdmaDevice, RdmaPort
from ...facts.view import SnapshotView, facts_of, need
from ...findings.causes import Cause, Param
from ...findings.commands import fill_in
from ...findings.model import Finding, Passed, Verdict
from ...findings.shell import word
from ..driver_state import container
from ..registry import check
from .common import (
    FAST_GBPS,
    about_adapter,
    below_switch,
    change_setting,
    each_port,
    for_data_centres,
    gpus,
    is_active,
    is_infiniband,
    place,
    said,
    setting,
    setting_evidence,
)

Port = tuple[RdmaDevice, RdmaPort]


def _machine_network(view: SnapshotView) -> Network:
    """The adapters belong to the machine; what a container sees of them is less."""
    return facts_of(view.machine.network, "the network")


def _ports(view: SnapshotView) -> list[Port]:
    facts = _machine_network(view)
    found = list(each_port(facts)) if need(facts.rdma, "RDMA adapters") else []
    if not found:
        raise Skip("no RDMA adapter here")
    return found


_CABLE = "Look at the cable, the transceiver and the switch's port."
WAITING = Cause(
    "no-subnet-manager",
    "warn",
    headline="waits for a subnet manager",
    sentence="{port} has a link and waits for a subnet manager (state INIT): nothing can be sent.",
    remedy="Start the subnet manager, on a managed switch or on one machine of the fabric.",
)
DOWN = Cause(
    "port-down",
    "warn",
    headline="has a port that is down",
    sentence="{port} is {state} while {count} of the same kind {are} active: jobs that use every adapter hang"
    " or do not use it.",
    remedy=_CABLE,
)
DISABLED = Cause(
    "port-disabled",
    "warn",
    headline="has a port that is disabled",
    sentence=DOWN.sentence,
    remedy="Bring its network interface up; where that does not help, look at the cable, the transceiver and"
    " the switch's port.",
)
SLOW = Cause(
    "port-slow",
    "warn",
    headline="has a slow port",
    sentence="{port} runs at {rate:g} Gb/s, and {count} of the same kind at {best:g}: every collective waits"
    " for the slowest.",
    remedy="Look at the cable, the transceiver and the speed that the switch's port is set to.",
)
LANES = Cause(
    "lanes-lost",
    "warn",
    headline="has lost lanes",
    sentence="{port} is active with one lane ({rate:g} Gb/s) of the four that an InfiniBand port has.",
    remedy="Reseat or replace the cable.",
)
MTU = Cause(
    "mtu-smaller",
    "warn",
    headline="has a smaller MTU than the others",
    sentence="{interface}, the interface of {port}, has an MTU of {mtu}, and {count} of the same kind"
    " {usual}: RDMA connections between unlike ports are slow or fail.",
    remedy="Set it like the others, here and in the network's configuration.",
)
NO_GID = Cause(
    "no-gid",
    "warn",
    headline="has no RoCE address",
    sentence="{port} is active and has no GID: its network interface has no address, and no machine can"
    " connect to it.",
    remedy="Bring the interface up, and give it an address.",
    commands=["ip -br address", "rdma link show"],
)
EMPTY_GID = Cause(
    "gid-index-empty",
    "warn",
    headline="does not have the GID that is set",
    sentence="{setting} is an empty place in the table of {port} (filled: {filled}): connections between"
    " machines fail or hang.",
)


@check(
    "NET-004",
    title="RDMA ports are up, at the rate of their like",
    causes=[WAITING, DOWN, DISABLED, SLOW, LANES, MTU, NO_GID, EMPTY_GID],
    about="The ports of InfiniBand and RoCE adapters are compared with those of the same kind in this"
    " machine: one that is down while the others are active, or active at a lower rate, is a cable, a"
    " transceiver or a switch port, and every collective waits for the slowest. A port in INIT has a link and"
    " no subnet manager. An InfiniBand port with one lane has lost three: a cable. Where as many ports are"
    " down as are active they are not in use, and that is a detail, save for adapters that share a PCIe"
    " switch with a data-centre GPU: they are there for it, other than the second port of a card. RoCE"
    " ports without an address of their interface, and a NCCL_IB_GID_INDEX that is empty, cannot be connected"
    " to.",
    sources=(
        "Linux kernel documentation, sysfs-class-infiniband: state, phys_state, rate, gids",
        "nccl#394",
        "NVIDIA NCCL user guide, NCCL_IB_GID_INDEX",
        "opensm(8)",
    ),
)
def ports(view: SnapshotView) -> Iterator[Verdict]:
    every = _ports(view)
    groups: dict[tuple[object, ...], list[Port]] = {}
    for one in every:
        groups.setdefault(_kind(one), []).append(one)
    found = [finding for same in groups.values() for finding in _unlike(view, same)]
    found += _gids(view, every)
    found += [finding for same in groups.values() for finding in _mtu(view, same)]
    yield from found
    if not found:
        active = [one for one in every if is_active(one[1])]
        rates = sorted({f"{known(port.rate_gbps) or 0:g} Gb/s" for _, port in active})
        yield Passed(
            f"{len(active)} of {len(every)} ports active"
            + (f" at {', '.join(rates)}" if rates else "")
        )


def _kind(one: Port) -> tuple[object, ...]:
    """Ports of which the same can be expected: of one board, one port number, and one link layer."""
    device, port = one
    return (
        known(device.board),
        known(device.driver),
        known(device.virtual_function),
        port.port,
        known(port.link_layer),
    )


def _unlike(view: SnapshotView, same: list[Port]) -> Iterator[Finding]:
    active = [one for one in same if is_active(one[1])]
    beside = [one for one in same if _beside_gpu(view, one)]
    best = max((known(port.rate_gbps) or 0 for _, port in active), default=0.0)
    usual = sum((known(port.rate_gbps) or 0) == best for _, port in active)
    # Of Ethernet ports some are often not in use; not of those that are one for each GPU.
    meant = is_infiniband(same[0][1]) or len(same) >= max(4, len(gpus(view)))
    for one in same:
        device, port = one
        state, rate = known(port.state), known(port.rate_gbps)
        look = [f"ibstat {word(device.name)}", f"sudo mlxlink -d {word(device.name)} -c -m"]
        missed = (meant and len(active) * 2 > len(same)) or _is_missed(one, beside)
        if state == "INIT" and is_infiniband(port):
            yield _finding(view, one, WAITING, ["sudo systemctl start opensm", look[0]])
        elif state is not None and not is_active(port) and missed:
            yield _down(view, one, len(active), look)
        elif is_active(port) and rate is not None and rate < best and usual * 2 > len(active):
            yield _finding(view, one, SLOW, look, rate=rate, count=usual, best=best)
        elif is_active(port) and is_infiniband(port) and known(port.lanes) == 1:
            yield _finding(view, one, LANES, look, rate=rate or 0.0)


def _beside_gpu(view: SnapshotView, one: Port) -> bool:
    """Whether an adapter shares a PCIe switch with a data-centre GPU, and so is there for GPUDirect RDMA."""
    device, _ = one
    pci = view.machine.pci
    devices = [] if pci is None or pci.facts is None else known(pci.facts.devices) or []
    return (
        known(device.virtual_function) is not True
        and for_data_centres(view)
        and any(below_switch(other, device) is not None for other in devices if other.kind == "gpu")
    )


def _is_missed(one: Port, beside: list[Port]) -> bool:
    """Whether a port that is down is one of the GPUs' own adapters, half of which or more are in use.

    Of a card with two ports one is often not.
    """
    active = [other for other in beside if is_active(other[1])]
    fast = all(
        is_infiniband(port) or (known(port.rate_gbps) or 0) >= FAST_GBPS for _, port in active
    )
    cards = {_card(other) for other in active}
    return (
        one in beside
        and len(active) * 2 >= len(beside)
        and fast
        and _card(one) is not None
        and _card(one) not in cards
    )


def _card(one: Port) -> str | None:
    """The PCI address without the function."""
    address = known(one[0].address)
    return None if address is None else address.partition(".")[0]


def _down(view: SnapshotView, one: Port, active: int, look: list[str]) -> Finding:
    _, port = one
    physical = known(port.physical_state)
    disabled = physical == "Disabled" and not is_infiniband(port)
    if disabled:
        name = word(port.interfaces[0]) if port.interfaces else fill_in("NAME", "its interface")
        look = ["rdma link show", f"sudo ip link set {name} up", *look]
    return _finding(
        view,
        one,
        DISABLED if disabled else DOWN,
        look,
        state=f"{known(port.state)}{f' ({physical})' if physical else ''}",
        count=active,
        are="is" if active == 1 else "are",
    )


def _mtu(view: SnapshotView, same: list[Port]) -> Iterator[Finding]:
    """RoCE ports whose interface has smaller packets than most of its like."""
    interfaces = {one.name: one for one in known(_machine_network(view).interfaces) or []}
    sizes = {
        place(*one): (one, mtu, name)
        for one in same
        if is_active(one[1]) and not is_infiniband(one[1])
        for name in one[1].interfaces[:1]
        if name in interfaces and (mtu := known(interfaces[name].mtu)) is not None
    }
    counted = Counter(mtu for _, mtu, _ in sizes.values())
    if not counted:
        return
    usual, count = counted.most_common(1)[0]
    for one, mtu, name in sizes.values():
        if mtu < usual and count * 2 > len(sizes):
            command = f"sudo ip link set {word(name)} mtu {usual}"
            params: dict[str, Param] = {"interface": name, "mtu": mtu, "usual": usual}
            yield _finding(view, one, MTU, [command], count=count, **params)


def _gids(view: SnapshotView, every: list[Port]) -> Iterator[Finding]:
    """RoCE ports that no other machine can connect to."""
    inside = container(view) is not None
    facts = _machine_network(view)
    one = setting(facts, "NCCL_IB_GID_INDEX")
    roce = [
        port for port in every if is_active(port[1]) and known(port[1].link_layer) == "Ethernet"
    ]
    for port in roce:
        gids = known(port[1].gids)
        if gids == [] and not inside:  # in a container the interface may be the host's alone
            yield _finding(view, port, NO_GID, None)
        elif gids and one is not None and _is_empty(one.value, gids):
            shown = view.evidence("machine.network.rdma", f"{place(*port)}: {gids}")
            take = "NCCL 2.21 and later choose a RoCE v2 address by themselves: take it away"
            yield EMPTY_GID.found(
                about_adapter(port[0], place(*port)),
                [*setting_evidence(view, one), shown],
                advice=change_setting(one, take),
                setting=said(one),
                port=place(*port),
                filled=", ".join(map(str, gids)),
            )


def _is_empty(index: str, gids: list[int]) -> bool:
    """Whether a GID's index is one of those that were looked at (0 to 15), and not filled."""
    return index.isdecimal() and int(index) < 16 and int(index) not in gids


def _finding(
    view: SnapshotView, one: Port, cause: Cause, commands: list[str] | None, **params: Param
) -> Finding:
    _, port = one
    shown = f"{place(*one)}: {known(port.state)}, {known(port.physical_state)}, {known(port.rate_gbps)} Gb/s"
    return cause.found(
        about_adapter(one[0], place(*one)),
        [view.evidence("machine.network.rdma", shown)],
        commands=commands,
        advice=None,
        **(params | {"port": place(*one)}),
    )
