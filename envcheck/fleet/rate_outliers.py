"""What is slower on a machine than on most of its product. Pure.

Figures of one key, measured under the same circumstances, are compared with their median by the logarithm of
the ratio. All rates of a device are also averaged into one figure: their noise averages out, and fewer
figures can be mistaken. An outlier is at least 3 % worse, and further off than chance takes one figure in
1,000 fleets, by Student's t of a standard deviation without outliers. On a machine of several GPUs each is
also compared with the others of its machine. Where more than a quarter of the machines would be outliers, the
fleet is split.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from statistics import NormalDist, fmean, median

import msgspec

from ..attributes.model import Measurement
from ..reports.plain import together
from .attribute_outliers import camps_of, is_about
from .model import JudgedMachine, MachineProblem, RateOutlier, Split
from .products import FEW

LEAST = 0.03
CHANCE = 0.001  # that any figure is an outlier by chance, in a fleet
# The same, and that of one figure, for averages of so many looks: what they name is slow each time, be it
# faulty or the slowest of seven thousand healthy chips.
LOOKS, CHANCE_OF_LOOKS, CHANCE_OF_CHIP = 3, 0.02, 1.5e-4
_FLOOR = 0.005
_FIGURES = 8  # with fewer there is no spread
_CLIP = 3.0  # standard deviations beyond which a figure does not count into them
_GUESS = 12.0  # machines of which the spread is known to a half
_CLIPPED = 0.9866  # the variance that a normal distribution has within these
_MANY = 0.25  # of the machines
_MATES = 3  # GPUs of a machine that one is compared with
_BY_MATES = 0.1  # of the chance is for comparisons within machines
_ALSO = 40
_MEASURED = ("key", "words", "value", "unit", "device", "under")  # fields of an outlier, too


class _Figure(msgspec.Struct):
    """One measured figure. deviation: from its population's median, in logarithms: slower is below 0.
    sigmas: by which it is an outlier; 0: it is none. against: the median that it is ``below``."""

    machine: str
    measured: Measurement
    deviation: float = 0.0
    of: int = 0
    sigmas: float = 0.0
    below: float = 0.0
    against: float = 0.0


_Population = list[_Figure]


def rate_outliers(
    products: dict[str, list[JudgedMachine]],
) -> tuple[list[RateOutlier], list[Split]]:
    """The slow ones of each product, and the rates that its machines are split in."""
    single = {product: _populations(machines) for product, machines in products.items()}
    averages = {product: _of_one_kind(populations) for product, populations in single.items()}
    looks = [one.looks for machines in products.values() for one in machines if one.rates]
    repeated = bool(looks) and median(looks) >= LOOKS
    slow: dict[tuple[str, str], list[_Figure]] = {}
    splits: list[Split] = []
    for found in (single, averages):
        count = sum(len(population) for several in found.values() for population in several) or 1
        chance = CHANCE / count
        if repeated and found is averages:
            chance = max(CHANCE_OF_LOOKS / count, CHANCE_OF_CHIP)
        for product, populations in found.items():
            for population in populations:
                slower = _slower(population, chance)
                split = _split(product, population, slower)
                splits += split if found is single else []
                for figure in [] if split else slower:
                    slow.setdefault((product, figure.machine), []).append(figure)
    problems = {one.name: one.problems for machines in products.values() for one in machines}
    outliers = [
        _outlier(product, figures, problems[machine])
        for (product, machine), figures in slow.items()
    ]
    return sorted(outliers, key=lambda one: (-one.below, one.machine)), splits


def _populations(machines: Iterable[JudgedMachine]) -> list[_Population]:
    """Of enough figures to have a spread, with each figure's deviation."""
    found = together(
        ((rate.key, rate.under), _Figure(machine.name, rate))
        for machine in machines
        for rate in machine.rates
        if rate.value > 0 and math.isfinite(rate.value)
    )
    populations = [population for population in found.values() if len(population) >= _FIGURES]
    for population in populations:
        usual = math.log(median(figure.measured.value for figure in population))
        for figure in population:
            way = math.log(figure.measured.value) - usual
            figure.deviation = -way if figure.measured.lower_is_better else way
    return populations


def _of_one_kind(populations: Iterable[_Population]) -> list[_Population]:
    """All rates of one kind ("kernels") of a device as one figure, in per cent of their medians."""
    devices = together(
        ((one.measured.key.partition(".")[0], one.machine, one.measured.device), one)
        for population in populations
        for one in population
    )
    found: dict[str, _Population] = {}
    for (kind, machine, device), figures in devices.items():
        if len(figures) > 1:
            mean = fmean(figure.deviation for figure in figures)
            apart = [figure.measured.spread for figure in figures if figure.measured.spread]
            rate = Measurement(
                key=kind,
                words="all its rates together",
                value=100 * math.exp(mean),
                unit="%",
                device=device,
                spread=fmean(apart) / math.sqrt(len(apart)) if apart else None,
            )
            figure = _Figure(machine, rate, deviation=mean)
            found.setdefault(kind, []).append(figure)
    return [population for population in found.values() if len(population) >= _FIGURES]


