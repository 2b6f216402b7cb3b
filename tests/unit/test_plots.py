"""Plots: well-formed, nothing beyond the edges, thinned without losing a peak; foreign text stays text."""

from __future__ import annotations

import math
import re
from xml.etree import ElementTree as ET

import pytest
from hostile import MARKUP

from envcheck.reports import html
from envcheck.reports.plots import Curve, Point, lines, thinned

_SVG = "{http://www.w3.org/2000/svg}"
ODD = [0.0, -0.0, 1e-320, 5e-324, 1e-300, 1e15, -1e15, 1e308, math.inf, -math.inf, math.nan, 3.5]


def parsed(drawn: str) -> ET.Element:
    return ET.fromstring(drawn)


def inside(drawn: str) -> None:
    """Every place of the drawing lies within its view box."""
    root = parsed(drawn)
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    for one in root.iter():
        x, y = float(one.get("x", 0)), float(one.get("y", 0))
        x += float(one.get("width", 0))
        y += float(one.get("height", 0))
        if one.tag == f"{_SVG}text":
            x += {"": 1, "end": 0, "middle": 0.5}[one.get("text-anchor", "")] * html.width_of(
                one.text or ""
            )
        assert -0.1 <= x <= width + 0.1 and -0.1 <= y <= height + 0.1, ET.tostring(one)
        for a, b in re.findall(r"[ML](-?[\d.]+) (-?[\d.]+)", one.get("d", "")):
            assert 0 <= float(a) <= width and 0 <= float(b) <= height


def test_a_curve_is_broken_where_there_is_no_value() -> None:
    drawn = lines("x", "", "MHz", [Curve(name="a", points=[(0, 1.0), (1, None), (2, 2.0)])])
    (path,) = [
        one for one in parsed(drawn).iter(f"{_SVG}path") if one.find(f"{_SVG}title") is not None
    ]
    assert path.attrib["d"].count("M") == 2


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("other", ODD)
def test_no_number_breaks_a_plot(odd: float, other: float) -> None:
    points: list[Point] = [(odd, other), (other, odd), (1.0, None)]
    inside(lines("a", "", "x", [Curve(name="a", points=points)]))


@pytest.mark.parametrize("foreign", MARKUP)
def test_foreign_text_stays_text(foreign: str) -> None:
    curve = Curve(name=foreign, points=[(0, 1.0), (1, 2.0)])
    drawn = lines("a", foreign, foreign, [curve])
    inside(drawn)
    allowed = {"svg", "title", "desc", "text", "path"}
    assert {one.tag.removeprefix(_SVG) for one in parsed(drawn).iter()} <= allowed
    for one in parsed(drawn).iter():
        assert not [name for name in one.attrib if name.startswith("on") or "href" in name]
    assert re.sub(r"\n", "", drawn).isprintable()


def test_thinned_keeps_the_ends_and_every_peak() -> None:
    points: list[Point] = [(float(t), 5.0) for t in range(100_000)]
    points[41_234] = (41_234.0, 99.0)
    points[77_777] = (77_777.0, -3.0)
    points[5] = (5.0, None)
    kept = thinned(points, 300)
    assert len(kept) <= 302 and kept == sorted(kept, key=lambda point: point[0])
    assert {points[0], points[-1], points[41_234], points[77_777]} <= {*kept}
    assert thinned(points[:20], 300) == points[:20]
