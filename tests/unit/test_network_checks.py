"""The checks on the network: what they find, on which machines, and where they have nothing to say."""

from __future__ import annotations

from typing import Any

import h100
import networks
import pytest
import targets
from build import document, ok
from judged import full_text, results
from msgspec.structs import replace
from networks import ETH0, LO, adapter, interface, port, setting
from whole import host, kernel, whole

from envcheck.checks.network.settings import matches
from envcheck.facts.base import Unavailable
from envcheck.facts.gpu import GpuPair
from envcheck.facts.kernel import KernelModule
from envcheck.facts.network import Network
from envcheck.facts.snapshot import Snapshot
from envcheck.facts.target import Environment, HorovodExtension
from envcheck.findings.model import CheckResult

AREAS = ("network",)
ABSENT = Unavailable(unavailable="absent")


def judge(found: Snapshot | Network, code: str) -> CheckResult:
    snapshot = whole(network=found) if isinstance(found, Network) else found
    return results(snapshot, AREAS)[code]


def findings(found: Snapshot | Network, code: str) -> list[str]:
    return [f"{one.level}: {one.message}" for one in judge(found, code).findings]


def commands(result: CheckResult) -> list[str]:
    return [
        command
        for finding in result.findings
        if finding.remedy is not None
        for command in finding.remedy.commands
    ]


@pytest.mark.parametrize("name", networks.WELL)
@pytest.mark.parametrize("gpus", [0, 1, 8])
def test_networks_that_are_well(name: str, gpus: int) -> None:
    snapshot = whole(network=networks.WELL[name]())
    if gpus < 8:
        listed = [h100.gpu(n) for n in range(gpus)]
        snapshot = whole(network=networks.WELL[name](), nvml=h100.nvml(listed), nvidia_smi=None)
    for result in results(snapshot, AREAS).values():
        assert not result.findings, full_text(result)
        assert "crashed" not in full_text(result)


# NET-001


def test_gloo_takes_no_exclusions() -> None:
    result = judge(networks.network(settings=[setting("GLOO_SOCKET_IFNAME", "^lo")]), "NET-001")
    assert "names of interfaces, and no ^" in result.findings[0].message
    assert commands(result) == ["export GLOO_SOCKET_IFNAME=eth0"]


@pytest.mark.parametrize(
    ("value", "name", "meant"),
    [
        ("eth", "eth1", True),
        ("=eth1", "eth10", False),
        ("^docker,lo", "eth1", True),
        ("^docker,lo", "docker0", False),
        ("^", "eth1", False),
    ],
)
def test_what_nccl_s_lists_mean(value: str, name: str, meant: bool) -> None:
    assert matches(value)(name) is meant


@pytest.mark.parametrize("name", ["NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"])
def test_an_interface_of_another_machine(name: str) -> None:
    result = judge(networks.network(settings=[setting(name, "ens3")]), "NET-001")
    assert result.outcome == "fail"
    assert f"{name}=ens3" in result.findings[0].message and "eth0" in result.findings[0].message
    assert commands(result) == [f"export {name}=eth0"]


def test_an_interface_that_is_down_and_set_in_a_file() -> None:
    down = interface("ib0", 3, running=False, up=False)
    found = networks.network(
        interfaces=[LO, ETH0, down],
        settings=[setting("NCCL_SOCKET_IFNAME", "=ib0", "/etc/nccl.conf")],
    )
    result = judge(found, "NET-001")
    assert result.outcome == "fail" and "ib0 is down" in result.findings[0].message
    assert commands(result) == ["sudoedit /etc/nccl.conf"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("NCCL_SOCKET_IFNAME", "eth"),
        ("NCCL_SOCKET_IFNAME", "^docker,lo"),
        ("NCCL_SOCKET_IFNAME", "lo"),
    ],
)
def test_settings_that_fit(name: str, value: str) -> None:
    found = networks.infiniband(settings=[setting(name, value)])
    assert judge(found, "NET-001").outcome == "pass"


