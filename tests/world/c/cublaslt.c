/* A libcublasLt for FP8. SHIM_NO_HEURISTIC: it knows no algorithm. */
#include "product.h"

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
