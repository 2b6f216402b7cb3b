"""Facts about the ways between GPUs of several machines: interfaces, RDMA adapters, and NCCL's settings."""

from __future__ import annotations

from typing import Literal

from .base import NOT_COLLECTED, Address, Facts, Maybe, ProgramSetting


class NetworkInterface(Facts, frozen=True, kw_only=True):
    name: str
    index: Maybe[int] = NOT_COLLECTED  # the kernel's: NCCL takes them in this order
    kind: Maybe[Literal["loopback", "physical", "bridge", "bond", "vlan", "tunnel", "virtual"]] = (
        NOT_COLLECTED
    )
    members: list[str] = []  # of a bridge or a bond; of a VLAN what it stands on
    up: Maybe[bool] = NOT_COLLECTED
    running: Maybe[bool] = NOT_COLLECTED  # there is a carrier
    ipv4: Maybe[bool] = NOT_COLLECTED  # a route leads out of it
    ipv6: Maybe[bool] = NOT_COLLECTED  # has an address, link-local ones among them
    speed_mbit: Maybe[int] = NOT_COLLECTED
    mtu: Maybe[int] = NOT_COLLECTED  # bytes


class RdmaPort(Facts, frozen=True, kw_only=True):
    port: int
    state: Maybe[str] = NOT_COLLECTED  # "DOWN", "INIT", "ARMED", "ACTIVE"
    # "LinkUp"; "Polling" (no partner answers), "Disabled" (switched off)
    physical_state: Maybe[str] = NOT_COLLECTED
    link_layer: Maybe[str] = NOT_COLLECTED  # "InfiniBand", "Ethernet" (RoCE)
    rate_gbps: Maybe[float] = NOT_COLLECTED
    lanes: Maybe[int] = NOT_COLLECTED  # 1, 2, 4, 8, 12
    counters: dict[str, int] = {}  # {counter: number}, those that are not 0
    growth: dict[str, int] = {}  # of those that grew between two reads, Network.counted_s apart
    gids: Maybe[list[int]] = NOT_COLLECTED  # of the first 16 entries, those that are filled
    routed_gids: Maybe[list[int]] = NOT_COLLECTED  # those of RoCE v2 that are not link-local
    interfaces: list[str] = []  # of these GIDs
    # Of RoCE: the priorities with priority flow control, those with congestion control by ECN, and by what
    # a packet's priority is known: "pcp" (of a VLAN) or "dscp".
    pfc: Maybe[list[int]] = NOT_COLLECTED
    ecn: Maybe[list[int]] = NOT_COLLECTED
    trust: Maybe[str] = NOT_COLLECTED


class RdmaDevice(Facts, frozen=True, kw_only=True):
    """An adapter of /sys/class/infiniband."""

    name: str  # "mlx5_0"
    address: Maybe[Address] = NOT_COLLECTED
    driver: Maybe[str] = NOT_COLLECTED  # "mlx5_core"
    board: Maybe[str] = NOT_COLLECTED  # "MT_0000000838": the same for adapters of one kind
    chip: Maybe[str] = NOT_COLLECTED  # "MT4129"
    firmware: Maybe[str] = NOT_COLLECTED
    virtual_function: Maybe[bool] = NOT_COLLECTED
    bridges: Maybe[list[Address]] = NOT_COLLECTED  # above it, the root port first
    numa_node: Maybe[int] = NOT_COLLECTED
    link_gts: Maybe[float] = NOT_COLLECTED  # of its PCIe link now
    link_width: Maybe[int] = NOT_COLLECTED
    max_link_gts: Maybe[float] = NOT_COLLECTED
    max_link_width: Maybe[int] = NOT_COLLECTED
    slot_max_link_gts: Maybe[float] = NOT_COLLECTED
    slot_max_link_width: Maybe[int] = NOT_COLLECTED
    ports: list[RdmaPort] = []


class Network(Facts, frozen=True, kw_only=True):
    interfaces: Maybe[list[NetworkInterface]] = NOT_COLLECTED
    rdma: Maybe[list[RdmaDevice]] = NOT_COLLECTED  # absent: no RDMA in this kernel
    counted_s: Maybe[float] = NOT_COLLECTED  # between the two reads of the ports' counters
    uptime_s: Maybe[float] = NOT_COLLECTED
    # What the kernel knows to register GPUs' memory by: "nv_mem"
    memory_peers: Maybe[list[str]] = NOT_COLLECTED
    libibverbs: Maybe[str] = NOT_COLLECTED  # the file that a program would load
    verbs_nodes: Maybe[list[str]] = NOT_COLLECTED  # /dev/infiniband/uverbs*, to open adapters by
    settings: Maybe[list[ProgramSetting]] = NOT_COLLECTED
    own_addresses: Maybe[list[str]] = NOT_COLLECTED  # of this machine's name, in /etc/hosts
    own_interface: Maybe[str] = NOT_COLLECTED  # in whose network the first lies; "": nowhere here
    firewall: Maybe[str] = NOT_COLLECTED  # "ufw", "firewalld"; "" where none keeps machines out
    nodes: Maybe[int] = NOT_COLLECTED  # of the job that this runs in, by its variables
