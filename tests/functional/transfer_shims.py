"""C source of a stand-in libcuda whose memory is real, whose copies really copy, and whose time is made up.

It has SHIM_COUNT GPUs. "Kernels" are those of transfers/pattern_ptx and of soak/, by their names, done in C:
the PTX itself is run by tests/unit/test_pattern_ptx.py and test_soak_ptx.py. A copy takes as long as its rate
says: GB/s in SHIM_DTOD, SHIM_H2D, SHIM_D2H, SHIM_PAGEABLE, SHIM_REGISTERED, SHIM_PEER and SHIM_STAGED.

SHIM_WRONG=memory, link, peer or load: what is written, copied or loaded so has a wrong bit.
SHIM_HANG=memory, link or peer: that never ends.  SHIM_ECC=1: a check meets an uncorrectable error.
SHIM_OOM_MIB: no more memory than that.  SHIM_NO_PEER, SHIM_NO_PINNED, SHIM_NO_REGISTER, SHIM_INTEGRATED,
SHIM_MIG: as they say.

A product takes SHIM_PRODUCT_US of real time. These are "GPU:N", from that GPU's N-th product on or at it:
SHIM_FLIP flips a bit of that one; SHIM_DIES ends the context; SHIM_STOPS never ends; SHIM_SLOWS takes half as
long again; SHIM_ODD (any N) gives other results than other GPUs; SHIM_ODD_UNIT has one multiprocessor whose
results are not as the others' (blocks are on other multiprocessors in each product); SHIM_MEMORY_FLIP flips a
bit of the memory that holds a pattern.
"""

from __future__ import annotations

from gpu_shims import FROM

