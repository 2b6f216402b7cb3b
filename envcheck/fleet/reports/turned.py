"""What turned in a fleet, a line each: for people, and for programs."""

from __future__ import annotations

from collections.abc import Sequence

from ... import json_text
from ...reports.page import Page
from ..watch import KINDS, Kind, TurnEvent

SHORT_NAME = 40

_STYLES: dict[Kind, str] = {
    "ill": "fail",
    "problem": "fail",
    "silent": "could-not-run",
    "gone": "could-not-run",
    "new": "code",
    "solved": "pass",
    "back": "pass",
    "well": "pass",
}


def render(
    events: Sequence[TurnEvent], *, width: int = 80, colour: bool = False, utf8: bool = True
) -> str:
    """Lines that are not wrapped, whatever the width: for a log, and for grep."""
    page = Page(width=width, colour=colour, utf8=utf8)
    cells = max(map(len, KINDS))
    for event in events:
        told = page.clean(f"{page.cut(page.clean(event.machine), SHORT_NAME)}: {event.words}")
        kind = (event.event.upper().ljust(cells), _STYLES[event.event])
        page.line((f"{event.time} ", "quiet"), kind, (f" {told}", ""))
    return page.text()


def as_json(events: Sequence[TurnEvent]) -> str:
    """A JSON text a line."""
    return "".join(json_text.line(event) for event in events)
