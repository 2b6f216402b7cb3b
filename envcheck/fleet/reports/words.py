"""What a fleet's reports say in words, whatever they look like."""

from __future__ import annotations

from collections.abc import Sequence

from ...reports.headlines import phrase
from ...reports.plain import devices_named, few, number_of
from ..folder import Outcome
from ..model import (
    AttributeOutlier,
    FleetOutlier,
    FleetResult,
    ProblemGroup,
    RateOutlier,
    SharedFault,
    Split,
)

# Of more than these, the others are counted.
DEVICES = 4
LONGEST_VALUE = 60

OUTCOMES: dict[Outcome, str] = {
    "answered": "answered",
    "unreachable": "unreachable",
    "timed-out": "timed out",
    "failed": "failed",
    "unreadable": "its Snapshot cannot be read",
    "not-asked": "not asked",
}


def machines(number: int) -> str:
    """ "1 machine", "17 machines"."""
    return f"{number:,} machine{'' if number == 1 else 's'}"


def verdict(result: FleetResult) -> str:
    """ "26 of 40 machines are healthy (2 with warnings), 9 degraded, 2 broken, 3 did not answer"."""
    counts, warned = result.counts, _warned(result)
    verb = "is" if 1 in (counts.healthy, counts.machines) else "are"
    healthy = f"{counts.healthy:,} of {machines(counts.machines)} {verb} healthy"
    if not counts.machines:
        healthy = "no machine has a Snapshot"
    elif counts.healthy == counts.machines > 1:
        healthy = f"all {machines(counts.machines)} are healthy"
    healthy += f" ({warned:,} with warnings)" if warned else ""
    others = (
        (counts.degraded, "degraded"),
        (counts.broken, "broken"),
        (counts.silent - counts.unanswered, "could not be checked completely"),
    )
    parts = [f"{number:,} {what}" for number, what in others if number]
    return ", ".join([healthy, *parts, *without_snapshot(result)]) + _outliers(result)


def not_healthy(result: FleetResult) -> str:
    """ "2 broken, 9 degraded, 3 silent of 40 machines": what a page begins with."""
    counts = result.counts
    numbers = ((counts.broken, "broken"), (counts.degraded, "degraded"), (counts.silent, "silent"))
    parts = [f"{number:,} {what}" for number, what in numbers if number]
    found = ", ".join(parts) if parts or not counts.machines else "None broken, degraded or silent"
    return " of ".join(filter(None, (found, machines(counts.machines))))


def healthy(result: FleetResult) -> list[str]:
    """["26 healthy, 2 of them with warnings; 4 outliers"]"""
    warned = _warned(result)
    text = f"{result.counts.healthy:,} healthy"
    text += f", {warned:,} of them with warnings" if warned else ""
    return [text + _outliers(result)]


def without_snapshot(result: FleetResult) -> list[str]:
    """["3 did not answer", "2 cannot be read"]: whoever sent something else than a Snapshot did answer."""
    silent = [one for one in result.machines if one.state == "silent"]
    unread = sum(one.answer == "unreadable" for one in silent)
    mute = result.counts.unanswered - unread
    numbers = ((mute, "did not answer"), (unread, "cannot be read"))
    return [f"{number:,} {text}" for number, text in numbers if number]


def simulated(result: FleetResult) -> str:
    """Which machines are made up, "" for none: "2 of 3 machines: 8 × H100, healthy"."""
    made_up = [one.simulated for one in result.machines if one.simulated]
    kinds = list(dict.fromkeys(made_up))
    text = "; ".join(kinds[:2] + ([f"{len(kinds) - 2} more"] if len(kinds) > 2 else []))
    answered = sum(one.answer == "answered" for one in result.machines)
    some = 0 < len(made_up) < answered
    return f"{len(made_up)} of {machines(len(result.machines))}: {text}" if some else text


def outliers(result: FleetResult) -> set[str]:
    """Those that differ, or are slow, where no problem of theirs explains it."""
    found: list[FleetOutlier] = [*result.attribute_outliers, *result.rate_outliers]
    return {one.machine for one in found if not one.because}


def _outliers(result: FleetResult) -> str:
    count = len(outliers(result))
    return f"; {number_of(count, 'outlier')}" if count else ""


