"""What differs on a machine from most of its product. Pure.

A value is the usual one where at least 75 % have it, of at least 4 machines. Devices (GPUs, adapters) are
held against those at the same place of other machines: GPU 4 may be on another NUMA node than GPU 0, on
every machine; and where these do not agree, against all of the product. The GPUs of fewer than 4 machines are
held against each other, so that one that differs from the others of its own machine is told. Without a usual
value, two to four camps that nearly all machines belong to are reported as a split, without outliers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from ..attributes.named import NAMED
from ..attributes.registry import SECTIONS
from . import hosts
from .model import AttributeOutlier, Camp, JudgedMachine, MachineProblem, Split
from .products import FEW

MAJORITY = 0.75
_CAMPS = 4
_TOGETHER = 0.9  # of the machines are in camps
_LEAST = 0.1  # of the machines make a camp

# Where no variable is set there is no setting, either: who has a target was looked at.
_LOOKED = {"settings": "target"}

# {an attribute's key: the checks that judge the same}
_CHECKS = {
    f"{name}.{key.name}": key.checks
    for name, section in SECTIONS.items()
    for key in section.keys
    if key.checks
}


class _Values(msgspec.Struct):
    """One key on the machines of a product: {machine: [(device, value)]}."""

    words: str
    values: dict[str, list[tuple[str, str]]]


def attribute_outliers(
    product: str, machines: Sequence[JudgedMachine]
) -> tuple[list[AttributeOutlier], list[Split]]:
    """The outliers of a product's machines, and what these are split in."""
    outliers: list[AttributeOutlier] = []
    splits: list[Split] = []
    by_name = {machine.name: machine for machine in machines}
    for key, told in _told(machines).items():
        if any(device for values in told.values.values() for device, _ in values):
            found = _of_devices(product, key, told)
        else:
            found = _of_machines(product, key, told)
        if found is None:
            splits += _split(product, key, told)
        else:
            outliers += [_explained(one, by_name[one.machine].problems) for one in found]
    return outliers, splits


def _told(machines: Sequence[JudgedMachine]) -> dict[str, _Values]:
    """Every key that not all have in the same way."""
    had = Counter(attribute for machine in machines for attribute in machine.attributes)
    values: dict[str, set[str]] = {}
    for attribute in had:
        values.setdefault(attribute.key, set()).add(attribute.value)
    partly = {attribute.key for attribute, count in had.items() if count != len(machines)}
    differing = partly | {key for key, these in values.items() if len(these) > 1}
    found: dict[str, _Values] = {}
    sections: dict[str, list[str]] = {section: [] for section in NAMED}
    for machine in machines:
        seen = set()
        for attribute in machine.attributes:
            seen.add(attribute.key.partition(".")[0])
            if attribute.key in differing:
                told = found.setdefault(attribute.key, _Values(attribute.words, {}))
                told.values.setdefault(machine.name, []).append((attribute.device, attribute.value))
        for section in sections:
            if section in seen or _LOOKED.get(section) in seen:
                sections[section].append(machine.name)
    for key, told in found.items():
        for name in sections.get(key.partition(".")[0], ()):
            told.values.setdefault(name, [("", "")])
    return {key: found[key] for key in sorted(found) if _differ(found[key])}


def _differ(told: _Values) -> bool:
    return len({value for values in told.values.values() for _, value in values}) > 1


def _of_machines(product: str, key: str, told: _Values) -> list[AttributeOutlier] | None:
    """None: there is no usual value."""
    counted = Counter(values[0][1] for values in told.values.values())
    usual, agree = counted.most_common(1)[0]
    total = counted.total()
    if total < FEW:
        return []
    if agree < MAJORITY * total:
        return None
    return [
        AttributeOutlier(
            machine=name,
            product=product,
            key=key,
            words=told.words,
            value=values[0][1],
            usual=usual,
            agree=agree,
            of=total,
        )
        for name, values in told.values.items()
        if values[0][1] != usual
    ]


