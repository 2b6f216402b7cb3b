"""The check on RDMA ports: they are up, and as fast as they can be."""

from __future__ import annotations

from collections.abc import Iterator

from ...data import numbers
from ...facts.network import Network, RdmaDevice, RdmaPort
from ..declared import declared_causes
from ..nvidia_devices import is_virtual
from ..reading import Skip, SnapshotView, known, need
from ..system_commands import systemctl
from ..verdicts import Cause, Passed, Verdicts, about_file, check
from . import common

CAUSE = declared_causes(__name__)
NO_MANAGER, SLOW = CAUSE["no-subnet-manager"], CAUSE["infiniband-link-slow"]

_SLOWER = 4  # half the rate may be a switch for storage, or an older one


@check("NET-010")
def ports_are_up(view: SnapshotView) -> Verdicts:
    facts = common.network(view)
    need(facts.rdma, "RDMA adapters")
    ports = list(common.each_port(facts))
    if not ports or not common.gpus(view):
        raise Skip("no RDMA port, or no GPU")
    down = _down(ports, common.fabric(facts))
    found = [
        *((NO_MANAGER, one, _state(one[1])) for one in ports if _is_waiting(one[1])),
        *((CAUSE["rdma-port-down"], one, _state(one[1])) for one in down),
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
            yield CAUSE["infiniband-link-narrow"], one, f"{rate} over one lane"
        elif one in halved or (infiniband and len(faster) > len(equal)):
            yield SLOW, one, rate
        elif infiniband and most > _SLOWER * _rate(one):
            yield CAUSE["rdma-link-below-its-chip"], one, f"{rate}, and its chip can have {most:g}"
        if not is_virtual(view):
            yield from ((CAUSE["rdma-adapter-narrow"], one, part) for part in _of_pcie(device))


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
