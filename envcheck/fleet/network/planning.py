"""What is tried a second time: pairs that failed or were slow, and all healthy machines together. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from .judged import Judged
from .judging import judge
from .model import Answer, NetworkRun

_TRIES = 3  # pairs of a machine that is suspected


class SecondPass(msgspec.Struct, frozen=True, kw_only=True):
    """The collector's request. peers: (name, address) of those that take part. pairs, together: by their
    places in that list, pairs of each round. named: the first round in which they take the interface that
    leads to the others, as the remedy would have it. slot: seconds of a round."""

    peers: list[tuple[str, str]]
    pairs: list[list[tuple[int, int]]]
    named: int
    together: list[int]
    slot: float


def slot(answers: Mapping[str, Answer]) -> float:
    """Seconds of a round; 0 where none is known."""
    return max((one.facts.slot for one in answers.values()), default=0.0)


def second(run: NetworkRun) -> SecondPass:
    """After the first pass."""
    found = judge(run)
    answers = run.passes[0].answers
    names = [name for name in answers if name not in found.silent]
    suspected = {
        name
        for one in found.findings
        for name in one.machines
        if one.cause not in ("clock-off", "machine-hangs") and name in found.bad
    }
    healthy = [name for name in names if name not in found.bad]
    pairs = [key for key in sorted(found.cut) if set(key) <= set(names)]
    misnamed: list[tuple[str, str]] = []
    for number, name in enumerate(sorted(suspected & set(names))):
        partners = healthy or [one for one in names if one != name]
        shift = number * _TRIES % len(partners)
        partners = sorted(
            partners[shift:] + partners[:shift], key=lambda one: _worked(found, name, one)
        )
        own = [(name, one) for one in partners[:_TRIES]]
        pairs += own
        if answers[name].facts.is_misnamed:
            misnamed += own[:1]
    for one, other in found.cut:  # of two that cannot reach each other, one
        if one in healthy and other in healthy:
            healthy.remove(other)
    places = {name: place for place, name in enumerate(names)}
    plain = in_rounds(pairs)
    return SecondPass(
        peers=[(name, answers[name].facts.reached_at or name) for name in names],
        pairs=[[(places[a], places[b]) for a, b in one] for one in plain + in_rounds(misnamed)],
        named=len(plain),
        together=[places[name] for name in healthy] if len(healthy) > 1 else [],
        slot=slot(answers),
    )


def _worked(found: Judged, one: str, other: str) -> bool:
    pair = found.pairs.get((min(one, other), max(one, other)))
    return pair is not None and pair.ok


def in_rounds(pairs: Iterable[tuple[str, str]]) -> list[list[tuple[str, str]]]:
    """Rounds in which no machine has two pairs."""
    rounds: list[list[tuple[str, str]]] = []
    for pair in pairs:
        free = [one for one in rounds if not any(set(pair) & set(other) for other in one)]
        if free:
            free[0].append(pair)
        else:
            rounds.append([pair])
    return rounds
