"""What the checks on the network share: settings, interfaces, and the adapters that serve GPUs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TypeVar

from msgspec.structs import replace

from ...data.products import is_data_centre
from ...facts.base import ProgramSetting
from ...facts.network import Network, NetworkInterface, RdmaDevice, RdmaPort
from ..reading import Gpu, Skip, SnapshotView, fact, facts_of, known, need, or_else
from ..settings import ENVIRONMENT

FAST_GBPS = 100  # a RoCE port from here on is more than the machine's own uplink
_OURS = ("MASTER_ADDR", "TORCH_DISTRIBUTED_DEBUG")
NCCL_GUIDE = "NVIDIA NCCL user guide, environment variables"

Port = tuple[RdmaDevice, RdmaPort]
T = TypeVar("T")


def network(view: SnapshotView) -> Network:
    """As the target's processes see it; the target's own NCCL_* variables count before all else.

    Raises CannotJudge where it was not looked at.
    """
    target = view.snapshot.target
    variables = None if target is None else fact(target.environment, "variables")
    own = [
        ProgramSetting(name=name, value=value, source=ENVIRONMENT)
        for name, value in (variables or {}).items()
        if name.startswith(("NCCL_", "UCX_")) or name in _OURS
    ]
    if view.seen.network is None and own:
        return Network(settings=own)
    facts = facts_of(view.seen.network, "the network")
    names = {one.name for one in own}
    others = [one for one in known(facts.settings) or [] if one.name not in names]
    return replace(facts, settings=[*own, *others]) if own else facts


def setting(facts: Network, name: str) -> ProgramSetting | None:
    found = known(facts.settings) or []
    return next((one for one in found if one.name == name and one.value), None)


def gpus(view: SnapshotView) -> list[Gpu]:
    return or_else(lambda: view.seen_gpus, [])


def for_data_centres(view: SnapshotView) -> bool:
    return any(is_data_centre(known(gpu.name) or "") for gpu in gpus(view))


def is_active(port: RdmaPort) -> bool:
    return known(port.state) == "ACTIVE"


def is_infiniband(port: RdmaPort) -> bool:
    return known(port.link_layer) == "InfiniBand"


def each_port(facts: Network) -> Iterator[Port]:
    for device in known(facts.rdma) or []:
        for port in device.ports:
            yield device, port


def named(ports: list[Port]) -> str:
    return ", ".join(
        device.name if len(device.ports) == 1 else f"{device.name}:{port.port}"
        for device, port in ports
    )


def fabric(facts: Network) -> list[Port]:
    """The active ports that are there for traffic between GPUs.

    InfiniBand has no other purpose on such a machine; an Ethernet adapter that can RoCE mostly has, unless
    there are several fast ones, or NCCL's settings speak of RDMA. EFA is left to its own plugin.
    """
    active = [
        (device, port)
        for device, port in each_port(facts)
        if is_active(port) and known(device.driver) != "efa"
    ]
    fast = [
        one
        for one in active
        if not is_infiniband(one[1]) and (known(one[1].rate_gbps) or 0) >= FAST_GBPS
    ]
    wanted = any(setting(facts, name) for name in ("NCCL_IB_HCA", "NCCL_IB_GID_INDEX"))
    meant = [one for one in active if is_infiniband(one[1])]
    return meant + (fast if len(fast) > 1 or wanted else [])


def odd_ports(
    values: Iterable[tuple[Port, T | None]], gpus: int
) -> Iterator[tuple[Port, T, list[Port], T]]:
    """Of each kind of adapter the port that alone has another value, that value, the others, and theirs.

    There are at least three others, and fewer than GPUs: else it may be there for something else, as storage.
    """
    kinds: dict[str | None, list[tuple[Port, T]]] = {}
    for one, value in values:
        if value is not None:
            kinds.setdefault(known(one[0].board), []).append((one, value))
    for pairs in kinds.values():
        usual, agree = Counter(value for _one, value in pairs).most_common(1)[0]
        if 3 <= agree < gpus and agree == len(pairs) - 1:
            (odd,) = (pair for pair in pairs if pair[1] != usual)
            yield *odd, [one for one, value in pairs if value == usual], usual


def serving_ports(view: SnapshotView) -> list[Port]:
    """The machine's ports that serve its GPUs; raises CannotJudge where there are none of either."""
    facts = facts_of(view.machine.network, "the network")
    need(facts.rdma, "RDMA adapters")
    ports = fabric(facts)
    if not ports:
        raise Skip("no active RDMA port that serves GPUs")
    if not gpus(view):
        raise Skip("there is no GPU")
    return ports


def usable(one: NetworkInterface) -> bool:
    """It has an address and a carrier, as far as that is known."""
    addressed = known(one.ipv4) is not False or known(one.ipv6) is not False
    return known(one.up) is not False and known(one.running) is not False and addressed


def is_real(one: NetworkInterface, every: dict[str, NetworkInterface]) -> bool:
    """It leads out of this machine: an adapter, or a bridge, bond or VLAN on one."""
    return known(one.kind) == "physical" or any(
        known(every[name].kind) in ("physical", "bond", "vlan")
        for name in one.members
        if name in every
    )


def best(interfaces: list[NetworkInterface]) -> NetworkInterface | None:
    every = {one.name: one for one in interfaces}
    found = [one for one in interfaces if usable(one) and is_real(one, every)]
    carried = {member for one in found for member in one.members}
    found = [one for one in found if one.name not in carried and known(one.ipv4) is not False]
    others = [one for one in interfaces if usable(one) and known(one.kind) != "loopback"]
    only = others[0] if len(others) == 1 else None  # as in a container
    return max(found, key=lambda one: known(one.speed_mbit) or 0, default=only)


def spans_machines(facts: Network) -> bool:
    """Whether the job that this runs in has several machines, by its variables."""
    return (known(facts.nodes) or 1) > 1
