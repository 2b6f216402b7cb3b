"""C sources of a libcuda and a libcupti, on which ``cublas_shims`` computes.

Time on this GPU is made up; on the host it passes at a fifth of that, or SHIM_SLOW percent.
"""

from __future__ import annotations

FROM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <math.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

__attribute__((unused)) static int from(const char *name, int otherwise)
{
    const char *text = getenv(name);
    return text ? atoi(text) : otherwise;
}
__attribute__((unused)) static int listed(const char *variable, const char *mode)
{
    const char *text = getenv(variable);
    size_t length = strlen(mode);
    while (text && *text) {
        if (!strncmp(text, mode, length) && (!text[length] || text[length] == ','))
            return 1;
        text = strchr(text, ',');
        text = text ? text + 1 : 0;
    }
    return 0;
}
__attribute__((unused)) static void *in_libcuda(const char *symbol)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    return library ? dlsym(library, symbol) : 0;
}
"""

CUDA = (
    FROM
    + r"""
/* The work queued so far takes until `work` in the GPU's time, and until `ready` in the host's. */
static double work, recorded, ready;
static int dead, refused;
void (*shim_watcher)(const char *kernel);

struct event { double work, ready; };

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}
void shim_ran(const char *kernel, double seconds, int tensor)
{
    work += seconds;
    if (shim_watcher)
        shim_watcher(kernel);
}
void shim_die(void) { dead = 700; }

/* The number of the GPU that CUDA_VISIBLE_DEVICES, with UUIDs, makes this ordinal; -1: no such. */
static int visible(int ordinal)
{
    const char *text = getenv("CUDA_VISIBLE_DEVICES");
    char uuid[41];
    for (int device = 0; device < from("SHIM_COUNT", 1); device++) {
        snprintf(uuid, sizeof uuid, "GPU-abababab-abab-abab-abab-ababababab%02x", 0xAB + device);
        if ((!text || strstr(text, uuid)) && ordinal-- == 0)
            return device;
    }
    return -1;
}
int cuInit(unsigned flags) { return from("SHIM_INIT", 0); }
int cuDriverGetVersion(int *version) { *version = from("SHIM_VERSION", 12020); return 0; }
int cuDeviceGet(int *device, int ordinal) { *device = visible(ordinal); return *device < 0 ? 101 : 0; }
int cuDeviceGetCount(int *count)
{
    for (*count = 0; visible(*count) >= 0; ++*count)
        ;
    return 0;
}
int cuDeviceGetName(char *name, int length, int device)
{
    const char *text = getenv("SHIM_NAME");
    snprintf(name, length, "%s", text ? text : "NVIDIA Shim");
    return 0;
}
int cuDeviceGetPCIBusId(char *id, int length, int device)
{
    snprintf(id, length, "0000:%02X:00.0", 0x83 + device);
    return 0;
}
int cuDeviceGetUuid(unsigned char *bytes, int device)
{
    memset(bytes, 0xAB, 16);
    bytes[15] += device;
    return 0;
}
int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    switch (attribute) {
    case 13: *value = 1980000; break;
    case 16: *value = from("SHIM_SMS", 132); break;
    case 75: *value = from("SHIM_CAPABILITY", 90) / 10; break;
    case 76: *value = from("SHIM_CAPABILITY", 90) % 10; break;
    default: return 1;
    }
    return 0;
}
int cuDevicePrimaryCtxRetain(void **context, int device) { *context = &dead; return 0; }
int cuDevicePrimaryCtxRelease_v2(int device) { return 0; }
int cuCtxSetCurrent(void *context) { return 0; }
int cuCtxSynchronize(void) { return dead; }
int cuMemGetInfo_v2(size_t *free, size_t *total)
{
    *free = (size_t)from("SHIM_FREE_MIB", 300) << 20;
    *total = 80ull << 30;
    return dead;
}
int cuMemAlloc_v2(uint64_t *pointer, size_t size)
{
    if (refused < from("SHIM_OOM", 0))
        return refused++, 2;
    *pointer = (uint64_t)(size_t)malloc(size);
    return dead;
}
int cuMemFree_v2(uint64_t pointer) { free((void *)(size_t)pointer); return dead; }
static int copy(uint64_t to, uint64_t from, size_t size)
{
    memcpy((void *)(size_t)to, (void *)(size_t)from, size);
    return dead;
}
int cuMemcpyHtoD_v2(uint64_t to, void *data, size_t size) { return copy(to, (uint64_t)(size_t)data, size); }
int cuMemcpyDtoH_v2(void *data, uint64_t from, size_t size)
{
    return copy((uint64_t)(size_t)data, from, size);
}
int cuMemcpyDtoD_v2(uint64_t to, uint64_t from, size_t size) { return copy(to, from, size); }
int cuMemsetD8_v2(uint64_t to, unsigned char byte, size_t size)
{
    memset((void *)(size_t)to, byte, size);
    return dead;
}
int cuEventCreate(struct event **event, unsigned flags)
{
    *event = calloc(1, sizeof **event);
    return dead;
}
int cuEventRecord(struct event *event, void *stream)
{
    double begun = ready > now() ? ready : now();
    ready = begun + (work - recorded) * from("SHIM_SLOW", 20) / 100.0;
    recorded = work;
    event->work = work;
    event->ready = ready;
    return dead;
}
int cuEventQuery(struct event *event) { return dead ? dead : now() < event->ready ? 600 : 0; }
int cuEventSynchronize(struct event *event)
{
    while (now() < event->ready)
        usleep(100);
    return dead;
}
int cuEventElapsedTime(float *milliseconds, struct event *first, struct event *second)
{
    *milliseconds = (second->work - first->work) * 1e3;
    return dead;
}
int cuEventDestroy_v2(struct event *event) { free(event); return dead; }
int cuGetErrorName(int code, const char **name)
{
    *name = code == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : code == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : 0;
    return *name ? 0 : 1;
}
"""
)

CUPTI = (
    FROM
    + r"""
