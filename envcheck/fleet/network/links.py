"""What a machine's own link claims: where all are equally slow, the fleet's median shows nothing. Pure.

Judged only where nothing else limits a pair: both links are adapters of real machines with a known rate, and
both machines move as much over their own loopback by the same program. Ethernet carries TCP at 94 % of its
rate: less than half of it is far from that.
"""

from __future__ import annotations

from ...findings import shell
from .. import hosts
from .judged import Judged

_LEAST = 0.5  # of the rate


def links(judged: Judged) -> None:
    """All of those machines are one finding."""
    claims: dict[str, float] = {}
    for name in hosts.natural({name for key in judged.open for name in key}):
        if why := _unknown(judged, name):
            judged.links.setdefault(why, []).append(name)
        else:
            claims[name] = judged.facts_of(name).claimed
    seen: dict[tuple[str, bool], list[tuple[float, float, float]]] = {}
    for key, pair in judged.open.items():
        claim = min(claims.get(name, 0.0) for name in key)
        for sender in key:
            if claim and (largest := pair.largest(sender)) is not None:
                size, seconds = largest
                figures = (size / claim + pair.rtt) / seconds, size / seconds, claim
                for name in key:
                    seen.setdefault((name, name == sender), []).append(figures)
    middle = [(sorted(every)[len(every) // 2], name) for (name, _sends), every in seen.items()]
    worst = {name: figures for figures, name in sorted(middle, reverse=True) if figures[0] < _LEAST}
    if not worst:
        return
    names, several = hosts.natural(worst), len(worst) > 1
    _shares, rates, rated = zip(*worst.values(), strict=True)
    judged.put(
        "links-below-claim", names, f"ethtool {shell.word(judged.facts_of(names[0]).towards)}",
        who=f"{hosts.folded(names)} reach{'' if several else 'es'}",
        rate=_span(rates), claim=_span(rated),
        whose="their links claim" if several else "its link claims",
        pairs="their pairs" if several else "its pairs",
    )  # fmt: skip


def _unknown(judged: Judged, name: str) -> str:
    """Why its link's rate is not judged; "" where it is."""
    facts = judged.facts_of(name)
    if any(pair.gpu is not None for pair in judged.of(name)):
        return "GPUs have adapters of their own"
    if not facts.claimed:
        return "the interface is virtual, or claims no rate"
    own = max((size / seconds for size, seconds in facts.loopback.items() if seconds), default=0)
    return "" if own >= facts.claimed else "its CPUs do not move as much over the loopback"


def _span(rates: tuple[float, ...]) -> str:
    """ "940", "90 to 95": Mbit/s."""
    return " to ".join(dict.fromkeys(f"{rate / 125e3:.0f}" for rate in (min(rates), max(rates))))
