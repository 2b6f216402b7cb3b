"""The script of `envcheck fleet slurm-prolog` as Prolog of a real Slurm: what it drains, and takes back."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from shlex import quote

import pytest
from cli import PYTHON, envcheck
from processes import PATIENCE, wait_for
from slurm_cluster import SlurmCluster, SlurmNode, serve_cluster
from slurm_prologs import DRV_002, executable, fails, log_of, looks_at, made

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
    whole_cluster.slurm("scancel", "--user=root")
    assert wait_for(lambda: not whole_cluster.queued()), whole_cluster.queued()
    for name in drained(whole_cluster):
        whole_cluster.slurm("scontrol", "update", f"nodename={name}", "state=resume")
    for name in GPU_NODES:
        whole_cluster.slurm("scontrol", "update", f"nodename={name}", "comment=")
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


def resume(cluster: SlurmCluster, script: Path, name: str) -> tuple[int, str]:
    done = subprocess.run(
        [script, "resume"], capture_output=True, timeout=PATIENCE, check=False,
        env={"SLURMD_NODENAME": name, "SLURM_CONF": f"{cluster.scratch}/slurm.conf"},
    )  # fmt: skip
    return done.returncode, done.stdout.decode() + done.stderr.decode()


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
    assert re.search(r" gpu01 job=\d+ well\n", log_of(tmp_path))
    assert f" drained: {DRV_002}" in log_of(tmp_path)


def test_a_node_to_which_slurm_gives_no_gpu_takes_its_jobs(
    cluster: SlurmCluster, tmp_path: Path
) -> None:
    """With the real doctor, on a machine that may well be without a GPU."""
    doctor = f'exec {quote(PYTHON)} -m envcheck "$@"'
    install(cluster, tmp_path, doctor, "--only", "driver", "gpu", "pci")
    found = cluster.slurm("srun", "--nodelist=cpu01,cpu02", "hostname", seconds=120)
    assert sorted(found.split()) == ["cpu01", "cpu02"] and not drained(cluster)
    assert log_of(tmp_path).count("Slurm has no GPU on this node: not looked at\n") == 2


def test_a_full_home_drains_nothing(cluster: SlurmCluster, tmp_path: Path) -> None:
    """Of a doctor that finds HOST-005 where its home or its TMPDIR is full, as the real one does."""
    bad, well = (
        fails(tmp_path, "HOST-005", "The home directory is full."),
        looks_at(tmp_path, "healthy"),
    )
    doctor = f'if echo x >"$HOME/x" && echo x >"$TMPDIR/x"; then {well}; else {bad}; fi'
    install(cluster, tmp_path, doctor, HOME="/dev/full", TMPDIR="/dev/full")
    start_on(cluster, *GPU_NODES[:3])
    all_looked(tmp_path, *GPU_NODES[:3])
    assert wait_for(lambda: not cluster.queued()), cluster.queued()
    assert not drained(cluster)


def test_a_cause_that_all_nodes_share_drains_one(cluster: SlurmCluster, tmp_path: Path) -> None:
    """All Prologs at the same moment: 5 % of six nodes is one. What was refused is said."""
    install(cluster, tmp_path, looks_at(tmp_path, "driver-update"))
    start_on(cluster, *GPU_NODES)
    all_looked(tmp_path, *GPU_NODES)
    (name,) = drained(cluster)
    log = log_of(tmp_path)
    assert log.count(" drained: envcheck: DRV-002") == 1 and f" {name} " in log
    assert log.count("NOT drained, for envcheck has drained 1 of the nodes within the hour") == 5, (
        log
    )
    done = envcheck(
        "fleet", "doctor", "--slurm", tmp_path / "fleet", "--nodes", ",".join(GPU_NODES),
        "--level=quick", **cluster.variables,
    )  # fmt: skip
    said = done.stderr.decode()
    assert "envcheck's prolog found a fault and did NOT drain, for its limit was reached" in said
    assert re.search(
        rf"{name}: drained by envcheck\. Once mended, run there, as root, .* resume", said
    )


def test_a_larger_limit_drains_as_many(cluster: SlurmCluster, tmp_path: Path) -> None:
    install(cluster, tmp_path, looks_at(tmp_path, "driver-update"), "--limit=50")
    start_on(cluster, *GPU_NODES)
    all_looked(tmp_path, *GPU_NODES)
    assert len(drained(cluster)) == 3, log_of(tmp_path)


def test_hostile_words_reach_slurm_as_a_plain_reason(cluster: SlurmCluster, tmp_path: Path) -> None:
    words = "a\x1b[2J\x07 \"b\" 'c' | \u202e Reason=x State=DOWN $(id) `id`"
    install(cluster, tmp_path, fails(tmp_path, "GPU-001", words))
    start_on(cluster, "gpu01")
    assert wait_for(lambda: cluster.node("gpu01")[0] == "drained"), log_of(tmp_path)
    reason = cluster.node("gpu01")[1]
    assert re.fullmatch(
        r"envcheck: GPU-001 a 2J b c Reason x State DOWN \(id\) id \[[0-9a-f]{8}\]", reason
    )


@pytest.mark.parametrize(
    "said", ["exit 4", "printf '\\033]0;x\\007 \"quoted'; exit 7", "kill -9 $$"]
)
def test_a_doctor_that_fails_drains_nothing(
    cluster: SlurmCluster, tmp_path: Path, said: str
) -> None:
    install(cluster, tmp_path, said)
    assert cluster.slurm("srun", "--nodelist=gpu01", "hostname", seconds=120).strip() == "gpu01"
    assert not drained(cluster) and "could not look: exit " in log_of(tmp_path)


def test_a_mended_node_is_taken_back_once_the_doctor_agrees(
    cluster: SlurmCluster, tmp_path: Path
) -> None:
    script = install(cluster, tmp_path, looks_at(tmp_path, "driver-update"))
    start_on(cluster, "gpu01")
    assert wait_for(lambda: cluster.node("gpu01")[0] == "drained"), log_of(tmp_path)
    code, said = resume(cluster, script, "gpu01")
    assert (code, "gpu01 stays drained: DRV-002 fails" in said) == (1, True), said
    install(cluster, tmp_path, "exit 3")
    assert resume(cluster, script, "gpu01")[0] == 4
    assert cluster.node("gpu01")[0] == "drained"
    install(cluster, tmp_path, looks_at(tmp_path, "healthy"))
    code, said = resume(cluster, script, "gpu01")
    assert (code, "gpu01 is back in service: DRV-002 pass" in said) == (0, True), said
    assert wait_for(lambda: "drain" not in cluster.node("gpu01")[0])


def test_what_somebody_else_drained_stays_drained(cluster: SlurmCluster, tmp_path: Path) -> None:
    script = install(cluster, tmp_path, looks_at(tmp_path, "driver-update"))
    start_on(cluster, "gpu01")
    assert wait_for(lambda: cluster.node("gpu01")[0] == "drained"), log_of(tmp_path)
    install(cluster, tmp_path, looks_at(tmp_path, "healthy"))
    ours = cluster.node("gpu01")[1]
    for reason in ("ticket 12", "envcheck: DRV-002 by hand", f"{ours} and ticket 12"):
        words = ("nodename=gpu01", "state=drain", f"reason={reason}")
        cluster.slurm("scontrol", "update", *words)
        code, said = resume(cluster, script, "gpu01")
        assert (code, "was drained by somebody else" in said) == (1, True), said
        assert cluster.node("gpu01") == ("drained", reason)
    assert resume(cluster, script, "gpu02") == (1, said_last(tmp_path)) and drained(cluster) == [
        "gpu01"
    ]


def said_last(folder: Path) -> str:
    last = log_of(folder).splitlines()[-1]
    assert last.endswith(" gpu02 is not drained")
    return f"{last}\n"
