#pragma once
#include "arithmetic.h"

int product(const char *mode, int n, const void *A, const void *B, void *C, int type, int made, int tensor,
            const char *kernel);
