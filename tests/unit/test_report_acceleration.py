"""The report's lines on acceleration systems: each state in each form, narrow and wide."""

from __future__ import annotations

from typing import Any

import pytest
from made_findings import made_finding
from whole import whole

from envcheck.checks.registry import all_checks, all_systems
from envcheck.collector import systems
from envcheck.facts.snapshot import Snapshot
from envcheck.findings.model import DEEPER, CheckResult, Diagnosis
from envcheck.findings.subjects import about
from envcheck.reports import acceleration, terminal
from envcheck.reports.model import LEFT_OUT, Report, build
from envcheck.reports.page import Page

TENSORFLOW = about("framework", "TensorFlow")


def result(title: str, outcome: Any, area: str = "acceleration", **more: Any) -> CheckResult:
    code = f"ACC-9{len(title):02}" if area == "acceleration" else f"MEM-9{len(title):02}"
    return CheckResult(code=code, area=area, title=title, outcome=outcome, **more)


SILENT = made_finding(
    "fail",
    "XLA in TensorFlow 2.15.1 compiles nothing: ptxas 11.2 does not know sm_90.",
    TENSORFLOW,
    headline="XLA is on and compiles nothing: ptxas 11.2 does not know sm_90",
)
RESULTS = [
    result("AMP in PyTorch", "pass", detail="PyTorch 2.4.1: 2 of 2 products half"),
    result("XLA", "fail", findings=[SILENT]),
    result(
        "AMP and Tensor Cores",
        "warn",
        findings=[made_finding("warn", "m.", TENSORFLOW, headline="AMP engages and gains nothing")],
    ),
    result("NCCL", "could-not-run", reason="GPU 0: python (process 7) is using it"),
    result("TF-TRT", "skipped", reason="not applicable: TensorRT is not installed"),
    result("DALI", "skipped", reason="not applicable: nvidia.dali is not installed"),
    result("Horovod", "skipped", reason="not applicable: TensorRT is not installed"),
    result("Mirrored", "skipped", reason="skipped because of FRM-001: x", consequence_of="FRM-001"),
    result("Workers", "skipped", reason=DEEPER),
    result("Convolutions", "skipped", reason=LEFT_OUT),
    result("Pattern", "pass", "memory", detail="GPU 0: 1024 MiB"),
    result("Bandwidth", "warn", "memory", findings=[made_finding("warn", "GPU 0 is slow.")]),
]

WIDE = """\

Acceleration: 1 engaged, 1 not engaged, 1 in doubt, 2 could not run, 3 not
  applicable, 1 as it must be, 1 slow
  engaged        AMP in PyTorch        PyTorch 2.4.1: 2 of 2 products half
  not engaged    XLA                   XLA is on and compiles nothing: ptxas
                                       11.2 does not know sm_90 (TensorFlow)
  in doubt       AMP and Tensor Cores  AMP engages and gains nothing
                                       (TensorFlow)
  could not run  NCCL                  GPU 0: python (process 7) is using it
  as it must be  Pattern               GPU 0: 1024 MiB
  slow           Bandwidth             GPU 0 is slow.
  not applicable: TF-TRT, Horovod (TensorRT is not installed)
  not applicable: DALI (nvidia.dali is not installed)
  could not run: Mirrored (because of FRM-001)
"""


def report(snapshot: Snapshot | None = None, results: list[CheckResult] | None = None) -> Report:
    found = RESULTS if results is None else results
    return build(snapshot or whole(), Diagnosis(list(found)))


def shown(
    width: int, results: list[CheckResult] | None = None, verbose: bool = False, **style: Any
) -> str:
    page = Page(width=width, **style)
    made = acceleration.section(report(results=results), whole(), verbose=verbose)
    if made is not None:
        terminal.draw(page, made)
    return page.text()


def test_many_systems_that_are_not_applicable_share_a_line_and_v_names_them() -> None:
    """Seen: nineteen of them at length on a CPU build."""
    many = [
        result(
            "System " + "x" * number,
            "skipped",
            reason=f"not applicable: reason {'abc'[number % 3]}",
        )
        for number in range(1, 20)
    ]
    whole_text = shown(80, [*many, RESULTS[0]])
    (line,) = [line for line in whole_text.splitlines() if line.startswith("  not applicable")]
    assert line == "  not applicable: 19 systems (reason b; reason c; reason a)"
    full = " ".join(shown(80, many, verbose=True).split())
    assert all(one.title in full for one in many)


@pytest.mark.parametrize("width", [60, 80])
def test_each_state_has_its_line(width: int) -> None:
    assert shown(80) == WIDE
    assert all(len(line) <= width for line in shown(width).splitlines())
    plain = shown(width, utf8=False)
    assert plain.isascii() and "\x1b" not in plain


def test_every_system_that_is_judged_can_be_run_and_every_title_fits_its_column() -> None:
    assert set(all_systems()) == {one.name for one in systems.load()}
    for check in all_checks():
        if check.area in acceleration.AREAS:
            assert check.systems, f"{check.code} judges no system"
            assert 0 < len(check.title) <= 20, check.title
