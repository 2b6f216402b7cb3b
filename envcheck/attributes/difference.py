"""What differs between two Snapshots: facts, and figures beyond their spread. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Literal

import msgspec

from ..facts.base import Unavailable, known
from ..facts.gpu import Gpu
from ..facts.view import SnapshotView
from .measurements import measurements
from .model import Measurement
from .named import NAMED
from .values import NONE, attributes, gpu_called, gpus_of

Side = Literal["before", "after"]

# A figure is another one beyond these shares of it, and beyond what its own repetitions lay apart.
LEAST = 0.03
LEAST_UNKNOWN = 0.05  # where a Snapshot does not say how far apart they lay


class ChangedFact(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A fact that is another one. before, after: "none" for what is not there. devices: "GPU 3"."""

    key: str
    words: str
    before: str
    after: str
    devices: list[str] = []

    @property
    def change(self) -> Literal["added", "removed", "changed"]:
        if self.before == NONE:
            return "added"
        return "removed" if self.after == NONE else "changed"


class ChangedRate(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A figure that lies beyond its spread. change: by which share; bound: how large that may be.

    under, under_before: what it depends on beside the machine, now and, where that was another, before.
    """

    key: str
    words: str
    before: float
    after: float
    unit: str
    change: float
    bound: float
    bound_by: str
    worse: bool
    device: str = ""
    under: str = ""
    under_before: str = ""


class OneSided(msgspec.Struct, frozen=True, kw_only=True):
    """What only one of the two has, so that it cannot be compared."""

    words: str
    told_in: Side
    count: int


class Differences(msgspec.Struct, frozen=True, kw_only=True):
    """facts_compared, rates_compared: how many could be."""

    facts: list[ChangedFact]
    rates: list[ChangedRate]
    only: list[OneSided]
    facts_compared: int
    rates_compared: int


def differences(before: SnapshotView, after: SnapshotView) -> Differences:
    gpus, now = _by_address(before), _by_address(after)
    same_gpus = not gpus.keys().isdisjoint(now)
    # Where a GPU is gone, the indices of others move: it is called what it was called before.
    called = {
        gpu: gpus.get(address, f"{gpu} at {address}")
        for address, gpu in (now.items() if same_gpus else ())
    }
    only: Counter[tuple[str, Side]] = Counter()
    facts, facts_compared = _facts(before, after, called, only)
    rates, rates_compared = _rates(measurements(before), measurements(after), called, only)
    gone = [
        ChangedFact(
            key="gpus.there",
            words=f"GPU at {address}",
            before="there" if address in gpus else NONE,
            after="there" if address in now else NONE,
        )
        for address in sorted(gpus.keys() ^ now.keys() if same_gpus else ())
    ]
    return Differences(
        facts=[*gone, *facts],
        rates=rates,
        only=[
            OneSided(words=words, told_in=side, count=count)
            for (words, side), count in sorted(only.items())
        ],
        facts_compared=facts_compared,
        rates_compared=rates_compared,
    )


def _by_address(view: SnapshotView) -> dict[str, str]:
    """{PCI address: "GPU 3"}"""
    gpus: list[Gpu] = gpus_of(view)
    return {
        address: gpu_called(gpu, place)
        for place, gpu in enumerate(gpus)
        if (address := known(gpu.pci_address))
    }


def _facts(
    before: SnapshotView,
    after: SnapshotView,
    called: Mapping[str, str],
    only: Counter[tuple[str, Side]],
) -> tuple[list[ChangedFact], int]:
    """The facts that are others, those of several devices together, and how many were compared."""
    old = {(one.key, one.device): one for one in attributes(before)}
    new = {(one.key, called.get(one.device, one.device)): one for one in attributes(after)}
    in_both = {device for _, device in old} & {device for _, device in new}
    # Sections in which a name that is not there was looked for.
    complete = {
        name
        for name, named in NAMED.items()
        if not any(isinstance(named.facts(view), Unavailable) for view in (before, after))
    }
    changed: dict[tuple[str, str, str], ChangedFact] = {}
    compared = 0
    for place in {**old, **new}:
        key, device = place
        section = key.partition(".")[0]
        absent = NONE if section in complete else ""
        was = old[place].value if place in old else absent
        now = new[place].value if place in new else absent
        if not was or not now:
            if not device or device in in_both:  # a GPU of one of them is reported once, as a whole
                only[section, "before" if was else "after"] += 1
            continue
        compared += 1
        if was != now:
            same = changed.get((key, was, now))
            changed[key, was, now] = ChangedFact(
                key=key,
                words=(new.get(place) or old[place]).words,
                before=was,
                after=now,
                devices=[*(same.devices if same else []), *([device] if device else [])],
            )
    return list(changed.values()), compared


def _rates(
    before: list[Measurement],
    after: list[Measurement],
    called: Mapping[str, str],
    only: Counter[tuple[str, Side]],
) -> tuple[list[ChangedRate], int]:
    old: dict[tuple[str, str], list[Measurement]] = {}
    for one in before:
        old.setdefault((one.key, one.device), []).append(one)
    found, seen = [], set[int]()
    for one in after:
        device = " to ".join(called.get(part, part) for part in one.device.split(" to "))
        candidates = old.get((one.key, device), [])
        same = [other for other in candidates if other.under == one.under]
        if (
            not same and len(candidates) == 1
        ):  # the only one of that name, under other circumstances
            same = candidates
        if not same:
            only[f"rates: {one.key.partition('.')[0]}", "after"] += 1
            continue
        seen.add(id(same[0]))
        changed = _changed(same[0], one, device)
        if changed is not None:
            found.append(changed)
    for one in before:
        if id(one) not in seen:
            only[f"rates: {one.key.partition('.')[0]}", "before"] += 1
    return sorted(found, key=lambda one: (not one.worse, -abs(one.change))), len(seen)


def _changed(before: Measurement, after: Measurement, device: str) -> ChangedRate | None:
    change = after.value / before.value - 1
    spreads = before.spread, after.spread
    bound = max(LEAST_UNKNOWN if None in spreads else LEAST, sum(one or 0.0 for one in spreads))
    by = "not known of both how far apart its repetitions lay"
    if before.spread is not None and after.spread is not None:
        by = f"its repetitions lay {before.spread:.1%} apart, and {after.spread:.1%}"
    if abs(change) <= bound:
        return None
    return ChangedRate(
        key=after.key,
        words=after.words,
        before=before.value,
        after=after.value,
        unit=after.unit,
        change=change,
        bound=bound,
        bound_by=by,
        worse=(change > 0) is after.lower_is_better,
        device=device,
        under=after.under,
        under_before=before.under if before.under != after.under else "",
    )
