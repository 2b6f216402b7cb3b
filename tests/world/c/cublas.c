/* A libcublas of version SHIM_CUBLAS. SHIM_SIMT="fp16": modes that run on CUDA cores all the
   same. */
#include "product.h"

static int handles, math_mode;
static const char *override;

int cublasGetProperty(int part, int *value)
{
    int version = from("SHIM_CUBLAS", 120901);
    *value = part == 0 ? version / 10000 : part == 1 ? version / 100 % 100 : version % 100;
    return part > 2 ? 7 : 0;
}
int cublasCreate_v2(void **handle)
{
    override = getenv("NVIDIA_TF32_OVERRIDE"); /* read here, as the real one does */
    *handle = &handles;
    handles++;
    return 0;
}
int cublasSetStream_v2(void *handle, void *stream) { return stream ? 7 : 0; }
int cublasSetMathMode(void *handle, int mode) { math_mode = mode; return 0; }
int cublasGemmEx(void *handle, int transa, int transb, int m, int n, int k, const void *alpha, const void *A,
                 int atype, int lda, const void *B, int btype, int ldb, const void *beta, void *C, int ctype,
                 int ldc, int compute, int algorithm)
{
    int old = from("SHIM_CUBLAS", 120901) < 110000;
    int tf32 = compute == 77 && !(override && !strcmp(override, "0"));
    int emulated = getenv("CUBLAS_EMULATE_SINGLE_PRECISION") != 0;
    int tensor = old ? math_mode == 1 && algorithm == 99 : atype != FP32 || tf32 || emulated;
    const char *mode = atype == FP16 ? "fp16" : atype == BF16 ? "bf16" : atype == INT8 ? "int8"
                     : compute == 77 ? "tf32" : "fp32";
    const char *kernel = atype == FP16 ? "sm90_xmma_gemm_f16f32_f16f32_f32_shim"
                       : atype == BF16 ? "sm90_xmma_gemm_bf16f32_bf16f32_f32_shim"
                       : atype == INT8 ? "sm90_xmma_gemm_i8i32_i8i32_i32_shim"
                       : "sm90_xmma_gemm_f32f32_tf32f32_f32_shim";
    int one = 1;
    float one_float = 1;
    int wanted = old ? (atype == INT8 ? INT32 : FP32) : atype == INT8 ? 72 : atype == FP32 ? 69 : 68;
    const void *scale = ctype == INT32 ? (void *)&one : &one_float;
    if (handle != &handles || transa != 1 || transb != 0 || m != n || n != k || lda != k || ldb != k
        || ldc != m || atype != btype || memcmp(alpha, scale, 4))
        return 7;
    if (compute != wanted && !(compute == 77 && atype == FP32 && !old))
        return 7;
    tensor = tensor && !listed("SHIM_SIMT", mode);
    return product(mode, n, A, B, C, atype, ctype, tensor, tensor ? kernel : "ampere_sgemm_shim");
}
