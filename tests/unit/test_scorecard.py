"""The scorecard counts honestly, and its page has not fallen behind what there is to count."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from faulty import card, themes
from faulty.model import THEMES, Fault, Truth
from faulty.score import Row, by_theme, crashed, judge
from world.bases import BASES
from world.machine import Machine, tree

PAGE = (Path(__file__).parents[2] / "docs" / "scorecard.md").read_text()
TRUTH = Truth("GPU-002", r"GPU 3\b", r"uncorrectable", r"nvidia-smi --gpu-reset")
FAULT = Fault("made up", "memory and ECC", "h100", lambda machine: None, (TRUTH,))


def finding(**changes: Any) -> dict[str, Any]:
    found = {
        "level": "fail",
        "message": "4 uncorrectable memory errors: results are wrong.",
        "subjects": [{"kind": "gpu", "text": "GPU 3 NVIDIA H100 80GB HBM3 at 0000:5d:00.0"}],
        "remedy": {"text": "Reset it.", "commands": ["sudo nvidia-smi --gpu-reset -i 3"]},
    }
    return found | changes


def report(*results: tuple[str, str, dict[str, Any]]) -> dict[str, Any]:
    return {
        "results": [{"code": code, "outcome": how, "findings": [one]} for code, how, one in results]
    }


def marks(fault: Fault, found: dict[str, Any]) -> tuple[bool, bool, bool, int]:
    score = judge(fault, found)
    return score.found, score.named, score.remedied, len(score.misleading)


def test_what_is_told_rightly_counts() -> None:
    assert marks(FAULT, report(("GPU-002", "fail", finding()))) == (True, True, True, 0)


@pytest.mark.parametrize(
    "values, expected",
    [
        (report(), (False, False, False, 0)),
        (report(("GPU-003", "fail", finding())), (False, False, False, 1)),
        (report(("GPU-003", "warn", finding(level="warn"))), (False, False, False, 0)),
        (
            report(("GPU-002", "fail", finding(subjects=[{"text": "GPU 5 at 0000:ab:00.0"}]))),
            (True, False, False, 0),
        ),
        (report(("GPU-002", "fail", finding(message="It is hot."))), (True, False, False, 0)),
        (report(("GPU-002", "fail", finding(remedy=None))), (True, True, False, 0)),
        (report(("GPU-002", "skipped", finding())), (False, False, False, 0)),
    ],
)
def test_what_is_told_otherwise_does_not(values: dict[str, Any], expected: Any) -> None:
    assert marks(FAULT, values) == expected


def test_a_gpu_may_be_named_by_its_address() -> None:
    found = report(("GPU-002", "fail", finding(subjects=[{"text": "GPU 0000:5d:00.0"}])))
    assert marks(FAULT, found) == (True, True, True, 0)


def test_of_two_faults_both_are_to_be_named() -> None:
    other = Truth("GPU-007", r"GPU 6\b", "hot", "cool")
    both = Fault("two", "pairs", "h100", lambda machine: None, (TRUTH, other))
    assert marks(both, report(("GPU-002", "fail", finding()))) == (False, False, False, 0)
    cause = Fault("a cause", "pairs", "h100", lambda machine: None, (TRUTH, other), order=True)
    assert marks(cause, report(("GPU-002", "fail", finding()))) == (True, True, True, 0)


def test_no_report_is_a_miss_that_misleads() -> None:
    score = crashed(FAULT, "Traceback")
    assert (score.found, score.named, len(score.misleading)) == (False, False, 1)


def test_a_miss_is_counted_and_written_down() -> None:
    hit = judge(FAULT, report(("GPU-002", "fail", finding())))
    miss = judge(FAULT, report(("GPU-003", "fail", finding())))
    assert by_theme([hit, miss]) == [Row("memory and ECC", 2, 1, 1, 1, 1)]
    text = card.page(card.Card([hit, miss], [], []))
    assert "| all faults | 2 | 1 | 1 | 1 | 1 |" in text
    assert "| made up | ✗ | ✗ | ✗ | not found (found: GPU-003) |" in text
    assert "- made up: GPU-003: 4 uncorrectable" in text


def test_there_are_enough_faults() -> None:
    faults = themes.all_faults()
    assert len(faults) >= 120
    assert {fault.theme for fault in faults} == set(THEMES)
    assert {fault.base for fault in faults} == set(BASES)


def test_a_fault_changes_its_machine() -> None:
    bases = {name: _whole(base()) for name, base in BASES.items()}
    for fault in themes.all_faults():
        assert _whole(fault.machine()) != bases[fault.base], fault.name


def _whole(m: Machine) -> Any:
    return tree(m), m.limits, m.mounts, m.shm, m.environment, m.services, m.user


def test_the_page_counts_all_faults() -> None:
    """All else on it takes minutes: tests/functional/test_faulty_machines.py, marked heavy."""
    table = PAGE.partition("## Faults\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| ([^|]+) \| (\d+) \|", table, re.M)
    counted = {name: int(number) for name, number in rows}
    faults = themes.all_faults()
    for theme in THEMES:
        assert counted[theme] == sum(fault.theme == theme for fault in faults), f"{theme}: {ANEW}"
    assert counted["all faults"] == len(faults), ANEW


ANEW = "write it anew: .venv/bin/python benchmarks/scorecard.py --write"