@pytest.mark.parametrize(
    ("value", "outcome"),
    [("mlx5_20", "warn"), ("^mlx5", "warn"), ("=mlx5_0:1,mlx5_1:1", "pass"), ("mlx5", "pass")],
)
def test_adapters_of_another_machine(value: str, outcome: str) -> None:
    found = networks.infiniband(settings=[setting("NCCL_IB_HCA", value)])
    result = judge(found, "NET-003")
    assert result.outcome == outcome
    assert outcome == "pass" or "it names none of them" in result.findings[0].message


@pytest.mark.parametrize(
    ("version", "wireless", "warned"),
    [("2.1.0", True, True), ("2.3.0", True, False), ("2.1.0", False, False)],
)
def test_the_interfaces_that_ray_train_chooses(version: str, wireless: bool, warned: bool) -> None:
    packages = targets.packages(targets.dist("ray", version))
    name = "wlp3s0" if wireless else "eno1"
    found = networks.network(interfaces=[LO, interface(name, 2)])
    snapshot = replace(whole(network=found), target=targets.good_target(packages=packages))
    result = judge(snapshot, "NET-001")
    assert [one.cause.key for one in result.findings] == ["ray-names-no-interface"] * warned
    named = setting("NCCL_SOCKET_IFNAME", name)
    own = replace(whole(network=replace(found, settings=[named])), target=snapshot.target)
    assert judge(own, "NET-001").outcome == "pass"


# NET-002


def bridged(**changes: Any) -> Network:
    bridge = interface("br-0123456789ab", 1, "bridge")
    return networks.network(**({"interfaces": [bridge, LO, ETH0], "nodes": 2} | changes))


def test_a_bridge_before_the_adapter_in_a_job_of_two_machines() -> None:
    result = judge(bridged(), "NET-002")
    assert "br-0123456789ab first" in result.findings[0].message
    assert "export NCCL_SOCKET_IFNAME=eth0" in commands(result)


def test_an_exclusion_that_lets_the_loopback_in() -> None:
    given = setting("NCCL_SOCKET_IFNAME", "^docker0", "/etc/nccl.conf")
    veth = interface("eth0", 3, "virtual")
    result = judge(networks.network(interfaces=[LO, veth], settings=[given], nodes=2), "NET-002")
    assert "NCCL takes lo first, since NCCL_SOCKET_IFNAME=^docker0" in full_text(result)


@pytest.mark.parametrize(
    "found",
    [
        bridged(nodes=ABSENT),
        bridged(nodes=1),
        bridged(settings=[setting("NCCL_SOCKET_IFNAME", "eth")]),
        bridged(interfaces=[interface("br0", 1, "bridge", members=["eth0"]), LO, ETH0]),
        networks.infiniband(nodes=4),
    ],
)
def test_the_first_interface_leads_to_the_others(found: Network) -> None:
    assert judge(found, "NET-002").outcome == "pass"


def with_horovod(*operations: str, network: Network | None = None, **changes: Any) -> Snapshot:
    extension = HorovodExtension(
        framework="tensorflow", present=True, operations=list(operations), nccl=ABSENT
    )
    packages = targets.packages(
        targets.dist("tensorflow", "2.19.1"),
        targets.dist("horovod", "0.28.1"),
        horovod_extensions=[extension],
    )
    target = targets.good_target(packages=packages)
    return whole(target, network=network or networks.infiniband(), **changes)


# NET-003


def geforces(
    p2p: str = "chipset not supported",
    count: int = 2,
    gpu: dict[str, Any] | None = None,
    **changes: Any,
) -> Snapshot:
    gpus = [
        h100.gpu(
            n, name="NVIDIA GeForce RTX 4090", compute_capability="8.9", nvlinks=h100.NOT_SUPPORTED
        )
        for n in range(count)
    ]
    gpus = [replace(one, **(gpu or {})) for one in gpus]
    first, second = h100.ADDRESSES[:2]
    pairs = [GpuPair(first=first, second=second, level="PHB", p2p_read=p2p)] if count > 1 else []
    return whole(nvml=h100.nvml(gpus, pairs=pairs), nvidia_smi=None, **changes)


def routed(*gids: int) -> Network:
    fast = port(link_layer="Ethernet", rate_gbps=200.0, gids=[0, 1, 3], routed_gids=list(gids))
    return networks.roce(rdma=[adapter(n, fast) for n in range(2)])


