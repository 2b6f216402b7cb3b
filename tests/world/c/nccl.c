/* A libnccl that really sums across processes, on the host, 300 GB/s of its bus.

   SHIM_NCCL says what goes wrong: "wrong", "hang", "hang-join", "fail"; followed by "-p2p" only
   as long as NCCL_P2P_DISABLE is not 1, by "-nvls" as long as NCCL_NVLS_ENABLE is not 0.
   SHIM_WARN is what is logged of it. SHIM_NVLS=1: multicast is used. SHIM_SEGMENT: a file in
   /dev/shm that every rank maps that transfers directly. SHIM_FOLDER: where the ranks meet. */
#include "arithmetic.h"
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/mman.h>

enum { SLOT = 4 << 20, RANKS = 8 };
struct shared { int arrived, pad[15]; char slots[RANKS][SLOT]; };
struct comm { int ranks, rank, rounds; struct shared *shared; };
typedef struct { char path[128]; } id;
static char last[256];

static int direct(void) { return !listed("NCCL_P2P_DISABLE", "1"); }
static int multicast(void) { return !listed("NCCL_NVLS_ENABLE", "0"); }
/* Whether SHIM_NCCL asks for this, and nothing that the user could set is set against it. */
static int goes(const char *wrong)
{
    const char *text = getenv("SHIM_NCCL");
    size_t n = strlen(wrong);
    if (!text || strncmp(text, wrong, n))
        return 0;
    return !text[n] || (!strcmp(text + n, "-p2p") && direct()) || (!strcmp(text + n, "-nvls") && multicast());
}
static void say(const char *format, ...)
{
    static FILE *file;
    const char *path = getenv("NCCL_DEBUG_FILE");
    va_list list;
    if (!file)
        file = path ? fopen(path, "w") : stdout;
    va_start(list, format);
    fprintf(file, "vm:%d:%d [0] NCCL ", getpid(), getpid());
    vfprintf(file, format, list);
    fprintf(file, "\n");
    fflush(file);
    va_end(list);
}
int ncclGetVersion(int *version) { *version = 22105; return 0; }
const char *ncclGetErrorString(int code)
{
    return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
}
const char *ncclGetLastError(void *comm) { return last; }
int ncclGetUniqueId(id *made)
{
    snprintf(made->path, sizeof made->path, "%s/%d-XXXXXX", getenv("SHIM_FOLDER"), getpid());
    int file = mkstemp(made->path), code = ftruncate(file, sizeof(struct shared));
    close(file);
    return code ? 2 : 0;
}
static void map_segment(const char *path)
{
    int file = open(path, O_RDWR | O_CREAT, 0600);
    if (ftruncate(file, 4096) || !mmap(0, 4096, PROT_READ, MAP_SHARED, file, 0))
        abort();
}
int ncclCommInitRank(struct comm **made, int ranks, id unique, int rank)
{
    struct comm *comm = calloc(1, sizeof *comm);
    int file = open(unique.path, O_RDWR);
    if (file < 0)
        return 2;
    if (getenv("SHIM_SEGMENT") && direct())
        map_segment(getenv("SHIM_SEGMENT"));
    say("INFO NCCL version 2.21.5+cuda12.4");
    comm->shared = mmap(0, sizeof *comm->shared, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    comm->ranks = ranks;
    comm->rank = rank;
    *made = comm;
    say("INFO %d coll channels, 0 collnet channels, 16 nvls channels, 32 p2p channels", ranks == 1 ? 32 : 24);
    if (ranks == 1)
        return 0;
    while (goes("hang-join"))
        pause();
    if (goes("fail")) {
        snprintf(last, sizeof last, "%s", getenv("SHIM_WARN"));
        say("WARN %s", last);
        return 2;
    }
    if (getenv("NCCL_P2P_DISABLE"))
        say("INFO NCCL_P2P_DISABLE set by environment to %s.", getenv("NCCL_P2P_DISABLE"));
    if (from("SHIM_NVLS", 0) && multicast())
        say("INFO NVLS multicast support is available on dev %d", rank);
    say("INFO Channel 00/0 : %d[%d] -> %d[%d] via %s", rank, rank, (rank + 1) % ranks, (rank + 1) % ranks,
        direct() ? "P2P/CUMEM/read" : "SHM/direct/direct");
    return 0;
}
int ncclCommDestroy(struct comm *comm) { return 0; }
int ncclCommGetAsyncError(struct comm *comm, int *code) { *code = 0; return 0; }
static void meet(struct comm *comm)
{
    comm->rounds++;
    __atomic_add_fetch(&comm->shared->arrived, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&comm->shared->arrived, __ATOMIC_SEQ_CST) < comm->rounds * comm->ranks)
        sched_yield();
}
int ncclAllReduce(const void *from_, void *to, size_t count, int kind, int operation, struct comm *comm,
                  void *stream)
{
    static const int types[] = {[2] = INT32, [6] = FP16, [7] = FP32};
    int type = types[kind];
    size_t width = type == FP16 ? 2 : 4;
    void (*ran)(const char *, double) = (void (*)(const char *, double))in_libcuda("shim_ran");
    if (from_ != to || stream)
        return 4;
    if (comm->ranks > 1)
        say("INFO AllReduce: %zu Bytes -> Algo %d proto 2 time 12.5", count * width,
            from("SHIM_NVLS", 0) && multicast() ? 4 : 1);
    if (comm->ranks > 1 && goes("hang")) {
        ((void (*)(void))in_libcuda("shim_hang"))();
        return 0;
    }
    ran("ncclDevKernel_AllReduce", count * width * 2.0 * (comm->ranks - 1) / comm->ranks / 1e9 / 300);
    if (comm->ranks == 1 || count * width > SLOT)
        return 0;
    memcpy(comm->shared->slots[comm->rank], to, count * width);
    meet(comm);
    for (size_t i = 0; i < count; i++) {
        double sum = operation == 2 ? -INFINITY : 0;
        for (int rank = 0; rank < comm->ranks; rank++) {
            double one = element(comm->shared->slots[rank], i, type, EXACT);
            sum = operation != 2 ? sum + one : fmax(sum, one);
        }
        store(to, i, type, sum + (i == 5 && comm->rank == 1 && type == FP32 && goes("wrong")));
    }
    meet(comm);
    return 0;
}
