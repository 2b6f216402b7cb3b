"""The report's lines on acceleration systems: each state in each form, narrow and wide."""

from __future__ import annotations

import json
from typing import Any
from xml.etree import ElementTree as ET

import msgspec
import pytest
from made_findings import made_finding
from whole import whole

from envcheck import json_text
from envcheck.checks.registry import all_checks, all_systems
from envcheck.collector import systems
from envcheck.facts.acceleration import Acceleration, SystemRun, SystemTrial
from envcheck.facts.base import Probe
from envcheck.facts.snapshot import Snapshot
from envcheck.findings.model import DEEPER, CheckResult, Diagnosis
from envcheck.findings.subjects import about
from envcheck.reports import acceleration, junit, markdown, terminal
from envcheck.reports.model import LEFT_OUT, Report, build

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
    result("Spark", "skipped", reason=DEEPER),
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
NARROW = """\

Acceleration: 1 engaged, 1 not engaged, 1 in doubt, 2 could
  not run, 3 not applicable, 1 as it must be, 1 slow
  engaged       AMP in PyTorch: PyTorch 2.4.1: 2 of 2
                products half
  not engaged   XLA: XLA is on and compiles nothing: ptxas
                11.2 does not know sm_90 (TensorFlow)
  in doubt      AMP and Tensor Cores: AMP engages and gains
                nothing (TensorFlow)
  could not run NCCL: GPU 0: python (process 7) is using it
  as it must be Pattern: GPU 0: 1024 MiB
  slow          Bandwidth: GPU 0 is slow.
  not applicable: TF-TRT, Horovod (TensorRT is not
    installed)
  not applicable: DALI (nvidia.dali is not installed)
  could not run: Mirrored (because of FRM-001)
"""


def report(snapshot: Snapshot | None = None, results: list[CheckResult] | None = None) -> Report:
    found = RESULTS if results is None else results
    return build(snapshot or whole(), Diagnosis(list(found)))


def told(width: int, results: list[CheckResult] | None = None, **style: Any) -> str:
    page = terminal.Page(width=width, **style)
    acceleration.section(page, report(results=results), whole(), verbose=False)
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
    whole_text = told(80, [*many, RESULTS[0]])
    (line,) = [line for line in whole_text.splitlines() if line.startswith("  not applicable")]
    assert line == "  not applicable: 19 systems (reason b; reason c; reason a)"
    page = terminal.Page(width=80)
    acceleration.section(page, report(results=many), whole(), verbose=True)
    assert all(one.title in " ".join(page.text().split()) for one in many)


@pytest.mark.parametrize(("width", "expected"), [(80, WIDE), (60, NARROW)])
def test_each_state_has_its_line(width: int, expected: str) -> None:
    assert told(width) == expected
    assert all(len(line) <= width for line in told(width).splitlines())
    plain = told(width, utf8=False)
    assert plain.isascii() and "\x1b" not in plain


@pytest.mark.parametrize("width", [40, 60, 72, 80, 120])
def test_colours_change_nothing_but_colours(width: int) -> None:
    import re

    assert re.sub(r"\x1b\[[0-9;]*m", "", told(width, colour=True)) == told(width)


def test_there_is_no_section_where_nothing_was_asked_for() -> None:
    silent = [one for one in RESULTS if one.reason in (DEEPER, LEFT_OUT)]
    assert len(silent) == 2 and told(80, silent) == ""


def test_what_was_left_behind_is_told_with_v() -> None:
    trial = SystemTrial(
        name="jit", outcome="ok", evidence={"modules": 2, "rate": 0.123456, "scale": 32768.0}
    )
    control = SystemTrial(name="off", control=True, outcome="error", reason="ValueError: \x1b[1mx")
    run = SystemRun(
        system="xla",
        framework="jax",
        framework_version="0.4",
        outcome="ok",
        trials=[trial, control],
    )
    facts = Acceleration(systems=["xla"], runs=[run])
    snapshot = whole()
    assert snapshot.target is not None
    target = msgspec.structs.replace(snapshot.target, acceleration=Probe(outcome="ok", facts=facts))
    snapshot = msgspec.structs.replace(snapshot, target=target)
    xla = next(check for check in all_checks() if "xla" in check.systems)
    results = [
        CheckResult(code=xla.code, area=xla.area, title=xla.title, outcome="pass", detail="well")
    ]
    page = terminal.Page(width=80)
    acceleration.section(page, report(snapshot, results), snapshot, verbose=True)
    told_ = page.text()
    assert "      jit: modules 2, rate 0.1235, scale 32768\n" in told_
    assert "off (control): error: ValueError: " in told_ and "\x1b" not in told_


