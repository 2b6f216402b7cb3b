"""Products and convolutions counted in a module's text, as JAX gives it to XLA and as XLA has compiled it."""

from __future__ import annotations

from typing import Any

from envcheck.collector.bench import hlo

STABLE = """
module @jit_step {
  func.func public @main(%arg0: tensor<256x128xf32>) -> tensor<64x128xf32> {
    %0 = stablehlo.convert %arg0 : (tensor<256x128xf32>) -> tensor<256x128xbf16>
    %1 = stablehlo.dot_general %9, %0, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : \
(tensor<64x256xbf16>, tensor<256x128xbf16>) -> tensor<64x128xbf16>
    %2 = stablehlo.dot_general %9, %1, contracting_dims = [1] x [0] : (tensor<64x256xf32>, \
tensor<256x128xf32>) -> tensor<64x128xf32>
    %3 = stablehlo.convolution(%2, %arg3) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = \
{stride = [1, 1], pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64} : (tensor<4x16x16x8xf16>, \
tensor<3x3x8x16xf16>) -> tensor<4x16x16x16xf16>
    %4 = "mhlo.dot"(%1, %2) {precision_config = []} : (tensor<f16>, tensor<?x3xf16, #enc>) -> tensor<f32>
  }
}
"""
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
