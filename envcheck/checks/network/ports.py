"""The check on the ports of InfiniBand and RoCE adapters."""

from __future__ import annotations

from collections.abc import Iterator

from ...facts.base import known
from ...facts.missing import Skip
from ...facts.view import SnapshotView, facts_of, need
from ...findings.causes import Cause, Param
from ...findings.model import Finding, Passed, Verdict
from ...findings.shell import word
from ...findings.subjects import Subject
from ..registry import check
from .common import Port, each_port, gpus, is_active, is_infiniband, named

_LOOK = "Look at the cable, the transceiver and the switch's port."
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
    remedy=_LOOK,
)
SLOW = Cause(
    "port-slow",
    "warn",
    headline="has a slow port",
    sentence="{port} runs at {rate:g} Gb/s, and {count} of the same kind at {best:g}: every collective waits"
    " for the slowest.",
    remedy=_LOOK,
)


@check(
    "NET-004",
    title="RDMA ports are up, at the rate of their like",
    causes=[WAITING, DOWN, SLOW],
    about="The ports of InfiniBand and RoCE adapters are compared with those of the same kind in this"
    " machine: one that is down or slower while most are active is a cable, a transceiver or a switch port."
    " Where as many are down as are active they are not in use.",
    sources=(
        "Linux kernel documentation, sysfs-class-infiniband: state, phys_state, rate",
        "nccl#394",
    ),
)
def ports(view: SnapshotView) -> Iterator[Verdict]:
    facts = facts_of(view.machine.network, "the network")
    every = list(each_port(facts)) if need(facts.rdma, "RDMA adapters") else []
    if not every:
        raise Skip("no RDMA adapter here")
    groups: dict[tuple[object, ...], list[Port]] = {}
    for device, port in every:
        kind = (device.board, device.driver, device.virtual_function, port.port, port.link_layer)
        groups.setdefault(tuple(map(known, kind)), []).append((device, port))
    found = [finding for same in groups.values() for finding in _unlike(view, same)]
    yield from found
    if not found:
        active = [port for _, port in every if is_active(port)]
        rates = sorted({f"{known(port.rate_gbps) or 0:g} Gb/s" for port in active})
        at = f" at {', '.join(rates)}" if rates else ""
        yield Passed(f"{len(active)} of {len(every)} ports active{at}")


def _unlike(view: SnapshotView, same: list[Port]) -> Iterator[Finding]:
    active = [port for _, port in same if is_active(port)]
    rates = [known(port.rate_gbps) or 0.0 for port in active]
    best = max(rates, default=0.0)
    usual = rates.count(best)
    # Of Ethernet ports some are often not in use; not of those that are one for each GPU.
    meant = is_infiniband(same[0][1]) or len(same) >= max(4, len(gpus(view)))
    for one in same:
        state, rate = known(one[1].state), known(one[1].rate_gbps)
        if state == "INIT" and is_infiniband(one[1]):
            yield _found(view, one, WAITING, ["sudo systemctl start opensm"])
        elif is_active(one[1]):
            if rate is not None and rate < best and usual * 2 > len(active):
                yield _found(view, one, SLOW, rate=rate, count=usual, best=best)
        elif state is not None and meant and len(active) * 2 > len(same):
            physical = known(one[1].physical_state)
            shown = f"{state} ({physical})" if physical else state
            are = "is" if len(active) == 1 else "are"
            yield _found(view, one, DOWN, state=shown, count=len(active), are=are)


def _found(
    view: SnapshotView, one: Port, cause: Cause, first: list[str] | None = None, **params: Param
) -> Finding:
    device, port = one
    address = known(device.address) or ""
    text = f"RDMA adapter {named([one])}" + (f" at {address}" if address else "")
    facts = (known(port.state), known(port.physical_state), known(port.rate_gbps))
    return cause.found(
        [Subject(kind="pci-device", text=text, name=device.name, address=address)],
        [view.evidence("machine.network.rdma", f"{named([one])}: {', '.join(map(str, facts))}")],
        commands=[*(first or []), f"ibstat {word(device.name)}"],
        advice=None,
        port=named([one]),
        **params,
    )
