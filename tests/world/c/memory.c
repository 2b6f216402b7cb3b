/* Of libcuda: contexts, memory that is the host's, copies that really copy, streams and events
   in made-up time.

   A copy takes as long as its rate says, GB/s in SHIM_DTOD, H2D, D2H and PEER.
   Products that other libraries report also take time of the host: SHIM_SLOW percent of it.
   SHIM_WRONG=link or peer: what is copied so has a wrong bit. SHIM_HANG=link or peer: that never
   ends. SHIM_OOM_MIB: no more memory than that. SHIM_NO_PEER: no direct access. */
#include "cuda.h"

struct event { double at, ready; };
struct area { size_t size; int device, pad; }; /* before each piece of device memory */

struct context *current;
int dead;
void (*shim_watcher)(const char *kernel);
static struct context contexts[DEVICES];
static double streams[64]; /* until when each is busy; the first is the default stream */
static double host;        /* what the host waited for is in the past of all that it starts later */
static double ready;       /* when, in the host's time, all that was begun is done */
static int hanging, enabled[DEVICES][DEVICES];
static size_t held;
static struct { char *begin; size_t size; } pinned[64];

static double later(double one, double other) { return one > other ? one : other; }
void takes(void *stream, double seconds)
{
    double *until = streams + (size_t)stream;
    *until = later(*until, host) + seconds;
}
void hangs(const char *word)
{
    while (listed("SHIM_HANG", word))
        pause();
}
void flip(uint64_t at, size_t size)
{
    uint64_t *middle = (uint64_t *)(size_t)at + size / 16;
    middle[0] ^= 1 << 4;
    middle[2] ^= 1 << 4;
}
double rate(const char *variable)
{
    const char *text = getenv(variable);
    return (text ? atof(text) : 20) * 1e9;
}
int device_of(uint64_t pointer) { return ((struct area *)(size_t)pointer)[-1].device; }

/* For the other libraries: a kernel ran, the context broke, an operation never ends. */
void shim_ran(const char *kernel, double seconds)
{
    takes(0, seconds);
    ready = later(ready, now()) + seconds * from("SHIM_SLOW", 0) / 100.0;
    if (shim_watcher)
        shim_watcher(kernel);
}
void shim_die(void) { dead = 700; }
void shim_hang(void) { hanging = 1; }

int cuDevicePrimaryCtxRetain(struct context **context, int device)
{
    *context = contexts + device;
    contexts[device].device = device;
    return 0;
}
int cuDevicePrimaryCtxRelease_v2(int device) { return 0; }
int cuCtxSetCurrent(struct context *context) { current = context; return 0; }
int cuCtxSynchronize(void) { return dead; }

int cuMemGetInfo_v2(size_t *free, size_t *total) { *free = 300u << 20; *total = 80ull << 30; return dead; }
int cuMemAlloc_v2(uint64_t *pointer, size_t size)
{
    struct area *area;
    if (held + size > (size_t)from("SHIM_OOM_MIB", 4096) << 20)
        return 2;
    area = malloc(sizeof *area + size);
    *area = (struct area){size, current ? current->device : 0, 0};
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
static int pin(void *address, size_t size)
{
    for (int i = 0; i < 64; i++)
        if (!pinned[i].begin) {
            pinned[i].begin = address;
            pinned[i].size = size;
            return dead;
        }
    return 2;
}
static int place_of(void *address)
{
    for (int i = 0; i < 64; i++)
        if (pinned[i].begin && (size_t)((char *)address - pinned[i].begin) < pinned[i].size)
            return i;
    return -1;
}
int cuMemHostAlloc(void **address, size_t size, unsigned flags) { return pin(*address = malloc(size), size); }
int cuMemHostUnregister(void *address) { pinned[place_of(address)].begin = 0; return dead; }
int cuMemFreeHost(void *address) { cuMemHostUnregister(address); free(address); return dead; }
int cuMemHostRegister_v2(void *address, size_t size, unsigned flags) { return pin(address, size); }

static int copy(uint64_t to, uint64_t from, size_t size)
{
    memcpy((void *)(size_t)to, (void *)(size_t)from, size);
    return dead;
}
static int linked(uint64_t to, uint64_t from, size_t size, const char *variable, void *stream)
{
    hangs("link");
    takes(stream, size / rate(variable));
    return copy(to, from, size);
}
int cuMemcpyHtoDAsync_v2(uint64_t to, void *data, size_t size, void *stream)
{
    linked(to, (uint64_t)(size_t)data, size, "SHIM_H2D", stream);
    if (listed("SHIM_WRONG", "link"))
        flip(to, size);
    return dead;
}
int cuMemcpyDtoHAsync_v2(void *data, uint64_t from, size_t size, void *stream)
{
    return linked((uint64_t)(size_t)data, from, size, "SHIM_D2H", stream);
}
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t size, void *stream)
{
    takes(stream, 2 * size / rate("SHIM_DTOD"));
    return copy(to, from, size);
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
int cuDeviceCanAccessPeer(int *can, int device, int peer) { *can = !from("SHIM_NO_PEER", 0); return 0; }
int cuCtxEnablePeerAccess(struct context *peer, unsigned flags)
{
    int *one = &enabled[current->device][peer->device], before = *one;
    *one = 1;
    return before ? 704 : dead;
}
int cuCtxDisablePeerAccess(struct context *peer)
{
    enabled[current->device][peer->device] = 0;
    return dead;
}
int cuMemcpyPeerAsync(uint64_t to, struct context *there, uint64_t from, struct context *here, size_t size,
                      void *stream)
{
    int direct = enabled[here->device][there->device];
    if (direct)
        hangs("peer");
    copy(to, from, size);
    if (direct && listed("SHIM_WRONG", "peer"))
        flip(to, size);
    takes(stream, size / rate("SHIM_PEER"));
    return dead;
}

int cuEventCreate(struct event **event, unsigned flags) { *event = calloc(1, sizeof **event); return dead; }
int cuEventRecord(struct event *event, void *stream)
{
    takes(stream, 0);
    *event = (struct event){streams[(size_t)stream], ready};
    return dead;
}
int cuEventQuery(struct event *event) { return dead ? dead : hanging || now() < event->ready ? 600 : 0; }
int cuEventSynchronize(struct event *event)
{
    while (now() < event->ready)
        usleep(100);
    host = later(host, event->at);
    return dead;
}
int cuEventElapsedTime(float *milliseconds, struct event *first, struct event *second)
{
    *milliseconds = (second->at - first->at) * 1e3;
    return dead;
}
int cuEventDestroy_v2(struct event *event) { free(event); return dead; }
