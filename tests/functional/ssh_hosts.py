"""Hosts for Ansible without a network: a stand-in for ssh runs each command on this machine.

with serve_hosts(usual_hosts(25)) as hosts:
    hosts.inventory                    # of Ansible; hosts.variables is for its environment
    hosts.ssh("gpu01", "hostname")     # and hosts.of("dead") are those that are dead

Each host has a home and a python3 of its own, and nothing of the environment here.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

import pytest
from leftovers import kill_those_of, processes_of, unmount_below
from processes import PATIENCE, wait_for

UNPACKED = Path("~/.cache/envcheck-ci/engines").expanduser()
PLACES = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin:{UNPACKED}/usr/sbin"
MINORS = range(6, 14)

# What ssh says of a host that cannot be reached.
_UNREACHABLE = {
    "dead": "ssh: connect to host port 22: No route to host",
    "closed": "ssh: connect to host port 22: Connection refused",
    "hung": "Connection timed out during banner exchange",
}
# What a host's python3 does in place of reading the script.
_PROGRAMS = {
    "sleeping": "exec sleep 86400",
    "garbage": "cat >/dev/null; echo Welcome; echo {}",
    "escapes": "cat >/dev/null; printf '\\033[2J\\033[31mred\\n'",
}
# old: its python3 is a Python 2. none: there is no Python.
TROUBLES = (*_UNREACHABLE, *_PROGRAMS, "old", "none")

_SSH = """\
#!/bin/sh
# The last word is the command, the one before it the host.
for word; do host=$command; command=$word; done
cd "{scratch}/$host" || exit 255
[ ! -f unreachable ] || { cat unreachable >&2; exit 255; }
enter=$([ ! -f enter ] || cat enter)
more=$([ ! -f environ ] || cat environ)
cd home
exec $enter env -i $more HOME="$PWD" USER=root LOGNAME=root LANG=C.UTF-8 TMPDIR="$PWD" \\
    PATH="{scratch}/$host/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin" sh -c "$command"
"""


@dataclass(frozen=True)
class Host:
    """kind: "well", or one of TROUBLES. python: its python3, "" for none. address: as its ansible_host."""

    name: str
    kind: str = "well"
    python: str = ""
    minor: int = 0
    groups: tuple[str, ...] = ()
    address: str = ""


def python_of(version: str) -> str:
    """An interpreter of that version, by where pyenv, uv and systems have it: none is started."""
    pyenv = os.environ.get("PYENV_ROOT") or "~/.pyenv"
    homes = (f"{pyenv}/versions", "~/.local/share/uv/python")
    found = [
        path for home in homes for path in Path(home).expanduser().glob(f"*/bin/python{version}")
    ]
    found += [Path(folder, f"python{version}") for folder in ("/usr/local/bin", "/usr/bin")]
    return next((str(path.resolve()) for path in sorted(found) if path.exists()), "")


def usual_hosts(count: int) -> list[Host]:
    """``count`` hosts in racks: those with troubles last, before them Pythons of each age, in turn."""
    found = [(minor, path) for minor in MINORS if (path := python_of(f"3.{minor}"))]
    old = python_of("2.7")
    kinds = ["well"] * (count - len(TROUBLES)) + [kind for kind in TROUBLES if kind != "old" or old]
    hosts = []
    for number, kind in enumerate(kinds):
        minor, python = found[number % len(found)]
        if kind in ("old", "none"):
            minor, python = 0, old if kind == "old" else ""
        name, group = f"gpu{number + 1:02d}", f"rack{number // 8 + 1}"
        hosts.append(Host(name, kind, python, minor, (group,)))
    return hosts


@dataclass(frozen=True)
class SshHosts:
    """``scratch`` goes with them."""

    scratch: Path
    hosts: list[Host]

    @property
    def inventory(self) -> Path:
        return self.scratch / "inventory.yaml"

    @property
    def variables(self) -> dict[str, str]:
        home = self.scratch / "ansible"
        return {"ANSIBLE_HOME": str(home), "ANSIBLE_CONFIG": str(home / "ansible.cfg")}

    def __getitem__(self, name: str) -> Host:
        return next(host for host in self.hosts if host.name == name)

    def of(self, *kinds: str) -> list[Host]:
        return [host for host in self.hosts if host.kind in kinds]

    def ssh(self, name: str, command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.scratch / "ssh", name, command],
            capture_output=True, text=True, errors="backslashreplace", stdin=subprocess.DEVNULL,
            timeout=PATIENCE, check=False,
        )  # fmt: skip


@contextmanager
def serve_hosts(hosts: Sequence[Host]) -> Iterator[SshHosts]:
    beside = Path(sys.executable).parent / "ansible-playbook"
    if not beside.exists() and shutil.which("ansible-playbook") is None:
        pytest.skip("there is no ansible-playbook on this machine")
    scratch = Path(tempfile.mkdtemp(prefix="ec-ssh-"))
    try:
        _write(scratch, hosts)
        yield SshHosts(scratch, list(hosts))
    finally:
        kill_those_of(scratch)
        unmount_below(scratch)
        wait_for(lambda: not processes_of(scratch))
        shutil.rmtree(scratch, ignore_errors=True)


def _write(scratch: Path, hosts: Sequence[Host]) -> None:
    _executable(scratch / "ssh", _SSH.replace("{scratch}", str(scratch)))
    (scratch / "ansible").mkdir()
    (scratch / "ansible" / "ansible.cfg").touch()
    groups: dict[str, dict[str, dict[str, dict[str, str]]]] = {}
    for host in hosts:
        folder = scratch / host.name
        for name in ("home", "bin"):
            (folder / name).mkdir(parents=True)
        python = folder / "bin" / "python3"
        program = _PROGRAMS.get(host.kind, "")
        if host.address:
            (scratch / host.address).symlink_to(host.name)
        if host.kind in _UNREACHABLE:
            (folder / "unreachable").write_text(f"{_UNREACHABLE[host.kind]}\n")
        if program:
            _executable(python, f"#!/bin/sh\n{program}\n")
        elif host.python:
            _executable(python, f'#!/bin/sh\nexec {quote(host.python)} "$@"\n')
        for group in host.groups or ("ungrouped",):
            own = {"ansible_python_interpreter": str(python)}
            if host.address:
                own["ansible_host"] = host.address
            groups.setdefault(group, {"hosts": {}})["hosts"][host.name] = own
    common = {
        "ansible_ssh_executable": str(scratch / "ssh"),
        "ansible_ssh_transfer_method": "piped",
        "ansible_ssh_args": "",
    }
    tree = {"all": {"vars": common, "children": groups}}
    (scratch / "inventory.yaml").write_text(json.dumps(tree, indent=1))


def _executable(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)
