"""`envcheck fleet collect --slurm` on a real Slurm: each node answers, or is named with the reason."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli import envcheck, environment
from processes import PATIENCE, wait_for
from slurm_cluster import DOWN, DRAINED, SlurmCluster, serve_cluster, usual_nodes

from envcheck.fleet.folder import FleetFolder, Member

pytestmark = pytest.mark.fleet


@pytest.fixture(scope="module")
def cluster() -> Iterator[SlurmCluster]:
    with serve_cluster(usual_nodes()) as made:
        yield made


def collect(
    cluster: SlurmCluster, folder: Path, *words: str
) -> tuple[subprocess.CompletedProcess[bytes], dict[str, Member]]:
    """One run, and what fleet.json says after it."""
    done = envcheck(
        "fleet", "collect", "--slurm", folder, "--level=quick", *words, **cluster.variables
    )
    return done, {member.name: member for member in FleetFolder(folder).members()}


def is_over(cluster: SlurmCluster) -> bool:
    """Nothing waits or runs, and nothing of it is on a node."""
    return wait_for(lambda: not cluster.queued() and not cluster.processes())


def test_every_node_answers_or_is_named_with_the_reason(
    cluster: SlurmCluster, tmp_path: Path
) -> None:
    with cluster.job("--nodelist=gpu03", "--exclusive"):
        done, found = collect(
            cluster, tmp_path / "fleet", "--nodes=gpu[01-06,08-09]", "--immediate=2",
            "--deadline=120",
        )  # fmt: skip
    assert done.returncode == 4, done.stderr.decode()
    assert {name: member.outcome for name, member in found.items()} == {
        "gpu01": "answered",
        "gpu02": "answered",
        "gpu03": "not-asked",
        "gpu04": "answered",
        "gpu05": "not-asked",
        "gpu06": "unreachable",
        "gpu08": "unreadable",
        "gpu09": "unreadable",
    }
    assert found["gpu03"].reason == "busy (allocated): Slurm did not give it within 2 s"
    assert found["gpu05"].reason == f"Slurm has it as drained: {DRAINED}"
    assert found["gpu06"].reason == f"Slurm has it as down: {DOWN}"
    assert "owned" in found["gpu09"].reason and found["gpu09"].reason.isprintable()
    assert found["gpu08"].reason == "the answer is longer than a Snapshot may be"
    assert found["gpu01"].groups == [
        ("partition", "a100"),
        ("partition", "all"),
        ("feature", "a100"),
        ("feature", "ib"),
    ]
    assert ("partition", "h100") in found["gpu09"].groups
    kept = sorted(path.name for path in (tmp_path / "fleet").iterdir())
    assert kept == ["fleet.json", "gpu01.json", "gpu02.json", "gpu04.json"]
    shown = done.stderr.decode()
    assert "3 of 8 machines have answered" in shown
    assert "gpu05: not-asked: Slurm has it as drained" in shown
    assert is_over(cluster)


def test_the_doctor_judges_what_slurm_brings(cluster: SlurmCluster, tmp_path: Path) -> None:
    done = envcheck(
        "fleet", "doctor", "--slurm", tmp_path / "fleet", "--level=quick", "--nodes=gpu[04-05]",
        **cluster.variables,
    )  # fmt: skip
    assert done.returncode in (1, 4), done.stderr.decode()
    shown = done.stdout.decode()
    assert "2 machines" in shown and DRAINED[:20] in shown


def test_a_hung_node_costs_its_deadline_and_leaves_nothing(
    cluster: SlurmCluster, tmp_path: Path
) -> None:
    (hung,) = cluster.of("sleeping")
    _, found = collect(cluster, tmp_path / "fleet", f"--nodes={hung}", "--deadline=1")
    assert (found[hung].outcome, found[hung].reason) == ("timed-out", "no answer within 1 s")
    assert is_over(cluster), (cluster.queued(), cluster.processes())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_whoever_ends_it_leaves_no_job_and_keeps_what_came(
    cluster: SlurmCluster, tmp_path: Path, number: signal.Signals
) -> None:
    (hung,) = cluster.of("sleeping")
    folder = FleetFolder(tmp_path / "fleet")
    running = subprocess.Popen(
        [sys.executable, "-m", "envcheck", "fleet", "collect", "--slurm", folder.path, "--level=quick",
         f"--nodes=gpu01,{hung}"],
        env=environment(**cluster.variables), stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        assert wait_for(folder.file("gpu01").exists)
        assert wait_for(lambda: hung in cluster.queued())
        running.send_signal(number)
        _, shown = running.communicate(timeout=PATIENCE)
    finally:
        running.kill()
        running.wait()
    assert running.returncode == (130 if number == signal.SIGINT else 143), shown.decode()
    assert b"Traceback" not in shown
    found = {member.name: member for member in folder.members()}
    assert found["gpu01"].outcome == "answered"
    assert (found[hung].outcome, found[hung].reason) == (
        "not-asked",
        "the run was ended before its answer",
    )
    assert is_over(cluster), (cluster.queued(), cluster.processes())
