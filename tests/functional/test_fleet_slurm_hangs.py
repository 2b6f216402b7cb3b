"""The script of `envcheck fleet slurm-prolog` ends whatever hangs: a disk, a grandchild, slurmctld.

Each test ends only because the script does: what hangs goes on hanging until the script has ended.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from processes import everything, ran, wait_for
from slurm_cluster import SlurmCluster, SlurmNode, serve_cluster
from slurm_prologs import WrittenSlurm, executable, log_of, looks_at, made, run

pytestmark = pytest.mark.fleet

GPU_NODE = "gpu07|gpu|up|idle|gpu:h100:8|(null)|gpu07|Unknown|none"


def call(*words: object) -> None:
    done = ran([str(word) for word in words])
    if done.returncode:
        pytest.skip(f"{words[0]}: {done.stderr.decode().strip()}")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """An ext4 of its own."""
    if os.geteuid():
        pytest.skip("a disk of the test's own needs root")
    image, point = tmp_path / "image", tmp_path / "disk"
    image.write_bytes(bytes(16 << 20))
    point.mkdir()
    call("mkfs.ext4", "-q", image)
    call("mount", "-o", "loop", image, point)
    yield point
    subprocess.run(["umount", "-l", point], check=True)


@contextmanager
def frozen(disk: Path) -> Iterator[None]:
    """Whoever writes there is stuck in the kernel, and cannot be killed."""
    call("fsfreeze", "--freeze", disk)
    try:
        yield
    finally:
        subprocess.run(["fsfreeze", "--unfreeze", disk], check=True)


def stuck_on(disk: Path) -> list[int]:
    """Processes that wait in the kernel to write there."""
    named = [one for one in everything() if str(disk).encode() in one.command]
    return [one.pid for one in named if one.state == "D"]


def test_a_doctor_that_is_stuck_in_the_kernel(tmp_path: Path, disk: Path) -> None:
    slurm = WrittenSlurm(tmp_path, GPU_NODE)
    script = made(tmp_path, f"exec sh -c 'echo x >{disk}/file'", "--deadline=1")
    with frozen(disk):
        done = run(tmp_path, script)
        assert stuck_on(disk)
    assert (done.returncode, done.stdout, slurm.updates()) == (0, b"", [])
    assert "could not look: no answer in time" in log_of(tmp_path)


def test_a_log_on_a_disk_that_hangs(tmp_path: Path, disk: Path) -> None:
    slurm = WrittenSlurm(tmp_path, GPU_NODE)
    script = made(tmp_path, looks_at(tmp_path, "driver-update"))
    script = script.replace(f"LOG={tmp_path}/log", f"LOG={disk}/log")
    with frozen(disk):
        done = run(tmp_path, script)
        assert stuck_on(disk)
    assert (
        done.returncode == 1 and len(slurm.updates()) == 1
    )  # and the node is drained all the same


def test_a_grandchild_that_keeps_the_output_open(tmp_path: Path) -> None:
    WrittenSlurm(tmp_path, GPU_NODE)
    well = looks_at(tmp_path, "healthy")
    sleeper = executable(tmp_path / "sleeper", f"echo $$ >{tmp_path}/pid; exec sleep 3600")
    waits = f"until [ -s {tmp_path}/pid ]; do sleep 0.1; done"
    done = run(tmp_path, made(tmp_path, f"setsid {sleeper} & {waits}; {well}"))
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)  # it was there until now
    assert done.returncode == 0 and " healthy\n" in log_of(tmp_path)


@pytest.fixture
def cluster() -> Iterator[SlurmCluster]:
    with serve_cluster([SlurmNode("gpu01", gpus=2), SlurmNode("gpu02", gpus=2)]) as made_cluster:
        yield made_cluster


def test_a_slurmctld_that_is_stopped(cluster: SlurmCluster, tmp_path: Path) -> None:
    """The script was to drain, or to ask whether there are GPUs: the job goes on."""
    script = made(tmp_path, looks_at(tmp_path, "driver-update"), path=cluster.scratch / "bin")
    variables = {"SLURM_CONF": f"{cluster.scratch}/slurm.conf", "SLURMD_NODENAME": "gpu01"}
    with cluster.slurmctld_stopped():
        for gpus in ("0,1", ""):
            done = run(tmp_path, script, SLURM_JOB_GPUS=gpus, **variables)
            assert (done.returncode, done.stdout, done.stderr) == (0, b"", b""), log_of(tmp_path)
    assert "could not decide: exit 4: envcheck: sinfo" in log_of(tmp_path)
    assert "Slurm did not say whether it has GPUs here: " in log_of(tmp_path)
    assert wait_for(lambda: cluster.slurm("sinfo", "-h", "-o", "%T", code=None).split() == ["idle"])
