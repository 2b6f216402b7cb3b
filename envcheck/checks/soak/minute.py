"""One minute of one GPU, judged while the soak runs: what is wrong with it already."""

from __future__ import annotations

from ...data import numbers
from ...data.kernel import xids
from ...facts.soak import SoakMinute

_MEMORY = ("ecc_uncorrected", "remap_uncorrectable", "retired_pages", "remap_failed")
_HELD = {"hw_thermal_slowdown": "slowed down by heat", "hw_power_brake_slowdown": "power brake"}


def failures(outcome: str, reason: str, minute: SoakMinute) -> list[str]:
    """In a few words each; none where the minute was well. outcome, reason: of the GPU by then."""
    found = []
    if outcome in ("died", "hung", "error"):
        found.append(f"{outcome}: {reason}" if reason else outcome)
    if minute.wrong:
        found.append(f"{minute.wrong} wrong result{'' if minute.wrong == 1 else 's'}")
    grown = {name: minute.grown[name] for name in _MEMORY if minute.grown.get(name)}
    found += [f"{name.replace('_', ' ')} +{number:g}" for name, number in grown.items()]
    for number in dict.fromkeys(minute.xids):
        known = xids().get(number)
        # An application's fault under a load of envcheck's own is the GPU's.
        if known is None or known.severity != "warn" or known.of_application:
            found.append(f"Xid {number}")
    for name, words in _HELD.items():
        if minute.throttled.get(name, 0.0) >= numbers("soak_limits")["throttled_share"]:
            found.append(f"{words} in {minute.throttled[name]:.0%}")
    return found
