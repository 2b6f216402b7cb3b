"""Parts of the style "keras" that need no TensorFlow: what HLO shows."""

from __future__ import annotations

import pytest

from envcheck.collector.bench.keras import graphs

_HLO = """HloModule a_inference_step_42, entry_computation_layout={()->f32[]}
ENTRY %main (arg: f16[8,64]) -> f32[] {
  %dot.5 = f16[8,64]{1,0} dot(f16[8,32]{1,0} %a, f16[32,64]{1,0} %b), lhs_contracting_dims={1}
  %dot.6 = f32[8,10]{1,0} dot(f32[8,64]{1,0} %c, f32[64,10]{1,0} %d), lhs_contracting_dims={1}
  convolution.7 = bf16[2,8,8,4]{3,2,1,0} convolution(bf16[2,8,8,4] x, bf16[3,3,4,4] w), window={size=3x3}
  %add.8 = f16[8,64]{1,0} add(%dot.5, %dot.5)
}
"""


def test_hlo_is_counted_by_its_own_types() -> None:
    assert graphs.in_text(_HLO) == {
        "products": 2,
        "half_products": 1,
        "convolutions": 1,
        "half_convolutions": 1,
        "math_dtype": "bfloat16,float16",
    }
    assert graphs.in_text(_HLO.encode() + b"\xff")["products"] == 2


@pytest.mark.parametrize("text", ["", "dot(", "\x00 = f16[ dot", " dot( dot( = f16["])
def test_what_is_no_hlo_has_no_half_types(text: str) -> None:
    found = graphs.in_text(text)
    assert found["half_products"] == found["half_convolutions"] == 0
    assert found["math_dtype"] == "float32"
