"""What `envcheck explain` says: one check in full, the table of all codes, or a page on a subject."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from typing import Any

from ..checks.registry import Check, CheckText, area_title, areas
from .page import Page
from .plain import together

# The pages by name, each with the area that it is listed under, "" where all are: NAME.txt in pages/.
PAGES = {"tensor-cores": "tensorcores", "stack-file": ""}

_CODE_CELLS = 10


def explain(check: CheckText, titles: Mapping[str, str] | None = None, **style: Any) -> str:
    """All that envcheck knows of a check; ``titles`` maps other checks' codes to their titles. style: of
    the Page, here and below."""
    page = Page(**style)
    page.paragraph((check.code, "code"), (check.title, "heading"), hanging=2)
    page.paragraph((f"Area: {area_title(check.area)} ({check.area})", ""), hanging=2)
    for paragraph in check.about.split("\n\n"):
        page.blank()
        page.paragraph((paragraph, ""))
    follows = "Shown as a consequence if one of these fails:"
    for heading, rows in (
        ("Causes:", [(cause.key, cause.headline) for cause in check.causes]),
        (follows, [(code, (titles or {}).get(code, "")) for code in check.follows]),
        ("Sources:", [("", source) for source in check.sources]),
    ):
        if rows:
            page.blank()
            page.paragraph((heading, "heading"), hanging=2)
        for key, text in rows:
            page.paragraph((key, "code"), (text, ""), indent=2, hanging=4)
    for name, area in PAGES.items():
        if area == check.area:
            page.blank()
            page.paragraph((f"{_title(name)}:", "heading"), hanging=2)
            page.command(f"envcheck explain {name}")
    page.blank()
    alone = isinstance(check, Check)  # else it is about several machines
    where = "on this machine" if alone else "in a fleet"
    page.paragraph((f"The evidence and the remedy {where}:", "heading"), hanging=2)
    page.command(f"envcheck doctor --only {check.code}" if alone else "envcheck fleet report DIR")
    return page.text()


def explain_all(checks: Iterable[CheckText], **style: Any) -> str:
    """The table of all codes with their titles, area by area."""
    page = Page(**style)
    by_area = together((check.area, check) for check in checks)
    for area, of_it in by_area.items():
        page.paragraph((f"{area_title(area)} ({area})", "heading"))
        _entries(page, of_it)
        page.blank()
    for name, area in PAGES.items():
        if area in by_area or (not area and by_area.keys() >= areas().keys()):
            page.paragraph((f"{_title(name)}:", ""))
            page.command(f"envcheck explain {name}")
    page.paragraph(("What one of them means:", ""))
    page.command("envcheck explain CODE")
    return page.text()


def explain_found(word: str, checks: Sequence[CheckText], **style: Any) -> str:
    """The checks that mention a word, as they come."""
    page = Page(**style)
    mention = "check mentions" if len(checks) == 1 else "checks mention"
    best = ", best first" if len(checks) > 1 else ""
    page.paragraph((f'{len(checks)} {mention} "{word}"{best}:', "heading"))
    _entries(page, checks)
    page.blank()
    page.paragraph(("What the first one means:", ""))
    page.command(f"envcheck explain {checks[0].code}")
    return page.text()


def _entries(page: Page, checks: Iterable[CheckText]) -> None:
    for check in checks:
        page.entry(check.code, check.title, _CODE_CELLS)


def explain_page(name: str, **style: Any) -> str:
    """One of PAGES: its title, then paragraphs; "# " begins a heading, "- " an item of a list, and
    what is indented stands as it is."""
    page = Page(**style)
    for number, line in enumerate(_lines(name)):
        if not line:
            page.blank()
        elif number == 0 or line.startswith("# "):
            page.paragraph((line.removeprefix("# "), "heading"))
        elif line.startswith("- "):
            term, colon, text = line.removeprefix("- ").partition(": ")
            page.paragraph((term + colon.rstrip(), "code"), (text, ""), indent=2, hanging=4)
        elif line.startswith(" "):
            page.preformatted(line)
        else:
            page.paragraph((line, ""))
    return page.text()


def _title(name: str) -> str:
    return _lines(name)[0]


def _lines(name: str) -> list[str]:
    return (files(__package__) / "pages" / f"{name}.txt").read_text("utf-8").splitlines()
