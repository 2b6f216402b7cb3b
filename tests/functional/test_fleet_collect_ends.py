"""`envcheck fleet collect` where it does not end as it should, and where it asks for a password."""

from __future__ import annotations

import json
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from cli import PYTHON, environment
from processes import PATIENCE, everything, wait_for

pytestmark = pytest.mark.fleet
SECRET = "a password that is shown to nobody"


@pytest.fixture
def inventory(tmp_path: Path) -> Path:
    """Machines that are this one, by Ansible's connection `local`."""
    beside = Path(sys.executable).parent / "ansible-playbook"
    if not beside.exists() and shutil.which("ansible-playbook") is None:
        pytest.skip("there is no ansible-playbook on this machine")
    (tmp_path / "ansible.cfg").touch()
    found = tmp_path / "hosts.ini"
    here = f"ansible_connection=local ansible_python_interpreter={sys.executable}"
    found.write_text(f"[here]\nhere[1:2] {here} rack=r7\n[here:vars]\napi_token='{SECRET}'\n")
    return found


def command(inventory: Path, folder: Path, *words: str) -> tuple[list[str], dict[str, str]]:
    argv = [PYTHON, "-m", "envcheck", "fleet", "collect", "-i", str(inventory), str(folder)]
    home = inventory.parent
    variables = {"ANSIBLE_HOME": str(home / "ansible"), "ANSIBLE_CONFIG": str(home / "ansible.cfg")}
    return [*argv, "--level=quick", *words], environment(**variables)


def collect(inventory: Path, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    argv, env = command(inventory, folder, *words)
    return subprocess.run(
        argv, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=PATIENCE, check=False
    )  # fmt: skip


@pytest.mark.parametrize("victim", ["ansible", "envcheck"])
def test_whoever_is_killed_takes_its_own_with_it(
    inventory: Path, tmp_path: Path, victim: str
) -> None:
    argv, env = command(inventory, tmp_path / "fleet")
    process = subprocess.Popen(
        argv, env=env, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL, start_new_session=True
    )  # fmt: skip
    try:
        assert process.stderr is not None and "asking 2 machines" in process.stderr.readline()
        (main,) = [pid for pid in ansibles(inventory) if parent(pid) == process.pid]
        os.kill(main if victim == "ansible" else process.pid, signal.SIGKILL)
        _, printed = process.communicate(timeout=PATIENCE)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert wait_for(lambda: not ansibles(inventory))
    if victim == "envcheck":
        return
    assert process.returncode == 4
    assert "ansible-playbook died by signal 9 (SIGKILL); " in printed, printed
    roster = json.loads((tmp_path / "fleet" / "fleet.json").read_text())
    left = [one for one in roster["members"] if one.get("outcome") == "not-asked"]
    assert left and {"group", "rack"} == {kind for kind, _ in left[0]["groups"]}


def ansibles(inventory: Path) -> list[int]:
    of_it = [one for one in everything() if str(inventory).encode() in one.command.split(b"\0")]
    return [one.pid for one in of_it if b"/ansible-playbook\0" in one.command]


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def test_a_password_is_asked_for_on_the_terminal(inventory: Path, tmp_path: Path) -> None:
    argv, env = command(inventory, tmp_path / "fleet", "--limit", "here1", "--", "--ask-pass")
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(argv[0], argv, env)
    printed, answered = b"", False
    try:
        while select.select([terminal], [], [], 100.0)[0]:
            try:
                printed += os.read(terminal, 4096)
            except OSError:  # it has ended
                break
            if b"SSH password: " in printed and not answered:
                os.write(terminal, SECRET.encode() + b"\n")
                answered = True
        else:
            os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
    finally:
        os.close(terminal)
    assert answered and os.waitstatus_to_exitcode(status) == 0, printed
    assert SECRET.encode() not in printed
    assert (tmp_path / "fleet" / "here1.json").exists()


def test_no_secret_is_in_what_ssh_says(inventory: Path, tmp_path: Path) -> None:
    odd = "odd ansible_host=198.18.255.254 ansible_ssh_common_args='-o Odd{{ db_password }}=1'"
    inventory.write_text(f"{odd} db_password=Sesame-42\n")
    done = collect(inventory, tmp_path / "fleet")
    assert done.returncode == 4
    (member,) = json.loads((tmp_path / "fleet" / "fleet.json").read_text())["members"]
    assert member["outcome"] == "unreachable" and "odd***" in member["reason"], member
    for text in (done.stderr, member["reason"]):
        assert "sesame-42" not in text.lower() and "198.18" not in text
