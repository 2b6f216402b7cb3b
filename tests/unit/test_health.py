"""The health check's verdict: unhealthy only where nobody inside the container can help."""

from __future__ import annotations

from typing import Any

import pytest

from envcheck.collector import health
from envcheck.collector.facts import unavailable
from envcheck.collector.runtime.process import Result

LOST = {"index": 3, "error": "Unknown Error", "code": 999}
ABSENT = unavailable("error", "nvmlInit: Unknown Error (NVML error 999)")


def facts(init: Any = 0, error: str = "", **changes: Any) -> dict[str, Any]:
    return {"init_code": init, "init_error": error, "gpus": [{"index": 0}], "lost": [], **changes}


@pytest.mark.parametrize(
    ("told", "status", "words"),
    [
        (facts(), 0, "healthy: GPUs that answer: 1"),
        (facts(gpus=[], lost=[]), 0, "healthy: GPUs that answer: 0"),
        (facts(12, "NVML Shared Library Not Found", gpus=ABSENT), 0, "healthy: no GPU was given"),
        (facts(9, "Driver Not Loaded", gpus=ABSENT), 0, "healthy: no GPU was given"),
        (facts(999, "Unknown Error", gpus=ABSENT), 1, "unhealthy: NVML: Unknown Error (999)"),
        (facts(15, "GPU is lost", gpus=ABSENT), 1, "unhealthy: NVML: GPU is lost (15)"),
        (facts(18, "version mismatch", gpus=ABSENT), 1, "unhealthy: NVML: version mismatch (18)"),
        (facts(lost=[LOST]), 1, "unhealthy: GPU 3: NVML: Unknown Error (999)"),
        (facts(lost=[{**LOST, "code": 4}]), 0, "healthy"),  # no permission: so from the start
        (facts(gpus=[{"index": 1, "uuid": unavailable("lost")}]), 1, "unhealthy: GPU 1: NVML: uuid"),
        (facts(gpus=[{"index": 1, "fan": unavailable("not-supported")}]), 0, "healthy"),
        (facts(unavailable("error", "pynvml cannot be used")), 0, "not known: pynvml cannot"),
    ],
)  # fmt: skip
def test_the_verdict(told: dict[str, Any], status: int, words: str) -> None:
    found, line = health.judge_facts(told)
    assert found == status
    assert line.startswith(words) and "\n" not in line


def result(outcome: str, stuck: dict[str, Any] | None = None) -> Result:
    return Result(["python"], outcome, -11 if outcome == "exited" else None, b"", b"", 1.0, stuck)


def test_a_driver_that_never_answers_is_unhealthy() -> None:
    assert health.judge(result("timeout"))[0] == 1
    stuck = {"pid": 1, "command": "python", "state": "D"}
    assert health.judge(result("timeout", stuck))[0] == 1


def test_a_look_that_failed_is_not_called_unhealthy() -> None:
    status, line = health.judge(result("exited"))
    assert status == 0 and line.startswith("not known: the NVML probe died by signal 11")
