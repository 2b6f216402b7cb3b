"""What is slow: a machine, a GPU's rail, a pair. Held against the fleet's own rates, by medians and their
spread, so that a busy fleet names no machine. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import median
from typing import TypeVar

from ...findings import shell
from .judged import Judged
from .pairs import rates_of

Key = TypeVar("Key")

_SLOW, _PAIR_SLOW = 0.75, 0.4  # of the others' median
_SPREADS = 5.0  # robust standard deviations
_LEAST_SPREAD = 0.04  # of a rate's logarithm


def slow_machines(judged: Judged) -> None:
    """The slowest first, and without its pairs the next."""
    while True:
        rates = dict(zip(("sends", "receives"), medians(judged), strict=True))
        slow = [(of[name], name) for of in rates.values() for name in _outliers(of, _SLOW)]
        if judged.is_last:  # of others nothing was measured a second time
            slow = [one for one in slow if one[1] in judged.suspects]
        if not slow:
            return
        rate, name = min(slow)
        verbs = [verb for verb, of in rates.items() if name in _outliers(of, _SLOW)]
        usual = median(rates[verbs[0]].values())
        judged.drop(name)
        facts = judged.facts_of(name)
        link = f" Its link claims {facts.link_mbit} Mbit/s." if facts.claimed else ""
        judged.put(
            "machine-slow", [name], f"ethtool {shell.word(facts.towards or 'eth0')}", machine=name,
            verb=" and ".join(verbs), rate=rate / 1e6, usual=usual / 1e6, link=link,
        )  # fmt: skip


def medians(judged: Judged) -> tuple[dict[str, float], dict[str, float]]:
    """({machine: what it sends}, {machine: what it receives}), bytes a second, medians of its pairs; of a
    suspect of those that were tried again."""
    sends: dict[str, float] = {}
    receives: dict[str, float] = {}
    for name in {name for key in judged.open for name in key}:
        pairs = judged.of(name)
        if name in judged.suspects:
            pairs = [pair for pair in pairs if pair.again] or pairs
        for found, rates in zip((sends, receives), rates_of(name, pairs), strict=True):
            if rates:
                found[name] = median(rates)
    return sends, receives


def slow_rails(judged: Judged) -> None:
    """A GPU's adapter is slow where the pairs by that GPU are, and those by the others are not."""
    for name in sorted({name for key in judged.open for name in key}):
        by_gpu: dict[int, list[float]] = {}
        for pair in judged.of(name):
            rates = [rate for end in pair.machines if (rate := pair.sent(end)) is not None]
            if pair.gpu is not None and rates:
                by_gpu.setdefault(pair.gpu, []).append(min(rates))
        if len(by_gpu) < 3:
            continue
        of_gpu = {str(gpu): median(rates) for gpu, rates in by_gpu.items()}
        for gpu in _outliers(of_gpu, _PAIR_SLOW):
            usual = median(rate for one, rate in of_gpu.items() if one != gpu)
            rate = of_gpu[gpu] / 1e6
            judged.put("rail-slow", [name], machine=name, gpu=gpu, rate=rate, usual=usual / 1e6)


def slow_pairs(judged: Judged) -> None:
    """Directions of pairs that are slower than both their machines are otherwise."""
    named = {n for one in judged.findings if one.cause == "rail-slow" for n in one.machines}
    sends, receives = medians(judged)
    rates = {
        (end, pair.other(end)): rate / min(sends[end], receives[pair.other(end)])
        for key, pair in judged.open.items()
        if not named & set(key)
        for end in pair.machines
        if (rate := pair.sent(end)) is not None and end in sends and pair.other(end) in receives
    }
    if len(rates) < 6:
        return
    for one, other in _outliers(rates, _PAIR_SLOW):
        key = (min(one, other), max(one, other))
        if judged.is_last and not judged.pairs[key].again:
            continue
        usual = min(sends[one], receives[other]) / 1e6
        judged.cut.add(key)
        judged.put(
            "pair-slow", [one, other], machine=one, other=other,
            rate=rates[one, other] * usual, usual=usual,
        )  # fmt: skip


def _outliers(rates: Mapping[Key, float], share: float) -> list[Key]:
    """Those far below the others: under that share of the median, and beyond the spread."""
    logs = {key: math.log(rate) for key, rate in rates.items() if rate > 0}
    if len(logs) < 3:
        return []
    middle = median(logs.values())
    spread = max(_LEAST_SPREAD, 1.4826 * median(abs(one - middle) for one in logs.values()))
    limit = min(math.log(share), -_SPREADS * spread)
    return [key for key, one in logs.items() if one - middle < limit]