FABRIC, PLAIN = networks.infiniband(), networks.network()


@pytest.mark.parametrize(
    ("machine", "set_to", "key"),
    [
        (FABRIC, "NCCL_P2P_DISABLE=1", "p2p-disabled"),
        (FABRIC, "NCCL_P2P_DISABLE=0", ""),
        (FABRIC, "NCCL_P2P_LEVEL=LOC", "p2p-never"),
        (FABRIC, "NCCL_P2P_LEVEL=NVL", ""),
        (FABRIC, "NCCL_IB_DISABLE=1", "rdma-disabled"),
        (FABRIC, "NCCL_IB_DISABLE=0", ""),
        (FABRIC, "NCCL_NET=Socket", "sockets-alone"),
        (FABRIC, "NCCL_NET=IB", ""),
        (PLAIN, "NCCL_NET=IB", "no-adapter-for-ib"),
        (FABRIC, "NCCL_NET_GDR_LEVEL=LOC", "gpudirect-off"),
        (FABRIC, "NCCL_NET_GDR_LEVEL=0", "gpudirect-off"),
        (FABRIC, "NCCL_NET_GDR_LEVEL=PIX", ""),
        (routed(3), "NCCL_IB_GID_INDEX=3", ""),
        (routed(3), "NCCL_IB_GID_INDEX=1", "gid-not-routed"),
        (routed(3), "NCCL_IB_GID_INDEX=7", "no-such-gid"),
        (networks.network(nodes=2), "MASTER_ADDR=127.0.0.1", "master-is-loopback"),
        (networks.network(nodes=1), "MASTER_ADDR=127.0.0.1", ""),
        (PLAIN, "NCCL_GRAPH_FILE=/g.xml", "graph-of-a-file"),
        (geforces(), "NCCL_P2P_DISABLE=1", ""),
        (geforces("ok"), "NCCL_P2P_DISABLE=1", "p2p-disabled"),
        (geforces("ok"), "NCCL_IB_DISABLE=1", ""),
    ],
)
def test_settings(machine: Network | Snapshot, set_to: str, key: str) -> None:
    name, _, value = set_to.partition("=")
    one = [setting(name, value, "/etc/nccl.conf")]
    if isinstance(machine, Network):
        snapshot = whole(network=replace(machine, settings=one))
    else:
        own = ok(networks.network(settings=one))
        snapshot = replace(machine, machine=replace(machine.machine, network=own))
    result = judge(snapshot, "NET-003")
    assert [found.cause.key for found in result.findings] == [key] * bool(key)
    assert not key or commands(result) == ["sudoedit /etc/nccl.conf"]


@pytest.mark.parametrize(
    ("version", "gids", "key"),
    [("2.19.3", [3], "gid-of-old-nccl"), ("2.19.3", [0, 3], ""), ("2.21.5", [3], "")],
)
def test_the_gid_that_an_older_nccl_takes(version: str, gids: list[int], key: str) -> None:
    packages = targets.packages(targets.dist("nvidia-nccl-cu12", version))
    target = targets.good_target(packages=packages, tensorflow=None)
    found = replace(routed(*gids), settings=[setting("MASTER_ADDR", "10.0.0.1")])
    result = judge(whole(target, network=found), "NET-003")
    assert [one.cause.key for one in result.findings] == [key] * bool(key)


@pytest.mark.parametrize(
    ("address", "inside", "nodes", "outcome", "words"),
    [
        ("127.0.1.1", None, 2, "warn", "127.0.1.1 alone"),
        ("127.0.1.1", None, 1, "skipped", ""),
        ("10.0.0.1", "eth0", 2, "pass", ""),
        ("10.0.0.1", "gone0", 2, "pass", ""),  # an interface that the Snapshot does not have
        ("100.65.12.7", "", 2, "warn", "which no interface here has"),
        ("172.17.0.1", "docker0", 2, "warn", "in the network of docker0"),
    ],
)
def test_a_name_of_the_machine_s_own(
    address: str, inside: str | None, nodes: int, outcome: str, words: str
) -> None:
    found = networks.network(
        interfaces=[LO, ETH0, networks.DOCKER0],
        own_addresses=[address],
        own_interface=ABSENT if inside is None else inside,
        nodes=nodes,
    )
    result = judge(found, "NET-011")
    assert result.outcome == outcome and words in full_text(result)
    assert not words or "export GLOO_SOCKET_IFNAME=eth0" in commands(result)


