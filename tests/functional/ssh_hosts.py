"""Hosts with a real sshd: each in namespaces of its own (network, mounts, processes, name), on one bridge.

with serve_hosts(usual_hosts()) as hosts:
    hosts.inventory                    # of Ansible; hosts.variables is for its environment
    hosts.ssh("gpu01", "hostname")     # and hosts.of("dead") are those that are dead

What a host sees is this machine's root, but with a /tmp, homes and a /var of its own, and one Python, of
its own age. They reach the address of the bridge and each other, and nothing else. All of it hangs on one
process, which ends with this one: its namespaces take processes, mounts, files and interfaces with them.
"""

from __future__ import annotations

import json
import os
import secrets
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO

import pytest
from leftovers import kill_those_of, mounts_below, processes_of
from processes import PATIENCE, wait_for

KEEPER = Path(__file__).with_name("ssh_keeper.py")
REPOSITORY = Path(__file__).resolve().parents[2]
UNPACKED = Path("~/.cache/envcheck-ci/engines").expanduser()
PLACES = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin:{UNPACKED}/usr/sbin"
SUDO_PASSWORD = "a secret that no output may show"
# of that password, as `openssl passwd -6` makes it
_SHADOW = "$6$envcheck$O5zDxO0HiYE91GavVfhiwrlitwin07/o1ufG0qI3XHx1wWQz1QPakmm2qtzDuPJD12urqBUNCYS608WFVQomB/"
MINORS = range(6, 14)

# dead: no machine has the address. closed: a machine without sshd. hung: a port that takes connections and
# says nothing. sleeping, garbage, flood, escapes: what its python3 does. full: no room in /tmp and the homes.
# old: its python3 is a Python 2. none: there is no Python. sudo: root by sudo and a password alone.
TROUBLES = (
    "dead",
    "closed",
    "hung",
    "sleeping",
    "garbage",
    "flood",
    "escapes",
    "full",
    "old",
    "none",
    "sudo",
)

_SSHD = """\
Port 22
HostKey /etc/ssh/host_key
AuthorizedKeysFile /etc/ssh/authorized_keys
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
StrictModes no
UseDNS no
MaxStartups 200
MaxSessions 100
PidFile none
Subsystem sftp internal-sftp
"""

_SSH = """\
Host *
  IdentityFile {scratch}/key
  IdentitiesOnly yes
  UserKnownHostsFile {scratch}/known_hosts
  GlobalKnownHostsFile /dev/null
  StrictHostKeyChecking yes
  BatchMode yes
  ConnectTimeout 5
  ControlPath {scratch}/cp/%C
"""


@dataclass(frozen=True)
class Host:
    """kind: "well", or one of TROUBLES. python: its only interpreter, "" for none."""

    name: str
    kind: str = "well"
    python: str = ""
    minor: int = 0
    groups: tuple[str, ...] = ()
    binds: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    address: str = ""
    program: str = ""  # a shell script in place of its python3
    command: str = ""  # what its sshd runs, whatever it is asked for

    @property
    def user(self) -> str:
        return "op" if self.kind == "sudo" else "root"


def python_of(version: str) -> str:
    """An interpreter of that version, by where pyenv, uv and systems have it: none is started."""
    pyenv = os.environ.get("PYENV_ROOT") or "~/.pyenv"
    homes = (f"{pyenv}/versions", "~/.local/share/uv/python")
    found = [
        path for home in homes for path in Path(home).expanduser().glob(f"*/bin/python{version}")
    ]
    found += [Path(folder, f"python{version}") for folder in ("/usr/local/bin", "/usr/bin")]
    return next((str(path.resolve()) for path in sorted(found) if path.exists()), "")


def usual_hosts(count: int = 27, troubles: Sequence[str] = TROUBLES, rack: int = 8) -> list[Host]:
    """``count`` hosts in racks: those with troubles last, before them Pythons of each age, in turn."""
    found = [(minor, path) for minor in MINORS if (path := python_of(f"3.{minor}"))]
    if not found:
        pytest.skip("no Python from 3.6 to 3.13 on this machine")
    old = python_of("2.7")
    kinds = ["well"] * (count - len(troubles)) + list(troubles)
    hosts = []
    for number, kind in enumerate(kinds):
        minor, python = found[number % len(found)]
        if kind in ("old", "none"):
            minor, python = 0, old if kind == "old" else ""
        name, group = f"gpu{number + 1:02d}", f"rack{number // rack + 1}"
        hosts.append(Host(name, kind, python, minor, (group,)))
    return hosts


