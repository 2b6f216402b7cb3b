"""The process of a row of shapes: rounds over all of them on a made-up clock, and what is told of them."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import msgspec
import pytest

from envcheck.bench import shapes as judging
from envcheck.collector.bench import records, shapes
from envcheck.collector.facts import dumps
from envcheck.collector.kernels.failures import NotSupported
from envcheck.facts.bench import RowRun, ShapeRate


class MadeUpWork:
    """One operation of a made-up framework: an odd edge takes four times as long."""

    def __init__(self, side: MadeUpSide, sizes: tuple[int, ...]) -> None:
        self.side, self.sizes = side, sizes

    def once(self) -> None:
        self.side.now += 0.001

    def seconds(self, count: int) -> float:
        if self.sizes[1] == self.side.breaks:
            raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB")
        took = count * 1e-6 * (4 if self.sizes[-2] % 2 else 1)
        self.side.now += took
        self.side.order.append(self.sizes[-2])
        return took


class MadeUpSide:
    timer = "host-clock"

    def __init__(self, breaks: int = 0, lacks: str = "") -> None:
        self.now, self.breaks, self.lacks = 0.0, breaks, lacks
        self.order: list[int] = []

    def switch(self, setting: str) -> None:
        if setting == self.lacks:
            raise NotSupported("no switch")

    def call(self, setting: str) -> str:
        return f"made_up.matmul, {setting}"

    def product(self, setting: str, element_type: str, sizes: tuple[int, ...]) -> MadeUpWork:
        return MadeUpWork(self, sizes)

    def convolution(self, setting: str, element_type: str, sizes: tuple[int, ...]) -> MadeUpWork:
        return MadeUpWork(self, sizes)


def work(side: MadeUpSide, precision: str = "fp32", half: str = "", small: bool = True) -> Any:
    row = {"precision": precision, "half": half, "small": small}
    return shapes.ShapesAtWork(side, row, False, lambda: side.now)


def heard(told: list[dict[str, Any]]) -> records.RowReader:
    found = records.RowReader()
    with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError):
        found.take("result", json.loads(dumps(told)), "shapes")
    return found


def test_each_round_has_every_shape_once_and_in_turn() -> None:
    side = MadeUpSide()
    at_work = work(side)
    at_work.run(1)
    side.order.clear()
    at_work.run(2)
    once = [one["edge"] for one in at_work.shapes()]
    assert side.order == once * 2
    assert all(len(one["seconds"]) == 3 for one in at_work.shapes())


def test_every_multiple_stands_beside_every_round_number() -> None:
    for small, multiples in ((False, set(judging.MULTIPLES)), (True, {1, 8, 16, 64})):
        planned = shapes.planned(small)
        for key in {(operation, around) for operation, _edge, around, _sizes in planned}:
            edges = [
                edge for operation, edge, around, _sizes in planned if (operation, around) == key
            ]
            assert {judging.multiple_of(edge) for edge in edges} >= multiples
            assert {key[1] - 1, key[1], key[1] + 1} <= set(edges)
        for operation, edge, around, sizes in planned:
            bare = ShapeRate(
                operation="product" if operation == "product" else "convolution",
                sizes=sizes,
                edge=edge,
                around=around,
                dtype="",
            )
            assert judging.operations(bare) > 0


def test_what_is_told_is_judged() -> None:
    at_work = work(MadeUpSide())
    at_work.run(3)
    told = heard(at_work.shapes()).run["shapes"]
    (row,) = judging.rows("torch", None, small=True)
    run = msgspec.convert(
        {"row": msgspec.to_builtins(row), "outcome": "ok", "shapes": told}, RowRun
    )
    result = judging.shapes_of(run)
    assert result is not None and result.dtype == "float32"
    off = {one.shape.edge: one for one in result.shapes if one.shape.operation == "product"}
    assert off[63].loses and off[63].share == pytest.approx(63**2 / 64**2 / 4, rel=0.01)
    assert [step.multiple for step in result.steps] == [8, 8]


def test_one_that_does_not_fit_costs_no_more_than_itself() -> None:
    at_work = work(MadeUpSide(breaks=65))
    at_work.run(2)
    lost = [one for one in at_work.shapes() if one["reason"]]
    assert [(one["operation"], one["edge"]) for one in lost] == [("product", 65)]
    assert "out-of-memory" in lost[0]["reason"]


def test_without_time_the_rest_says_so() -> None:
    side = MadeUpSide()
    at_work = work(side)
    at_work.run(1)
    side.now += shapes.BUDGET
    at_work.run(1)
    assert all(len(one["seconds"]) == 1 and not one["reason"] for one in at_work.shapes())
    late = work(side)
    side.now += shapes.BUDGET
    late.run(1)
    assert all("no time left" in one["reason"] for one in late.shapes())


def test_a_version_without_a_switch_runs_tf32_as_it_is() -> None:
    lacks = work(MadeUpSide(lacks="switch-on"), precision="tf32")
    assert lacks.evidence()["setting"] == "made_up.matmul, default"
    with pytest.raises(NotSupported):
        work(MadeUpSide(lacks="switch-off"))
    half = work(MadeUpSide(), precision="half", half="float16")
    assert half.shapes()[0]["dtype"] == "float16"


@pytest.mark.parametrize(
    "change",
    [
        {"operation": "sum"},
        {"sizes": [1 << 30]},
        {"sizes": "abc"},
        {"seconds": [-1.0]},
        {"seconds": [float("inf")]},
        {"kernels": {"unavailable": "tired"}},
        {"edge": None},
    ],
)
def test_what_is_no_shape_is_not_heard(change: dict[str, Any]) -> None:
    at_work = work(MadeUpSide())
    found = heard([{**at_work.shapes()[0], **change}])
    assert "shapes" not in found.run


def test_what_is_told_is_bounded() -> None:
    one = work(MadeUpSide()).shapes()[0]
    one |= {"kernels": ["a\x1b[2J" * 10] * 50, "seconds": [1e-7] * 110}
    found = heard([one] * 210).run["shapes"]
    assert len(found) == records.MOST_SHAPES and len(found[0]["kernels"]) == 8
    assert "\x1b" not in json.dumps(found[0])
    assert len(found[0]["seconds"]) == records.MOST_ROUNDS and found[0]["seconds"][0] == 1e-7
