"""A fleet's result for people."""

from __future__ import annotations

from ...reports.page import Page
from ..model import FleetResult


def render(result: FleetResult, *, width: int, colour: bool, utf8: bool) -> str:
    page = Page(width=width, colour=colour, utf8=utf8)
    counts = result.counts
    page.paragraph((f"{counts.healthy} of {counts.machines} machines are well", "heading"))
    for group in result.groups:
        page.paragraph((f"{len(group.machines)} machines: {group.code} {group.headline}", ""))
        page.paragraph((group.hosts, ""))
    return page.text()
