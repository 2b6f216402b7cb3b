"""`envcheck fleet install` with a small stack: a roll-out, step by step."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli import environment
from processes import PATIENCE
from rollout_world import Rollout, results, rollout
from ssh_hosts import Host

from envcheck.fleet.engines.ansible import CONTENT

pytestmark = pytest.mark.fleet

ENVS = "$HOME/.local/share/envcheck/envs"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rollout]:
    others = [
        Host("none01", "none", "", 0, ("rack2",)),
        Host("dead01", "dead", "", 0, ("rack2",)),
    ]
    with rollout(tmp_path_factory.mktemp("rollout"), 3, others) as made:
        yield made


def test_the_plan_names_those_that_cannot_have_it_before_anything_starts(world: Rollout) -> None:
    shown = world.install("--plan", code=4)
    (group,) = shown["groups"]
    assert group["machines"] == ["gpu01", "gpu02", "gpu03"]
    assert (group["stack"], group["release"], group["files"]) == ("demo", "2.0", 3)
    left = {one["hosts"]: one["reason"] for one in shown["left_out"]}
    assert "there is no python3" in left["none01"]
    codes = {one["hosts"]: one["exit_code"] for one in shown["left_out"]}
    assert codes == {"none01": 4, "dead01": 4} and left["dead01"]
    assert shown["waves"] == [1, 1, 1]
    assert world.on("gpu01", "ls -A ~/.local ~/.cache 2>/dev/null") == ""


def test_one_machine_first(world: Rollout) -> None:
    shown = world.install("--release", "1.0", "--limit", "gpu01")
    assert results(shown) == {"gpu01": "installed"}
    (end,) = shown["machines"]
    assert "GPU" in end["verdict"] and Path(end["log"]).read_text().count("install: status 0")
    assert world.version("gpu01") == "1.0"


def test_it_stops_and_what_failed_is_as_it_was(world: Rollout) -> None:
    full = f"mkdir -p {ENVS} && mount -t tmpfs -o nr_inodes=150 tmpfs {ENVS}"
    assert world.hosts.ssh("gpu02", full).returncode == 0
    shown = world.install("--limit", "rack1", "--waves", "1,100%", "--forks", "1", code=5)
    assert results(shown) == {
        "gpu01": "installed", "gpu02": "failed", "gpu03": "not-begun",
    }  # fmt: skip
    ends = {end["name"]: end for end in shown["machines"]}
    assert (ends["gpu01"]["wave"], ends["gpu02"]["wave"]) == (1, 2)
    assert ends["gpu02"]["exit_code"] == 5 and "No space left" in ends["gpu02"]["reason"]
    assert "--max-fail" in shown["stopped"]
    assert world.on("gpu02", f"ls {ENVS}/demo 2>/dev/null") == ""
    assert world.on("gpu03", "ls -A ~/.local ~/.cache 2>/dev/null") == ""


def test_run_again_it_goes_on_with_what_is_left(world: Rollout) -> None:
    assert world.hosts.ssh("gpu02", f"umount {ENVS}").returncode == 0
    shown = world.install("--limit", "rack1", "--waves", "1,34%,100%")
    ends = {end["name"]: end for end in shown["machines"]}
    assert results(shown) == {
        "gpu01": "already", "gpu02": "installed", "gpu03": "installed",
    }  # fmt: skip
    assert [ends[f"gpu0{n}"]["wave"] for n in (1, 2, 3)] == [1, 2, 3]
    assert "carried" not in ends["gpu01"] and ends["gpu03"]["carried"] > 0
    assert {world.version(name) for name in ends} == {"2.0"}
    assert world.on("gpu03", "find ~/.cache/envcheck-fleet/*/files -type f") == ""


def test_the_playbook_alone_does_the_same(world: Rollout, tmp_path: Path) -> None:
    fit = world.keep / "envcheck_fit.yaml"
    argv = [
        "ansible-playbook",
        "-i",
        world.hosts.inventory,
        "-i",
        fit,
        "-e",
        "envcheck_hosts=envcheck_fit",
    ]
    beside = Path(sys.executable).parent
    done = subprocess.run(
        [*argv, CONTENT / "install.yml"],
        env=environment(
            **(world.home.variables | world.hosts.variables),
            PATH=f"{beside}:{os.environ['PATH']}",
            LC_ALL="C.UTF-8",
        ),
        cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    recap = [
        line.split() for line in done.stdout.rpartition("PLAY RECAP")[2].splitlines()[1:] if line
    ]
    assert {line[0]: line[2:4] for line in recap} == {
        f"gpu0{n}": ["ok=1", "changed=0"] for n in (1, 2, 3)
    }


def test_rollback_goes_back_once(world: Rollout) -> None:
    shown = world.undo("rollback", "--limit", "rack1")
    assert results(shown) == {"gpu01": "back"} | {f"gpu0{n}": "nothing" for n in (2, 3)}
    assert world.version("gpu01") == "1.0" and world.version("gpu02") == "2.0"
    assert "nothing before" in next(e["reason"] for e in shown["machines"] if e["name"] == "gpu02")
    again = world.undo("rollback", "--limit", "gpu01", code=4)
    assert results(again) == {"gpu01": "nothing"}
    assert world.version("gpu01") == "1.0"
    words = world.fleet(
        "rollback", "-i", world.hosts.inventory, "--limit", "gpu01", "--yes", code=4
    )
    assert "There was nothing to do on 1 machine" in words.stdout


def test_uninstall_leaves_nothing(world: Rollout) -> None:
    world.install("--limit", "gpu03")
    world.on("gpu03", "mkdir -p ~/.cache/envcheck-fleet/mine")
    (end,) = world.undo("uninstall", "other", "--limit", "gpu03", code=2)["machines"]
    assert end["result"] == "failed" and "other" in end["reason"]
    assert world.version("gpu03") == "2.0"
    assert results(world.undo("uninstall", "--limit", "gpu03")) == {"gpu03": "removed"}
    files = "find ~ -type f ! -name '*.lock' ! -path '*/.local/state/*'"
    assert (
        world.on("gpu03", files) == "" and world.on("gpu03", "ls ~/.cache/envcheck-fleet") == "mine"
    )
    assert results(world.undo("uninstall", "--limit", "gpu03", code=4)) == {"gpu03": "nothing"}


def test_ansible_lint_is_silent(world: Rollout, tmp_path: Path) -> None:
    lint = shutil.which("ansible-lint", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if lint is None:
        pytest.skip("there is no ansible-lint")
    for name in ("install", "rollback", "uninstall"):
        folder = tmp_path / name
        shutil.copytree(CONTENT, folder)
        done = subprocess.run(
            [lint, "--offline", "--nocolor", f"{name}.yml"],
            cwd=folder, env=environment(HOME=str(tmp_path)), capture_output=True, text=True,
            timeout=PATIENCE, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
