"""`envcheck fleet collect` by a real Ansible: every trouble costs its machine alone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli import PYTHON, environment
from processes import PATIENCE, everything, wait_for
from ssh_hosts import TROUBLES, SshHosts, serve_hosts, usual_hosts

pytestmark = pytest.mark.fleet
FORKS = 6


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
    return {one.pid: one.command for one in everything()}


def end(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)


def left_of(hosts: SshHosts, name: str) -> str:
    return hosts.ssh(name, "find . | sort").stdout


def members(folder: Path) -> dict[str, dict[str, object]]:
    shown = json.loads((folder / "fleet.json").read_text())
    assert shown["engine"] == "ansible"
    return {member["name"]: member for member in shown["members"]}


def test_each_machine_is_asked_and_each_trouble_costs_itself_alone(
    hosts: SshHosts, tmp_path: Path
) -> None:
    alive = [host.name for host in hosts.of("well", "old", "none")]
    before = {name: left_of(hosts, name) for name in alive}
    (sleeping,) = hosts.of("sleeping")
    for words in (
        ("--limit", sleeping.name, "--deadline=2"),
        ("--limit", f"!{sleeping.name}", "--deadline=120", f"--forks={FORKS}"),
    ):
        process = start(hosts, tmp_path, *words)
        try:
            out, err = process.communicate(timeout=PATIENCE)
        finally:
            end(process)
        assert process.returncode == 4 and not out, err
    found = members(tmp_path)
    for host in hosts.of("well"):
        assert "outcome" not in found[host.name], found[host.name]
        snapshot = json.loads((tmp_path / f"{host.name}.json").read_bytes())
        assert snapshot["machine"]["host"]["outcome"] == "ok"
        assert ["group", host.groups[0]] in found[host.name]["groups"]  # type: ignore[operator]
    expected = {
        "dead": ("unreachable", "no route to it"),
        "closed": ("unreachable", "connection refused"),
        "hung": ("unreachable", "connected, and no word from its sshd"),
        "sleeping": ("timed-out", "no answer within 2 s"),
        "garbage": ("unreadable", 'python3 there said no Snapshot, but "Welcome"'),
        "old": ("failed", "needs Python 3.6 or newer, this is 2.7"),
        "none": ("failed", "there is no python3"),
    }
    for host in hosts.of(*expected):
        of_it = (found[host.name]["outcome"], found[host.name]["reason"])
        assert of_it == expected[host.kind], host.kind
    (escapes,) = hosts.of("escapes")
    assert found[escapes.name]["outcome"] == "unreadable" and "\x1b" not in err
    assert "8 of" in err and "machines have answered" in err
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


def test_a_machine_is_collected_several_times(hosts: SshHosts, tmp_path: Path) -> None:
    words = ("--level", "standard", "--limit", "gpu01", "--repeat")
    for count, names in (("2", {"gpu01.json", "gpu01.2.json"}), ("1", {"gpu01.json"})):
        process = start(hosts, tmp_path / "fleet", *words, count)
        assert process.communicate(timeout=PATIENCE) and process.returncode == 0
        assert {path.name for path in (tmp_path / "fleet").iterdir()} == {"fleet.json", *names}
