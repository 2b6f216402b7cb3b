"""How a machine's state is told: by word, shape, sign and colour; and what is said of it in a line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import quote

from ....reports.headlines import phrase
from ....reports.plots.svg import text
from ...model import JudgedMachine


class Look(NamedTuple):
    """letter: its class in fleet.css, which has the shape. kind: html_page's name for the same."""

    letter: str
    kind: str
    word: str
    words: str  # of several


# The worst first.
LOOKS = {
    "problems": Look("f", "fail", "problems", "with problems"),
    "could-not-look": Look("d", "could-not-run", "could not look", "could not be looked at"),
    "unanswered": Look("n", "skipped", "no answer", "did not answer"),
    "warned": Look("w", "warn", "well, with warnings", "well, with warnings"),
    "healthy": Look("p", "pass", "well", "well"),
}
_ORDER = {name: place for place, name in enumerate(LOOKS)}


def state_of(machine: JudgedMachine) -> str:
    """A name in LOOKS."""
    if machine.state == "healthy" and machine.problems:
        return "warned"
    return machine.state


def look(machine: JudgedMachine) -> Look:
    return LOOKS[state_of(machine)]


def severity(machine: JudgedMachine) -> int:
    """For sorting: the worst first."""
    return _ORDER[state_of(machine)]


def said(machine: JudgedMachine, odd: Sequence[str] = ()) -> str:
    """What there is to say of a machine, in a line; "" where all is well."""
    if machine.state == "unanswered":
        return machine.reason or machine.answer
    told = []
    for problem in sorted(machine.problems, key=lambda problem: problem.level != "fail"):
        words = f"{problem.code} {phrase(problem.headline, [], {})}"
        if words not in told:
            told.append(words)
    if machine.state == "could-not-look":
        told.insert(0, machine.reason or machine.verdict)
    told += [f"odd one out: {', '.join(odd)}"] if odd else []
    return "; ".join(told)


def shortened(words: str, most: int) -> str:
    """At most so many characters."""
    return words if len(words) <= most else words[: most - 1].rstrip() + "…"


def href(page: str) -> str:
    """A file beside the page, as a link's address: text for an attribute."""
    return quote(page, safe="")


def link(machine: JudgedMachine | None, name: str) -> str:
    """A machine's name, which leads to its page where there is one."""
    if machine is None or not machine.page:
        return text(name)
    return f'<a href="{href(machine.page)}">{text(name)}</a>'


def machines(count: int) -> str:
    return f"{count:,} machine" + ("" if count == 1 else "s")
