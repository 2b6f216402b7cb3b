"""The network probe against made-up trees of /sys, /proc and /etc."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from world.kernel_tree import Tree, decode

from envcheck.collector.linux import interfaces, rdma, rdma_counters, roce
from envcheck.collector.probes import network
from envcheck.collector.runtime.context import Context
from envcheck.facts.base import Unavailable, known
from envcheck.facts.network import Network, RdmaDevice

NET = "/sys/class/net"
RDMA = "/sys/class/infiniband"


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    made = Tree(tmp_path)
    made.write("/proc/sys/kernel/hostname", "node1\n")
    return made


def probe(tree: Tree, **environ: str) -> Network:
    context = Context({"HOME": "/home/u", **environ}, root=str(tree.root))
    facts: Network = decode(network.collect(context), Network)
    return facts


def interface(tree: Tree, name: str, index: int, *parts: str, **files: str) -> None:
    values = {"flags": "0x1003", "operstate": "up", "ifindex": str(index), **files}
    for file, text in values.items():
        tree.write(f"{NET}/{name}/{file}", text + "\n")
    for part in parts:
        tree.write(f"{NET}/{name}/{part}/x")


def adapter(tree: Tree, name: str, place: str, **files: str) -> None:
    address = tree.device(place, vendor="0x15b3", driver="mlx5_core", numa_node="0")
    folder = f"/sys/devices/{place}/infiniband/{name}"
    port = {
        "state": "4: ACTIVE",
        "phys_state": "5: LinkUp",
        "link_layer": "InfiniBand",
        "rate": "400 Gb/sec (4X NDR)",
        "gids/0": "fe80:0000:0000:0000:e8eb:d303:00a1:b2c3",
        "gids/1": "0000:0000:0000:0000:0000:0000:0000:0000",
        **files,
    }
    for file, text in port.items():
        tree.write(f"{folder}/ports/1/{file}", text + "\n")
    tree.write(f"{folder}/board_id", "MT_0000000838\n")
    tree.write(f"{folder}/fw_ver", "28.39.1002\n")
    tree.link(f"{folder}/device", f"/sys/devices/{place}")
    tree.path(f"{folder}/device").unlink()
    tree.path(f"{folder}/device").symlink_to(tree.path(f"/sys/devices/{place}"))
    tree.link(f"{RDMA}/{name}", f"../../devices/{place}/infiniband/{name}")
    assert address


def test_interfaces_in_the_kernel_s_order_with_their_kinds(tree: Tree) -> None:
    interface(tree, "lo", 1, flags="0x9", operstate="unknown")
    interface(tree, "ens3", 10, "device", speed="25000", mtu="9000")
    interface(tree, "docker0", 3, "bridge", "brif/veth1", operstate="down")
    interface(tree, "bond0", 4, "bonding", speed="-1")
    interface(tree, "tun0", 5, tun_flags="0x1")
    interface(tree, "ens3.7", 6, uevent="DEVTYPE=vlan", operstate="lowerlayerdown")
    interface(tree, "flannel.1", 7, uevent="DEVTYPE=vxlan")
    interface(tree, "eth9", 8, flags="0x1002")
    interface(tree, "cali1", 9)
    tree.write(f"{NET}/bonding_masters", "bond0")
    tree.write("/proc/net/route", "Iface\tDestination\nens3\t0\ndocker0\t0\n")
    tree.write("/proc/net/if_inet6", "fe80 02 40 20 80 ens3\n")
    found = probe(tree).interfaces
    assert isinstance(found, list)
    assert [(one.name, one.kind) for one in found] == [
        ("lo", "loopback"),
        ("docker0", "bridge"),
        ("bond0", "bond"),
        ("tun0", "tunnel"),
        ("ens3.7", "vlan"),
        ("flannel.1", "tunnel"),
        ("eth9", "virtual"),
        ("cali1", "virtual"),
        ("ens3", "physical"),
    ]
    by_name = {one.name: one for one in found}
    ens3, docker0 = by_name["ens3"], by_name["docker0"]
    assert (ens3.running, ens3.ipv4, ens3.ipv6, ens3.speed_mbit) == (True, True, True, 25000)
    assert ens3.mtu == 9000 and isinstance(docker0.mtu, Unavailable)
    assert (docker0.up, docker0.running, docker0.ipv4, docker0.ipv6) == (True, False, True, False)
    assert docker0.members == ["veth1"]
    assert by_name["eth9"].up is False and by_name["lo"].running is True
    assert isinstance(by_name["bond0"].speed_mbit, Unavailable)


def test_an_adapter_its_place_and_its_port(tree: Tree) -> None:
    place = "pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:02.0/0000:18:00.0"
    tree.bridge(place.rpartition("/")[0], max_link_width="8")
    adapter(tree, "mlx5_0", place)
    (found,) = decoded(probe(tree).rdma)
    assert (found.name, found.address, found.driver) == ("mlx5_0", "0000:18:00.0", "mlx5_core")
    assert found.bridges == ["0000:15:01.0", "0000:16:00.0", "0000:17:02.0"]
    assert (found.board, found.numa_node, found.virtual_function) == ("MT_0000000838", 0, False)
    (port,) = found.ports
    assert (port.state, port.link_layer) == ("ACTIVE", "InfiniBand")
    assert (port.rate_gbps, port.lanes, port.gids) == (400.0, 4, [0])
    assert found.slot_max_link_width == 8
    assert (found.link_width, found.link_gts, found.max_link_width) == (16, 32.0, 16)
    assert rdma.bridges(Context({}, root=str(tree.root))) == set(found.bridges)


def decoded(found: Any) -> list[RdmaDevice]:
    assert isinstance(found, list), found
    return found


def test_a_roce_port_and_the_interface_of_its_addresses(tree: Tree) -> None:
    adapter(
        tree,
        "rocep1s0",
        "pci0000:15/0000:15:01.0/0000:16:00.0",
        link_layer="Ethernet",
        **{
            "gids/1": "fe80::1",
            "gid_attrs/ndevs/0": "ens1np0",
            "gid_attrs/ndevs/1": "ens1np0",
            "state": "1: DOWN",
            "phys_state": "3: Disabled",
        },
    )
    (port,) = decoded(probe(tree).rdma)[0].ports
    assert (port.link_layer, port.gids, port.interfaces) == ("Ethernet", [0, 1], ["ens1np0"])
    assert port.state == "DOWN"


def roce_port(tree: Tree, number: int = 1, **files: str) -> None:
    at = {"link_layer": "Ethernet", "gid_attrs/ndevs/0": f"ens{number}np0"}
    adapter(tree, f"mlx5_{number}", f"pci0000:15/0000:{number:02x}:00.0", **(at | files))


def test_what_a_port_counts_is_read_twice(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    roce_port(tree, **{"counters/symbol_error": "5", "hw_counters/out_of_sequence": "0"})
    ports = f"{RDMA}/mlx5_1/ports/1"
    tree.write(f"{ports}/counters/link_downed", "N/A (no PMA)\n")
    tree.write("/proc/uptime", "360.5 1000.0\n")

    def meanwhile(_seconds: float) -> None:
        tree.write(f"{ports}/counters/symbol_error", "9\n")
        tree.write(f"{ports}/hw_counters/out_of_sequence", "70\n")

    monkeypatch.setattr(rdma_counters.time, "sleep", meanwhile)
    found = probe(tree)
    (port,) = decoded(found.rdma)[0].ports
    assert port.counters == {"symbol_error": 9, "out_of_sequence": 70}
    assert port.growth == {"symbol_error": 4, "out_of_sequence": 70}
    assert found.uptime_s == 360.5 and isinstance(found.counted_s, float)


DCB = """if [ $1 = pfc ]; then echo pfc-cap 8 delay 0; echo prio-pfc 0:off 1:off 2:off 3:on 4:on; fi
if [ $1 = app ]; then echo dscp-prio 24:3; fi
[ $4 = ens1np0 ] || { echo Operation not supported >&2; exit 1; }"""
MLNX_QOS = (
    "printf 'DCBX mode: OS controlled\\nPriority trust state: pcp\\nPFC configuration:\\n"
    "\\tpriority    0   1   2   3   4   5   6   7\\n\\tenabled     0   0   0   1   0   0   0   0   \\n'"
)


@pytest.mark.parametrize(
    ("program", "script", "own", "pfc", "trust"),
    [
        ("dcb", DCB, "", [3, 4], "dscp"),
        ("dcb", "echo prio-pfc 0:off", "", [], "pcp"),
        ("dcb", "exit 1", "dscp", None, "dscp"),
        ("dcb", "echo rubbish", "", None, "pcp"),
        ("mlnx_qos", MLNX_QOS, "", [3], "pcp"),
        ("other", "", "", None, None),
    ],
)
def test_what_a_roce_port_is_set_to(
    tree: Tree, program: str, script: str, own: str, pfc: list[int] | None, trust: str | None
) -> None:
    roce_port(tree)
    tree.write(f"/opt/bin/{program}", f"#!/bin/sh\n{script}\n").chmod(0o755)
    if own:
        tree.write(f"{NET}/ens1np0/qos/trust", own + "\n")
    for way, on in (("np", 3), ("np", 4), ("rp", 3)):
        tree.write(f"{NET}/ens1np0/ecn/roce_{way}/enable/{on}", "1\n")
    (port,) = decoded(probe(tree, PATH="/opt/bin").rdma)[0].ports
    assert (known(port.pfc), known(port.trust), port.ecn) == (pfc, trust, [3])


def test_a_program_that_hangs_is_asked_once(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in (1, 2):
        roce_port(tree, number)
    (tmp_path / "asked").touch()
    tree.write(
        "/opt/bin/dcb", f"#!/bin/sh\necho $4 >>{tmp_path}/asked; exec /bin/sleep 99\n"
    ).chmod(0o755)
    monkeypatch.setattr(roce, "DEADLINE", 0.5)
    devices = decoded(probe(tree, PATH="/opt/bin").rdma)
    assert [known(one.ports[0].pfc) for one in devices] == [None, None]
    assert "ens2np0" not in (tmp_path / "asked").read_text()


@pytest.mark.parametrize(
    ("hosts", "inside"),
    [
        ("172.17.0.1 node1", "docker0"),
        ("10.1.2.3 node1.cluster node1", "ens3"),
        ("127.0.1.1 node1", None),
        ("999.1 node1", None),
        ("10.1.2.9 node1", ""),  # which no interface has
        ("10.1.2.3 other", None),
    ],
)
def test_the_interface_of_the_machine_s_own_name(
    tree: Tree, hosts: str, inside: str | None
) -> None:
    routes = [
        "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT",
        "ens3 00000000 0102010A 0003 0 0 0 00000000 0 0 0",
        "ens3 0000010A 00000000 0001 0 0 0 0000FFFF 0 0 0",
        "docker0 000011AC 00000000 0001 0 0 0 0000FFFF 0 0 0",
    ]
    tree.write("/proc/net/route", "\n".join(routes) + "\n")
    here = ("127.0.0.1", "127.0.1.1", "172.17.0.1", "10.1.2.3", "999.1")
    tree.write("/proc/net/fib_trie", "".join(f"  |-- {one}\n     /32 host LOCAL\n" for one in here))
    tree.write("/etc/hosts", f"127.0.0.1 localhost\n{hosts}\n")
    assert known(probe(tree).own_interface) == inside


def test_a_topology_that_a_cloud_wrote(tree: Tree) -> None:
    tree.write(network.TOPOLOGY, "<system/>")
    (found,) = known(probe(tree).settings) or []
    assert (found.name, found.source) == ("NCCL_TOPO_FILE", "NCCL's default")
    assert len(found.digest) == 12 and not found.missing
    (own,) = known(probe(tree, NCCL_TOPO_FILE="/gone.xml").settings) or []
    assert (own.source, own.missing, own.digest) == ("environment", True, "")


def test_the_nodes_by_which_programs_open_adapters(tree: Tree) -> None:
    assert probe(tree).verbs_nodes == []
    tree.write("/dev/infiniband/rdma_cm", "")
    tree.write("/dev/infiniband/uverbs0", "")
    assert probe(tree).verbs_nodes == ["/dev/infiniband/uverbs0"]


def test_of_settings_the_environment_s_counts_then_the_user_s(tree: Tree) -> None:
    tree.write(
        "/etc/nccl.conf", "# all\nNCCL_IB_DISABLE=1\nNCCL_P2P_DISABLE = 1\nNCCL_DEBUG=WARN\n"
    )
    tree.write("/home/u/.nccl.conf", "NCCL_IB_DISABLE=0\nNCCL_SOCKET_IFNAME==ens1f0\nrubbish\n")
    found = probe(tree, NCCL_SOCKET_IFNAME="eth0", NCCL_COMM_ID="10.0.0.1:1").settings
    assert isinstance(found, list)
    assert [(one.name, one.value, one.source) for one in found] == [
        ("NCCL_COMM_ID", "10.0.0.1:1", "environment"),
        ("NCCL_DEBUG", "WARN", "/etc/nccl.conf"),
        ("NCCL_IB_DISABLE", "0", "/home/u/.nccl.conf"),
        ("NCCL_P2P_DISABLE", "1", "/etc/nccl.conf"),
        ("NCCL_SOCKET_IFNAME", "eth0", "environment"),
    ]


def test_this_machine_s_own_interfaces() -> None:
    assert any(one["kind"] == "loopback" for one in interfaces.interfaces(Context({})))


def test_a_rank_behind_the_first_is_a_job_of_several_machines() -> None:
    assert network.nodes({"NODE_RANK": "1"}) == 2 and network.nodes({"NNODES": "3"}) == 3
