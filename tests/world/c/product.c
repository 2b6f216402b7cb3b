/* Of libcublas: products that are really computed, on the host.

   By a chain of fused multiply-adds, or as a Hopper Tensor Core does it. Rows with many non-zero
   elements, which random data has, are left alone: nobody reads those results. SHIM_HANG,
   SHIM_CRASH, SHIM_DEAD (the context is) and SHIM_WRONG have modes as value: "tf32,fp8".
   SHIM_FAST: about how many TFLOP/s; less than one without. */
#include "product.h"

enum { MOST = 8 };
struct line { int count, at[MOST]; };

static size_t size_of(int type)
{
    return type == FP32 || type == INT32 ? 4 : type == FP16 || type == BF16 ? 2 : 1;
}
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
static double dot(const struct line *line, const void *A, const void *B, size_t i, size_t j, int n, int type,
                  int tensor)
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
    size_t column = n * size_of(type), results = n * size_of(made);
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
/* TFLOP/s, with the ratios between a Hopper's modes. */
static double rate(int type, int tensor)
{
    int fast = from("SHIM_FAST", 0);
    if (!fast)
        return tensor ? 0.8 : 0.05;
    return fast * (!tensor ? 0.05 : type == INT8 || type == E4M3 ? 1.6 : type == FP32 ? 0.4 : 0.8);
}
/* One product of a mode: the status that cuBLAS gives. */
int product(const char *mode, int n, const void *A, const void *B, void *C, int type, int made, int tensor,
            const char *kernel)
{
    void (*ran)(const char *, double) = (void (*)(const char *, double))in_libcuda("shim_ran");
    if (listed("SHIM_HANG", mode))
        pause();
    if (listed("SHIM_CRASH", mode))
        raise(SIGSEGV);
    if (listed("SHIM_DEAD", mode))
        ((void (*)(void))in_libcuda("shim_die"))();
    if (listed("SHIM_WRONG", mode))
        memset(C, 0x11, (size_t)n * n * size_of(made));
    else
        gemm(n, A, B, C, type, made, tensor);
    ran(kernel, 2.0 * n * n * n / 1e12 / rate(type, tensor));
    return 0;
}
