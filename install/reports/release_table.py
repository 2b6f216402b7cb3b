"""The releases as people read them: a line for each stack, or a table for each; each reason once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...reports.page import Column, Page, Span
from ...reports.plain import runs
from ..pythons.interpreter import number
from .releases import Chosen, ImageRow, Releases, Row, StackRows, WheelRow

_NOT_KNOWN = "not known"

# Without --all, so many of a stack's releases are shown, and always the newest that fits.
_SHOWN = 6

_COLUMNS = {
    "wheel": ("RELEASE", "FITS", "PYTHON", "CUDA", "DRIVER"),
    "container": ("RELEASE", "FITS", "DRIVER", "CAPABILITY", "CUDA", "WITH", "PYTHON"),
}
# Of more stacks than this, the first table has one line each.
_DETAILED = 2
_OVERVIEW = ("STACK", "RELEASE", "FITS", "PYTHON", "DRIVER")
_DECIDING = ("driver", "compat branches", "compute capability")

_STYLES = {"yes": "pass", "no": "", "if-named": "warn", "perhaps": "warn"}


def render(releases: Releases, *, everything: bool = False, **style: Any) -> str:
    """The tables, and what the commands would take. everything: all releases; style: of the Page."""
    page = Page(**style)
    page.paragraph((releases.machine or "a machine of which nothing is known", "heading"))
    brief = len(releases.stacks) > _DETAILED and not everything
    if brief:
        _overview(page, releases)
    for stack in [] if brief else releases.stacks:
        page.blank()
        _table(page, _COLUMNS[releases.mode], stack, everything)
    page.blank()
    chosen = releases.chosen
    for one in [chosen, *releases.others]:
        if not one.refused:
            _taken(page, one, releases.otherwise if one is chosen else None, brief=brief)
    if chosen.refused:
        _nothing(page, chosen, hint=not releases.others)
    return page.text()


def _overview(page: Page, releases: Releases) -> None:
    """A line for each stack, with its newest release that fits, else with the one that comes nearest."""
    rows = []
    for stack in releases.stacks:
        shown = min(stack.releases, key=lambda row: len(row.refusals))
        unknown = _NOT_KNOWN if stack.gpu else "none"
        python = pythons(shown.python) if isinstance(shown, WheelRow) else shown.python
        texts = (python or _NOT_KNOWN, shown.driver or unknown)
        cells: list[Span] = [(stack.name, "code"), (shown.release, ""), _fits(shown)]
        rows.append([*cells, *((text, "") for text in (*texts, _why_not(shown)))])
    page.blank()
    page.table([*map(Column, _OVERVIEW), Column("WHY NOT", wraps=True)], rows, gap=2)
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
    if left := len(rows) - len(shown):
        page.paragraph((f"and {left} older: --all", "quiet"), indent=2)
    for sentence, about in _sentences(shown).items():
        page.paragraph((f"{about}:", "code"), (sentence, ""), indent=2, hanging=4)
    for note in rows[best].notes if best >= 0 else []:
        page.paragraph((f"{names[best]}:", "code"), (note, ""), indent=2, hanging=4)


def _cells(row: WheelRow | ImageRow, unknown: str) -> list[Span]:
    cuda = _toolkit(row)
    if isinstance(row, WheelRow):
        told = [pythons(row.python) or _NOT_KNOWN, cuda or unknown, row.driver or unknown]
    else:
        values = (row.driver, row.capability, cuda, row.framework, row.python)
        told = [value or unknown for value in values]
    return [(row.release, ""), _fits(row), *((text, "") for text in (*told, _why_not(row)))]


def _toolkit(row: Row) -> str:
    """Its CUDA; a fourth part of the version is a build's number."""
    return ".".join(row.cuda.split(".")[:3])


def _fits(row: Row) -> Span:
    return row.fits.replace("-", " "), _STYLES[row.fits]


def _why_not(row: Row) -> str:
    return ", ".join(dict.fromkeys(refusal.kind.replace("-", " ") for refusal in row.refusals))


def pythons(minors: Sequence[str]) -> str:
    """ "3.9–3.12" for four minor versions, "3.8, 3.10" for two apart."""
    found = runs(sorted(minors, key=number), lambda a, b: number(b)[1] == number(a)[1] + 1)
    return ", ".join(f"{these[0]}–{these[-1]}" if len(these) > 1 else these[0] for these in found)


def _sentences(rows: Sequence[Row]) -> dict[str, str]:
    """What is said of the rows, each sentence once: {sentence: "23.03, 22.10 to 22.06"}."""
    places: dict[str, list[int]] = {}
    for tell in (_reasons, _compat, _sister):
        for place, row in enumerate(rows):
            for sentence in tell(row):
                places.setdefault(sentence, []).append(place)
    return {sentence: _names(rows, found) for sentence, found in places.items()}


def _reasons(row: Row) -> list[str]:
    return [refusal.sentence for refusal in row.refusals]


def _compat(row: Row) -> list[str]:
    """The compat branches, which no column is wide enough for."""
    if not isinstance(row, ImageRow) or not row.compat_branches:
        return []
    return [f"data-centre GPUs may have driver branches {', '.join(row.compat_branches)}, too"]


def _sister(row: Row) -> list[str]:
    """What decides about a driver, where only the same month's base image says it."""
    if not isinstance(row, ImageRow) or not {"driver", "compat branches"} & row.sister.keys():
        return []
    values = [f"{name} {row.sister[name]}" for name in _DECIDING if name in row.sister]
    return [f"same-month base image, not confirmed: {'; '.join(values)}"]


def _names(rows: Sequence[Row], places: list[int]) -> str:
    """The rows at these places, three neighbours and more as a range."""
    if len(places) == len(rows) > 1:
        return "all"
    names = [
        [rows[place].release for place in run] for run in runs(places, lambda a, b: b == a + 1)
    ]
    return ", ".join(
        ", ".join(these) if len(these) < 3 else f"{these[0]} to {these[-1]}" for these in names
    )


def _taken(page: Page, chosen: Chosen, otherwise: Chosen | None, *, brief: bool) -> None:
    """A command, and what it would take; brief: without the reasons."""
    page.command(chosen.command)
    what = chosen.reference or f"{chosen.stack} {chosen.release}"
    told: list[Span] = [("would install", ""), (what, "pass")]
    if chosen.engine or chosen.python:
        where = f"into {chosen.engine}" if chosen.engine else f"on {chosen.python}"
        told.append((where, ""))
    if otherwise is not None:
        instead = "nothing" if otherwise.refused else f"{otherwise.stack} {otherwise.release}"
        told.append((f"if its index answers, else {instead}", ""))
    why = "" if brief else "; ".join(chosen.reasons)
    last, style = told[-1]
    told[-1] = (f"{last}:" if why else f"{last}.", style)
    page.paragraph(*told, (f"{why}." if why else "", ""), indent=2)


def _nothing(page: Page, chosen: Chosen, *, hint: bool) -> None:
    """Why a command would install nothing, and what to do about it."""
    page.command(chosen.command)
    page.paragraph(("would install nothing:", "fail"), (f"{chosen.refused}.", ""), indent=2)
    if hint and chosen.hint:
        for line in f"hint: {chosen.hint}".splitlines():
            page.paragraph((line, ""), indent=2, hanging=2)
