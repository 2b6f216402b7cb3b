/* A libnvidia-ml.so.1 that answers out of the file "nvml" of the description: what a row says,
   for one GPU or for all.

   A row is "GPU FUNCTION KEY CODE WHEN BLOB...", the first that fits counts. GPU is a handle's
   number, 0 where there is none, or *. KEY is the arguments between the handle and the answers,
   by commas. WHEN is "-", or of after=N (calls of this process), seconds=S (since the library
   was loaded), hang, crash. A BLOB is what is written, in hexadecimal; "N:hex" is a list of N.
   What no row answers is not supported. A row "GPU xid NUMBER 0 seconds=S" is an event. Its
   functions but these are made by nvml_library.py. */
#include "machine.h"

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
static double loaded;

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
    FILE *file = open_description("nvml");
    char *line = 0, *rest, *word;
    size_t room = 0;
    loaded = now();
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
        if (calls < rule->after || now() < loaded + rule->seconds)
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
    static const char *const words[] = {
        [1] = "Uninitialized", [2] = "Invalid Argument", [3] = "Not Supported",
        [4] = "Insufficient Permissions", [6] = "Not Found", [9] = "Driver Not Loaded", [10] = "Timeout",
        [12] = "NVML Shared Library Not Found", [15] = "GPU is lost", [16] = "GPU requires reset",
        [17] = "The operating system has blocked the request", [18] = "Driver/library version mismatch",
        [23] = "Insufficient Resources", [24] = "Resource is in use"};
    const int known = code >= 0 && code < (int)(sizeof words / sizeof *words) && words[code];
    return known ? words[code] : "Unknown Error";
}
struct event { void *device; unsigned long long kind, data; unsigned gpu_instance, compute_instance; };
struct set { void *device; double until; };
int nvmlEventSetCreate(struct set **set) { *set = calloc(1, sizeof **set); return 0; }
int nvmlEventSetFree(struct set *set) { free(set); return 0; }
int nvmlDeviceRegisterEvents(void *device, unsigned long long kinds, struct set *set)
{
    *set = (struct set){device, now()};
    return kinds == 8 ? 0 : 3;
}
int nvmlEventSetWait_v2(struct set *set, struct event *event, unsigned milliseconds)
{
    for (struct rule *rule = rules; rule < rules + count; rule++) {
        double when = loaded + rule->seconds;
        if (strcmp(rule->name, "xid") || rule->gpu != (size_t)set->device
            || when <= set->until || now() < when)
            continue;
        set->until = when;
        *event = (struct event){set->device, 8, atoi(rule->key), ~0u, ~0u};
        return 0;
    }
    return 10;
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
#include "nvml_functions.h" /* made by nvml_library.py */