@pytest.mark.parametrize(
    ("name", "nodes", "outcome"),
    [("ufw", 2, "warn"), ("ufw", 1, "skipped"), ("", 2, "pass"), ("another", 2, "warn")],
)
def test_a_firewall(name: str, nodes: int, outcome: str) -> None:
    assert judge(networks.network(firewall=name, nodes=nodes), "NET-012").outcome == outcome


@pytest.mark.parametrize("network", [networks.infiniband(), None])
def test_what_the_target_s_environment_sets_counts_too(network: Any) -> None:
    environment = Environment(variables={"NCCL_P2P_DISABLE": "1", "OMP_NUM_THREADS": "1"})
    snapshot = whole(targets.good_target(environment=environment), network=network)
    result = judge(snapshot, "NET-003")
    assert result.outcome == "warn" and "NCCL_P2P_DISABLE=1" in result.findings[0].message
    assert commands(result) == ["unset NCCL_P2P_DISABLE"]


def test_efa_has_a_plugin_of_its_own() -> None:
    fast = port(link_layer="Unspecified", rate_gbps=100.0)
    rdma = [adapter(n, fast, driver="efa") for n in range(8)]
    found = networks.network(rdma=rdma, settings=[setting("NCCL_IB_DISABLE", "1")])
    for code in ("NET-003", "NET-005", "NET-006"):
        assert not findings(found, code), code


# NET-005


def test_an_image_without_rdma_libraries() -> None:
    target = targets.good_target()
    target = replace(target, location="image:tf", network=ok(networks.container(libibverbs=ABSENT)))
    result = judge(replace(whole(), target=target), "NET-005")
    assert result.outcome == "warn" and "in the container" in result.findings[0].message
    assert "Dockerfile" in commands(result)[0]


@pytest.mark.parametrize(
    ("container", "nodes", "outcome"),
    [("docker", [], "warn"), ("docker", ["/dev/infiniband/uverbs0"], "pass"), (None, [], "pass")],
)
def test_a_container_without_the_adapters_nodes(
    container: str | None, nodes: list[str], outcome: str
) -> None:
    started = host(container=container or ABSENT, memlock_kib=-1)
    found = whole(network=networks.infiniband(verbs_nodes=nodes), host=started)
    result = judge(found, "NET-005")
    assert result.outcome == outcome
    assert container is None or nodes or "--device=/dev/infiniband" in commands(result)[0]


@pytest.mark.parametrize("nodes", [[], ["/dev/infiniband/uverbs0"]])
def test_a_container_is_started_anew_once_for_its_adapters(nodes: list[str]) -> None:
    """The nodes and the limit on locked memory come by one command."""
    confined = host(container="docker", memlock_kib=64, rdma_devices=["mlx5_0"])
    found = whole(network=networks.infiniband(verbs_nodes=nodes), host=confined)
    warned = {code: result.outcome for code, result in results(found, ("host", "network")).items()}
    assert (warned["HOST-009"], warned["NET-005"]) == (
        ("warn", "pass") if nodes else ("pass", "warn")
    )


# NET-006


def gpudirect(flavour: str, release: str, *modules: str, **changes: Any) -> Snapshot:
    listed = [KernelModule(name=name) for name in ("nvidia", "nvidia_uvm", *modules)]
    return whole(kernel=kernel(driver_flavour=flavour, release=release, modules=listed), **changes)


