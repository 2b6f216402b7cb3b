"""The script of `envcheck fleet slurm-prolog` as Prolog of a real Slurm: what it drains, and takes back."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from shlex import quote

import pytest
from processes import wait_for
from slurm_cluster import SlurmCluster, SlurmNode, serve_cluster
from slurm_prologs import DRV_002, executable, log_of, looks_at, made

pytestmark = pytest.mark.fleet

GPU_NODES = [f"gpu{n:02d}" for n in range(1, 7)]


@pytest.fixture(scope="module")
def whole_cluster() -> Iterator[SlurmCluster]:
    nodes = [SlurmNode(name, gpus=2) for name in GPU_NODES]
    with serve_cluster([*nodes, SlurmNode("cpu01"), SlurmNode("cpu02")]) as made_cluster:
        yield made_cluster


@pytest.fixture
def cluster(whole_cluster: SlurmCluster) -> Iterator[SlurmCluster]:
    """Every node is idle, before and after."""
    yield whole_cluster
    whole_cluster.set_prolog("#!/bin/sh\nexit 0\n")
    whole_cluster.cancel()
    for name in drained(whole_cluster):
        whole_cluster.slurm("scontrol", "update", f"nodename={name}", "state=resume")
    states = ("sinfo", "-h", "-o", "%T")
    assert wait_for(lambda: whole_cluster.slurm(*states).split() == ["idle"]), (
        whole_cluster.slurm("scontrol", "--oneliner", "show", "node")
        + whole_cluster.log("slurmctld")[-3000:]
    )


def drained(cluster: SlurmCluster) -> list[str]:
    return [node.name for node in cluster.nodes if "drain" in cluster.node(node.name)[0]]


def install(
    cluster: SlurmCluster, folder: Path, doctor: str, *words: str, **variables: str
) -> Path:
    """Every node's Prolog is the script; it gets these variables."""
    script = executable(
        folder / "prolog", made(folder, doctor, *words, path=cluster.scratch / "bin")
    )
    exported = "".join(f"export {name}={quote(value)}\n" for name, value in variables.items())
    cluster.set_prolog(f"#!/bin/sh\n{exported}exec {script}\n")
    return script


def start_on(cluster: SlurmCluster, *names: str) -> None:
    for name in names:
        cluster.slurm("sbatch", f"--nodelist={name}", "--output=/dev/null", "--wrap=exit 0")


def looked_on(folder: Path) -> set[str]:
    return {line.split()[1] for line in log_of(folder).splitlines()}


def all_looked(folder: Path, *names: str) -> None:
    assert wait_for(lambda: looked_on(folder) >= {*names}), log_of(folder)


def test_a_faulty_node_is_drained_and_its_job_waits(cluster: SlurmCluster, tmp_path: Path) -> None:
    """The node's own doctor says so, by ``here``, which each node has of its own."""
    for node, demo in (("gpu01", "healthy"), ("gpu02", "driver-update")):
        (cluster.scratch / "nodes" / node / "doctor").write_text(looks_at(tmp_path, demo))
    install(cluster, tmp_path, f". {cluster.scratch}/here/doctor")
    assert cluster.slurm("srun", "--nodelist=gpu01", "hostname", seconds=120).strip() == "gpu01"
    start_on(cluster, "gpu02")
    assert wait_for(lambda: cluster.node("gpu02")[0] == "drained"), log_of(tmp_path)
    assert cluster.node("gpu02")[1].startswith(DRV_002) and drained(cluster) == ["gpu02"]
    assert wait_for(lambda: "PENDING" in cluster.queued()), cluster.queued()  # and not lost
    assert re.search(r" gpu01 job=\d+ healthy\n", log_of(tmp_path))
    assert f" drained: {DRV_002}" in log_of(tmp_path)


def test_a_cause_that_all_nodes_share_drains_one(cluster: SlurmCluster, tmp_path: Path) -> None:
    """All Prologs at the same moment: 5 % of six nodes is one."""
    install(cluster, tmp_path, looks_at(tmp_path, "driver-update"))
    start_on(cluster, *GPU_NODES)
    all_looked(tmp_path, *GPU_NODES)
    (name,) = drained(cluster)
    log = log_of(tmp_path)
    assert log.count(" drained: envcheck: DRV-002") == 1 and f" {name} " in log
    assert log.count("NOT drained, for envcheck has drained 1 of the nodes within the hour") == 5, (
        log
    )
