"""Faults that the machines of one place share: of a rack, a switch, an image. Pure.

A fault (a problem, silence, slow rates) is the place's where at least 3 machines and half of the place have
it, and chance would not put so many of those who have it into any of the places: a hypergeometric tail, times
the number of all places and faults, below one in a thousand. What is most unlikely comes first; its machines
are then taken as explained, and what is left is looked at again, so that of a rack, its row and its room only
the tightest is told. Machines are counted among those of the products that have the fault.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import msgspec

from . import hosts
from .model import JudgedMachine, RateOutlier, SharedFault

FEWEST = 3
SHARE = 0.5
CHANCE = 0.001

Place = tuple[str, str]
# Of places with the very same machines, these words are left to the end.
_LAST = ("operating system", "kernel", "driver", "image")


class _Fault(msgspec.Struct):
    code: str
    words: str
    about: Literal["problem", "silence", "slow"]
    having: set[str]
    among: set[str]  # all that could have it


def shared_faults(
    machines: Sequence[JudgedMachine], slow: Iterable[RateOutlier]
) -> list[SharedFault]:
    places: dict[Place, set[str]] = {}
    for machine in machines:
        for place in machine.groups:
            places.setdefault((place[0], place[1]), set()).add(machine.name)
    places = {place: names for place, names in places.items() if len(names) >= FEWEST}
    faults = [fault for fault in _faults(machines, slow) if len(fault.having) >= FEWEST]
    tests = max(1, len(places) * len(faults))
    found = [one for fault in faults for one in _of(fault, places, CHANCE / tests)]
    return sorted(found, key=lambda one: (-len(one.machines), one.kind, one.name, one.code))


def _faults(machines: Sequence[JudgedMachine], slow: Iterable[RateOutlier]) -> Iterator[_Fault]:
    asked = {machine.name for machine in machines}
    answered = {machine.name: machine for machine in machines if machine.state != "unanswered"}
    by_product: dict[str, set[str]] = {}
    for machine in answered.values():
        by_product.setdefault(machine.product, set()).add(machine.name)

    def fault(code: str, words: str, about: Literal["problem", "slow"], having: set[str]) -> _Fault:
        products = {answered[name].product for name in having}
        return _Fault(
            code, words, about, having, set().union(*map(by_product.__getitem__, products))
        )

    problems: dict[str, tuple[str, str, set[str]]] = {}
    for machine in answered.values():
        for one in machine.problems:
            problems.setdefault(one.kind, (one.code, one.headline, set()))[2].add(machine.name)
    for code, words, having in problems.values():
        yield fault(code, words, "problem", having)
    silent: dict[str, set[str]] = {}
    for machine in machines:
        if machine.state == "unanswered" and machine.answer != "not-asked":
            silent.setdefault(machine.answer, set()).add(machine.name)
    for outcome, having in silent.items():
        yield _Fault("", _SILENT.get(outcome, "did not answer"), "silence", having, asked)
    kinds: dict[str, set[str]] = {}
    for rate in slow:
        kinds.setdefault(rate.key.partition(".")[0], set()).add(rate.machine)
    for kind, having in kinds.items():
        yield fault("", f"slow: {_KINDS.get(kind, kind)}", "slow", having)


_SILENT = {
    "unreachable": "could not be reached",
    "timed-out": "did not answer in time",
    "failed": "failed to look",
    "unreadable": "gave no Snapshot",
}
_KINDS = {
    "kernels": "micro-kernels",
    "memory": "memory",
    "links": "links to the host",
    "peers": "copies between GPUs",
    "nccl": "NCCL",
    "bench": "training",
    "soak": "products over minutes",
}


def _of(fault: _Fault, places: dict[Place, set[str]], chance: float) -> Iterator[SharedFault]:
    left = set(fault.having)
    while len(left) >= FEWEST:
        # what is explained counts nowhere any more
        among = fault.among - (fault.having - left)
        best: tuple[float, int, bool, Place] | None = None
        for place, names in places.items():
            inside = names & among
            hit = len(inside & left)
            if hit < FEWEST or hit < SHARE * len(inside):
                continue
            unlikely = tail(hit, len(inside), len(left), len(among))
            if unlikely > math.log(chance):
                continue
            rank = (round(unlikely, 9), len(inside), place[0] in _LAST, place)
            best = rank if best is None else min(best, rank)
        if best is None:
            return
        kind, name = best[3]
        inside = places[kind, name] & among
        these = inside & left
        yield SharedFault(
            kind=kind,
            name=name,
            code=fault.code,
            words=fault.words,
            machines=hosts.natural(these),
            hosts=hosts.folded(these),
            of=len(inside),
            about=fault.about,
            elsewhere=len(fault.having) - len(these),
            also=sorted(
                place
                for place, names in places.items()
                if place != (kind, name) and names & among == inside
            ),
        )
        left -= these


def tail(hit: int, size: int, having: int, among: int) -> float:
    """The logarithm of the chance that of ``size`` out of ``among``, at least ``hit`` are of ``having``."""
    whole = _choose(among, size)
    terms = [
        _choose(having, k) + _choose(among - having, size - k) - whole
        for k in range(hit, min(size, having) + 1)
        if size - k <= among - having
    ]
    most = max(terms, default=-math.inf)
    if most == -math.inf:
        return 0.0
    return min(0.0, most + math.log(sum(math.exp(term - most) for term in terms)))


def _choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
