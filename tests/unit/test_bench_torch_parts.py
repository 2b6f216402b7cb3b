"""What PyTorch's rows make of a scaler's state, of types, of a profile and of TF32's bits: pure parts."""

from __future__ import annotations

import math
from typing import Any

import pytest

from envcheck.collector.bench import tf32_bits

INTERVAL = 2000


def scaler(outcomes: str, state: dict[str, Any] | None = None) -> dict[str, Any]:
    """GradScaler's state after steps: "s" is skipped, "." is not."""
    state = dict(state or {"scale": 65536.0, "_growth_tracker": 0})
    state.update(growth_factor=2.0, backoff_factor=0.5, growth_interval=INTERVAL)
    for one in outcomes:
        if one == "s":
            state.update(scale=state["scale"] * 0.5, _growth_tracker=0)
            continue
        state["_growth_tracker"] += 1
        if state["_growth_tracker"] == INTERVAL:
            state.update(scale=state["scale"] * 2, _growth_tracker=0)
    return state


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
