"""Pages in a real browser: three widths, dark, without a script, with hostile words."""

from __future__ import annotations

from pathlib import Path

import demos
import fleet_results
import pytest
from browser import WIDTHS, Chromium
from browser import chromium as chromium
from hostile import MARKUP
from hostile_snapshots import filled

from envcheck.checks.engine import diagnose
from envcheck.facts.snapshot import Snapshot, load
from envcheck.fleet.model import FleetResult
from envcheck.fleet.reports import page
from envcheck.reports import machine_page
from envcheck.reports.model import build

pytestmark = pytest.mark.fleet


def machine(folder: Path, snapshot: Snapshot) -> Path:
    path = folder / "machine.html"
    path.write_text(machine_page.render(build(snapshot, diagnose(snapshot)), snapshot))
    return path


def fleet(folder: Path, found: FleetResult) -> Path:
    path = folder / "fleet.html"
    path.write_text(page.render(found), errors="replace")
    return path


@pytest.mark.parametrize("name", ["odd-machine", "silent-systems", "bench", "fleet"])
def test_nothing_sticks_out_and_axe_finds_nothing(
    chromium: Chromium, tmp_path: Path, name: str
) -> None:
    shown = (
        fleet(tmp_path, fleet_results.everything())
        if name == "fleet"
        else machine(tmp_path, load(demos.build(name)))
    )
    for width in WIDTHS:
        with chromium.open(shown, width, dark=width == 800) as opened:
            opened.open_all()
            assert opened.overflowing() == [] and opened.troubles() == []
            assert opened.axe() == []


def test_buttons_copy_and_links_lead_somewhere(chromium: Chromium, tmp_path: Path) -> None:
    with chromium.open(machine(tmp_path, load(demos.build("odd-machine")))) as opened:
        wanted = opened.page.locator("pre.command").all_inner_texts()
        assert opened.dead_links() == []
        assert wanted and [one.strip() for one in opened.copied()] == wanted


def test_words_filter_the_machines(chromium: Chromium, tmp_path: Path) -> None:
    found = fleet_results.everything()
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
