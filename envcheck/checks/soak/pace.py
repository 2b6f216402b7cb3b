"""Whether the GPUs stayed as fast as they began, and as fast and as cool as their peers."""

from __future__ import annotations

import statistics

from ...data.soak_limits import soak_limit
from ...facts.soak import SoakGpu
from ..reading import CouldNotRun, Skip, SnapshotView
from ..verdicts import Cause, Passed, Verdicts, check, unjudged, warn
from .common import (
    Soaked,
    apart,
    mean_rate,
    rates,
    soak_check,
    soaked,
)

_LEAST = 4  # minutes for a fall to be one
_END = 0.1  # the share of minutes that are first, and last; three at least where there are six
LOOK = "nvidia-smi -q -d CLOCK,PERFORMANCE,POWER,TEMPERATURE -i {gpu}"


def fall(gpu: SoakGpu) -> tuple[float, float] | None:
    """(rate of the first minutes, of the last); None where there are too few."""
    found = rates(gpu)
    if len(found) < _LEAST:
        return None
    number = max(1, min(len(found) // 2, max(3, round(_END * len(found)))))
    return statistics.median(found[:number]), statistics.median(found[-number:])


_FELL = (
    "slowed down by {share:.1%} under load",
    "The rate fell by {share:.1%} from the first minutes to the last, from {first:.4g} to {last:.4g}"
    " TFLOP/s: long jobs run that much slower than short tests show.",
    "Check what holds its clocks down: cooling, the power limit, another process.",
    (LOOK,),
)
STOPPED = Cause("rate-fell-far", "fail", *_FELL)
SLOWED = Cause("rate-fell", "warn", *_FELL)


@soak_check(
    "SOAK-006",
    title="The rate did not fall",
    causes=(STOPPED, SLOWED),
    about="The median rate of the last tenth of the minutes is compared with that of the first. From 3 %"
    " on a fall is a warning, from 10 % on a failure.",
    sources=("envcheck/data/soak_limits.csv",),
    follows=("SOAK-009", "GPU-007", "GPU-008"),
)
def rate_stayed(view: SnapshotView, one: Soaked) -> Verdicts:
    if one.gpu.outcome == "ok" and not any(rate > 0 for rate in rates(one.gpu)):
        raise CouldNotRun("the rate: no minute has one")
    found = fall(one.gpu)
    if found is None or not found[0] > 0:
        raise Skip(f"the rate of fewer than {_LEAST} whole minutes")
    first, last = found
    share = 1.0 - last / first
    if share < soak_limit("rate_fall_warn"):
        yield Passed(f"within {soak_limit('rate_fall_warn'):.0%} of the first minutes")
        return
    yield one.found(
        STOPPED if share >= soak_limit("rate_fall_fail") else SLOWED,
        [one.evidence(view, "minutes", f"{first:.4g} to {last:.4g} TFLOP/s")],
        share=share,
        first=first,
        last=last,
    )


SLOWER = warn(
    "slower-than-peers",
    "is {below:.1%} slower than its peers under load",
    "Under the same load this GPU is {below:.1%} slower than its peers ({own:.4g} beside {peers:.4g}"
    " TFLOP/s): a job on all GPUs runs at its rate.",
    "Compare its cooling, its power limit and its clocks with those of the others.",
    "nvidia-smi --query-gpu=index,temperature.gpu,power.draw,power.limit,clocks.sm,fan.speed"
    " --format=csv",
    LOOK,
)


@check(
    "SOAK-007",
    title="No GPU was slower",
    causes=(SLOWER,),
    about="GPUs of one name that compute the same product at the same time are compared. One that is 5 %"
    " below the median of the others, and more than three median absolute deviations, is a warning.",
    sources=("envcheck/data/soak_limits.csv",),
    follows=("SOAK-006", "SOAK-009", "GPU-024", "GPU-029"),
)
def none_slower(view: SnapshotView) -> Verdicts:
    gpus = soaked(view)
    compared = {found.one.subject for found in apart(gpus)}
    for one in gpus:
        if one.gpu.outcome == "ok" and mean_rate(one.gpu) is None:
            why = CouldNotRun(f"the rate: {one.gpu.no_samples or 'no minute has it'}")
            yield unjudged(why, [one.subject])
        elif one.subject in compared:
            yield Passed("")  # unless a finding follows
        else:
            yield unjudged(Skip("the rate: no other GPU of its name"), [one.subject])
    for found in apart(gpus):
        below = 1.0 - found.value / found.usual if found.usual > 0 else 0.0
        if below >= soak_limit("slower_than_peers") and found.mads >= soak_limit("outlier_mads"):
            text = f"{found.value:.4g}; the median of {found.peers}: {found.usual:.4g}"
            shown = [found.one.evidence(view, "minutes", text)]
            params = {"own": found.value, "peers": found.usual, "below": below}
            yield found.one.found(SLOWER, shown, **params)
