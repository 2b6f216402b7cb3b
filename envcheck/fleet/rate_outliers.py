"""What is slower on a machine than on most of its product. Pure.

Figures of one key, measured under the same circumstances, on all machines (and GPUs) of a product are one
population. A figure's deviation is the logarithm of what it is to the population's median; the spread of the
healthy is 1.4826 times the median of all absolute deviations (MAD), at least the standard deviation of those
within four of these, half a percent, and a quarter of what repetitions on one GPU are apart; and more where
machines are few: the spread of eight figures is itself a guess, and GPUs of one machine share its fate. A
figure is an outlier if it is

- at least 3 % worse than the median (5 % on one GPU is much; 1 % is nobody's fault),
- and further off than chance takes any of that many figures: a normal distribution's tail, divided by the
  number of all comparisons in the fleet, so that one fleet in a thousand has an outlier by chance,
- and worse than half of what its own repetitions are apart.

Each figure is compared with all others; on a machine of several GPUs also with the median of its own machine,
which shows one slow GPU where machines differ, or are few.

Where more than a quarter of the machines would be outliers, none is: the fleet is split.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import NormalDist, fmean, median

import msgspec

from ..attributes.model import Measurement
from . import attribute_outliers
from .model import JudgedMachine, MachineProblem, RateOutlier, Split
from .products import FEW

LEAST = 0.03
CHANCE = 0.001  # that any figure is an outlier by chance, in a fleet, for each kind of figure
_FLOOR = 0.005
_FIGURES = 8  # with fewer there is no spread
_GUESS = 12.0  # so many double it
_CLIP = 4.0  # deviations within so many spreads are of the healthy
_MANY = 0.25  # of the machines
_MATES = 3  # GPUs of a machine that one is held against
_ALSO = 40


class _Figure(msgspec.Struct):
    """One measured figure. deviation: of its population's median, in logarithms: slower is below 0."""

    machine: str
    measured: Measurement
    deviation: float = 0.0
    from_mates: float = 0.0  # the same of its own machine's median, where it has mates
    mates: bool = False
    of: int = 0
    sigmas: float = 0.0  # by which it is an outlier; 0: it is none
    below: float = 0.0
    against: float = 0.0  # the median that ``below`` is told of


def rate_outliers(
    products: dict[str, list[JudgedMachine]],
) -> tuple[list[RateOutlier], list[Split]]:
    """The slow ones of each product, and the rates that its machines are split in."""
    populations = {
        product: [p for p in _populations(machines) if len(p) >= _FIGURES]
        for product, machines in products.items()
    }
    count = sum(len(p) for these in populations.values() for p in these)
    if not count:
        return [], []
    far = -NormalDist().inv_cdf(CHANCE / (2 * count))
    outliers: list[RateOutlier] = []
    splits: list[Split] = []
    for product, these in populations.items():
        for population in these:
            _place(population)
            _one_by_one(population, far)
        found: dict[str, list[_Figure]] = {}
        for population in these:
            slow = [figure for figure in population if figure.sigmas]
            split = _split(product, population, slow)
            if split is not None:
                splits.append(split)
                continue
            for figure in slow:
                found.setdefault(figure.machine, []).append(figure)
        by_name = {machine.name: machine for machine in products[product]}
        outliers += [_told(product, by_name[name], figures) for name, figures in found.items()]
    return sorted(outliers, key=lambda one: (-one.below, one.machine)), splits


def _populations(machines: Iterable[JudgedMachine]) -> list[list[_Figure]]:
    found: dict[tuple[str, str], list[_Figure]] = {}
    for machine in machines:
        for rate in machine.rates:
            if rate.value > 0 and math.isfinite(rate.value):
                figure = _Figure(machine.name, rate)
                found.setdefault((rate.key, rate.under), []).append(figure)
    return list(found.values())


def _place(population: list[_Figure]) -> None:
    usual = median(figure.measured.value for figure in population)
    lower = population[0].measured.lower_is_better
    for figure in population:
        way = math.log(figure.measured.value) - math.log(usual)
        figure.deviation = -way if lower else way
        figure.of = len(population)
    machines: dict[str, list[_Figure]] = {}
    for figure in population:
        machines.setdefault(figure.machine, []).append(figure)
    for these in machines.values():
        middle = median(figure.deviation for figure in these)
        for figure in these:
            figure.mates = len(these) > _MATES
            figure.from_mates = figure.deviation - middle


