"""C source of a libcuda that links, launches and times without a GPU: its answers come from the environment.

It computes nothing. The Nth launch of a signature kernel gives the file SHIM_WORDS/N, and the Nth link
the file SHIM_CUBINS/N, else the PTX itself; a rate kernel writes clocks: SHIM_TICKS for each iteration,
on SHIM_USED multiprocessors. SHIM_FAIL=NAME:CODE:N makes the Nth call of a function fail,
SHIM_STICKY=CODE:N kills the context at the Nth launch, SHIM_HANG=N lets that launch never end,
SHIM_REFUSE=TEXT refuses PTX that has the text in it (SHIM_TARGET: unless it is linked for this target;
SHIM_LOADS=1: but loads it).
"""

CUDA = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int launches, signatures, sticky, hanging;
static uint64_t ticks;

static int from(const char *name, int otherwise)
{
    const char *text = getenv(name);
    return text ? atoi(text) : otherwise;
}
static int failing(const char *name)
{
    static char seen[64][40];
    static int counts[64];
    const char *text = getenv("SHIM_FAIL");
    char wanted[40];
    int code, which, i;
    if (!text || sscanf(text, "%39[^:]:%d:%d", wanted, &code, &which) != 3 || strcmp(wanted, name))
        return sticky;
    for (i = 0; seen[i][0] && strcmp(seen[i], name); i++)
        ;
    strcpy(seen[i], name);
    return ++counts[i] == which ? code : sticky;
}
#define CHECK() do { int code_ = failing(__func__); if (code_) return code_; } while (0)
static void finish(void)
{
    while (hanging)
        pause();
}

int cuInit(unsigned flags) { CHECK(); return 0; }
int cuDriverGetVersion(int *version) { *version = from("SHIM_VERSION", 12020); return 0; }
int cuDeviceGetCount(int *count) { *count = 1; return 0; }
int cuDeviceGet(int *device, int ordinal) { CHECK(); *device = ordinal + 10; return 0; }
int cuDeviceGetName(char *name, int length, int device)
{
    const char *text = getenv("SHIM_NAME");
    snprintf(name, length, "%s", text ? text : "NVIDIA shim");
    return 0;
}
int cuDeviceGetPCIBusId(char *id, int length, int device) { snprintf(id, length, "0000:0A:00.0"); return 0; }
int cuDeviceGetUuid(unsigned char *bytes, int device) { memset(bytes, 0xAB, 16); return 0; }
int cuDeviceGetUuid_v2(unsigned char *bytes, int device)
{
    memset(bytes, from("SHIM_MIG", 0) ? 0xCD : 0xAB, 16);
    return 0;
}
int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    int capability = from("SHIM_CAPABILITY", 80);
    CHECK();
    switch (attribute) {
    case 13: *value = 1410000; return from("SHIM_NO_CLOCK", 0);
    case 16: *value = from("SHIM_SMS", 4); return 0;
    case 75: *value = capability / 10; return 0;
    case 76: *value = capability % 10; return 0;
    case 97: *value = 166912; return from("SHIM_NO_OPTIN", 0);
    }
    return 1;
}
/* High bits in every handle: one that was cut off to 32 bits is not known again. */
#define HANDLE(number) ((void *)(0x7E0000000000u + (number)))
#define KNOWN(handle, number) if ((void *)(handle) != HANDLE(number)) return 400
int cuDevicePrimaryCtxRetain(void **context, int device)
{
    CHECK();
    *context = HANDLE(1);
    return 0;
}
int cuCtxSetCurrent(void *context) { KNOWN(context, 1); CHECK(); return 0; }
static int release(int device)
{
    fprintf(stderr, "released %d\n", device);
    return 0;
}
#ifndef OLD
int cuDevicePrimaryCtxRelease_v2(int device) { return release(device); }
#endif
int cuDevicePrimaryCtxRelease(int device) { return release(device); }
int cuCtxSynchronize(void) { finish(); CHECK(); return 0; }
int cuMemGetInfo_v2(size_t *free_, size_t *total)
{
    *free_ = (size_t)5 << 32;
    *total = (size_t)6 << 32;
    return 0;
}
/* Device memory: the host's, at addresses 2^46 higher, so that neither is taken for the other. */
#define AWAY ((uint64_t)1 << 46)
#define HERE(pointer) ((char *)((pointer) - AWAY))
static int held;
int cuMemAlloc_v2(uint64_t *pointer, size_t size)
{
    CHECK();
    *pointer = (uint64_t)malloc(size) + AWAY;
    held++;
    return 0;
}
int cuMemFree_v2(uint64_t pointer)
{
    CHECK();
    free(HERE(pointer));
    held--;
    return 0;
}
int cuMemcpyHtoD_v2(uint64_t to, const void *data, size_t size)
{
    CHECK();
    memcpy(HERE(to), data, size);
    return 0;
}
int cuMemcpyDtoH_v2(void *to, uint64_t from_, size_t size)
{
    finish();
    CHECK();
    memcpy(to, HERE(from_), size);
    return 0;
}
int cuMemsetD8_v2(uint64_t to, unsigned char byte, size_t size)
{
    CHECK();
    memset(HERE(to), byte, size);
    return 0;
}
int cuEventCreate(void **event, unsigned flags) { CHECK(); *event = HANDLE(2); return 0; }
int cuEventRecord(void *event, void *stream)
{
    KNOWN(event, 2);
    CHECK();
    return stream ? 1 : 0;
}
int cuEventSynchronize(void *event) { KNOWN(event, 2); finish(); CHECK(); return 0; }
int cuEventQuery(void *event)
{
    static int asked;
    KNOWN(event, 2);
    CHECK();
    return asked++ ? 0 : 600;
}
int cuEventElapsedTime(float *milliseconds, void *one, void *other)
{
    KNOWN(one, 2);
    KNOWN(other, 2);
    CHECK();
    *milliseconds = from("SHIM_NO_TIME", 0) ? 0 : ticks / 1e6; /* a clock of 1,000 MHz */
    return 0;
}
int cuEventDestroy_v2(void *event) { KNOWN(event, 2); CHECK(); return 0; }

