/* How a chain of fused multiply-adds and a Hopper Tensor Core add, in double precision. */
#pragma once
#include "machine.h"

enum { FP32 = 0, FP16 = 2, INT8 = 3, INT32 = 10, BF16 = 14, E4M3 = 28 }; /* cudaDataType */
enum { EXACT, TO_NEAREST, TRUNCATED };                                   /* how FP32 becomes TF32 */

SHARED double small_float(unsigned bits, int exponent_bits, int fraction_bits)
{
    int bias = (1 << (exponent_bits - 1)) - 1;
    int exponent = bits >> fraction_bits & ((1 << exponent_bits) - 1);
    int fraction = bits & ((1 << fraction_bits) - 1);
    int sign = bits >> (exponent_bits + fraction_bits) & 1;
    double value = exponent ? ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits)
                            : ldexp(fraction, 1 - bias - fraction_bits);
    return sign ? -value : value;
}
SHARED double element(const void *matrix, size_t i, int type, int tf32)
{
    uint32_t word;
    float value;
    switch (type) {
    case FP16: return small_float(((const uint16_t *)matrix)[i], 5, 10);
    case BF16: word = (uint32_t)((const uint16_t *)matrix)[i] << 16; break;
    case E4M3: return small_float(((const uint8_t *)matrix)[i], 4, 3);
    case INT8: return ((const int8_t *)matrix)[i];
    case INT32: return ((const int32_t *)matrix)[i];
    default:
        word = ((const uint32_t *)matrix)[i];
        if (tf32)
            word = (word + (tf32 == TO_NEAREST ? 0x1000 : 0)) & ~0x1FFFu;
    }
    memcpy(&value, &word, 4);
    return value;
}
SHARED int exponent_of(double value) { return value ? ilogb(value) : -9999; }
SHARED double truncated(double value, int exponent, int kept)
{
    double last = ldexp(1, exponent - kept);
    return trunc(value / last) * last;
}
/* c + sum of the products of one block, as a Tensor Core adds them, before it rounds. */
SHARED double block_sum(double c, const double *a, const double *b, int count, int kept)
{
    int largest = exponent_of(c);
    double sum;
    for (int i = 0; i < count; i++) {
        int exponent = a[i] && b[i] ? exponent_of(a[i]) + exponent_of(b[i]) : -9999;
        largest = exponent > largest ? exponent : largest;
    }
    if (largest == -9999)
        return 0;
    sum = truncated(c, largest, kept);
    for (int i = 0; i < count; i++)
        sum += truncated(a[i] * b[i], largest, kept);
    return sum;
}
SHARED double block(double c, const double *a, const double *b, int count, int kept)
{
    double sum = block_sum(c, a, b, count, kept);
    return sum ? truncated(sum, exponent_of(sum), kept < 23 ? kept : 23) : 0;
}
SHARED double to_half(double value)
{
    double last = value ? ldexp(1, exponent_of(value) - 10) : 1;
    return rint(value / last) * last;
}
SHARED void store(void *matrix, size_t i, int type, double value)
{
    float single = value;
    uint32_t word;
    memcpy(&word, &single, 4);
    if (type == INT32)
        ((int32_t *)matrix)[i] = value;
    else if (type == FP32)
        ((float *)matrix)[i] = single;
    else if (type == BF16)
        ((uint16_t *)matrix)[i] = (word + 0x7FFF + (word >> 16 & 1)) >> 16;
    else if (!single)
        ((uint16_t *)matrix)[i] = 0;
    else { /* normal numbers alone come here */
        int exponent = ilogbf(single), fraction = rint(fabs(single) / ldexp(1, exponent - 10));
        ((uint16_t *)matrix)[i] = (single < 0 ? 0x8000 : 0) + ((exponent + 14) << 10) + fraction;
    }
}
