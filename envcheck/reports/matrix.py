"""What the matrices of wheels and of containers share: a release a line, and each reason once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ..install.fit.choice import Judged, Refusal, RefusalKind
from .page import Page

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

Columns = Sequence[tuple[str, int]]  # (heading, cells)


class AnyRow(Protocol):
    """A release's line."""

    @property
    def release(self) -> str: ...

    @property
    def fits(self) -> str: ...

    @property
    def refusals(self) -> list[Refusal]: ...


def fits(candidate: Judged) -> str:
    """ "yes", "no", "if-named", or "perhaps" where not everything is known of the machine."""
    if candidate.refusals:
        named = all(refusal.overridable for refusal in candidate.refusals)
        return "if-named" if named else "no"
    return "perhaps" if candidate.open else "yes"


def head(page: Page, columns: Columns) -> None:
    cells = [page.cell(title, cells) for title, cells in columns]
    page.line(("  " + "".join(cells) + "WHY NOT", "heading"))


def line(page: Page, columns: Columns, values: Sequence[str], row: AnyRow) -> None:
    """A release, the second value in the colour of whether it fits, and the reasons in a word each."""
    cells = [page.cell(text, cells) for text, (_, cells) in zip(values, columns, strict=True)]
    words = dict.fromkeys(_WORDS[refusal.kind] for refusal in row.refusals)
    left = page.columns - 2 - sum(cells for _, cells in columns)
    rest = "".join(cells[2:]) + page.cut(", ".join(words), left)
    page.line(("  " + cells[0], ""), (cells[1], _STYLES[row.fits]), (rest.rstrip(), ""))


def enough(rows: Sequence[AnyRow], newest_that_fits: str) -> int:
    """How many lines are shown without --all."""
    names = [row.release for row in rows]
    return max(SHOWN, names.index(newest_that_fits) + 1 if newest_that_fits in names else 0)


def three(version: str) -> str:
    """ "11.8.0" of "11.8.0.062": the last part is a build's number."""
    return ".".join(version.split(".")[:3])


def reasons(rows: Sequence[AnyRow]) -> dict[str, str]:
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
