"""What PyTorch's rows make of a scaler's state, of types, of a profile and of TF32's bits: pure parts."""

from __future__ import annotations

import math

import pytest

from envcheck.collector.bench import tf32_bits

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
