"""What is slower on a machine than on most of its product. Pure.

Figures of one key, measured under the same circumstances, are compared with their median by the logarithm of
the ratio, in robust standard deviations (1.4826 times the MAD). An outlier is at least 3 % worse, further off
than chance takes one figure in 1,000 fleets, and worse than half of what its own repetitions are apart. On a
machine of several GPUs each is also compared with the others of its machine. Where more than a quarter of the
machines would be outliers, the fleet is split.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import NormalDist, fmean, median

import msgspec

from ..attributes.model import Measurement
from .attribute_outliers import camps_of, is_about
from .model import JudgedMachine, MachineProblem, RateOutlier, Split
from .products import FEW

LEAST = 0.03
CHANCE = 0.001  # that any figure is an outlier by chance, in a fleet
_FLOOR = 0.005
_FIGURES = 8  # with fewer there is no spread
_GUESS = 12.0  # so many double it
_CLIP = 4.0  # deviations within so many spreads are of the healthy
_MANY = 0.25  # of the machines
_MATES = 3  # GPUs of a machine that one is compared with
_ALSO = 40


class _Figure(msgspec.Struct):
    """One measured figure. deviation: from its population's median, in logarithms: slower is below 0.
    from_mates: the same from its own machine's median, None where it has too few mates. sigmas: by which it
    is an outlier; 0: it is none. against: the median that it is ``below``."""

    machine: str
    measured: Measurement
    deviation: float = 0.0
    from_mates: float | None = None
    of: int = 0
    sigmas: float = 0.0
    below: float = 0.0
    against: float = 0.0


def rate_outliers(
    products: dict[str, list[JudgedMachine]],
) -> tuple[list[RateOutlier], list[Split]]:
    """The slow ones of each product, and the rates that its machines are split in."""
    populations = [
        (product, population)
        for product, machines in products.items()
        for population in _populations(machines)
        if len(population) >= _FIGURES
    ]
    count = sum(len(population) for _, population in populations)
    if not count:
        return [], []
    far = -NormalDist().inv_cdf(CHANCE / (2 * count))
    slow: dict[tuple[str, str], list[_Figure]] = {}
    splits: list[Split] = []
    for product, population in populations:
        _judge_all(population, far)
        found = [figure for figure in population if figure.sigmas]
        names = {figure.machine for figure in population}
        slower = {figure.machine for figure in found}
        if len(names) >= FEW and len(slower) > max(1.0, _MANY * len(names)):
            splits.append(_split(product, population, names, slower))
            continue
        for figure in found:
            slow.setdefault((product, figure.machine), []).append(figure)
    problems = {one.name: one.problems for machines in products.values() for one in machines}
    outliers = [
        _outlier(product, figures, problems[machine])
        for (product, machine), figures in slow.items()
    ]
    return sorted(outliers, key=lambda one: (-one.below, one.machine)), splits


def _populations(machines: Iterable[JudgedMachine]) -> list[list[_Figure]]:
    found: dict[tuple[str, str], list[_Figure]] = {}
    for machine in machines:
        for rate in machine.rates:
            if rate.value > 0 and math.isfinite(rate.value):
                figure = _Figure(machine.name, rate)
                found.setdefault((rate.key, rate.under), []).append(figure)
    return list(found.values())


def _judge_all(population: list[_Figure], far: float) -> None:
    usual = median(figure.measured.value for figure in population)
    machines: dict[str, list[_Figure]] = {}
    for figure in population:
        way = math.log(figure.measured.value) - math.log(usual)
        figure.deviation = -way if figure.measured.lower_is_better else way
        figure.of = len(population)
        machines.setdefault(figure.machine, []).append(figure)
    beside = [figure for mates in machines.values() if len(mates) > _MATES for figure in mates]
    for mates in machines.values():
        middle = median(figure.deviation for figure in mates)
        for figure in mates if len(mates) > _MATES else ():
            figure.from_mates = figure.deviation - middle
    apart = [f.measured.spread for f in population if f.measured.spread is not None]
    own = median(apart) / 4 if apart else 0.0
    if len(machines) > 1:
        scale = _scale([figure.deviation for figure in population], len(machines), own)
        for figure in population:
            _judge(figure, figure.deviation, scale, far)
    if len(beside) >= _FIGURES:
        scale = _scale([figure.from_mates or 0.0 for figure in beside], len(beside), own)
        for figure in beside:
            _judge(figure, figure.from_mates or 0.0, scale, far)


def _scale(deviations: Sequence[float], independent: int, own: float) -> float:
    """A robust standard deviation, with what is least and what few independent ones cost."""
    middle = median(deviations)
    found = 1.4826 * median(abs(one - middle) for one in deviations)
    healthy = [one - middle for one in deviations if abs(one - middle) <= _CLIP * found]
    clipped = math.sqrt(fmean(one * one for one in healthy)) if healthy else 0.0
    return max(found, clipped, own, _FLOOR) * (1 + _GUESS / independent)


def _judge(figure: _Figure, deviation: float, scale: float, far: float) -> None:
    """Mark a figure that is an outlier by this deviation."""
    below = 1 - math.exp(min(deviation, 0.0))
    if figure.sigmas or deviation > -far * scale:
        return
    if below >= LEAST and below > (figure.measured.spread or 0) / 2:
        away = deviation if figure.measured.lower_is_better else -deviation
        figure.sigmas, figure.below = -deviation / scale, below
        figure.against = figure.measured.value * math.exp(min(away, 700.0))


def _split(product: str, population: list[_Figure], names: set[str], slower: set[str]) -> Split:
    one = population[0].measured
    camps = {}
    for camp in (names - slower, slower):
        values = [figure.measured.value for figure in population if figure.machine in camp]
        if values:
            camps[f"about {median(values):.4g} {one.unit}"] = sorted(camp)
    words = f"{one.words} ({one.under})" if one.under else one.words
    return Split(product=product, key=one.key, words=words, camps=camps_of(camps))


def _outlier(
    product: str, figures: list[_Figure], problems: Iterable[MachineProblem]
) -> RateOutlier:
    """All that is slow on a machine, by its worst figure."""
    worst = max(figures, key=lambda figure: figure.below)
    others = {
        figure.measured.words: figure.below
        for figure in sorted(figures, key=lambda figure: figure.below)
        if figure.measured.words != worst.measured.words
    }
    also = [f"{words}: {100 * below:.1f} % below" for words, below in reversed(others.items())]
    devices = _devices(figures)
    return RateOutlier(
        machine=worst.machine,
        product=product,
        key=worst.measured.key,
        words=worst.measured.words,
        value=worst.measured.value,
        unit=worst.measured.unit,
        median=worst.against,
        below=worst.below,
        deviations=worst.sigmas,
        of=worst.of,
        device=worst.measured.device,
        under=worst.measured.under,
        devices=devices,
        also=also[:_ALSO],
        because=_because(problems, devices),
    )


def _devices(figures: Iterable[_Figure]) -> list[str]:
    """Those that are slow; of several pairs of GPUs that have one in common, that one."""
    found = list(dict.fromkeys(f.measured.device for f in figures if f.measured.device))
    pairs = [set(name.split(" to ")) for name in found if " to " in name]
    common = set.intersection(*pairs) if len(pairs) > 1 else set()
    named = [name for name in found if " to " not in name or not set(name.split(" to ")) & common]
    return sorted({*named, *common}, key=lambda name: (len(name), name))


def _because(problems: Iterable[MachineProblem], devices: Sequence[str]) -> str:
    """The code of the problem that explains it: of one of these devices, with the hardware or its clocks."""
    for problem in problems:
        if problem.code.startswith(("GPU-", "PCI-", "NET-", "MEM-")):
            same = any(is_about(problem, device) for device in devices)
            if same or not (devices and problem.devices):
                return problem.code
    return ""
