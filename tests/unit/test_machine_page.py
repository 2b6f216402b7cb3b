"""A machine's page: one file that fetches nothing, says what the report says, and keeps text as text."""

from __future__ import annotations

import re
from functools import cache

import demos
import pytest
import soak_runs
from hostile import MARKUP, TEXTS
from hostile_snapshots import filled
from html_reading import Reading, problems
from msgspec.structs import replace

from envcheck.checks.engine import diagnose
from envcheck.facts.snapshot import Snapshot
from envcheck.reports import machine_page
from envcheck.reports.model import Report, build
from envcheck.reports.plain import worst_first

KILO = 1024


def reported(snapshot: Snapshot) -> Report:
    return build(snapshot, diagnose(snapshot))


def page(snapshot: Snapshot) -> str:
    return machine_page.render(reported(snapshot), snapshot)


@cache
def demo(name: str) -> tuple[Snapshot, Report, str]:
    snapshot = demos.DEMOS[name][1]()
    snapshot = replace(snapshot, machine=demos.wired(snapshot.machine), simulated=name)
    report = reported(snapshot)
    return snapshot, report, machine_page.render(report, snapshot)


@pytest.mark.parametrize("name", demos.DEMOS)
def test_a_page_is_whole_and_small(name: str) -> None:
    _, _, html = demo(name)
    assert problems(html) == []
    assert len(html.encode()) <= 400 * KILO


@pytest.mark.parametrize("name", demos.DEMOS)
def test_a_page_names_every_gpu_and_every_problem(name: str) -> None:
    _, report, html = demo(name)
    words = Reading(html).text
    assert f"Simulated, not real: {name}" in words
    for headline in report.headlines:
        assert headline in words
    for result in worst_first(report.results):
        assert f'id="problem-{result.code}"' in html
        for finding in result.findings:
            assert " ".join(finding.message.split()) in words
            for command in finding.remedy.commands if finding.remedy else ():
                assert " ".join(command.split()) in words
    for result in report.results:
        assert result.code in words or result.outcome == "skipped"
    if name != "driver-update":  # where the driver says nothing, GPUs have an address alone
        assert all(f"GPU {number}" in words for number in range(8))


def test_a_soak_has_its_table() -> None:
    soaked = soak_runs.snapshot(soak_runs.gpu(0), soak_runs.gpu(1))
    html = page(soaked)
    (section,) = re.findall(r'<section id="soak".*?</section>', html, re.DOTALL)
    assert "TFLOP/s" in section and "GPU 1" in section
    assert problems(html) == []


@pytest.mark.parametrize("word", [*MARKUP, *TEXTS.values()], ids=lambda word: repr(word[:24]))
@pytest.mark.parametrize("name", ["odd-machine", "silent-systems"])
def test_hostile_text_stays_text(name: str, word: str) -> None:
    html = page(filled(name, word[:10_000]))
    assert problems(html) == []
    assert len(html) < 1500 * KILO


def test_nothing_known_is_a_page_too() -> None:
    snapshot = demos.healthy()
    names = [n for n in snapshot.machine.__struct_fields__ if n not in ("origin", "location")]
    nothing = dict.fromkeys(
        n for n in names if n not in ("collected_at", "collector", "extensions")
    )
    html = page(replace(snapshot, machine=replace(snapshot.machine, **nothing), target=None))
    assert problems(html) == []
    assert "Its GPUs are not known" in html
