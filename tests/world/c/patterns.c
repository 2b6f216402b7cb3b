/* Of libcuda: the kernels of the soak and of the tests of memory, by their names, done in C.

   The PTX itself is run by tests/unit/test_pattern_ptx.py and test_soak_ptx.py.
   SHIM_WRONG=memory or load: what is written or loaded so has a wrong bit. SHIM_HANG=memory.
   SHIM_ECC=1: a check meets an uncorrectable error. A product takes SHIM_PRODUCT_US of real
   time. These are "GPU:N", from that GPU's N-th product on or at it: SHIM_FLIP flips a bit of
   that one; SHIM_DIES ends the context; SHIM_ODD (any N) gives other results than other GPUs;
   SHIM_ODD_UNIT has one multiprocessor whose results are not as the others' (blocks are on other
   multiprocessors in each product); SHIM_MEMORY_FLIP flips a bit of the memory that holds a
   pattern. */
#include "arithmetic.h"
#include "cuda.h"

enum { RESULTS = 32, MOST = 256 * RESULTS }; /* of a thread, of a block */
#define ARGUMENT(number) (*(uint64_t *)arguments[number])
#define POINTER(number) ((void *)(size_t)ARGUMENT(number))
#define COUNT(number) (threads * *(uint32_t *)arguments[number])
#define FACTOR 2177342782468422677ull

static long products;
static uint32_t *patterned; /* what the last area with a pattern is */

/* Whether "GPU:N" in a variable is this GPU and, with ``at``, exactly this number of product. */
static int now_is(const char *variable, int at)
{
    const char *text = getenv(variable);
    int gpu;
    long number;
    if (!text || sscanf(text, "%d:%ld", &gpu, &number) != 2 || gpu != current->device)
        return 0;
    return at ? products == number : products >= number;
}
/* What soak/product_ptx.py's kernel for mma m16n8k16 makes of a block's operands: 2 x 4 tiles a warp. */
static float result_of(const uint16_t *operands, unsigned thread, unsigned word)
{
    unsigned first = thread / 32 * 32, lane = thread % 32, left = word / 16, right = word / 4 % 4;
    unsigned row = lane / 4 + word % 4 / 2 * 8, column = lane % 4 * 2 + word % 2;
    double sum = 0;
    for (unsigned k = 0; k < 16; k++) {
        unsigned member = k % 8 / 2, high = k / 8;
        unsigned a = (first + row % 8 * 4 + member) * 16 + left * 4 + high * 2 + row / 8;
        unsigned b = (first + column * 4 + member) * 16 + 8 + right * 2 + high;
        sum += element(operands, 2 * a + k % 2, FP16, EXACT) * element(operands, 2 * b + k % 2, FP16, EXACT);
    }
    return sum;
}
static void multiply(const uint16_t *operands, float *result, uint32_t *units, unsigned blocks, unsigned each)
{
    static float block_result[MOST];
    static uint16_t known[MOST];
    uint32_t *words = (uint32_t *)result;
    products++;
    if (now_is("SHIM_DIES", 0)) {
        dead = 999;
        return;
    }
    usleep(from("SHIM_PRODUCT_US", 2000));
    if (memcmp(known, operands, sizeof known)) {
        memcpy(known, operands, sizeof known);
        for (unsigned i = 0; i < each; i++)
            block_result[i] = result_of(operands, i / RESULTS, i % RESULTS);
    }
    for (unsigned block = 0; block < blocks; block++) {
        units[block] = 40 + (block + products) % blocks; /* another one in each product */
        memcpy(result + block * each, block_result, sizeof block_result);
        words[block * each] ^= now_is("SHIM_ODD", 0);
        words[block * each + 7] ^= units[block] == 42 && now_is("SHIM_ODD_UNIT", 0);
    }
    if (now_is("SHIM_FLIP", 1))
        words[each + 1000] ^= 1 << 5;
    if (now_is("SHIM_MEMORY_FLIP", 1) && patterned)
        patterned[11] ^= 1 << 4;
}
static void compare(uint32_t *found, uint32_t *wanted, uint32_t *difference, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (found[i] != wanted[i] && !difference[0]++) {
            difference[1] = i;
            difference[2] = found[i];
            difference[3] = wanted[i];
        }
}
static void check(uint64_t *words, size_t count, uint64_t seed, uint64_t mask, uint32_t *result)
{
    int loads = device_of((uint64_t)(size_t)words) != current->device && listed("SHIM_WRONG", "load");
    for (size_t i = 0; i < count; i++) {
        uint64_t differs = words[i] ^ (i * FACTOR + seed) ^ mask ^ (loads && i == 7);
        if (differs) {
            result[0]++;
            result[1] = result[1] < i ? result[1] : i;
            result[2] = result[2] > i ? result[2] : i;
            result[3] |= differs;
            result[4] |= differs >> 32;
        }
    }
    if (from("SHIM_ECC", 0))
        dead = 214;
}
static void write_pattern(uint64_t *words, size_t count, uint64_t seed, uint64_t mask, void *stream)
{
    patterned = (uint32_t *)words;
    hangs("memory");
    for (size_t i = 0; i < count; i++)
        words[i] = (i * FACTOR + seed) ^ mask;
    if (listed("SHIM_WRONG", "memory"))
        flip((uint64_t)(size_t)words, count * 8);
    takes(stream, count * 8 / rate("SHIM_DTOD"));
}
/* Whether it is one of these kernels. */
int run_pattern(const char *function, size_t threads, unsigned blocks, void *stream, void **arguments)
{
    if (!strcmp(function, "multiply"))
        multiply(POINTER(0), POINTER(1), POINTER(2), blocks, threads / blocks * RESULTS);
    else if (!strcmp(function, "compare"))
        compare(POINTER(0), POINTER(1), POINTER(2), COUNT(3));
    else if (!strcmp(function, "write"))
        write_pattern(POINTER(0), COUNT(3), ARGUMENT(1), ARGUMENT(2), stream);
    else if (!strcmp(function, "check"))
        check(POINTER(0), COUNT(4), ARGUMENT(1), ARGUMENT(2), POINTER(3));
    else if (!strcmp(function, "read"))
        takes(stream, COUNT(2) * 16 / rate("SHIM_DTOD"));
    else
        return 0;
    return 1;
}
