"""The releases as people read them: a line for each stack, or a table for each; each reason once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...reports.page import Column, Page, Span
from ...reports.plain import runs
from ..pythons.interpreter import number
from .releases import Chosen, ImageRow, Releases, StackRows, WheelRow

_NOT_KNOWN = "not known"

# Without --all, so many of a stack's releases are shown, and always the newest that fits.
_SHOWN = 6
_NAMED = 4  # releases that a reason names

_COLUMNS = {
    "wheel": ("RELEASE", "FITS", "PYTHON", "CUDA", "DRIVER"),
    "container": ("RELEASE", "FITS", "DRIVER", "CAPABILITY", "CUDA", "WITH", "PYTHON"),
}
# Of more stacks than this, the first table has one line each.
_DETAILED = 2
_OVERVIEW = ("STACK", "RELEASE", "FITS", "PYTHON", "DRIVER")

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
    lines = []
    for stack in releases.stacks:
        row = min(stack.releases, key=lambda row: len(row.refusals))
        unknown = _NOT_KNOWN if stack.gpu else "none"
        cells: list[Span] = [(stack.name, "code"), (row.release, ""), _fits(row)]
        texts = (_python(row) or _NOT_KNOWN, row.driver or unknown, _why_not(row))
        lines.append([*cells, *((text, "") for text in texts)])
    page.blank()
    page.table([*map(Column, _OVERVIEW), Column("WHY NOT", wraps=True)], lines, gap=2)
    page.paragraph(("all releases of a stack, and every reason:", "quiet"))
    mode = " --mode container" if releases.mode == "container" else ""
    page.command(f"envcheck releases {releases.stacks[0].name}{mode}")


def _table(page: Page, columns: Sequence[str], stack: StackRows, everything: bool) -> None:
    """A stack's lines, the reasons for them, and the notes on the one that fits."""
    page.paragraph((stack.name, "code"), (stack.title, ""), hanging=2)
    rows = stack.releases
    names = [row.release for row in rows]
    best = names.index(stack.newest_that_fits) if stack.newest_that_fits else -1
    shown = rows if everything else rows[: max(_SHOWN, best + 1)]
    page.table(
        [*map(Column, columns), Column("WHY NOT", wraps=True)],
        [_cells(row, _NOT_KNOWN if stack.gpu else "none") for row in shown],
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


def _cells(row: WheelRow | ImageRow, unknown: str) -> list[Span]:
    cuda = ".".join(row.cuda.split(".")[:3])  # a fourth part is a build's number
    if isinstance(row, WheelRow):
        texts = [_python(row) or _NOT_KNOWN, cuda or unknown, row.driver or unknown]
    else:
        values = (row.driver, row.capability, cuda, row.framework, row.python)
        texts = [value or unknown for value in values]
    return [(row.release, ""), _fits(row), *((text, "") for text in (*texts, _why_not(row)))]


def _fits(row: WheelRow | ImageRow) -> Span:
    return row.fits.replace("-", " "), _STYLES[row.fits]


def _why_not(row: WheelRow | ImageRow) -> str:
    return ", ".join(dict.fromkeys(refusal.kind.replace("-", " ") for refusal in row.refusals))


def _python(row: WheelRow | ImageRow) -> str:
    """ "3.9–3.12" for four minor versions, "3.8, 3.10" for two apart."""
    if isinstance(row, ImageRow):
        return row.python
    minors = sorted(row.python, key=number)
    found = runs(minors, lambda a, b: number(b)[1] == number(a)[1] + 1)
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
