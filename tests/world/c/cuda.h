/* What the parts of libcuda know of each other. */
#pragma once
#include "machine.h"

enum { DEVICES = 64 };
struct context { int device; };
extern struct context *current;
extern int dead; /* the code that every call gives once the context is broken */
void takes(void *stream, double seconds);  /* in the GPU's time */
void hangs(const char *word);              /* where SHIM_HANG has it */
void flip(uint64_t at, size_t size);       /* two bits of what was written there */
double rate(const char *variable);         /* bytes a second */
int device_of(uint64_t pointer);
int run_pattern(const char *function, size_t threads, unsigned blocks, void *stream, void **arguments);
