"""Faults that the machines of one place share: of a rack, a switch, an image. Pure.

A fault is the place's where at least 3 machines and half of the place have it, and chance would put so many
there in fewer than 1 of 1,000 fleets (a hypergeometric tail). Of nested places the smallest is reported.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import msgspec

from ..reports.plain import together
from . import hosts
from .model import JudgedMachine, RateOutlier, SharedFault

FEWEST = 3
SHARE = 0.5
CHANCE = 0.001

Place = tuple[str, str]
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


class _Fault(msgspec.Struct):
    """having: the machines that have it; among: all that could."""

    code: str
    words: str
    about: Literal["problem", "silence", "slow"]
    having: set[str]
    among: set[str] = set()


def shared_faults(
    machines: Sequence[JudgedMachine], slow: Iterable[RateOutlier]
) -> list[SharedFault]:
    found = together((place, one.name) for one in machines for place in one.groups)
    places = {place: {*names} for place, names in found.items() if len({*names}) >= FEWEST}
    faults = [fault for fault in _faults(machines, slow) if len(fault.having) >= FEWEST]
    chance = CHANCE / max(1, len(places) * len(faults))
    shared = [one for fault in faults for one in _of(fault, places, chance)]
    return sorted(shared, key=lambda one: (-len(one.machines), one.kind, one.name, one.code))


def _faults(machines: Sequence[JudgedMachine], slow: Iterable[RateOutlier]) -> list[_Fault]:
    faults: dict[tuple[str, str], _Fault] = {}
    product_of: dict[str, str] = {}

    def add(fault: _Fault, key: str, name: str) -> None:
        faults.setdefault((fault.about, key), fault).having.add(name)

    for machine in machines:
        if machine.answer == "answered" or machine.problems:
            product_of[machine.name] = machine.product
        if machine.answer not in ("answered", "not-asked"):
            words = _SILENT.get(machine.answer, "did not answer")
            add(_Fault("", words, "silence", set()), machine.answer, machine.name)
        for one in machine.problems:
            add(_Fault(one.code, one.headline, "problem", set()), one.kind, machine.name)
    for rate in slow:
        kind = rate.key.partition(".")[0]
        words = f"slow: {_KINDS.get(kind, kind)}"
        add(_Fault("", words, "slow", set()), kind, rate.machine)
    for fault in faults.values():
        if fault.about == "silence":
            fault.among = {machine.name for machine in machines}
        else:
            products = {product_of[name] for name in fault.having}
            fault.among = {name for name, product in product_of.items() if product in products}
    return list(faults.values())


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
