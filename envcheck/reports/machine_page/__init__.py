"""A machine's report as one HTML page that needs no network."""

from __future__ import annotations

from ...facts.snapshot import Snapshot
from .. import html_page
from ..model import Report


def render(report: Report, snapshot: Snapshot, *, name: str = "", back: str = "") -> str:
    """The page. name: what the machine is called, where somebody calls it anything. back: a link to the
    page of its fleet, beside this one."""
    title = f"envcheck: {name or 'this machine'}"
    parts = [html_page.heading(title, 1), html_page.paragraph(report.verdict, report.status)]
    return html_page.whole(title, parts)
