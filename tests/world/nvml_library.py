"""A libnvidia-ml.so.1 in C that answers out of the file /.made/nvml: what a row says, for one GPU or for all.

A row is "GPU FUNCTION KEY CODE WHEN BLOB...", the first that fits counts. GPU is a handle's number, 0 where
there is none, or *. KEY is the arguments between the handle and the answers, by commas. WHEN is "-", or
of after=N (calls of this process), seconds=S (since the library was loaded), hang, crash. A BLOB is
what is written, in hexadecimal; "N:hex" is a list of N. What no row answers is not supported.
"""

from __future__ import annotations

# h a device, k a number in, o a value out, v a structure out whose version must fit, s a string and its
# room, S a string, l a list and its count.
SIGNATURES = """
nvmlSystemGetNVMLVersion s
nvmlSystemGetDriverVersion s
nvmlSystemGetCudaDriverVersion_v2 o
nvmlSystemGetProcessName ks
nvmlSystemGetConfComputeState o
nvmlDeviceGetCount_v2 o
nvmlDeviceGetHandleByIndex_v2 ko
nvmlUnitGetCount o
nvmlDeviceGetPciInfo_v3 ho
nvmlDeviceGetUUID hs
nvmlDeviceGetSerial hs
nvmlDeviceGetName hs
nvmlDeviceGetBrand ho
nvmlDeviceGetBoardPartNumber hs
nvmlDeviceGetBoardId ho
nvmlDeviceGetMultiGpuBoard ho
nvmlDeviceGetArchitecture ho
nvmlDeviceGetCudaComputeCapability hoo
nvmlDeviceGetMinorNumber ho
nvmlDeviceGetModuleId ho
nvmlDeviceGetVbiosVersion hs
nvmlDeviceGetInforomImageVersion hs
nvmlDeviceGetInforomVersion hks
nvmlDeviceGetInforomConfigurationChecksum ho
nvmlDeviceValidateInforom h
nvmlDeviceGetGspFirmwareVersion hS
nvmlDeviceGetGspFirmwareMode hoo
nvmlDeviceGetVirtualizationMode ho
nvmlDeviceGetDriverModel_v2 hoo
nvmlDeviceGetAddressingMode hv
nvmlDeviceGetPersistenceMode ho
nvmlDeviceGetComputeMode ho
nvmlDeviceGetPerformanceState ho
nvmlDeviceGetPowerState ho
nvmlDeviceGetBAR1MemoryInfo ho
nvmlDeviceGetMemoryInfo ho
nvmlDeviceGetMemoryInfo_v2 hv
nvmlDeviceGetMemoryBusWidth ho
nvmlDeviceGetNumGpuCores ho
nvmlDeviceGetMigMode hoo
nvmlDeviceGetMaxMigDeviceCount ho
nvmlDeviceGetMigDeviceHandleByIndex hko
nvmlDeviceGetGpuInstanceId ho
nvmlDeviceGetComputeInstanceId ho
nvmlDeviceGetAttributes_v2 ho
nvmlDeviceGetEccMode hoo
nvmlDeviceGetDefaultEccMode ho
nvmlDeviceGetTotalEccErrors hkko
nvmlDeviceGetMemoryErrorCounter hkkko
nvmlDeviceGetDetailedEccErrors hkko
nvmlDeviceGetSramEccErrorStatus hv
nvmlDeviceGetRetiredPages hkl
nvmlDeviceGetRetiredPagesPendingStatus ho
nvmlDeviceGetRemappedRows hoooo
nvmlDeviceGetRowRemapperHistogram ho
nvmlDeviceGetRepairStatus hv
nvmlDeviceGetUnrepairableMemoryFlag_v1 hv
nvmlDeviceGetTemperature hko
nvmlDeviceGetTemperatureThreshold hko
nvmlDeviceGetMarginTemperature hv
nvmlDeviceGetFanSpeed ho
nvmlDeviceGetFanSpeed_v2 hko
nvmlDeviceGetNumFans ho
nvmlDeviceGetPowerUsage ho
nvmlDeviceGetEnforcedPowerLimit ho
nvmlDeviceGetPowerManagementLimit ho
nvmlDeviceGetPowerManagementMode ho
nvmlDeviceGetPowerManagementDefaultLimit ho
nvmlDeviceGetPowerManagementLimitConstraints hoo
nvmlDeviceGetClockInfo hko
nvmlDeviceGetClock hkko
nvmlDeviceGetMaxClockInfo hko
nvmlDeviceGetMaxCustomerBoostClock hko
nvmlDeviceGetApplicationsClock hko
nvmlDeviceGetDefaultApplicationsClock hko
nvmlDeviceGetAutoBoostedClocksEnabled hoo
nvmlDeviceGetCurrentClocksEventReasons ho
nvmlDeviceGetCurrentClocksThrottleReasons ho
nvmlDeviceGetSupportedClocksEventReasons ho
nvmlDeviceGetViolationStatus hko
nvmlDeviceGetUtilizationRates ho
nvmlDeviceGetCurrPcieLinkGeneration ho
nvmlDeviceGetMaxPcieLinkGeneration ho
nvmlDeviceGetGpuMaxPcieLinkGeneration ho
nvmlDeviceGetCurrPcieLinkWidth ho
nvmlDeviceGetMaxPcieLinkWidth ho
nvmlDeviceGetPcieReplayCounter ho
nvmlDeviceGetPcieSpeed ho
nvmlDeviceGetNvLinkState hko
nvmlDeviceGetNvLinkVersion hko
nvmlDeviceGetNvLinkCapability hkko
nvmlDeviceGetNvLinkErrorCounter hkko
nvmlDeviceGetNvLinkRemoteDeviceType hko
nvmlDeviceGetNvLinkRemotePciInfo_v2 hko
nvmlDeviceGetGpuFabricInfo ho
nvmlDeviceGetGpuFabricInfoV hv
nvmlDeviceGetComputeRunningProcesses_v3 hl
nvmlDeviceGetGraphicsRunningProcesses_v3 hl
nvmlDeviceGetMPSComputeRunningProcesses_v3 hl
nvmlDeviceGetGridLicensableFeatures_v4 ho
nvmlDeviceGetTopologyCommonAncestor hho
nvmlDeviceGetP2PStatus hhko
nvmlDeviceGetNumaNodeId ho
nvmlDeviceGetHostVgpuMode ho
"""

