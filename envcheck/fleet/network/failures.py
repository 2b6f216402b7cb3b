"""Machines and pairs that fail: a machine is named first, with all of its pairs; what then still fails is a
pair's. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from ...findings import shell
from .judged import Judged
from .pairs import Pair

_MOST = 0.6  # of a machine's pairs fail: it is the machine


def hanging(judged: Judged) -> None:
    for name in sorted(judged.silent):
        pairs = judged.drop(name)
        worked = [pair.attempts[0].round for pair in pairs if pair.ok]
        if worked:
            why = judged.silent.pop(name)
            judged.put("machine-hangs", [name], machine=name, round=max(worked) + 1, why=why)


def failing(judged: Judged) -> None:
    while failed := _failures(judged):
        name, share = max(
            ((name, count / len(judged.of(name))) for name, count in failed.items()),
            key=lambda one: (one[1], failed[one[0]], judged.facts_of(one[0]).is_misnamed, one[0]),
        )
        if share < _MOST or (failed[name] < 2 and not judged.facts_of(name).is_misnamed):
            break
        _name(judged, name)
    for key, pair in [one for one in judged.open.items() if not one[1].ok]:
        _name_pair(judged, key, pair)


def _failures(judged: Judged) -> Counter[str]:
    return Counter(n for key, pair in judged.open.items() if not pair.ok for n in key)


def _name(judged: Judged, name: str) -> None:
    """All its pairs fail: why."""
    pairs, facts = judged.drop(name), judged.facts_of(name)
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
        setting = f"{facts.variable}={facts.towards}"
        proven = named and all(one.ok for one in named)
        judged.put(
            "name-resolves-elsewhere", [name], f"getent hosts {shell.word(facts.host)}",
            **common, host=facts.host, resolves=facts.resolves, by_name=facts.offers,
            address=facts.address, towards=facts.towards,
            proof=f" With {setting} they pass." if proven else "",
            otherwise=f", or set {setting} in its jobs" if proven else "",
        )  # fmt: skip
    elif len(stuck) * 2 > len(failed):
        _name_black_hole(judged, name, stuck, common)
    elif len(worked) > 1 and all(one.ok or one.round > last for one in tries):
        judged.put("machine-stops", [name], round=last + 1, **common)
    elif step == "connect":
        judged.put("machine-cut-off", [name], address=facts.reached_at or name, **common)
    else:
        judged.put("machine-fails", [name], step=step, **common)


def _name_black_hole(
    judged: Judged, name: str, stuck: list[tuple[str, int]], common: Mapping[str, object]
) -> None:
    facts = judged.facts_of(name)
    senders = {sender == name for sender, _size in stuck}
    direction = {True: "from", False: "to"}[senders == {True}]
    direction = "to and from" if len(senders) == 2 else direction
    size = min(size for _sender, size in stuck) >> 10
    other = next((n for n in sorted(judged.facts) if n not in judged.bad), name)
    target = shell.word(judged.facts_of(other).reached_at or other)
    probe = f"ping -M do -s {max(facts.mtu - 28, 0)} {target}"
    towards = facts.towards or "there"
    judged.put(
        "large-messages-vanish", [name], f"ip link show {shell.word(towards)}", probe,
        **common, direction=direction, size=size, towards=towards, mtu=facts.mtu,
    )  # fmt: skip


def _name_pair(judged: Judged, key: tuple[str, str], pair: Pair) -> None:
    judged.cut.add(key)
    one, other = key
    judged.put(
        "pair-cut-off", key, machine=one, other=other, step=pair.last.step, why=pair.last.why,
        address=judged.facts_of(one).reached_at or one,
        other_address=judged.facts_of(other).reached_at or other,
    )  # fmt: skip
    del judged.open[key]


def damaged(judged: Judged) -> None:
    for key, pair in judged.pairs.items():
        if pair.wrong:
            judged.put("data-damaged", key, machine=key[0], other=key[1], wrong=pair.wrong)
            judged.cut.add(key)
