"""A fleet's page: one file that needs no network, beside the pages of its machines."""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from markupsafe import Markup

from ... import safe_text
from ...exit_codes import UsageError
from ...install import durable
from ...reports import html
from ...reports.headlines import phrase
from ...reports.html import Masthead, PageSection
from ...reports.plain import ranges
from ..folder import file_name
from ..hosts import natural_key
from ..model import AttributeOutlier, FleetCounts, FleetResult, JudgedMachine, RateOutlier
from . import words
from .places import FEW, Arrangement, arrangements
from .states import STATES, outliers, severity, state_of, summary
from .strip import Mark, letter, plain, strip

INDEX = "index.html"
_FIRST_LINES = 1000  # bytes
_FAR = 200  # machines: from here on the table is laid out when it is near
_NAMES = 160  # up to so many machines have their names in the map
_COLUMNS = ((4, 4), (16, 8), (40, 10), (72, 18))  # places of at most so many: how many in a row
_TITLE, _SUMMARY, _CARD = 160, 400, 120  # characters
_LINKED = 12  # machines of a problem that are named one by one
_LISTED = 40  # outliers of one rate; all of them are in the table
_OF_MACHINES = ("operating system", "kernel", "driver", "image")  # groups that its own page has


def render(result: FleetResult) -> str:
    """The page, as text. Pure."""
    outlying = outliers(result)
    states = Counter(map(state_of, result.machines))
    return html.page(
        f"envcheck: {words.machines(result.counts.machines)}",
        _masthead(result, states, len(outlying)),
        _sections(result, outlying),
        foot=f"envcheck {result.envcheck}",
        styles=["fleet/fleet.css"],
        scripts=["page.js", "fleet/fleet.js"],
        generator=html.OF_A_FLEET,
        template="fleet/fleet.html",
        states=[(one, states[name]) for name, one in STATES.items() if states[name]],
        outlying=len(outlying),
    )


def _masthead(result: FleetResult, states: Mapping[str, int], outlying: int) -> Masthead:
    counts = result.counts
    numbers = [
        (counts.problems, "with problems"),
        (counts.could_not_look, "could not be looked at"),
        (states["warned"], "of the healthy ones, with warnings"),
        (outlying, "outliers"),
    ]
    products = Counter(one.product for one in result.machines if one.product)
    about = [f"{count:,} with {product}" for product, count in products.most_common(6)]
    about += [f"{len(products) - 6} other products"] if len(products) > 6 else []
    return Masthead(
        about_what="fleet",
        title=f"A fleet of {words.machines(len(result.machines))}",
        kind=_kind(counts),
        word=_word(counts),
        items=[
            *words.without_snapshot(result),
            *(f"{number:,} {what}" for number, what in numbers if number),
        ],
        about=", ".join(about),
        when=_when(result.machines),
        simulated=words.simulated(result),
        template="fleet/states.html",
    )


def _word(counts: FleetCounts) -> str:
    well, every = counts.healthy, counts.machines
    if every < 2:
        alone = "The machine is healthy" if well else "The machine is not healthy"
        return alone if every else "No machines"
    if well in (0, every):
        return (
            f"{'All' if well else 'None of'} {every:,} machines {'are' if well else 'is'} healthy"
        )
    return f"{well:,} of {every:,} machines {'is' if well == 1 else 'are'} healthy"


def _kind(counts: FleetCounts) -> str:
    """The outcome that stands for the fleet, as in the exit code."""
    if counts.problems:
        return "fail"
    incomplete = counts.could_not_look or counts.unanswered or not counts.machines
    return "could-not-run" if incomplete else "pass"


def _when(machines: Sequence[JudgedMachine]) -> str:
    times = sorted(machine.collected_at for machine in machines if machine.collected_at)
    ends = [
        one.replace("T", " ").replace("Z", " UTC") for one in dict.fromkeys(times[:1] + times[-1:])
    ]
    return f"Collected {' to '.join(ends)}" if ends else ""


