"""A machine's page in a real browser: three widths, keyboard, dark, paper, without its script."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import WIDTHS, Chromium
from browser import chromium as chromium
from processes import PATIENCE

pytestmark = pytest.mark.fleet

DEMOS = Path(__file__).parents[2] / "envcheck" / "data" / "demos"
EVIL = (
    '<script>alert(1)</script>"><img src=x onerror=alert(1)>javascript:alert(1)',
    "</style></script></title></svg><iframe src=https://evil.example>",
    "a\u202egpj.\x1b[31m\x00\u200b\r\n</text>" + "x" * 200,
)


def write(source: Path, page: Path) -> Path:
    command = [sys.executable, "-m", "envcheck", "doctor", "--exit-zero", "--from", str(source)]
    subprocess.run(
        [*command, "--format", "html", "--output", str(page)], check=True, timeout=PATIENCE
    )
    return page


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Path]]:
    folder = tmp_path_factory.mktemp("pages")
    names = ("odd-machine", "silent-systems", "bench")
    yield {name: write(DEMOS / f"{name}.json", folder / f"{name}.html") for name in names}


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["odd-machine", "silent-systems", "bench"])
def test_nothing_sticks_out_and_nothing_is_complained_of(
    chromium: Chromium, pages: dict[str, Path], name: str, width: int
) -> None:
    with chromium.open(pages[name], width) as opened:
        opened.open_all()
        assert opened.overflowing() == []
        assert opened.overlapping_texts() == []
        assert opened.troubles() == []


def test_axe_finds_nothing(chromium: Chromium, pages: dict[str, Path]) -> None:
    with chromium.open(pages["odd-machine"]) as opened:
        opened.open_all()
        assert opened.axe() == []
    with chromium.open(pages["silent-systems"], dark=True) as opened:  # its tables are shown closed
        assert opened.axe() == []


def test_links_lead_where_they_say_and_buttons_copy(
    chromium: Chromium, pages: dict[str, Path]
) -> None:
    with chromium.open(pages["odd-machine"]) as opened:
        assert opened.dead_links() == [] and opened.click_links() == []
        wanted = opened.page.locator("pre.command").all_inner_texts()
        assert wanted and [one.strip() for one in opened.copied()] == wanted
        assert opened.troubles() == []


def test_what_is_wrong_is_said_where_it_is(chromium: Chromium, pages: dict[str, Path]) -> None:
    with chromium.open(pages["odd-machine"]) as opened:
        picture = opened.page.locator("svg.machine")
        assert picture.locator("rect.card.warn").count() == 1
        assert "Wrong: GPU 3: PCI-005" in opened.spoken()
        colours = opened.page.evaluate(
            "() => ['rect.card.gpu:not(.warn)', 'rect.card.gpu.warn'].map("
            "one => getComputedStyle(document.querySelector('.machine ' + one)).stroke)"
        )
        assert colours[0] != colours[1]


def test_the_keyboard_begins_with_the_content(chromium: Chromium, pages: dict[str, Path]) -> None:
    with chromium.open(pages["odd-machine"]) as opened:
        opened.page.keyboard.press("Tab")
        assert opened.focused() == "a Skip to the content"
        opened.page.keyboard.press("Enter")
        assert opened.focused().startswith("main")


def test_paper_has_all_of_it(chromium: Chromium, pages: dict[str, Path]) -> None:
    with chromium.open(pages["silent-systems"], 800, paper=True) as opened:
        hidden = opened.page.evaluate(
            "() => [...document.querySelectorAll('details')].filter("
            "one => one.querySelector(':scope > :not(summary)')"
            " && !one.querySelector(':scope > :not(summary)').checkVisibility("
            "{contentVisibilityAuto: true})).length"
        )
        assert hidden == 0
        assert not opened.page.locator("button").first.is_visible()
        assert opened.paper_pages() >= 4


def test_without_its_script_all_can_be_read(chromium: Chromium, pages: dict[str, Path]) -> None:
    with chromium.open(pages["odd-machine"], script=False) as opened:
        assert opened.page.locator("button").count() == 0
        words = opened.page.locator("body").inner_text()
        for told in ("2 warnings", "PCI-005", "nvidia-smi nvlink -s -i 0000:61:00.0", "The facts"):
            assert told in words
        opened.page.locator("summary").first.click()
        assert opened.page.locator("details").first.get_attribute("open") is not None


@pytest.mark.parametrize("word", EVIL, ids=lambda word: ascii(word[:16]))
def test_a_hostile_snapshot_does_nothing(chromium: Chromium, tmp_path: Path, word: str) -> None:
    facts = json.loads((DEMOS / "odd-machine.json").read_text())
    facts["simulated"] = word
    for place in ("hostname", "os_name", "kernel", "cpu_model"):
        facts["machine"]["host"]["facts"][place] = word
    for section in ("nvml", "nvidia_smi"):
        for gpu in facts["machine"][section]["facts"]["gpus"]:
            gpu |= {"name": word, "vbios": word, "uuid": word, "fabric_state": word}
        facts["machine"][section]["sources"] = {"*": word}
    facts["target"]["environment"]["facts"]["variables"] = {word: word}
    source = tmp_path / "machine.json"
    source.write_text(json.dumps(facts))
    page = write(source, tmp_path / "machine.html")
    with chromium.open(page, WIDTHS[0]) as opened:
        opened.open_all()
        assert opened.troubles() == [] and opened.overflowing() == []
        assert opened.page.evaluate("document.scripts.length") == 1
        assert opened.page.locator("img, iframe").count() == 0