def _of_devices(product: str, key: str, told: _Values) -> list[AttributeOutlier] | None:
    """None: there is no usual value, neither of all devices nor of those at one place."""
    figures = [(name, *one) for name, values in told.values.items() for one in values]
    usual, agree = Counter(value for _, _, value in figures).most_common(1)[0]
    clear = len(figures) >= FEW and agree >= MAJORITY * len(figures)
    if len(told.values) < FEW:
        # adapters of one machine may be of several kinds; its GPUs are one product
        alike = clear and key.startswith("gpus.")
        return list(_differing(product, key, told.words, figures, usual, agree)) if alike else []
    places: dict[str, list[tuple[str, str, str]]] = {}
    for figure in figures:
        places.setdefault(figure[1], []).append(figure)
    found: list[AttributeOutlier] = []
    for these in places.values():
        here, count = Counter(value for _, _, value in these).most_common(1)[0]
        if len(these) < FEW or count < MAJORITY * len(these):
            if not clear and len(these) >= FEW:
                return None
            here = usual
        outliers = _differing(product, key, told.words, these, here, count)
        if clear and here == usual:
            outliers = (replace(one, agree=agree, of=len(figures)) for one in outliers)
        found += outliers if clear or len(these) >= FEW else ()
    return _by_machine(found)


def _by_machine(found: Iterable[AttributeOutlier]) -> list[AttributeOutlier]:
    """Devices of a machine with the same other value as one."""
    together: dict[tuple[str, str, str], AttributeOutlier] = {}
    for one in found:
        key = one.machine, one.value, one.usual
        first = together.get(key)
        devices = one.devices if first is None else [*first.devices, *one.devices]
        together[key] = replace(one, devices=devices)
    return list(together.values())


def _differing(
    product: str,
    key: str,
    words: str,
    figures: Sequence[tuple[str, str, str]],
    usual: str,
    agree: int,
) -> Iterator[AttributeOutlier]:
    """The devices of a machine that have the same other value as one."""
    others: dict[tuple[str, str], list[str]] = {}
    for name, device, value in figures:
        if value != usual:
            others.setdefault((name, value), []).append(device)
    for (name, value), devices in others.items():
        yield AttributeOutlier(
            machine=name,
            product=product,
            key=key,
            words=words,
            value=value,
            usual=usual,
            agree=agree,
            of=len(figures),
            devices=devices,
            per="device",
        )


def _split(product: str, key: str, told: _Values) -> Iterator[Split]:
    camps: dict[str, list[str]] = {}
    for name, values in told.values.items():
        value = " and ".join(dict.fromkeys(value for _, value in sorted(values)))
        camps.setdefault(value, []).append(name)
    total = len(told.values)
    large = {v: names for v, names in camps.items() if len(names) >= max(2, _LEAST * total)}
    inside = sum(map(len, large.values()))
    if total < FEW or not 2 <= len(large) <= _CAMPS or inside < _TOGETHER * total:
        return
    yield Split(product=product, key=key, words=told.words, camps=camps_of(large))


def camps_of(found: Mapping[str, Sequence[str]]) -> list[Camp]:
    """The largest first."""
    return [
        Camp(value=value, machines=hosts.natural(names), hosts=hosts.folded(names))
        for value, names in sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))
    ]


def _explained(outliers: AttributeOutlier, problems: Iterable[MachineProblem]) -> AttributeOutlier:
    codes = _CHECKS.get(outliers.key, ())
    for problem in problems:
        if problem.code in codes and any(is_about(problem, device) for device in outliers.devices):
            return replace(outliers, because=problem.code)
    return outliers


def is_about(problem: MachineProblem, device: str) -> bool:
    """Whether a problem is about a device, "GPU 3"."""
    return any(told == device or told.startswith(f"{device} ") for told in problem.devices)