@dataclass(frozen=True)
class SshHosts:
    """Hosts that are up; ``scratch`` goes with them."""

    scratch: Path
    hosts: list[Host]
    keeper: subprocess.Popen[str]

    @property
    def inventory(self) -> Path:
        return self.scratch / "inventory.yaml"

    @property
    def ini(self) -> Path:
        return self.scratch / "inventory.ini"

    @property
    def ssh_config(self) -> Path:
        return self.scratch / "ssh_config"

    @property
    def variables(self) -> dict[str, str]:
        """Ansible's own files, and its masters' sockets, are in the scratch directory, too."""
        home = self.scratch / "ansible"
        return {"ANSIBLE_HOME": str(home), "ANSIBLE_CONFIG": str(home / "ansible.cfg")}

    def __getitem__(self, name: str) -> Host:
        return next(host for host in self.hosts if host.name == name)

    def of(self, *kinds: str) -> list[Host]:
        return [host for host in self.hosts if host.kind in kinds]

    def ssh(
        self, name: str, command: str, seconds: float = 30.0
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["ssh", "-F", self.ssh_config, name, command],
            capture_output=True, text=True, errors="backslashreplace", stdin=subprocess.DEVNULL,
            timeout=seconds, check=False,
        )  # fmt: skip

    def kill(self, name: str) -> None:
        """As if its plug was pulled."""
        assert self.keeper.stdin is not None
        self.keeper.stdin.write(f"kill {name}\n")
        self.keeper.stdin.flush()

    def log(self, name: str) -> str:
        """What its sshd says."""
        return (self.scratch / "logs" / name).read_text(errors="replace")


class NoHosts(Exception):
    """This machine cannot have such hosts; says why."""


@contextmanager
def serve_hosts(hosts: Sequence[Host]) -> Iterator[SshHosts]:
    """Hosts that answer, but for those that are not to. Skips the test where this machine cannot."""
    try:
        programs = _needed()
    except NoHosts as error:
        pytest.skip(str(error))
    scratch = Path(tempfile.mkdtemp(prefix="ec-ssh-", dir="/tmp"))  # a short path: sockets
    link, keeper = f"ec{secrets.token_hex(4)}", None
    try:
        network = _free_network()
        placed = [
            Host(**{**asdict(host), "address": f"{network}.{number}"})
            for number, host in enumerate(hosts, 2)
        ]
        _write(scratch, placed)
        keeper = _keeper(scratch, placed, programs, network, link)
        made = SshHosts(scratch, placed, keeper)
        _wait(made)
        yield made
    except NoHosts as error:
        pytest.skip(str(error))
    finally:
        _end(scratch, keeper)
        left = [*_of(scratch), *mounts_below(scratch), *_links(link)]
        assert not left and not scratch.exists(), f"the hosts leave behind: {left}"


def _needed() -> Path:
    """The root below which sshd is."""
    if sys.platform != "linux" or os.geteuid():
        raise NoHosts("hosts in namespaces need root")
    for program in ("unshare", "setpriv", "ip", "ssh", "ssh-keygen"):
        if shutil.which(program, path=PLACES) is None:
            raise NoHosts(f"there is no {program} on this machine")
    sshd = shutil.which("sshd", path=PLACES)
    if sshd is None:
        raise NoHosts("there is no sshd on this machine")
    if subprocess.run(["unshare", "-mnpf", "true"], capture_output=True, check=False).returncode:
        raise NoHosts("no namespaces for this user")
    return Path(sshd).resolve().parents[2]


def _free_network() -> str:
    """One of the benchmark range's (RFC 2544), which nothing here routes to."""
    told = subprocess.run(["ip", "route"], capture_output=True, text=True, check=False).stdout
    free = [f"198.18.{n}" for n in range(256) if f"198.18.{n}." not in told]
    return secrets.choice(free)


def _write(scratch: Path, hosts: list[Host]) -> None:
    for folder in ("cp", "logs", "world", "ansible"):
        (scratch / folder).mkdir(mode=0o700)
    (scratch / "ansible" / "ansible.cfg").touch()
    for name in ("key", "host_key"):
        keygen = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "tests", "-f"]
        subprocess.run([*keygen, scratch / name], check=True, stdin=subprocess.DEVNULL)
    public = (scratch / "host_key.pub").read_text()
    names = ",".join(name for host in hosts for name in (host.name, host.address))
    (scratch / "known_hosts").write_text(f"{names} {public}")
    places = [f"Host {h.name}\n  HostName {h.address}\n  User {h.user}\n" for h in hosts]
    (scratch / "ssh_config").write_text("".join(places) + _SSH.format(scratch=scratch))
    common = {
        "ansible_ssh_common_args": f"-F {scratch}/ssh_config",
        "ansible_control_path_dir": f"{scratch}/cp",
        "ansible_python_interpreter": "/usr/bin/python3",
    }
    racks: dict[str, dict[str, dict[str, dict[str, object]]]] = {}
    for host in hosts:
        for group in host.groups or ("ungrouped",):
            racks.setdefault(group, {"hosts": {}})["hosts"][host.name] = _own(host)
    tree = {"all": {"vars": common, "children": racks}}
    (scratch / "inventory.yaml").write_text(json.dumps(tree, indent=1))
    (scratch / "inventory.ini").write_text(_ini(common, racks))
    (scratch / "inventory.yaml").chmod(0o600)
    (scratch / "inventory.ini").chmod(0o600)


