"""A bench's page: what differs is at the top, the sums are below, and nothing gets out of its place."""

from __future__ import annotations

import bench_told as b
import demos
import pytest
from hostile import MARKUP
from html_reading import Reading, problems
from msgspec.structs import replace

from envcheck.bench.records import RowResult
from envcheck.bench.results import results
from envcheck.checks.engine import diagnose
from envcheck.facts.snapshot import load
from envcheck.findings.model import Diagnosis
from envcheck.reports import bench_model, bench_page

MACHINE = demos.healthy()


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


def test_without_a_reference_it_says_so() -> None:
    html = page(b.judged(b.ran(b.row(), 2210)))
    assert "No figure is known that fits to compare the rows with." in html and problems(html) == []
