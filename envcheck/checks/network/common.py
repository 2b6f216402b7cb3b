"""What the checks on the network share: settings, interfaces, and the adapters that serve GPUs."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from ...data.data_centre_gpus import is_data_centre
from ...facts.base import known
from ...facts.evidence import Evidence
from ...facts.gpu import Gpu
from ...facts.missing import CannotJudge
from ...facts.network import Network, NetworkInterface, NetworkSetting, RdmaDevice, RdmaPort
from ...facts.pci import PciDevice
from ...facts.view import SnapshotView, facts_of
from ...findings.model import Remedy
from ...findings.shell import word
from ...findings.subjects import Subject

FAST_GBPS = 100  # a RoCE port from here on is more than the machine's own uplink
ENVIRONMENT = "environment"  # a setting's source
NCCL_GUIDE = "NVIDIA NCCL user guide, environment variables"


def network(view: SnapshotView) -> Network:
    """As the target's processes see it; raises CannotJudge where it was not looked at.

    What the target's own environment sets counts before all else.
    """
    own = [
        NetworkSetting(name=name, value=value, source=ENVIRONMENT)
        for name, value in _variables(view).items()
        if name.startswith("NCCL_")
    ]
    if view.seen.network is None and own:
        return Network(settings=own)
    facts = facts_of(view.seen.network, "the network")
    if not own:
        return facts
    names = {one.name for one in own}
    others = [one for one in known(facts.settings) or [] if one.name not in names]
    return replace(facts, settings=[*own, *others])


def _variables(view: SnapshotView) -> dict[str, str]:
    target = view.snapshot.target
    probe = None if target is None else target.environment
    return {} if probe is None or probe.facts is None else probe.facts.variables


def setting(facts: Network, name: str) -> NetworkSetting | None:
    """What a variable is set to, where that is not empty."""
    found = known(facts.settings) or []
    return next((one for one in found if one.name == name and one.value), None)


def said(one: NetworkSetting) -> str:
    """ "NCCL_P2P_DISABLE=1 (in /etc/nccl.conf)" """
    place = "" if one.source == ENVIRONMENT else f" (in {one.source})"
    return f"{one.name}={one.value}{place}"


def about_setting(one: NetworkSetting) -> list[Subject]:
    return [Subject(kind="variable", text=one.name, name=one.name)]


def about_adapter(device: RdmaDevice, name: str) -> list[Subject]:
    address = known(device.address) or ""
    text = f"RDMA adapter {name}" + (f" at {address}" if address else "")
    return [Subject(kind="pci-device", text=text, name=device.name, address=address)]


def setting_evidence(view: SnapshotView, *settings: NetworkSetting) -> list[Evidence]:
    return [view.evidence("seen.network.settings", said(one)) for one in settings]


def change_setting(one: NetworkSetting, text: str, value: str = "") -> Remedy:
    """How to set it to something else, or to nothing, where it was set."""
    if one.source != ENVIRONMENT:
        line = f"{one.name}={value}" if value else ""
        how = f"write {line}" if line else f"take the line {one.name} out"
        return Remedy(f"{text}: {how} in {one.source}.", [f"sudoedit {word(one.source)}"])
    command = f"export {one.name}={word(value)}" if value else f"unset {one.name}"
    return Remedy(f"{text}, also where a job's script or an image sets it.", [command])


def gpus(view: SnapshotView) -> list[Gpu]:
    """The GPUs that the target's processes have; [] where no driver answers."""
    try:
        return view.seen_gpus
    except CannotJudge:
        return []


def for_data_centres(view: SnapshotView) -> bool:
    return any(is_data_centre(known(gpu.name) or "") for gpu in gpus(view))


def is_active(port: RdmaPort) -> bool:
    return known(port.state) == "ACTIVE"


def is_infiniband(port: RdmaPort) -> bool:
    return known(port.link_layer) == "InfiniBand"


def each_port(facts: Network) -> Iterator[tuple[RdmaDevice, RdmaPort]]:
    for device in known(facts.rdma) or []:
        for port in device.ports:
            yield device, port


def place(device: RdmaDevice, port: RdmaPort) -> str:
    """ "mlx5_0", or "mlx5_0:2" of an adapter with several ports."""
    return device.name if len(device.ports) == 1 else f"{device.name}:{port.port}"


def fabric(facts: Network) -> list[tuple[RdmaDevice, RdmaPort]]:
    """The active ports that are there for traffic between GPUs.

    InfiniBand has no other purpose on such a machine; an Ethernet adapter that can RoCE mostly has, unless
    there are several fast ones, or NCCL's settings speak of RDMA. EFA is left to its own plugin.
    """
    active = [
        (device, port)
        for device, port in each_port(facts)
        if is_active(port) and known(device.driver) != "efa"
    ]
    meant = [one for one in active if is_infiniband(one[1])]
    fast = [
        one
        for one in active
        if not is_infiniband(one[1]) and (known(one[1].rate_gbps) or 0) >= FAST_GBPS
    ]
    wanted = any(setting(facts, name) for name in ("NCCL_IB_HCA", "NCCL_IB_GID_INDEX"))
    return meant + (fast if len(fast) > 1 or wanted else [])


def below_switch(gpu: PciDevice, adapter: RdmaDevice) -> list[str] | None:
    """The bridges between a GPU and an adapter of one switch; None where they share none."""
    first, second = known(gpu.bridges) or [], known(adapter.bridges) or []
    common = set(first) & set(second)
    if not common:
        return None
    return [port for port in [*first, *second] if port not in common]


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
    """The interface that traffic between machines should take."""
    every = {one.name: one for one in interfaces}
    found = [one for one in interfaces if usable(one) and is_real(one, every)]
    carried = {member for one in found for member in one.members}
    found = [one for one in found if one.name not in carried and known(one.ipv4) is not False]
    return max(found, key=lambda one: known(one.speed_mbit) or 0, default=None)


def spans_machines(facts: Network) -> bool:
    """Whether the job that this runs in has several machines, by its variables."""
    return (known(facts.nodes) or 1) > 1
