"""A fleet's page by its text: what is in it, what cannot get out of its place, how large it is."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import fleet_page_results
import pytest
from msgspec.structs import replace

from envcheck.exit_codes import UsageError
from envcheck.fleet.model import FleetResult, JudgedMachine
from envcheck.fleet.reports import page, states, strip, words
from envcheck.fleet.reports.places import arrangements
from envcheck.fleet.result import result
from envcheck.reports import html

EMPTY = ("meta", "link", "input", "br", "path", "rect", "use", "img")


class PageTree(HTMLParser):
    """Elements, links, scripts and the text that is shown; every element is closed where it was opened."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.inside: dict[str, list[str]] = {}
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attributes}))
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attributes}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.inside.setdefault(self.open[-1] if self.open else "", []).append(data)

    def all(self, tag: str, **wanted: str) -> list[dict[str, str]]:
        return [
            attributes
            for name, attributes in self.elements
            if name == tag
            and all(attributes.get(key.rstrip("_")) == value for key, value in wanted.items())
        ]


@pytest.mark.parametrize("count", [0, 1, 5, 40, 1000])
def test_every_machine_has_a_cell_and_a_row_that_lead_to_its_page(count: int) -> None:
    found = fleet_page_results.fleet(count)
    text = page.render(found)
    tree = PageTree(text)
    with_page = sorted(machine.page for machine in found.machines if machine.page)
    links = [unquote(a["href"]) for a in tree.all("a") if "title" in a]
    assert sorted(link for link in links if not link.startswith("#")) == with_page
    assert len(links) == count
    assert len([1 for row in tree.all("tr") if "data-state" in row]) == count
    ids = [attributes["id"] for _, attributes in tree.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {link[1:] for link in links if link.startswith("#")} <= set(ids)
    assert len(text.encode()) <= 60_000 + 1_000 * count


def test_the_headline_counts_and_the_worst_comes_first() -> None:
    found = fleet_page_results.fleet(1000)
    text = page.render(found)
    counts = found.counts
    assert f"{counts.healthy:,} of 1,000 machines are healthy" in text
    assert f"{counts.problems:,} with problems" in text
    assert f"{counts.unanswered:,} did not answer" in text
    shown = [row["data-state"][0] for row in PageTree(text).all("tr") if "data-state" in row]
    order = [look.letter for look in states.STATES.values()]
    assert shown == sorted(shown, key=order.index)
    assert shown.count("f") == counts.problems and shown.count("n") == counts.unanswered


def test_parts_that_have_nothing_are_left_out() -> None:
    text = page.render(
        result([fleet_page_results.machine("gpu1"), fleet_page_results.machine("gpu2")])
    )
    for part in ("problems", "odd", "unanswered", "shared"):
        assert f'id="{part}"' not in text
    assert 'id="map"' in text and 'id="machines"' in text
    assert "All 2 machines are healthy" in text
    empty = page.render(result([]))
    assert "No machines" in empty and "<table" not in empty


def test_a_group_tells_its_machines_its_remedy_and_its_commands() -> None:
    tree = PageTree(page.render(fleet_page_results.fleet(40)))
    code = "\n".join(tree.inside["code"])
    assert "sudo apt-get install nvidia-driver-550" in code
    found = fleet_page_results.fleet(40)
    for group in found.groups:
        assert len(group.machines) == 1 or group.hosts in code
        assert any(words.problem(group) in told for told in tree.inside["h3"])


def test_words_of_one_machine_say_whose_they_are() -> None:
    found = fleet_page_results.fleet(40)
    group = replace(found.groups[0], of_one="gpu0033", limit="gpu0033,gpu0035")
    text = page.render(replace(found, groups=[group]))
    assert "As it is on gpu0033" in text
    assert "gpu0033,gpu0035</code>" in text and "--limit" in text
    assert "As it is on" not in page.render(found)


def test_a_strip_has_all_figures_and_marks_the_odd() -> None:
    values = [100.0 + place / 10 for place in range(50)]
    drawn = strip.strip("FP16", [*values, 60.0], 102.5, [strip.Mark("A", 60.0)], "TFLOP/s")
    assert ">A</text>" in drawn and "median 102.5 TFLOP/s" in drawn and ">60</text>" in drawn
    assert strip.strip("FP16", [5.0, 5.0], 5.0, [], "GB/s") == ""
    # Letters that would lie on each other are left out; their marks stay.
    close = strip.strip("FP16", values, 102.5, [strip.Mark("A", 60), strip.Mark("B", 60.1)], "")
    assert close.count('class="odd"') == 3


def test_machines_stand_by_the_nearest_place_that_is_known() -> None:
    kinds = [way.kind for way in arrangements(fleet_page_results.fleet(200).machines)]
    assert kinds == ["rack", "switch", "partition", "product", ""]

    def one(name: str, *groups: str) -> JudgedMachine:
        return JudgedMachine(name=name, state="healthy", groups=[("group", g) for g in groups])

    racks = [one(f"n{place}", "all", "gpus", f"row{place // 8}") for place in range(32)]
    assert [place.name for place in arrangements([*racks, one("n99")])[0].places] == [
        *("row0", "row1", "row2", "row3"),
        "",
    ]
    # Few, or each in a place of its own: by their names.
    assert [way.kind for way in arrangements(racks[:8])] == [""]
    alone = [one(f"n{place}", f"slot{place}") for place in range(32)]
    assert [way.kind for way in arrangements(alone)] == [""]
    names = [machine.name for machine in arrangements(alone)[0].places[0].machines]
    assert names[:3] == ["n0", "n1", "n2"] and names[-1] == "n31"


def test_foreign_words_stay_in_their_places() -> None:
    text = page.render(fleet_page_results.hostile())
    tree = PageTree(text)
    tags = {name for name, _ in tree.elements}
    assert "img" not in tags and len(tree.all("style")) == 2
    scripts = tree.all("script")
    assert [script.get("type", "") for script in scripts] == ["application/json", ""]
    assert not any(name.startswith("on") for _, attributes in tree.elements for name in attributes)
    assert not any("style" in attributes for _, attributes in tree.elements)
    for link in tree.all("a"):
        assert re.fullmatch(r"#[a-z0-9-]+|[a-z0-9%._-]+\.html", link["href"]), link
    assert not any(character in text for character in "\u202e\x1b\x00")


def test_the_page_runs_its_own_script_alone() -> None:
    text = page.render(fleet_page_results.fleet(40))
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', text)
    assert policy
    directives = dict(part.split(" ", 1) for part in policy[1].split("; "))
    assert directives["default-src"] == "'none'"
    script = re.search(r"<script>(.*?)</script>", text, re.DOTALL)
    assert script
    digest = base64.b64encode(hashlib.sha256(script[1].encode()).digest()).decode()
    assert directives["script-src"] == f"'sha256-{digest}'"
    assert "http" not in re.sub(r"http://www\.w3\.org/2000/svg|http-equiv", "", text)


def test_the_script_knows_where_each_cell_stands() -> None:
    found = fleet_page_results.fleet(200)
    text = page.render(found)
    told = re.search(r'id="places">(.*?)</script>', text)
    assert told
    ways = json.loads(told[1])
    assert [way["kind"] for way in ways] == ["rack", "switch", "partition", "product", ""]
    assert all(len(way["of"]) == 200 and max(way["of"]) < len(way["names"]) for way in ways)
    cells = re.findall(r'title="(gpu\d+):', text)
    product = {machine.name: machine.product for machine in found.machines}
    names = ways[3]["names"]
    assert [names[at] for at in ways[3]["of"]] == [product[name] for name in cells]


def test_it_is_written_and_nothing_stale_stays(tmp_path: Path) -> None:
    ours = f'<!DOCTYPE html>\n<meta name="generator" content="{html.OF_A_FLEET}">'
    for name in ("gpu0001.html", "gone.html"):
        (tmp_path / name).write_text(ours)
    (tmp_path / "notes.html").write_text("<h1>Not of envcheck</h1>")
    (tmp_path / "one.html").write_text('<meta name="generator" content="envcheck">')
    (tmp_path / "link.html").symlink_to(tmp_path / "gpu0001.html")
    (tmp_path / "folder.html").mkdir()
    for _ in range(2):
        page.write(fleet_page_results.fleet(5), tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        *("folder.html", "gpu0001.html", "index.html", "link.html", "notes.html", "one.html")
    ]
    assert (tmp_path / "index.html").read_text() == page.render(fleet_page_results.fleet(5))


def test_a_page_of_somebody_else_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("<h1>My site</h1>")
    with pytest.raises(UsageError, match="envcheck did not write it: name another directory"):
        page.write(fleet_page_results.fleet(1), tmp_path)
    assert (tmp_path / "index.html").read_text() == "<h1>My site</h1>"


def test_machines_that_warn_are_well_with_warnings() -> None:
    warned = fleet_page_results.machine("gpu1", 0, fleet_page_results.LINK)
    assert states.state_of(warned) == "warned"
    text = page.render(result([warned]))
    assert "The machine is healthy" in text
    assert "1 of the healthy ones, with warnings" in text


def test_the_address_of_a_page_is_quoted() -> None:
    strange = replace(fleet_page_results.machine("a"), name="a/b", page="a%2Fb.html")
    odd: FleetResult = result([strange])
    assert 'href="a%252Fb.html"' in page.render(odd)
