"""By what the map is arranged: racks, switches or partitions, where they are known, else products."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..hosts import natural_key
from ..model import JudgedMachine

# What stands together; after these, other kinds by their names.
_PREFERRED = ("rack", "chassis", "switch", "row", "block", "partition", "group")
# What says nothing about where a machine stands.
_NO_PLACE = {("group", "all"), ("group", "ungrouped")}
_MOST_KINDS = 6
FEW = 12  # machines: they need no order but their names


class Place(NamedTuple):
    """Machines that stand together; name "" for those of which it is not known."""

    name: str
    machines: list[JudgedMachine]


class Arrangement(NamedTuple):
    kind: str  # "rack", "product"; "" where all stand in one place
    places: list[Place]


def arrangements(machines: Sequence[JudgedMachine]) -> list[Arrangement]:
    """Every way to arrange them that says something, the best first; at least one."""
    of_kind: dict[str, dict[str, set[str]]] = {}
    for machine in machines:
        for kind, name in machine.groups:
            if (kind, name) not in _NO_PLACE:
                of_kind.setdefault(kind, {}).setdefault(machine.name, set()).add(name)
    products = {machine.name: {machine.product} for machine in machines if machine.product}
    found = [_arranged(kind, of_kind[kind], machines) for kind in sorted(of_kind, key=_preference)]
    found += [_arranged("product", products, machines)]
    good = [one for one in found if _says_something(one, len(machines))][:_MOST_KINDS]
    by_name = Arrangement("", [Place("", sorted_by_name(machines))])
    return [by_name, *good] if len(machines) <= FEW else [*good, by_name]


def sorted_by_name(machines: Iterable[JudgedMachine]) -> list[JudgedMachine]:
    return sorted(machines, key=lambda machine: natural_key(machine.name))


def _preference(kind: str) -> tuple[int, str]:
    return (_PREFERRED.index(kind) if kind in _PREFERRED else len(_PREFERRED), kind)


def _arranged(
    kind: str, names: dict[str, set[str]], machines: Sequence[JudgedMachine]
) -> Arrangement:
    """A machine of several groups stands in the smallest that is not its own alone."""
    sizes = Counter(name for of_one in names.values() for name in of_one)
    places: dict[str, list[JudgedMachine]] = {}
    for machine in machines:
        of_one = names.get(machine.name, set())
        nearest = min(of_one, key=lambda name: (sizes[name] == 1, sizes[name], name), default="")
        places.setdefault(nearest, []).append(machine)
    ordered = sorted(places, key=lambda name: (not name, natural_key(name)))
    return Arrangement(kind, [Place(name, sorted_by_name(places[name])) for name in ordered])


def _says_something(one: Arrangement, of: int) -> bool:
    """Most machines have such a place, there are several, and not almost one for each machine."""
    named = [place for place in one.places if place.name]
    known = sum(len(place.machines) for place in named)
    return len(named) > 1 and 2 * known > of and 2 * len(named) <= max(known, 4)
