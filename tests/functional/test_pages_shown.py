"""Pages in a real browser: three widths, dark, without a script, with hostile words."""

from __future__ import annotations

from pathlib import Path

import corpus
import demos
import fleet_results
import pytest
from browser import WIDTHS, Chromium
from browser import chromium as chromium
from hostile import MARKUP
from hostile_snapshots import filled

from envcheck.bench.results import results
from envcheck.checks.engine import diagnose
from envcheck.facts.snapshot import Snapshot, load
from envcheck.fleet.model import FleetResult
from envcheck.fleet.reports import page
from envcheck.reports import bench_model, bench_page, machine_page
from envcheck.reports.model import build

pytestmark = pytest.mark.fleet

# Of the reports of the corpus, those with the longest pages.
LONGEST = ("mig-reset-refused-drm-holds", "all-cuda-devices-busy-in-exclusive-mode")


def machine(folder: Path, snapshot: Snapshot) -> Path:
    path = folder / f"machine-{len(list(folder.iterdir()))}.html"
    path.write_text(machine_page.render(build(snapshot, diagnose(snapshot)), snapshot))
    return path


def bench(folder: Path) -> Path:
    snapshot = load(demos.build("bench"))
    found = results(snapshot)
    assert found is not None
    report = bench_model.build(snapshot, found, diagnose(snapshot, [bench_model.AREA]))
    path = folder / "bench.html"
    path.write_text(bench_page.render(report, found, snapshot))
    return path


def fleet(folder: Path, found: FleetResult) -> Path:
    path = folder / "fleet.html"
    path.write_text(page.render(found), errors="replace")
    return path


@pytest.mark.parametrize("name", ["odd-machine", "silent-systems", "bench", "fleet"])
def test_nothing_sticks_out_and_axe_finds_nothing(
    chromium: Chromium, tmp_path: Path, name: str
) -> None:
    if name == "bench":
        shown = bench(tmp_path)
    elif name == "fleet":
        shown = fleet(tmp_path, fleet_results.everything(100))
    else:
        shown = machine(tmp_path, load(demos.build(name)))
    for width in WIDTHS:
        with chromium.open(shown, width, dark=width == 800) as opened:
            opened.open_all()
            assert opened.overflowing() == [] and opened.troubles() == []
            assert opened.axe() == []


def test_machines_print_on_4_pages_and_1000_of_them_on_10(
    chromium: Chromium, tmp_path: Path
) -> None:
    made = [load(demos.build(name)) for name in demos.DEMOS]
    made += [corpus.snapshot(corpus.reports()[name]) for name in LONGEST]
    shown = [(machine(tmp_path, one), 4) for one in made]
    shown += [(bench(tmp_path), 4), (fleet(tmp_path, fleet_results.everything()), 10)]
    for path, most in shown:
        with chromium.open(path) as opened:
            assert opened.sheets() <= most


def test_buttons_copy_and_links_lead_somewhere(chromium: Chromium, tmp_path: Path) -> None:
    with chromium.open(machine(tmp_path, load(demos.build("odd-machine")))) as opened:
        wanted = opened.page.locator("pre.command").all_inner_texts()
        assert opened.dead_links() == []
        assert wanted and [one.strip() for one in opened.copied()] == wanted


def test_words_filter_the_machines(chromium: Chromium, tmp_path: Path) -> None:
    found = fleet_results.everything(100)
    with chromium.open(fleet(tmp_path, found)) as opened:
        rows = opened.page.locator("#machines tbody tr:visible")
        assert rows.count() == len(found.machines)
        opened.page.fill("#machines input", found.machines[0].name)
        assert 0 < rows.count() < len(found.machines)


@pytest.mark.parametrize("word", MARKUP[:2])
def test_hostile_words_do_nothing(chromium: Chromium, tmp_path: Path, word: str) -> None:
    for shown in (
        machine(tmp_path, filled("odd-machine", word)),
        fleet(tmp_path, fleet_results.hostile()),
    ):
        with chromium.open(shown, WIDTHS[0]) as opened:
            assert opened.troubles() == []
            assert opened.page.locator("img, iframe").count() == 0
