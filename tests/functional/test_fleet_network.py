"""`envcheck fleet network` over networks of namespaces, in a real PyTorch or Horovod: six faults at once.

ENVCHECK_SEEDS says how many seeds: each gives the faults to other machines.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
from pathlib import Path

import pytest
from cli import PYTHON, environment
from network_lab import NetworkLab, name_of, serve_lab
from processes import wait_for
from real_targets import real_target
from slurm_cluster import SlurmNode, serve_cluster

pytestmark = pytest.mark.slow
MACHINES = 16
SEEDS = range(int(os.environ.get("ENVCHECK_SEEDS", "1")))
MINUTES = 40.0  # far beyond what a run can take on a busy machine

Truth = set[tuple[str, frozenset[str]]]


def broken(lab: NetworkLab, seed: int) -> tuple[Truth, int]:
    """What is to be found, and which machine hangs."""
    places = random.Random(seed).sample(range(MACHINES), 7)
    slow, hole, misnamed, clock, hung, one, other = places
    lab.slow(slow, both=seed % 2 == 0)
    lab.hole(hole)
    lab.misname(misnamed)
    lab.clock(clock)
    lab.hang_in_round(hung, random.Random(seed).randrange(3, 9))
    lab.cut(one, other)
    causes = {
        "machine-slow": [slow],
        "large-messages-vanish": [hole],
        "name-resolves-elsewhere": [misnamed],
        "clock-off": [clock],
        "machine-hangs": [hung],
        "pair-cut-off": [one, other],
    }
    return {(key, frozenset(map(name_of, one))) for key, one in causes.items()}, hung


def found(folder: Path, output: str) -> Truth:
    assert (folder / "network.json").exists()
    report = json.loads(output)
    assert report["outcome"] == "fail"
    return {(one["cause"], frozenset(one["machines"])) for one in report["findings"]}


def run(
    folder: Path,
    *words: str,
    target: str = "torch",
    prefix: tuple[str, ...] = (),
    code: int = 1,
    **more: str,
) -> str:
    argv = [*prefix, PYTHON, "-m", "envcheck", "fleet", "network", str(folder), "--format=json"]
    done = subprocess.run(
        [*argv, "--target", str(real_target(target)), *words],
        env=environment(**more), stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=MINUTES * 60, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    return done.stdout


@pytest.mark.parametrize("target", ["torch", "horovod-2.15"])
@pytest.mark.parametrize("seed", SEEDS)
def test_by_ansible_each_fault_is_named_and_nothing_else(
    seed: int, target: str, tmp_path: Path
) -> None:
    with serve_lab(MACHINES) as lab:
        truth, hung = broken(lab, seed)
        output = run(tmp_path, "-i", str(lab.hosts.inventory), target=target, **lab.hosts.variables)
        assert found(tmp_path, output) == truth
        assert wait_for(lambda: not lab.left(hung)), lab.left(hung)
    replayed = [PYTHON, "-m", "envcheck", "fleet", "network", "--from", tmp_path, "--format=json"]
    again = subprocess.run(replayed, capture_output=True, text=True, check=False)
    assert (again.returncode, again.stdout) == (1, output)


@pytest.mark.parametrize("target", ["torch", "horovod-2.15"])
@pytest.mark.parametrize("seed", SEEDS)
def test_by_slurm_each_fault_is_named_and_nothing_else(
    seed: int, target: str, tmp_path: Path
) -> None:
    with serve_lab(MACHINES) as lab:
        truth, hung = broken(lab, seed + 100)
        lab.name_all()
        nodes = [
            SlurmNode(name_of(one), python=lab.python(one), address=name_of(one))
            for one in range(MACHINES)
        ]
        with serve_cluster(nodes) as cluster:
            hosts = f'mount --bind {cluster.scratch}/hosts /etc/hosts; exec "$@"'
            prefix = ("unshare", "--mount", "sh", "-c", hosts, "sh")
            names = ",".join(node.name for node in nodes)
            words = ("--slurm", "--nodes", names, "--immediate=120")
            output = run(tmp_path, *words, target=target, prefix=prefix, **cluster.variables)
            assert found(tmp_path, output) == truth
            assert wait_for(lambda: not cluster.queued()), cluster.queued()
            assert not lab.left(hung)


@pytest.mark.parametrize("target", ["torch", "horovod-1.15", "horovod-2.15"])
def test_a_network_that_works_has_no_finding(target: str, tmp_path: Path) -> None:
    with serve_lab(5) as lab:
        output = run(
            tmp_path, "-i", str(lab.hosts.inventory), target=target, code=0, **lab.hosts.variables
        )
        report = json.loads(output)
        assert not report["findings"]
        assert {one["pairs"] for one in report["machines"]} == {4}
        assert {one["collective"] for one in report["together"]} >= {"all-reduce", "all-to-all"}
        assert not lab.left()


def test_of_two_machines_that_a_firewall_separates_the_pair_is_named(tmp_path: Path) -> None:
    with serve_lab(2) as lab:
        lab.cut(0, 1)
        output = run(tmp_path, "-i", str(lab.hosts.inventory), **lab.hosts.variables)
        assert found(tmp_path, output) == {("pair-cut-off", frozenset({"gpu01", "gpu02"}))}


def test_an_interrupted_run_leaves_nothing_behind(tmp_path: Path) -> None:
    with serve_lab(3) as lab:
        child = subprocess.Popen(
            [PYTHON, "-m", "envcheck", "fleet", "network", "-i", lab.hosts.inventory, tmp_path,
             "--target", real_target("torch")],
            env=environment(**lab.hosts.variables), stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE, start_new_session=True, text=True,
        )  # fmt: skip
        assert wait_for(lambda: len(lab.left()) == 3)
        child.send_signal(signal.SIGINT)
        assert child.communicate()[1].count("Traceback") == 0
        assert child.returncode == 130
        assert wait_for(lambda: not lab.left()), lab.left()
