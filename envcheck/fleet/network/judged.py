"""What is known of a network run while it is judged: pairs that still say something, and what was named."""

from __future__ import annotations

from collections.abc import Iterable

from ... import safe_text
from ...findings.remedy import Remedy
from ...findings.states import degrades
from .causes import CAUSE, CODE
from .model import NetworkFinding, NetworkRun, PeerFacts
from .pairs import Pair, of_machines, put_together


class Judged:
    """findings: in the order of their weight. bad: machines that are named. cut: pairs. silent: {machine: why
    nothing is known of it}. open: pairs of machines that are not named. suspects: machines that were tried
    again. is_last: both passes are in. links: {why their links' rates were not judged: machines}."""

    def __init__(self, run: NetworkRun, silent: dict[str, str], suspects: set[str]) -> None:
        self.silent, self.suspects = silent, suspects
        self.is_last = len(run.passes) > 1
        self.findings: list[NetworkFinding] = []
        self.bad: set[str] = set()
        self.cut: set[tuple[str, str]] = set()
        self.links: dict[str, list[str]] = {}
        self.facts = {
            name: answer.facts
            for one in reversed(run.passes)
            for name, answer in one.answers.items()
        }
        self.pairs = put_together(run)
        self.open = self._confirmed()
        self._of_each = of_machines(self.open)

    def _confirmed(self) -> dict[tuple[str, str], Pair]:
        """Pairs that count: of a suspect, which was tried again with few, what failed once and was not tried
        again counts only if another of its pairs failed twice."""
        twice = {
            name
            for key, pair in self.pairs.items()
            if pair.again and not pair.ok
            for name in self.suspects.intersection(key)
        }
        return {
            key: pair
            for key, pair in self.pairs.items()
            if pair.ok or pair.again or twice & set(key) or not self.suspects & set(key)
        }

    @property
    def unsteady(self) -> int:
        """Pairs that failed once."""
        passed = [pair for pair in self.pairs.values() if pair.ok]
        return sum(not all(one.ok for one in pair.plain) for pair in passed)

    def put(self, key: str, machines: Iterable[str], *commands: str, **params: object) -> None:
        cause = CAUSE[key]
        found = cause.found(commands=commands, **params)  # type: ignore[arg-type]
        advice = found.remedy or Remedy("", [])
        self.findings.append(
            NetworkFinding(
                cause=key,
                level=cause.severity,
                degrades=degrades(CODE, key),
                headline=cause.headline,
                message=safe_text.one_line(found.message),
                machines=list(machines),
                remedy=safe_text.one_line(advice.text),
                commands=[safe_text.one_line(command) for command in advice.commands],
            )
        )

    def drop(self, name: str) -> list[Pair]:
        """A machine is named: its pairs say no more of the others."""
        self.bad.add(name)
        return [self.open.pop(pair.machines) for pair in self.of(name)]

    def of(self, name: str) -> list[Pair]:
        return [pair for pair in self._of_each.get(name, []) if pair.machines in self.open]

    def facts_of(self, name: str) -> PeerFacts:
        return self.facts.get(name, PeerFacts())
