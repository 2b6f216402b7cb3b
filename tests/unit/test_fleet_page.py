"""A fleet's page by its text: what is in it, and what cannot get out of its place."""

from __future__ import annotations

import fleet_results
import pytest
from html_reading import Reading, problems
from msgspec.structs import replace

from envcheck.fleet import hosts
from envcheck.fleet.model import FleetResult
from envcheck.fleet.reports import page
from envcheck.fleet.result import result


def many(count: int) -> FleetResult:
    states = ("healthy", "broken", "silent")
    machines = [fleet_results.machine(f"gpu{n:04}", states[n % 3]) for n in range(count)]
    return result([replace(one, page=f"{one.name}.html") for one in machines])


@pytest.mark.parametrize("count", [0, 1, 40, 1000])
def test_every_machine_has_a_row_that_leads_to_its_page(count: int) -> None:
    text = page.render(many(count))
    links = [given["href"] for given in Reading(text).all("a") if given["href"].endswith(".html")]
    assert sorted(links) == [f"gpu{n:04}.html" for n in range(count)]
    assert problems(text) == []
    assert len(text.encode()) <= 60_000 + 1_000 * count


def test_the_verdict_and_every_section() -> None:
    read = Reading(page.render(fleet_results.everything()))
    found = [given["id"] for given in read.all("section")]
    assert found == ["problems", "outliers", "unanswered", "blind", "shared", "machines"]
    for group in fleet_results.everything().groups:
        assert group.code in read.text and hosts.folded(group.machines) in read.text
        assert all(command in read.text for command in group.commands)


def test_foreign_words_stay_in_their_places() -> None:
    text = page.render(fleet_results.hostile())
    assert [one for one in problems(text) if "leads nowhere" not in one] == []
    assert "<script>alert" not in text and "<img" not in text
