"""C sources of a libcublas and a libcublasLt that really compute their products, on the host.

By a chain of fused multiply-adds, or as a Hopper Tensor Core does it. Rows with many non-zero elements,
which random data has, are left alone: nobody reads those results. Environment variables switch failures on;
those that concern modes have them as value: SHIM_HANG="tf32,fp8".
"""

from __future__ import annotations

from pathlib import Path

import probing
from gpu_nvml_shims import NVML
from gpu_shims import CUDA, CUPTI, FROM
from program_shims import PROGRAMS, write_cubins
from shim_arithmetic import ARITHMETIC

# What libcublas and libcublasLt compute with. cudaDataType: 0 fp32, 2 fp16, 14 bf16, 28 e4m3, 3 int8.
_PRODUCT = (
    FROM
    + ARITHMETIC
    + r"""
#define MOST 8

static size_t size_of(int type) { return type == FP32 ? 4 : type == FP16 || type == BF16 ? 2 : 1; }
struct line { int count, at[MOST]; };
static struct line *lines(const void *matrix, int n, int type)
{
    struct line *made = calloc(n, sizeof *made);
    size_t size = size_of(type);
    for (int i = 0; i < n; i++) {
        const char *row = (const char *)matrix + (size_t)i * n * size;
        for (int k = 0; k < n && made[i].count <= MOST; k++)
            if (memcmp(row + k * size, "\0\0\0\0", size)) {
                if (made[i].count < MOST)
                    made[i].at[made[i].count] = k;
                made[i].count++;
            }
    }
    return made;
}
static double dot(const struct line *line, const void *A, const void *B, size_t i, size_t j, int n,
                  int type, int tensor)
{
    double a[MOST], b[MOST], sum = 0;
    int width = type == E4M3 ? 32 : type == FP32 ? 8 : 16;
    for (int t = 0; t < line->count; t++) {
        a[t] = element(A, i * n + line->at[t], type, tensor ? TO_NEAREST : EXACT);
        b[t] = element(B, j * n + line->at[t], type, tensor ? TO_NEAREST : EXACT);
    }
    for (int t = 0, next; t < line->count; t = next) {
        for (next = t + 1; tensor && next < line->count; next++)
            if (line->at[next] / width != line->at[t] / width)
                break;
        if (type == INT8)
            for (; t < next; t++)
                sum += a[t] * b[t];
        else if (tensor)
            sum = block(sum, a + t, b + t, next - t, type == E4M3 ? 13 : 25);
        else
            sum = fmaf(a[t], b[t], sum);
    }
    return sum;
}
/* Columns that repeat the one before them, as those of signature patterns do, have its results. */
static void gemm(int n, const void *A, const void *B, void *C, int type, int made, int tensor)
{
    size_t column = n * size_of(type), results = n * (made == INT32 ? 4 : size_of(made));
    struct line *rows = lines(A, n, type);
    for (int j = 0; rows[0].count <= MOST && j < n; j++) {
        const char *b = (const char *)B + j * column;
        char *c = (char *)C + j * results;
        if (j && !memcmp(b, b - column, column)) {
            memcpy(c, c - results, results);
            continue;
        }
        for (int i = 0; i < n; i++)
            if (rows[i].count <= MOST)
                store(C, (size_t)j * n + i, made, dot(rows + i, A, B, i, j, n, type, tensor));
    }
    free(rows);
}
/* TFLOP/s: SHIM_FAST times as many, with the ratios between a Hopper's modes. */
static double rate(int type, int tensor)
{
    int fast = from("SHIM_FAST", 0);
    if (!fast)
        return tensor ? 0.8 : 0.05;
    if (!tensor)
        return 0.05 * fast;
    return fast * (type == INT8 || type == E4M3 ? 1.6 : type == FP32 ? 0.4 : 0.8);
}
/* One product of a mode: the status that cuBLAS gives. */
static int product(const char *mode, int n, const void *A, const void *B, void *C, int type, int made,
                   int tensor, const char *kernel)
{
    void (*ran)(const char *, double, int) = (void (*)(const char *, double, int))in_libcuda("shim_ran");
    double teraflops = rate(type, tensor);
    if (listed("SHIM_HANG", mode))
        pause();
    if (listed("SHIM_CRASH", mode))
        raise(SIGSEGV);
    if (listed("SHIM_DEAD", mode))
        ((void (*)(void))in_libcuda("shim_die"))();
    if (listed("SHIM_WRONG", mode))
        memset(C, 0x11, (size_t)4 * n * n);
    else
        gemm(n, A, B, C, type, made, tensor);
    ran(kernel, 2.0 * n * n * n / 1e12 / teraflops, tensor);
    return 0;
}
"""
)

