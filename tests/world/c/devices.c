/* Of libcuda: the devices of the described machine.

   Rows of the file "cuda": "init CODE WHEN", "version NUMBER", "device
   NAME|PCI|UUID|MAJOR|MINOR|UNITS". */
#include "cuda.h"

static struct { char name[128], pci[32], uuid[40]; int major, minor, units; } devices[DEVICES];
static int count, code, version = 12000, hang, crash;

__attribute__((constructor)) static void read_answers(void)
{
    FILE *file = open_description("cuda");
    char line[512];
    while (file && fgets(line, sizeof line, file)) {
        char when[64] = "";
        if (sscanf(line, "init %d %63s", &code, when) >= 1) {
            hang = !!strstr(when, "hang");
            crash = !!strstr(when, "crash");
        } else if (sscanf(line, "version %d", &version) != 1 && count < DEVICES &&
                   sscanf(line, "device %127[^|]|%31[^|]|%39[^|]|%d|%d|%d", devices[count].name,
                          devices[count].pci, devices[count].uuid, &devices[count].major,
                          &devices[count].minor, &devices[count].units) == 6)
            count++;
    }
    if (file)
        fclose(file);
}
int cuInit(unsigned flags)
{
    if (getenv("SHIM_CHATTY"))
        puts("chatty library");
    while (hang)
        pause();
    if (crash)
        raise(SIGSEGV);
    return code;
}
int cuDriverGetVersion(int *number) { *number = version; return 0; }
/* The device that one word of CUDA_VISIBLE_DEVICES names; -1: none. An instance is on the first. */
static int named(const char *word)
{
    if (!strncmp(word, "MIG-", 4))
        return 0;
    for (int device = 0; !strncmp(word, "GPU-", 4) && device < count; device++)
        if (!strncmp(word + 4, devices[device].uuid, 36))
            return device;
    return *word >= '0' && *word <= '9' && atoi(word) < count ? atoi(word) : -1;
}
/* The device that this ordinal is: the first word that names none ends the list. */
static int visible(int ordinal)
{
    const char *word = getenv("CUDA_VISIBLE_DEVICES");
    if (!word)
        return ordinal < count ? ordinal : -1;
    for (; named(word) >= 0; word = strchr(word, ',') + 1)
        if (!ordinal--)
            return named(word);
        else if (!strchr(word, ','))
            break;
    return -1;
}
int cuDeviceGet(int *device, int ordinal) { *device = visible(ordinal); return *device < 0 ? 101 : 0; }
int cuDeviceGetCount(int *number)
{
    for (*number = 0; visible(*number) >= 0; ++*number)
        ;
    return code;
}
static int put(char *text, int room, const char *value) { snprintf(text, room, "%s", value); return 0; }
int cuDeviceGetName(char *text, int n, int device) { return put(text, n, devices[device].name); }
int cuDeviceGetPCIBusId(char *text, int n, int device) { return put(text, n, devices[device].pci); }
int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    switch (attribute) {
    case 13: *value = 1980000; break;
    case 16: *value = devices[device].units; break;
    case 18: *value = from("SHIM_INTEGRATED", 0); break;
    case 38: *value = 4 << 20; break;
    case 75: *value = devices[device].major; break;
    case 76: *value = devices[device].minor; break;
    default: return 1;
    }
    return 0;
}
int cuDeviceGetUuid(unsigned char *bytes, int device)
{
    const char *at = devices[device].uuid;
    for (int i = 0; i < 16; i++, at += 2) {
        at += *at == '-';
        sscanf(at, "%2hhx", bytes + i);
    }
    return 0;
}
#ifndef OLD
int cuDeviceGetUuid_v2(unsigned char *bytes, int device)
{
    cuDeviceGetUuid(bytes, device);
    bytes[0] += from("SHIM_MIG", 0);
    return 0;
}
int cuGetErrorName(int number, const char **name)
{
    static const struct { int code; const char *name; } names[] = {
        {0, "CUDA_SUCCESS"}, {1, "CUDA_ERROR_INVALID_VALUE"}, {2, "CUDA_ERROR_OUT_OF_MEMORY"},
        {3, "CUDA_ERROR_NOT_INITIALIZED"}, {34, "CUDA_ERROR_STUB_LIBRARY"},
        {46, "CUDA_ERROR_DEVICE_UNAVAILABLE"}, {100, "CUDA_ERROR_NO_DEVICE"},
        {101, "CUDA_ERROR_INVALID_DEVICE"}, {214, "CUDA_ERROR_ECC_UNCORRECTABLE"},
        {304, "CUDA_ERROR_OPERATING_SYSTEM"}, {700, "CUDA_ERROR_ILLEGAL_ADDRESS"},
        {802, "CUDA_ERROR_SYSTEM_NOT_READY"}, {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"},
        {804, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE"}, {999, "CUDA_ERROR_UNKNOWN"}};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].code == number)
            return *name = names[i].name, 0;
    return 1;
}
#endif
