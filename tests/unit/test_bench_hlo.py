"""Products and convolutions counted in a module's text, as JAX gives it to XLA and as XLA has compiled it."""

from __future__ import annotations

from typing import Any

from envcheck.collector.bench import hlo

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


def counts(text: str) -> dict[str, Any]:
    return hlo.count(text)


def test_what_xla_made_of_it_calls_of_libraries_too() -> None:
    assert counts(COMPILED) == {
        "products": 2,
        "half_products": 2,
        "convolutions": 2,
        "half_convolutions": 0,
        "types": ["bfloat16", "float16", "float32"],
        "unread": 0,
    }
