"""The map: a cell for each machine, by place; each leads to the machine's page."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from .... import safe_text
from ....reports.plots.svg import text
from ...model import JudgedMachine
from .looks import LOOKS, href, look, machines, said, shortened, state_of
from .places import FEW, Arrangement, Place

_NAMES = 160  # up to so many machines are cards, or have their names in the map
_COLUMNS = ((4, 4), (16, 8), (40, 10), (72, 18))  # places of at most so many: how many in a row
_TITLE = 160  # characters


def size_of(count: int) -> str:
    """The class of a map of so many machines: "cards", "names", "cells"."""
    return "cards" if count <= FEW else "names" if count <= _NAMES else "cells"


def legend(machines: Sequence[JudgedMachine], odd: Mapping[str, Sequence[str]]) -> str:
    """How many of each state, with its shape; the script makes buttons of these, which filter."""
    states = [state_of(machine) for machine in machines]
    items = "".join(
        f'<li data-state="{one.letter}"><span class="shape {one.letter}">{one.word}</span> '
        f'<span class="count">{states.count(name):,}</span></li>'
        for name, one in LOOKS.items()
        if name in states
    )
    if odd:
        items += (
            '<li data-state="o"><span class="shape o">odd one out</span> '
            f'<span class="count">{len(odd):,}</span></li>'
        )
    return f'<ul class="legend" aria-label="States">{items}</ul>'


def fleet_map(
    arrangements: Sequence[Arrangement],
    silent: Mapping[str, str],
    odd: Mapping[str, Sequence[str]],
    count: int,
) -> list[str]:
    """As the first arrangement has it; the others are data for the script.

    silent: by name, where a machine without a page is spoken of. odd: by name, in what it is odd.
    """
    first = arrangements[0]
    size = size_of(count)
    drawn = "".join(_place(place, size, silent, odd) for place in first.places)
    return [
        f'<div class="map {size} {columns_of(first)}" id="cells">{drawn}</div>',
        _others(arrangements),
    ]


def columns_of(one: Arrangement) -> str:
    """A class of fleet.css: how many cells stand in a row of a place."""
    if len(one.places) == 1:
        return "across"
    largest = max(len(place.machines) for place in one.places)
    return next((f"by{columns}" for most, columns in _COLUMNS if largest <= most), "across")


def _place(
    place: Place, size: str, silent: Mapping[str, str], odd: Mapping[str, Sequence[str]]
) -> str:
    cells = "\n".join(
        _cell(machine, size, silent, odd.get(machine.name, ())) for machine in place.machines
    )
    if not place.name:
        return f'<div class="place"><div>{cells}</div></div>'
    bad = sum(state_of(machine) not in ("healthy", "warned") for machine in place.machines)
    count = machines(len(place.machines))
    told = f"{place.name}: {count}" + (f", {bad} not well" if bad else "")
    return (
        f'<div class="place" role="group" aria-label="{text(told)}"><p>{text(place.name)}'
        + (f" <b>{bad}</b>" if bad else "")
        + f"</p><div>{cells}</div></div>"
    )


def _cell(machine: JudgedMachine, size: str, silent: Mapping[str, str], odd: Sequence[str]) -> str:
    one = look(machine)
    words = said(machine, odd)
    title = text(shortened(f"{machine.name}: {one.word}" + (f": {words}" if words else ""), _TITLE))
    address = href(machine.page) if machine.page else silent.get(machine.name, "#machines")
    inside = text(machine.name)
    if size == "cards":
        inside = (
            f"<strong>{inside}</strong><span>{text(machine.product)}</span>"
            f"<span>{text(shortened(words or one.word, 120))}</span>"
        )
    kind = one.letter + (" o" if odd else "")
    return f'<a class="{kind}" href="{address}" title="{title}">{inside}</a>'


def _others(arrangements: Sequence[Arrangement]) -> str:
    """Where each cell stands in each arrangement; the cells in the first one's order."""
    if len(arrangements) < 2:
        return ""
    cells = [machine.name for place in arrangements[0].places for machine in place.machines]
    told = []
    for one in arrangements:
        at = {
            machine.name: number
            for number, place in enumerate(one.places)
            for machine in place.machines
        }
        told.append(
            {
                "kind": one.kind,
                "columns": columns_of(one),
                "names": [safe_text.one_line(place.name) for place in one.places],
                "of": [at[name] for name in cells],
            }
        )
    data = json.dumps(told, separators=(",", ":")).replace("<", "\\u003c")
    return f'<script type="application/json" id="places">{data}</script>'
