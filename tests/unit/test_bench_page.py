"""The page of a bench's plots: one file that runs and fetches nothing, whatever a Snapshot says."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree as ET

import bench_told as b
import pytest
from h100 import ADDRESSES
from hostile import MARKUP
from html_reading import Reading, problems
from msgspec.structs import replace
from test_bench_text import MACHINE, every_state, report
from test_plots import inside

from envcheck.bench.records import RowResult
from envcheck.facts.bench import RowRun
from envcheck.reports import bench_page

KILO = 1024


def page(*rows: RowResult, **changes: Any) -> str:
    told, found = report(*rows, **changes)
    return bench_page.render(told, found, MACHINE)


def eight_gpus() -> list[RowResult]:
    """Eight GPUs alone and together, ten minutes of samples of each."""
    rows = []
    for number, gpu in enumerate(ADDRESSES):
        samples = [b.samples(gpu, 60.0 * number, 600.0, heat=60.0 + number)]
        run = b.ran(b.row(f"amp on GPU {number}", gpus=[gpu]), 2700, samples=samples)
        rows.append(b.judged(run, references=[b.PUBLISHED]))
    samples = [b.samples(gpu, 900.0, 600.0) for gpu in ADDRESSES]
    together = b.row("amp on all", gpus=list(ADDRESSES), together="mirrored")
    rows.append(b.judged(b.ran(together, 21000, samples=samples, began=900)))
    return rows


def test_a_page_of_eight_gpus_is_small_and_drawn_within_its_edges() -> None:
    html = page(*eight_gpus())
    assert len(html.encode()) <= 400 * KILO
    plots = re.findall(r'<svg[^>]*class="plot".*?</svg>', html, re.DOTALL)
    titles = [ET.fromstring(plot)[0].text for plot in plots]
    assert titles == ["SM clock", "Temperature", "Power"]
    for plot in plots:
        inside(plot)
    ids = [value for _, given in Reading(html).elements if (value := given.get("id"))]
    assert len(ids) == len(set(ids)) > 2 * len(plots)


def test_the_page_says_what_the_text_says() -> None:
    words = " ".join(Reading(page(*every_state())).words)
    for told in (
        "1 problem: resnet50 amp xla 256: 21 % below 2,790 images/s",
        "2,210 ±0.4 %",
        "out of memory: because of out-of-memory",
        "Compared with",
        "envcheck bench --target",
        "535.104.05",
        "half_convolutions: 158",
    ):
        assert told in words


def hostile(word: str) -> tuple[list[RowResult], dict[str, Any]]:
    """Rows in which every text is that word."""
    run = _filled(b.ran(b.row(), 2210), word)
    row = replace(run.row, name=word, group=word)
    reference = b.ReferenceRate(rate=9, kind="published", about=word, source=word)
    texts: dict[str, Any] = {
        "verdict": "fail",
        "verdict_words": word,
        "suspect": word,
        "proof": "not-engaged",
        "proof_words": word,
        "references": [reference],
    }
    rows = [
        b.judged(replace(run, row=replace(row, model=word)), **texts),
        b.judged(replace(run, row=row, losses=[1.0, None]), **texts),
        b.judged(replace(run, row=row, outcome="error", repetitions=[]), **texts),
    ]
    return rows, {"settings": {word: word}, "asked": [word], "inside": word, "began": word}


def _filled(run: RowRun, word: str) -> RowRun:
    return replace(
        run, reason=word, framework_version=word, evidence={word: word, "n": 1}, log=[word]
    )


@pytest.mark.parametrize("word", MARKUP)
def test_a_hostile_word_cannot_leave_its_place(word: str) -> None:
    rows, changes = hostile(word)
    html = page(*rows, **changes)
    harmless, changed = hostile("word")
    found, same = Reading(html), Reading(page(*harmless, **changed))
    assert problems(html) == []
    assert [tag for tag, _ in found.elements] == [tag for tag, _ in same.elements]
    assert [sorted(given) for _, given in found.elements] == [
        sorted(given) for _, given in same.elements
    ]