def _slower(population: _Population, chance: float) -> list[_Figure]:
    """Those that are outliers. chance: that one figure is one by chance."""
    machines = together((figure.machine, figure) for figure in population)
    apart = [one.measured.spread for one in population if one.measured.spread is not None]
    least = max(median(apart) / 4 if apart else 0.0, _FLOOR)
    beside = [pair for mates in machines.values() for pair in _beside(mates)]
    by_mates = _BY_MATES * chance if len(beside) >= _FIGURES else 0.0
    if len(machines) > 1:
        everywhere = [(figure, figure.deviation) for figure in population]
        middles = [median(one.deviation for one in mates) for mates in machines.values()]
        # as far as machines differ, the figures of one count as one
        same = _spread(middles) / (_spread([way for _, way in everywhere]) or 1.0)
        single = min(same**2 * (1 + _GUESS / len(machines)), 1.0)
        independent = min(len(machines) / (single or 1.0), len(population))
        _mark(everywhere, independent, chance - by_mates, least)
    if by_mates:
        _mark(beside, len(beside), by_mates, least)
    return [figure for figure in population if figure.sigmas]


def _beside(mates: list[_Figure]) -> Iterator[tuple[_Figure, float]]:
    """Each with its deviation from the median of the others of its machine, of which there are enough."""
    ordered = sorted(mates, key=lambda one: one.deviation)
    middle = (len(mates) - 2) // 2, (len(mates) - 1) // 2
    for rank, one in enumerate(ordered) if len(mates) > _MATES else ():
        low, high = (ordered[place + (place >= rank)].deviation for place in middle)
        yield one, one.deviation - (low + high) / 2


def _mark(
    figures: Sequence[tuple[_Figure, float]], independent: float, chance: float, least: float
) -> None:
    """Mark those that are outliers by this deviation."""
    scale = max(_spread([deviation for _, deviation in figures]), least)
    far = _student(chance, 0.8 * independent - 2) * scale
    for figure, deviation in figures:
        below = 1 - math.exp(min(deviation, 0.0))
        if figure.sigmas or deviation > -far or below < LEAST:
            continue
        if below > (figure.measured.spread or 0) / 2:
            away = deviation if figure.measured.lower_is_better else -deviation
            figure.sigmas, figure.below, figure.of = -deviation / scale, below, len(figures)
            figure.against = figure.measured.value * math.exp(min(away, 700.0))


def _spread(deviations: Sequence[float]) -> float:
    """The standard deviation of those that are no outliers by the MAD."""
    middle = median(deviations)
    most = _CLIP * 1.4826 * median(abs(one - middle) for one in deviations)
    squares = [(one - middle) ** 2 for one in deviations if abs(one - middle) <= most]
    return math.sqrt(fmean(squares) / _CLIPPED) if squares else 0.0


def _student(chance: float, freedom: float) -> float:
    """How many estimated standard deviations have this chance: Student's t (Abramowitz & Stegun 26.7.5)."""
    z, n = -NormalDist().inv_cdf(chance), max(freedom, 3.0)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    return z + sum(term / n**power for power, term in enumerate(terms, 1))


def _split(product: str, population: _Population, slower: Sequence[_Figure]) -> list[Split]:
    """Where many of the machines would be outliers."""
    names = {figure.machine for figure in population}
    slow = {figure.machine for figure in slower}
    if len(names) < FEW or len(slow) <= max(1.0, _MANY * len(names)):
        return []
    one = population[0].measured
    camps = {}
    for camp in (names - slow, slow):
        values = [figure.measured.value for figure in population if figure.machine in camp]
        if values:
            camps[f"about {median(values):.4g} {one.unit}"] = sorted(camp)
    words = f"{one.words} ({one.under})" if one.under else one.words
    return [Split(product=product, key=one.key, words=words, camps=camps_of(camps))]


def _outlier(
    product: str, figures: list[_Figure], problems: Iterable[MachineProblem]
) -> RateOutlier:
    """All that is slow on a machine, by its worst figure; averages where nothing else is."""
    devices = _devices(figures)
    single = [figure for figure in figures if "." in figure.measured.key] or figures
    worst = max(single, key=lambda figure: figure.below)
    others = {
        figure.measured.words: figure.below
        for figure in sorted(single, key=lambda figure: figure.below)
        if figure.measured.words != worst.measured.words
    }
    also = [f"{words}: {100 * below:.1f} % below" for words, below in reversed(others.items())]
    return RateOutlier(
        **{name: getattr(worst.measured, name) for name in _MEASURED},
        machine=worst.machine,
        product=product,
        median=worst.against,
        below=worst.below,
        deviations=worst.sigmas,
        of=worst.of,
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