struct record {
    uint32_t kind, unused[3];
    uint64_t start, end;
    char rest[72];
    const char *name;
    char more[96];
};
static void (*give)(uint8_t **, size_t *, size_t *);
static void (*take)(void *, uint32_t, uint8_t *, size_t, size_t);
static uint8_t *buffer;
static size_t size, used, most;

static void add(uint32_t kind, const char *name)
{
    struct record *record;
    if (!buffer || used + sizeof *record > size)
        return;
    record = (struct record *)(buffer + used);
    memset(record, 0, sizeof *record);
    record->kind = kind;
    record->name = name;
    used += sizeof *record;
}
static void saw(const char *kernel)
{
    if (!buffer) {
        give(&buffer, &size, &most);
        used = 0;
    }
    add(1, "memcpy");
    add(10, kernel);
    add(3, kernel);
}
static int watch(void (*watcher)(const char *))
{
    void (**place)(const char *) = (void (**)(const char *))in_libcuda("shim_watcher");
    if (!place)
        return 15;
    *place = watcher;
    return 0;
}
int cuptiActivityRegisterCallbacks(void *first, void *second)
{
    give = (void (*)(uint8_t **, size_t *, size_t *))first;
    take = (void (*)(void *, uint32_t, uint8_t *, size_t, size_t))second;
    return 0;
}
int cuptiGetResultString(int code, const char **text)
{
    *text = code == 35 ? "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"
        : code == 39 ? "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED" : 0;
    return *text ? 0 : 1;
}
int cuptiActivityEnable(uint32_t kind)
{
    if (from("SHIM_CUPTI", 0))
        return from("SHIM_CUPTI", 0);
    return kind == 10 ? watch(saw) : 21;
}
int cuptiActivityDisable(uint32_t kind) { return watch(0); }
int cuptiActivityFlushAll(uint32_t flag)
{
    uint8_t *full = buffer;
    buffer = 0;
    if (full)
        take(0, 0, full, size, used);
    return flag == 1 ? 0 : 1;
}
int cuptiActivityGetNextRecord(uint8_t *begin, size_t valid, uint8_t **record)
{
    uint8_t *next = *record ? *record + sizeof(struct record) : begin;
    if (next + sizeof(struct record) > begin + valid)
        return 12;
    *record = next;
    return 0;
}
"""
)
