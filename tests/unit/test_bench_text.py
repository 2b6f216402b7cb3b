"""A bench's report as text and as a page: each state of a row, at each width, and what differs at the top."""

from __future__ import annotations

from typing import Any

import bench_told as b
import demos
import pytest
from hostile import MARKUP
from html_reading import Reading, problems
from msgspec.structs import replace
from rich.cells import cell_len

from envcheck.bench.records import BenchResult, RowResult
from envcheck.bench.results import results
from envcheck.checks.engine import diagnose
from envcheck.facts.base import Unavailable
from envcheck.facts.bench import RowMemory
from envcheck.facts.snapshot import load
from envcheck.findings.model import Diagnosis
from envcheck.reports import bench, bench_model, bench_page
from envcheck.reports.bench_model import BenchReport

MACHINE = demos.healthy()


def report(*rows: RowResult, **changes: Any) -> tuple[BenchReport, BenchResult]:
    found = b.found(*rows, **changes)
    return bench_model.build(MACHINE, found, Diagnosis([])), found


def shown(*rows: RowResult, width: int = 120, **changes: Any) -> str:
    result, found = report(*rows, **changes)
    return bench.render(result, found, MACHINE, width=width)


def every_state() -> list[RowResult]:
    """A row of each kind that there is."""
    slow = b.judged(
        b.ran(b.row(), 2210),
        verdict="fail",
        verdict_words="21 % below 2,790 images/s",
        suspect="thermal slowdown in 38 % of the samples",
        references=[b.PUBLISHED],
        speed_up=5.5,
        utilisation=0.42,
    )
    rows = [slow]
    fields = {"compiled": False, "batch": 512, "group": "resnet50 512"}
    troubles = (
        "out-of-memory not-supported not-applicable not-run busy error timeout crashed interrupted"
    )
    for outcome in troubles.split():
        row = b.row(f"resnet50 {outcome}", **fields)
        run = b.ran(row, 1, rounds=0, outcome=outcome, reason=f"because of {outcome}")
        rows.append(b.judged(run, proof="not-known"))
    return rows


def line_with(text: str, word: str) -> str:
    (line,) = [line for line in text.splitlines() if word in line]
    return line


def test_a_row_has_all_that_the_table_is_for() -> None:
    text = shown(every_state()[0])
    line = line_with(text, "2,210 ±")
    cells = "resnet50 amp xla 256 yes yes FP16 256 2,210 ±0.4 % ×5.50 13.9 GiB 79 % [1] 42 %"
    assert " ".join(line.split()) == cells
    assert "[1]: published: H100 SXM5 80GB" in text and "README.md#L12" in text
    assert text.startswith("✗ 1 problem: resnet50 amp xla 256: 21 % below 2,790 images/s\n")
    assert "FAIL resnet50 amp xla 256: 21 % below 2,790 images/s\n" in text
    assert "resnet50 amp xla 256: first suspect: thermal slowdown in 38 %" in text


@pytest.mark.parametrize("width", (60, 80, 120))
@pytest.mark.parametrize("utf8", [True, False])
def test_no_line_is_wider_than_the_terminal(width: int, utf8: bool) -> None:
    result, found = report(*every_state())
    text = bench.render(result, found, MACHINE, width=width, utf8=utf8)
    lines = text.splitlines()
    assert not [
        line for line in lines if cell_len(line) > width and not line.startswith("envcheck ")
    ]
    assert utf8 or text.isascii()
    assert "2,210" in text and "79 %" in text


def test_foreign_words_stay_in_their_line() -> None:
    evil = "a\x1b[2Jb\nenvcheck: all is well\u202e"
    run = b.ran(
        b.row(evil, group=evil),
        1,
        rounds=0,
        outcome="error",
        reason=evil,
        framework_version=evil,
        memory=RowMemory(tensors_mib=Unavailable(unavailable="error", detail=evil)),
    )
    reference = b.ReferenceRate(rate=1, kind="baseline", about=evil, source=evil)
    text = shown(
        b.judged(run, verdict="warn", verdict_words=evil, suspect=evil, references=[reference])
    )
    assert "\x1b" not in text and "\u202e" not in text
    assert not [line for line in text.splitlines() if line.startswith("envcheck: all")]


def page(*rows: RowResult) -> str:
    found = b.found(*rows)
    report = bench_model.build(MACHINE, found, Diagnosis([]))
    return bench_page.render(report, found, MACHINE)


def test_the_slow_gpu_is_the_first_thing() -> None:
    snapshot = load(demos.build("bench"))
    found = results(snapshot)
    assert found is not None
    report = bench_model.build(snapshot, found, diagnose(snapshot, [bench_model.AREA]))
    html = bench_page.render(report, found, snapshot)
    read = Reading(html)
    assert problems(html) == []
    ids = [given["id"] for given in read.all("section")]
    assert ids == ["differences", "problems", "details", "rows-1", "scaling", "references", "again"]
    first = html.index('<tr class="fail">')
    assert first < html.index('<tr class="pass">') < html.index("resnet50 fp32 128")
    assert (
        "GPU 3" in html[first : first + 100]
        and "−22 %" in html[first : html.index("<tr", first + 1)]
    )
    assert 'data-name="What">resnet50 amp 256 on GPU 3 is 22% below' in html
    assert report.command in read.text and html.count('<pre class="command">') == 2


@pytest.mark.parametrize("word", MARKUP)
def test_foreign_words_stay_in_their_places(word: str) -> None:
    row = replace(b.row(), name=word)
    reference = replace(b.PUBLISHED, about=word, source=word)
    html = page(b.judged(b.ran(row, 2210), references=[reference], verdict_words=word))
    assert problems(html) == []


def test_a_page_without_a_reference_says_so() -> None:
    html = page(b.judged(b.ran(b.row(), 2210)))
    assert "No figure is known that fits to compare the rows with." in html and problems(html) == []
