"""The campaign with real processes, whose levels are stand-ins that misbehave on demand."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import probing
import pytest
import shims
from cli import environment
from processes import PATIENCE, running, stretched, wait_for
from pythons import find

from envcheck.collector import worker
from envcheck.collector.kernels import attempts
from envcheck.collector.kernels.attempts import Limits
from envcheck.collector.kernels.campaign import Campaign
from envcheck.collector.kernels.selection import Device
from envcheck.collector.options import Options
from envcheck.collector.runtime import orphans, process
from envcheck.collector.worker import PythonCommand
from envcheck.facts.micro_kernels import LevelRun

COLLECTOR = probing.REPOSITORY / "envcheck/collector"
OLDEST = find(6) or sys.executable
STAGE = 4.0  # seconds without a record that a stage may take

# Does as FAKE says in FAKE_MODE's stage FAKE_STAGE, and well otherwise.
LEVEL = """
import os, signal, subprocess, sys, time


def run(params, teller):
    print("chatter on standard output", flush=True)
    teller.run(name="stand-in", multiprocessors=1, variables={"FAKE": "1"})
    asked = params["settings"] or [""]
    for setting in asked:
        for mode in params["modes"]:
            key = mode + "/" + setting if setting else mode
            if key in params["skip"]:
                continue
            seen = os.environ["CUDA_VISIBLE_DEVICES"], os.environ.get("NVIDIA_TF32_OVERRIDE", "-")
            facts = dict(mode=mode, setting=setting, outcome="ok", call=" ".join(seen))
            teller.begin(mode, "bits", setting)
            teller.mode(**facts)
            stage = os.environ.get("FAKE_STAGE", "rate")
            if stage != "names" or params["names"]:
                teller.begin(mode, stage, setting)
                if mode == os.environ.get("FAKE_MODE"):
                    misbehave(os.environ["FAKE"], facts, teller)
            teller.mode(**dict(facts, rate_reason="to the end"))


def misbehave(how, facts, teller):
    if how == "hang":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        subprocess.Popen(["sleep", "600"])
        time.sleep(600)
    elif how == "flood":
        while True:
            print("x" * 1000000)
    elif how == "sticky":
        teller.mode(**dict(facts, outcome="error", reason="cuCtxSynchronize: the context is dead"))
        os._exit(3)
    elif how == "half a record":
        os.write(teller._tell._descriptor, b'\\n@envcheck {"result": {"mode": "fp')
        os.kill(os.getpid(), signal.SIGKILL)
    elif how == "exit":
        sys.exit("no such device")
    else:
        os.kill(os.getpid(), getattr(signal, how))
"""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the collector in which every level is the stand-in."""
    folder = tmp_path_factory.mktemp("copy")
    copy = folder / "envcheck/collector"
    shutil.copytree(COLLECTOR, copy, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "envcheck/__init__.py").write_text("")
    for name in ("level0", "level1", "level2"):
        (copy / "kernels" / f"{name}.py").write_text(LEVEL)
    return folder


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        attempts,
        "LIMITS",
        dict.fromkeys(("L0", "L1", "L2"), Limits(PATIENCE, stretched(STAGE), PATIENCE)),
    )


def campaign(root: Path, options: Options, target: Any, python: str, **fake: str) -> list[LevelRun]:
    children: list[process.Child] = []

    def start(argv: list[str], deadline: float, cwd: str, env: dict[str, str]) -> process.Child:
        children.append(process.Child(argv, deadline, cwd=cwd, env=env, tied=True))
        return children[-1]

    documents = {"machine": {}, "target": target}
    made = Campaign(options, documents, start, environment(**fake))
    device = Device({"index": 0, "uuid": "GPU-1"}, "GPU-1", "0000:01:00.0")
    interpreter = PythonCommand("machine", [python, "-B"], "/")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(worker, "ROOT", str(root))
        made.run(
            ([device], ""), {"machine": interpreter, "target": interpreter}, lambda *told: None
        )
    assert all(child.result is not None for child in children)
    assert not [child.pid for child in children if group_lives(child.pid)]
    sections = [told["micro_kernels"] for told in (documents["machine"], target) if told]
    runs = [run for section in sections for run in section["facts"]["runs"]]
    return msgspec.json.decode(json.dumps(runs), type=list[LevelRun])


def group_lives(pid: int) -> bool:
    """Whether a process of this session, which a level's process led, is still at work."""
    sessions = [orphans._stat(int(p.name)) for p in Path("/proc").iterdir() if p.name.isdecimal()]
    return any(fields[3:4] == [str(pid)] and fields[0] != "Z" for fields in sessions)


def test_the_target_s_levels_run_in_its_python_and_the_override_in_a_process_of_its_own(
    root: Path,
) -> None:
    torch = {"outcome": "ok", "facts": {"name": "torch", "imported": True, "cuda_build": True}}
    runs = campaign(root, Options(["L1", "L2"], ["fp32"]), {"torch": torch}, OLDEST)
    assert [(run.level, run.framework, run.outcome) for run in runs] == [
        ("L1", "", "ok"),
        ("L2", "torch", "ok"),
    ]
    overrides = {mode.setting: mode.call for mode in runs[1].modes}
    assert overrides["default"] == "GPU-1 -"
    assert overrides["control"] == overrides["override"] == "GPU-1 0"


# -- the whole collector, on a machine whose libcuda needs no GPU


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return probing.compile_library(
        shims.CUDA, tmp_path_factory.mktemp("cuda"), "libcuda.so.1"
    ).parent


@pytest.fixture
def marked(tmp_path: Path, libraries: Path) -> Iterator[dict[str, str]]:
    """The environment of such a machine; its processes are known by it."""
    (tmp_path / "tmp").mkdir()
    yield environment(LD_LIBRARY_PATH=str(libraries), TMPDIR=str(tmp_path / "tmp"), SHIM_COUNT="1")
    for pid in at_work(tmp_path):
        os.kill(pid, signal.SIGKILL)


def at_work(folder: Path, word: bytes = b"") -> list[int]:
    """The test's processes that have this word on their command line."""
    return [pid for pid, _parent, command in running(folder) if word in command]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_collector_that_is_ended_leaves_no_level_behind(
    root: Path, tmp_path: Path, marked: dict[str, str], number: int
) -> None:
    env = marked | {"FAKE": "hang", "FAKE_MODE": "fp32"}
    collector = subprocess.Popen(
        [sys.executable, "-m", "envcheck.collector"],
        cwd=root,
        env=env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    assert wait_for(lambda: at_work(tmp_path, b"sleep"))
    assert at_work(tmp_path, b"level0")
    collector.send_signal(number)
    assert collector.wait(20) == (-9 if number == signal.SIGKILL else 128 + number)
    assert wait_for(lambda: not at_work(tmp_path)), at_work(tmp_path)
