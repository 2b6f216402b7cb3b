"""The list of all checks, each with its stable code and what `envcheck explain` says of it."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from functools import cache
from typing import TYPE_CHECKING

import msgspec

from .model import Finding, Passed, Unjudged

if TYPE_CHECKING:
    from .view import View

Verdict = Finding | Unjudged | Passed
Judge = Callable[["View"], Iterable[Verdict]]

# In the order of the chain from the hardware up to the framework, which is the order of the report.
AREAS = {
    "host": "Host",
    "pci": "PCI",
    "kernel": "Kernel",
    "driver": "Driver",
    "gpu": "GPUs",
    "container": "Containers",
    "boundary": "Boundary",
    "config": "pip and uv",
    "packages": "Packages",
    "libraries": "Libraries",
    "framework": "Framework",
    "environment": "Environment",
    "tensorcores": "Tensor Cores",
}
# What these are about is the target alone: where none was looked at, they say so and nothing else.
TARGET_AREAS = frozenset(
    ("boundary", "config", "packages", "libraries", "framework", "environment")
)


class Check(msgspec.Struct, frozen=True):
    """One registered check.

    problem: what is wrong where it finds something, in about 50 characters, for a verdict of one line: a
    predicate that follows a device ("has PCIe errors"), or a phrase that stands alone ("no NVIDIA GPU on
    the PCI bus"). A Finding's own headline says more.
    follows: codes of checks whose failure explains this one's: it is then shown as a consequence.
    about: what it means, for `envcheck explain`; sources: where the knowledge comes from.
    """

    code: str
    area: str
    title: str
    about: str
    sources: tuple[str, ...]
    follows: tuple[str, ...]
    judge: Judge
    problem: str


_checks: dict[str, Check] = {}


def check(
    code: str,
    *,
    title: str,
    problem: str,
    about: str,
    sources: Iterable[str],
    follows: Iterable[str] = (),
    area: str = "",
) -> Callable[[Judge], Judge]:
    """Register the decorated generator as the check ``code``.

    Its area is its module's name; a module that an area's own module imports names the ``area``.
    It yields Findings, Passed and Unjudged, or raises CannotJudge; yielding nothing is a pass.
    """

    def register(judge: Judge) -> Judge:
        where = area or judge.__module__.rpartition(".")[2]
        if code in _checks or where not in AREAS:
            raise ValueError(f"{code} is registered twice, or {where} is not an area")
        _checks[code] = Check(
            code, where, title, about, tuple(sources), tuple(follows), judge, problem
        )
        return judge

    return register


@cache
def all_checks() -> tuple[Check, ...]:
    """Every check, by area in AREAS' order, then by code."""
    for area in AREAS:
        importlib.import_module(f".{area}", __package__)
    order = list(AREAS)
    return tuple(sorted(_checks.values(), key=lambda c: (order.index(c.area), c.code)))
