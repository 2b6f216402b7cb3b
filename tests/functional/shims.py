"""C sources of a libcuda and a libnvidia-ml that need no GPU: their answers come from the environment."""

CUDA = r"""
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <signal.h>

static int from(const char *name, int otherwise)
{
    const char *text = getenv(name);
    return text ? atoi(text) : otherwise;
}
int cuInit(unsigned flags)
{
    if (from("SHIM_CHATTY", 0))
        puts("chatty library");
    return flags ? 1 : from("SHIM_INIT", 0);
}
int cuDriverGetVersion(int *version)
{
    *version = from("SHIM_VERSION", 12020);
    return 0;
}
int cuDeviceGetCount(int *count)
{
    /* As libcuda does: the variable decides what there is to see. */
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    *count = visible && !*visible ? 0 : from("SHIM_COUNT", 2);
    return 0;
}
int cuDeviceGet(int *device, int ordinal)
{
    *device = ordinal + 10;
    return 0;
}
int cuDeviceGetName(char *name, int length, int device)
{
    snprintf(name, length, "NVIDIA H%d", 100 * (device - 9));
    return 0;
}
int cuDeviceGetPCIBusId(char *id, int length, int device)
{
    snprintf(id, length, "0000:%02X:00.0", device);
    return 0;
}
int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    *value = attribute == 75 ? 9 : attribute == 76 ? 0 : -1;
    return 0;
}
static int uuid(unsigned char *bytes, int device, int first)
{
    memset(bytes, device, 16);
    bytes[0] = first;
    return 0;
}
int cuDeviceGetUuid(unsigned char *bytes, int device) { return uuid(bytes, device, 0xAB); }
#ifndef OLD
int cuDeviceGetUuid_v2(unsigned char *bytes, int device)
{
    return uuid(bytes, device, 0xAB);
}
int cuGetErrorName(int code, const char **name)
{
    *name = code == 999 ? "CUDA_ERROR_UNKNOWN" : 0;
    return *name ? 0 : 1;
}
#endif
"""