def _sections(result: FleetResult, outlying: Mapping[str, list[str]]) -> list[PageSection]:
    found = []
    if result.machines:
        found.append(PageSection("map", "Map", "fleet/map.html", _map(result, outlying)))
    pages = {machine.name: machine.page for machine in result.machines}
    common: dict[str, Any] = {"pages": pages, "machines": words.machines}
    if result.groups:
        problems = []
        for group in result.groups:
            few = len(group.machines) <= _LINKED and any(map(pages.get, group.machines))
            problems.append((group, words.problem(group), few))
        data = {**common, "problems": problems}
        found.append(
            PageSection("problems", "Problems", "fleet/problems.html", data, f"{len(problems):,}")
        )
    if result.attribute_outliers or result.rate_outliers or result.splits:
        data = {**common, "facts": _facts(result.attribute_outliers), "splits": result.splits}
        data |= {"rates": _rates(result)}
        found.append(
            PageSection("odd", "Outliers", "fleet/outliers.html", data, f"{len(outlying):,}")
        )
    if result.unanswered:
        silent = [(words.OUTCOMES[one.outcome], one) for one in result.unanswered]
        data = {**common, "unanswered": silent}
        found.append(
            PageSection(
                "unanswered", "No answer", "fleet/unanswered.html", data, f"{len(silent):,}"
            )
        )
    if result.shared:
        shared = [(one, phrase(one.words, [], {})) for one in result.shared]
        data = {**common, "shared": shared}
        title = "Shared by a place"
        found.append(PageSection("shared", title, "fleet/shared.html", data, f"{len(shared):,}"))
    if result.machines:
        data = _table(result.machines, outlying)
        count = f"{len(result.machines):,}"
        found.append(PageSection("machines", "All machines", "fleet/machines.html", data, count))
    return found


def _map(result: FleetResult, outlying: Mapping[str, list[str]]) -> dict[str, Any]:
    """The cells as the first arrangement has them; the others are data for the script."""
    ways = arrangements(result.machines)
    count = len(result.machines)
    silent = {
        name: f"#silent-{place}"
        for place, one in enumerate(result.unanswered)
        for name in one.machines
    }
    places = []
    for place in ways[0].places:
        bad = sum(state_of(one) not in ("healthy", "warned") for one in place.machines)
        label = f"{place.name}: {words.machines(len(place.machines))}" + f", {bad} not healthy" * (
            bad > 0
        )
        cells = [_cell(one, silent, outlying.get(one.name, ())) for one in place.machines]
        places.append((place.name, label, bad, cells))
    size = "cards" if count <= FEW else "names" if count <= _NAMES else "cells"
    return {"size": size, "columns": _columns(ways[0]), "places": places, "others": _others(ways)}


def _cell(
    machine: JudgedMachine, silent: Mapping[str, str], outlying: Sequence[str]
) -> dict[str, str]:
    state = STATES[state_of(machine)]
    about = summary(machine, outlying)
    title = f"{machine.name}: {state.word}" + (f": {about}" if about else "")
    return {
        "name": machine.name,
        "kind": state.letter + (" o" if outlying else ""),
        "page": machine.page,
        "place": silent.get(machine.name, "#machines"),
        "title": _shortened(title, _TITLE),
        "product": machine.product,
        "about": _shortened(about or state.word, _CARD),
    }


def _columns(one: Arrangement) -> str:
    """A class of fleet.css: how many cells stand in a row of a place."""
    largest = max(len(place.machines) for place in one.places)
    fitting = (f"by{columns}" for most, columns in _COLUMNS if largest <= most)
    return "across" if len(one.places) == 1 else next(fitting, "across")


