"""Pure parts of a bench's rows: when a training is warm, PyTorch's parts, and a module's text counted."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from envcheck.collector.bench import hlo, tf32_bits
from envcheck.collector.bench.warming import CHUNK, Warming


def warmed(rate: Callable[[float], float], limit: float = 20.0) -> Warming:
    """A training whose first step takes ``first`` seconds, and whose rate then is rate(seconds since)."""
    warming, now = Warming(limit), 0.0
    steps = warming.next()
    warming.ran(steps, 3.0)
    while steps := warming.next():
        took = steps / rate(now)
        now += took
        warming.ran(steps, took)
    return warming


def test_a_constant_rate_is_steady_in_a_second() -> None:
    warming = warmed(lambda _now: 100.0)
    assert warming.steady and warming.rate == pytest.approx(100.0)
    assert warming.seconds - 3.0 == pytest.approx(6 * CHUNK, rel=0.3)


def test_a_rate_that_rises_is_waited_for() -> None:
    warming = warmed(lambda now: 100.0 * min(1.0, 0.2 + now / 5))
    assert warming.steady and warming.rate == pytest.approx(100.0, rel=0.03)
    assert warming.seconds > 3.0 + 4.0


def test_what_never_rests_ends_at_the_limit() -> None:
    leaps = iter([1.0, 1.0, 2.0, 2.0] * 1000)
    warming = warmed(lambda _now: 100.0 * next(leaps), limit=5.0)
    assert not warming.steady and 8.0 <= warming.seconds < 9.0


FP32, TF32 = tf32_bits.FACTORS, (1.0, *tf32_bits.FACTORS[1:])


@pytest.mark.parametrize(
    ("results", "named"),
    [
        (FP32, "fp32"),
        (TF32, "tf32"),
        ((1 + 2**-10, *FP32[1:]), "tf32"),  # rounded to the nearest
        ((1.0, 1.0, 2**-30), "not known"),  # BF16
        ((1.0, 1 + 2**-10, 0.0), "not known"),  # FP16
        ((0.0, 0.0, 0.0), "not known"),
        ((math.nan,) * 3, "not known"),
    ],
)
def test_bits_name_the_arithmetic(results: tuple[float, ...], named: str) -> None:
    assert tf32_bits.name([{one} for one in results]) == named


COMPILED = """
HloModule jit_step
%fused (param_0: f16[64,256]) -> f32[64,128] {
  %param_0 = f16[64,256]{1,0} parameter(0)
  %param_1 = f16[256,128]{1,0} parameter(1)
  ROOT %dot.1 = f32[64,128]{1,0} dot(%param_0, %param_1), lhs_contracting_dims={1}
}
ENTRY %main {
  %a = bf16[64,256]{1,0} parameter(0)
  %gemm = (bf16[64,128]{1,0}, s8[4194304]{0}) custom-call(bf16[64,256]{1,0} %a, bf16[256,128]{1,0} %b), \
custom_call_target="__cublas$gemm", backend_config={"alpha_real":1}
  %conv = (f32[4,16,16,16]{3,2,1,0}, u8[0]{0}) custom-call(%x, %w), custom_call_target="__cudnn$convForward"
  %x = f32[4,16,16,8]{3,2,1,0} parameter(1)
  %w = f32[3,3,8,16]{3,2,1,0} parameter(2)
  %other = f32[4]{0} custom-call(%x), custom_call_target="Sharding"
  plain = f32[4,8]{1,0} convolution(x, w), window={size=3x3}
}
"""


def test_what_xla_made_of_it_calls_of_libraries_too() -> None:
    assert hlo.count(COMPILED) == {
        "products": 2,
        "half_products": 2,
        "convolutions": 2,
        "half_convolutions": 0,
        "types": ["bfloat16", "float16", "float32"],
        "unread": 0,
    }