@pytest.mark.parametrize("width", [60, 80, 100])
def test_a_long_detail_is_one_line_but_with_v(width: int) -> None:
    long = "TensorFlow 2.15.1: " + "3 of 3 convolutions in 16 bits, " * 20 + "the end"
    results = [result("AMP in Keras", "pass", detail=long)]
    lines = told(width, results).splitlines()
    assert len(lines) == (4 if width == 60 else 3) and lines[-1].endswith("…"), lines
    page = terminal.Page(width=width)
    acceleration.section(page, report(results=results), whole(), verbose=True)
    assert "the end" in page.text() and "…" not in page.text()


def test_the_only_framework_is_not_named_in_each_line() -> None:
    run = SystemRun(
        system="amp-keras", framework="tensorflow", framework_version="2.15.1", outcome="ok"
    )
    snapshot = whole()
    assert snapshot.target is not None
    for further, words in ([], "  3 of 3"), ([_in_jax()], "  TensorFlow 2.15.1: 3 of 3"):
        facts = Acceleration(systems=["amp-keras"], runs=[run, *further])
        target = msgspec.structs.replace(
            snapshot.target, acceleration=Probe(outcome="ok", facts=facts)
        )
        looked = msgspec.structs.replace(snapshot, target=target)
        results = [result("AMP in Keras", "pass", detail="TensorFlow 2.15.1: 3 of 3 convolutions")]
        page = terminal.Page(width=100)
        acceleration.section(page, report(looked, results), looked, verbose=False)
        assert words in page.text()


def _in_jax() -> SystemRun:
    return SystemRun(system="xla", framework="jax", framework_version="0.4", outcome="ok")


def test_several_runs_are_told_apart_in_their_evidence() -> None:
    trial = SystemTrial(name="jit", outcome="ok", evidence={"modules": 2})
    runs = [
        SystemRun(system="xla", framework=name, framework_version="1", outcome="ok", trials=[trial])
        for name in ("tensorflow", "jax")
    ]
    snapshot = whole()
    assert snapshot.target is not None
    probe = Probe(outcome="ok", facts=Acceleration(systems=["xla"], runs=runs))
    target = msgspec.structs.replace(snapshot.target, acceleration=probe)
    snapshot = msgspec.structs.replace(snapshot, target=target)
    xla = next(check for check in all_checks() if "xla" in check.systems)
    made = CheckResult(code=xla.code, area=xla.area, title=xla.title, outcome="pass", detail="well")
    lines = list(acceleration._evidence(snapshot, made))
    assert lines == ["TensorFlow 1: jit: modules 2", "JAX 1: jit: modules 2"]


def test_the_other_forms_tell_the_same() -> None:
    made = report()
    text = markdown.render(made, whole())
    assert "**Acceleration**: AMP in PyTorch engaged; XLA not engaged; " in text
    assert "NCCL, Mirrored could not run; TF-TRT, DALI, Horovod not applicable" in text
    assert "Spark" not in text.partition("**Acceleration**")[2].splitlines()[0]
    suites = {one.get("name"): one for one in ET.fromstring(junit.render(made))}
    suite = suites["Acceleration"]
    assert (suite.get("failures"), suite.get("errors")) == ("1", "1")
    outcomes = {r["title"]: r["outcome"] for r in json.loads(json_text.render(made))["results"]}
    assert outcomes["XLA"] == "fail" and outcomes["Mirrored"] == "skipped"
    brief = terminal.brief(made, whole(), width=80, colour=False, utf8=True)
    assert "XLA is on and compiles nothing" in brief and "Acceleration:" not in brief


def test_every_system_that_is_judged_can_be_run_and_every_title_fits_its_column() -> None:
    assert set(all_systems()) == {one.name for one in systems.load()}
    for check in all_checks():
        if check.area in acceleration.AREAS:
            assert check.systems, f"{check.code} judges no system"
            assert 0 < len(check.title) <= acceleration._TITLE_CELLS, check.title
