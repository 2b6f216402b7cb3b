"""Checks on what RDMA between GPUs of several machines needs: libraries and a module."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...facts.host import Host
from ...facts.network import RdmaPort
from ..driver_state import NO_GPUS
from ..kernel.events import from_log, lines_of
from ..nvidia_devices import host_facts, is_loaded, is_virtual, kernel_facts
from ..reading import Skip, SnapshotView, Unavailable, facts_or, known, need
from ..system_commands import in_engine, in_image, on_system, systemctl
from ..verdicts import Cause, Passed, Remedy, Verdicts, about, about_file, check, warn
from . import common

_BY_PEERMEM = ("mlx5_core", "mlx4_core")  # whose adapters NVIDIA's own module serves
_DMABUF_KERNEL = (5, 12)
NO_LIBRARY = warn(
    "libibverbs-missing",
    "libibverbs is missing",
    "libibverbs.so.1 is not {where}: NCCL cannot use {ports}, and uses TCP.",
)
NO_NODES = warn(
    "rdma-nodes-not-given",
    "the container was not given the RDMA adapters",
    "There is no /dev/infiniband/uverbs0 or the like in this container: NCCL cannot use {ports}, and uses"
    " TCP.",
    "Start the container with them. In Kubernetes a device plugin for RDMA hands them out.",
    follows=(),
)


@check(
    "NET-005",
    title="Programs can reach the RDMA adapters",
    causes=[NO_LIBRARY, NO_NODES],
    about="NCCL loads libibverbs.so.1 when it starts, which loads a driver for the adapter and opens its node"
    " in /dev/infiniband. Most images lack the libraries, most containers the nodes, and NCCL then uses TCP"
    " without a message. Judged if an active port serves GPUs.",
    sources=(
        "horovod#476",
        "nccl-tests#41",
        "rdma-core, libibverbs: providers",
        "docker-run(1), --device",
    ),
    follows=("HOST-009",),
)
def libraries(view: SnapshotView) -> Verdicts:
    ports = common.serving_ports(view)
    facts = common.network(view)
    inside = view.seen is not view.machine and view.seen.network is not view.machine.network
    where = "in the container" if inside else "here"
    advice = (
        Remedy(
            "Install them in the image, or start from one of NVIDIA's.",
            in_image(view, "rdma-libraries"),
        )
        if inside
        else Remedy("Install the RDMA libraries.", on_system(view, "rdma-libraries"))
    )
    library = facts.libibverbs
    rdma = view.evidence("machine.network.rdma", common.named(ports))
    if isinstance(library, Unavailable) and library.unavailable == "absent":
        yield NO_LIBRARY.found(
            about("library", "libibverbs.so.1"),
            [view.evidence("seen.network.libibverbs"), rdma],
            advice=advice,
            where=where,
            ports=common.named(ports),
        )
        return
    confined = inside or known(facts_or(view.seen.host, Host).container) is not None
    if known(facts.verbs_nodes) == [] and confined:
        yield NO_NODES.found(
            about_file("/dev/infiniband"),
            [view.evidence("seen.network.verbs_nodes"), rdma],
            commands=in_engine(view, "rdma"),
            ports=common.named(ports),
        )
        return
    yield Passed(need(library, "libibverbs"))


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
    headline="an InfiniBand link is slower than its kind",
    sentence="{down} is active at {state}, while {up} of the same kind have more: everything between machines"
    " waits for the slowest link.",
)
ERRORS = NARROW.variant(
    "rdma-link-errors",
    headline="an RDMA link has many errors",
    sentence="{down} has had far more errors on its link than others have ({state}): transfers are repeated,"
    " or end with 'IBV_WC_RETRY_EXC_ERR'.",
    remedy="Clean and reseat its cable or transceiver at both ends, or change it; then set the counters to"
    " zero and compare them later.",
    source="openfabrics.org, Overview of Error Counters; NVIDIA UFM, InfiniBand Port Counters",
)
LANES = NARROW.variant(
    "rdma-adapter-narrow",
    headline="an RDMA adapter has too few PCIe lanes",
    sentence="{down} has {state} of the PCIe lanes that it and its slot share: it sends and receives at a"
    " part of its speed.",
    remedy="Reseat the adapter and its riser; check for a firmware setting that splits the slot.",
)
_MANY, _OFTEN, _FAR = 10_000, 10, 10  # errors, times that a link went down, times those of others
_SLOWER = 4  # half the rate may be a switch for storage


@check(
    "NET-010",
    title="RDMA ports are up, and as good as others of their kind",
    causes=[PORT_DOWN, NO_MANAGER, NARROW, SLOW, ERRORS, LANES],
    about="NCCL takes the RDMA ports that are active, and no other, without a message. A card all of whose"
    " ports are down among cards of the same board that work is reported, and so is an InfiniBand port with a"
    " link that no subnet manager has set up. Of a card with two ports one is often left free.",
    sources=(
        "NVIDIA NCCL user guide, NCCL_IB_HCA",
        "Linux kernel, sysfs-class-infiniband: state, phys_state, rate; opensm(8)",
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
        *_worse(view, [one for one in ports if common.is_active(one[1])]),
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
            commands=["rdma link show", "ibstat  # of infiniband-diags", *_COMMANDS.get(cause, ())]
            + [manager] * (cause is NO_MANAGER),
            down=name,
            state=state,
            up=common.named(up),
        )
    yield Passed(f"{sum(common.is_active(port) for _device, port in ports)} of {len(ports)} active")


_COMMANDS = {ERRORS: ["sudo perfquery -x", "sudo perfquery -R  # sets them to zero"]}


def _state(port: RdmaPort) -> str:
    return ", ".join(filter(None, map(known, (port.state, port.physical_state))))


def _is_waiting(port: RdmaPort) -> bool:
    return common.is_infiniband(port) and known(port.state) in ("INIT", "ARMED")


def _rate(one: common.Port) -> float:
    return known(one[1].rate_gbps) or 0


def _worse(
    view: SnapshotView, active: list[common.Port]
) -> Iterator[tuple[Cause, common.Port, str]]:
    """What active ports lack beside the others of their kind, or beside what they could have."""
    for one in active:
        device, port = one
        others = [p for p in active if known(p[0].board) == known(device.board) and p is not one]
        faster = [p for p in others if _rate(p) >= _SLOWER * _rate(one)]
        slow = [p for p in others if _rate(p) == _rate(one)]
        rate = f"{_rate(one):g} Gb/s"
        if common.is_infiniband(port) and known(port.lanes) == 1:
            yield NARROW, one, f"{rate} over one lane"
        elif common.is_infiniband(port) and _rate(one) and len(faster) > len(slow):
            yield SLOW, one, rate
        usual = [p[1].errors for p in others]
        if any(
            count >= (_OFTEN if name.startswith("link") else _MANY)
            and all(count >= _FAR * other.get(name, 0) for other in usual)
            for name, count in port.errors.items()
        ):
            yield ERRORS, one, ", ".join(f"{name} {count}" for name, count in port.errors.items())
        lanes = known(device.max_link_width), known(device.slot_max_link_width)
        width, most = known(device.link_width), min(filter(None, lanes), default=0)
        if all(lanes) and width and width < most and not is_virtual(view):
            yield LANES, one, f"{width} of {most}"


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


NO_GPUDIRECT = warn(
    "gpudirect-unavailable",
    "GPUDirect RDMA is not available",
    "nvidia_peermem is not loaded, and DMA-BUF is not available here ({kernel}, {flavour} modules):"
    " what {ports} send and receive is copied through the host's memory.",
    "Load it, now and at each boot. If it fails with 'Invalid argument', the driver was installed"
    " before the RDMA stack (MOFED, DOCA): install the driver again.",
    "sudo modprobe nvidia-peermem",
    "echo nvidia-peermem | sudo tee /etc/modules-load.d/nvidia-peermem.conf",
)


_LINES = lines_of("NET-006")


@check(
    "NET-006",
    title="RDMA adapters reach the GPUs' memory",
    causes=[NO_GPUDIRECT, *_LINES.values()],
    about="GPUDirect RDMA lets an adapter read and write a GPU's memory; it needs the module nvidia_peermem,"
    " which nothing loads by itself, or DMA-BUF (open modules, Linux 5.12).",
    sources=(
        "nv_peer_memory#56",
        "NVIDIA driver README, GPUDirect RDMA Peer Memory Client",
        "NVIDIA NCCL user guide, NCCL_DMABUF_ENABLE: Linux 5.12, open modules, CUDA 11.7",
    ),
    follows=(*NO_GPUS, "KRN-003"),
)
def peer_memory(view: SnapshotView) -> Verdicts:
    yield from from_log(view, _LINES)
    ports = [one for one in common.serving_ports(view) if known(one[0].driver) in _BY_PEERMEM]
    if not ports:
        raise Skip("the RDMA adapters are not NVIDIA's")
    if not common.for_data_centres(view):
        raise Skip("no data-centre GPU")
    kernel = kernel_facts(view)
    modules = {one.name for one in need(kernel.modules, "the loaded modules")}
    loaded = sorted(modules & {"nvidia_peermem", "nv_peer_mem"})
    if loaded:
        yield Passed(loaded[0])
        return
    if is_loaded(kernel) is False:
        raise Skip("the nvidia module is not loaded")
    release = known(kernel.release) or known(host_facts(view).kernel)
    version = re.match(r"(\d+)\.(\d+)", release or "")
    flavour = need(kernel.driver_flavour, "whether the modules are the open ones")
    off = common.setting(common.network(view), "NCCL_DMABUF_ENABLE")
    if flavour == "open" and (off is None or off.value != "0"):
        if version is None:
            raise Skip("the kernel's version is not known")
        if (int(version[1]), int(version[2])) >= _DMABUF_KERNEL:
            yield Passed(f"by DMA-BUF (open modules, Linux {version[0]})")
            return
    yield NO_GPUDIRECT.found(
        evidence=[
            view.evidence("machine.kernel.modules", ", ".join(sorted(modules))),
            view.evidence("machine.kernel.driver_flavour"),
            view.evidence("machine.network.rdma", common.named(ports)),
        ],
        kernel=f"Linux {version[0]}" if version else "this kernel",
        flavour=flavour,
        ports=common.named(ports),
    )
