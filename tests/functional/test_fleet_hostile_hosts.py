"""Ten hostile machines among twenty real ones: those ten are named, the others answer, and nothing stays."""

from __future__ import annotations

import json
import secrets
from dataclasses import replace
from pathlib import Path

import pytest
from cli import envcheck
from hostile_pythons import HUNG, LARGE, hostile
from processes import PATIENCE, running_commands, wait_for
from slurm_cluster import SlurmNode, serve_cluster
from ssh_hosts import Host, serve_hosts, usual_hosts

pytestmark = pytest.mark.drill
REAL = 20
DEADLINE = 150


def said_of(folder: Path) -> dict[str, tuple[str, str]]:
    shown = json.loads((folder / "fleet.json").read_bytes())
    return {
        one["name"]: (one.get("outcome", "answered"), one.get("reason", ""))
        for one in shown["members"]
    }


def check(
    folder: Path, stderr: str, real: list[str], expected: dict[str, tuple[str, str]], word: str
) -> None:
    """What has to be said of all of them; ``word`` is in the command of whatever would stay."""
    found = said_of(folder)
    assert {name: found[name] for name in real} == dict.fromkeys(real, ("answered", "")), stderr
    for name in real:
        snapshot = json.loads((folder / f"{name}.json").read_bytes())
        assert snapshot["machine"]["host"]["outcome"] == "ok"
    late = ("timed-out", f"no answer within {DEADLINE} s")
    for name, one in expected.items():
        # what a flood comes to first, on a busy machine: its size, or its time
        assert found[name] in ([one, late] if one == LARGE else [late if one == HUNG else one]), (
            name
        )
    assert f"{len(real)} of {len(real) + len(expected)} machines have answered" in stderr
    assert "Traceback" not in stderr and "internal error" not in stderr
    kept = {path.name for path in folder.iterdir()}
    assert kept == {"fleet.json", *(f"{name}.json" for name in real)}
    assert wait_for(lambda: not running_commands(word)), running_commands(word)


def test_ten_hostile_hosts_among_twenty_by_ansible(tmp_path: Path) -> None:
    word = f"9{secrets.randbelow(10**9):09d}"
    programs = hostile(word)
    real = usual_hosts(REAL, troubles=())
    bad, expected = [], {}
    for number, (kind, (program, shown)) in enumerate(programs.items(), REAL + 1):
        name, command = f"gpu{number:02d}", ""
        if kind == "noise":  # ssh's own exit status, and a byte that no UTF-8 has
            command, shown = (
                "printf '\\377' >&2; exit 255",
                ("unreachable", "the connection broke"),
            )
        if kind == "flood":  # not even its shell does what it is told to
            command = f"yes {word}4"
        host = Host(name, "well", real[0].python, real[0].minor, ("bad",))
        bad.append(replace(host, program=program, command=command))
        expected[name] = shown
    with serve_hosts([*real, *bad]) as hosts:
        done = envcheck(
            "fleet", "collect", "-i", hosts.inventory, tmp_path / "fleet", "--level=quick",
            "--forks=10", f"--deadline={DEADLINE}", timeout=PATIENCE, **hosts.variables,
        )  # fmt: skip
        assert done.returncode == 4, done.stderr.decode()
        names = [host.name for host in real]
        check(tmp_path / "fleet", done.stderr.decode(), names, expected, word)


def test_ten_hostile_nodes_among_twenty_by_slurm(tmp_path: Path) -> None:
    word = f"8{secrets.randbelow(10**9):09d}"
    nodes = [SlurmNode(f"gpu{n:02d}") for n in range(1, REAL + 1)]
    expected = {}
    for number, (program, shown) in enumerate(hostile(word).values(), REAL + 1):
        nodes.append(SlurmNode(f"gpu{number:02d}", "hostile", program=program))
        expected[f"gpu{number:02d}"] = shown
    with serve_cluster(nodes) as cluster:
        done = envcheck(
            "fleet", "collect", "--slurm", tmp_path / "fleet", "--level=quick", "--forks=6",
            f"--deadline={DEADLINE}", "--immediate=300", timeout=PATIENCE, **cluster.variables,
        )  # fmt: skip
        assert done.returncode == 4, done.stderr.decode()
        names = [node.name for node in nodes[:REAL]]
        check(tmp_path / "fleet", done.stderr.decode(), names, expected, word)
        assert wait_for(lambda: not cluster.queued() and not cluster.processes())