@pytest.mark.parametrize(
    ("snapshot", "outcome"),
    [
        (gpudirect("proprietary", "5.15.0-113-generic"), "warn"),
        (gpudirect("open", "5.4.0-1-generic"), "warn"),
        (gpudirect("open", "5.15.0-113-generic"), "pass"),
        (gpudirect("proprietary", "5.4.0-1-generic", "nvidia_peermem"), "pass"),
        (gpudirect("proprietary", "4.18.0", "nv_peer_mem"), "pass"),
        (gpudirect("proprietary", "5.15.0", network=networks.plain_server()), "skipped"),
        (gpudirect("proprietary", "5.15.0", network=networks.infiniband(rdma=[adapter(0, driver="efa")])),
         "skipped"),
    ],
)  # fmt: skip
def test_gpudirect_rdma(snapshot: Snapshot, outcome: str) -> None:
    result = judge(snapshot, "NET-006")
    assert result.outcome == outcome, full_text(result)
    if outcome == "warn":
        assert "sudo modprobe nvidia-peermem" in commands(result)


@pytest.mark.parametrize(
    ("version", "peers", "flavour", "outcome"),
    [
        ("2.21.5", [], "proprietary", "warn"),
        ("2.21.5", ["nv_mem"], "proprietary", "pass"),
        ("2.21.5", ABSENT, "proprietary", "pass"),  # not known
        ("2.23.4", [], "proprietary", "pass"),
        ("2.21.5", [], "open", "pass"),  # by DMA-BUF
    ],
)
def test_an_nccl_that_does_not_see_nvidia_peermem(
    version: str, peers: Any, flavour: str, outcome: str
) -> None:
    packages = targets.packages(targets.dist("nvidia-nccl-cu12", version))
    snapshot = replace(
        gpudirect(
            flavour, "5.15.0", "nvidia_peermem", network=networks.infiniband(memory_peers=peers)
        ),
        target=targets.good_target(packages=packages, tensorflow=None),
    )
    result = judge(snapshot, "NET-006")
    assert result.outcome == outcome, full_text(result)
    assert outcome == "pass" or "nvidia-nccl-cu12>=2.23" in commands(result)[0]


# NET-008


def with_nccl(version: str, gpu: dict[str, Any], count: int = 2, **probes: Any) -> Snapshot:
    packages = targets.packages(
        targets.dist("torch", "2.6.0"), targets.dist("nvidia-nccl-cu12", version)
    )
    target = document("path:/venv", packages=packages, **probes)
    return replace(geforces(gpu=gpu, count=count), target=target)


BLACKWELL = {"name": "NVIDIA GeForce RTX 5090", "compute_capability": "12.0"}


@pytest.mark.parametrize(
    "snapshot",
    [
        with_nccl("2.26.2", BLACKWELL),
        with_nccl("2.25.1", {}),
        with_nccl("2.25.1", BLACKWELL, count=1),
    ],
)
def test_other_versions_gpus_and_counts(snapshot: Snapshot) -> None:
    assert judge(snapshot, "NET-008").outcome == "pass"


def with_driver(version: str, p2p: str = "ok", **changes: Any) -> Snapshot:
    snapshot = geforces(p2p, **changes)
    facts = snapshot.machine.nvml.facts  # type: ignore[union-attr]
    nvml = ok(replace(facts, driver_version=version))
    return replace(snapshot, machine=replace(snapshot.machine, nvml=nvml))


@pytest.mark.parametrize(
    ("snapshot", "outcome"),
    [
        (with_driver("560.35.03"), "warn"),
        (with_driver("570.86.15"), "pass"),
        (with_driver("560.35.03", "chipset not supported"), "pass"),
        (with_driver("560.35.03", count=1), "pass"),
        (with_driver("545.29.06"), "warn"),
        (with_driver("535.104.05"), "pass"),
    ],
)
def test_drivers_with_direct_transfers(snapshot: Snapshot, outcome: str) -> None:
    assert judge(snapshot, "NET-008").outcome == outcome


# NET-009


@pytest.mark.parametrize(
    ("snapshot", "outcome"),
    [
        (with_horovod("gloo", "nccl"), "pass"),
        (with_horovod("gloo", nvml=h100.nvml([]), nvidia_smi=None), "skipped"),
        (whole(), "skipped"),
    ],
)
def test_horovod_that_is_well(snapshot: Snapshot, outcome: str) -> None:
    assert judge(snapshot, "NET-009").outcome == outcome
