"""A network of machines that are namespaces: each has a name, a hosts file and interfaces of its own.

with serve_lab(16) as lab:
    lab.slow(3); lab.cut(4, 5); lab.hole(6); lab.misname(7); lab.clock(8); lab.hang_in_round(9, 4)
    lab.hosts                          # SshHosts, whose inventory has their addresses

A process holds each machine's namespaces; with it goes the machine, also where the test is killed.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from processes import wait_for
from ssh_hosts import Host, SshHosts, serve_hosts

# Of two machines that Gloo joins, the one with the higher address connects: a wrong address that is higher
# would not be noticed.
NETWORK, ELSEWHERE = "10.77.0", "10.70.0"
MTU_OF_HOLE = 1000

# An hour ahead. (Of a clock that is behind, glibc's own waits would end at once, which a real one's do not.)
_CLOCK = """\
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t id, struct timespec *t) {
    int code = syscall(SYS_clock_gettime, id, t);
    if (id == CLOCK_REALTIME) t->tv_sec += 3600;
    return code;
}
int gettimeofday(struct timeval *t, void *zone) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    t->tv_sec = now.tv_sec;
    t->tv_usec = now.tv_nsec / 1000;
    return 0;
}
time_t time(time_t *t) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (t) *t = now.tv_sec;
    return now.tv_sec;
}
"""


def name_of(number: int) -> str:
    return f"gpu{number + 1:02d}"


class NetworkLab:
    def __init__(self, hosts: SshHosts, count: int) -> None:
        self.hosts, self.count = hosts, count
        self.over = threading.Event()
        self.holders = [self._hold("switch")]
        self._run(0, "ip link add br0 type bridge", "ip link set br0 up", "ip link set lo up")
        for number in range(count):
            self._join(number)

    def _hold(self, name: str) -> subprocess.Popen[bytes]:
        """The process that holds a machine's namespaces."""
        file = self.hosts.scratch / f"{name}.hosts"
        file.write_text("127.0.0.1 localhost\n")
        script = f"hostname {name}; mount --bind {file} /etc/hosts; echo held; exec sleep infinity"
        held = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "--mount", "--uts", "sh", "-ec",
             script],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            start_new_session=True,
        )  # fmt: skip
        assert held.stdout is not None
        assert held.stderr is not None
        if held.stdout.readline() != b"held\n":
            pytest.skip(f"no namespaces here: {held.stderr.read().decode()}")
        return held

    def _join(self, number: int) -> None:
        name = name_of(number)
        held = self._hold(name)
        self.holders.append(held)
        self._run(
            0,
            f"ip link add p{number} type veth peer name eth0 netns {held.pid}",
            f"ip link set p{number} master br0 up",
        )
        self._run(
            number + 1,
            "ip link set lo up",
            f"ip addr add {NETWORK}.{number + 1}/24 dev eth0",
            "ip link set eth0 up",
            "ip link add eth1 type veth peer name eth2",
            f"ip addr add {ELSEWHERE}.{number + 1}/24 dev eth1",
            "ip link set eth1 up",
            "ip link set eth2 up",
        )
        self._name(number, NETWORK)
        enter = f"nsenter --target {held.pid} --net --mount --uts"
        (self.hosts.scratch / name / "enter").write_text(enter)

    def _name(self, number: int, network: str) -> None:
        lines = ["127.0.0.1 localhost", f"{network}.{number + 1} {name_of(number)}"]
        file = self.hosts.scratch / f"{name_of(number)}.hosts"
        file.write_text("\n".join([*lines, ""]))

    def python(self, number: int) -> str:
        """A python3 that enters a machine by files, as one in another process namespace has to."""
        folder = self.hosts.scratch / name_of(number)
        for kind in ("net", "uts"):
            (folder / kind).touch()
            source = f"/proc/{self.holders[number + 1].pid}/ns/{kind}"
            subprocess.run(["mount", "--bind", source, folder / kind], check=True)
        hosts = self.hosts.scratch / f"{name_of(number)}.hosts"
        program = folder / "python-there"
        program.write_text(
            f"#!/bin/sh\nexec nsenter --net={folder}/net --uts={folder}/uts unshare --mount sh -c"
            f" 'mount --bind {hosts} /etc/hosts; exec env $(cat {folder}/environ) {sys.executable}"
            """ "$@"' sh "$@"\n"""
        )
        program.chmod(0o755)
        (folder / "environ").touch()
        return str(program)

    def name_all(self) -> None:
        """Every machine knows every name, as on a cluster; its own stays as it is."""
        for number in range(self.count):
            with (self.hosts.scratch / f"{name_of(number)}.hosts").open("a") as file:
                others = (one for one in range(self.count) if one != number)
                file.writelines(f"{NETWORK}.{one + 1} {name_of(one)}\n" for one in others)

    def _run(self, place: int, *commands: str) -> None:
        """In the namespace of the switch (0) or of a machine (its number and 1)."""
        for command in commands:
            enter = ["nsenter", "--target", str(self.holders[place].pid), "--net"]
            done = subprocess.run(
                [*enter, *command.split()], capture_output=True, text=True, check=False
            )
            assert not done.returncode, f"{command}: {done.stderr}"

    def slow(self, number: int, *, both: bool = True) -> None:
        """It sends by a token bucket; both: it also receives by one."""
        bucket = "root tbf rate 100mbit burst 64kb latency 500ms"
        self._run(number + 1, f"tc qdisc add dev eth0 {bucket}")
        if both:
            self._run(0, f"tc qdisc add dev p{number} {bucket}")

    def cut(self, one: int, other: int) -> None:
        self._run(one + 1, f"iptables -A INPUT -s {NETWORK}.{other + 1} -j DROP")

    def hole(self, number: int) -> None:
        """Packets that are larger get lost, and no ICMP says so."""
        large = f"-m length --length {MTU_OF_HOLE}:65535 -j DROP"
        self._run(
            number + 1, f"iptables -A INPUT -i eth0 {large}", f"iptables -A OUTPUT -o eth0 {large}"
        )

    def misname(self, number: int) -> None:
        self._name(number, ELSEWHERE)

    def clock(self, number: int) -> None:
        gcc = shutil.which("gcc")
        if gcc is None:
            pytest.skip("there is no gcc to make a clock with")
        source, library = (self.hosts.scratch / f"clock.{kind}" for kind in ("c", "so"))
        source.write_text(_CLOCK)
        subprocess.run([gcc, "-shared", "-fPIC", "-O1", "-o", library, source], check=True)
        (self.hosts.scratch / name_of(number) / "environ").write_text(f"LD_PRELOAD={library}")

    def hang_in_round(self, number: int, wanted: int) -> None:
        """All its processes stop as soon as its program has begun that round."""
        pid = self.holders[number + 1].pid

        def watch() -> None:
            mark = f'"round {wanted}"'.encode()
            while not self.over.wait(0.1):
                if any(mark in _written(process) for process in self.processes(pid)):
                    for process in self.processes(pid):
                        with suppress(OSError):
                            os.kill(process, signal.SIGSTOP)
                    return

        threading.Thread(target=watch, daemon=True).start()

    def processes(self, holder: int) -> list[int]:
        """Those in its network but for the holder."""
        found = []
        with suppress(OSError):
            network = Path(f"/proc/{holder}/ns/net").readlink()
            for entry in Path("/proc").glob("[0-9]*"):
                with suppress(OSError):
                    if (entry / "ns/net").readlink() == network and int(entry.name) != holder:
                        found.append(int(entry.name))
        return found

    def left(self, *but: int) -> dict[str, list[int]]:
        """What still runs on machines, but for those with these numbers."""
        holders = enumerate(self.holders[1:])
        found = {name_of(n): self.processes(held.pid) for n, held in holders if n not in but}
        return {name: pids for name, pids in found.items() if pids}

    def close(self) -> None:
        self.over.set()
        for held in self.holders:
            for pid in self.processes(held.pid):
                with suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            held.kill()
            held.wait()


def _written(pid: int) -> bytes:
    """What a process has written to files in memory: its output."""
    found = b""
    with suppress(OSError):
        for path in Path(f"/proc/{pid}/fd").iterdir():
            if "memfd:envcheck" in str(path.readlink()):
                found += path.read_bytes()
    return found


@contextmanager
def serve_lab(count: int) -> Iterator[NetworkLab]:
    """Skips where this machine cannot have one."""
    if os.geteuid() or sys.platform != "linux":
        pytest.skip("a network of namespaces needs root")
    for program in ("ip", "tc", "iptables", "nsenter", "unshare", "setpriv"):
        if shutil.which(program) is None:
            pytest.skip(f"there is no {program} on this machine")
    machines = [
        Host(name_of(number), "well", sys.executable, address=f"{NETWORK}.{number + 1}")
        for number in range(count)
    ]
    with serve_hosts(machines) as hosts:
        lab = NetworkLab.__new__(NetworkLab)
        try:
            lab.__init__(hosts, count)  # type: ignore[misc]
            yield lab
        finally:
            lab.close()
            assert wait_for(lambda: not lab.left())
