"""The odd ones out: what differs from most, and what is slower, with a strip for each rate."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from ....reports import html_page
from ....reports.plain import ranges
from ....reports.plots.svg import text
from ...hosts import natural_key
from ...model import FleetResult, JudgedMachine, OddAttribute, OddRate, Split
from .looks import link, machines
from .strip import Odd, letter, plain, strip

_Key = tuple[str, str, str]  # of a rate: product, key, under
_GPU = re.compile(r"GPU [0-9]{1,4}")
_LISTED = 40  # of one strip; all of them are in the table


def short(result: FleetResult) -> dict[str, list[str]]:
    """By a machine's name, in what it is odd: "VBIOS", "FP16 at L0 9.3 % worse".

    Without what a problem of the machine explains.
    """
    told: dict[str, list[str]] = {}
    for attribute in result.odd_attributes:
        if not attribute.because:
            _add(told, attribute.machine, attribute.words)
    for rate in result.odd_rates:
        if not rate.because:
            _add(told, rate.machine, f"{rate.words} {_percent(rate.below)} worse")
    return told


def _add(told: dict[str, list[str]], machine: str, words: str) -> None:
    these = told.setdefault(machine, [])
    if words not in these:
        these.append(words)


def parts(result: FleetResult, by_name: Mapping[str, JudgedMachine]) -> list[str]:
    """Markup, "" where nobody is odd."""
    facts, rates = result.odd_attributes, result.odd_rates
    found = []
    if facts:
        found += [html_page.heading("What differs", 3), _facts(facts, by_name)]
    if result.splits:
        found += [html_page.heading("No majority", 3), *(_split(one) for one in result.splits)]
    if rates:
        found += [html_page.heading("What is slower", 3), *_rates(result, by_name)]
    return found


def _facts(odd: Iterable[OddAttribute], by_name: Mapping[str, JudgedMachine]) -> str:
    rows = []
    for one in sorted(odd, key=lambda one: (natural_key(one.words), natural_key(one.machine))):
        per = "devices" if one.per == "device" else "machines"
        rows.append(
            [
                (link(by_name.get(one.machine), one.machine), ""),
                (text(", ".join([one.words, *_folded(one.devices)])) + _because(one.because), ""),
                (_value(one.value), ""),
                (_value(one.usual), ""),
                (f"{one.agree:,} of {one.of:,} {per}", ""),
            ]
        )
    columns = [("Machine", ""), ("Fact", "wraps"), ("Here", "wraps"), ("Usually", "wraps")]
    return html_page.markup_table([*columns, ("So have it", "")], rows)


def _folded(devices: Sequence[str]) -> list[str]:
    """ "GPU 0-3, 5" and the others as they are."""
    gpus = [int(one[4:]) for one in devices if _GPU.fullmatch(one)]
    others = [one for one in devices if one and not _GPU.fullmatch(one)]
    return [f"GPU {ranges(gpus)}", *others] if gpus else others


def _value(value: str) -> str:
    return f"<code>{text(value)}</code>" if value else '<span class="quiet">none</span>'


def _because(code: str) -> str:
    return f' <span class="quiet">({text(code)} is about this)</span>' if code else ""


def _split(one: Split) -> str:
    camps = "".join(
        f"<li>{_value(camp.value)}: {machines(len(camp.machines))} "
        f'<code class="hosts">{text(camp.hosts)}</code></li>'
        for camp in one.camps
    )
    return f"<p>{text(one.words)}, of {text(one.product)}:</p><ul>{camps}</ul>"


def _rates(result: FleetResult, by_name: Mapping[str, JudgedMachine]) -> Iterable[str]:
    odd: dict[_Key, list[OddRate]] = {}
    for rate in result.odd_rates:
        odd.setdefault((rate.product, rate.key, rate.under), []).append(rate)
    values: dict[_Key, list[float]] = {key: [] for key in odd}
    wanted = {(key, under) for _, key, under in odd}
    for machine in result.machines:
        for figure in machine.rates:
            if (figure.key, figure.under) in wanted:
                figures = values.get((machine.product, figure.key, figure.under))
                if figures is not None:
                    figures.append(figure.value)
    for key, these in odd.items():
        yield _one_rate(sorted(these, key=lambda one: -one.below), values[key], by_name)


def _one_rate(odd: list[OddRate], values: list[float], by_name: Mapping[str, JudgedMachine]) -> str:
    first = odd[0]
    told = f"{first.of:,} figures, median {plain(first.median)} {first.unit}"
    title = f"{first.words}: {told}; {machines(len(odd))} apart from the rest"
    marked = [Odd(letter(place), one.value) for place, one in enumerate(odd[:_LISTED])]
    drawn = strip(title, values, first.median, marked, first.unit)
    items = "".join(_item(place, one, by_name) for place, one in enumerate(odd[:_LISTED]))
    rest = len(odd) - _LISTED
    more = f"<li>and {machines(rest)} more, in the table below</li>" if rest > 0 else ""
    about = " · ".join(filter(None, [first.product, first.under, f"{first.of:,} figures"]))
    return (
        f'<div class="rate keep"><h4>{text(first.words)}</h4><p class="quiet">{text(about)}</p>'
        f'{drawn}<ul class="lettered">{items}{more}</ul></div>'
    )


def _item(place: int, one: OddRate, by_name: Mapping[str, JudgedMachine]) -> str:
    devices = ", ".join(_folded(one.devices or [one.device]))
    also = f"; {'; '.join(one.also)}" if one.also else ""
    name = letter(place)
    return (
        (f'<li><b class="letter">{name}</b> ' if name else "<li>")
        + link(by_name.get(one.machine), one.machine)
        + f"{text(', ' + devices) if devices else ''}: {text(f'{plain(one.value)} {one.unit}')}, "
        + f"<strong>{_percent(one.below)} worse</strong> than the median "
        + text(f"({one.deviations:.0f} robust deviations){also}")
        + _because(one.because)
        + "</li>"
    )


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
