"""A fleet's page in a browser: what it shows at three widths; filtered, sorted, sent, and without a mouse."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import fleet_page_results
import pytest
from browser import WIDTHS, Chromium, OpenPage

from envcheck.fleet.model import FleetResult
from envcheck.fleet.reports import page
from envcheck.reports import html

pytestmark = pytest.mark.fleet

ROWS = "#all tbody tr:visible"
NAMES = "rows => rows.map(row => row.cells[0].textContent)"


def fleet_folder(folder: Path, found: FleetResult) -> Path:
    """The page, and a page for each machine."""
    folder.mkdir()
    page.write(found, folder)
    for machine in found.machines:
        if machine.page:
            head = html.Masthead(about_what="machine", title=machine.name, kind="pass", word="ok")
            text = html.page(machine.name, head, [])
            (folder / machine.page).write_text(text)
    return folder / page.INDEX


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fleet_folder(tmp_path_factory.mktemp("pages") / "fleet", fleet_page_results.fleet(120))


@contextmanager
def at(chromium: Chromium, index: Path, after: str = "", **how: bool) -> Iterator[OpenPage]:
    with chromium.open(index, after=after, **how) as opened:
        yield opened
        assert opened.troubles() == []


def names(opened: OpenPage) -> list[str]:
    return list(opened.page.eval_on_selector_all(ROWS, NAMES))


@pytest.mark.parametrize("count", [0, 5, 40, 1000])
def test_nothing_sticks_out_and_axe_finds_nothing(
    chromium: Chromium, tmp_path: Path, count: int
) -> None:
    index = fleet_folder(tmp_path / "fleet", fleet_page_results.fleet(count))
    for width in WIDTHS:
        with chromium.open(index, width, dark=width == 800) as opened:
            # Far below, nothing is laid out before one comes near.
            opened.page.evaluate("() => scrollTo(0, document.body.scrollHeight)")
            assert opened.overflowing() == []
            assert opened.overlapping_texts() == []
            if width == 800 or count == 40:
                assert opened.axe() == []
            assert opened.dead_links() == []
            assert opened.troubles() == []


def test_links_arrive_and_copy_buttons_copy(chromium: Chromium, index: Path) -> None:
    with at(chromium, index) as opened:
        assert opened.click_links(12) == []
        copied = opened.copied(".copied button")
        shown = opened.page.locator("pre.command").all_inner_texts()
        assert copied == shown
        assert "sudo apt-get install nvidia-driver-550\nsudo reboot" in copied


def test_a_state_and_words_filter_the_table_and_the_map(chromium: Chromium, index: Path) -> None:
    with at(chromium, index) as opened:
        assert len(names(opened)) == 120
        bad = opened.page.locator(".legend button", has_text="problems").first
        bad.click()
        shown = names(opened)
        found = [m.name for m in fleet_page_results.fleet(120).machines if m.state == "problems"]
        assert sorted(shown) == found
        assert bad.get_attribute("aria-pressed") == "true"
        assert opened.page.locator("#cells a:not(.out)").count() == len(found)
        assert opened.page.inner_text(".find output") == f"{len(found)} of 120 shown"
        opened.page.fill(".find input", "rack-03 TC-004")
        assert 0 < len(names(opened)) < len(found)
        assert opened.page.url.endswith("#text=rack-03+TC-004&state=f")
        bad.click()
        opened.page.fill(".find input", "")
        assert len(names(opened)) == 120
        assert "#" not in opened.page.url and opened.page.inner_text(".find output") == ""


def test_what_is_shown_can_be_sent(chromium: Chromium, index: Path) -> None:
    with at(chromium, index, "#text=leaf1&state=f&sort=-machine&by=switch") as opened:
        shown = names(opened)
        assert shown == sorted(shown, reverse=True) and shown
        assert opened.page.input_value(".find input") == "leaf1"
        pressed = opened.page.locator("[aria-pressed=true]").all_inner_texts()
        assert [words.split("\n")[0] for words in pressed] == ["problems", "switch"]
        assert opened.page.locator("#cells .place").count() == 3
    with at(chromium, index, "#text=<img src=x onerror=alert(1)>&state=zz&sort=zz&by=zz") as opened:
        assert names(opened) == []
    with at(chromium, index, "#shared") as opened:
        assert len(names(opened)) == 120


def test_columns_sort_both_ways_and_back(chromium: Chromium, index: Path) -> None:
    with at(chromium, index) as opened:
        first = names(opened)
        button = opened.page.locator("#all thead button").first
        head = opened.page.locator("#all thead th").first
        assert head.get_attribute("aria-sort") == "none"
        button.click()
        assert head.get_attribute("aria-sort") == "ascending"
        assert names(opened) == sorted(first)
        button.click()
        assert head.get_attribute("aria-sort") == "descending"
        assert names(opened) == sorted(first, reverse=True)
        button.click()
        assert head.get_attribute("aria-sort") == "none" and names(opened) == first
        what = opened.page.locator("#all thead button", has_text="What")
        what.click()
        words = opened.page.eval_on_selector_all(
            ROWS, "rows => rows.map(r => r.cells[2].textContent)"
        )
        told = [one for one in words if one]
        assert words[: len(told)] == told and len(told) < 120


def test_the_map_is_walked_by_the_keyboard(chromium: Chromium, index: Path) -> None:
    with at(chromium, index) as opened:
        opened.page.locator(".arrange button").last.focus()
        opened.page.keyboard.press("Tab")
        assert opened.focused() == "a gpu0001"
        for key, name in (("ArrowRight", "gpu0002"), ("ArrowDown", ""), ("End", "gpu0120")):
            opened.page.keyboard.press(key)
            assert opened.focused().startswith(f"a {name}")
        opened.page.keyboard.press("ArrowRight")
        assert opened.focused() == "a gpu0120"
        # One stop: the next is beyond the map.
        opened.page.keyboard.press("Tab")
        assert not opened.page.evaluate("() => document.activeElement.closest('#cells') !== null")
        opened.page.keyboard.press("Shift+Tab")
        opened.page.keyboard.press("Home")
        opened.page.keyboard.press("Enter")
        opened.page.wait_for_url("**/gpu0001.html")


def test_the_map_is_arranged_anew(chromium: Chromium, index: Path) -> None:
    with at(chromium, index) as opened:
        before = opened.page.locator("#cells a").count()
        for kind, places in (("switch", 3), ("product", 3), ("name", 1), ("rack", 8)):
            opened.page.locator(".arrange button", has_text=kind).click()
            assert opened.page.locator("#cells .place").count() == places
            assert opened.page.locator("#cells a").count() == before
        assert opened.axe() == []


def test_a_group_shows_its_machines_in_the_table(chromium: Chromium, index: Path) -> None:
    group = fleet_page_results.fleet(120).groups[0]
    with at(chromium, index) as opened:
        opened.page.locator(f"a[data-find={group.code}]").first.click()
        assert sorted(names(opened)) == sorted(group.machines)
        assert opened.page.evaluate(
            "() => document.querySelector('#machines').getBoundingClientRect().top < innerHeight"
        )


def test_without_a_script_all_is_there(chromium: Chromium, index: Path) -> None:
    with at(chromium, index, script=False) as opened:
        states = opened.page.locator("#all tbody td:nth-child(2)").all_inner_texts()
        assert len(states) == 120 and states[0] == "problems" and states[-1] == "well"
        assert not opened.page.is_visible(".find input")
        assert opened.page.locator("button:visible").count() == 0
        assert opened.dead_links() == []
        spoken = opened.spoken()
        assert 'heading "Outliers"' in spoken and 'link "gpu0001"' in spoken


def test_it_prints(chromium: Chromium, index: Path) -> None:
    with at(chromium, index, paper=True) as opened:
        assert not opened.page.is_visible(".find input")
        assert 2 < opened.paper_pages() < 15


def test_foreign_words_do_nothing(chromium: Chromium, tmp_path: Path) -> None:
    index = fleet_folder(tmp_path / "fleet", fleet_page_results.hostile())
    for width in WIDTHS:
        with chromium.open(index, width) as opened:
            assert opened.overflowing() == []
            assert opened.axe() == []
            assert opened.dead_links() == []
            for button in opened.page.locator(".arrange button").all():
                button.click()
            opened.page.fill(".find input", "../../etc/passwd")
            assert "../../etc/passwd" in names(opened)
            assert opened.troubles() == []
