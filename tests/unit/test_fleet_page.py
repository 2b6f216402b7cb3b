"""A fleet's page by its text: what is in it, and what cannot get out of its place."""

from __future__ import annotations

import fleet_results
import pytest
from html_reading import Reading, problems
from msgspec.structs import replace

from envcheck.fleet import hosts
from envcheck.fleet.model import FleetResult, SharedFault
from envcheck.fleet.reports import page
from envcheck.fleet.reports.problem_rows import problem_table
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
    assert found == ["problems", "outliers", "unanswered", "blind", "machines"]
    assert "112 broken, 30 silent of 1,000 machines" in read.text
    assert read.text.index("leaf29 (switch): 5 of 8 machines") < read.text.index("GPU-001")
    for group in fleet_results.everything().groups:
        assert group.code in read.text and hosts.folded(group.machines) in read.text
        assert all(command in read.text for command in group.commands)


def test_foreign_words_stay_in_their_places() -> None:
    text = page.render(fleet_results.hostile())
    assert [one for one in problems(text) if "leads nowhere" not in one] == []
    assert "<script>alert" not in text and "<img" not in text


def test_what_a_place_shares_is_before_what_single_machines_have() -> None:
    names = [f"gpu{number}" for number in range(4)]
    fault = SharedFault(
        kind="rack", name="r1", code="NET-001", words="is down", machines=names, hosts="", of=5
    )
    found = fleet_results.fleet_result(
        [fleet_results.machine(name, "broken") for name in names],
        groups=[
            replace(fleet_results.group(names[:1]), first_seen="2026-02-03T04:05:06Z"),
            fleet_results.group(names, "NET-001"),
        ],
        shared=[fault],
    )
    first, second = problem_table(found, {"gpu0": "gpu0.html"}).data["rows"]
    assert (first["group"].code, first["places"], first["since"]) == ("NET-001", [fault], "")
    assert (
        second["places"] == []
        and second["since"] == "2026-02-03 04:05"
        and second["page"] == "gpu0.html"
    )
    shown = Reading(page.render(found)).text
    assert "4 of 5 in r1 (rack)" in shown and "GPU 3 kernel module" in shown


@pytest.mark.parametrize(
    ("states", "says"),
    [
        (["healthy"], "None broken, degraded or silent of 1 machine"),
        (["degraded", "silent"], "1 degraded, 1 silent of 2 machines"),
        ([], "0 machines"),
    ],
)
def test_what_a_page_begins_with(states: list[str], says: str) -> None:
    machines = [fleet_results.machine(f"m{n}", state) for n, state in enumerate(states)]
    assert says in Reading(page.render(fleet_results.fleet_result(machines))).text
