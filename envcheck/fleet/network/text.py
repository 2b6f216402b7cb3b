"""A network run's result for people."""

from __future__ import annotations

from typing import Any

from ...reports.page import Page
from ...reports.plain import SIGNS
from ...reports.sections import ReportSection
from ...reports.terminal import draw
from .model import NetworkResult
from .sections import headline, measured, problems


def render(
    result: NetworkResult, *, verbose: bool = False, brief: bool = False, **style: Any
) -> str:
    """verbose: a row for each machine. brief: the verdict and a line for each problem."""
    page = Page(**style)
    page.away = True
    sign = f"{SIGNS[result.outcome]} " if page.utf8 else ""
    page.paragraph((sign + result.verdict, result.outcome), hanging=2)
    for one in result.findings if brief else ():
        page.paragraph(headline(one), hanging=2)
    blocks = {"Problems": [*problems(result)], "Measured": [*measured(result, every=verbose)]}
    for title, shown in blocks.items() if not brief else ():
        if shown:
            draw(page, ReportSection("", title, "", shown))
    return page.text()
