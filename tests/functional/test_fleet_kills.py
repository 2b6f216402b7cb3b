"""kill -9 of `fleet collect` and `fleet install` at any moment, and full disks: nothing is lost.

ENVCHECK_KILLS says how often each is killed.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli import PYTHON, environment
from processes import wait_for
from rollout_world import Rollout, results, rollout

from envcheck.facts import snapshot as snapshots
from envcheck.fleet.folder import FleetFolder

pytestmark = pytest.mark.drill
KILLS = int(os.environ.get("ENVCHECK_KILLS", "32"))
PATIENCE = 900.0  # seconds: other things run on this machine, too
NAMES = ["here1", "here2", "here3", "here4"]


@pytest.fixture
def inventory(tmp_path: Path) -> Path:
    """Machines that are this one."""
    beside = Path(sys.executable).parent / "ansible-playbook"
    if not beside.exists() and shutil.which("ansible-playbook") is None:
        pytest.skip("there is no ansible-playbook on this machine")
    (tmp_path / "ansible.cfg").touch()
    (tmp_path / "tmp").mkdir()
    found = tmp_path / "hosts.ini"
    found.write_text(
        f"here[1:4] ansible_connection=local ansible_python_interpreter={sys.executable}\n"
    )
    return found


def start(inventory: Path, folder: Path) -> subprocess.Popen[bytes]:
    home = inventory.parent
    argv = [PYTHON, "-m", "envcheck", "fleet", "collect", "-i", inventory, folder, "--level=quick"]
    return subprocess.Popen(
        [*argv, "--deadline=600"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=environment(ANSIBLE_HOME=str(home / "ansible"), ANSIBLE_CONFIG=str(home / "ansible.cfg"),
                        TMPDIR=str(home / "tmp")),
    )  # fmt: skip


def of_run(variable: bytes) -> list[bytes]:
    """Command lines of processes with this in their environment."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if variable in (entry / "environ").read_bytes():
                found.append((entry / "cmdline").read_bytes())
        except OSError:
            continue
    return found


def killed(process: subprocess.Popen[bytes], after: float) -> None:
    time.sleep(after)
    process.kill()
    process.communicate(timeout=PATIENCE)


def answered(folder: Path) -> set[str]:
    """Those whose Snapshot is there: each is whole, and fleet.json claims no other."""
    kept = {path.stem for path in folder.glob("*.json")} - {"fleet"}
    for name in kept:
        snapshots.load((folder / f"{name}.json").read_bytes())
    if (folder / "fleet.json").exists():
        shown = {m.name for m in FleetFolder(folder).members() if m.outcome == "answered"}
        assert shown <= kept
    return kept


def test_collect_killed_anywhere_keeps_what_came(inventory: Path, tmp_path: Path) -> None:
    folder, rng = tmp_path / "fleet", random.Random()
    variable = f"TMPDIR={tmp_path}/tmp".encode()
    began = time.monotonic()
    whole = start(inventory, folder)
    _, printed = whole.communicate(timeout=PATIENCE)
    takes = time.monotonic() - began
    assert whole.returncode == 0, printed.decode()
    for number in range(KILLS):
        if number % 4 == 0:
            shutil.rmtree(folder)
        before = answered(folder) if folder.exists() else set()
        killed(start(inventory, folder), rng.uniform(0.0, takes))
        assert wait_for(lambda: not of_run(variable), PATIENCE), of_run(variable)
        if folder.exists():
            assert before <= answered(folder), "what came earlier is lost"
    last = start(inventory, folder)
    _, printed = last.communicate(timeout=PATIENCE)
    assert last.returncode == 0 and answered(folder) == {*NAMES}, printed.decode()


def mounted(folder: Path, options: str) -> None:
    mount = ["mount", "-t", "tmpfs", "-o", options, "small", str(folder)]
    if os.geteuid() or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a small file system takes root")


@pytest.mark.parametrize("room", [8, 32, 64, 96, 128])
def test_collect_onto_a_full_disk(inventory: Path, tmp_path: Path, room: int) -> None:
    """room: KiB. What does not fit is told; what is there is whole; with room, all of it comes."""
    folder = tmp_path / "fleet"
    folder.mkdir()
    mounted(folder, f"size={room}k")
    try:
        done = start(inventory, folder)
        _, printed = done.communicate(timeout=PATIENCE)
        last = printed.decode().splitlines()[-1]
        kept = answered(folder)
        assert b"Traceback" not in printed and b"internal error" not in printed
        if done.returncode == 0:
            assert kept == {*NAMES}
        else:
            assert done.returncode == 4 and "No space left on device" in last, printed.decode()
        assert (
            subprocess.run(["mount", "-o", "remount,size=8m", folder], check=False).returncode == 0
        )
        again = start(inventory, folder)
        _, printed = again.communicate(timeout=PATIENCE)
        assert again.returncode == 0 and answered(folder) == {*NAMES}, printed.decode()
    finally:
        subprocess.run(["umount", folder], check=True)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rollout]:
    with rollout(tmp_path_factory.mktemp("kills"), 2, []) as made:
        yield made


def install(world: Rollout, release: str, keep: Path) -> subprocess.Popen[bytes]:
    argv = [PYTHON, "-m", "envcheck", "fleet", "install", "--stack", world.demo.stack, "--index",
            world.demo.index.url, "-i", world.hosts.inventory, "--keep", keep, "--yes", "--waves=100%",
            "--max-fail=100%", "--release", release]  # fmt: skip
    return subprocess.Popen(
        argv, env=environment(**(world.home.variables | world.hosts.variables)),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def is_quiet(world: Rollout) -> bool:
    """Nothing of envcheck's runs on any machine."""
    script = "grep -ls ENVCHECK_RUN= /proc/[0-9]*/environ | wc -l"
    return all(world.on(host.name, script) == "0" for host in world.hosts.hosts)


def test_install_killed_anywhere_leaves_an_environment_that_works(world: Rollout) -> None:
    rng = random.Random()
    shown = world.install("--release", "1.0", "--waves", "100%")
    assert set(results(shown).values()) == {"installed"}
    began = time.monotonic()
    shown = world.install("--release", "2.0", "--waves", "100%")
    takes = time.monotonic() - began
    assert set(results(shown).values()) == {"installed"}
    for number in range(KILLS):
        # what both have is in use before: it must never go without the other being there
        release = ("1.0", "2.0")[number % 2]
        killed(install(world, release, world.keep), rng.uniform(0.0, takes))
        assert wait_for(lambda: is_quiet(world), PATIENCE)
        for host in world.hosts.hosts:
            assert world.version(host.name) in ("1.0", "2.0"), host.name
    shown = world.install("--release", "2.0", "--waves", "100%")
    assert set(results(shown).values()) <= {"installed", "already"}
    assert {world.version(host.name) for host in world.hosts.hosts} == {"2.0"}
