"""The verdict: one line that names what matters."""

from __future__ import annotations

from typing import Any

import h100
import msgspec
import pytest
import whole
from reported import consequence, finding, report_of, result

from envcheck.checks.engine import diagnose
from envcheck.facts.pci import Pci
from envcheck.facts.snapshot import Snapshot
from envcheck.reports import terminal
from envcheck.reports.model import Report, build


def judged(snapshot: Snapshot, **only: Any) -> Report:
    return build(snapshot, diagnose(snapshot, **only))


def first(snapshot: Snapshot, **style: Any) -> str:
    """The first line of the report."""
    return terminal.render(judged(snapshot), snapshot, **style).partition("\n")[0]


def hot(*indices: int) -> Snapshot:
    gpus = [
        h100.gpu(n, clock_event_reasons=["hw_thermal_slowdown"], clock_sm_mhz=345)
        if n in indices
        else h100.gpu(n)
        for n in range(h100.COUNT)
    ]
    return whole.whole(nvml=h100.nvml(gpus), nvidia_smi=h100.smi(gpus))


def no_gpu(target: Any = None) -> Snapshot:
    seen = h100.machine([], pci=Pci(devices=[]), kernel=whole.unloaded())
    return msgspec.structs.replace(seen, target=target)


@pytest.mark.parametrize(
    ("indices", "who"),
    [((3,), "GPU 3 is"), ((0, 1, 2, 5), "GPUs 0–2, 5 are"), (tuple(range(8)), "all 8 GPUs are")],
)
def test_a_problem_of_gpus_names_them(indices: tuple[int, ...], who: str) -> None:
    assert first(hot(*indices)) == f"✗ 1 problem: {who} throttled by heat"


def test_what_others_follow_from_stands_first() -> None:
    results = [
        result("A-1", "host", "warn", findings=[finding("W.", "warn")]),
        result("A-2", "host", "fail", findings=[finding("One."), finding("Small.", "warn")]),
        result("A-3", "host", "fail", findings=[finding("Root.")]),
        consequence("A-4", "host", "A-3", "It follows."),
        consequence("A-5", "host", "A-3", "And that."),
    ]
    report = report_of(*results)
    assert (report.verdict, report.headlines) == ("2 problems: Root.; One.", ["Root.", "One."])


def test_brief_is_the_verdict() -> None:
    one = result("A-1", "host", "fail", findings=[finding("M.", headline="it burns")])
    two = result("A-2", "host", "fail", findings=[finding("N.", headline="it rains")])
    text = terminal.brief(report_of(one, two), whole.whole())
    assert text == "✗ 2 problems: it burns; it rains\n"
