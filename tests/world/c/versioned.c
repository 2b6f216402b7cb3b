/* A library that says a version the way cuDNN, cuBLAS, NCCL and the CUDA runtime do. */
#include <stddef.h>
#ifdef VALUE
size_t VALUE(void) { return NUMBER; }
#endif
#ifdef POINTER
int POINTER(int *number) { *number = NUMBER; return 0; }
#endif
#ifdef PROPERTY
int PROPERTY(int kind, int *value)
{
    static const int numbers[] = {MAJOR, MINOR, PATCH};
    *value = numbers[kind];
    return 0;
}
#endif
#ifdef PAIR
int PAIR(int *major, int *minor) { *major = MAJOR; *minor = MINOR; return 0; }
#endif
#ifdef CRASH
__attribute__((constructor)) static void crash(void) { __builtin_trap(); }
#endif
#ifdef NEEDS
void *NEEDS(void);
void *user(void) { return NEEDS(); }
#endif
int stand_in_library;
