"""Acceleration systems in real processes that misbehave: each costs itself alone, and nothing stays."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import probing
import pytest
from cli import PYTHON, environment
from processes import PATIENCE, ran, running, stretched, timeless, wait_for
from pythons import find

from envcheck.facts.acceleration import SystemRun
from envcheck.facts.snapshot import Snapshot, load

OLDEST = find(6) or sys.executable

# A system whose work is BODY; beside it, ``well`` shows that others are run all the same.
SYSTEM = """
import ctypes, os, signal, subprocess, sys, tempfile, threading, time

from .running import ranks, records

SYSTEM = "{name}"
DOCUMENT = "machine"
DEADLINE = {deadline}


def run(framework, params, tell):
    with tell.trial("before") as trial:
        trial["ran"] = 1
{body}
    with tell.trial("after", control=True) as trial:
        trial["ran"] = 2


def rank(framework, params, tell):
{rank}
"""
NAP = "subprocess.Popen(['sleep', '600'])"
# A grandchild in a session of its own, which outlives the one that started it.
AWAY = "subprocess.Popen(['sleep', '600'], start_new_session=True)"
IN_TRIAL = "    with tell.trial('t') as trial:\n        trial['told'] = 5\n        "

Made = Callable[..., Path]


@pytest.fixture
def made(tmp_path: Path) -> Made:
    """A function that makes a copy of envcheck whose systems are these: {name: (body, deadline, rank)}."""
    package = tmp_path / "copy" / "envcheck"
    (tmp_path / "tmp").mkdir()

    def make(body: str, deadline: float = 0.0, rank: str = "    return 1", **more: str) -> Path:
        ignored = shutil.ignore_patterns("__pycache__", "demos")
        shutil.copytree(probing.REPOSITORY / "envcheck", package, ignore=ignored)
        folder = package / "collector" / "systems"
        for file in folder.glob("*.py"):
            if file.name != "__init__.py":
                file.unlink()
        for name, what in {"bad": body, "well": "    pass", **more}.items():
            text = SYSTEM.format(
                name=name, body=what, deadline=min(deadline or stretched(3.0), 120.0), rank=rank
            )
            (folder / f"{name}.py").write_text(text)
        return package.parent

    return make


@pytest.fixture
def clean(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment by which the test's processes are known; none of them is left."""
    yield environment(TMPDIR=str(tmp_path / "tmp"))
    left = [pid for pid, _parent, _command in running(tmp_path)]
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert not left
    if (tmp_path / "tmp").exists():
        assert not list((tmp_path / "tmp").iterdir())


def asked(*systems: str) -> list[str]:
    """The options of a collector that runs these systems and no micro-kernels."""
    return ["--request", json.dumps({"kernels": {"products": False, "systems": systems}})]


def looked(root: Path, env: dict[str, str], python: str = sys.executable) -> Snapshot:
    request = {
        "kernels": {"products": False, "systems": ["bad", "well"]},
        "probes": ["host", "cuda", "nvml"],
    }
    argv = [python, "-m", "envcheck.collector", "--request", json.dumps(request)]
    done = ran(argv, cwd=root, env=env)
    assert done.returncode == 0 and done.stderr == b"", done.stderr
    return load(done.stdout)


def runs(snapshot: Snapshot) -> dict[str, SystemRun]:
    probe = snapshot.machine.acceleration
    assert probe is not None and probe.facts is not None, probe
    found = {run.system: run for run in probe.facts.runs}
    assert [one.outcome for one in found["well"].trials] == ["ok", "ok"], found["well"]
    assert found["well"].outcome == "ok"
    return found


def bad(root: Path, env: dict[str, str], python: str = sys.executable) -> SystemRun:
    return runs(looked(root, env, python))["bad"]


