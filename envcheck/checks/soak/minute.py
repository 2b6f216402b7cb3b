"""One minute of one GPU, judged while the soak runs: what is wrong with it already."""

from __future__ import annotations

import statistics
from typing import NamedTuple

from ...data.kernel import xids
from ...data.soak_limits import soak_limit
from ...facts.soak import SoakMinute

_FIRST = 3  # minutes whose rate the later ones are held against
_SHORT = 30.0  # seconds: the rate of less is no figure
_MEMORY = ("ecc_uncorrected", "remap_uncorrectable", "retired_pages", "remap_failed")
_HELD = {"hw_thermal_slowdown": "slowed down by heat", "hw_power_brake_slowdown": "power brake"}


class MinuteTold(NamedTuple):
    """What a minute's event says beside the record."""

    gpu: str  # its name for people and as a key: "GPU 0"
    outcome: str
    reason: str
    minute: SoakMinute


class MinuteWatch:
    """Remembers each GPU's first minutes."""

    def __init__(self) -> None:
        self._rates: dict[str, list[float]] = {}
        self._width: dict[str, int] = {}
        self._generation: dict[str, int] = {}  # the highest after the first minute

    def failures(self, told: MinuteTold) -> list[str]:
        """In a few words each; none where the minute was well."""
        minute = told.minute
        found = []
        if told.outcome in ("died", "hung", "error"):
            found.append(f"{told.outcome}: {told.reason}" if told.reason else told.outcome)
        if minute.wrong:
            found.append(f"{minute.wrong} wrong result{'' if minute.wrong == 1 else 's'}")
        grown = {name: minute.grown[name] for name in _MEMORY if minute.grown.get(name)}
        found += [f"{name.replace('_', ' ')} +{number:g}" for name, number in grown.items()]
        for number in dict.fromkeys(minute.xids):
            known = xids().get(number)
            if known is None or known.severity != "warn":
                found.append(f"Xid {number}")
        for name, words in _HELD.items():
            if minute.throttled.get(name, 0.0) >= soak_limit("throttled_share"):
                found.append(f"{words} in {minute.throttled[name]:.0%}")
        return found + self._less(told)

    def _less(self, told: MinuteTold) -> list[str]:
        minute, found = told.minute, []
        if minute.pcie_width is not None:
            before = self._width.setdefault(told.gpu, minute.pcie_width)
            if minute.pcie_width < before:
                found.append(f"PCIe x{minute.pcie_width}, was x{before}")
        if minute.pcie_gen is not None and minute.products:
            # The first minute does not count: an idle GPU slows its link down.
            reached = self._generation.get(told.gpu)
            self._generation[told.gpu] = 0 if reached is None else max(reached, minute.pcie_gen)
            if reached and minute.pcie_gen < reached:
                found.append(f"PCIe generation {minute.pcie_gen}, was {reached}")
        if minute.tflops is None or told.outcome != "ok" or minute.seconds < _SHORT:
            return found
        first = self._rates.setdefault(told.gpu, [])
        if len(first) < _FIRST:
            first.append(minute.tflops)
            return found
        usual = statistics.median(first)
        if usual > 0 and 1 - minute.tflops / usual >= soak_limit("rate_fall_fail"):
            found.append(f"{1 - minute.tflops / usual:.0%} slower than at first")
        return found
