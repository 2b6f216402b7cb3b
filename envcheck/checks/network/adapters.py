"""The check on what lies between GPUs and RDMA adapters."""

from __future__ import annotations

from collections.abc import Iterator

from ...facts.base import known
from ...facts.missing import Skip
from ...facts.network import RdmaDevice
from ...facts.pci import PciDevice
from ...facts.view import SnapshotView, facts_of, need
from ...findings.causes import Cause
from ...findings.model import Passed, Verdict
from ..nvidia_devices import is_virtual, pci_gpus
from ..pci.link import acs_off
from ..registry import check
from .common import below_switch, fabric, for_data_centres, network, setting

# Values of NCCL_NET_GDR_LEVEL; by itself it stops at PXB.
_ACROSS_ROOT_PORTS = ("PHB", "SYS", "3", "4", "5")


REDIRECTED = Cause(
    "acs-redirects",
    "warn",
    headline="traffic between GPUs and RDMA adapters is redirected",
    sentence="Access Control Services are on in the PCIe ports between the GPUs and their adapters ({names}):"
    " what they send each other goes up to the processor and back, and GPUDirect RDMA is slow, crashes or"
    " hangs.",
)


@check(
    "NET-010",
    title="Nothing redirects traffic between GPUs and RDMA adapters",
    causes=[REDIRECTED],
    about="A GPU and an adapter below the same PCIe switch reach each other without the processor (GPUDirect"
    " RDMA). Access Control Services on the switch's ports send each transfer up to the root and back: a"
    " fraction of the speed, and with NCCL a crash or a hang ('Got completion with error 4 ... vendor err"
    " 81'). Judged on bare metal, where a data-centre GPU and an adapter with an active port share a switch,"
    " or where NCCL_NET_GDR_LEVEL is PHB or SYS, by which it goes through the root ports as well. Which"
    " adapter is nearest to the GPUs is a detail.",
    sources=(
        "nccl#304",
        "nccl#523",
        "NVIDIA NCCL user guide, troubleshooting: PCI Access Control Services",
    ),
    follows=("PCI-001", "PCI-007"),
)
def between(view: SnapshotView) -> Iterator[Verdict]:
    gpus = pci_gpus(view)
    if is_virtual(view):
        raise Skip("in a virtual machine the host decides this")
    facts = facts_of(view.machine.network, "the network")
    need(facts.rdma, "RDMA adapters")
    adapters = list({device.name: device for device, _ in fabric(facts)}.values())
    if not adapters:
        raise Skip("no active RDMA port that serves GPUs")
    if not for_data_centres(view):
        raise Skip("no data-centre GPU")
    level = setting(network(view), "NCCL_NET_GDR_LEVEL")
    across = level is not None and level.value.upper() in _ACROSS_ROOT_PORTS
    ways = {
        (gpu.address, adapter.name): way
        for gpu in gpus
        for adapter in adapters
        if (way := _between(gpu, adapter, across)) is not None
    }
    if not ways:
        yield Passed(_nearest(gpus, adapters))
        return
    ports = need(
        facts_of(view.machine.pci, "PCI devices").acs_ports,
        "Access Control Services of the bridges above the adapters",
    )
    on_the_way = {port for way in ways.values() for port in way}
    redirecting = sorted(on_the_way & set(ports))
    if redirecting:
        names = ", ".join(dict.fromkeys(name for _, name in ways))
        yield REDIRECTED.found(
            evidence=[view.evidence("machine.pci.acs_ports", ", ".join(redirecting))],
            advice=acs_off(redirecting),
            names=names,
        )
    else:
        yield Passed(_nearest(gpus, adapters))


def _between(gpu: PciDevice, adapter: RdmaDevice, across: bool) -> list[str] | None:
    """The ports that GPUDirect RDMA passes; None where NCCL does not use it between these two.

    across: it was told to, beyond a common switch.
    """
    way = below_switch(gpu, adapter)
    if way is None and across:
        return [*(known(gpu.bridges) or []), *(known(adapter.bridges) or [])]
    return way


def _nearest(gpus: list[PciDevice], adapters: list[RdmaDevice]) -> str:
    """What the GPUs have next to them."""
    switched = sum(any(below_switch(gpu, one) is not None for one in adapters) for gpu in gpus)
    if switched:
        return f"{switched} of {len(gpus)} GPUs share a PCIe switch with an adapter"
    nodes = {known(one.numa_node) for one in adapters} - {None}
    near = sum(known(gpu.numa_node) in nodes for gpu in gpus)
    return (
        f"no GPU shares a PCIe switch with an adapter; {near} of {len(gpus)} are on its NUMA node"
    )
