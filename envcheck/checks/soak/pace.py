"""Whether the GPUs stayed as fast as they began, and as fast as their peers."""

from __future__ import annotations

import statistics

from ...data import numbers
from ..declared import declared_causes
from ..reading import CouldNotRun, Skip, SnapshotView, known
from ..verdicts import Finding
from .common import Soaked, median_rate, rates, soak_check, soaked

CAUSE = declared_causes(__name__)

_LEAST = 4  # minutes for a fall to be one
_END = 0.1  # the share of minutes that are first, and last; three at least where there are six
LOOK = "nvidia-smi -q -d CLOCK,PERFORMANCE,POWER,TEMPERATURE -i {gpu}"


@soak_check("SOAK-006")
def rate_stayed(view: SnapshotView, one: Soaked) -> Finding | str:
    found = rates(one.gpu)
    if one.gpu.outcome == "ok" and not any(rate > 0 for rate in found):
        raise CouldNotRun("the rate: no minute has one")
    number = max(1, min(len(found) // 2, max(3, round(_END * len(found)))))
    first = statistics.median(found[:number]) if len(found) >= _LEAST else 0.0
    if not first > 0:
        raise Skip(f"the rate of fewer than {_LEAST} whole minutes")
    last = statistics.median(found[-number:])
    share = 1.0 - last / first
    if share < numbers("soak_limits")["rate_fall_warn"]:
        return f"within {numbers('soak_limits')['rate_fall_warn']:.0%} of the first minutes"
    cause = (
        CAUSE["rate-fell-far"]
        if share >= numbers("soak_limits")["rate_fall_fail"]
        else CAUSE["rate-fell"]
    )
    shown = one.evidence(view, "minutes", f"{first:.4g} to {last:.4g} TFLOP/s")
    return one.found(cause, shown, share=share, first=first, last=last)


@soak_check("SOAK-007")
def none_slower(view: SnapshotView, one: Soaked) -> Finding | str:
    mine = median_rate(one.gpu)
    if mine is None and one.gpu.outcome == "ok":
        raise CouldNotRun(f"the rate: {one.gpu.no_samples or 'no minute has it'}")
    others = [
        rate
        for other in soaked(view)
        if other.place != one.place
        and known(other.gpu.name) == known(one.gpu.name)
        and (other.gpu.level, other.gpu.mode) == (one.gpu.level, one.gpu.mode)
        and (rate := median_rate(other.gpu)) is not None
    ]
    if mine is None or not others:
        raise Skip("the rate: no other GPU of its name")
    usual = statistics.median(others)
    deviation = 1.4826 * statistics.median(abs(other - usual) for other in others)
    below = 1.0 - mine / usual if usual > 0 else 0.0
    far = abs(mine - usual) >= numbers("soak_limits")["outlier_mads"] * deviation
    if not (below >= numbers("soak_limits")["slower_than_peers"] and far):
        return ""
    text = f"{mine:.4g}; the median of {len(others)}: {usual:.4g}"
    shown = one.evidence(view, "minutes", text)
    return one.found(CAUSE["slower-than-peers"], shown, own=mine, peers=usual, below=below)