_RUNTIME = r"""
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define RULES "/.made/nvml"
enum { BLOBS = 4 };
struct rule {
    char name[64], key[48];
    unsigned gpu;
    int any, code, hang, crash, blobs;
    long after;
    double seconds;
    struct { unsigned char *bytes; unsigned size, count; } blob[BLOBS];
};
static struct rule *rules;
static int count;
static long calls;
static struct timespec loaded;

static void read_blob(struct rule *rule, const char *word)
{
    unsigned items = 0, at = 0, byte;
    const char *colon = strchr(word, ':');
    if (colon) {
        items = atoi(word);
        word = colon + 1;
    }
    rule->blob[rule->blobs].bytes = calloc(1, strlen(word) / 2 + 1);
    for (; *word && *word != '-' && sscanf(word, "%2x", &byte) == 1; word += 2)
        rule->blob[rule->blobs].bytes[at++] = byte;
    rule->blob[rule->blobs].size = at;
    rule->blob[rule->blobs++].count = items;
}
static void read_when(struct rule *rule, const char *word)
{
    const char *found;
    rule->hang = strstr(word, "hang") != 0;
    rule->crash = strstr(word, "crash") != 0;
    if ((found = strstr(word, "after=")))
        rule->after = atol(found + 6);
    if ((found = strstr(word, "seconds=")))
        rule->seconds = atof(found + 8);
}
__attribute__((constructor)) static void read_rules(void)
{
    FILE *file = fopen(RULES, "r");
    char *line = 0, *rest, *word;
    size_t room = 0;
    clock_gettime(CLOCK_MONOTONIC, &loaded);
    while (file && getline(&line, &room, file) > 0) {
        if (!(word = strtok_r(line, " \n", &rest)))
            continue;
        if (count % 256 == 0)
            rules = realloc(rules, (count + 256) * sizeof *rules);
        struct rule *rule = memset(rules + count++, 0, sizeof *rules);
        rule->any = *word == '*';
        rule->gpu = atoi(word);
        for (int column = 1; (word = strtok_r(0, " \n", &rest)); column++)
            if (column == 1)
                snprintf(rule->name, sizeof rule->name, "%s", word);
            else if (column == 2)
                snprintf(rule->key, sizeof rule->key, "%s", word);
            else if (column == 3)
                rule->code = atoi(word);
            else if (column == 4)
                read_when(rule, word);
            else if (rule->blobs < BLOBS)
                read_blob(rule, word);
    }
    if (file)
        fclose(file);
}
static double elapsed(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec - loaded.tv_sec + (now.tv_nsec - loaded.tv_nsec) / 1e9;
}
/* The rule for this call, or 0. version: the first word of a structure that the caller brings, or 0. */
static struct rule *ask(const char *name, void *device, const char *key, const unsigned *version)
{
    int known = 0;
    calls++;
    for (struct rule *rule = rules; rule < rules + count; rule++) {
        if (!rule->any && rule->gpu != (unsigned)(size_t)device)
            continue;
        if (strcmp(rule->name, "*") && strcmp(rule->name, name))
            continue;
        if (strcmp(rule->key, "*") && strcmp(rule->key, key))
            continue;
        if (calls < rule->after || (rule->seconds && elapsed() < rule->seconds))
            continue;
        if (version && !rule->code && rule->blobs && memcmp(version, rule->blob[0].bytes, 4)) {
            known = 1;
            continue;
        }
        while (rule->hang)
            pause();
        if (rule->crash)
            raise(SIGSEGV);
        return rule;
    }
    static struct rule other = {.code = 25}, unsupported = {.code = 3};
    return known ? &other : &unsupported;
}
static void put(struct rule *rule, int blob, void *room, unsigned limit)
{
    unsigned size = rule->blob[blob].size;
    if (room && blob < rule->blobs)
        memcpy(room, rule->blob[blob].bytes, limit && limit < size ? limit : size);
}
static int put_list(struct rule *rule, int blob, unsigned *number, void *room)
{
    unsigned there = rule->blob[blob].count, had = *number;
    *number = there;
    if (!there)
        return 0;
    if (!room || had < there)
        return 7;
    put(rule, blob, room, 0);
    return 0;
}

int nvmlInitWithFlags(unsigned flags) { return ask("nvmlInit", 0, "-", 0)->code % 10000; }
int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
int nvmlShutdown(void) { return 0; }
const char *nvmlErrorString(int code)
{
    switch (code) {
    case 1: return "Uninitialized";
    case 2: return "Invalid Argument";
    case 3: return "Not Supported";
    case 4: return "Insufficient Permissions";
    case 6: return "Not Found";
    case 9: return "Driver Not Loaded";
    case 10: return "Timeout";
    case 12: return "NVML Shared Library Not Found";
    case 15: return "GPU is lost";
    case 16: return "GPU requires reset";
    case 17: return "The operating system has blocked the request";
    case 18: return "Driver/library version mismatch";
    case 23: return "Insufficient Resources";
    case 24: return "Resource is in use";
    default: return "Unknown Error";
    }
}
struct value {
    unsigned id, scope;
    long long timestamp, latency;
    unsigned type, result;
    unsigned char value[8];
};
int nvmlDeviceGetFieldValues(void *device, int number, struct value *values)
{
    for (int i = 0; i < number; i++) {
        char key[48];
        snprintf(key, sizeof key, "%u,%u", values[i].id, values[i].scope);
        struct rule *rule = ask("nvmlDeviceGetFieldValues", device, key, 0);
        if (rule->code == 15 || rule->code == 999)
            return rule->code;
        values[i].result = rule->code;
        if (!rule->code) {
            put(rule, 0, &values[i].type, 4);
            put(rule, 1, values[i].value, 8);
        }
    }
    return 0;
}
"""


