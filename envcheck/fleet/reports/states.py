"""The states of machines as the page shows them, and what there is to say of a machine in a line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ...reports.headlines import phrase
from ..model import FleetResult, JudgedMachine


class State(NamedTuple):
    """letter: its class in fleet.css, which has the shape."""

    letter: str
    word: str


# The worst first.
STATES = {
    "problems": State("f", "problems"),
    "could-not-look": State("d", "could not look"),
    "unanswered": State("n", "no answer"),
    "warned": State("w", "well, with warnings"),
    "healthy": State("p", "well"),
}
_ORDER = list(STATES)


def state_of(machine: JudgedMachine) -> str:
    """A key of STATES."""
    warned = machine.state == "healthy" and machine.problems
    return "warned" if warned else machine.state


def severity(machine: JudgedMachine) -> int:
    """For sorting: the worst first."""
    return _ORDER.index(state_of(machine))


def summary(machine: JudgedMachine, outlying: Sequence[str] = ()) -> str:
    """What there is to say of a machine; "" where it is healthy. outlying: in what it is an outlier."""
    if machine.state == "unanswered":
        return machine.reason or machine.answer
    parts = [machine.reason or machine.verdict] if machine.state == "could-not-look" else []
    problems = sorted(machine.problems, key=lambda problem: problem.level != "fail")
    parts += dict.fromkeys(f"{one.code} {phrase(one.headline, [], {})}" for one in problems)
    parts += [f"outlier: {', '.join(outlying)}"] if outlying else []
    return "; ".join(parts)


def outliers(result: FleetResult) -> dict[str, list[str]]:
    """By a machine's name, in what it is an outlier: "VBIOS", "FP16 at L0 9.3 % worse".

    Without what a problem of the machine explains.
    """
    found: dict[str, dict[str, None]] = {}
    for attribute in result.attribute_outliers:
        if not attribute.because:
            found.setdefault(attribute.machine, {})[attribute.words] = None
    for rate in result.rate_outliers:
        if not rate.because:
            words = f"{rate.words} {100 * rate.below:.1f} % worse"
            found.setdefault(rate.machine, {})[words] = None
    return {machine: list(words) for machine, words in found.items()}
