"""Whether the GPUs stayed as fast and as cool as they began, and as their peers."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from ...data.soak_limits import soak_limit
from ...facts.soak import SoakGpu
from ...facts.view import SnapshotView
from ...findings.model import Finding, Passed, Remedy, Verdict
from ..registry import check
from .common import Apart, Soaked, apart, highest, mean_rate, rates, soaked, whole_minutes

_LEAST = 4  # minutes for a fall to be one
_END = 0.1  # the share of minutes that are first, and last; three at least where there are six
_LOOK = "nvidia-smi -q -d CLOCK,PERFORMANCE,POWER,TEMPERATURE -i {}"


def fall(gpu: SoakGpu) -> tuple[float, float] | None:
    """(rate of the first minutes, of the last); None where there are too few."""
    found = rates(gpu)
    if len(found) < _LEAST:
        return None
    number = max(1, min(len(found) // 2, max(3, round(_END * len(found)))))
    return statistics.median(found[:number]), statistics.median(found[-number:])


def throttled(gpu: SoakGpu) -> dict[str, float]:
    """Reason: the share of all samples that had it."""
    samples = sum(minute.samples for minute in gpu.minutes)
    found: dict[str, float] = {}
    for minute in gpu.minutes:
        for name, share in minute.throttled.items():
            found[name] = (
                found.get(name, 0.0) + share * minute.samples / samples if samples else 0.0
            )
    return found


def _suspect(gpu: SoakGpu) -> str:
    """What the samples show beside a lower rate."""
    shares = throttled(gpu)
    names = {
        "hw_thermal_slowdown": "heat holds its clocks down",
        "sw_thermal_slowdown": "heat holds its clocks down",
        "hw_power_brake_slowdown": "the power brake holds its clocks down",
        "hw_slowdown": "the hardware holds its clocks down",
    }
    for name, words in names.items():
        if shares.get(name, 0.0) >= soak_limit("throttled_share"):
            return f"; {words} in {shares[name]:.0%} of the samples"
    clocks = [one.sm_clock_mhz for one in whole_minutes(gpu) if one.sm_clock_mhz is not None]
    if len(clocks) >= _LEAST and clocks[-1] < 0.97 * clocks[0]:
        return f"; its clock fell from {clocks[0]:.0f} to {clocks[-1]:.0f} MHz"
    others = [one.other_processes or 0 for one in gpu.minutes]
    if any(others):
        return f"; {max(others)} other process{'' if max(others) == 1 else 'es'} used it, too"
    return ""


@check(
    "SOAK-006",
    title="The rate stayed",
    problem="slowed down under load",
    about="The rate of the same products in the last minutes of a soak beside that of the first ones, by the"
    " median of a tenth of the minutes, three at the least where there are six. From 3 % on a fall is a"
    " warning, from 10 % on a failure, with what the samples show beside it. A GPU warms up in the first"
    " minutes, and some percent less are normal where the power limit binds: ten minutes say more than two.",
    sources=("envcheck/data/soak_limits.csv",),
    follows=("SOAK-009", "GPU-007", "GPU-008"),
)
def rate_stayed(view: SnapshotView) -> Iterator[Verdict]:
    well = []
    for one in soaked(view):
        found = fall(one.gpu)
        if found is None or found[0] <= 0:
            continue
        first, last = found
        share = 1.0 - last / first
        if share < soak_limit("rate_fall_warn"):
            well.append(share)
            continue
        yield Finding(
            "fail" if share >= soak_limit("rate_fall_fail") else "warn",
            f"The rate fell by {share:.1%} from the first minutes to the last, from {first:.4g} to {last:.4g}"
            f" TFLOP/s{_suspect(one.gpu)}: long jobs run that much slower than short tests tell.",
            [one.subject],
            [one.evidence(view, "minutes", f"{first:.4g} to {last:.4g} TFLOP/s")],
            Remedy(
                "See what holds its clocks down: cooling, the power limit, another process.",
                [_LOOK.format(one.selected)],
            ),
            f"slowed down by {share:.1%} under load",
        )
    if well:
        yield Passed(f"within {max(0.0, *well):.1%} of the first minutes")


@check(
    "SOAK-007",
    title="No GPU was slower",
    problem="was slower than its peers under load",
    about="GPUs of one name that compute the same product at the same time: one that is 5 % below the median"
    " of the others, and more than three median absolute deviations, is a warning. A job on all of them runs"
    " at its rate.",
    sources=("envcheck/data/soak_limits.csv",),
    follows=("SOAK-006", "SOAK-009", "GPU-024", "GPU-029"),
)
def none_slower(view: SnapshotView) -> Iterator[Verdict]:
    for found in apart(soaked(view), mean_rate):
        below = 1.0 - found.value / found.usual if found.usual > 0 else 0.0
        if below >= soak_limit("slower_than_peers") and found.mads >= soak_limit("outlier_mads"):
            yield _away(
                view,
                found,
                f"is {below:.1%} slower than its peers ({found.value:.4g} beside {found.usual:.4g} TFLOP/s)"
                + _suspect(found.one.gpu),
                "a job on all GPUs runs at its rate",
            )
    yield Passed("")


@check(
    "SOAK-008",
    title="No GPU was hotter",
    problem="was hotter than its peers under load",
    about="Of three GPUs of one name or more, under the same load: one whose highest temperature is 8 °C"
    " above the median of the others, and more than three median absolute deviations, is a warning. Dust, a"
    " fan, paste, or its place in the chassis.",
    sources=("envcheck/data/soak_limits.csv",),
    follows=("GPU-007",),
)
def none_hotter(view: SnapshotView) -> Iterator[Verdict]:
    for found in apart(soaked(view), highest, least=3):
        above = found.value - found.usual
        if above >= soak_limit("hotter_than_peers_c") and found.mads >= soak_limit("outlier_mads"):
            yield _away(
                view,
                found,
                f"is {above:.0f} °C hotter than its peers ({found.value:.0f} °C beside {found.usual:.0f} °C)",
                "it is the first to be slowed down, and the first to fail",
            )
    yield Passed("")


def _away(view: SnapshotView, found: Apart, told: str, means: str) -> Finding:
    one: Soaked = found.one
    return Finding(
        "warn",
        f"Under the same load this GPU {told}: {means}.",
        [one.subject],
        [
            one.evidence(
                view,
                "minutes",
                f"{found.value:.4g}; the median of {found.peers}: {found.usual:.4g}",
            )
        ],
        Remedy(
            "Compare its cooling, its power limit and its clocks with those of the others.",
            [
                "nvidia-smi --query-gpu=index,temperature.gpu,power.draw,power.limit,clocks.sm,fan.speed"
                " --format=csv",
                _LOOK.format(one.selected),
            ],
        ),
        told.partition(" (")[0] + " under load",
    )


@check(
    "SOAK-009",
    title="Neither heat nor power brake",
    problem="was throttled under load",
    about="NVML's reasons for held-down clocks in the samples of a soak. The power cap is what a soak is to"
    " reach. The hardware's thermal slowdown or the power brake in one sample of a hundred is a failure, the"
    " driver's thermal slowdown or a hardware slowdown without a reason a warning.",
    sources=("nvml.h, nvmlClocksEventReason*", "envcheck/data/soak_limits.csv"),
    follows=("GPU-007", "GPU-008"),
)
def not_throttled(view: SnapshotView) -> Iterator[Verdict]:
    capped = []
    for one in soaked(view):
        shares = throttled(one.gpu)
        capped.append(shares.get("sw_power_cap", 0.0))
        for name, level, words in (
            ("hw_thermal_slowdown", "fail", "the hardware held its clocks down because of heat"),
            ("hw_power_brake_slowdown", "fail", "the power brake held its clocks down"),
            ("sw_thermal_slowdown", "warn", "the driver held its clocks down because of heat"),
            ("hw_slowdown", "warn", "the hardware held its clocks down"),
        ):
            share = shares.get(name, 0.0)
            if share < soak_limit("throttled_share"):
                continue
            cool = (
                "power supply, its cables and the rack's limits" if "brake" in name else "cooling"
            )
            yield Finding(
                "fail" if level == "fail" else "warn",
                f"Under load {words} in {share:.0%} of the samples: training runs below the GPU's speed.",
                [one.subject],
                [one.evidence(view, "minutes", f"{name}: {share:.1%} of the samples")],
                Remedy(f"Look at {cool}; then repeat the soak.", [_LOOK.format(one.selected)]),
                f"was throttled under load ({words})",
            )
            break
    yield Passed(f"at the power limit in {max(capped, default=0.0):.0%} of the samples")
