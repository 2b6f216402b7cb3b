"""The checks on the network: what they find, on which machines, and where they have nothing to say."""

from __future__ import annotations

from typing import Any

import h100
import networks
import pytest
import targets
from build import ok
from judged import full_text, results
from msgspec.structs import replace
from network_judged import commands, judge
from networks import ETH0, LO, interface, setting
from whole import host, whole

from envcheck.checks.network.settings import matches
from envcheck.facts.base import Unavailable
from envcheck.facts.network import Network

ABSENT = Unavailable(unavailable="absent")


@pytest.mark.parametrize("name", networks.WELL)
@pytest.mark.parametrize("gpus", [0, 1, 8])
def test_networks_that_are_well(name: str, gpus: int) -> None:
    snapshot = whole(network=networks.WELL[name]())
    if gpus < 8:
        listed = [h100.gpu(n) for n in range(gpus)]
        snapshot = whole(network=networks.WELL[name](), nvml=h100.nvml(listed), nvidia_smi=None)
    for result in results(snapshot, ("network",)).values():
        assert not result.findings, full_text(result)
        assert "crashed" not in full_text(result)


# NET-001


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


IB_DOWN = interface("ib0", 3, running=False, up=False)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("GLOO_SOCKET_IFNAME", "^lo", "names of interfaces, and no ^"),
        ("GLOO_SOCKET_IFNAME", "ens3", "GLOO_SOCKET_IFNAME=ens3"),
        ("NCCL_SOCKET_IFNAME", "ens3", "NCCL_SOCKET_IFNAME=ens3"),
        ("NCCL_SOCKET_IFNAME", "=ib0", "ib0 is down"),
        ("NCCL_SOCKET_IFNAME", "eth", ""),
        ("NCCL_SOCKET_IFNAME", "^docker,lo", ""),
        ("NCCL_SOCKET_IFNAME", "lo", ""),
    ],
)
@pytest.mark.parametrize("source", ["environment", "/etc/nccl.conf"])
def test_a_setting_and_the_interfaces(name: str, value: str, words: str, source: str) -> None:
    interfaces = [LO, ETH0, networks.DOCKER0, IB_DOWN]
    found = networks.network(interfaces=interfaces, settings=[setting(name, value, source)])
    result = judge(found, "NET-001")
    assert result.outcome == ("fail" if words else "pass") and words in full_text(result)
    mended = "sudoedit /etc/nccl.conf" if "/" in source else f"export {name}=eth0"
    assert commands(result) == [mended] * bool(words)


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