NVML = r"""
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

typedef unsigned long long u64;
#define HANDLE(device) ((int)(size_t)(device) - 1)

static int from(const char *name, int otherwise)
{
    const char *text = getenv(name);
    return text ? atoi(text) : otherwise;
}
static int say(char *buffer, unsigned length, const char *words)
{
    snprintf(buffer, length, "%s", words);
    return 0;
}
int nvmlInitWithFlags(unsigned flags) { return from("SHIM_INIT", 0); }
const char *nvmlErrorString(int code) { return code == 18 ? "Driver/library version mismatch" : "?"; }
int nvmlSystemGetNVMLVersion(char *text, unsigned n) { return say(text, n, "13.590.48.01"); }
int nvmlSystemGetDriverVersion(char *text, unsigned n) { return say(text, n, "590.48.01"); }
int nvmlSystemGetCudaDriverVersion_v2(int *version) { *version = 13010; return 0; }
int nvmlSystemGetProcessName(unsigned pid, char *name, unsigned n) { return say(name, n, "python x"); }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device)
{
    *device = (void *)(size_t)(index + 1);
    return (int)index == from("SHIM_LOST", -1) ? 15 : 0;
}
int nvmlDeviceGetName(void *device, char *name, unsigned n) { return say(name, n, "NVIDIA H200"); }
int nvmlDeviceGetUUID(void *device, char *uuid, unsigned n) { return say(uuid, n, "GPU-1"); }
int nvmlDeviceGetSerial(void *device, char *serial, unsigned n) { return 3; }
int nvmlDeviceGetVbiosVersion(void *device, char *text, unsigned n) { return say(text, n, "\xff\xfe"); }
int nvmlDeviceGetGspFirmwareVersion(void *device, char *text) { return say(text, 64, "590.48.01"); }
struct pci {
    char legacy[16];
    unsigned domain, bus, device, id, subsystem;
    char bus_id[32];
};
int nvmlDeviceGetPciInfo_v3(void *device, struct pci *pci)
{
    snprintf(pci->bus_id, 32, "00000000:%02X:00.0", 0x83 + HANDLE(device));
    return 0;
}
int nvmlDeviceGetCudaComputeCapability(void *device, int *major, int *minor)
{
    *major = 9;
    *minor = 0;
    return 0;
}
int nvmlDeviceGetArchitecture(void *device, unsigned *value) { *value = 9; return 0; }
struct memory { unsigned version; u64 total, reserved, free, used; };
int nvmlDeviceGetMemoryInfo_v2(void *device, struct memory *memory)
{
    if (memory->version != ((2u << 24) | sizeof *memory))
        return 25;
    memory->total = 143771ull << 20;
    memory->used = 7ull << 20;
    memory->free = 143150ull << 20;
    return 0;
}
int nvmlDeviceGetTotalEccErrors(void *device, unsigned kind, unsigned counter, u64 *count)
{
    *count = kind ? (1ull << 33) + counter : counter;
    return 0;
}
struct sram { unsigned version; u64 counters[11]; unsigned exceeded; };
int nvmlDeviceGetSramEccErrorStatus(void *device, struct sram *status)
{
    status->exceeded = status->version == ((1u << 24) | sizeof *status);
    for (int i = 0; i < 11; i++) /* parity, SEC-DED and corrected: aggregate, then volatile; sources */
        status->counters[i] = from("SHIM_FAULTS", 0) ? (1ull << 33) + i : 0;
    return 0;
}
struct histogram { unsigned max, high, partial, low, none; };
int nvmlDeviceGetRowRemapperHistogram(void *device, struct histogram *banks)
{
    *banks = from("SHIM_FAULTS", 0) ? (struct histogram){2555, 1, 2, 3, 4} : (struct histogram){2560};
    return 0;
}
int nvmlDeviceGetGspFirmwareMode(void *device, unsigned *enabled, unsigned *by_default)
{
    *enabled = !from("SHIM_FAULTS", 0);
    *by_default = 1;
    return 0;
}
int nvmlDeviceValidateInforom(void *device) { return from("SHIM_INFOROM", 0); }
int nvmlDeviceGetApplicationsClock(void *device, int kind, unsigned *mhz)
{
    *mhz = kind ? 2619 : from("SHIM_FAULTS", 0) ? 345 : 1980;
    return 0;
}
int nvmlDeviceGetDefaultApplicationsClock(void *device, int kind, unsigned *mhz)
{
    *mhz = kind ? 2619 : 1980;
    return 0;
}
int nvmlDeviceGetTemperatureThreshold(void *device, int kind, unsigned *celsius)
{
    *celsius = kind == 2 ? 95 : 87;
    return 0;
}
int nvmlDeviceGetRetiredPages(void *device, unsigned cause, unsigned *count, u64 *pages)
{
    unsigned room = *count;
    *count = cause ? 0 : 3;
    if (!pages)
        return cause ? 0 : 7;
    return room < *count ? 7 : 0;
}
int nvmlDeviceGetRemappedRows(void *d, unsigned *corr, unsigned *unc, unsigned *pending, unsigned *failed)
{
    *corr = 1, *unc = 2, *pending = 1, *failed = 0;
    return 0;
}
struct repair { unsigned version, channel, tpc; };
int nvmlDeviceGetRepairStatus(void *device, struct repair *status)
{
    status->channel = 1;
    return 0;
}
struct fabric {
    unsigned version;
    unsigned char cluster[16];
    unsigned status, clique;
    unsigned char state;
    unsigned mask;
    unsigned char summary;
};
int nvmlDeviceGetGpuFabricInfoV(void *device, struct fabric *fabric)
{
    if (fabric->version != ((3u << 24) | sizeof *fabric) || from("SHIM_OLD_FABRIC", 0))
        return fabric->version >> 24 == 2 ? (fabric->state = 3, fabric->mask = 0x1A9, 0) : 25;
    fabric->state = 3;
    fabric->summary = 1;
    fabric->mask = from("SHIM_FABRIC_MASK", 0);
    fabric->clique = 4026;
    memset(fabric->cluster, 0xAB, sizeof fabric->cluster);
    return 0;
}
struct value {
    unsigned id, scope;
    long long timestamp, latency;
    int type, result;
    u64 value;
};
int nvmlDeviceGetFieldValues(void *device, int count, struct value *values)
{
    for (int i = 0; i < count; i++) {
        values[i].type = 1;
        values[i].result = values[i].id == 226 ? 26 : 0;
        values[i].value = values[i].id == 82 ? 32 : from("SHIM_RECOVERY", 0);
        if (values[i].id >= 269 && values[i].id <= 271) {
            values[i].type = 3;
            values[i].value = from("SHIM_FAULTS", 0) * (values[i].id - 268) * 10000000000ull;
        }
        if (values[i].id == 189 || values[i].id == 190) /* the module's limits */
            values[i].value = values[i].scope == 1 ? 1000u * values[i].id : 0;
    }
    return 0;
}
struct process { unsigned pid; u64 memory; unsigned gpu_instance, compute_instance; };
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, struct process *processes)
{
    if (!processes) {
        *count = 1;
        return 7;
    }
    *count = 1;
    processes[0].pid = 42;
    processes[0].memory = 512ull << 20;
    return 0;
}
int nvmlDeviceGetNvLinkState(void *device, unsigned link, unsigned *active)
{
    *active = 1;
    return link < 18 ? 0 : 2;
}
int nvmlDeviceGetNvLinkErrorCounter(void *device, unsigned link, unsigned counter, u64 *value)
{
    *value = counter;
    return 0;
}
int nvmlDeviceGetMigMode(void *device, unsigned *current, unsigned *pending)
{
    *current = *pending = HANDLE(device) == 1;
    return 0;
}
int nvmlDeviceGetMaxMigDeviceCount(void *device, unsigned *count) { *count = 7; return 0; }
int nvmlDeviceGetMigDeviceHandleByIndex(void *device, unsigned index, void **mig)
{
    *mig = (void *)(size_t)(100 + index);
    return index == 2 ? 0 : 6;
}
int nvmlDeviceGetGpuInstanceId(void *device, unsigned *id) { *id = 5; return 0; }
int nvmlDeviceGetComputeInstanceId(void *device, unsigned *id) { *id = 0; return 0; }
struct attributes { unsigned sm, ce, dec, enc, jpg, ofa, gpu_slices, compute_slices; u64 memory; };
int nvmlDeviceGetAttributes_v2(void *device, struct attributes *attributes)
{
    attributes->sm = 16;
    attributes->memory = 9984;
    return 0;
}
struct expiry { unsigned year; unsigned short month, day, hour, min, sec; unsigned char status; };
struct feature {
    int code;
    unsigned state;
    char info[128], product[128];
    unsigned enabled;
    struct expiry expiry;
};
struct features { int supported; unsigned count; struct feature list[3]; };
int nvmlDeviceGetGridLicensableFeatures_v4(void *device, struct features *features)
{
    features->supported = 1;
    features->count = 1;
    features->list[0].state = features->list[0].enabled = 1;
    features->list[0].expiry = (struct expiry){2026, 7, 7, 16, 1, 44, 2};
    return 0;
}
int nvmlDeviceGetVirtualizationMode(void *device, u64 *mode) { *mode = 2; return 0; }
int nvmlDeviceGetTopologyCommonAncestor(void *one, void *other, unsigned *level) { *level = 40; return 0; }
int nvmlDeviceGetP2PStatus(void *one, void *other, unsigned index, unsigned *status)
{
    *status = index ? 6 : 5;
    return 0;
}
"""
