/* Of libcuda: takes PTX and does what a Hopper would make of it. Signature kernels compute their
   tiles, rate kernels write clocks; the others are in patterns.c.

   SHIM_SIMT="fp16,tf32": modes that run on CUDA cores all the same. The folder "cubins" of the
   description has what the driver's compiler makes of each mode's rate kernel. */
#include "arithmetic.h"
#include "cuda.h"

/* What the collector multiplies with on this chip. rate: FMA a clock and multiprocessor; fma: of
   a warp in one iteration of the rate kernel. */
static const struct mode {
    const char *name, *mark;
    int type, size, rows, k, kept;
    double rate, fma;
} modes[] = {
    {"fp8", ".e4m3.e4m3", E4M3, 1, 64, 32, 13, 3700, 8 * 64 * 256 * 8},
    {"int8", ".s8.s8", INT8, 1, 16, 32, 25, 2500, 64 * 4096},
    {"tf32", ".tf32.tf32", FP32, 4, 16, 8, 25, 620, 64 * 1024},
    {"bf16", ".bf16.bf16", BF16, 2, 16, 16, 25, 1250, 64 * 2048},
    {"fp16", ".f16.f16", FP16, 2, 16, 16, 25, 1250, 64 * 2048},
    {"fp32", "fma.rn.f32", FP32, 4, 16, 1, 0, 123, 4096},
    {"none", "", 0, 0, 0, 0, 0, 0, 0}, /* a program that multiplies nothing */
};
static const struct mode *loaded; /* of the program that was linked last */
static char *program, cubin[1 << 16];
static size_t cubin_size;

static int on_tensor_cores(void) { return loaded->kept && !listed("SHIM_SIMT", loaded->name); }

int cuLinkCreate_v2(unsigned count, int *options, void **values, void **state)
{
    *state = &dead;
    return dead;
}
int cuLinkAddData_v2(void *state, int kind, void *data, size_t size, const char *name, unsigned count,
                     int *options, void **values)
{
    char path[64];
    FILE *file;
    if (kind != 1 || size != strlen(data) + 1)
        return 218;
    program = strdup(data);
    for (loaded = modes; !strstr(program, loaded->mark);)
        loaded++;
    snprintf(path, sizeof path, "cubins/%s", on_tensor_cores() ? loaded->name : "fp32");
    if ((file = open_description(path))) {
        cubin_size = fread(cubin, 1, sizeof cubin, file);
        fclose(file);
    }
    return cubin_size ? dead : 1;
}
int cuLinkComplete(void *state, void **image, size_t *size)
{
    *image = cubin;
    *size = cubin_size;
    return dead;
}
int cuLinkDestroy(void *state) { return dead; }
int cuModuleLoadData(void **module, const void *image)
{
    *module = &loaded;
    return dead ? dead : memcmp(image, "\x7f" "ELF", 4) ? 200 : 0;
}
int cuModuleGetFunction(void **function, void *module, const char *name)
{
    char entry[80];
    snprintf(entry, sizeof entry, ".entry %s(", name);
    *function = strdup(name);
    return strstr(program, entry) ? dead : 500;
}
int cuFuncGetAttribute(int *value, int attribute, void *function) { *value = 0; return dead; }
int cuFuncSetAttribute(void *function, int attribute, int value) { return dead; }

/* A row times a column, k elements each, onto c. */
static double row_by_column(double c, const char *row, const char *column, int k, int half)
{
    double a[64], b[64];
    int tensor = on_tensor_cores();
    for (int i = 0; i < k; i++) {
        a[i] = element(row, i, loaded->type, tensor ? TRUNCATED : EXACT);
        b[i] = element(column, i, loaded->type, tensor ? TRUNCATED : EXACT);
    }
    for (int i = 0; i < k; i += tensor ? loaded->k : 1)
        if (loaded->type == INT8)
            for (int j = i; j < i + (tensor ? loaded->k : 1); j++)
                c += a[j] * b[j];
        else if (!tensor)
            c = half ? to_half(c + a[i] * b[i]) : fmaf(a[i], b[i], c);
        else if (half)
            c = to_half(block_sum(c, a + i, b + i, loaded->k, loaded->kept));
        else
            c = block(c, a + i, b + i, loaded->k, loaded->kept);
    return c;
}
static void tiles(int count, const char *A, const char *B, const char *C, char *D, int steps, int output)
{
    int k = steps * loaded->k, rows = loaded->rows, columns = 8;
    size_t length = (size_t)k * loaded->size;
    for (int i = 0; i < count * rows; i++)
        for (int j = 0; j < columns; j++) {
            size_t at = (size_t)i * columns + j;
            const char *column = B + (size_t)(i / rows * columns + j) * length;
            double c = output == INT32 ? 0 : element(C, at, output, EXACT);
            store(D, at, output, row_by_column(c, A + i * length, column, k, output == FP16));
        }
}
static void clocks(uint64_t *row, unsigned blocks, unsigned warps, unsigned iterations, void *stream)
{
    double rate = on_tensor_cores() || !loaded->kept ? loaded->rate : 123;
    uint64_t ticks = iterations * loaded->fma * warps / rate;
    for (unsigned i = 0; i < blocks * warps; i++, row += 3) {
        row[0] = 1ull << 40;
        row[1] = row[0] + ticks;
        row[2] = i / warps;
    }
    takes(stream, ticks / 1755e6);
}
int cuLaunchKernel(const char *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, void *stream, void **arguments, void **extra)
{
    char **pointers[4];
    if (run_pattern(function, (size_t)gx * bx, gx, stream, arguments))
        return dead;
    for (int i = 0; i < 4; i++)
        pointers[i] = arguments[i];
    if (!strcmp(function, "rate"))
        clocks((uint64_t *)*pointers[1], gx, bx / 32, *(unsigned *)arguments[3], stream);
    else
        tiles(gx, *pointers[0], *pointers[1], *pointers[2], *pointers[3], *(unsigned *)arguments[4],
              strstr(function, "int32") ? INT32 : strstr(function, "fp16") ? FP16 : FP32);
    return dead;
}
