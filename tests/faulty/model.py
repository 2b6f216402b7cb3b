"""A fault, and what an answer to it has to say."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from world.bases import BASES
from world.machine import Machine

THEMES = (
    "driver and kernel module",
    "kernel log",
    "PCIe",
    "memory and ECC",
    "clocks, power, heat",
    "NVLink and fabric",
    "MIG, modes, processes",
    "containers and nodes",
    "libraries and frameworks",
    "network and system",
    "pairs",
    "in the middle of a run",
)


@dataclass(frozen=True)
class Truth:
    """What is wrong. Patterns: the codes that stand for it, its subject, its cause, and what mends it."""

    codes: str
    subject: str
    cause: str
    remedy: str


@dataclass(frozen=True)
class Fault:
    """A machine with something wrong, and the whole truth about it.

    also: codes that a failing finding may have besides, since they tell of the same thing.
    unseen: why no program can see it, where that is so.
    """

    name: str
    theme: str
    base: str
    apply: Callable[[Machine], object]
    truths: tuple[Truth, ...]
    also: str = ""
    arguments: tuple[str, ...] = ()
    unseen: str = ""
    order: bool = (
        False  # the first truth is the other's cause: it has to be found, the other may be
    )

    def machine(self) -> Machine:
        made = BASES[self.base]()
        self.apply(made)
        made.arguments += self.arguments
        made.name = f"{made.name}: {self.name}"
        return made


@dataclass
class Collection:
    """The faults of one file."""

    theme: str
    faults: list[Fault] = field(default_factory=list)

    def add(
        self,
        name: str,
        apply: Callable[[Machine], object],
        *truths: tuple[str, str, str, str],
        base: str = "h100",
        also: str = "",
        arguments: tuple[str, ...] = (),
        unseen: str = "",
        order: bool = False,
    ) -> None:
        for truth in truths:
            for pattern in truth:
                re.compile(pattern)
        made = tuple(Truth(*truth) for truth in truths)
        self.faults.append(
            Fault(name, self.theme, base, apply, made, also, arguments, unseen, order)
        )