def _others(ways: Sequence[Arrangement]) -> Markup | None:
    """JSON: where each cell stands in each arrangement; the cells in the first one's order."""
    if len(ways) < 2:
        return None
    cells = [machine.name for place in ways[0].places for machine in place.machines]
    data = []
    for one in ways:
        at = {machine.name: n for n, place in enumerate(one.places) for machine in place.machines}
        names = [safe_text.one_line(place.name) for place in one.places]
        data.append(
            {
                "kind": one.kind,
                "columns": _columns(one),
                "names": names,
                "of": [at[name] for name in cells],
            }
        )
    return Markup(json.dumps(data, separators=(",", ":")).replace("<", "\\u003c"))


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def _facts(found: Iterable[AttributeOutlier]) -> list[tuple[AttributeOutlier, str]]:
    """Each with the fact and the devices in words."""
    ordered = sorted(found, key=lambda one: (natural_key(one.words), natural_key(one.machine)))
    return [(one, ", ".join([one.words, *_devices(one.devices)])) for one in ordered]


def _devices(names: Sequence[str]) -> list[str]:
    """ "GPU 0–3, 5" and the others as they are."""
    numbers = [name.removeprefix("GPU ") for name in names if name.startswith("GPU ")]
    gpus = [int(one) for one in numbers if one.isascii() and one.isdecimal() and len(one) < 5]
    others = [name for name in names if name and name.removeprefix("GPU ") not in map(str, gpus)]
    return [f"GPU {ranges(gpus)}", *others] if gpus else others


def _rates(result: FleetResult) -> list[dict[str, Any]]:
    """The outliers of each rate, the worst first, beside the figures of the whole product."""
    groups: dict[tuple[str, str, str], list[RateOutlier]] = {}
    for rate in result.rate_outliers:
        groups.setdefault((rate.product, rate.key, rate.under), []).append(rate)
    values = defaultdict(list)
    wanted = {(key, under) for _, key, under in groups}
    for machine in result.machines:
        for figure in machine.rates:
            if (figure.key, figure.under) in wanted:
                values[(machine.product, figure.key, figure.under)].append(figure.value)
    rates = []
    for key, members in groups.items():
        shown = sorted(members, key=lambda one: -one.below)[:_LISTED]
        first = shown[0]
        about = f"{first.of:,} figures, median {plain(first.median)} {first.unit}"
        title = f"{first.words}: {about}; {words.machines(len(members))} apart from the rest"
        marks = [Mark(letter(place), one.value) for place, one in enumerate(shown)]
        items = [
            (letter(place), one, ", ".join(_devices(one.devices or [one.device])), plain(one.value))
            for place, one in enumerate(shown)
        ]
        parts = (first.product, first.under, f"{first.of:,} figures")
        drawing = strip(title, values[key], first.median, marks, first.unit)
        rate_data = {"title": first.words, "about": " · ".join(filter(None, parts))}
        rates.append(
            {**rate_data, "strip": drawing, "items": items, "more": len(members) - len(shown)}
        )
    return rates


def _table(
    machines: Sequence[JudgedMachine], outlying: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    """All machines, the worst first."""
    counts = Counter(place for machine in machines for place in set(machine.groups))
    places = {
        machine.name: ", ".join(
            dict.fromkeys(
                name
                for kind, name in machine.groups
                if counts[(kind, name)] < len(machines) and kind not in _OF_MACHINES
            )
        )
        for machine in machines
    }
    rows = []
    for machine in sorted(machines, key=lambda one: (severity(one), natural_key(one.name))):
        found = outlying.get(machine.name, ())
        about = _shortened(summary(machine, found), _SUMMARY)
        row = (machine, STATES[state_of(machine)], about, places[machine.name], bool(found))
        rows.append(row)
    products = {machine.product for machine in machines if machine.product}
    kind = "far" if len(machines) > _FAR else "near"
    return {
        "rows": rows,
        "kind": kind,
        "products": len(products) > 1,
        "placed": any(places.values()),
    }


def write(result: FleetResult, folder: Path) -> None:
    """DIR/index.html; pages of an earlier run whose machines have none now are removed.

    Raises UsageError where a file that envcheck did not write would be overwritten, OSError.
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
        mark = f'<meta name="generator" content="{html.OF_A_FLEET}">'.encode()
        return mark in file.read(_FIRST_LINES)
