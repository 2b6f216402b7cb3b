"""What `envcheck explain` says: one check in full, or the table of all codes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..checks.registry import AREAS, Check
from .page import Page


def explain(
    check: Check,
    titles: Mapping[str, str] | None = None,
    *,
    width: int = 80,
    colour: bool = False,
    utf8: bool = True,
) -> str:
    """All that envcheck knows of a check; ``titles`` maps other checks' codes to their titles."""
    page = Page(width=width, colour=colour, utf8=utf8)
    page.paragraph((check.code, "code"), (check.title, "heading"), hanging=2)
    page.paragraph((f"Area: {AREAS.get(check.area, check.area)} ({check.area})", ""), hanging=2)
    for paragraph in check.about.split("\n\n"):
        page.blank()
        page.paragraph((paragraph, ""))
    if check.follows:
        page.blank()
        page.paragraph(("Shown as a consequence where one of these fails:", "heading"), hanging=2)
        for code in check.follows:
            page.paragraph((code, "code"), ((titles or {}).get(code, ""), ""), indent=2, hanging=4)
    if check.sources:
        page.blank()
        page.paragraph(("Where the knowledge comes from:", "heading"), hanging=2)
        for source in check.sources:
            page.paragraph((source, ""), indent=2, hanging=4)
    page.blank()
    page.paragraph(("The evidence and the remedy on this machine:", "heading"), hanging=2)
    page.command(f"envcheck doctor --only {check.code}")
    return page.text()


def explain_all(
    checks: Iterable[Check], *, width: int = 80, colour: bool = False, utf8: bool = True
) -> str:
    """The table of all codes with their titles, area by area."""
    page = Page(width=width, colour=colour, utf8=utf8)
    areas: dict[str, list[Check]] = {}
    for check in checks:
        areas.setdefault(check.area, []).append(check)
    code_cells = max((len(c.code) for these in areas.values() for c in these), default=0) + 2
    for area, these in areas.items():
        page.paragraph((f"{AREAS.get(area, area)} ({area})", "heading"))
        for check in these:
            page.entry(check.code, check.title, code_cells)
        page.blank()
    page.paragraph(("What one of them means:", ""))
    page.command("envcheck explain CODE")
    return page.text()
