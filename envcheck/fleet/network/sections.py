"""A network run's result as parts of a report, for text and pages."""

from __future__ import annotations

from collections.abc import Iterator

from ...reports.plain import Column
from ...reports.sections import Advice, Block, Heading, Note, Span, Table
from .. import hosts
from .model import MachineRates, NetworkFinding, NetworkResult

_SLOWEST, _NAMED = 5, 20  # machines with a row of their own: the slowest, and those that are named


def headline(one: NetworkFinding) -> Span:
    return f"{hosts.folded(one.machines)} {one.headline}", one.level


def problems(result: NetworkResult) -> Iterator[Block]:
    for one in result.findings:
        yield Heading([headline(one)])
        yield Note([(one.message, "")], 1)
        yield Advice(one.remedy, one.commands)


def measured(result: NetworkResult, *, every: bool = False, worst: bool = False) -> Iterator[Block]:
    """every: a row for each machine. worst: rows of those that are named, and of the slowest."""
    for machines, why in result.silent:
        yield Note([(f"{hosts.folded(machines)}: not tested: {why}", "could-not-run")])
    if result.unsteady:
        yield Note([(f"{result.unsteady} pairs failed once, and passed the second time.", "")])
    if every or worst:
        shown = result.machines if every else _worst_first(result)
        headings = ["machine", "pairs", "failed", "sends MB/s", "receives MB/s", "latency µs"]
        yield _table(headings, [_cells(one) for one in shown])
        if rest := [_slower(one) for one in result.machines if one not in shown]:
            text = f"{len(rest):,} others: {_number(min(rest))} to {_number(max(rest))} MB/s"
            yield Note([(text, "")], 1)
    for machines, why in result.links:
        text = f"{hosts.folded(machines)}: not compared with what the link claims: {why}"
        yield Note([(text, "quiet")])
    yield from _together(result)


def _worst_first(result: NetworkResult) -> list[MachineRates]:
    named = {name for one in result.findings for name in one.machines}
    slowest_first = sorted((one for one in result.machines if one.pairs), key=_slower)
    first = [one for one in slowest_first if one.name in named][:_NAMED]
    return first + [one for one in slowest_first if one.name not in named][:_SLOWEST]


def _slower(one: MachineRates) -> float:
    """Of its directions."""
    return min(one.sends_mb_s or 0.0, one.receives_mb_s or 0.0)


def _cells(one: MachineRates) -> list[str]:
    numbers = map(_number, (one.sends_mb_s, one.receives_mb_s, one.latency_us))
    return [one.name, str(one.pairs), str(one.failed), *numbers]


def _together(result: NetworkResult) -> Iterator[Block]:
    if not result.together and not result.together_reason:
        return
    number = f"{result.together[0].machines} " if result.together else ""
    yield Heading([(f"All {number}healthy machines together", "heading")])
    rows = [
        [one.collective, f"{one.bytes / 1024:.0f} KiB", _number(one.bus_mb_s), _percent(one.share)]
        for one in result.together
        if one.bus_mb_s is not None
    ]
    if rows:
        yield _table(["collective", "size", "bus MB/s", "of the slowest pair"], rows)
    for name, why in {(o.collective, o.reason) for o in result.together if o.reason}:
        yield Note([(f"{name}: not tested: {why}", "")])
    if result.together_reason:
        words = f"It did not come to its end: {result.together_reason}"
        yield Note([(words, "could-not-run")])


def _table(headings: list[str], rows: list[list[str]]) -> Table:
    columns = [Column(one, right=place > 0) for place, one in enumerate(headings)]
    return Table(columns, [[(cell, "") for cell in row] for row in rows])


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}"


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:.0%}"
