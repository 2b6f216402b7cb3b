/* What these libraries share: where the machine is described, and the faults that a test asks
   for. */
#define _GNU_SOURCE
#pragma once
#include <dlfcn.h>
#include <math.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SHARED __attribute__((unused)) static

/* A file of the description: in SHIM_MACHINE, or where a machine with a root of its own has it. */
SHARED FILE *open_description(const char *name)
{
    const char *folder = getenv("SHIM_MACHINE");
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder ? folder : "/.made", name);
    return fopen(path, "rb");
}
SHARED int from(const char *variable, int otherwise)
{
    const char *text = getenv(variable);
    return text ? atoi(text) : otherwise;
}
/* Whether the variable is this word, or a list by commas that has it. */
SHARED int listed(const char *variable, const char *word)
{
    const char *text = getenv(variable);
    size_t length = strlen(word);
    for (; text; text = strchr(text, ',') ? strchr(text, ',') + 1 : 0)
        if (!strncmp(text, word, length) && (!text[length] || text[length] == ','))
            return 1;
    return 0;
}
SHARED double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}
SHARED void *in_libcuda(const char *symbol)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    return library ? dlsym(library, symbol) : 0;
}
