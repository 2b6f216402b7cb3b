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
# The Snapshot's sections that an area's checks rest on: with --only and --skip, nothing else is collected
# or looked at. The host's are always among them, for they say how a remedy is to be written.
_MACHINE = ("host", "pci", "kernel", "nvml", "nvidia_smi")
_TARGET = ("interpreter", "environment", "packages", "lock", "loader", "tensorflow", "torch", "jax")
NEEDS = {
    "host": frozenset(("host", "kernel")),
    "pci": frozenset(_MACHINE),
    "kernel": frozenset((*_MACHINE, "cuda")),
    "driver": frozenset((*_MACHINE, "cuda")),
    "gpu": frozenset((*_MACHINE, "cuda")),
    "container": frozenset((*_MACHINE, "containers")),
    "boundary": frozenset((*_MACHINE, "cuda", "containers", "interpreter", "environment")),
    "config": frozenset(("host", "interpreter", "packaging_config", "packages")),
    "packages": frozenset((*_MACHINE, "cuda", *_TARGET)),
    "libraries": frozenset((*_MACHINE, "cuda", *_TARGET)),
    "framework": frozenset((*_MACHINE, "cuda", *_TARGET)),
    "environment": frozenset((*_MACHINE, "cuda", *_TARGET)),
    "tensorcores": frozenset((*_MACHINE, "cuda", *_TARGET, "micro_kernels")),
}

# Narrower, for checks of these areas that ask no framework.
LOCK_ALONE = frozenset(("host", "interpreter", "lock"))
PACKAGES_ALONE = frozenset(("host", "interpreter", "packages"))
VARIABLES_ALONE = frozenset((*_MACHINE, "cuda", "interpreter", "environment", "packages"))


class Check(msgspec.Struct, frozen=True):
    """One registered check.

    problem: what is wrong where it finds something, in about 50 characters, for a verdict of one line: a
    predicate that follows a device ("has PCIe errors"), or a phrase that stands alone ("no NVIDIA GPU on
    the PCI bus"). A Finding's own headline says more.
    follows: codes of checks whose failure explains this one's: it is then shown as a consequence.
    about: what it means, for `envcheck explain`; sources: where the knowledge comes from.
    needs: the Snapshot's sections that it rests on, where those are fewer than its area's.
    """

    code: str
    area: str
    title: str
    about: str
    sources: tuple[str, ...]
    follows: tuple[str, ...]
    judge: Judge
    problem: str
    needs: frozenset[str] = frozenset()

    @property
    def sections(self) -> frozenset[str]:
        """The Snapshot's sections that it rests on."""
        return self.needs or NEEDS[self.area]


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
    needs: frozenset[str] = frozenset(),
) -> Callable[[Judge], Judge]:
    """Register the decorated generator as the check ``code``.

    Its area is its module's name; a module that an area's own module imports names the ``area``.
    ``needs``: as of Check.
    It yields Findings, Passed and Unjudged, or raises CannotJudge; yielding nothing is a pass.
    """

    def register(judge: Judge) -> Judge:
        where = area or judge.__module__.rpartition(".")[2]
        if code in _checks or where not in AREAS:
            raise ValueError(f"{code} is registered twice, or {where} is not an area")
        _checks[code] = Check(
            code, where, title, about, tuple(sources), tuple(follows), judge, problem, needs
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
