"""Options of one start, in real containers."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from alone import ALONE
from podman import PodmanWorld
from processes import PATIENCE
from started import Installed, installed, plain_start

# Without http.server: that asks the name server for its own name first. Ends by itself once it was
# reached: what podman changes in the network is taken back only at a container's end.
GREETER = """
import socket
server = socket.create_server(("", 8000))
server.settimeout(20)
server.accept()[0].sendall(b"hello")
"""

# argv: the command that serves. Prints what was received.
REACH = """
import socket, subprocess, sys, time
serves = subprocess.Popen(sys.argv[1:])
got = b""
while serves.poll() is None and not got:
    try:
        with socket.create_connection(("127.0.0.1", 18642), timeout=2) as connection:
            got = connection.recv(5)
    except OSError:
        time.sleep(0.1)
print(got.decode())
sys.exit(serves.wait())
"""


@pytest.fixture
def image(podman_world: PodmanWorld, tmp_path: Path) -> Installed:
    found = podman_world.id_of(podman_world.image("base"))
    start = plain_start("podman", str(shutil.which("podman")), found)
    return installed(tmp_path / "home", podman_world.variables, start)


def test_no_limit_on_processes(image: Installed) -> None:
    limit = (
        'cat "/sys/fs/cgroup/pids$(sed -n s/.*:pids://p /proc/self/cgroup)/pids.max"'
        " /sys/fs/cgroup/pids/pids.max /sys/fs/cgroup/pids.max 2>/dev/null | head -n 1"
    )
    assert image.run("sh", "-c", limit).stdout in (b"2048\n", b"")
    assert image.change(pids_unlimited=True).run("sh", "-c", limit).stdout in (b"max\n", b"")


def test_a_device_and_what_the_engine_alone_knows(image: Installed) -> None:
    options = ["--device", "/dev/fuse", "--engine-arg=--hostname=here"]
    if not Path("/dev/fuse").exists():
        options = options[2:]
    script = "echo $(cat /etc/hostname); [ ! -e /dev/fuse ] || echo fuse"
    done = image.envcheck("run", *options, "sh", "-c", script)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [b"here", b"fuse"][: len(options)]
    gone = image.change(devices=["/dev/infiniband-not-here"]).run("true")
    assert gone.returncode == 0, "what start.json once said is not what is there now"


def test_a_port_is_reached(image: Installed, no_network: None) -> None:
    """In a network of its own: rules that another's killed container left there would lead astray."""
    options = ["-p", "127.0.0.1:18642:8000", "--network=bridge"]
    greeter = ["python3", "-c", GREETER]
    assert image.start is not None
    engine = [image.start.program, "run", "--rm", *options, image.start.image]
    plain = _reached(image, [*engine, *greeter])
    if plain.stdout != "hello\n":
        pytest.skip(f"podman's own -p is not reached here: {plain.stderr[-200:]}")
    ours = [sys.executable, "-m", "envcheck", "run", *options, "--"]
    got = _reached(image, [*ours, *greeter])
    assert (got.stdout, got.returncode) == ("hello\n", 0), got.stderr


def _reached(image: Installed, serves: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*ALONE, sys.executable, "-c", REACH, *serves],
        env=image.environment(),
        cwd=image.work,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def test_without_and_with_another_entrypoint(image: Installed) -> None:
    echo = image.change(entrypoint="echo").run("hello")
    assert echo.stdout == b"hello\n"
    done = image.envcheck("run", "--entrypoint=", "echo", "bare")
    assert (done.returncode, done.stdout) == (0, b"bare\n")
