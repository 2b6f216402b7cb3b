"""The single-file collector where the machine, the shell or the user has been unkind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli import envcheck, environment
from processes import PATIENCE, begun, ran, running, stretched, wait_for
from pythons import bare_environment, find

from envcheck.facts.snapshot import Document, Snapshot, load

OLDEST = find(6) or sys.executable  # where most of this is hardest
HOST = ("--request", '{"probes": ["host"]}')  # where one probe shows as much as all


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("collector")
    for name in ("c.pyz", "c.py"):
        assert envcheck("collector", "--output", folder / name).returncode == 0
    return folder


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with a framework that needs json and typing."""
    home = tmp_path_factory.mktemp("target") / "env"
    site = bare_environment(home, OLDEST)
    (site / "tensorflow").mkdir()
    (site / "tensorflow/__init__.py").write_text(
        "import json, typing\nAny = typing.Any\n__version__ = '2.9.1'\n"
    )
    return home


def run(
    script: str, *argv: str | Path, env: dict[str, str] | None = None, **options: Any
) -> subprocess.CompletedProcess[bytes]:
    """``script``: a line of shell around "$@", which is the collector."""
    return ran(
        ["bash", "-c", script, "bash", OLDEST, *map(str, argv)], env=env or environment(), **options
    )


def snapshot(result: subprocess.CompletedProcess[bytes]) -> Snapshot:
    assert result.returncode == 0, result.stderr.decode()
    assert result.stderr == b""
    return load(result.stdout)


def outcomes(document: Document | None) -> dict[str, str]:
    assert document is not None
    probes = {name: getattr(document, name) for name in document.__struct_fields__}
    return {name: p.outcome for name, p in probes.items() if hasattr(p, "outcome")}


def test_modules_on_pythonpath_are_the_targets_problem_alone(
    files: Path, target: Path, tmp_path: Path
) -> None:
    for name in ("argparse", "base64", "ctypes", "csv", "json", "resource", "struct", "subprocess"):
        (tmp_path / f"{name}.py").write_text(f"raise RuntimeError('the user`s own {name}')\n")
    for name in ("c.pyz", "c.py"):
        result = snapshot(
            run(
                'exec "$@"',
                files / name,
                "--target",
                target,
                env=environment(PYTHONPATH=f"{tmp_path}:"),
            )
        )
        assert set(outcomes(result.machine).values()) == {"ok"}
        assert set(outcomes(result.target).values()) == {"ok"}, result.target
        assert result.target is not None and result.target.tensorflow is not None
        framework = result.target.tensorflow.facts
        assert framework is not None
        assert framework.import_error == "RuntimeError: the user`s own json"


@pytest.mark.parametrize("name", ["c.pyz", "c.py"])
def test_closed_streams(files: Path, name: str, tmp_path: Path) -> None:
    closed = run('exec "$@" >&- <&-', files / name, *HOST)
    assert closed.returncode == 2
    assert closed.stderr.decode().splitlines() == [
        "envcheck-collector: standard output is closed: there is nowhere to write the snapshot"
    ]
    left = run('exec "$@" <&- 2>&-', files / name, *HOST)
    assert outcomes(snapshot(left).machine)["host"] == "ok"
    full = run('exec "$@" >/dev/full', files / name, *HOST)
    assert full.returncode == 2
    assert b"No space left on device" in full.stderr


HANG = "import os, subprocess, time\nsubprocess.Popen(['sleep', '600'])\ntime.sleep(600)\n"


@pytest.fixture
def marked(tmp_path: Path, target: Path) -> Iterator[dict[str, str]]:
    """An environment in which nvidia-smi and the framework hang, each with a child; by it they are known."""
    program = tmp_path / "bin/nvidia-smi"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nsleep 600 &\nexec sleep 600\n")
    program.chmod(0o755)
    (tmp_path / "tmp").mkdir()
    (tmp_path / "lib/torch").mkdir(parents=True)
    (tmp_path / "lib/torch/__init__.py").write_text(HANG)
    env = environment(
        PATH=f"{program.parent}:{os.environ['PATH']}",
        TMPDIR=str(tmp_path / "tmp"),
        PYTHONPATH=str(tmp_path / "lib"),
    )
    yield env
    for pid, _parent, _command in running(tmp_path):
        os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize(
    ("name", "victim"),
    [
        ("c.pyz", "guard"),
        ("c.py", "guard"),
        ("c.pyz", "worker"),
        ("c.py", "worker"),
        ("c.pyz", "probe"),
    ],
)
def test_kill_9_leaves_nothing(
    files: Path, target: Path, tmp_path: Path, marked: dict[str, str], name: str, victim: str
) -> None:
    # Where only the probe is killed, the others run into their deadline.
    seconds = stretched(3) if victim == "probe" else PATIENCE
    deadline = json.dumps({"deadline": seconds})
    collector = begun(
        [OLDEST, str(files / name), "--target", str(target), "--request", deadline], env=marked
    )
    assert wait_for(lambda: sum(c.startswith(b"sleep") for _, _, c in running(tmp_path)) >= 3)
    processes = running(tmp_path)
    (worker,) = [pid for pid, parent, _ in processes if parent == collector.pid]
    (probe,) = [pid for pid, parent, c in processes if parent == worker and b"probes.torch" in c]
    os.kill({"guard": collector.pid, "worker": worker, "probe": probe}[victim], signal.SIGKILL)
    stdout, stderr = collector.communicate(timeout=PATIENCE)
    if victim == "guard":
        assert collector.returncode == -9
    elif victim == "worker":
        assert collector.returncode == 137
        assert stderr == b"envcheck-collector: died by signal 9 (SIGKILL)\n"
    else:
        report = json.loads(stdout)["target"]["torch"]
        assert report["reason"] == "the probe died by signal 9 (SIGKILL)"
    assert wait_for(lambda: not running(tmp_path)), running(tmp_path)
    assert wait_for(lambda: not list((tmp_path / "tmp").iterdir()))
