"""What differs between two Snapshots: facts, and figures beyond their spread. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

from ..facts.base import Unavailable, known
from ..facts.gpu import Gpu
from ..facts.view import SnapshotView
from .measurements import measurements
from .model import Attribute, Measurement
from .named import NAMED
from .values import NONE, attributes, gpu_called, gpus_of

Side = Literal["before", "after"]

# A figure is another one beyond these shares of it, and beyond what its own repetitions lay apart.
LEAST = 0.03
LEAST_UNKNOWN = 0.05  # where a Snapshot does not say how far apart they lay

_Place = tuple[str, str]  # a key, a device


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
    """What only one of the two tells, so that it cannot be compared."""

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
    called = _as_before(gpus_of(before), gpus_of(after))
    gone = _came_and_went(gpus_of(before), gpus_of(after))
    old = {(one.key, one.device): one for one in attributes(before)}
    new = {(one.key, called.get(one.device, one.device)): one for one in attributes(after)}
    both = _looked_for_in_both(before, after)
    changed: dict[tuple[str, str, str], ChangedFact] = {}
    only: dict[tuple[str, Side], int] = {}
    compared = 0
    for place in {**old, **new}:
        one = old.get(place) or new[place]
        looked_at = _section(one.key) in both
        values = [_value(side.get(place), looked_at) for side in (old, new)]
        if None in values:
            if not _of_a_gpu_in_one(place, old, new):
                in_one: Side = "after" if values[0] is None else "before"
                where = _section(one.key)
                only[where, in_one] = only.get((where, in_one), 0) + 1
            continue
        compared += 1
        if values[0] != values[1]:
            _put(changed, one, place[1], str(values[0]), str(values[1]))
    rates, rates_compared = _rates(measurements(before), measurements(after), called, only)
    return Differences(
        facts=[*gone, *changed.values()],
        rates=rates,
        only=[
            OneSided(words=words, told_in=in_one, count=count)
            for (words, in_one), count in sorted(only.items())
        ],
        facts_compared=compared,
        rates_compared=rates_compared,
    )


def _section(key: str) -> str:
    return key.partition(".")[0]


def _value(one: Attribute | None, looked_at: bool) -> str | None:
    """None: nobody knows."""
    if one is not None:
        return one.value
    return NONE if looked_at else None


def _looked_for_in_both(before: SnapshotView, after: SnapshotView) -> set[str]:
    """Sections in which a name that is not there was looked for."""
    return {
        name
        for name, named in NAMED.items()
        if not any(isinstance(named.facts(view), Unavailable) for view in (before, after))
    }


def _of_a_gpu_in_one(
    place: _Place, old: Mapping[_Place, Attribute], new: Mapping[_Place, Attribute]
) -> bool:
    """Whether the device itself is in one of the two alone, which is reported once."""
    _key, device = place
    if not device:
        return False
    return not all(any(other == device for _key, other in side) for side in (old, new))


def _put(
    changed: dict[tuple[str, str, str], ChangedFact],
    one: Attribute,
    device: str,
    before: str,
    after: str,
) -> None:
    """Devices with the same change are reported together."""
    found = changed.get((one.key, before, after))
    devices = [*found.devices, device] if found is not None else [device] if device else []
    changed[one.key, before, after] = ChangedFact(
        key=one.key, words=one.words, before=before, after=after, devices=devices
    )


def _addresses(gpus: Iterable[Gpu]) -> dict[str, str]:
    """{PCI address: "GPU 3"}"""
    return {
        address: gpu_called(gpu, place)
        for place, gpu in enumerate(gpus)
        if (address := known(gpu.pci_address))
    }


def _as_before(before: list[Gpu], after: list[Gpu]) -> dict[str, str]:
    """What the GPUs are called now, and what they were called: where one is gone, others' indices move."""
    old, new = _addresses(before), _addresses(after)
    if old.keys().isdisjoint(new):
        return {}
    return {name: old.get(address, f"{name} at {address}") for address, name in new.items()}


def _came_and_went(before: list[Gpu], after: list[Gpu]) -> list[ChangedFact]:
    old, new = _addresses(before), _addresses(after)
    if old.keys().isdisjoint(new):
        return []
    return [
        ChangedFact(
            key="gpus.there",
            words=f"GPU at {address}",
            before="there" if address in old else NONE,
            after="there" if address in new else NONE,
        )
        for address in sorted(old.keys() ^ new.keys())
    ]


def _rates(
    before: list[Measurement],
    after: list[Measurement],
    called: Mapping[str, str],
    only: dict[tuple[str, Side], int],
) -> tuple[list[ChangedRate], int]:
    old: dict[_Place, list[Measurement]] = {}
    for one in before:
        old.setdefault((one.key, one.device), []).append(one)
    found, compared, seen = [], 0, set[int]()
    for one in after:
        device = " to ".join(called.get(part, part) for part in one.device.split(" to "))
        match = _match(one, old.get((one.key, device), []))
        if match is None:
            _count(only, one, "after")
            continue
        compared += 1
        seen.add(id(match))
        changed = _changed(match, one, device)
        if changed is not None:
            found.append(changed)
    for one in before:
        if id(one) not in seen:
            _count(only, one, "before")
    return sorted(found, key=lambda one: (not one.worse, -abs(one.change))), compared


def _count(only: dict[tuple[str, Side], int], one: Measurement, side: Side) -> None:
    words = f"rates: {_section(one.key)}"
    only[words, side] = only.get((words, side), 0) + 1


def _match(one: Measurement, candidates: list[Measurement]) -> Measurement | None:
    """The same figure, else the only one of that name under other circumstances."""
    same = [other for other in candidates if other.under == one.under]
    if same or len(candidates) != 1:
        return same[0] if same else None
    return candidates[0]


def _changed(before: Measurement, after: Measurement, device: str) -> ChangedRate | None:
    change = after.value / before.value - 1
    bound, by = _bound(before.spread, after.spread)
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


def _bound(before: float | None, after: float | None) -> tuple[float, str]:
    if before is None or after is None:
        own = max(before or 0.0, after or 0.0)
        return max(LEAST_UNKNOWN, own), "not known of both how far apart its repetitions lay"
    return (
        max(LEAST, before + after),
        f"its repetitions lay {before:.1%} apart, and {after:.1%}",
    )
