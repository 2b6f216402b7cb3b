"""What NVML said of each GPU while the rows of a bench ran: clocks, temperature, power."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ...bench.records import RowResult
from ...facts.telemetry import GpuSamples
from .. import html_page as html
from ..plots.lines import Band, Curve, lines
from ..plots.thin import Point

_CURVES = 16
_GAP = 3.0  # seconds without a sample, which break a curve
# The columns of samples that are drawn: what each is, its unit, and whether its axis begins at zero.
_OVER_TIME = {
    "sm_clock_mhz": ("SM clock", "MHz", True),
    "temperature_c": ("Temperature", "°C", False),
    "power_w": ("Power", "W", True),
}


def over_time(results: Sequence[RowResult], gpus: Mapping[str, str]) -> Iterator[str]:
    """A plot for each of them; nothing where nothing was sampled."""
    samples: dict[str, list[GpuSamples]] = {}
    for result in results:
        for one in result.run.samples:
            samples.setdefault(one.gpu, []).append(one)
    for key, (title, unit, from_zero) in _OVER_TIME.items():
        curves = [
            Curve(name=f"GPU {gpus.get(address, address)}", points=points)
            for address, parts in list(samples.items())[:_CURVES]
            if (points := _points(parts, key))
        ]
        if curves:
            name = key.replace("_", "-")
            bands = _bands(results)
            drawn = lines(name, title, unit, curves, bands=bands, from_zero=from_zero)
            yield html.plot(drawn, f"{title} over time")


def _points(parts: list[GpuSamples], key: str) -> list[Point]:
    """Of several rows, which may have been measured in turn, one curve; broken where nothing was sampled."""
    values: dict[float, float | None] = {}
    for part in parts:
        values.update(zip(part.seconds, part.values.get(key, []), strict=False))
    times = sorted(values)
    if not any(value is not None for value in values.values()):
        return []
    points: list[Point] = []
    for time in times:
        if points and time - points[-1][0] > _GAP:
            points.append((time, None))
        points.append((time, values[time]))
    return points


def _bands(results: Sequence[RowResult]) -> list[Band]:
    """When the repetitions of each group were measured."""
    groups: dict[str, list[float]] = {}
    for result in results:
        name = result.run.row.group or result.run.row.name
        for one in result.run.repetitions:
            groups.setdefault(name, []).extend((one.began, one.began + one.seconds))
    return [Band(min(times), max(times), name) for name, times in groups.items()]