def _warned(result: FleetResult) -> int:
    return sum(bool(one.problems) for one in result.machines if one.state == "healthy")


def problem(group: ProblemGroup) -> str:
    """ "a GPU is throttled by heat"."""
    return phrase(group.headline or group.title, [], {})


def short_device(name: str) -> str:
    """ "GPU 3", of "GPU 3 NVIDIA H100 80GB HBM3 at 0000:61:00.0"; other names as they are."""
    kind, _, rest = name.partition(" ")
    number = rest.partition(" ")[0]
    return f"{kind} {number}" if kind == "GPU" and number.isdecimal() else name


def attribute_outlier(outlier: AttributeOutlier) -> str:
    """ "VBIOS 96.00.5E.00.01; 207 of 208 devices have 96.00.74.00.1A"."""
    of = f"{outlier.agree} of {outlier.of}{' devices' if outlier.per == 'device' else ''}"
    value = f"{outlier.words} {_value(outlier.value)}" if outlier.value else f"no {outlier.words}"
    usual = f"have {_value(outlier.usual)}" if outlier.usual else "have none"
    text = f"{value}; {of} {usual}{_with(outlier.also)}{since(outlier.first_seen)}"
    return _about(outlier.devices, text, outlier.because)


def rate_outlier(outlier: RateOutlier, also: int = 2) -> str:
    """ "GPU 6: FP16 at L0 529 TFLOP/s, 7.1 % below the median 569 of 208 (9.2 deviations)". also: how many
    further rates are text."""
    side = "below" if outlier.value <= outlier.median else "above"
    text = (
        f"{outlier.words} {_number(outlier.value)} {outlier.unit}, {outlier.below:.1%} {side}"
        f" the median {_number(outlier.median)} of {outlier.of} ({outlier.deviations:.1f} deviations)"
    )
    if outlier.also:
        text += f"; also {few(outlier.also, also)}"
    text += since(outlier.first_seen)
    devices = outlier.devices or [outlier.device] * bool(outlier.device)
    return _about(devices, text, outlier.because)


def since(first_seen: str) -> str:
    """ "; first seen 2026-01-01 00:00"."""
    return f"; first seen {minute(first_seen)}" if first_seen else ""


def minute(time: str) -> str:
    """ "2026-01-01 00:00" of a Snapshot's time; "" of none."""
    return time[:16].replace("T", " ")


def split(found: Split) -> str:
    """ "driver is split: 535.104.05 on 20, 535.129.03 on 18; with it: version of the fabric manager"."""
    camps = [f"{_value(camp.value) or 'none'} on {len(camp.machines)}" for camp in found.camps]
    return f"{found.words} is split: {few(camps, DEVICES, 'more values')}{_with(found.also)}"


def _with(also: Sequence[str]) -> str:
    return f"; with it: {few(also, DEVICES)}" if also else ""


def shared(fault: SharedFault) -> str:
    """ "rack-3 (group): 5 of 8 machines, and 1 elsewhere: GPU-008 a GPU is throttled by heat"."""
    elsewhere = f", and {fault.elsewhere} elsewhere" if fault.elsewhere else ", and none elsewhere"
    text = f"{fault.code} {phrase(fault.words, [], {})}".strip()
    return f"{place(fault)}: {len(fault.machines)} of {machines(fault.of)}{elsewhere}: {text}"


def place(fault: SharedFault) -> str:
    """ "rack-3 (group) = leaf2 (switch)": a place, and others with the same machines."""
    places = [(fault.kind, fault.name), *fault.also]
    return " = ".join(f"{_value(name)} ({kind})" for kind, name in places)


def silence(outcome: Outcome, reason: str) -> str:
    """ "unreachable: No route to host"."""
    return ": ".join(filter(None, (OUTCOMES[outcome], reason)))


def _about(names: Sequence[str], text: str, because: str) -> str:
    about = f"{devices_named(names)}: " if names else ""
    return about + text + (f" (see {because})" if because else "")


def _value(value: str) -> str:
    return value if len(value) <= LONGEST_VALUE else f"{value[: LONGEST_VALUE - 3]}..."


def _number(value: float) -> str:
    """Four digits."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
