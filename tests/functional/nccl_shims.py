"""C sources of a libcuda with two GPUs and of a libnccl that really sums across processes, on the host.

Device memory is the host's, at addresses 2^46 higher; time is a clock that only the all-reduces move on, by
SHIM_GBS. SHIM_NCCL says what goes wrong: "wrong", "hang", "hang-join", "fail", "old-driver"; followed by
"-p2p" only as long as NCCL_P2P_DISABLE is not 1, by "-nvls" as long as NCCL_NVLS_ENABLE is not 0.
SHIM_WARN is what is logged of it. SHIM_SEGMENT is a file in /dev/shm that every
rank maps that transfers directly.
"""

from __future__ import annotations

from pathlib import Path

import probing

CUDA = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EVENTS = 64 };
static double now, events[EVENTS];
static int hanging, used, count;

static void count_devices(void)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    count = visible && *visible ? 1 : 0;
    for (; visible && *visible; visible++)
        count += *visible == ',';
    if (!getenv("CUDA_VISIBLE_DEVICES"))
        count = 2;
}
void shim_work(double seconds) { now += seconds; }
void shim_hang(void) { hanging = 1; }
int cuInit(unsigned flags) { count_devices(); return count ? 0 : 100; }
int cuDriverGetVersion(int *version) { *version = 12040; return 0; }
int cuDeviceGetCount(int *number) { *number = count; return 0; }
int cuDeviceGet(int *device, int ordinal) { *device = ordinal; return ordinal < count ? 0 : 101; }
int cuDeviceGetName(char *text, int n, int device) { snprintf(text, n, "NVIDIA shim"); return 0; }
int cuDeviceGetPCIBusId(char *text, int n, int device)
{
    snprintf(text, n, "0000:0%d:00.0", device + 1);
    return 0;
}
int cuDeviceGetUuid(unsigned char *bytes, int device) { memset(bytes, device + 1, 16); return 0; }
int cuDeviceGetUuid_v2(unsigned char *bytes, int device) { return cuDeviceGetUuid(bytes, device); }
int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    *value = attribute == 75 ? 9 : attribute == 76 ? 0 : 132;
    return 0;
}
int cuDevicePrimaryCtxRetain(void **context, int device) { *context = (void *)0x7E0000000001; return 0; }
int cuCtxSetCurrent(void *context) { return context == (void *)0x7E0000000001 ? 0 : 201; }
#define AWAY ((uint64_t)1 << 46)
#define HERE(pointer) ((char *)((pointer) - AWAY))
int cuMemAlloc_v2(uint64_t *pointer, size_t size) { *pointer = (uint64_t)malloc(size) + AWAY; return 0; }
int cuMemFree_v2(uint64_t pointer) { free(HERE(pointer)); return 0; }
int cuMemcpyHtoD_v2(uint64_t to, const void *data, size_t size) { memcpy(HERE(to), data, size); return 0; }
int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t size) { memcpy(to, HERE(from), size); return 0; }
int cuMemsetD8_v2(uint64_t to, unsigned char byte, size_t size) { memset(HERE(to), byte, size); return 0; }
int cuEventCreate(void **event, unsigned flags)
{
    *event = (void *)(0x7E0000000100 + used++ % EVENTS);
    return 0;
}
#define AT(event) events[(uintptr_t)(event) - 0x7E0000000100]
int cuEventRecord(void *event, void *stream) { AT(event) = now; return stream ? 1 : 0; }
int cuEventQuery(void *event) { return hanging ? 600 : 0; }
int cuEventElapsedTime(float *milliseconds, void *one, void *other)
{
    *milliseconds = (AT(other) - AT(one)) * 1000;
    return 0;
}
int cuEventDestroy_v2(void *event) { return 0; }
"""

NCCL = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SLOT = 4 << 20, RANKS = 8 };
struct shared { int arrived, pad[15]; char slots[RANKS][SLOT]; };
struct comm { int ranks, rank, rounds; struct shared *shared; };
typedef struct { char path[128]; } id;
static char last[256];

static int is(const char *name, const char *value)
{
    const char *set = getenv(name);
    return set && !strcmp(set, value);
}
/* Whether SHIM_NCCL asks for this, and nothing that the user could set is set against it. */
static int goes(const char *wrong)
{
    const char *text = getenv("SHIM_NCCL");
    size_t n = strlen(wrong);
    if (!text || strncmp(text, wrong, n) || (text[n] && text[n] != '-'))
        return 0;
    if (!strcmp(text + n, "-p2p"))
        return !is("NCCL_P2P_DISABLE", "1");
    if (!strcmp(text + n, "-nvls"))
        return !is("NCCL_NVLS_ENABLE", "0");
    return !text[n];
}
static void say(const char *format, ...)
{
    static FILE *file;
    const char *path = getenv("NCCL_DEBUG_FILE");
    va_list list;
    if (!file)
        file = path ? fopen(path, "w") : stdout;
    va_start(list, format);
    fprintf(file, "vm:%d:%d [0] NCCL ", getpid(), getpid());
    vfprintf(file, format, list);
    fprintf(file, "\n");
    fflush(file);
    va_end(list);
}
int ncclGetVersion(int *version) { *version = 22105; return 0; }
const char *ncclGetErrorString(int code)
{
    return code == 1 ? "unhandled cuda error (run with NCCL_DEBUG=INFO for details)"
                     : "unhandled system error (run with NCCL_DEBUG=INFO for details)";
}
const char *ncclGetLastError(void *comm) { return last; }
int ncclGetUniqueId(id *made)
{
    const char *folder = getenv("SHIM_FOLDER");
    snprintf(made->path, sizeof made->path, "%s/%d-XXXXXX", folder ? folder : "/tmp", getpid());
    int file = mkstemp(made->path);
    if (ftruncate(file, sizeof(struct shared)))
        return 2;
    close(file);
    return 0;
}
static int fails(int code)
{
    const char *warning = getenv("SHIM_WARN");
    snprintf(last, sizeof last, "%s", warning ? warning : "");
    say("WARN %s", last);
    return code;
}
int ncclCommInitRank(struct comm **made, int ranks, id unique, int rank)
{
    struct comm *comm = calloc(1, sizeof *comm);
    const char *segment = getenv("SHIM_SEGMENT");
    int file = open(unique.path, O_RDWR);
    if (file < 0)
        return 2;
    if (segment && !is("NCCL_P2P_DISABLE", "1")) {
        int own = open(segment, O_RDWR | O_CREAT, 0600);
        if (ftruncate(own, 4096) || !mmap(0, 4096, PROT_READ, MAP_SHARED, own, 0))
            return 2;
    }
    say("INFO NCCL version 2.21.5+cuda12.4");
    if (goes("old-driver"))
        return fails(1);
    comm->shared = mmap(0, sizeof *comm->shared, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    comm->ranks = ranks;
    comm->rank = rank;
    *made = comm;
    say("INFO %d coll channels, 0 collnet channels, 16 nvls channels, 32 p2p channels",
        ranks == 1 ? 32 : 24);
    if (ranks == 1)
        return 0;
    while (goes("hang-join"))
        pause();
    if (goes("fail"))
        return fails(2);
    if (getenv("NCCL_P2P_DISABLE"))
        say("INFO NCCL_P2P_DISABLE set by environment to %s.", getenv("NCCL_P2P_DISABLE"));
    if (is("SHIM_NVLS", "1") && !is("NCCL_NVLS_ENABLE", "0"))
        say("INFO NVLS multicast support is available on dev %d", rank);
    say("INFO Channel 00/0 : %d[%d] -> %d[%d] via %s", rank, rank, (rank + 1) % ranks,
        (rank + 1) % ranks, is("NCCL_P2P_DISABLE", "1") ? "SHM/direct/direct" : "P2P/CUMEM/read");
    return 0;
}
int ncclCommDestroy(struct comm *comm) { return 0; }
int ncclCommGetAsyncError(struct comm *comm, int *code) { *code = 0; return 0; }
static void meet(struct comm *comm)
{
    comm->rounds++;
    __atomic_add_fetch(&comm->shared->arrived, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&comm->shared->arrived, __ATOMIC_SEQ_CST) < comm->rounds * comm->ranks)
        sched_yield();
}
static double value(const char *at, int kind)
{
    uint16_t half;
    float single;
    int32_t integer;
    memcpy(&half, at, 2);
    if (kind == 6)
        return half ? ldexp(1024 + (half & 1023), (half >> 10 & 31) - 25) : 0;
    memcpy(&single, at, 4);
    memcpy(&integer, at, 4);
    return kind == 7 ? single : integer;
}
static void store(char *at, int kind, double sum)
{
    int exponent;
    double fraction = frexp(sum, &exponent);
    uint16_t half = sum ? (uint16_t)((exponent + 14) << 10) + (uint16_t)(fraction * 2048 - 1024) : 0;
    float single = sum;
    int32_t integer = sum;
    if (kind == 6)
        memcpy(at, &half, 2);
    else
        memcpy(at, kind == 7 ? (void *)&single : (void *)&integer, 4);
}
int ncclAllReduce(const void *from, void *to, size_t count, int kind, int operation, struct comm *comm,
                  void *stream)
{
    char *here = (char *)to - ((uint64_t)1 << 46);
    size_t width = kind == 6 ? 2 : 4;
    void *cuda = dlopen("libcuda.so.1", RTLD_NOW);
    const char *rate = getenv("SHIM_GBS");
    void (*work)(double) = (void (*)(double))dlsym(cuda, "shim_work");
    if (from != to || stream)
        return 4;
    if (comm->ranks > 1)
        say("INFO AllReduce: %zu Bytes -> Algo %d proto 2 time 12.5", count * width,
            is("SHIM_NVLS", "1") && !is("NCCL_NVLS_ENABLE", "0") ? 4 : 1);
    if (comm->ranks > 1 && goes("hang")) {
        ((void (*)(void))dlsym(cuda, "shim_hang"))();
        return 0;
    }
    work(count * width * 2.0 * (comm->ranks - 1) / comm->ranks / 1e9 / (rate ? atof(rate) : 300));
    if (comm->ranks == 1 || count * width > SLOT)
        return 0;
    memcpy(comm->shared->slots[comm->rank], here, count * width);
    meet(comm);
    for (size_t i = 0; i < count; i++) {
        double sum = operation == 2 ? -INFINITY : 0;
        for (int rank = 0; rank < comm->ranks; rank++) {
            double one = value(comm->shared->slots[rank] + i * width, kind);
            sum = operation != 2 ? sum + one : one > sum ? one : sum;
        }
        store(here + i * width, kind, sum + (i == 5 && comm->rank == 1 && kind == 7 && goes("wrong")));
    }
    meet(comm);
    return 0;
}
"""


def build(folder: Path) -> Path:
    """A folder for LD_LIBRARY_PATH with libcuda.so.1 and libnccl.so.2."""
    folder.mkdir()
    probing.compile_library(CUDA, folder, "libcuda.so.1")
    probing.compile_library(NCCL, folder, "libnccl.so.2")
    return folder
