"""Networks that are well: of a cluster's node, a desktop, a container, a machine in a cloud."""

from __future__ import annotations

from typing import Any

from envcheck.facts.base import ProgramSetting, Unavailable
from envcheck.facts.network import Network, NetworkInterface, RdmaDevice, RdmaPort

ABSENT = Unavailable(unavailable="absent")
VERBS = "/lib/x86_64-linux-gnu/libibverbs.so.1"


def interface(name: str, index: int, kind: Any = "physical", **changes: Any) -> NetworkInterface:
    facts: dict[str, Any] = {
        "up": True,
        "running": True,
        "ipv4": True,
        "ipv6": True,
        "speed_mbit": ABSENT if kind != "physical" else 1000,
        "mtu": 1500,
    }
    return NetworkInterface(name=name, index=index, kind=kind, **(facts | changes))


LO = interface("lo", 1, "loopback", ipv4=False)
ETH0 = interface("eth0", 2)
DOCKER0 = interface("docker0", 9, "bridge")


def setting(name: str, value: str, source: str = "environment") -> ProgramSetting:
    return ProgramSetting(name=name, value=value, source=source)


def port(number: int = 1, **changes: Any) -> RdmaPort:
    facts: dict[str, Any] = {
        "state": "ACTIVE",
        "link_layer": "InfiniBand",
        "rate_gbps": 400.0,
        "lanes": 4,
        "gids": [0],
    }
    return RdmaPort(port=number, **(facts | changes))


def adapter(number: int, *ports: RdmaPort, **changes: Any) -> RdmaDevice:
    facts: dict[str, Any] = {
        "address": f"0000:{0x18 + number:02x}:00.0",
        "driver": "mlx5_core",
        "board": "MT_0000000838",
        "chip": "MT4129",
        "firmware": "28.39.1002",
        "virtual_function": False,
        "bridges": [f"0000:{0x15 + number:02x}:01.0", f"0000:{0x16 + number:02x}:00.0"],
        "numa_node": number // 4,
    }
    return RdmaDevice(name=f"mlx5_{number}", ports=list(ports) or [port()], **(facts | changes))


def network(**changes: Any) -> Network:
    facts: dict[str, Any] = {
        "interfaces": [LO, ETH0],
        "rdma": ABSENT,
        "libibverbs": ABSENT,
        "settings": [],
        "nodes": ABSENT,
        "memory_peers": ["nv_mem"],
        "uptime_s": 30 * 86_400.0,
        "counted_s": 0.5,
    }
    return Network(**(facts | changes))


def infiniband(**changes: Any) -> Network:
    """Eight adapters, one for each GPU, IP over InfiniBand, and docker's bridge."""
    facts: dict[str, Any] = {
        "interfaces": [LO, ETH0, interface("ib0", 3, speed_mbit=400_000), DOCKER0],
        "rdma": [adapter(number) for number in range(8)],
        "libibverbs": VERBS,
    }
    return network(**(facts | changes))


def roce(**changes: Any) -> Network:
    """Eight adapters of 200 Gb/s on Ethernet; the ninth is the machine's uplink of 25 Gb/s."""
    uplink = port(link_layer="Ethernet", rate_gbps=25.0, lanes=1, gids=[0, 1, 2, 3])
    rails = [adapter(n, rail(n)) for n in range(8)]
    facts = {
        "rdma": [*rails, adapter(8, uplink, board="MT_80")],
        "interfaces": [LO, ETH0, *[interface(f"rdma{n}", 10 + n, mtu=9000) for n in range(8)]],
    }
    return infiniband(**(facts | changes))


def rail(number: int, **changes: Any) -> RdmaPort:
    """A RoCE port of 200 Gb/s with flow control and ECN at the priority 3."""
    facts: dict[str, Any] = {
        "link_layer": "Ethernet",
        "rate_gbps": 200.0,
        "gids": [0, 1, 2, 3],
        "routed_gids": [3],
        "interfaces": [f"rdma{number}"],
        "pfc": [3],
        "ecn": [3],
        "trust": "dscp",
    }
    return port(**(facts | changes))


def desktop(**changes: Any) -> Network:
    """Wi-Fi, docker with a bridge of compose's, a virtual machine's bridge, and a VPN."""
    facts: dict[str, Any] = {
        "interfaces": [
            LO,
            interface("enp5s0", 2, up=True, running=False, ipv4=False, ipv6=False),
            interface("wlp6s0", 3, speed_mbit=ABSENT),
            interface("virbr0", 4, "bridge", running=False),
            interface("docker0", 5, "bridge", running=False, ipv6=False),
            interface("br-0123456789ab", 6, "bridge", members=["vethab"]),
            interface("vethab", 7, "virtual", ipv4=False),
            interface("tailscale0", 8, "tunnel"),
        ]
    }
    return network(**(facts | changes))


def container(**changes: Any) -> Network:
    facts: dict[str, Any] = {"interfaces": [LO, interface("eth0", 33, "virtual")]}
    return network(**(facts | changes))


def plain_server(**changes: Any) -> Network:
    """An inference server whose uplink is one ConnectX card with two ports, of which one is cabled."""
    up = port(link_layer="Ethernet", rate_gbps=100.0, gids=[0, 1])
    down = port(link_layer="Ethernet", state="DOWN", rate_gbps=40.0)
    facts: dict[str, Any] = {
        "interfaces": [LO, interface("ens1f0np0", 2, speed_mbit=100_000), DOCKER0],
        "rdma": [adapter(0, up), adapter(1, down)],
    }
    return network(**(facts | changes))


WELL = {
    "InfiniBand": infiniband,
    "RoCE": roce,
    "a desktop": desktop,
    "a container": container,
    "a server with a RoCE card as its uplink": plain_server,
    "nothing is known": Network,
    "Ethernet": network,
}
