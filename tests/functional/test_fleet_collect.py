"""`envcheck fleet collect` by a real Ansible over a real sshd: every oddity costs itself alone."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli import PYTHON, environment
from processes import PATIENCE, wait_for
from ssh_hosts import SUDO_PASSWORD, TROUBLES, SshHosts, serve_hosts, usual_hosts

pytestmark = pytest.mark.fleet
FORKS = 6
PLAIN = [kind for kind in TROUBLES if kind != "sleeping"]


@pytest.fixture(scope="module", autouse=True)
def ansible() -> str:
    """The ansible-playbook that envcheck takes."""
    beside = Path(sys.executable).parent / "ansible-playbook"
    found = str(beside) if beside.exists() else shutil.which("ansible-playbook")
    if found is None:
        pytest.skip("there is no ansible-playbook on this machine")
    return found


@pytest.fixture(scope="module")
def hosts() -> Iterator[SshHosts]:
    with serve_hosts(usual_hosts(8 + len(TROUBLES))) as made:
        yield made


def start(hosts: SshHosts, folder: Path, *words: str, **more: str) -> subprocess.Popen[str]:
    argv = [PYTHON, "-m", "envcheck", "fleet", "collect", "-i", str(hosts.inventory), str(folder)]
    return subprocess.Popen(
        [*argv, "--level", "quick", *words],
        env=environment(**hosts.variables, **more), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip


def commands() -> dict[int, bytes]:
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            found[int(entry.name)] = (entry / "cmdline").read_bytes()
        except OSError:
            continue
    return found


def watched(process: subprocess.Popen[str], marker: str) -> tuple[str, int, bytes]:
    """(its output, how many of Ansible's workers were there at once, all command lines seen)."""
    most, seen = 0, set()

    def over() -> bool:
        nonlocal most
        now = commands()
        ours = [command for command in now.values() if marker.encode() in command]
        seen.update(ours)
        most = max(most, sum(b"ansible-playbook\0" in one for one in ours))
        return process.poll() is not None

    try:
        assert wait_for(over), "it does not end"
    finally:
        end(process)
    out, err = process.communicate()
    return out + err, most - 1, b"\n".join(seen)


def end(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)


def left_of(hosts: SshHosts, name: str) -> str:
    return hosts.ssh(name, "find /tmp /var/tmp /root/.ansible /home/op 2>/dev/null | sort").stdout


def members(folder: Path) -> dict[str, dict[str, object]]:
    told = json.loads((folder / "fleet.json").read_text())
    assert told["engine"] == "ansible"
    return {member["name"]: member for member in told["members"]}


def test_each_machine_is_asked_and_each_oddity_costs_itself_alone(
    hosts: SshHosts, tmp_path: Path
) -> None:
    alive = [host.name for host in hosts.of("well", "full", "sudo", "old", "none")]
    before = {name: left_of(hosts, name) for name in alive}
    (sleeping,) = hosts.of("sleeping")
    slow = start(hosts, tmp_path / "slow", "--limit", sleeping.name, "--deadline", "2")
    try:
        fast = start(
            hosts,
            tmp_path / "fast",
            f"--forks={FORKS}",
            "--deadline=120",
            f"--limit=!{sleeping.name}",
        )
        said, most, lines = watched(fast, str(hosts.inventory))
        assert wait_for(lambda: slow.poll() is not None)
    finally:
        end(slow)
    said += "".join(slow.communicate())
    assert fast.returncode == slow.returncode == 4
    # Some that end beside those that begin, and two of the other run.
    assert 1 < most <= 2 * FORKS, "workers at once"

    found = members(tmp_path / "fast")
    for host in hosts.of("well", "full", "sudo"):
        assert "outcome" not in found[host.name], found[host.name]
        snapshot = json.loads((tmp_path / "fast" / f"{host.name}.json").read_bytes())
        assert snapshot["machine"]["host"]["outcome"] == "ok"
        assert ["group", host.groups[0]] in found[host.name]["groups"]  # type: ignore[operator]
    told = {
        host.kind: (found[host.name]["outcome"], found[host.name]["reason"])
        for host in hosts.of("dead", "closed", "hung", "garbage", "flood", "escapes", "old", "none")
    }
    assert told == {
        "dead": ("unreachable", told["dead"][1]),
        "closed": ("unreachable", "connection refused"),
        "hung": ("unreachable", "connected, and no word from its sshd"),
        "garbage": ("unreadable", told["garbage"][1]),
        "flood": ("unreadable", "the answer is longer than a Snapshot may be"),
        "escapes": ("unreadable", told["escapes"][1]),
        "old": ("failed", "its Python is 2.7, and 3.6 is needed"),
        "none": ("failed", "there is no python3"),
    }
    assert told["dead"][1] in ("no route to it", "the connection timed out")
    assert members(tmp_path / "slow")[sleeping.name]["outcome"] == "timed-out"
    assert "10 of 18 machines have answered" in said and "\x1b" not in said

    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    for secret in (SUDO_PASSWORD.encode(), hosts[sleeping.name].address.encode()):
        assert secret not in said.encode() and secret not in kept
    assert SUDO_PASSWORD.encode() not in lines
    assert {name: left_of(hosts, name) for name in alive} == before


def test_ctrl_c_keeps_what_came(hosts: SshHosts, tmp_path: Path) -> None:
    names = [host.name for host in hosts.of("sleeping", "well")]
    earlier = commands()
    process = start(hosts, tmp_path / "fleet", "--forks=3", "--limit", ",".join(names))
    try:
        assert wait_for(lambda: len(list(tmp_path.glob("fleet/gpu*.json"))) >= 2)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        out, err = process.communicate(timeout=PATIENCE)
    finally:
        end(process)
    assert process.returncode == 130 and err.endswith("envcheck: interrupted\n"), err
    assert not out and "Traceback" not in err
    found = members(tmp_path / "fleet")
    kept = {path.stem for path in tmp_path.glob("fleet/gpu*.json")}
    assert {name for name, member in found.items() if "outcome" not in member} == kept
    others = {member["outcome"] for name, member in found.items() if name not in kept}
    assert others == {"not-asked"} and set(found) == set(names)
    ours = str(hosts.scratch).encode()
    left = [
        command
        for number, command in commands().items()
        if number not in earlier and ours in command and command.startswith((b"ssh", b"ansible"))
    ]
    assert left == [], "of ansible and its ssh"