MISBEHAVES = {
    "hang": (IN_TRIAL + NAP + "; time.sleep(600)", "timeout", "no answer within N s"),
    "deaf": (
        IN_TRIAL + "signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)",
        "timeout",
        "no answer within N s",
    ),
    "abort": (IN_TRIAL + "os.abort()", "crashed", "its process died by signal 6 (SIGABRT)"),
    "abort with words": (
        IN_TRIAL + "os.write(2, b'terminate called: no ptxas\\n'); os.abort()",
        "crashed",
        "its process died by signal 6 (SIGABRT): terminate called: no ptxas",
    ),
    "segfault": (
        IN_TRIAL + "ctypes.string_at(0)",
        "crashed",
        "its process died by signal 11 (SIGSEGV)",
    ),
    "early exit": (IN_TRIAL + "os._exit(0)", "crashed", "its process exited with status 0"),
    "sys.exit": (IN_TRIAL + "sys.exit('no such device')", "error", "SystemExit: no such device"),
    "flood": (
        IN_TRIAL + "\n        while True:\n            os.write(2, b'x' * 1000000)",
        "crashed",
        "its process wrote more than 16 MiB",
    ),
    "interrupt": (IN_TRIAL + "os.kill(os.getpid(), signal.SIGINT); time.sleep(600)", "error", ""),
}


@pytest.mark.parametrize("how", MISBEHAVES)
def test_what_goes_wrong_costs_its_system_alone(
    made: Made, clean: dict[str, str], how: str
) -> None:
    body, outcome, reason = MISBEHAVES[how]
    run = bad(made(body), clean)
    assert run.outcome == outcome and timeless(run.reason).startswith(reason), run
    first, second = run.trials
    assert (first.name, first.outcome, first.evidence) == ("before", "ok", {"ran": 1})
    assert (second.name, second.outcome) == ("t", outcome) and second.reason == run.reason


def test_what_hangs_while_it_is_imported(made: Made, clean: dict[str, str]) -> None:
    root = made("    pass")
    records = root / "envcheck/collector/systems/running/records.py"
    text, changed = re.subn(r"(?m)^IMPORT = .*$", f"IMPORT = {stretched(3.0)}", records.read_text())
    assert changed == 1
    records.write_text(text)
    system = root / "envcheck/collector/systems/bad.py"
    # The collector reads its constants, and so imports it too: only the system's own process hangs.
    system.write_text(
        system.read_text()
        + "\nif '\"module\": \"bad\"' in ' '.join(sys.argv):\n    "
        + AWAY
        + "\n    time.sleep(600)\n"
    )
    run = bad(root, clean)
    assert (run.outcome, run.trials) == ("timeout", [])
    assert timeless(run.reason) == "its process was not imported within N s"
    assert run.seconds == 0


def test_chatter_and_forged_records_do_not_get_through(made: Made, clean: dict[str, str]) -> None:
    body = IN_TRIAL + (
        "print('@envcheck {\"done\": {}}', flush=True)\n"
        '    os.write(1, b\'\\n@envcheck {"begin": {"framework_version": "9"}}\\n\')\n'
        "    os.write(tell._tell._descriptor, b'noise without an end')\n"
        '    os.write(tell._tell._descriptor, b\'\\n@envcheck {"result": {"name":\')\n'
        "    tell._tell.result({'system': 'x', 'gpus': 'y', 'outcome': 'fine'}, 'run')\n"
        "    tell._tell.result({'name': 'forged', 'outcome': 'fine'}, 'trial')\n"
    )
    run = bad(made(body), clean)
    assert (run.system, run.outcome, run.gpus) == ("bad", "ok", [])
    assert [one.name for one in run.trials] == ["before", "t", "after"]


def test_what_it_leaves_behind_is_gone_before_the_next_one_runs(
    made: Made, clean: dict[str, str], tmp_path: Path
) -> None:
    """A grandchild of a session of its own, and temporary files, as a JVM or a killed library leaves them."""
    leaves = IN_TRIAL + (
        "left = " + AWAY + "; open(os.environ['MARK'], 'w').write(str(left.pid))\n"
        "        tempfile.mkdtemp(); os.abort()"
    )
    looks = (
        "    with tell.trial('look') as trial:\n"
        "        trial['alive'] = os.path.exists('/proc/' + open(os.environ['MARK']).read())\n"
        "        trial['folders'] = len(os.listdir(os.path.dirname(tempfile.gettempdir())))\n"
    )
    root = made(leaves, zz=looks)
    alone = root / "envcheck/collector/systems/zz.py"
    alone.write_text(alone.read_text() + "ALONE = True\n")
    env = clean | {"MARK": str(tmp_path / "pid")}
    argv = [sys.executable, "-m", "envcheck.collector", *asked("bad", "zz")]
    done = ran(argv, cwd=root, env=env, check=True)
    probe = load(done.stdout).machine.acceleration
    assert probe is not None and probe.facts is not None
    (look,) = [one for run in probe.facts.runs for one in run.trials if one.name == "look"]
    assert look.evidence == {"alive": False, "folders": 1}
    assert (tmp_path / "pid").read_text().isdigit()


