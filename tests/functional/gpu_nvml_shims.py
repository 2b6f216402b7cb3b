"""C source of the libnvidia-ml that goes with ``gpu_shims``' libcuda: SHIM_COUNT GPUs, one by default.

What NVML says may move: SHIM_MOVES is a file of rows "GPU NAME SECONDS VALUE", from that time on
(CLOCK_MONOTONIC), or so many "+SECONDS" after the library was loaded; of several, the last counts. Names are
those of ``moved`` below, and "lost", "hang", "xid" (one event at that time).
"""

from __future__ import annotations

from gpu_shims import FROM

NVML = (
    FROM
    + r"""
static double uptime(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + now.tv_nsec / 1e9;
}
struct move { unsigned gpu; char name[24]; double since; long long value; };
static struct move moves[256];
static int moves_count;
__attribute__((constructor)) static void read_moves(void)
{
    const char *path = getenv("SHIM_MOVES");
    FILE *file = path ? fopen(path, "r") : 0;
    struct move *one = moves;
    char since[32];
    while (file && one < moves + 256
           && fscanf(file, "%u %23s %31s %lld", &one->gpu, one->name, since, &one->value) == 4) {
        one->since = atof(since) + (*since == '+' ? uptime() : 0);
        one++;
    }
    moves_count = one - moves;
    if (file)
        fclose(file);
}
static long long moved(const char *name, void *device, long long otherwise)
{
    for (struct move *one = moves; one < moves + moves_count; one++)
        if (one->gpu == (size_t)device - 1 && !strcmp(one->name, name) && uptime() >= one->since)
            otherwise = one->value;
    return otherwise;
}
/* What every call about a GPU comes to first. */
static int gone(void *device)
{
    while (moved("hang", device, 0))
        pause();
    return moved("lost", device, 0) ? 15 : 0;
}

int nvmlInitWithFlags(unsigned flags) { return from("SHIM_NVML", 0); }
const char *nvmlErrorString(int code) { return "shim"; }
#define GPU(device) ((size_t)(device) - 1 < (size_t)from("SHIM_COUNT", 1))
#define MIG ((void *)100)

int nvmlDeviceGetCount_v2(unsigned *count) { *count = from("SHIM_COUNT", 1); return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device)
{
    *device = (void *)(size_t)(index + 1);
    return GPU(*device) ? 0 : 6;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char *address, void **device)
{
    unsigned bus = 0;
    sscanf(address, "0000:%x:00.0", &bus);
    return nvmlDeviceGetHandleByIndex_v2(bus - 0x83, device);
}
int nvmlDeviceGetHandleByUUID(const char *uuid, void **device)
{
    *device = strncmp(uuid, "MIG-", 4) ? (void *)1 : MIG;
    return 0;
}
int nvmlDeviceGetGpuInstanceId(void *device, unsigned *id) { *id = 5; return device == MIG ? 0 : 2; }
int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(void *mig, void **device) { *device = (void *)1; return 0; }
int nvmlDeviceGetClockInfo(void *device, int kind, unsigned *mhz)
{
    *mhz = kind == 1 ? moved("sm_clock", device, from("SHIM_MHZ", 1755)) : 2619;
    return gone(device) ? 15 : GPU(device) && (kind == 1 || kind == 2) ? 0 : 2;
}
int nvmlDeviceGetCurrentClocksEventReasons(void *device, unsigned long long *reasons)
{
    *reasons = moved("reasons", device, 4);
    return gone(device) ? 15 : from("SHIM_OLD_NVML", 0) ? 13 : 0;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *reasons)
{
    *reasons = 8;
    return 0;
}
int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts)
{
    *milliwatts = moved("power", device, 698700);
    return gone(device);
}
int nvmlDeviceGetEnforcedPowerLimit(void *device, unsigned *milliwatts)
{
    *milliwatts = 700000;
    return gone(device);
}
int nvmlDeviceGetPcieReplayCounter(void *device, unsigned *count)
{
    *count = moved("replays", device, 0);
    return gone(device);
}
int nvmlDeviceGetCurrPcieLinkWidth(void *device, unsigned *width)
{
    *width = moved("width", device, 16);
    return gone(device);
}
int nvmlDeviceGetTotalEccErrors(void *device, unsigned kind, unsigned counter, unsigned long long *count)
{
    *count = moved(kind ? "uncorrected" : "corrected", device, 0);
    return gone(device);
}
int nvmlDeviceGetRemappedRows(void *device, unsigned *corrected, unsigned *uncorrected, unsigned *pending,
                              unsigned *failed)
{
    *corrected = 0;
    *uncorrected = *pending = moved("remapped", device, 0);
    *failed = 0;
    return gone(device);
}
struct event { void *device; unsigned long long kind, data; unsigned gpu_instance, compute_instance; };
struct set { void *device; double until; };
int nvmlEventSetCreate(struct set **set) { *set = calloc(1, sizeof **set); return 0; }
int nvmlEventSetFree(struct set *set) { free(set); return 0; }
int nvmlDeviceRegisterEvents(void *device, unsigned long long kinds, struct set *set)
{
    set->device = device;
    set->until = uptime();
    return kinds == 8 ? 0 : 3;
}
int nvmlEventSetWait_v2(struct set *set, struct event *event, unsigned milliseconds)
{
    for (struct move *one = moves; one < moves + moves_count; one++)
        if (one->gpu == (size_t)set->device - 1 && !strcmp(one->name, "xid") && one->since > set->until
            && uptime() >= one->since) {
            set->until = one->since;
            *event = (struct event){set->device, 8, one->value, ~0u, ~0u};
            return 0;
        }
    return 10;
}
int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *celsius)
{
    *celsius = moved("temperature", device, 61);
    return gone(device) ? 15 : from("SHIM_NO_TEMPERATURE", 0) ? 3 : 0;
}

/* What the machine's probe asks; a function that is not here is not supported. */
static int say(char *buffer, unsigned length, const char *words)
{
    snprintf(buffer, length, "%s", words);
    return 0;
}
int nvmlSystemGetNVMLVersion(char *text, unsigned n) { return say(text, n, "12.570.86.15"); }
int nvmlSystemGetDriverVersion(char *text, unsigned n) { return say(text, n, "570.86.15"); }
int nvmlSystemGetCudaDriverVersion_v2(int *version) { *version = from("SHIM_VERSION", 12020); return 0; }
int nvmlSystemGetProcessName(unsigned pid, char *name, unsigned n) { return say(name, n, "/usr/bin/python"); }
int nvmlDeviceGetName(void *device, char *name, unsigned n)
{
    const char *text = getenv("SHIM_NAME");
    return say(name, n, text ? text : "NVIDIA Shim");
}
int nvmlDeviceGetUUID(void *device, char *uuid, unsigned n)
{
    snprintf(uuid, n, "GPU-abababab-abab-abab-abab-ababababab%02zx", 0xAA + (size_t)device);
    return 0;
}
struct pci {
    char legacy[16];
    unsigned domain, bus, device, id, subsystem;
    char bus_id[32];
};
int nvmlDeviceGetPciInfo_v3(void *device, struct pci *pci)
{
    snprintf(pci->bus_id, 32, "00000000:%02zX:00.0", 0x82 + (size_t)device);
    return 0;
}
int nvmlDeviceGetCudaComputeCapability(void *device, int *major, int *minor)
{
    *major = from("SHIM_CAPABILITY", 90) / 10;
    *minor = from("SHIM_CAPABILITY", 90) % 10;
    return 0;
}
int nvmlDeviceGetComputeMode(void *device, unsigned *mode) { *mode = from("SHIM_COMPUTE_MODE", 0); return 0; }
struct rates { unsigned gpu, memory; };
int nvmlDeviceGetUtilizationRates(void *device, struct rates *rates)
{
    rates->gpu = from("SHIM_UTILIZATION", 0);
    return 0;
}
struct process { unsigned pid; unsigned long long memory; unsigned gpu_instance, compute_instance; };
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, struct process *processes)
{
    unsigned there = (size_t)device == (size_t)from("SHIM_USED_BY", 0); /* the GPU's number, from 1 on */
    unsigned room = *count;
    *count = there;
    if (!there || !processes || !room)
        return there ? 7 : 0;
    processes[0] = (struct process){4242, 20480ull << 20, ~0u, ~0u};
    return 0;
}
"""
)
