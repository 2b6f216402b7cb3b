"""A fleet's page: one file that needs no network, beside the pages of its machines."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path

from ....exit_codes import UsageError
from ....install import durable
from ....reports import html_page, html_script
from ....reports.html_page import PageSection
from ....reports.plots.svg import tag
from ...folder import file_name
from ...model import FleetCounts, FleetResult, JudgedMachine
from .. import words
from . import fleet_map, machine_table, odd, problems
from .looks import LOOKS, machines, state_of
from .places import arrangements

INDEX = "index.html"
_FIRST_LINES = 1000  # bytes
_FAR = 200  # machines: from here on the table is laid out when it is near
_HERE = Path(__file__).parent


def render(result: FleetResult) -> str:
    """The page, as text. Pure."""
    sections = _sections(result)
    return html_page.whole(
        f"envcheck: {machines(result.counts.machines)}",
        [_bar(result), *(html_page.section(one) for one in sections)],
        head=_head(result),
        contents=html_page.contents(sections),
        foot=html_page.paragraph(f"envcheck {result.envcheck}"),
        script=html_script.SCRIPT + _file("fleet.js"),
        css=_file("fleet.css"),
        kind=_kind(result),
        generator=html_page.OF_A_FLEET,
    )


def _sections(result: FleetResult) -> list[PageSection]:
    by_name = {machine.name: machine for machine in result.machines}
    count = result.counts.machines
    shown = problems.silent_places(result.unanswered)
    ways = arrangements(result.machines)
    odd_machines = odd.short(result)
    found = [
        PageSection(
            "map", "Map", fleet_map.fleet_map(ways, shown, odd_machines, count) if count else []
        ),
        _counted("problems", "Problems", problems.groups(result.groups, by_name)),
        PageSection("odd", "Odd ones out", odd.parts(result, by_name), f"{len(odd_machines):,}"),
        _counted("unanswered", "No answer", problems.unanswered(result.unanswered)),
        PageSection(
            "shared",
            "Shared by a place",
            [problems.shared(result.shared)] if result.shared else [],
            f"{len(result.shared):,}",
        ),
        PageSection("machines", "All machines", _table(result, odd_machines), f"{count:,}"),
    ]
    return [one for one in found if one.parts]


def _counted(name: str, title: str, parts: list[str]) -> PageSection:
    return PageSection(name, title, parts, f"{len(parts):,}")


def _table(result: FleetResult, odd_machines: Mapping[str, list[str]]) -> list[str]:
    if not result.machines:
        return []
    table = machine_table.table(result.machines, odd_machines)
    kind = "far" if len(result.machines) > _FAR else "near"
    return [f'<div class="{kind}">{table}</div>']


def _bar(result: FleetResult) -> str:
    """The states with their numbers; with the script, what filters the map and the table."""
    if not result.machines:
        return ""
    legend = fleet_map.legend(result.machines, odd.short(result))
    return (
        f'<div class="bar" role="search" aria-label="Filter">{legend}'
        '<div class="find" hidden><input type="search" placeholder="name, code, place …" '
        'aria-label="Filter the machines by words" autocomplete="off" spellcheck="false">'
        '<output aria-live="polite"></output></div></div>'
    )


def _head(result: FleetResult) -> str:
    counts = result.counts
    return html_page.masthead(
        "fleet",
        _title(result.machines),
        _kind(result),
        _word(counts),
        _told(result),
        about=_products(result.machines),
        when=_when(result.machines),
        simulated=words.simulated(result),
    ) + _states_bar(result)


def _word(counts: FleetCounts) -> str:
    well, every = counts.healthy, counts.machines
    if every < 2:
        alone = "The machine is well" if well else "The machine is not well"
        return alone if every else "No machines"
    if well == every:
        return f"All {every:,} machines are well"
    if not well:
        return f"None of {every:,} machines is well"
    return f"{well:,} of {every:,} machines {'is' if well == 1 else 'are'} well"


def _title(found: list[JudgedMachine]) -> str:
    return f"A fleet of {machines(len(found))}"


def _told(result: FleetResult) -> list[str]:
    counts = result.counts
    warned = sum(state_of(machine) == "warned" for machine in result.machines)
    numbers = [
        (counts.problems, "with problems"),
        (counts.could_not_look, "could not be looked at"),
        (warned, "of those that are well, with warnings"),
        (len(odd.short(result)), "odd ones out"),
    ]
    told = [f"{number:,} {phrase}" for number, phrase in numbers if number]
    return [*words.without_snapshot(result), *told]


def _kind(result: FleetResult) -> str:
    """html_page's name of the fleet's state, as of the exit code."""
    counts = result.counts
    if counts.problems:
        return "fail"
    if counts.could_not_look or counts.unanswered or not counts.machines:
        return "could-not-run"
    return "pass"


def _products(found: list[JudgedMachine]) -> str:
    counted = Counter(machine.product for machine in found if machine.product)
    told = [f"{count:,} with {product}" for product, count in counted.most_common(6)]
    more = len(counted) - 6
    return ", ".join([*told, f"{more} other products"] if more > 0 else told)


def _when(found: list[JudgedMachine]) -> str:
    times = sorted(machine.collected_at for machine in found if machine.collected_at)
    if not times:
        return ""
    first, last = (time.replace("T", " ").replace("Z", " UTC") for time in (times[0], times[-1]))
    return f"Collected {first}" + (f" to {last}" if last != first else "")


def _states_bar(result: FleetResult) -> str:
    """How much of the fleet is in which state; the words beside it say the same."""
    counted = Counter(state_of(machine) for machine in result.machines)
    left, parts = 0.0, []
    for name, one in LOOKS.items():
        if counted[name]:
            width = 1000 * counted[name] / len(result.machines)
            parts.append(
                tag("rect", x=left, y=0, width=max(width, 2), height=10, class_=one.letter)
            )
            left += width
    if not parts:
        return ""
    return (
        '<svg class="states" viewBox="0 0 1000 10" preserveAspectRatio="none" aria-hidden="true">'
        + "".join(parts)
        + "</svg>"
    )


@cache
def _file(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")


def write(result: FleetResult, folder: Path) -> None:
    """DIR/index.html; pages of an earlier run whose machines have none now are removed.

    Raises UsageError where a file of somebody else's would be written over, OSError.
    """
    check(folder)
    durable.write(folder / INDEX, render(result).encode())
    pages = {INDEX, *(machine.page for machine in result.machines)}
    for path in folder.glob("*.html"):
        if path.name not in pages and _is_ours(path):
            with suppress(FileNotFoundError):
                path.unlink()


def check(folder: Path, names: Iterable[str] = ()) -> None:
    """Whether the page, and those of the machines with these names, may be written there.

    Raises UsageError.
    """
    for name in (INDEX, *(f"{file_name(name)}.html" for name in names)):
        path = folder / name
        if os.path.lexists(path) and not _is_ours(path):
            raise UsageError(
                f"{path} is there, and envcheck did not write it: name another directory"
            )


def _is_ours(path: Path) -> bool:
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return f'<meta name="generator" content="{html_page.OF_A_FLEET}">'.encode() in file.read(
            _FIRST_LINES
        )
