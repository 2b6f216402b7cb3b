"""What differs on a machine from most of its product. Pure.

A value is the usual one where at least 75 % have it, of at least 4 machines. Devices are compared with those
at the same place of other machines; where these do not agree, with all of the product. Without a usual value,
two to four camps are reported as a split; so are a twentieth of the machines that have another version.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from ..attributes.named import NAMED
from ..attributes.registry import SECTIONS
from ..reports.plain import number_of, together
from . import hosts
from .model import AttributeOutlier, Camp, JudgedMachine, MachineProblem, Split
from .products import FEW

MAJORITY = 0.75
_CAMPS = 4
_TOGETHER = 0.9  # of the machines are in camps
# Machines make a camp where they are so many and this share: without a majority, and beside one.
_CAMP, _GROUP = (2, 0.1), (3, 0.05)
_LEADS = 20
_DRIVER = "driver.version"
_OF_DRIVER = ("driver.", "system_packages.")

# Where no variable is set there is no setting, either: who has a target was looked at.
_LOOKED = {"settings": "target"}

_KEYS = {f"{name}.{key.name}": key for name, section in SECTIONS.items() for key in section.keys}

_Values = dict[str, list[tuple[str, str]]]  # {machine: [(device, value)]}, of one key
_About = dict[str, Any]  # product, key and words of an outlier or a split


def attribute_outliers(
    product: str, machines: Sequence[JudgedMachine]
) -> tuple[list[AttributeOutlier], list[Split]]:
    """The outliers of a product's machines, and what these are split in. What follows from another key is
    part of it: packages follow the driver's version, and versions another that the same machines moved to."""
    outliers: list[AttributeOutlier] = []
    splits: list[Split] = []
    also: dict[str, list[str]] = {}  # of each key that others may follow
    problems = {machine.name: machine.problems for machine in machines}
    words = {one.key: one.words for machine in machines for one in machine.attributes}
    differing = _differing(machines)
    whole = {key: _whole(values) for key, values in differing.items()}
    for key in sorted(differing, key=lambda key: (key != _DRIVER, key)):
        lead = next((one for one in also if _follows(key, whole[key], one, whole[one])), None)
        if lead is not None:
            also[lead].append(key)
            continue
        about = {"product": product, "key": key, "words": words[key]}
        found, camps = _outliers(about, differing[key], whole[key])
        if (camps or (found and key == _DRIVER)) and len(also) < _LEADS:
            also[key] = []
        outliers += [_explained(one, problems[one.machine]) for one in found]
        splits += camps
    following = {lead: _following(keys, words) for lead, keys in also.items()}
    return (
        [replace(one, also=following.get(one.key, [])) for one in outliers],
        [replace(one, also=following.get(one.key, [])) for one in splits],
    )


def _following(keys: Sequence[str], words: Mapping[str, str]) -> list[str]:
    """What they are; of packages of the driver, how many."""
    packages = [key for key in keys if key.startswith("system_packages.")]
    named = [words[key] for key in keys if key not in packages]
    return named + [number_of(len(packages), "package")] * bool(packages)


def _outliers(
    about: _About, values: _Values, whole: Mapping[str, str]
) -> tuple[list[AttributeOutlier], list[Split]]:
    found = _unusual(about, values)
    if found is None:
        return _split(about, whole, *_CAMP)
    others, camps = _split(about, whole, *_GROUP) if _moves(about["key"]) else ([], [])
    return (others, camps) if camps else (found, [])


def _moves(key: str) -> bool:
    """Whether it is a version, to which machines are upgraded in groups."""
    section = key.partition(".")[0]
    kind = NAMED[section].kind if section in NAMED else _KEYS[key].kind if key in _KEYS else ""
    return kind == "version" or section == "system_packages"


def _whole(values: _Values) -> dict[str, str]:
    """A machine's values of all devices as one."""
    return {
        name: " and ".join(dict.fromkeys(value for _, value in sorted(pairs)))
        for name, pairs in values.items()
    }


def _follows(key: str, values: Mapping[str, str], lead: str, leading: Mapping[str, str]) -> bool:
    """Whether machines with the same value of ``lead`` have the same value of this key. Of few machines this
    means nothing, unless the key belongs to the driver as the lead does."""
    of_driver = lead == _DRIVER and key.startswith(_OF_DRIVER)
    if not of_driver and not _moves(key):
        return False
    groups = together((leading.get(name, ""), value) for name, value in values.items())
    same = all(len(set(group)) == 1 for group in groups.values())
    return same and (of_driver or min(map(len, groups.values())) >= _GROUP[0])


