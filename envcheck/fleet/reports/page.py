"""A fleet's page: one file that needs no network, beside the pages of its machines."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from ...exit_codes import UsageError
from ...install import durable
from ...reports import html
from ...reports.html import Masthead
from ...reports.page_sections import page_section
from ..folder import file_name
from ..model import FleetResult
from . import words
from .problem_rows import problem_table
from .sections import sections
from .text import worst

INDEX = "index.html"
_FIRST_LINES = 1000  # bytes


def render(result: FleetResult) -> str:
    """The page, as text. Pure."""
    pages = {
        machine.name: html.address(machine.page) for machine in result.machines if machine.page
    }
    products = Counter(one.product for one in result.machines if one.product)
    about = [f"{count:,} with {product}" for product, count in products.most_common(6)]
    about += [f"{len(products) - 6} other products"] if len(products) > 6 else []
    times = sorted(one.collected_at for one in result.machines if one.collected_at)
    ends = [
        one.replace("T", " ").replace("Z", " UTC") for one in dict.fromkeys(times[:1] + times[-1:])
    ]
    head = Masthead(
        about_what="fleet",
        title=f"A fleet of {words.machines(len(result.machines))}",
        kind=worst(result),
        word=words.not_healthy(result),
        items=words.healthy(result),
        about=", ".join(about),
        facts=[("Collected", " to ".join(ends))],
        simulated=words.simulated(result),
    )
    return html.page(
        f"envcheck: {words.machines(result.counts.machines)}",
        head,
        [
            *([problem_table(result, pages)] if result.groups or result.shared else []),
            *(page_section(one) for one in sections(result, verbose=True, pages=pages)),
        ],
        foot=f"envcheck {result.envcheck}",
        styles=["machine.css"],
        scripts=["page.js", "filter.js"],
        generator=html.OF_A_FLEET,
    )


def write(result: FleetResult, folder: Path) -> None:
    """DIR/index.html; pages of an earlier run whose machines have none now are removed. Raises UsageError
    where a file that envcheck did not write would be overwritten, OSError."""
    check(folder)
    durable.write(folder / INDEX, render(result).encode())
    pages = {INDEX, *(machine.page for machine in result.machines)}
    for path in folder.glob("*.html"):
        if path.name not in pages and _is_ours(path):
            with suppress(FileNotFoundError):
                path.unlink()


def check(folder: Path, names: Iterable[str] = ()) -> None:
    """Whether the page, and those of the machines with these names, may be written there. Raises
    UsageError."""
    for name in (INDEX, *(f"{file_name(name)}.html" for name in names)):
        path = folder / name
        if os.path.lexists(path) and not _is_ours(path):
            raise UsageError(
                f"{path} exists and was not written by envcheck: name another directory"
            )


def _is_ours(path: Path) -> bool:
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        mark = f'<meta name="generator" content="{html.OF_A_FLEET}">'.encode()
        return mark in file.read(_FIRST_LINES)
