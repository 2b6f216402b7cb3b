"""The releases as people read them: a line for each stack, or a table for each; each reason once."""

from __future__ import annotations

from typing import Any

from ...reports.page import Column, Page, Span
from ...reports.plain import runs
from ..pythons.interpreter import number
from .releases import Chosen, Releases, Row, StackRows

_SHOWN = 6  # of a stack's releases without --all; always the newest that fits
_NAMED = 4  # releases that a reason names
_DETAILED = 2  # of more stacks than this, the table has one line each

_COLUMNS = {
    "wheel": ("PYTHON", "CUDA", "DRIVER"),
    "container": ("DRIVER", "CAPABILITY", "CUDA", "FRAMEWORK", "PYTHON"),
}
_STYLES = {"yes": "pass", "no": "", "if-named": "warn", "perhaps": "warn"}


def render(releases: Releases, *, everything: bool = False, **style: Any) -> str:
    """The tables, and what the command would install. everything: all releases; style: of the Page."""
    page = Page(**style)
    page.paragraph((releases.machine or "a machine of which nothing is known", "heading"))
    brief = len(releases.stacks) > _DETAILED and not everything
    if brief:
        _overview(page, releases)
    for stack in [] if brief else releases.stacks:
        page.blank()
        _table(page, _COLUMNS[releases.mode], stack, everything)
    page.blank()
    _chosen(page, releases.chosen, brief=brief)
    return page.text()


def _overview(page: Page, releases: Releases) -> None:
    """A line for each stack, with its newest release that fits, else with the one that comes nearest."""
    columns = ("PYTHON", "DRIVER")
    nearest = [
        (stack, min(stack.releases, key=lambda row: len(row.refusals))) for stack in releases.stacks
    ]
    page.blank()
    page.table(
        [*map(Column, ("STACK", "RELEASE", "FITS", *columns)), Column("WHY NOT", wraps=True)],
        [[(stack.name, "code"), *_cells(row, columns, stack.gpu)] for stack, row in nearest],
        gap=2,
    )
    page.paragraph(("all releases of a stack, and every reason:", "quiet"))
    mode = " --mode container" if releases.mode == "container" else ""
    page.command(f"envcheck releases {releases.stacks[0].name}{mode}")


def _table(page: Page, columns: tuple[str, ...], stack: StackRows, everything: bool) -> None:
    """A stack's lines, the reasons for them, and the notes on the one that fits."""
    page.paragraph((stack.name, "code"), (stack.title, ""), hanging=2)
    rows = stack.releases
    names = [row.release for row in rows]
    best = names.index(stack.newest_that_fits) if stack.newest_that_fits else -1
    shown = rows if everything else rows[: max(_SHOWN, best + 1)]
    page.table(
        [*map(Column, ("RELEASE", "FITS", *columns)), Column("WHY NOT", wraps=True)],
        [_cells(row, columns, stack.gpu) for row in shown],
        indent=2,
        gap=2,
    )
    if older := len(rows) - len(shown):
        page.paragraph((f"and {older} older: --all", "quiet"), indent=2)
    reasons: dict[str, list[str]] = {}
    for row in shown:
        for refusal in row.refusals:
            reasons.setdefault(refusal.sentence, []).append(row.release)
    notes = rows[best].notes if best >= 0 else []
    for sentence, about in [*reasons.items(), *((note, [names[best]]) for note in notes)]:
        more = f" and {len(about) - _NAMED} more" if len(about) > _NAMED else ""
        who = "all" if len(about) == len(shown) > 1 else ", ".join(about[:_NAMED]) + more
        page.paragraph((f"{who}:", "code"), (sentence, ""), indent=2, hanging=4)


def _cells(row: Row, columns: tuple[str, ...], gpu: bool) -> list[Span]:
    """Of a stack without a GPU, CUDA and the driver are "none"."""
    values = {
        "PYTHON": _pythons(row.python) or "not known",
        "CUDA": ".".join(row.cuda.split(".")[:3]),  # a fourth part is a build's number
        "DRIVER": row.driver,
        "CAPABILITY": row.capability,
        "FRAMEWORK": row.framework,
    }
    texts = [values[column] or ("not known" if gpu else "none") for column in columns]
    why = ", ".join(dict.fromkeys(refusal.kind.replace("-", " ") for refusal in row.refusals))
    fits = (row.fits.replace("-", " "), _STYLES[row.fits])
    return [(row.release, ""), fits, *((text, "") for text in (*texts, why))]


def _pythons(minors: list[str]) -> str:
    """ "3.9–3.12" for four minor versions, "3.8, 3.10" for two apart."""
    found = runs(sorted(minors, key=number), lambda a, b: number(b)[1] == number(a)[1] + 1)
    return ", ".join(f"{run[0]}–{run[-1]}" if len(run) > 1 else run[0] for run in found)


def _chosen(page: Page, chosen: Chosen, *, brief: bool) -> None:
    """The command, and what it would install, or why nothing. brief: without the reasons."""
    page.command(chosen.command)
    if chosen.refused:
        page.paragraph(("would install nothing:", "fail"), (f"{chosen.refused}.", ""), indent=2)
        for line in f"hint: {chosen.hint}".splitlines() if chosen.hint else ():
            page.paragraph((line, ""), indent=2, hanging=2)
        return
    why = "" if brief else "; ".join(chosen.reasons)
    where = f"on {chosen.where}" if chosen.where else ""
    what = f"{chosen.stack} {chosen.release}"
    page.paragraph(
        ("would install", ""), (what, "pass"), (f"{where}{':' if why else '.'}", ""), indent=2
    )
    if why:
        page.paragraph((f"{why}.", ""), indent=2)
