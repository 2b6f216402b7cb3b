"""The script of `envcheck fleet slurm-prolog`: run by a shell, and by a real Slurm as its Prolog."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from shlex import quote

import pytest
from cli import envcheck
from processes import wait_for
from slurm_cluster import SlurmCluster, SlurmNode, serve_cluster

DEMOS = Path(__file__).resolve().parents[2] / "envcheck" / "data" / "demos"
DRV_002 = (
    "envcheck: DRV-002 The loaded kernel module is 535.104.05 and the driver's libraries are 535.129.03:"
    " no program can use a GPU until they match."
)


def made(folder: Path, doctor: str, *words: str, path: Path | None = None) -> str:
    """The script, with this for a doctor on the node; ``path`` is where its scontrol is."""
    stand_in = folder / "doctor"
    stand_in.write_text(f"#!/bin/sh\n{doctor}\n")
    stand_in.chmod(0o755)
    done = envcheck(
        "fleet", "slurm-prolog", "--envcheck", stand_in, "--log", folder / "log", *words
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode().replace("\nPATH=", f"\nPATH={path or folder}:", 1)


@cache
def told_of(demo: str) -> tuple[str, int]:
    """What the real doctor says of a Snapshot, and its exit code."""
    done = envcheck("doctor", "--from", DEMOS / f"{demo}.json")
    return done.stdout.decode(), done.returncode


def looks_at(demo: str) -> str:
    """A stand-in that says the same."""
    text, code = told_of(demo)
    return f"printf '%s' {quote(text)}; exit {code}"


def run(folder: Path, script: str) -> tuple[int, list[str], str]:
    """Its exit code, what it said to scontrol, and its log."""
    said = folder / "said"
    scontrol = folder / "scontrol"
    scontrol.write_text(f'#!/bin/sh\nprintf "%s\\n" "$*" >>{quote(str(said))}\n')
    scontrol.chmod(0o755)
    done = subprocess.run(
        ["sh", "-c", script], env={"SLURMD_NODENAME": "gpu07", "SLURM_JOB_ID": "12"},
        capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.stdout + done.stderr == b""
    log = (folder / "log").read_text()
    return done.returncode, said.read_text().splitlines() if said.exists() else [], log


def test_a_node_with_a_problem_is_drained_with_its_code_and_words(tmp_path: Path) -> None:
    code, said, log = run(tmp_path, made(tmp_path, looks_at("driver-update")))
    assert code == 1
    assert said == [
        "--oneliner show node gpu07",
        f"update NodeName=gpu07 State=DRAIN Reason={DRV_002}",
    ]
    assert f"gpu07 job=12 drained: {DRV_002}" in log


def test_a_node_that_is_well_or_only_warned_of_is_left_alone(tmp_path: Path) -> None:
    for demo in ("healthy", "odd-machine"):
        code, said, log = run(tmp_path, made(tmp_path, looks_at(demo)))
        assert (code, said) == (0, []), demo
    assert log.count("gpu07 job=12 well\n") == 2


@pytest.mark.parametrize(
    ("doctor", "why"),
    [
        ("echo 'no NVIDIA GPU in this machine'; exit 4", "exit 4: no NVIDIA GPU in this machine"),
        (
            "echo 'ModuleNotFoundError: No module'; exit 1",
            "exit 1 without a finding: ModuleNotFound",
        ),
        ("exec sleep 60", "no answer within 1 s"),
        ("echo; exit 127", "exit 127:"),
    ],
)
def test_where_envcheck_could_not_look_only_strict_drains(
    tmp_path: Path, doctor: str, why: str
) -> None:
    code, said, log = run(tmp_path, made(tmp_path, doctor, "--deadline=1"))
    assert (code, said) == (0, []) and f"could not look: {why}" in log
    code, said, _ = run(tmp_path, made(tmp_path, doctor, "--deadline=1", "--strict"))
    assert code == 1 and said[-1].startswith("update NodeName=gpu07 State=DRAIN")


def test_hostile_words_stay_one_argument_without_control_characters(tmp_path: Path) -> None:
    said_of_it = 'a\\033[2J $(touch %s/x) `id`; "b" \\\\ |\\n  wrapped\\n  To do: no\\n'
    doctor = f"printf 'FAIL GPU-001 {said_of_it}' .; exit 1"
    _, said, _ = run(tmp_path, made(tmp_path, doctor))
    assert said[-1].startswith(
        "update NodeName=gpu07 State=DRAIN Reason=envcheck: GPU-001 a[2J $(touch"
    )
    assert said[-1].endswith("wrapped") and not (tmp_path / "x").exists()
    assert not {"\x1b", '"', "\\", "|"} & {*said[-1]}


def test_shells_and_shellcheck_find_nothing_wrong_with_it(tmp_path: Path) -> None:
    script = made(tmp_path, "exit 0", "--only", "driver", "gpu", "--strict")
    assert not re.search("@[A-Z]+@", script)
    for shell in ("dash", "bash", "busybox"):
        if shutil.which(shell):
            words = [shell, "sh", "-n"] if shell == "busybox" else [shell, "-n"]
            assert subprocess.run(words, input=script.encode(), check=False).returncode == 0
    if shutil.which("shellcheck") is None:
        pytest.skip("there is no shellcheck on this machine")
    told = subprocess.run(
        ["shellcheck", "--shell=sh", "-"], input=script.encode(), capture_output=True, check=False
    )
    assert told.returncode == 0, told.stdout.decode()


@pytest.fixture(scope="module")
def cluster() -> Iterator[SlurmCluster]:
    with serve_cluster([SlurmNode("gpu01"), SlurmNode("gpu02")]) as made_cluster:
        yield made_cluster


@pytest.mark.fleet
def test_slurm_drains_the_node_and_keeps_the_reason(cluster: SlurmCluster, tmp_path: Path) -> None:
    """The node's own doctor says so, by ``here``, which each node has of its own."""
    doctors = {"gpu01": looks_at("healthy"), "gpu02": looks_at("driver-update")}
    for node, doctor in doctors.items():
        (cluster.scratch / "nodes" / node / "doctor").write_text(doctor)
    doctor = f". {cluster.scratch}/here/doctor"
    cluster.set_prolog(made(tmp_path, doctor, path=cluster.scratch / "bin"))
    assert cluster.slurm("srun", "--nodelist=gpu01", "hostname").strip() == "gpu01"
    assert cluster.node("gpu01")[0] in ("idle", "completing", "allocated", "mixed")
    cluster.slurm("sbatch", "--nodelist=gpu02", "--output=/dev/null", "--wrap=exit 0")
    assert wait_for(lambda: cluster.node("gpu02") == ("drained", DRV_002), 30), cluster.node(
        "gpu02"
    )
    assert wait_for(lambda: "PENDING" in cluster.queued(), 20), cluster.queued()  # and not lost
    log = (tmp_path / "log").read_text()
    assert " gpu01 job=1 well\n" in log and f" gpu02 job=2 drained: {DRV_002}\n" in log
    cluster.slurm("scancel", "2")
