/* perf.h - how long a launch should take on a GPU, from its machine code.
 *
 * In:  a plan for a device, a launch of it, the machine code of its kernel, a GPU of the table.
 * Out: counts of the whole launch, and a time by a model that is stated here.
 * The one idea: a launch is its waves, and a ramp. A multiprocessor has as many blocks at once as
 * registers, shared memory, warps and the device allow. What a wave asks of a multiprocessor joins
 * by a norm: issuing instructions, each unit's share of them, shared memory, tensor cores (which a
 * second limit that is nearly as great slows down, since warps wait for both). The result joins by
 * a norm of a greater exponent with what is asked of memory, at the rate of a copy, and of the
 * second-level cache: these go on by themselves. To that comes what a block waits for beyond its
 * busiest unit, by the number of blocks of a multiprocessor, as far as the others' work does not
 * cover it; and no wave is shorter than a block that has nobody beside it: its warps go on in the
 * order of time, each waits for what it reads, and they share four schedulers and their parts of
 * the units. A last wave of a few blocks costs what it costs. Groups of warps that give registers
 * to others have together what the block began with, which is what the machine code says: so many
 * blocks fit. The constants are those of gpu.c. Nothing is measured: every figure is a prediction.
 */
#ifndef VWN_PERF_H
#define VWN_PERF_H

#include "compiler/model/model.h"
#include "compiler/plan/plan.h"
#include "gpu.h"
#include "runtime/cuda/cubin.h"

typedef enum PerfLimit {
    LIMIT_ISSUE,
    LIMIT_FMA,
    LIMIT_INTEGER,
    LIMIT_SPECIAL,
    LIMIT_FP64,
    LIMIT_SHARED,
    LIMIT_TENSOR,
    LIMIT_MEMORY,
    LIMIT_CACHE,
    LIMIT_LATENCY,
    LIMIT_PRODUCT, /* the library's */
    LIMIT_COUNT
} PerfLimit;
extern const char *const perf_limit_name[LIMIT_COUNT];

typedef struct Perf {
    GpuCounts counts; /* of the whole launch; cycles: of a block, in the mean */
    int64_t blocks;
    int threads, registers, resident; /* blocks of a multiprocessor at once */
    int64_t shared;
    double waves,
        tail; /* blocks by those that the device has at once; time by that without a last wave that is not full */
    double bytes, numbers;           /* that have to be read and written: those of the plan */
    double seconds, of[LIMIT_COUNT]; /* what each would take alone, waves by waves */
    PerfLimit limit;
    double copy_share; /* of the rate of a copy that bytes move at */
    double peak_share; /* of the peak of dense bf16 products, of what tensor cores do */
} Perf;

/* What the memory of a plan's launches holds: perf_memory.c. Buffer i of the plan begins at perf_address(i). */
typedef struct PerfMemory {
    Arena *arena;
    const Plan *plan;
    double *host;     /* values of Plan.host: 1 */
    uint64_t *below;  /* by buffer: integers that nobody has stored are less */
    uint64_t ***page; /* by buffer, by page: the integers that were stored; NULL: none yet */
} PerfMemory;
PerfMemory *perf_memory(Arena *arena, const Plan *plan,
                        const Model *model);     /* model NULL: integers of inputs are below 8 */
bool perf_keeps(const Plan *p, const Launch *l); /* whether it stores integers */
void perf_keep(PerfMemory *m, const Launch *l);  /* from now on the integers that this launch stores are kept */
/* A launch that is alike one that was walked stores what that one has stored, and is not walked for it: their reals are made up alike. False
 * where their buffers are of other sizes. */
bool perf_keep_again(PerfMemory *m, const Launch *first, const Launch *l);
uint64_t perf_load(void *memory, uint64_t address);
void perf_store(void *memory, uint64_t address, unsigned bytes, uint64_t value);
uint64_t perf_address(uint32_t buffer);
enum { PERF_BUFFER_BITS = 36 };

/* The launch as it is walked: arguments, memory, what `out` says before anything is counted. False with `why` where it does not
 * fit on the GPU. */
bool perf_prepare(Arena *arena, const Gpu *gpu, const SassKernel *sass, const CubinKernel *facts, PerfMemory *memory,
                  const Launch *l, GpuLaunch *g, Perf *out, char why[256]);
/* False with `why` where the code cannot be followed. */
bool perf_launch(Arena *arena, const Gpu *gpu, const SassKernel *sass, const CubinKernel *facts, PerfMemory *memory,
                 const Launch *l, Perf *out, char why[256]);
/* perf_sample.c: of a launch with at least one block its counts, from so many of the blocks; cycles: of a block, in the mean. Where
 * more samples are asked for than these, every block of so many is walked. */
enum { PERF_SAMPLES_MOST = 48 };
bool perf_walk(Arena *arena, GpuLaunch *g, int64_t samples, GpuCounts *out, char why[256]);
double perf_norm(const double *x, size_t n, double exponent); /* (sum of x^exponent)^(1 / exponent) */
/* perf_product.c: seconds of products of the library, m x n by k. half: of 16 bits, else of float32. */
double perf_product(const Gpu *gpu, double m, double n, double k, double batch, bool half);
/* A product of the library or a copy, which have no text of ours. */
void perf_library(const Gpu *gpu, const Launch *l, Perf *out);
int perf_resident(const Gpu *gpu, int threads, int registers, int64_t shared); /* blocks of a multiprocessor at once */
/* Of counts of some blocks, and what else `out` says, the time. For perf_launch(), and to be tried with counts that are known. */
void perf_time(const Gpu *gpu, Perf *out);

/* disassemble.c: nvdisasm of the CUDA toolkit, in $CUDA_HOME/bin, $CUDA_PATH/bin, /usr/local/cuda/bin or PATH. */
bool disassembler_find(Arena *arena, const char **path, char why[512]);
/* What it prints of a cubin, in the arena; NULL with `why`. */
const char *disassemble(Arena *arena, const char *path, const void *cubin, size_t n, char why[512]);

#endif
