"""The checks on what NCCL and Horovod are set to, and on the ways between GPUs and adapters."""

from __future__ import annotations

from typing import Any

import h100
import networks
import pytest
import targets
from build import document, ok
from judged import full_text
from msgspec.structs import replace
from network_judged import commands, findings, judge
from networks import adapter, port, setting
from whole import kernel, whole

from envcheck.facts.base import Unavailable
from envcheck.facts.gpu import GpuPair
from envcheck.facts.kernel import KernelModule
from envcheck.facts.network import Network
from envcheck.facts.snapshot import Snapshot
from envcheck.facts.target import Environment, HorovodExtension

ABSENT = Unavailable(unavailable="absent")


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
