"""What became of each pair of machines: the reports of both its ends and of both passes, put together."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ...reports.plain import together
from .model import NetworkRun, PairReport, Pass

SMALLEST = 64 << 10  # bytes, from which on a message's rate is the path's
_STEPS = ("", "connect", "group", "small", "sum", "send", "receive")


class Attempt(msgspec.Struct, kw_only=True):
    """A pair, once. ends: the reports by the machine that gave them."""

    ends: dict[str, PairReport]
    again: bool = False
    named: bool = False

    @property
    def ok(self) -> bool:
        return all(end.outcome == "ok" for end in self.ends.values())

    @property
    def step(self) -> str:
        """The last step that one of them had begun, without its size."""
        return max((end.step.partition(" ")[0] for end in self.ends.values()), key=_rank)

    @property
    def why(self) -> str:
        """The reason of the end that says more than that its time was over."""
        reasons = [end.reason for end in self.ends.values() if end.outcome != "timeout"]
        return next(filter(None, reasons), "no answer in its time")

    @property
    def round(self) -> int:
        return next(iter(self.ends.values())).round

    def stuck(self) -> tuple[str, int] | None:
        """Which machine's message hangs, and its bytes, where large ones do."""
        for name, end in self.ends.items():
            word, _, size = end.step.partition(" ")
            if word in ("send", "receive") and size.isdigit():
                return (name if word == "send" else end.other), int(size)
        return None


def _rank(step: str) -> int:
    return _STEPS.index(step) if step in _STEPS else 0


class Pair(msgspec.Struct, kw_only=True):
    """Two machines and what they tried. One attempt that worked counts; of rates the best of all."""

    machines: tuple[str, str]
    attempts: list[Attempt]

    @property
    def last(self) -> Attempt:
        return self.plain[-1] if self.plain else self.attempts[-1]

    @property
    def plain(self) -> list[Attempt]:
        """As jobs would do it: by the machines' names."""
        return [one for one in self.attempts if not one.named]

    @property
    def ok(self) -> bool:
        return any(one.ok for one in self.plain or self.attempts)

    @property
    def again(self) -> bool:
        return any(one.again for one in self.attempts)

    @property
    def wrong(self) -> int:
        return sum(end.wrong for one in self.attempts for end in one.ends.values())

    def other(self, name: str) -> str:
        return self.machines[self.machines[0] == name]

    def largest(self, sender: str) -> tuple[int, float] | None:
        """(bytes, best seconds) of the largest messages that one sent the other."""
        times = [
            (size, -seconds)
            for one in self.attempts
            if sender in one.ends
            for size, seconds in one.ends[sender].sent.items()
            if size >= SMALLEST and seconds > 0
        ]
        return (max(times)[0], -max(times)[1]) if times else None

    def sent(self, sender: str) -> float | None:
        """Bytes a second from one to the other, of the largest messages that they came to."""
        found = self.largest(sender)
        return found and found[0] / found[1]

    @property
    def rtt(self) -> float:
        """Seconds of the smallest message and its answer; 0 where that is not known."""
        seen = [end.rtt for one in self.attempts for end in one.ends.values() if end.rtt]
        return min(seen, default=0.0)

    def reduced(self, wanted: int) -> float | None:
        """Bytes a second of an all-reduce of the two, of messages of about that size."""
        rates = [
            size / seconds
            for one in self.attempts
            for end in one.ends.values()
            for size, seconds in end.reduced.items()
            if seconds > 0 and wanted / 2 < size < wanted * 2
        ]
        return max(rates, default=None)

    @property
    def gpu(self) -> int | None:
        return next(iter(self.last.ends.values())).gpu


def put_together(run: NetworkRun) -> dict[tuple[str, str], Pair]:
    """All pairs that were tried, by their machines' names in order."""
    known = {member.name for one in run.passes for member in one.members}
    found: dict[tuple[str, str], Pair] = {}
    for number, one in enumerate(run.passes):
        for pair, attempt in _attempts(one, again=number > 0, known=known):
            kept = found.setdefault(pair, Pair(machines=pair, attempts=[]))
            kept.attempts.append(attempt)
    return found


def _attempts(
    one: Pass, *, again: bool, known: set[str]
) -> Iterator[tuple[tuple[str, str], Attempt]]:
    found: dict[tuple[tuple[str, str], bool], Attempt] = {}
    for name, answer in one.answers.items():
        for report in answer.pairs:
            if report.other in known and report.other != name:
                pair = (min(name, report.other), max(name, report.other))
                attempt = Attempt(ends={}, again=again, named=report.named)
                attempt = found.setdefault((pair, report.named), attempt)
                attempt.ends[name] = report
    return ((pair, attempt) for (pair, _named), attempt in found.items())


def of_machines(pairs: dict[tuple[str, str], Pair]) -> dict[str, list[Pair]]:
    """The pairs of each machine."""
    return together((name, pair) for pair in pairs.values() for name in pair.machines)


def rates_of(name: str, pairs: list[Pair]) -> tuple[list[float], list[float]]:
    """What a machine sends and receives in its pairs, bytes a second."""
    ways = [pair.sent(name) for pair in pairs], [pair.sent(pair.other(name)) for pair in pairs]
    sends, receives = ([rate for rate in way if rate is not None] for way in ways)
    return sends, receives