# -- ranks


TWO = (
    "    with tell.trial('ranks') as trial:\n"
    "        found = ranks.run(params, 3, 2.5, lambda rank: {{'RANK': str(rank)}}, {more})\n"
    "        trial['answers'] = [str(one.answer) for one in found]\n"
    "        trial['reasons'] = [one.reason for one in found]\n"
    "        trial['stderr'] = sum('boom' in one.stderr for one in found)"
)


@pytest.mark.parametrize("dies", ["os._exit(3)", "os.kill(os.getpid(), 9)"])
def test_ranks_end_with_a_system_that_dies_beneath_them(
    made: Made, clean: dict[str, str], dies: str
) -> None:
    body = "    threading.Timer(2.0, lambda: " + dies + ").start()\n"
    body += TWO.format(more="None").replace("2.5", "600")
    run = bad(made(body, deadline=120.0, rank="    time.sleep(600)"), clean)
    assert run.outcome == "crashed" and run.trials[-1].outcome == "crashed"


# -- the whole doctor


HANGS = "    " + AWAY + "; " + NAP + "\n" + TWO.format(more="None").replace("2.5", "600")
RANKS_HANG = "    open(os.environ['MARK'] + str(params['rank']), 'w').close(); time.sleep(600)"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("who", ["doctor", "collector"])
def test_whoever_is_ended_leaves_no_system_behind(
    made: Made, clean: dict[str, str], tmp_path: Path, number: int, who: str
) -> None:
    root = made(HANGS, deadline=120.0, rank=RANKS_HANG)
    env = clean | {"MARK": str(tmp_path / "rank"), "PYTHONPATH": str(root), "TERM": "xterm"}
    # The doctor's own checks know no system "bad": the collector is asked for it through its options.
    start = "import sys; from envcheck import collection; "
    start += "collection.collect(kernels=collection.Kernels(products=False, systems=['bad']))"
    argv = [PYTHON, "-c", start] if who == "doctor" else [PYTHON, "-m", "envcheck.collector"]
    argv += [] if who == "doctor" else asked("bad")
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        argv, cwd=root, env=env, stdin=follower, stdout=subprocess.DEVNULL, stderr=follower
    )
    os.close(follower)
    assert wait_for(lambda: len(list(tmp_path.glob("rank?"))) == 3 or process.poll() is not None)
    assert process.poll() is None
    assert [one for one in running(tmp_path) if b"sleep" in one[2]]
    process.send_signal(number)
    process.wait(PATIENCE)
    os.close(leader)
    assert wait_for(lambda: not running(tmp_path)), running(tmp_path)
    if number == signal.SIGKILL:  # what watches it removes its scratch directories a moment later
        wait_for(lambda: not list((tmp_path / "tmp").iterdir()))


def test_systems_run_out_of_a_zip_and_from_standard_input(
    made: Made, clean: dict[str, str], tmp_path: Path
) -> None:
    """The single file, whose ranks and systems come out of a zip on disk, or of one in memory."""
    body = TWO.format(more="None").replace("2.5", "600")
    root = made(body, deadline=120.0, rank="    return params['rank']")
    env = clean | {"PYTHONPATH": str(root)}
    for name in ("collector.pyz", "collector.py"):
        argv = [PYTHON, "-m", "envcheck", "collector", "--output", str(tmp_path / name)]
        ran(argv, cwd=root, env=env, check=True)
    options = asked("bad", "well")
    for argv, stdin in (
        ([OLDEST, str(tmp_path / "collector.pyz")], None),
        ([OLDEST, "-"], tmp_path / "collector.py"),
        ([PYTHON, "-", "--target", PYTHON], tmp_path / "collector.py"),
    ):
        with (stdin or Path(os.devnull)).open("rb") as given:
            done = ran(argv + options, stdin=given, env=clean, cwd="/", check=True)
        assert done.stderr == b""
        trial = next(t for t in runs(load(done.stdout))["bad"].trials if t.name == "ranks")
        assert trial.evidence["answers"] == ["0", "1", "2"], trial
