"""What the shapes of a row say: losses off the multiple, kernels, and the multiple from which it is fast."""

from __future__ import annotations

from typing import Literal

import pytest

from envcheck.bench import shapes
from envcheck.facts.base import Unavailable
from envcheck.facts.bench import RowRun, ShapeRate

TENSOR = "sm80_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize128x128x32_stage4_tensor16x8x16_kernel"
SIMT = "ampere_sgemm_128x64_nn"
EDGES = (1023, 1024, 1025, 1026, 1028, 1032, 1040, 1056, 1088)


def product(
    edge: int,
    tflops: float,
    kernel: str = "",
    spread: float = 0.01,
    operation: Literal["product", "convolution"] = "product",
) -> ShapeRate:
    sizes = [edge, edge, edge] if operation == "product" else [32, 14, edge, edge, 3]
    bare = ShapeRate(operation=operation, sizes=sizes, edge=edge, around=1024, dtype="float16")
    second = shapes.operations(bare) / (tflops * 1e12)
    return ShapeRate(
        operation=operation,
        sizes=sizes,
        edge=edge,
        around=1024,
        dtype="float16",
        seconds=[second * (1 + spread * (n - 2) / 2) for n in range(5)],
        kernels=[kernel] if kernel else Unavailable(unavailable="absent"),
    )


def run(found: list[ShapeRate]) -> RowRun:
    (row,) = shapes.rows("torch", None, small=True)
    return RowRun(row=row, outcome="ok", shapes=found)


def result(found: list[ShapeRate]) -> shapes.ShapesResult:
    told = shapes.shapes_of(run(found))
    assert told is not None
    return told


def test_one_off_the_multiple_is_told_beside_it_with_its_kernel() -> None:
    told = result([product(1023, 41.0, SIMT), product(1024, 100.0, TENSOR)])
    off, on = told.shapes
    assert off.words == f"1023 runs at 41 % of 1024; its kernel is {SIMT}"
    assert (off.loses, off.unit, off.multiple) == (True, "simt", 1)
    assert (on.share, on.loses, on.unit, on.multiple) == (None, False, "tensor", 64)
    assert on.words.startswith("100 TFLOP/s; its kernel is sm80_xmma")
    assert on.least < (on.tflops or 0) < on.most


def test_a_helper_s_name_does_not_stand_for_the_kernel() -> None:
    shape = product(1024, 100.0)
    both = ShapeRate(**{**_fields(shape), "kernels": ["cublasLt::splitKreduce_kernel<32>", TENSOR]})
    (told,) = result([both]).shapes
    assert told.kernel == TENSOR


def test_without_names_nothing_is_said_of_a_kernel() -> None:
    (told,) = result([product(1024, 100.0)]).shapes
    assert (told.kernel, told.unit, told.words) == ("", "unknown", "100 TFLOP/s")


def test_a_difference_within_the_spread_is_no_loss() -> None:
    slow, fast = product(1023, 88.0, spread=0.4), product(1024, 100.0, spread=0.4)
    assert result([slow, fast]).shapes[0].loses is False
    slow, fast = product(1023, 88.0), product(1024, 100.0)
    assert result([slow, fast]).shapes[0].loses is True


@pytest.mark.parametrize("multiple", [2, 8, 16, 64])
def test_the_multiple_from_which_on_it_is_fast(multiple: int) -> None:
    rates = [product(edge, 100.0 if edge % multiple == 0 else 40.0) for edge in EDGES]
    (step,) = result(rates).steps
    assert (step.multiple, step.around, round(step.gain, 2)) == (multiple, 1024, 2.5)
    assert step.words == (
        f"products around 1024 run 2.5 times as fast from multiples of {multiple} on"
    )


def test_two_steps_are_two() -> None:
    speed = {1: 20.0, 2: 20.0, 4: 20.0, 8: 60.0, 16: 60.0, 32: 60.0, 64: 90.0}
    told = result([product(edge, speed[shapes.multiple_of(edge)]) for edge in EDGES])
    assert [(step.multiple, round(step.gain, 1)) for step in told.steps] == [(8, 3.0), (64, 1.5)]


def test_an_even_rate_has_no_step_and_products_are_no_convolutions() -> None:
    assert result([product(edge, 50.0) for edge in EDGES]).steps == []
    even = [product(edge, 50.0) for edge in EDGES]
    stepped = [product(edge, 50.0 if edge % 8 else 80.0, operation="convolution") for edge in EDGES]
    (step,) = result(even + stepped).steps
    assert (step.operation, step.multiple) == ("convolution", 8)


def test_operations_are_those_that_were_asked_for() -> None:
    assert shapes.operations(product(1024, 1.0)) == 2 * 1024**3
    conv = product(1024, 1.0, operation="convolution")
    assert shapes.operations(conv) == 2 * 32 * 14 * 14 * 1024 * 1024 * 9


def test_what_was_not_measured_says_why_and_spoils_nothing() -> None:
    lost = ShapeRate(
        operation="product",
        sizes=[1023] * 3,
        edge=1023,
        around=1024,
        dtype="float16",
        reason="out of memory",
    )
    odd = ShapeRate(operation="product", sizes=[0, -1], edge=0, around=0, dtype="", seconds=[0.0])
    told = result([lost, product(1024, 100.0), odd])
    assert (told.shapes[0].tflops, told.shapes[0].words) == (None, "out of memory")
    assert told.shapes[2].tflops is None
    assert told.steps == []
    assert shapes.shapes_of(run([])) is None


def test_a_row_a_type_and_none_of_half_on_a_cpu() -> None:
    assert [row.name for row in shapes.rows("jax", None, small=True)] == ["shapes fp32 jax"]
    on_gpu = shapes.rows("torch", "0000:01:00.0", small=False)
    assert [(row.precision, row.half) for row in on_gpu] == [("tf32", ""), ("half", "float16")]
    assert all(row.gpus == ["0000:01:00.0"] for row in on_gpu)


def _fields(shape: ShapeRate) -> dict[str, object]:
    return {name: getattr(shape, name) for name in shape.__struct_fields__}
