"""process.py against real children that hang, fork, flood and die."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from processes import PATIENCE

from envcheck.collector.runtime import process

PYTHON = sys.executable


def alive(pid: int) -> bool:
    """Running, and not a zombie that only waits to be reaped."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def gone(pid: int, within: float = 5.0) -> bool:
    limit = time.monotonic() + within
    while alive(pid) and time.monotonic() < limit:
        time.sleep(0.02)
    return not alive(pid)


def test_output_and_code_of_a_child_that_ends() -> None:
    result = process.run(
        [PYTHON, "-c", "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"], 30
    )
    assert (result.outcome, result.code) == ("exited", 3)
    assert (result.stdout, result.stderr) == (b"out\n", b"err\n")
    assert result.describe() == "exited with status 3"
    assert not result.ok


def test_a_child_that_is_allowed_more_time_gets_it() -> None:
    child = process.Child([PYTHON, "-c", "import time; time.sleep(0.2)"], 0.0)
    child.allow(PATIENCE)
    process.run_all([child])
    assert child.result.outcome == "exited"


def test_a_hung_child_and_the_grandchild_that_holds_its_output_are_killed(tmp_path: Path) -> None:
    script = (
        "import subprocess, sys, time\n"
        f"child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"open({str(tmp_path / 'pid')!r}, 'w').write(str(child.pid))\n"
        "time.sleep(600)\n"
    )
    result = process.run([PYTHON, "-c", script], 1.0)
    assert result.outcome == "timeout"
    assert result.stuck is None
    assert "no answer within" in result.describe()
    assert gone(int((tmp_path / "pid").read_text()))


def test_grace_lets_a_child_clean_up(tmp_path: Path) -> None:
    script = (
        "import signal, sys, time\n"
        f"def end(number, frame): open({str(tmp_path / 'clean')!r}, 'w').close(); sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, end)\n"
        "print('ready', file=sys.stderr, flush=True)\n"
        "time.sleep(600)\n"
    )
    child = process.Child([PYTHON, "-c", script], 60, grace=10)
    while not child.new_stderr():
        time.sleep(0.01)
    process.stop_all([child])
    assert child.result.outcome == "stopped"
    assert (tmp_path / "clean").exists()


def test_a_child_that_cannot_be_killed_is_named_and_left(monkeypatch: pytest.MonkeyPatch) -> None:
    child = process.Child([PYTHON, "-c", "import time; time.sleep(600)"], 0.1)
    real = child._signal
    monkeypatch.setattr(
        child, "_signal", lambda number: None
    )  # as with a process stuck in the kernel
    process.run_all([child])
    assert child.result.outcome == "timeout"
    assert child.result.stuck["pid"] == child.pid
    assert child.result.stuck["state"]
    assert PYTHON in child.result.stuck["command"]
    real(signal.SIGKILL)
    os.waitpid(child.pid, 0)


def test_an_interrupt_stops_every_child() -> None:
    children = [process.Child([PYTHON, "-c", "import time; time.sleep(600)"], 60) for _ in range(2)]

    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        process.run_all(children, interrupt)
    assert [child.result.outcome for child in children] == ["stopped", "stopped"]
    assert all(gone(child.pid) for child in children)


def test_orphans_that_left_their_session_are_swept(tmp_path: Path) -> None:
    """In a process of its own, since being a subreaper is for the whole process."""
    escape = (
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'],"
        " start_new_session=True)\n"
        f"open({str(tmp_path / 'pid')!r}, 'w').write(str(child.pid))\n"
    )
    script = (
        "import sys\n"
        "from envcheck.collector.runtime import orphans, process\n"
        "orphans.adopt()\n"
        f"process.run([sys.executable, '-c', {escape!r}], 30)\n"
        "assert orphans.sweep() == []\n"
    )
    subprocess.run([PYTHON, "-c", script], check=True, timeout=PATIENCE)
    assert gone(int((tmp_path / "pid").read_text()), within=0.0)


def test_a_status_is_known_where_dead_children_are_ignored() -> None:
    """SIGCHLD may be ignored by whoever started us, and then the kernel keeps no exit status."""
    script = (
        "import sys\n"
        "from envcheck.collector.runtime import process\n"
        "result = process.run([sys.executable, '-c', 'import os; os.kill(os.getpid(), 11)'], 30)\n"
        "assert (result.outcome, result.code) == ('exited', -11), result.describe()\n"
    )
    subprocess.run(
        [PYTHON, "-c", script],
        check=True,
        timeout=PATIENCE,
        preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN),
    )


def test_a_tied_child_dies_with_its_parent(tmp_path: Path) -> None:
    script = (
        "import os, signal, sys\n"
        "from envcheck.collector.runtime import process\n"
        "child = process.Child(['sleep', '600'], 60, tied=True)\n"
        f"open({str(tmp_path / 'pid')!r}, 'w').write(str(child.pid))\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert subprocess.run([PYTHON, "-c", script], check=False, timeout=PATIENCE).returncode == -9
    assert gone(int((tmp_path / "pid").read_text()))


def test_no_descriptor_left_is_a_result_and_leaks_none() -> None:
    script = (
        "import os, resource\n"
        "from envcheck.collector.runtime import process\n"
        "process.run(['true'], 30)\n"  # whatever is opened once is open now
        "held = len(os.listdir('/proc/self/fd'))\n"
        "for room in range(7):\n"
        "    resource.setrlimit(resource.RLIMIT_NOFILE, (held + room, 4096))\n"
        "    result = process.run(['true'], 30)\n"
        "    assert result.outcome == ('not-started' if room < 3 else result.outcome)\n"
        "    assert result.ok or 'Too many open files' in result.describe(), result.describe()\n"
        "assert result.ok\n"
        "assert len(os.listdir('/proc/self/fd')) == held\n"
    )
    subprocess.run([PYTHON, "-c", script], check=True, timeout=PATIENCE)


@pytest.mark.parametrize("given", [True, False])
def test_no_child_gets_what_envcheck_logs_in_with(
    monkeypatch: pytest.MonkeyPatch, given: bool
) -> None:
    monkeypatch.setenv("NGC_API_KEY", "secret")
    monkeypatch.setenv("OTHER", "kept")
    code = "import os; print(os.environ.get('NGC_API_KEY'), os.environ['OTHER'])"
    result = process.run([PYTHON, "-c", code], 30, env=dict(os.environ) if given else None)
    assert result.stdout == b"None kept\n", result.stderr