def _own(host: Host) -> dict[str, object]:
    own: dict[str, object] = {"ansible_host": host.address, "ansible_user": host.user}
    if host.kind == "sudo":
        own |= {"ansible_become": True, "ansible_become_password": SUDO_PASSWORD}
    return own


def _ini(common: dict[str, str], racks: dict[str, dict[str, dict[str, dict[str, object]]]]) -> str:
    lines = []
    for rack, members in racks.items():
        lines.append(f"[{rack}]")
        for name, own in members["hosts"].items():
            lines.append(" ".join([name, *(f'{key}="{value}"' for key, value in own.items())]))
    lines += ["[all:vars]", *(f'{key}="{value}"' for key, value in common.items()), ""]
    return "\n".join(lines)


def _keeper(
    scratch: Path, hosts: list[Host], programs: Path, network: str, link: str
) -> subprocess.Popen[str]:
    keeper = subprocess.Popen(
        ["setpriv", "--pdeathsig", "KILL", "unshare", "--fork", "--kill-child=KILL", "--pid", "--mount",
         sys.executable, "-I", "-S", KEEPER],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=(scratch / "keeper.log").open("w"), text=True,
    )  # fmt: skip
    spec = {
        "scratch": str(scratch),
        "network": network,
        "link": link,
        "programs": str(programs),
        "sshd_config": _SSHD,
        "public_key": (scratch / "key.pub").read_text(),
        "host_key": (scratch / "host_key").read_text(),
        "shadow": _SHADOW,
        "home_binds": [],
        "hosts": [{**asdict(h), "binds": [*h.binds, *_homes(h.python)]} for h in hosts],
    }
    assert keeper.stdin is not None and keeper.stdout is not None
    with suppress(BrokenPipeError):
        keeper.stdin.write(json.dumps(spec) + "\n")
        keeper.stdin.flush()
    if not _line(keeper.stdout):
        words = (scratch / "keeper.log").read_text().strip().splitlines() or ["it says nothing"]
        _end(scratch, keeper)
        raise NoHosts(f"hosts in namespaces cannot be had: {words[-1]}")
    return keeper


def _line(stream: IO[str]) -> str:
    ready, _, _ = select.select([stream], [], [], PATIENCE)
    return stream.readline() if ready else ""


def _homes(python: str) -> list[str]:
    """What of this machine a host needs for its Python, where that lies in what a host has of its own."""
    home = Path(python).parents[1] if python else Path("/usr")
    return [str(home)] if home.parts[1] in ("root", "home", "tmp", "run") else []


def _wait(made: SshHosts) -> None:
    """Until every sshd that is to answer has said so."""
    silent = ("dead", "closed", "hung")
    waiting = {host.name: host.address for host in made.hosts if host.kind not in silent}
    limit = time.monotonic() + 300.0  # without hosts their tests skip
    while waiting and time.monotonic() < limit:
        for name, address in list(waiting.items()):
            with suppress(OSError), socket.create_connection((address, 22), timeout=2.0) as asked:
                if asked.recv(4) == b"SSH-":
                    del waiting[name]
        time.sleep(0.02)
    for name in waiting:
        raise NoHosts(f"{name} does not come up: {made.log(name)[-300:]}")


def _end(scratch: Path, keeper: subprocess.Popen[str] | None) -> None:
    for stream in (keeper.stdin, keeper.stdout) if keeper else ():
        if stream is not None:
            with suppress(OSError):
                stream.close()
    if keeper is not None:
        keeper.kill()
        keeper.wait()
    for pid in _of(scratch):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    kill_those_of(scratch)
    wait_for(lambda: not _of(scratch))
    shutil.rmtree(scratch, ignore_errors=True)


def _of(scratch: Path) -> list[int]:
    """Processes that name the scratch directory anywhere: ssh's masters, say "ssh: PLACE [mux]"."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if str(scratch).encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
    return sorted({*found, *processes_of(scratch)} - {os.getpid()})


def _links(link: str) -> list[str]:
    """The kernel takes an interface away a moment after its namespace's last process."""
    place = Path("/sys/class/net", link)
    wait_for(lambda: not place.exists())
    return [link] if place.exists() else []
