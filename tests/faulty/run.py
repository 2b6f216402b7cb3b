"""Runs envcheck on machines, several at a time."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from world import enter
from world.machine import Machine

from .model import Fault
from .score import Score, crashed, judge

DOCTOR = ["doctor", "--format", "json", "--level=quick"]
T = TypeVar("T")


def report(machine: Machine) -> dict[str, Any]:
    """What the doctor says of a machine. Raises RuntimeError where it says nothing."""
    ended = enter.run(machine, DOCTOR + machine.arguments)
    if ended.code not in (0, 1, 4) or not ended.stdout:
        words = ended.stderr.decode("utf-8", "replace").strip()
        raise RuntimeError(f"exit status {ended.code}: {words[-400:]}")
    document: dict[str, Any] = json.loads(ended.stdout)
    return document


def score(fault: Fault) -> Score:
    try:
        return judge(fault, report(fault.machine()))
    except (RuntimeError, TimeoutError) as error:
        return crashed(fault, str(error))


def side_by_side(
    work: Callable[[Any], T], items: Iterable[Any], at_once: int | None = None
) -> Iterator[T]:
    """``work`` on each of the items, in their order; most of a machine's time goes into its own processes."""
    # Compiled and imported once, before there are threads: a fork takes along what is held at that moment.
    enter.prepare()
    with ThreadPoolExecutor(at_once or (os.cpu_count() or 1) + 1) as pool:
        yield from pool.map(work, items)