CUBLAS = (
    _PRODUCT
    + r"""
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
int cublasGemmEx(void *handle, int transa, int transb, int m, int n, int k, const void *alpha,
                 const void *A, int atype, int lda, const void *B, int btype, int ldb, const void *beta,
                 void *C, int ctype, int ldc, int compute, int algorithm)
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
    tensor = listed("SHIM_ENGAGE", mode) || (tensor && !listed("SHIM_SIMT", mode));
    return product(mode, n, A, B, C, atype, ctype, tensor, tensor ? kernel : "ampere_sgemm_shim");
}
"""
)

CUBLASLT = (
    _PRODUCT
    + r"""
struct description { int compute, scale, transa, transb; };
struct layout { int type; uint64_t rows, columns; int64_t leading; };
struct heuristic { uint64_t algorithm[8]; size_t workspace; int state; float waves; int reserved[4]; };
static uint64_t most;

static int make(void **handle, size_t size) { *handle = calloc(1, size); return 0; }
int cublasLtCreate(void **handle) { return make(handle, 8); }
int cublasLtMatmulDescCreate(struct description **made, int compute, int scale)
{
    make((void **)made, sizeof **made);
    (*made)->compute = compute;
    (*made)->scale = scale;
    return 0;
}
int cublasLtMatmulDescSetAttribute(struct description *handle, int attribute, const void *value, size_t size)
{
    if (size != 4 || (attribute != 3 && attribute != 4))
        return 7;
    *(attribute == 3 ? &handle->transa : &handle->transb) = *(const int *)value;
    return 0;
}
int cublasLtMatrixLayoutCreate(struct layout **made, int type, uint64_t rows, uint64_t columns,
                               int64_t leading)
{
    make((void **)made, sizeof **made);
    **made = (struct layout){type, rows, columns, leading};
    return 0;
}
int cublasLtMatmulPreferenceCreate(void **handle) { return make(handle, 8); }
int cublasLtMatmulPreferenceSetAttribute(void *handle, int attribute, const void *value, size_t size)
{
    if (attribute != 1 || size != 8)
        return 7;
    most = *(const uint64_t *)value;
    return 0;
}
static int right(const struct description *what, const struct layout *a, const struct layout *b,
                 const struct layout *c, const struct layout *d)
{
    return what->compute == 68 && what->scale == FP32 && what->transa == 1 && what->transb == 0
        && a->type == E4M3 && b->type == E4M3 && c->type == FP32 && d->type == FP32
        && a->rows == a->columns && (int64_t)a->rows == a->leading && a->rows == d->rows;
}
int cublasLtMatmulAlgoGetHeuristic(void *handle, struct description *what, struct layout *a, struct layout *b,
                                   struct layout *c, struct layout *d, void *preference, int asked,
                                   struct heuristic *found, int *count)
{
    *count = 0;
    if (!right(what, a, b, c, d) || asked != 1)
        return 7;
    if (from("SHIM_NO_HEURISTIC", 0))
        return 15;
    *count = 1;
    found->algorithm[7] = 0x5EED;
    found->workspace = most / 2;
    found->state = 0;
    return 0;
}
int cublasLtMatmul(void *handle, struct description *what, const float *alpha, const void *A,
                   struct layout *a, const void *B, struct layout *b, const float *beta, const void *C,
                   struct layout *c, void *D, struct layout *d, const struct heuristic *algorithm,
                   void *workspace, size_t size, void *stream)
{
    if (!right(what, a, b, c, d) || *alpha != 1 || *beta != 0 || C != D || stream
        || algorithm->algorithm[7] != 0x5EED || size != most / 2 || !workspace)
        return 7;
    memset(workspace, 1, size < 4096 ? size : 4096);
    return product("fp8", a->rows, A, B, D, E4M3, FP32, 1, "nvjet_qqss_shim");
}
"""
)


def build(folder: Path) -> Path:
    """The five libraries in ``folder``, and "cubins"; skips the test where there is no C compiler."""
    for source, name in (
        (CUDA + PROGRAMS, "libcuda.so.1"),
        (CUBLAS, "libcublas.so.12"),
        (CUBLASLT, "libcublasLt.so.12"),
        (CUPTI, "libcupti.so.12"),
        (NVML, "libnvidia-ml.so.1"),
    ):
        probing.compile_library(source, folder, name)
    write_cubins(folder / "cubins")
    return folder
