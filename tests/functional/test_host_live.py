"""The host and containers probes for real, on this machine, in every Python that is to run them."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from processes import stretched, wait_for

from envcheck.collector.probes import containers
from envcheck.collector.runtime import process
from envcheck.collector.runtime.context import Context
from envcheck.collector.worker import forked
from envcheck.collector.worker import probe as worker
from envcheck.facts.containers import Containers
from envcheck.facts.host import Host

ROOT = Path(__file__).resolve().parents[2]
TYPES = {"host": Host, "containers": Containers}


def run(
    module: str, python: str = sys.executable, env: dict[str, str] | None = None, **params: Any
) -> Any:
    """The probe's facts, decoded strictly, as its own process on this machine gives them."""
    argv = worker.command([python, "-I", "-S"], f"envcheck.collector.probes.{module}", params)
    result = process.run(argv, 30, env=env)
    assert result.ok, result.tail(30)
    facts = worker.parse(result)["facts"]
    return msgspec.convert(facts, TYPES[module])


def mount_points() -> list[str]:
    table = Path("/proc/self/mountinfo").read_text().splitlines()
    return [line.split()[4] for line in table]


def test_this_host() -> None:
    host: Host = run("host", paths=[str(ROOT)])
    assert host.architecture == os.uname().machine
    assert host.kernel == os.uname().release
    assert isinstance(host.memory_total_mib, int)
    assert host.memory_total_mib > 0
    assert host.cpus_allowed == len(os.sched_getaffinity(0))
    (target,) = [disk for disk in host.disks if "target" in disk.roles]
    real = os.statvfs(ROOT)
    assert target.total_mib == real.f_blocks * real.f_frsize // 1048576
    if isinstance(target.mount_point, str):
        assert str(ROOT).startswith(target.mount_point)
    else:  # in a chroot the mount that holds it may be out of sight
        assert target.mount_point.unavailable == "absent"
        assert not any(str(ROOT).startswith(point) for point in mount_points())


def program(folder: Path, name: str, text: str) -> None:
    file = folder / name
    file.write_text("#!/bin/sh\n" + text)
    file.chmod(0o755)


def ask(folder: Path, *names: str) -> dict[tuple[str, str], process.Result]:
    context = Context({"PATH": f"{folder}:/usr/bin:/bin"})
    return containers.ask(context, {name: str(folder / name) for name in names})


def test_engines_are_asked_side_by_side(tmp_path: Path) -> None:
    # Each waits for the other to have started: asked one after another, both would wait in vain.
    for name, other in (("docker", "podman"), ("podman", "docker")):
        wait = f'touch "{tmp_path}/{name}-here"\nfor i in $(seq 100); do\n'
        wait += f'[ -e "{tmp_path}/{other}-here" ] && echo "{name} version 1.2.3" && exit 0\n'
        program(tmp_path, name, wait + "sleep 0.05\ndone\nexit 1\n")
    answers = ask(tmp_path, "docker", "podman")
    assert all(answer.ok for answer in answers.values())
    assert answers["podman", "version"].stdout == b"podman version 1.2.3\n"


# bounded: children that hang, crash and fail


def hang() -> None:
    while True:
        time.sleep(60)


def fail() -> None:
    raise PermissionError(13, "Permission denied")


def crash() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_calls_that_hang_crash_and_fail_do_not_keep_the_others() -> None:
    calls: list[Callable[[], Any]] = [hang, lambda: {"x": [1, None, "é\udcff"]}, fail, crash]
    hung, good, failed, crashed = forked.call_all(calls, stretched(0.5))
    assert hung == ("timeout", None)
    assert good == ("ok", {"x": [1, None, "é\udcff"]})
    assert failed[1]["unavailable"] == "no-permission"
    assert (crashed[0], crashed[1]["unavailable"]) == ("error", "error")


def test_bounded_calls_leave_no_child_behind() -> None:
    before = children()  # servers of other tests
    forked.call_all([hang, hang], 0.05)
    assert wait_for(lambda: children() <= before)


def children() -> set[str]:
    path = Path(f"/proc/self/task/{os.getpid()}/children")
    if not path.exists():
        pytest.skip("this kernel does not list a process's children")
    return set(path.read_text().split())


# A mount whose server is gone

DEAD = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
NEWNS, REC_PRIVATE, NODEV_NOSUID = 0x20000, (1 << 14) | (1 << 18), 6
point = sys.argv[1].encode()
if libc.unshare(NEWNS) or libc.mount(b"none", b"/", None, REC_PRIVATE, None):
    sys.exit(77)
fuse = os.open("/dev/fuse", os.O_RDWR)  # and nobody will ever answer what the kernel asks
os.set_inheritable(fuse, True)
options = b"fd=%d,rootmode=40000,user_id=0,group_id=0" % fuse
if libc.mount(b"dead", point, b"fuse.sshfs", NODEV_NOSUID, options):
    sys.exit(77)
os.execv(sys.argv[2], sys.argv[2:])
"""


def test_a_dead_mount_costs_its_deadline_and_no_more(tmp_path: Path) -> None:
    if os.geteuid() != 0 or not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("needs root and /dev/fuse to make a mount that never answers")
    probe = worker.command([sys.executable, "-I", "-S"], "envcheck.collector.probes.host", {})
    env = {**os.environ, "XDG_CACHE_HOME": f"{tmp_path}/cache"}
    result = process.run([sys.executable, "-c", DEAD, str(tmp_path), *probe], 30, env=env)
    if result.code == 77:
        pytest.skip("this kernel or container allows no mount of one's own")
    host = msgspec.convert(worker.parse(result)["facts"], Host)
    cache = next(disk for disk in host.disks if "cache" in disk.roles)
    home = next(disk for disk in host.disks if "home" in disk.roles)
    assert cache.free_mib.unavailable == "timeout"  # type: ignore[union-attr]
    assert (cache.filesystem, cache.network, cache.mount_point) == (
        "fuse.sshfs",
        True,
        str(tmp_path),
    )
    assert isinstance(home.free_mib, int)
