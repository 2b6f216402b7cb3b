"""Links and all-reduces by size: a table for a terminal, and plots for the page."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from ..bench.sizes import SizeRate, SizeSeries
from .bench_words import number

if TYPE_CHECKING:
    from .page import Page

_TITLES = {"links": "Links", "allreduce": "All-reduce"}
_SHOWN = 12  # series, unless the page is verbose
_PLOTTED = 64
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_ALONG = "size as a power of two: 10 is 1 KiB, 20 is 1 MiB, 30 is 1 GiB"


def kinds(found: Sequence[SizeSeries]) -> Iterator[tuple[str, str, list[SizeSeries]]]:
    """Each kind with its title and its series."""
    for what, title in _TITLES.items():
        if series := [one for one in found if one.what == what]:
            yield what, title, series


def sizes(page: Page, found: Sequence[SizeSeries], gpus: Mapping[str, str], verbose: bool) -> None:
    """The time and rate by size; nothing where none was asked for."""
    from .page import Column

    for what, title, series in kinds(found):
        reduces = what == "allreduce"
        about_all = (
            "bus bandwidth is the rate × 2(n-1)/n" if reduces else "median of in-place copies"
        )
        page.blank()
        page.paragraph((f"{title}:", "heading"), (about_all, ""), hanging=2)
        headings = ["Size", "Time", "GB/s", *(["Bus GB/s"] if reduces else [])]
        for one in series if verbose else series[:_SHOWN]:
            name = (f"{name_of(one, gpus)}:", "code")
            page.paragraph(name, (about(one), ""), indent=2, hanging=4)
            # Unless verbose: the smallest, whose time is the latency, and the larger half.
            rates = [
                rate
                for place, rate in enumerate(one.rates)
                if verbose or not place or 2 * place >= len(one.rates)
            ]
            rows = [[(cell, "") for cell in _cells(rate, reduces)] for rate in rates]
            if rows:
                columns = [Column(heading, right=True) for heading in headings]
                page.table(columns, rows, indent=4, gap=2)
        if not verbose and len(series) > _SHOWN:
            page.paragraph((f"and {len(series) - _SHOWN} more with -v", "quiet"), indent=2)


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
        parts.append(f"GPU {', '.join(gpus.get(address, address) for address in one.gpus)}")
    return ", ".join(parts)


def size_of(count: int) -> str:
    """ "8 B", "32 KiB", "1 GiB"."""
    place = 0
    while count >= 1024 and count % 1024 == 0 and place < len(_UNITS) - 1:
        count, place = count // 1024, place + 1
    return f"{count:,} {_UNITS[place]}"


def about(one: SizeSeries) -> str:
    """Its best rate, what to compare it with, and why there is no more."""
    best = max(one.rates, key=_rate) if one.rates else None
    parts = [
        f"{number(_rate(best))} GB/s at the most, with {size_of(best.bytes)}" if best else "",
        "nothing was measured" if best is None and not one.reason else "",
        f"for context: {one.context}" if one.context else "",
        one.reason,
        "which says nothing about a GPU" if one.on_cpu else "",
    ]
    return "; ".join(filter(None, parts))


def _rate(one: SizeRate) -> float:
    return one.gb_s if one.bus_gb_s is None else one.bus_gb_s


def _cells(rate: SizeRate, reduces: bool) -> list[str]:
    seconds = rate.seconds
    units = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))
    size, unit = next((one for one in units if seconds >= one[0]), units[-1])
    bus = "" if rate.bus_gb_s is None else number(rate.bus_gb_s)
    cells = [size_of(rate.bytes), f"{number(seconds / size)} {unit}", number(rate.gb_s)]
    return [*cells, bus] if reduces else cells


def plots(what: str, found: Sequence[SizeSeries], gpus: Mapping[str, str]) -> list[tuple[str, str]]:
    """A plot for each title, and what it is called."""
    from .plots import Curve, lines

    unit = "GB/s on the bus" if what == "allreduce" else "GB/s"
    by_title: dict[str, list[Curve]] = {}
    for one in found[:_PLOTTED]:
        if one.rates:
            points = [(math.log2(rate.bytes), _rate(rate)) for rate in one.rates]
            by_title.setdefault(one.title, []).append(Curve(name_of(one, gpus), points))
    drawn = []
    for place, (title, curves) in enumerate(by_title.items()):
        words = f"{title} by size"
        plot = lines(f"sizes-{what}-{place}", words, unit, curves, along=_ALONG, from_zero=True)
        drawn.append((plot, words))
    return drawn
