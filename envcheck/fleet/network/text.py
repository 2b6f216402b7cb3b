"""A network run's result for people."""

from __future__ import annotations

from typing import Any

from ...reports.page import Column, Page
from ...reports.plain import SIGNS
from .. import hosts
from .model import NetworkResult


def render(
    result: NetworkResult, *, verbose: bool = False, brief: bool = False, **style: Any
) -> str:
    """verbose: a row for each machine. brief: the verdict and a line for each problem."""
    page = Page(**style)
    page.away = True
    sign = f"{SIGNS[result.outcome]} " if page.utf8 else ""
    page.paragraph((sign + result.verdict, result.outcome), hanging=2)
    for one in result.findings:
        if brief:
            page.paragraph((f"{hosts.folded(one.machines)} {one.headline}", one.level), hanging=2)
            continue
        page.blank()
        page.paragraph((f"{hosts.folded(one.machines)} {one.headline}", one.level), hanging=2)
        page.paragraph((one.message, ""), indent=2)
        page.advice(one.remedy, one.commands)
    if not brief:
        _others(page, result)
        if verbose:
            _machines(page, result)
        _together(page, result)
    return page.text()


def _others(page: Page, result: NetworkResult) -> None:
    if result.silent:
        page.blank()
    for machines, why in result.silent:
        page.paragraph((f"{hosts.folded(machines)}: not tested: {why}", "could-not-run"), hanging=2)
    if result.unsteady:
        page.blank()
        page.paragraph((f"{result.unsteady} pairs failed once, and passed the second time.", ""))


def _machines(page: Page, result: NetworkResult) -> None:
    page.blank()
    rows = [
        [
            one.name,
            *map(str, (one.pairs, one.failed)),
            *map(_number, (one.sends_mb_s, one.receives_mb_s, one.latency_us)),
        ]
        for one in result.machines
    ]
    _table(page, ["machine", "pairs", "failed", "sends MB/s", "receives MB/s", "latency µs"], rows)


def _together(page: Page, result: NetworkResult) -> None:
    if not result.together and not result.together_reason:
        return
    page.blank()
    number = result.together[0].machines if result.together else 0
    page.paragraph((f"All {number or ''} healthy machines together".replace("  ", " "), "heading"))
    rows = [
        [one.collective, f"{one.bytes / 1024:.0f} KiB", _number(one.bus_mb_s), _percent(one.share)]
        for one in result.together
        if one.bus_mb_s is not None
    ]
    if rows:
        _table(page, ["collective", "size", "bus MB/s", "of the slowest pair"], rows)
    for name, why in {(o.collective, o.reason) for o in result.together if o.reason}:
        page.paragraph((f"{name}: not tested: {why}", ""), hanging=2)
    if result.together_reason:
        words = f"It did not come to its end: {result.together_reason}"
        page.paragraph((words, "could-not-run"), hanging=2)


def _table(page: Page, headings: list[str], rows: list[list[str]]) -> None:
    columns = [Column(one, right=place > 0) for place, one in enumerate(headings)]
    page.table(columns, ([(cell, "") for cell in row] for row in rows), gap=2)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}"


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:.0%}"