def _differing(machines: Sequence[JudgedMachine]) -> dict[str, _Values]:
    """The values of every key that not all have in the same way. Where a section with names was looked at, a
    name that is not there has the value ""."""
    had = Counter(attribute for machine in machines for attribute in machine.attributes)
    different: dict[str, set[str]] = {}
    for attribute, count in had.items():
        different.setdefault(attribute.key, set()).add(attribute.value)
        if count != len(machines):
            different[attribute.key].add("")
    found: dict[str, _Values] = {}
    for machine in machines:
        for attribute in machine.attributes:
            if len(different[attribute.key]) > 1:
                values = found.setdefault(attribute.key, {})
                values.setdefault(machine.name, []).append((attribute.device, attribute.value))
    for machine in machines:
        seen = {attribute.key.partition(".")[0] for attribute in machine.attributes}
        for key, values in found.items():
            section = key.partition(".")[0]
            if section in NAMED and (section in seen or _LOOKED.get(section) in seen):
                values.setdefault(machine.name, [("", "")])
    return {
        key: values
        for key, values in sorted(found.items())
        if len({value for pairs in values.values() for _, value in pairs}) > 1
    }


def _unusual(about: _About, values: _Values) -> list[AttributeOutlier] | None:
    """None: there is no usual value, neither of all devices nor of those at one place."""
    figures = [(name, *pair) for name, pairs in values.items() for pair in pairs]
    usual, agree = Counter(value for _, _, value in figures).most_common(1)[0]
    clear = len(figures) >= FEW and agree >= MAJORITY * len(figures)
    few = len(values) < FEW
    if few and not (clear and about["key"].startswith("gpus.")):
        return []  # adapters of one machine may be of several kinds; its GPUs are one product
    places = together(("" if few else figure[1], figure) for figure in figures)
    found: dict[tuple[str, str, str], tuple[int, int, list[str]]] = {}
    for at_place in places.values():
        here, count = Counter(value for _, _, value in at_place).most_common(1)[0]
        enough = len(at_place) >= FEW
        if not enough or count < MAJORITY * len(at_place):
            if enough and not clear:
                return None
            here = usual
        agreed = (agree, len(figures)) if clear and here == usual else (count, len(at_place))
        for name, device, value in at_place if clear or enough else ():
            if value != here:
                found.setdefault((name, value, here), (*agreed, []))[2].append(device)
    return [
        AttributeOutlier(
            **about, machine=name, value=value, usual=here, agree=count, of=of,
            devices=[*filter(None, devices)], per="device" if any(devices) else "machine",
        )
        for (name, value, here), (count, of, devices) in found.items()
    ]  # fmt: skip


def _split(
    about: _About, whole: Mapping[str, str], least: int, share: float
) -> tuple[list[AttributeOutlier], list[Split]]:
    """The camps that machines are in, and those outside."""
    camps = together((value, name) for name, value in whole.items())
    total = len(whole)
    large = {v: names for v, names in camps.items() if len(names) >= max(least, share * total)}
    inside = sum(map(len, large.values()))
    if total < FEW or not 2 <= len(large) <= _CAMPS or inside < _TOGETHER * total:
        return [], []
    usual = " or ".join(value or "none" for value in large)
    others = [
        AttributeOutlier(**about, machine=name, value=value, usual=usual, agree=inside, of=total)
        for name, value in whole.items()
        if value not in large
    ]
    return others, [Split(**about, camps=camps_of(large))]


def camps_of(found: Mapping[str, Sequence[str]]) -> list[Camp]:
    """The largest first."""
    return [
        Camp(value=value, machines=hosts.natural(names), hosts=hosts.folded(names))
        for value, names in sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))
    ]


def _explained(outlier: AttributeOutlier, problems: Iterable[MachineProblem]) -> AttributeOutlier:
    codes = _KEYS[outlier.key].checks if outlier.key in _KEYS else ()
    for problem in problems:
        if problem.code in codes and any(is_about(problem, device) for device in outlier.devices):
            return replace(outlier, because=problem.code)
    return outlier


def is_about(problem: MachineProblem, device: str) -> bool:
    """Whether a problem is about a device, "GPU 3"."""
    return any(one == device or one.startswith(f"{device} ") for one in problem.devices)
