"""Faults that the machines of one place share: of a rack, a switch, an image. Pure.

A fault is the place's where at least 3 machines and half of the place have it, and chance would put so many
there in fewer than 1 of 1,000 fleets (a hypergeometric tail). Of nested places the smallest is reported.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from ..reports.plain import together
from . import hosts
from .model import JudgedMachine, RateOutlier, SharedFault

FEWEST = 3
SHARE = 0.5
CHANCE = 0.001

Place = tuple[str, str]
_About = Literal["problem", "silence", "slow"]
# Of places with the very same machines, these come last.
_LAST = ("operating system", "kernel", "driver", "image")
_SILENT = {
    "unreachable": "could not be reached",
    "timed-out": "did not answer in time",
    "failed": "failed to look",
    "unreadable": "gave no Snapshot",
}
_KINDS = {
    "kernels": "micro-kernels",
    "links": "links to the host",
    "peers": "copies between GPUs",
    "nccl": "NCCL",
    "bench": "training",
    "soak": "products over minutes",
}


class _Fault(NamedTuple):
    """having: the machines that have it; among: all that could."""

    code: str
    words: str
    about: _About
    having: set[str]
    among: set[str]


def shared_faults(
    machines: Sequence[JudgedMachine], slow: Iterable[RateOutlier]
) -> list[SharedFault]:
    found = together((place, one.name) for one in machines for place in one.groups)
    places = {place: {*names} for place, names in found.items() if len({*names}) >= FEWEST}
    faults = [fault for fault in _faults(machines, slow) if len(fault.having) >= FEWEST]
    chance = CHANCE / max(1, len(places) * len(faults))
    shared = [one for fault in faults for one in _of(fault, places, chance)]
    return sorted(shared, key=lambda one: (-len(one.machines), one.kind, one.name, one.code))


def _faults(machines: Sequence[JudgedMachine], slow: Iterable[RateOutlier]) -> Iterator[_Fault]:
    judged = (one for one in machines if one.answer == "answered" or one.problems)
    product_of = {one.name: one.product for one in judged}
    for (about, _), found in together(_of_each(machines, slow)).items():
        code, words, _ = found[0]
        having = {name for _, _, name in found}
        among = {one.name for one in machines}
        if about != "silence":
            products = {product_of[name] for name in having}
            among = {name for name, product in product_of.items() if product in products}
        yield _Fault(code, words, about, having, among)


def _of_each(
    machines: Sequence[JudgedMachine], slow: Iterable[RateOutlier]
) -> Iterator[tuple[tuple[_About, str], tuple[str, str, str]]]:
    """What is the same fault; its code, its words, and a machine that has it."""
    for one in machines:
        if one.answer in _SILENT:
            yield ("silence", one.answer), ("", _SILENT[one.answer], one.name)
        for problem in one.problems:
            yield ("problem", problem.kind), (problem.code, problem.headline, one.name)
    for rate in slow:
        kind = rate.key.partition(".")[0]
        yield ("slow", kind), ("", f"slow: {_KINDS.get(kind, kind)}", rate.machine)


def _of(fault: _Fault, places: dict[Place, set[str]], chance: float) -> Iterator[SharedFault]:
    open_ = set(fault.having)
    while len(open_) >= FEWEST:
        # what is explained counts nowhere any more
        among = fault.among - (fault.having - open_)
        ranks = []
        for place, names in places.items():
            inside = names & among
            hit = len(inside & open_)
            if hit < FEWEST or hit < SHARE * len(inside):
                continue
            unlikely = tail(hit, len(inside), len(open_), len(among))
            if unlikely <= math.log(chance):
                ranks.append((round(unlikely, 9), len(inside), place[0] in _LAST, place))
        if not ranks:
            return
        kind, name = min(ranks)[3]
        inside = places[kind, name] & among
        hit_names = inside & open_
        yield SharedFault(
            kind=kind,
            name=name,
            code=fault.code,
            words=fault.words,
            machines=hosts.natural(hit_names),
            hosts=hosts.folded(hit_names),
            of=len(inside),
            about=fault.about,
            elsewhere=len(fault.having) - len(hit_names),
            also=sorted(
                place
                for place, names in places.items()
                if place != (kind, name) and names & among == inside
            ),
        )
        open_ -= hit_names


def tail(hit: int, size: int, having: int, among: int) -> float:
    """The logarithm of the chance that of ``size`` out of ``among``, at least ``hit`` are of ``having``."""
    ways = sum(
        math.comb(having, k) * math.comb(among - having, size - k)
        for k in range(hit, min(size, having) + 1)
    )
    return math.log(ways) - math.log(math.comb(among, size)) if ways else 0.0
