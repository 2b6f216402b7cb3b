"""From what all pairs did to causes: the machine, the pair, the direction, the rail. Pure.

A machine is named first, with all of its pairs: what then still fails is a pair's. Rates are held against the
fleet's own, by medians and their spread, so that a busy fleet names no machine.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from statistics import median
from typing import TypeVar

import msgspec

from ...findings import shell
from ...findings.causes import Cause
from . import causes
from .model import NetworkFinding, NetworkRun, PeerFacts
from .pairs import Pair, of_machines, put_together

Key = TypeVar("Key")

_MOST = 0.6  # of a machine's pairs fail: it is the machine
_CLOCK = 5.0  # seconds
_SLOW, _PAIR_SLOW = 0.75, 0.4  # of the others' median
_SPREADS = 5.0  # robust standard deviations
_LEAST_SPREAD = 0.04  # of a rate's logarithm


class Judged:
    """What is wrong. findings: in the order of their weight. bad: machines that are named. cut: pairs.
    silent: {machine: why nothing is known of it}. unsteady: pairs that failed once."""

    def __init__(self, run: NetworkRun) -> None:
        first = msgspec.structs.replace(run, passes=run.passes[:1])
        suspects = Judged(first).bad if len(run.passes) > 1 else set()
        self.findings: list[NetworkFinding] = []
        self.bad: set[str] = set()
        self.cut: set[tuple[str, str]] = set()
        self.facts = {
            name: answer.facts
            for one in reversed(run.passes)
            for name, answer in one.answers.items()
        }
        self.pairs = put_together(run)
        self.silent = _silent(run)
        self._suspects = suspects
        self._open = self._confirmed()
        self._of_each = of_machines(self._open)
        self._hanging()
        self._failing()
        self._damaged()
        self._clocks()
        self._slow()
        self._rails()
        self._slow_pairs()
        self.unsteady = sum(
            pair.ok and not all(one.ok for one in pair.plain) for pair in self.pairs.values()
        )

    def _confirmed(self) -> dict[tuple[str, str], Pair]:
        """Pairs that count: of a suspect, which was tried again with few, what failed once and was not tried
        again counts only if another of its pairs failed twice."""
        twice = {
            name
            for key, pair in self.pairs.items()
            if pair.again and not pair.ok
            for name in self._suspects.intersection(key)
        }
        return {
            key: pair
            for key, pair in self.pairs.items()
            if pair.ok or pair.again or twice & set(key) or not self._suspects & set(key)
        }

    def put(self, cause: Cause, machines: Iterable[str], *commands: str, **params: object) -> None:
        found = cause.found(commands=commands, **params)  # type: ignore[arg-type]
        advice = found.remedy
        self.findings.append(
            NetworkFinding(
                cause=cause.key,
                level=cause.severity,
                headline=cause.headline,
                message=found.message,
                machines=list(machines),
                remedy=advice.text if advice else "",
                commands=list(advice.commands) if advice else [],
            )
        )

    def _drop(self, name: str) -> list[Pair]:
        """A machine is named: its pairs say no more of the others."""
        self.bad.add(name)
        return [self._open.pop(pair.machines) for pair in self._of(name)]

    def _of(self, name: str) -> list[Pair]:
        return [pair for pair in self._of_each.get(name, []) if pair.machines in self._open]

    def _hanging(self) -> None:
        for name in sorted(self.silent):
            pairs = self._drop(name)
            worked = [pair.attempts[0].round for pair in pairs if pair.ok]
            if worked:
                why = self.silent.pop(name)
                self.put(causes.HANGS, [name], machine=name, round=max(worked) + 1, why=why)

    def _failing(self) -> None:
        while failed := self._failures():
            name, share = max(
                ((name, count / len(self._of(name))) for name, count in failed.items()),
                key=lambda one: (one[1], failed[one[0]], self._is_misnamed(one[0]), one[0]),
            )
            if share < _MOST or (failed[name] < 2 and not self._is_misnamed(name)):
                break
            self._name(name)
        for key, pair in [one for one in self._open.items() if not one[1].ok]:
            self._name_pair(key, pair)

    def _failures(self) -> Counter[str]:
        return Counter(n for key, pair in self._open.items() if not pair.ok for n in key)

    def _is_misnamed(self, name: str) -> bool:
        return self._facts(name).is_misnamed

    def _facts(self, name: str) -> PeerFacts:
        return self.facts.get(name, PeerFacts())

    def _name(self, name: str) -> None:
        """All its pairs fail: why."""
        pairs, facts = self._drop(name), self._facts(name)
        failed = [pair for pair in pairs if not pair.ok]
        steps = Counter(pair.last.step for pair in failed)
        step = steps.most_common(1)[0][0]
        why = Counter(pair.last.why for pair in failed).most_common(1)[0][0]
        common = {"machine": name, "failed": len(failed), "of": len(pairs), "why": why}
        tries = [pair.attempts[0] for pair in pairs]
        worked = [one.round for one in tries if one.ok]
        last = max(worked, default=-1)
        stuck = [found for pair in failed if (found := pair.last.stuck())]
        if step == "group" and facts.is_misnamed:
            named = [one for pair in failed for one in pair.attempts if one.named]
            proof = f" With GLOO_SOCKET_IFNAME={facts.towards} they pass."
            proof = proof if named and all(one.ok for one in named) else ""
            words = {"host": facts.host, "resolves": facts.resolves, "by_name": facts.offers}
            address = facts.address
            command = f"getent hosts {shell.word(facts.host)}"
            towards = facts.towards
            self.put(
                causes.MISNAMED, [name], command,
                **common, **words, address=address, towards=towards, proof=proof,
            )  # fmt: skip
        elif len(stuck) * 2 > len(failed):
            self._name_black_hole(name, stuck, common)
        elif len(worked) > 1 and all(one.ok or one.round > last for one in tries):
            self.put(causes.STOPS, [name], round=last + 1, **common)
        elif step == "connect":
            self.put(causes.CUT_OFF, [name], address=facts.reached_at or name, **common)
        else:
            self.put(causes.NO_GROUP, [name], step=step, **common)

    def _name_black_hole(
        self, name: str, stuck: list[tuple[str, int]], common: Mapping[str, object]
    ) -> None:
        facts = self._facts(name)
        senders = {sender == name for sender, _size in stuck}
        direction = {True: "from", False: "to"}[senders == {True}]
        direction = "to and from" if len(senders) == 2 else direction
        size = min(size for _sender, size in stuck) >> 10
        other = next((n for n in sorted(self.facts) if n not in self.bad), name)
        target = shell.word(self._facts(other).reached_at or other)
        probe = f"ping -M do -s {max(facts.mtu - 28, 0)} {target}"
        towards = facts.towards or "there"
        self.put(
            causes.BLACK_HOLE, [name], f"ip link show {shell.word(towards)}", probe,
            **common, direction=direction, size=size, towards=towards, mtu=facts.mtu,
        )  # fmt: skip

    def _name_pair(self, key: tuple[str, str], pair: Pair) -> None:
        self.cut.add(key)
        one, other = key
        self.put(
            causes.PAIR_CUT, key, machine=one, other=other, step=pair.last.step, why=pair.last.why,
            address=self._facts(one).reached_at or one,
            other_address=self._facts(other).reached_at or other,
        )  # fmt: skip
        del self._open[key]

    def _damaged(self) -> None:
        for key, pair in self.pairs.items():
            if pair.wrong:
                self.put(causes.DAMAGED, key, machine=key[0], other=key[1], wrong=pair.wrong)
                self.cut.add(key)

    def _clocks(self) -> None:
        """Of each machine the median of what the others say; first the one of which most is known. What it
        says of others then counts no more."""
        wrong: set[str] = set()
        while True:
            ahead = self._ahead(wrong)
            off = [
                (len(seen), abs(median(seen)), name)
                for name, seen in ahead.items()
                if abs(median(seen)) > _CLOCK
            ]
            if not off or len(ahead) < 3:
                return
            name = max(off)[2]
            wrong.add(name)
            offset = median(ahead[name])
            side = "ahead of" if offset > 0 else "behind"
            seconds = f"{abs(offset):.0f}"
            self.put(causes.CLOCK, [name], "timedatectl", machine=name, seconds=seconds, side=side)

    def _ahead(self, wrong: set[str]) -> dict[str, list[float]]:
        """{machine: seconds that its clock is ahead, by each of the others}, without those that are wrong."""
        found: dict[str, list[float]] = {}
        for pair in self.pairs.values():
            if wrong.intersection(pair.machines):
                continue
            for attempt in pair.attempts:
                for name, end in attempt.ends.items():
                    if end.offset is not None and end.rtt is not None and end.rtt < _CLOCK / 2:
                        found.setdefault(pair.other(name), []).append(end.offset)
                        found.setdefault(name, []).append(-end.offset)
        return found

    def _slow(self) -> None:
        """The slowest first, and without its pairs the next."""
        while True:
            rates = dict(zip(("sends", "receives"), self.rates(), strict=True))
            slow = [(of[name], name) for of in rates.values() for name in _outliers(of, _SLOW)]
            if not slow:
                return
            rate, name = min(slow)
            found = [verb for verb, of in rates.items() if name in _outliers(of, _SLOW)]
            usual = median(rates[found[0]].values())
            self._drop(name)
            facts = self._facts(name)
            link = f" Its link claims {facts.link_mbit} Mbit/s." if facts.link_mbit else ""
            self.put(
                causes.SLOW, [name], f"ethtool {shell.word(facts.towards or 'eth0')}", machine=name,
                verb=" and ".join(found), rate=rate / 1e6, usual=usual / 1e6, link=link,
            )  # fmt: skip

    def rates(self) -> tuple[dict[str, float], dict[str, float]]:
        """({machine: what it sends}, {machine: what it receives}), bytes a second, medians of its pairs; of a
        suspect of those that were tried again."""
        sends: dict[str, float] = {}
        receives: dict[str, float] = {}
        for name in {name for key in self._open for name in key}:
            pairs = self._of(name)
            if name in self._suspects:
                pairs = [pair for pair in pairs if pair.again] or pairs
            for place, found in ((0, sends), (1, receives)):
                ends = [(name, pair.other(name))[place] for pair in pairs]
                rates = [pair.sent(end) for pair, end in zip(pairs, ends, strict=True)]
                known = [rate for rate in rates if rate is not None]
                if known:
                    found[name] = median(known)
        return sends, receives

    def _rails(self) -> None:
        """A GPU's adapter is slow where the pairs by that GPU are, and those by the others are not."""
        for name in sorted({name for key in self._open for name in key}):
            by_gpu: dict[int, list[float]] = {}
            for pair in self._of(name):
                rates = [rate for end in pair.machines if (rate := pair.sent(end)) is not None]
                if pair.gpu is not None and rates:
                    by_gpu.setdefault(pair.gpu, []).append(min(rates))
            if len(by_gpu) < 3:
                continue
            of_gpu = {str(gpu): median(rates) for gpu, rates in by_gpu.items()}
            for gpu in _outliers(of_gpu, _PAIR_SLOW):
                usual = median(rate for one, rate in of_gpu.items() if one != gpu)
                rate = of_gpu[gpu] / 1e6
                self.put(causes.RAIL, [name], machine=name, gpu=gpu, rate=rate, usual=usual / 1e6)

    def _slow_pairs(self) -> None:
        """Directions of pairs that are slower than both their machines are otherwise."""
        named = {n for one in self.findings if one.cause == causes.RAIL.key for n in one.machines}
        sends, receives = self.rates()
        rates = {
            (end, pair.other(end)): rate / min(sends[end], receives[pair.other(end)])
            for key, pair in self._open.items()
            if not named & set(key)
            for end in pair.machines
            if (rate := pair.sent(end)) is not None and end in sends and pair.other(end) in receives
        }
        if len(rates) < 6:
            return
        for one, other in _outliers(rates, _PAIR_SLOW):
            key = (min(one, other), max(one, other))
            usual = min(sends[one], receives[other]) / 1e6
            self.cut.add(key)
            self.put(
                causes.PAIR_SLOW, [one, other], machine=one, other=other,
                rate=rates[one, other] * usual, usual=usual,
            )  # fmt: skip


def _silent(run: NetworkRun) -> dict[str, str]:
    """Machines that reported no pair in the first pass, and why."""
    found = {}
    first = run.passes[0]
    for member in first.members:
        answer = first.answers.get(member.name)
        if answer is None:
            found[member.name] = member.reason
        elif not answer.pairs:
            found[member.name] = answer.reason or "no other machine was there"
    return found


def _outliers(rates: Mapping[Key, float], share: float) -> list[Key]:
    """Those far below the others: under that share of the median, and beyond the spread."""
    logs = {key: math.log(rate) for key, rate in rates.items() if rate > 0}
    if len(logs) < 3:
        return []
    middle = median(logs.values())
    spread = max(_LEAST_SPREAD, 1.4826 * median(abs(one - middle) for one in logs.values()))
    limit = min(math.log(share), -_SPREADS * spread)
    return [key for key, one in logs.items() if one - middle < limit]
