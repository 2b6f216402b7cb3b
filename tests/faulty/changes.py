"""What a fault changes of a machine: small changes, to be put together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from processes import stretched
from world.contents import Content
from world.machine import Machine

Change = Callable[[Machine], object]


def both(*changes: Change) -> Change:
    """All of them, one after the other."""

    def apply(m: Machine) -> None:
        for change in changes:
            change(m)

    return apply


def machine(**values: Any) -> Change:
    """The machine's attributes."""
    return lambda m: vars(m).update(values)


def gpu(index: int, **values: Any) -> Change:
    return lambda m: m.gpu(index).change(**values)


def answer(index: int, *rows: str) -> Change:
    """What NVML answers first about that GPU: each row without its handle."""
    return lambda m: m.nvml_first.extend(f"{m.gpu(index).handle} {row}" for row in rows)


def files(contents: Mapping[str, Content]) -> Change:
    """Files with these contents; None: not there."""
    return lambda m: m.files.update(contents)


def deadline(seconds: float) -> Change:
    """The doctor waits no longer for any probe."""
    return lambda m: m.arguments.extend(["--deadline", f"{stretched(seconds):.0f}"])