CUDA = (
    FROM
    + r"""
struct event { double at; };
struct context { int device; };
static struct context contexts[16];
static struct context *current;
static double streams[64]; /* until when each is busy; the first is the default stream */
static size_t held;
static int dead, streams_made = 1;
static int enabled[16][16];
static void *pinned[64];
static size_t pinned_size[64];
static int is_registered[64];

static int is(const char *variable, const char *word) { return listed(variable, word); }
static double rate(const char *name, double otherwise)
{
    const char *text = getenv(name);
    return (text ? atof(text) : otherwise) * 1e9;
}
static double *clock_of(void *stream) { return &streams[(size_t)stream]; }
static double host; /* what the host waited for is in the past of all that it starts later */
static void takes(void *stream, double seconds)
{
    if (*clock_of(stream) < host)
        *clock_of(stream) = host;
    *clock_of(stream) += seconds;
}
static void stuck(const char *word)
{
    if (is("SHIM_HANG", word))
        for (;;)
            pause();
}

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
int cuDriverGetVersion(int *version) { *version = 12020; return 0; }
int cuDeviceGet(int *device, int ordinal) { *device = visible(ordinal); return *device < 0 ? 101 : 0; }
int cuDeviceGetCount(int *count)
{
    for (*count = 0; visible(*count) >= 0; ++*count)
        ;
    return 0;
}
int cuDeviceGetName(char *name, int length, int device) { snprintf(name, length, "NVIDIA H200"); return 0; }
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
int cuDeviceGetUuid_v2(unsigned char *bytes, int device)
{
    cuDeviceGetUuid(bytes, device);
    bytes[0] += from("SHIM_MIG", 0);
    return 0;
}
int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    switch (attribute) {
    case 16: *value = from("SHIM_SMS", 132); break;
    case 18: *value = from("SHIM_INTEGRATED", 0); break;
    case 38: *value = 4 << 20; break;
    case 75: *value = 9; break;
    case 76: *value = 0; break;
    default: return 1;
    }
    return 0;
}
int cuDevicePrimaryCtxRetain(struct context **context, int device)
{
    contexts[device].device = device;
    *context = &contexts[device];
    return 0;
}
int cuDevicePrimaryCtxRelease_v2(int device) { return 0; }
int cuCtxSetCurrent(struct context *context) { current = context; return 0; }
int cuCtxSynchronize(void) { return dead; }
int cuMemGetInfo_v2(size_t *free, size_t *total) { *free = 300u << 20; *total = 80ull << 30; return dead; }

/* Device memory: the host's, with the number of its device and its size before it. */
struct area { size_t size; int device; };
int cuMemAlloc_v2(uint64_t *pointer, size_t size)
{
    struct area *area;
    if (held + size > (size_t)from("SHIM_OOM_MIB", 4096) << 20)
        return 2;
    area = malloc(sizeof *area + size);
    area->size = size;
    area->device = current->device;
    held += size;
    *pointer = (uint64_t)(size_t)(area + 1);
    return dead;
}
int cuMemFree_v2(uint64_t pointer)
{
    struct area *area = (struct area *)(size_t)pointer - 1;
    held -= area->size;
    free(area);
    return dead;
}
static void flip(uint64_t to, size_t size)
{
    ((uint64_t *)(size_t)to)[size / 16] ^= 1 << 4;
    ((uint64_t *)(size_t)to)[size / 16 + 2] ^= 1 << 4;
}
int cuMemsetD8_v2(uint64_t to, unsigned char byte, size_t size)
{
    memset((void *)(size_t)to, byte, size);
    return dead;
}

/* Host memory */
static int place_of(void *address)
{
    for (int i = 0; i < 64; i++) {
        char *begin = pinned[i];
        if (begin && (char *)address >= begin && (char *)address < begin + pinned_size[i])
            return i;
    }
    return -1;
}
static int pin(void *address, size_t size, int registered)
{
    for (int i = 0; i < 64; i++)
        if (!pinned[i]) {
            pinned[i] = address;
            pinned_size[i] = size;
            is_registered[i] = registered;
            return dead;
        }
    return 2;
}
int cuMemHostAlloc(void **address, size_t size, unsigned flags)
{
    if (from("SHIM_NO_PINNED", 0))
        return 2;
    *address = malloc(size);
    return pin(*address, size, 0);
}
int cuMemFreeHost(void *address) { pinned[place_of(address)] = 0; free(address); return dead; }
int cuMemHostRegister_v2(void *address, size_t size, unsigned flags)
{
    return from("SHIM_NO_REGISTER", 0) ? 801 : pin(address, size, 1);
}
int cuMemHostUnregister(void *address) { pinned[place_of(address)] = 0; return dead; }
static double host_rate(void *address, const char *name, double otherwise)
{
    int place = place_of(address);
    if (place < 0)
        return rate("SHIM_PAGEABLE", 8);
    return is_registered[place] ? rate("SHIM_REGISTERED", otherwise) : rate(name, otherwise);
}

/* Copies */
int cuMemcpyHtoDAsync_v2(uint64_t to, void *data, size_t size, void *stream)
{
    stuck("link");
    memcpy((void *)(size_t)to, data, size);
    if (is("SHIM_WRONG", "link"))
        flip(to, size);
    takes(stream, size / host_rate(data, "SHIM_H2D", 25));
    return dead;
}
int cuMemcpyDtoHAsync_v2(void *data, uint64_t from_, size_t size, void *stream)
{
    stuck("link");
    memcpy(data, (void *)(size_t)from_, size);
    takes(stream, size / host_rate(data, "SHIM_D2H", 26));
    return dead;
}
int cuMemcpyHtoD_v2(uint64_t to, void *data, size_t size)
{
    memcpy((void *)(size_t)to, data, size);
    return dead;
}
int cuMemcpyDtoH_v2(void *data, uint64_t from_, size_t size)
{
    memcpy(data, (void *)(size_t)from_, size);
    return dead;
}
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from_, size_t size, void *stream)
{
    memcpy((void *)(size_t)to, (void *)(size_t)from_, size);
    takes(stream, 2 * size / rate("SHIM_DTOD", 3900));
    return dead;
}
int cuDeviceCanAccessPeer(int *can, int device, int peer) { *can = !from("SHIM_NO_PEER", 0); return 0; }
int cuCtxEnablePeerAccess(struct context *peer, unsigned flags)
{
    if (enabled[current->device][peer->device])
        return 704;
    enabled[current->device][peer->device] = 1;
    return dead;
}
int cuCtxDisablePeerAccess(struct context *peer)
{
    enabled[current->device][peer->device] = 0;
    return dead;
}
int cuMemcpyPeerAsync(uint64_t to, struct context *there, uint64_t from_, struct context *here, size_t size,
                      void *stream)
{
    int direct = enabled[here->device][there->device];
    if (direct)
        stuck("peer");
    memcpy((void *)(size_t)to, (void *)(size_t)from_, size);
    if (direct && is("SHIM_WRONG", "peer"))
        flip(to, size);
    takes(stream, size / (direct ? rate("SHIM_PEER", 380) : rate("SHIM_STAGED", 18)));
    return dead;
}

/* Streams and events: an event has the time at which its stream comes to it. */
int cuStreamCreate(size_t *stream, unsigned flags) { *stream = streams_made++; return dead; }
int cuStreamDestroy_v2(void *stream) { streams_made--; return dead; }
int cuStreamWaitEvent(void *stream, struct event *event, unsigned flags)
{
    if (*clock_of(stream) < event->at)
        *clock_of(stream) = event->at;
    return dead;
}
int cuEventCreate(struct event **event, unsigned flags) { *event = calloc(1, sizeof **event); return dead; }
int cuEventRecord(struct event *event, void *stream)
{
    takes(stream, 0);
    event->at = *clock_of(stream);
    return dead;
}
int cuEventQuery(struct event *event) { return dead; }
int cuEventSynchronize(struct event *event)
{
    host = event->at > host ? event->at : host;
    return dead;
}
int cuEventElapsedTime(float *milliseconds, struct event *first, struct event *second)
{
    *milliseconds = (second->at - first->at) * 1e3;
    return dead;
}
int cuEventDestroy_v2(struct event *event) { free(event); return dead; }

/* Programs */
int cuLinkCreate_v2(unsigned count, int *options, void **values, void **state)
{
    *state = &dead;
    return dead;
}
static char *program;
int cuLinkAddData_v2(void *state, int kind, void *data, size_t size, const char *name, unsigned count,
                     int *options, void **values)
{
    program = strdup(data);
    return from("SHIM_NO_JIT", 0) ? 218 : dead;
}
int cuLinkComplete(void *state, void **cubin, size_t *size)
{
    *cubin = program;
    *size = strlen(program);
    return dead;
}
int cuLinkDestroy(void *state) { return 0; }
int cuModuleLoadData(void **module, const void *image) { *module = &dead; return dead; }
int cuModuleGetFunction(const char **function, void *module, const char *name)
{
    char entry[64];
    snprintf(entry, sizeof entry, ".entry %s(", name);
    *function = strdup(name);
    return strstr(program, entry) ? dead : 500;
}
static long products;
/* Whether "GPU:N" in a variable is this GPU and, with ``at``, exactly this number of product. */
static int now_is(const char *variable, int at)
{
    const char *text = getenv(variable);
    int gpu;
    long number;
    if (!text || sscanf(text, "%d:%ld", &gpu, &number) != 2 || gpu != current->device)
        return 0;
    return at ? products == number : products >= number;
}
static uint32_t *patterned; /* what the last area with a pattern is */
/* What soak/product_ptx.py's kernel for mma m16n8k16 makes of a block's operands: 2 x 4 tiles a warp. */
static double half(uint16_t word)
{
    double value = ldexp(1024 + (word & 1023), (word >> 10 & 31) - 25);
    return word >> 15 ? -value : value;
}
static float result_of(const uint16_t *operands, unsigned thread, unsigned word)
{
    unsigned first = thread / 32 * 32, lane = thread % 32, left = word / 16, right = word / 4 % 4;
    unsigned row = lane / 4 + word % 4 / 2 * 8, column = lane % 4 * 2 + word % 2;
    double sum = 0;
    for (unsigned k = 0; k < 16; k++) {
        unsigned member = k % 8 / 2, high = k / 8;
        unsigned a = (first + row % 8 * 4 + member) * 16 + left * 4 + high * 2 + row / 8;
        unsigned b = (first + column * 4 + member) * 16 + 8 + right * 2 + high;
        sum += half(operands[2 * a + k % 2]) * half(operands[2 * b + k % 2]);
    }
    return sum;
}
static void multiply(const uint16_t *operands, float *result, uint32_t *units, unsigned blocks,
                     unsigned threads)
{
    static float block_result[256 * 32];
    static uint16_t known[256 * 32];
    const unsigned each = threads * 32;
    uint32_t *words = (uint32_t *)result;
    products++;
    if (now_is("SHIM_DIES", 0)) {
        dead = 999;
        return;
    }
    while (now_is("SHIM_STOPS", 0))
        pause();
    usleep(from("SHIM_PRODUCT_US", 2000) * (now_is("SHIM_SLOWS", 0) ? 3 : 2) / 2);
    if (memcmp(known, operands, sizeof known)) {
        memcpy(known, operands, sizeof known);
        for (unsigned i = 0; i < each; i++)
            block_result[i] = result_of(operands, i / 32, i % 32);
    }
    for (unsigned block = 0; block < blocks; block++) {
        units[block] = 40 + (block + products) % blocks; /* another one in each product */
        memcpy(result + block * each, block_result, sizeof block_result);
        words[block * each] ^= now_is("SHIM_ODD", 0) ? 1 : 0;
    }
    if (now_is("SHIM_FLIP", 1))
        words[each + 1000] ^= 1 << 5;
    for (unsigned block = 0; block < blocks; block++)
        if (now_is("SHIM_ODD_UNIT", 0) && units[block] == 42)
            words[block * each + 7] ^= 1;
    if (now_is("SHIM_MEMORY_FLIP", 1) && patterned)
        patterned[11] ^= 1 << 4;
}
static void compare(uint32_t *found, uint32_t *wanted, uint32_t *difference, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (found[i] != wanted[i] && !difference[0]++) {
            difference[1] = i;
            difference[2] = found[i];
            difference[3] = wanted[i];
        }
}
#define ARGUMENT(number) (*(uint64_t *)arguments[number])
#define FACTOR 2177342782468422677ull
static void check(uint64_t *words, size_t count, uint64_t seed, uint64_t mask, uint32_t *result)
{
    int loads = ((struct area *)words - 1)->device != current->device && is("SHIM_WRONG", "load");
    for (size_t i = 0; i < count; i++) {
        uint64_t differs = words[i] ^ (i * FACTOR + seed) ^ mask ^ (loads && i == 7);
        if (differs) {
            result[0]++;
            result[1] = result[1] < i ? result[1] : i;
            result[2] = result[2] > i ? result[2] : i;
            result[3] |= differs;
            result[4] |= differs >> 32;
        }
    }
    if (from("SHIM_ECC", 0))
        dead = 214;
}
int cuLaunchKernel(const char *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, void *stream, void **arguments, void **extra)
{
    size_t threads = (size_t)gx * bx, count;
    uint64_t *words = (uint64_t *)(size_t)ARGUMENT(0);
    if (!strcmp(function, "multiply")) {
        multiply((uint16_t *)words, (float *)(size_t)ARGUMENT(1), (uint32_t *)(size_t)ARGUMENT(2), gx, bx);
    } else if (!strcmp(function, "compare")) {
        compare((uint32_t *)words, (uint32_t *)(size_t)ARGUMENT(1), (uint32_t *)(size_t)ARGUMENT(2),
                threads * *(uint32_t *)arguments[3]);
    } else if (!strcmp(function, "write")) {
        patterned = (uint32_t *)words;
        stuck("memory");
        count = threads * *(uint32_t *)arguments[3];
        for (size_t i = 0; i < count; i++)
            words[i] = (i * FACTOR + ARGUMENT(1)) ^ ARGUMENT(2);
        if (is("SHIM_WRONG", "memory"))
            flip(ARGUMENT(0), count * 8);
        takes(stream, count * 8 / rate("SHIM_DTOD", 3900));
    } else if (!strcmp(function, "check")) {
        count = threads * *(uint32_t *)arguments[4];
        check(words, count, ARGUMENT(1), ARGUMENT(2), (uint32_t *)(size_t)ARGUMENT(3));
    } else if (!strcmp(function, "read")) {
        count = threads * *(uint32_t *)arguments[2];
        takes(stream, count * 16 / rate("SHIM_DTOD", 3900));
    } else
        return 500;
    return dead;
}
int cuGetErrorName(int code, const char **name)
{
    *name = code == 214 ? "CUDA_ERROR_ECC_UNCORRECTABLE" : code == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : 0;
    *name = code == 999 ? "CUDA_ERROR_UNKNOWN" : *name;
    return *name ? 0 : 1;
}
"""
)
