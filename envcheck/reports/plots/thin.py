"""Thins out samples: as few points as a plot can show, and no peak of them lost."""

from __future__ import annotations

from collections.abc import Sequence

Point = tuple[float, float | None]  # None: there was no value, and the curve is broken here


def thinned(points: Sequence[Point], most: int = 300) -> list[Point]:
    """About ``most`` points: of each stretch its least and its largest in their order, and both ends."""
    if len(points) <= most:
        return list(points)
    size = 2 * len(points) / most
    kept: list[Point] = [points[0]]
    for number in range(most // 2):
        stretch = points[
            max(1, int(number * size)) : min(len(points) - 1, int((number + 1) * size))
        ]
        kept += _ends(stretch)
    return [*kept, points[-1]]


def _ends(stretch: Sequence[Point]) -> list[Point]:
    values = [(value, place) for place, (_, value) in enumerate(stretch) if value is not None]
    if not values:
        return list(stretch[:1])
    return [stretch[place] for place in sorted({min(values)[1], max(values)[1]})]
