"""Which machines of a fleet are held against each other: those of one product."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from ..reports.machine import GpuGroup, gpu_phrase
from ..reports.plain import together
from .model import JudgedMachine

# Fewer machines than these have no usual among them.
FEW = 4
_COUNTED = re.compile(r"(\d{1,4}) × ([^,]{1,200})")


def product(names: Iterable[str]) -> str:
    """The same GPUs in any order are one product: "8 × NVIDIA H100 80GB HBM3"."""
    counted = Counter(names)
    ranked = sorted(counted, key=lambda name: (-counted[name], name))
    return gpu_phrase([GpuGroup(counted[name], name) for name in ranked])


def with_products(machines: Sequence[JudgedMachine]) -> list[JudgedMachine]:
    """Where the driver names no GPU of a machine, they have the names that it gives to the same devices on
    other machines: what a machine is does not change with its driver's state."""
    named = together({card for machine in machines for card in machine.cards if card[1]})
    known = {device: names[0] for device, names in named.items() if len(names) == 1}
    return [
        replace(one, product=product(known[device] for device, _ in one.cards))
        if one.cards and all(not name and device in known for device, name in one.cards)
        else one
        for one in machines
    ]


def products(machines: Sequence[JudgedMachine]) -> dict[str, list[JudgedMachine]]:
    """{product: its machines}, of those that answered and whose GPUs are known. A few machines with some
    GPUs less than many others have are compared with these: they may have lost one."""
    known = (one for one in machines if one.answer == "answered" and one.product)
    found = together((one.product, one) for one in known)
    for small in [name for name, members in found.items() if len(members) < FEW]:
        whole = _whole(small, found)
        if whole:
            found[whole] += found.pop(small)
    return found


def _whole(small: str, found: dict[str, list[JudgedMachine]]) -> str:
    """The product that a machine with fewer GPUs belongs to: of the same ones, up to twice as many."""
    own = _COUNTED.fullmatch(small)
    if own is None:
        return ""
    larger = [
        name
        for name, members in found.items()
        if len(members) >= FEW
        and (other := _COUNTED.fullmatch(name)) is not None
        and other[2] == own[2]
        and int(own[1]) < int(other[1]) <= 2 * int(own[1])
    ]
    return max(larger, key=lambda name: len(found[name]), default="")
