"""A libcuda.so.1 in C that answers out of the file /.made/cuda, and stand-ins of the other CUDA libraries."""

from __future__ import annotations

# Rows: "init CODE WHEN", "version NUMBER", "device NAME|PCI|UUID|MAJOR|MINOR|BROKEN".
CUDA = r"""
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DEVICES = 64 };
static struct { char name[128], pci[32], uuid[40]; int major, minor, broken; } devices[DEVICES];
static int count, code, version = 12000, hang, crash;

__attribute__((constructor)) static void read_answers(void)
{
    FILE *file = fopen("/.made/cuda", "r");
    char line[512];
    while (file && fgets(line, sizeof line, file)) {
        char when[64] = "";
        if (sscanf(line, "init %d %63s", &code, when) >= 1) {
            hang = !!strstr(when, "hang");
            crash = !!strstr(when, "crash");
        } else if (sscanf(line, "version %d", &version) != 1 && count < DEVICES &&
                   sscanf(line, "device %127[^|]|%31[^|]|%39[^|]|%d|%d|%d", devices[count].name,
                          devices[count].pci, devices[count].uuid, &devices[count].major,
                          &devices[count].minor, &devices[count].broken) == 6)
            count++;
    }
    if (file)
        fclose(file);
}
int cuInit(unsigned flags)
{
    while (hang)
        pause();
    if (crash)
        raise(SIGSEGV);
    return code;
}
int cuDriverGetVersion(int *number) { *number = version; return 0; }
int cuDeviceGetCount(int *number)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    *number = visible && (!*visible || *visible == '-') ? 0 : count;
    return code;
}
int cuDeviceGet(int *device, int ordinal) { *device = ordinal; return devices[ordinal].broken; }
int cuDeviceGetName(char *text, int n, int device)
{
    snprintf(text, n, "%s", devices[device].name);
    return 0;
}
int cuDeviceGetPCIBusId(char *text, int n, int device)
{
    snprintf(text, n, "%s", devices[device].pci);
    return 0;
}
int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    *value = attribute == 75 ? devices[device].major : attribute == 76 ? devices[device].minor : 0;
    return attribute == 75 || attribute == 76 ? 0 : 1;
}
int cuDeviceGetUuid(unsigned char *bytes, int device)
{
    unsigned byte;
    for (int i = 0; i < 16 && sscanf(devices[device].uuid + 2 * i, "%2x", &byte) == 1; i++)
        bytes[i] = byte;
    return 0;
}
int cuDeviceGetUuid_v2(unsigned char *bytes, int device) { return cuDeviceGetUuid(bytes, device); }
int cuGetErrorName(int number, const char **name)
{
    static const struct { int code; const char *name; } names[] = {
        {0, "CUDA_SUCCESS"}, {1, "CUDA_ERROR_INVALID_VALUE"}, {2, "CUDA_ERROR_OUT_OF_MEMORY"},
        {3, "CUDA_ERROR_NOT_INITIALIZED"}, {34, "CUDA_ERROR_STUB_LIBRARY"},
        {46, "CUDA_ERROR_DEVICE_UNAVAILABLE"}, {100, "CUDA_ERROR_NO_DEVICE"},
        {101, "CUDA_ERROR_INVALID_DEVICE"}, {214, "CUDA_ERROR_ECC_UNCORRECTABLE"},
        {304, "CUDA_ERROR_OPERATING_SYSTEM"}, {802, "CUDA_ERROR_SYSTEM_NOT_READY"},
        {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"},
        {804, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE"}, {999, "CUDA_ERROR_UNKNOWN"}};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].code == number) {
            *name = names[i].name;
            return 0;
        }
    return 1;
}
"""
