"""What kernels' names say: names that cuBLAS 12.9 and the frameworks really have."""

from __future__ import annotations

import re

import pytest

from envcheck.data import table
from envcheck.tensorcores.kernel_names import classes, classify

NAMES = {
    "tensor": (
        "ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_64x3_nn",
        "ampere_s1688gemm_bf16_256x64_ldg8_relu_stages_32x1_tt",
        "turing_h1688gemm_128x128_ldg8_nn",
        "volta_h884gemm_256x128_ldg8_nn",
        "volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_nn",
        "ampere_int32_i16832gemm_int8_128x128_ldg16_stages_64x3_tn",
        "turing_int8_i8816gemm_int8_128x64_ldg16_relu_tn",
        "sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize64x64x32_stage3_warpsize2x2x1_tensor16x8x8_kernel",
        "sm90_xmma_gemm_f16f16_f16f32_f32_nt_n_tilesize64x128x64_warpgroupsize1x1x1_kernel__5x_cublas",
        "sm90_xmma_gemm_i8i32_i8i32_i32_tn_n_tilesize64x128x64_warpgroupsize1x1x1_kernel__5x_cublas",
        "sm89_xmma_gemm_e4m3bf16_e4m3f32_f32_tn_n_tilesize128x64x64_stage4_warpsize2x2x1_kernel",
        "sm89_xmma_gemm_e5m2e4m3f32_e5m2e4m3f32_f32_tn_n_tilesize128x64x64_stage4_kernel",
        "_ZN7cutlass7Kernel2I66cutlass_80_tensorop_s1688gemm_256x128_16x3_nn_align4EEvNT_6ParamsE",
        "void cutlass::Kernel2<cutlass_80_wmma_tensorop_f16_s161616gemm_f16_16x16_32x1_tn_align8>(Params)",
        "cutlass3x_sm90_tensorop_s64x128x16gemm_f16_f16_f32_f16_f16_128x128x64_2x1x1_0_nnn_align8",
        "cutlass3x_sm100_bstensorop_s256x192x32gemm_block_scaled_ue8m0xe4m3_ue8m0xe4m3_f32_f16_f16",
        "nvjet_hsh_128x256_64x4_2x1_v_bz_coopB_NNN",
        "nvjet_tst_192x192_64x4_1x2_h_bz_coopB_splitK_TNT",
        "cublasLt_fused_imma_dgemm_128x128",
    ),
    "simt": (
        "ampere_sgemm_128x128_nn",
        "volta_sgemm_fp16_128x64_nn",
        "ampere_fp16_sgemm_fp16_128x64_stages_32x6_nn",
        "maxwell_fp16_sgemm_fp16_64x64_sliced1x4_nn",
        "volta_hgemm_128x128_nn",
        "ampere_igemm_int8_128x128_ldg4_nn",
        "sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize64x64x8_stage3_warpsize1x4x1_ffma_aligna4_kernel",
        "sm80_xmma_gemm_f16f16_f32f32_f32_tn_n_tilesize32x32x8_stage3_warpsize1x2x1_ffma_kernel",
        "sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize64x64x8_stage3_warpsize1x4x1_kernel",
        "sm80_xmma_gemm_f16f16_f16f32_f32_nn_n_tilesize64x64x8_stage3_ffma_aligna4_kernel",
        "_ZN7cutlass7Kernel2I45cutlass_80_simt_sgemm_256x128_8x4_nn_align1EEvNT_6ParamsE",
        "cutlass3x_sm100_simt_sgemm_f32_f32_f32_f32_f32_128x64x16_1x1x1_3_nnn_align1_bias_f32_relu",
        "_Z20gemmSN_NN_kernel_halfI6__halfLi128ELi2ELi4EEv",
        "_ZN8internal5gemvx6kernelIii6__halfS1_S1_fLb0ELb1ELb0ELb0ELi7ELb0EEEv",
        "_Z10dot_kernelIfLi128ELi0E15cublasDotParamsI16cublasGemvTensorEEvT0_",
        "_Z20magma_sgemmEx_kernelIf6__halfS0_Lb0ELb0ELb0EEv",
    ),
    "auxiliary": (
        "_ZN8cublasLt19splitKreduce_kernelILi32ELi16EiffffLb1EffLb0EEEvv",
        "sm80_xmma_gemm_f16f16_f16f32_f32_nn_n_tilesize128x128x32_execute_split_k_kernel__5x_cublas",
        "nvjet_imma_gemm_set_device_ptrs_kernel",
        "cublasLt_imma_emu_split",
        "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEEEEviT0_T1_",
        "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>(float)",
        "_ZN5Eigen8internal15EigenMetaKernelINS_15TensorEvaluatorEEEvT_T0_",
        "_ZN8cublasLt8epilogue4impl12globalKernelILi8ELb0EfEEvv",
        "_Z11scal_kernelIfLi1EEv",
        "_ZN4cask12fillPtrArrayEPPvPKvl",
        "redzone_checker",
        "loop_convert_fusion",
        "wrapped_transpose",
        "input_reduce_fusion_2",
        "Memset (Device)",
    ),
    "unknown": (
        "xmma_new_kernel",
        "sm90_xmma_gemm_f64f64_f64f64_f64_tn_n_tilesize64x64x16",
        "sm80_xmma_syrk_l_f32f32_tf32f32_f32_nt_n_tilesize64x64x16",
        "gemm_fusion_dot_1",
        "triton_gemm_dot_3",
        "loop_gemm_fusion",
        "__nv_static_kernel",
        "magma",
        "_Z12some_mma_opsv",
        "",
    ),
}
EVERY = [name for names in NAMES.values() for name in names]


@pytest.mark.parametrize("kind", NAMES)
def test_names_are_of_their_class_and_of_no_other(kind: str) -> None:
    assert {name: classify(name) for name in NAMES[kind]} == dict.fromkeys(NAMES[kind], kind)
    assert all(len(classes(name)) <= 1 for name in NAMES[kind])


def test_every_pattern_has_a_source_and_a_known_class_and_decides_for_some_name() -> None:
    rows = table("kernel_names")
    assert all(row["source"] for row in rows)
    assert {row["class"] for row in rows} == {"tensor", "simt", "auxiliary"}
    for row in rows:
        assert any(re.search(row["pattern"], name) for name in EVERY), row["pattern"]