static char *log_;
static size_t log_size, target;
static char *program;
static size_t program_size;
int cuLinkCreate_v2(unsigned count, int *options, void **values, void **state)
{
    CHECK();
    for (unsigned i = 0; i < count; i++) {
        if (options[i] == 5)
            log_ = values[i];
        if (options[i] == 6)
            log_size = (size_t)values[i];
        if (options[i] == 9)
            target = (size_t)values[i];
    }
    *state = HANDLE(3);
    return 0;
}
int cuLinkAddData_v2(void *state, int kind, void *data, size_t size, const char *name, unsigned count,
                     int *options, void **values)
{
    const char *refuse = getenv("SHIM_REFUSE");
    KNOWN(state, 3);
    CHECK();
    if (kind != 1 || size != strlen(data) + 1)
        return 1;
    if (refuse && strstr(data, refuse) && target != (size_t)from("SHIM_TARGET", -1)) {
        snprintf(log_, log_size, "ptxas application ptx input, line 1; fatal   : Unsupported .version\n\n");
        return from("SHIM_REFUSE_CODE", 222);
    }
    free(program);
    program = strdup(data);
    program_size = size;
    return 0;
}
int cuLinkComplete(void *state, void **cubin, size_t *size)
{
    static int links;
    const char *folder = getenv("SHIM_CUBINS");
    char path[4096];
    FILE *file;
    KNOWN(state, 3);
    CHECK();
    snprintf(path, sizeof path, "%s/%d", folder ? folder : "/nonexistent", ++links);
    if ((file = fopen(path, "rb"))) {
        program = realloc(program, 1 << 16);
        program_size = fread(program, 1, 1 << 16, file);
        fclose(file);
    }
    *cubin = program;
    *size = program_size;
    return 0;
}
int cuLinkDestroy(void *state)
{
    KNOWN(state, 3);
    if (program)
        memset(program, 0, program_size); /* whoever still looks at it finds nothing */
    return 0;
}
int cuModuleLoadData(void **module, const void *image)
{
    const char *refuse = getenv("SHIM_REFUSE");
    CHECK();
    *module = HANDLE(4);
    if (refuse && strstr(image, refuse))
        if (!from("SHIM_LOADS", 0) && target != (size_t)from("SHIM_TARGET", -1))
            return 222;
    return *(const char *)image ? 0 : 200;
}
int cuModuleGetFunction(void **function, void *module, const char *name)
{
    KNOWN(module, 4);
    CHECK();
    *function = HANDLE(strcmp(name, "rate") ? 5 : 6);
    return 0;
}
int cuFuncGetAttribute(int *value, int attribute, void *function)
{
    KNOWN(function, 6);
    CHECK();
    *value = 12288;
    return attribute == 1 ? 0 : 1;
}
int cuFuncSetAttribute(void *function, int attribute, int value)
{
    KNOWN(function, 6);
    CHECK();
    return attribute == 8 && value == 166912 - 12288 ? 0 : 1;
}
static void words(uint64_t to)
{
    char path[4096];
    FILE *file;
    const char *folder = getenv("SHIM_WORDS");
    snprintf(path, sizeof path, "%s/%d", folder ? folder : "/nonexistent", ++signatures);
    if ((file = fopen(path, "rb"))) {
        size_t size = fread(HERE(to), 1, 1 << 20, file);
        fprintf(stderr, "%s: %zu bytes\n", path, size);
        fclose(file);
    }
}
static void clocks(uint64_t to, unsigned blocks, unsigned warps, unsigned iterations)
{
    uint64_t *row = (uint64_t *)HERE(to);
    int used = from("SHIM_USED", from("SHIM_SMS", 4));
    ticks = (uint64_t)iterations * from("SHIM_TICKS", 512);
    for (unsigned i = 0; i < blocks * warps; i++, row += 3) {
        int late = from("SHIM_STOPPED", 0) ? 0 : i % warps;
        row[0] = ((uint64_t)1 << 40) + late;
        row[1] = from("SHIM_STOPPED", 0) ? row[0] : row[0] + ticks - late;
        row[2] = i / warps % used;
    }
}
int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, void *stream, void **arguments, void **extra)
{
    int code, which;
    const char *text = getenv("SHIM_STICKY");
    launches++;
    if (text && sscanf(text, "%d:%d", &code, &which) == 2 && launches == which)
        sticky = code;
    hanging = launches == from("SHIM_HANG", -1);
    CHECK();
    if (stream || extra || gy != 1 || gz != 1 || by != 1 || bz != 1)
        return 1;
    if (function == HANDLE(5))
        words(*(uint64_t *)arguments[3]);
    else if (function == HANDLE(6) && shared)
        clocks(*(uint64_t *)arguments[1], gx, bx / 32, *(unsigned *)arguments[3]);
    else
        return 400;
    return 0;
}
int held_allocations(void) { return held; }
"""