def _function(name: str, letters: str) -> str:
    parameters, keys, answers = [], [], []
    device, version = "0", "0"
    blob = 0
    for place, letter in enumerate(letters):
        one = f"a{place}"
        if letter == "h":
            parameters.append(f"void *{one}")
            if place:
                keys.append(f"(unsigned)(size_t){one}")
            else:
                device = one
        elif letter == "k":
            parameters.append(f"unsigned {one}")
            keys.append(one)
        elif letter in "ov":
            parameters.append(f"void *{one}")
            answers.append(f"put(rule, {blob}, {one}, 0);")
            version = one if letter == "v" else version
            blob += 1
        elif letter in "sS":
            parameters.append(f"char *{one}" + (f", unsigned n{place}" if letter == "s" else ""))
            answers.append(f"put(rule, {blob}, {one}, {f'n{place}' if letter == 's' else '0'});")
            blob += 1
        elif letter == "l":
            parameters.append(f"unsigned *{one}, void *list{place}")
            answers.append(f"return put_list(rule, {blob}, {one}, list{place});")
    if keys:
        shape, values = ",".join("%u" for _ in keys), ", ".join(keys)
        key = f'char key[48];\n    snprintf(key, sizeof key, "{shape}", {values});'
    else:
        key = 'const char *key = "-";'
    body = "\n    ".join(answers)
    return f"""
int {name}({", ".join(parameters) or "void"})
{{
    {key}
    struct rule *rule = ask("{name}", {device}, key, {version});
    if (rule->code)
        return rule->code;
    {body}
    return 0;
}}"""


def source() -> str:
    rows = [line.split() for line in SIGNATURES.split("\n") if line]
    return _RUNTIME + "".join(_function(name, letters) for name, letters in rows)
