"""The tests' own hosts: each is a machine of its own over sshd, and nothing of them stays."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import running_commands, wait_for
from ssh_hosts import MINORS, SUDO_PASSWORD, Host, SshHosts, python_of, serve_hosts, usual_hosts

pytestmark = pytest.mark.fleet
HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def hosts() -> Iterator[SshHosts]:
    with serve_hosts(usual_hosts()) as made:
        yield made


def test_each_is_a_machine_of_its_own(hosts: SshHosts) -> None:
    well = hosts.of("well")
    assert len(hosts.hosts) == 27
    installed = [minor for minor in MINORS if python_of(f"3.{minor}")]
    assert len({host.minor for host in well}) > 1 or len(installed) < 2
    for host in well[:8]:
        told = hosts.ssh(
            host.name, "hostname; python3 --version; ls -A /tmp /root; touch /tmp/mine /var/mine"
        )
        assert told.stdout.split()[:1] == [host.name], told.stderr
        assert f"Python 3.{host.minor}." in told.stdout
        assert "mine" not in told.stdout, "what another host has in its /tmp"
    assert not Path("/tmp/mine").exists() and not Path("/var/mine").exists()


def test_they_reach_the_bridge_and_nothing_else(hosts: SshHosts) -> None:
    told = hosts.ssh("gpu01", "ip route; ip -o -4 address show dev eth0")
    assert f"inet {hosts['gpu01'].address}/24" in told.stdout
    assert "default" not in told.stdout, told.stdout


def test_troubles_are_what_they_are_called(hosts: SshHosts) -> None:
    (host,) = hosts.of("closed")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host.address, 22), 5.0)
    (host,) = hosts.of("hung")
    with socket.create_connection((host.address, 22), 5.0) as silent:
        silent.settimeout(0.3)
        with pytest.raises(TimeoutError):
            silent.recv(1)
    (host,) = hosts.of("full")
    full = hosts.ssh(
        host.name, "for f in /tmp /root /home/op /var/tmp; do echo x > $f/x || echo full; done"
    )
    assert full.stdout.split() == ["full"] * 4, full
    (host,) = hosts.of("none")
    assert "not found" in hosts.ssh(host.name, "python3").stderr
    (host,) = hosts.of("flood")
    assert len(hosts.ssh(host.name, "python3 - | head -c 5000000").stdout) == 5_000_000
    (host,) = hosts.of("escapes")
    assert "\x1b]0;owned" in hosts.ssh(host.name, "python3 -").stdout
    (host,) = hosts.of("dead")
    assert hosts.ssh(host.name, "true").returncode == 255
    (host,) = hosts.of("sudo")
    assert hosts.ssh(host.name, "id -un; sudo -n id -un").stdout == "op\n"
    as_root = hosts.ssh(host.name, f"echo '{SUDO_PASSWORD}' | sudo -S -p '' id -un")
    assert as_root.stdout == "root\n", as_root.stderr


def test_a_plug_is_pulled(hosts: SshHosts) -> None:
    name = hosts.of("well")[-1].name
    hosts.kill(name)
    assert wait_for(lambda: hosts.ssh(name, "true").returncode == 255)


def test_nothing_stays_when_the_tests_are_killed(tmp_path: Path) -> None:
    code = (
        f"import sys; sys.path[:0] = [{str(HERE)!r}]\n"
        "from ssh_hosts import *\n"
        "with serve_hosts([Host('a', python=sys.executable), Host('b', 'closed')]) as made:\n"
        "    print(made.scratch, made.hosts[0].address, flush=True); sys.stdin.read()"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None and child.stdin is not None
    told = child.stdout.readline().split()
    if not told:
        pytest.skip("no hosts here: the other tests of this file say why")
    scratch, address = told
    network = address.rpartition(".")[0]
    child.send_signal(signal.SIGKILL)
    child.wait()
    assert wait_for(lambda: not running_commands(scratch)), running_commands(scratch)
    gone = wait_for(lambda: network not in _routes())
    for path in sorted(Path(scratch).rglob("*"), reverse=True):  # what no kernel takes away
        path.rmdir() if path.is_dir() else path.unlink()
    Path(scratch).rmdir()
    assert gone, _routes()
    assert scratch not in Path("/proc/mounts").read_text()


def _routes() -> str:
    return subprocess.run(["ip", "route"], capture_output=True, text=True, check=True).stdout


def test_host_names_of_a_hundred() -> None:
    names = [host.name for host in usual_hosts(100)]
    assert len({*names}) == 100
    assert isinstance(usual_hosts(24)[0], Host)
