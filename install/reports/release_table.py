"""What the matrices of wheels and of containers share: a release a line, and each reason once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import msgspec

from ... import json_text
from ...reports.page import Column, Page, Span
from ..fit.models import JudgedRelease, Refusal, RefusalKind

NOT_KNOWN = "not known"

# Without --all, so many of a stack's releases are shown, and always the newest that fits.
SHOWN = 6

# A reason in one word, as the table has it.
_WORDS: dict[RefusalKind, str] = {
    "gpu": "GPU",
    "driver": "driver",
    "capability": "kernels",
    "architecture": "machine",
    "libc": "glibc",
    "cpu": "CPU",
    "python": "Python",
    "disk": "disk",
    "place": "directory",
    "broken": "broken",
    "not-known": NOT_KNOWN,
    "prerelease": "pre-release",
}
_STYLES = {"yes": "pass", "no": "", "if-named": "warn", "perhaps": "warn"}


class AnyRow(Protocol):
    """A release's line."""

    @property
    def release(self) -> str: ...

    @property
    def fits(self) -> str: ...

    @property
    def refusals(self) -> list[Refusal]: ...

    @property
    def notes(self) -> list[str]: ...


R = TypeVar("R", bound=AnyRow)
R_co = TypeVar("R_co", bound=AnyRow, covariant=True)


class Rows(Protocol[R_co]):
    """A stack's, or a flavour's, newest first."""

    @property
    def name(self) -> str: ...

    @property
    def title(self) -> str: ...

    @property
    def newest_that_fits(self) -> str: ...

    @property
    def releases(self) -> Sequence[R_co]: ...


class Refusing(Protocol):
    """What a command would take, and why nothing."""

    @property
    def command(self) -> str: ...

    @property
    def refused(self) -> str: ...

    @property
    def hint(self) -> str: ...


def as_json(releases: msgspec.Struct) -> str:
    """A whole matrix as a document."""
    return json_text.render(releases)


def fits(candidate: JudgedRelease[Any]) -> str:
    """ "yes", "no", "if-named", or "perhaps" where not everything is known of the machine."""
    if candidate.refusals:
        named = all(refusal.overridable for refusal in candidate.refusals)
        return "if-named" if named else "no"
    return "perhaps" if candidate.open else "yes"


def table(
    page: Page,
    columns: Sequence[str],
    stack: Rows[R],
    values: Callable[[R], Sequence[str]],
    *,
    everything: bool,
    more: Callable[[Sequence[R]], dict[str, str]] = lambda shown: {},
) -> None:
    """A stack's lines, the reasons for them, and the notes on the one that fits.

    columns: their headings. values: a row's, in their order; the second is coloured by whether it fits.
    more: what else is said of the rows that are shown, as ``about`` has it.
    """
    page.paragraph((stack.name, "code"), (stack.title, ""), hanging=2)
    rows = stack.releases
    shown = rows if everything else rows[: _enough(rows, stack.newest_that_fits)]
    page.table(
        [*map(Column, columns), Column("WHY NOT", wraps=True)],
        [_cells(values(row), row) for row in shown],
        indent=2,
        gap=2,
    )
    if left := len(rows) - len(shown):
        page.paragraph((f"and {left} older: --all", "quiet"), indent=2)
    for sentence, releases in (_reasons(shown) | more(shown)).items():
        page.paragraph((f"{releases}:", "code"), (sentence, ""), indent=2, hanging=4)
    best = next((row for row in shown if row.release == stack.newest_that_fits), None)
    for note in best.notes if best is not None else []:
        page.paragraph(
            (f"{best.release}:" if best else "", "code"), (note, ""), indent=2, hanging=4
        )


def nothing(page: Page, chosen: Refusing, *, hint: bool) -> None:
    """Why a command would install nothing, and what to do about it."""
    page.command(chosen.command)
    page.paragraph(("would install nothing:", "fail"), (f"{chosen.refused}.", ""), indent=2)
    for number, line in enumerate(chosen.hint.split("\n") if hint and chosen.hint else []):
        page.paragraph((line if number else f"hint: {line}", ""), indent=2, hanging=2)


def _cells(values: Sequence[str], row: AnyRow) -> list[Span]:
    release, fits, *others = values
    words = dict.fromkeys(_WORDS[refusal.kind] for refusal in row.refusals)
    told = [(text, "") for text in (*others, ", ".join(words))]
    return [(release, ""), (fits, _STYLES[row.fits]), *told]


def _enough(rows: Sequence[AnyRow], newest_that_fits: str) -> int:
    """How many lines are shown without --all."""
    names = [row.release for row in rows]
    return max(SHOWN, names.index(newest_that_fits) + 1 if newest_that_fits in names else 0)


def three(version: str) -> str:
    """ "11.8.0" of "11.8.0.062": the last part is a build's number."""
    return ".".join(version.split(".")[:3])


def _reasons(rows: Sequence[AnyRow]) -> dict[str, str]:
    """Each sentence once, with the releases that it is about, neighbours as a range."""
    return about(rows, [[refusal.sentence for refusal in row.refusals] for row in rows])


def about(rows: Sequence[AnyRow], said: Sequence[Sequence[str]]) -> dict[str, str]:
    """What is said of each row, each sentence once: {sentence: "23.03, 22.10 to 22.06"}."""
    places: dict[str, list[int]] = {}
    for place, sentences in enumerate(said):
        for sentence in sentences:
            places.setdefault(sentence, []).append(place)
    return {sentence: _names(rows, found) for sentence, found in places.items()}


def _names(rows: Sequence[AnyRow], places: list[int]) -> str:
    if len(places) == len(rows) > 1:
        return "all"
    ranges: list[list[int]] = []
    for place in places:
        if ranges and place == ranges[-1][-1] + 1:
            ranges[-1].append(place)
        else:
            ranges.append([place])
    return ", ".join(_range([rows[place].release for place in these]) for these in ranges)


def _range(names: list[str]) -> str:
    if len(names) < 3:
        return ", ".join(names)
    return f"{names[0]} to {names[-1]}"
