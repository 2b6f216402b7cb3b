"""Which machines of a fleet are held against each other: those of one product."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .model import JudgedMachine

# Fewer machines than these have no usual among them.
FEW = 4
_COUNTED = re.compile(r"(\d{1,4}) × ([^,]{1,200})")


def products(machines: Sequence[JudgedMachine]) -> dict[str, list[JudgedMachine]]:
    """{product: its machines}, of those that answered and whose GPUs are known. A few machines with some
    GPUs less than many others have are compared with these: they may have lost one."""
    found: dict[str, list[JudgedMachine]] = {}
    for machine in machines:
        if machine.answer == "answered" and machine.product:
            found.setdefault(machine.product, []).append(machine)
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
