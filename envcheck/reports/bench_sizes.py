"""Links and all-reduces by size: a table for a terminal, and a plot for the page."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from ..bench.sizes import SizeRate, SizeSeries
from . import html_page as html
from .plots.lines import Curve, lines
from .plots.scale import number

if TYPE_CHECKING:
    from .page import Page

TITLES = {"links": "Links", "allreduce": "All-reduce"}
_SHOWN = 12  # series, unless the page is verbose
_PLOTTED = 64
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_ALONG = "size as a power of two: 10 is 1 KiB, 20 is 1 MiB, 30 is 1 GiB"


def sizes(page: Page, found: Sequence[SizeSeries], gpus: Mapping[str, str], verbose: bool) -> None:
    """How long each took with how many bytes, and the rate; nothing where none was asked for."""
    from .page import Column

    for what, title in TITLES.items():
        of_it = [one for one in found if one.what == what]
        if not of_it:
            continue
        page.blank()
        reduces = what == "allreduce"
        told = "bus bandwidth is the rate × 2(n-1)/n" if reduces else "median of in-place copies"
        page.paragraph((f"{title}:", "heading"), (told, ""), hanging=2)
        for one in of_it if verbose else of_it[:_SHOWN]:
            page.paragraph(
                (f"{name_of(one, gpus)}:", "code"), (_about(one), ""), indent=2, hanging=4
            )
            columns = ["Size", "Time", "GB/s", *(["Bus GB/s"] if reduces else [])]
            shown = one.rates if verbose else _telling(one.rates)
            if shown:
                page.table(
                    [Column(column, right=True) for column in columns],
                    [[(cell, "") for cell in _cells(rate, reduces)] for rate in shown],
                    indent=4,
                    gap=2,
                )
        if not verbose and len(of_it) > _SHOWN:
            page.paragraph((f"and {len(of_it) - _SHOWN} more with -v", "quiet"), indent=2)


def name_of(one: SizeSeries, gpus: Mapping[str, str]) -> str:
    """ "NCCL, all-reduce, GPU 0, 1", "Horovod (PyTorch), all-reduce, 2 ranks on the CPU"."""
    name = one.name
    for address in one.gpus:
        if address in gpus:
            name = name.replace(address, f"GPU {gpus[address]}")
    parts = [one.title, name]
    if one.on_cpu:
        parts.append(f"{one.ranks} ranks on the CPU" if one.ranks else "on the CPU")
    elif one.ranks > 2:
        parts.append(f"{one.ranks} GPUs")
    elif one.gpus and not any(address in one.name for address in one.gpus):
        numbers = ", ".join(gpus.get(address, address) for address in one.gpus)
        parts.append(f"GPU {numbers}")
    return ", ".join(parts)


def size_of(count: int) -> str:
    """ "8 B", "32 KiB", "1 GiB"."""
    place = 0
    while count >= 1024 and count % 1024 == 0 and place < len(_UNITS) - 1:
        count, place = count // 1024, place + 1
    return f"{count:,} {_UNITS[place]}"


def _about(one: SizeSeries) -> str:
    """Its best rate, what to hold it beside, and why there is no more."""
    parts = []
    if one.rates:
        best = max(one.rates, key=_rate)
        parts.append(f"{number(_rate(best))} GB/s at the most, with {size_of(best.bytes)}")
    elif not one.reason:
        parts.append("nothing was measured")
    if one.context:
        parts.append(f"for context: {one.context}")
    if one.reason:
        parts.append(one.reason)
    if one.on_cpu:
        parts.append("which says nothing about a GPU")
    return "; ".join(parts)


def _rate(one: SizeRate) -> float:
    return one.gb_s if one.bus_gb_s is None else one.bus_gb_s


def _telling(rates: Sequence[SizeRate]) -> list[SizeRate]:
    """The smallest, whose time is the latency, and the larger half."""
    return [one for place, one in enumerate(rates) if not place or 2 * place >= len(rates)]


def _cells(rate: SizeRate, reduces: bool) -> list[str]:
    told = [size_of(rate.bytes), _time(rate.seconds), number(rate.gb_s)]
    if reduces:
        told.append("" if rate.bus_gb_s is None else number(rate.bus_gb_s))
    return told


def _time(seconds: float) -> str:
    for size, unit in ((1.0, "s"), (1e-3, "ms")):
        if seconds >= size:
            return f"{number(seconds / size)} {unit}"
    return f"{number(seconds * 1e6)} µs"


def page(
    found: Sequence[SizeSeries], gpus: Mapping[str, str]
) -> Iterator[tuple[str, str, list[str]]]:
    """The same for the page, as (id, title, markup): a plot of all, and what is said of each."""
    for what, title in TITLES.items():
        of_it = [one for one in found if one.what == what][:_PLOTTED]
        if not of_it:
            continue
        told = []
        reduces = what == "allreduce"
        unit = "GB/s on the bus" if reduces else "GB/s"
        for place, part in enumerate(_by_title(of_it)):
            curves = [
                Curve(
                    name=name_of(one, gpus),
                    points=[(math.log2(rate.bytes), _rate(rate)) for rate in one.rates],
                )
                for one in part
                if one.rates
            ]
            if curves:
                name = f"sizes-{what}-{place}"
                words = f"{part[0].title} by size"
                drawn = lines(name, words, unit, curves, along=_ALONG, from_zero=True)
                told.append(html.plot(drawn, words))
        told.append(html.listed(("", "", f"{name_of(one, gpus)}: {_about(one)}") for one in of_it))
        yield what, title, told


def _by_title(found: Sequence[SizeSeries]) -> list[list[SizeSeries]]:
    parts: dict[str, list[SizeSeries]] = {}
    for one in found:
        parts.setdefault(one.title, []).append(one)
    return list(parts.values())
