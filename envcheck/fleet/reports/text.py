"""A fleet's result for people."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ...findings.model import Outcome
from ...reports.page import Page
from ...reports.plain import SIGNS
from ...reports.terminal import draw
from ..model import FleetResult
from . import words
from .sections import headline, sections


def render(result: FleetResult, *, verbose: bool = False, brief: bool = False, **style: Any) -> str:
    """verbose: every name, and a row for each machine. brief: the verdict, and a line for each group of
    problems."""
    page = Page(**style)
    page.away = True
    page.simulated(words.simulated(result))
    outcome = worst(result)
    sign = f"{SIGNS[outcome]} " if page.utf8 else ""
    page.paragraph((sign + words.verdict(result), outcome), hanging=2)
    if brief:
        for group in result.groups:
            page.paragraph(*headline(group), hanging=2)
        return page.text()
    _products(page, result, verbose)
    for section in sections(result, verbose=verbose):
        draw(page, section)
    if page.tokens:
        page.blank()
        text = "Snapshots collected with --no-redact have the values themselves."
        page.paragraph((f"{page.about_tokens()} {text}", ""), hanging=2)
    return page.text()


def worst(result: FleetResult) -> Outcome:
    counts = result.counts
    if counts.broken:
        return "fail"
    if counts.silent or not counts.machines:
        return "could-not-run"
    return "warn" if result.groups or words.outliers(result) else "pass"


def _products(page: Page, result: FleetResult, verbose: bool) -> None:
    """How many there are of each."""
    products = Counter(one.product for one in result.machines if one.answer == "answered")
    parts = [
        f"{number} with {product or 'unknown GPUs'}"
        for product, number in products.most_common(None if verbose else 4)
    ]
    if more := len(products) - len(parts):
        parts.append(f"{more} more products")
    if parts:
        page.paragraph(("Machines:", "heading"), ("; ".join(parts), ""), hanging=2)
