"""A patient child: what a busy machine takes from it does not count, and a hang is no patience's business."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from envcheck.collector.runtime import cpu_wait, process

SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]


@pytest.mark.parametrize(
    ("waited", "patient", "least"), [(0.0, True, 0.3), (100.0, True, 0.9), (100.0, False, 0.3)]
)
def test_time_without_a_cpu_does_not_count_up_to_a_limit(
    monkeypatch: pytest.MonkeyPatch, waited: float, patient: bool, least: float
) -> None:
    asked = []

    def of_group(group: int) -> float:
        asked.append(group)
        return waited

    monkeypatch.setattr(cpu_wait, "of_group", of_group)
    result = process.run(SLEEP, 0.3, patient=patient)
    assert result.outcome == "timeout"
    assert result.seconds >= least
    assert bool(asked) is patient


def test_what_gets_no_cpu_is_seen_to_wait_and_what_sleeps_is_not() -> None:
    if not Path("/proc/self/schedstat").exists():
        pytest.skip("this kernel does not say how long processes wait for a CPU")
    cpu = min(os.sched_getaffinity(0))
    on_one = [
        sys.executable,
        "-c",
        f"import os; os.sched_setaffinity(0, [{cpu}])\nwhile True: pass",
    ]
    running = [subprocess.Popen(one, start_new_session=True) for one in (on_one, on_one, SLEEP)]
    try:
        limit = time.monotonic() + 120
        while min(cpu_wait.of_group(one.pid) for one in running[:2]) < 1.0:
            assert time.monotonic() < limit
            time.sleep(0.1)
        # It had to wait while it started, as all do here.
        slept = cpu_wait.of_group(running[2].pid)
        time.sleep(1.0)
        assert cpu_wait.of_group(running[2].pid) - slept < 0.5
    finally:
        for one in running:
            one.kill()
            one.wait()
    assert cpu_wait.of_group(running[0].pid) == 0.0
