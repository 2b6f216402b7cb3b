"""Workers for real: what they report before they die or hang stays, and their group ends with them."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import pytest

from envcheck.collector import worker
from envcheck.collector.runtime.process import Child
from envcheck.collector.worker.parent import Limits, Worker

BODIES = {
    "raises": "tell.begin(); tell.stage('s', 'k'); raise KeyError('gone')",
    "ends": "class No(messages.Ended):\n        outcome = 'not-run'\n    raise No('not here')",
    "exits": "import sys; sys.exit(3)",
    "dies": "tell.begin(); tell.result(1, 'first'); tell.stage('s', 'k'); os.kill(os.getpid(), 11)",
    "hangs": "tell.begin(pid=os.fork()); tell.stage('s', 'k'); time.sleep(600)",
    "never-begins": "time.sleep(600)",
}


def run(tmp_path: Path, body: str, **limits: Any) -> tuple[Worker, list[Any]]:
    (tmp_path / "its_work.py").write_text(
        "import os, time\nfrom envcheck.collector.worker import messages\n"
        f"def work(params, tell):\n    {BODIES[body]}\n"
    )
    taken: list[Any] = []
    argv = worker.command([sys.executable, "-B"], str(tmp_path / "its_work.py"), {})
    one = Worker(Child(argv, 120.0), Limits(**limits), lambda *message: taken.append(message))
    while one.step():
        time.sleep(0.005)
    return one, taken


@pytest.mark.parametrize(
    ("body", "outcome", "words", "stage"),
    [
        ("raises", "error", "KeyError: 'gone'", ("s", "k")),
        ("ends", "not-run", "not here", None),
        ("exits", "error", "SystemExit: 3", None),
        ("dies", "crashed", "SIGSEGV", ("s", "k")),
    ],
)
def test_an_early_end_is_explained(
    tmp_path: Path, body: str, outcome: str, words: str, stage: Any
) -> None:
    one, taken = run(tmp_path, body)
    assert one.outcome == outcome
    assert words in one.reason
    assert one.stage == stage
    if body == "dies":
        assert ("result", 1, "first") in taken


@pytest.mark.parametrize(
    ("body", "limits"), [("hangs", {"stage": 0.2}), ("never-begins", {"start": 0.2})]
)
def test_a_worker_that_hangs_is_ended_with_its_group(
    tmp_path: Path, body: str, limits: dict[str, float]
) -> None:
    one, taken = run(tmp_path, body, **limits)
    assert one.outcome == "timeout"
    for _kind, facts, _key in taken:
        for _look in range(2000):
            if not facts["pid"] or not Path(f"/proc/{facts['pid']}/cmdline").exists():
                break
            time.sleep(0.01)
        else:
            raise AssertionError("its child still runs")