def _scale(deviations: Sequence[float], independent: int, own: float = 0.0) -> float:
    """A robust standard deviation, with what is least and what few independent ones cost."""
    middle = median(deviations)
    found = 1.4826 * median(abs(one - middle) for one in deviations)
    healthy = [one - middle for one in deviations if abs(one - middle) <= _CLIP * found]
    clipped = math.sqrt(fmean(one * one for one in healthy)) if healthy else 0.0
    return max(found, clipped, own, _FLOOR) * (1 + _GUESS / independent)


def _judge(figure: _Figure, deviation: float, scale: float, far: float) -> None:
    """Mark a figure that is an outlier by this deviation."""
    if deviation > -far * scale or figure.sigmas:
        return
    below = 1 - math.exp(deviation)
    if below >= LEAST and below > (figure.measured.spread or 0) / 2:
        figure.sigmas = -deviation / scale
        figure.below = below
        figure.against = _back(figure, deviation)


def _back(figure: _Figure, deviation: float) -> float:
    """The median that lies so far from a figure."""
    lower = figure.measured.lower_is_better
    away = deviation if lower else -deviation
    return figure.measured.value * math.exp(min(away, 700.0))


def _one_by_one(population: list[_Figure], far: float) -> None:
    apart = [f.measured.spread for f in population if f.measured.spread is not None]
    own = median(apart) / 4 if apart else 0.0
    machines = len({figure.machine for figure in population})
    if machines > 1:
        scale = _scale([figure.deviation for figure in population], machines, own)
        for figure in population:
            _judge(figure, figure.deviation, scale, far)
    beside = [figure for figure in population if figure.mates]
    if len(beside) >= _FIGURES:
        scale = _scale([figure.from_mates for figure in beside], len(beside), own)
        for figure in beside:
            _judge(figure, figure.from_mates, scale, far)


def _split(product: str, population: list[_Figure], slow: list[_Figure]) -> Split | None:
    """More than a quarter of the machines that are slow in the same are no outliers."""
    names = {figure.machine for figure in population}
    slower = {figure.machine for figure in slow}
    if len(names) < FEW or len(slower) <= max(1.0, _MANY * len(names)):
        return None
    one = population[0].measured
    camps = {}
    for these in (names - slower, slower):
        values = [figure.measured.value for figure in population if figure.machine in these]
        if values:
            camps[f"about {median(values):.4g} {one.unit}"] = sorted(these)
    words = f"{one.words} ({one.under})" if one.under else one.words
    return Split(
        product=product, key=one.key, words=words, camps=attribute_outliers.camps_of(camps)
    )


def _told(product: str, machine: JudgedMachine, figures: list[_Figure]) -> RateOutlier:
    """All that is slow on a machine, by its worst figure."""
    worst = max(figures, key=lambda figure: figure.below)
    devices = _devices(figures)
    others = {
        figure.measured.words: figure.below
        for figure in sorted(figures, key=lambda figure: figure.below)
        if figure.measured.words != worst.measured.words
    }
    also = [f"{words}: {100 * below:.1f} % below" for words, below in reversed(others.items())]
    return RateOutlier(
        machine=machine.name,
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
        because=_because(machine.problems, devices),
    )


def _devices(figures: Iterable[_Figure]) -> list[str]:
    """Those that are slow; of pairs of GPUs that have one in common, that one."""
    found = list(dict.fromkeys(f.measured.device for f in figures if f.measured.device))
    pairs = [name.split(" to ") for name in found if " to " in name]
    single = [name for name in found if " to " not in name]
    if pairs:
        common = set(pairs[0]).intersection(*pairs[1:])
        covered = [pair for pair in pairs if set(pair) & {*single, *common}]
        if len(pairs) > 1:
            single += sorted(common - set(single))
        single += [" to ".join(pair) for pair in pairs if pair not in covered or len(pairs) == 1]
    return sorted(set(single), key=lambda name: (len(name), name))


def _because(problems: Iterable[MachineProblem], devices: Iterable[str]) -> str:
    """The problem that says why: of one of these devices, with the hardware or its clocks."""
    devices = list(devices)
    about = [
        problem.code
        for problem in problems
        if problem.code.startswith(("GPU-", "PCI-", "NET-", "MEM-"))
        and (
            any(attribute_outliers.is_about(problem, device) for device in devices)
            or not (devices and problem.devices)
        )
    ]
    return about[0] if about else ""
