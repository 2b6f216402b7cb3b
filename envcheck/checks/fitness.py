"""Whether a build holds code for a GPU, and whether a driver compiles its PTX."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal, NamedTuple

from ..data.versions import parse_version


class BuiltCode(NamedTuple):
    """What a build has for one compute capability.

    kind: "native" machine code (SASS), "jit" code that the driver compiles first (PTX), "none".
    by: the entry of the build list that it comes from.
    """

    kind: Literal["native", "jit", "none"]
    by: str


_ENTRY = re.compile(r"(sm|compute)_(\d+)([af]?)")


def is_entry(entry: str) -> bool:
    """Whether an entry of a build list is of a form that is known here."""
    return _ENTRY.fullmatch(entry.strip()) is not None


def code_for(capability: str, built: Iterable[str]) -> BuiltCode:
    """What a build list ("sm_80", "compute_90") has for a compute capability ("8.6").

    Machine code runs on its own capability and on higher minors of the same major; PTX compiles for
    its own and for every higher one. "a" code runs on exactly its capability, "f" code in its family
    (CUDA C++ programming guide, compute capabilities). Raises ValueError for what is no capability.
    """
    major, _, minor = capability.partition(".")
    gpu = (int(major), int(minor or 0))
    native: list[tuple[tuple[int, int], str]] = []
    jit: list[tuple[tuple[int, int], str]] = []
    for entry in built:
        found = _ENTRY.fullmatch(entry.strip())
        if found is None:
            continue
        kind, digits, flavour = found.groups()
        own = (int(digits[:-1] or 0), int(digits[-1]))
        runs = own == gpu if flavour == "a" else own <= gpu
        if runs and (own[0] == gpu[0] or not (flavour == "f" or kind == "sm")):
            (native if kind == "sm" else jit).append((own, entry.strip()))
    if native:
        return BuiltCode("native", max(native)[1])
    return BuiltCode("jit", max(jit)[1]) if jit else BuiltCode("none", "")


def tensorflow_list(capabilities: Iterable[str]) -> list[str]:
    """A TensorFlow build list in those terms: its "compute_90" holds machine code and PTX both.

    (TensorFlow's configure.py: "sm_xy" for machine code alone, "compute_xy" for both.)
    """
    every = list(capabilities)
    return [one.replace("compute_", "sm_") for one in every if one.startswith("compute_")] + every


def ptx_runs(built_cuda: str, driver_cuda: str) -> bool | None:
    """Whether a driver compiles PTX of this CUDA: one that is not newer than its own; None: not known."""
    built, driver = parse_version(built_cuda), parse_version(driver_cuda)
    if built is None or driver is None:
        return None
    return built.release[:2] <= driver.release[:2]
