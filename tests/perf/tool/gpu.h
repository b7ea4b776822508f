/* gpu.h - what is known of GPUs that nobody has here: one table, each figure with its source.
 *
 * In:  a name.   Out: multiprocessors, rates, latencies.
 * The one idea: figures of datasheets and of published measurements stand in gpu.c and nowhere
 * else; whatever is assumed is said there. What the model reaches with them is compared with
 * published kernels of others (tests/perf/published.c), and `predict --fit` fits them to
 * measurements.
 */
#ifndef VWN_GPU_H
#define VWN_GPU_H

#include "gpu_run.h"

typedef struct Gpu {
    const char *name, *people, *arch;
    int number; /* of the architecture: 80, 90, 100 */
    int multiprocessors;
    double clock;                 /* cycles a second under load */
    int blocks, warps;            /* of a multiprocessor, at most */
    int64_t registers, shared;    /* of a multiprocessor: words, bytes */
    int64_t first;                /* bytes of its first-level cache, of which shared memory is a part */
    double copy;                  /* bytes a second that a copy reaches, read and written */
    double l2;                    /* bytes a second between caches */
    double lanes[UNIT_COUNT];     /* threads that a unit of a multiprocessor takes in a cycle; tensor:
                                 multiply-adds of mma.sync that are reached */
    double grouped;               /* multiply-adds of warpgroups in a cycle, at best; 0: it has none */
    double peak;                  /* operations a second of dense bf16 products, of the datasheet */
    double reached, reached_fp32; /* the best that the library is known to reach: nothing is
                                     predicted to do more */
    double issue;                 /* instructions of a multiprocessor in a cycle, of 4 */
    double together, beyond;      /* exponents of the two norms by which limits join: perf.h */
    double uncovered;             /* part of a block's waiting that others' work does not cover,
                                     by their number */
    double ramp;                  /* seconds in which a kernel begins and ends, whatever it does */
    double launch;                /* seconds from the end of a kernel to the beginning of the next */
    /* of the library's products (perf_product.c): the rate of a tile of 128 x 256 by `reached`;
     * rows and columns that share what they read, at which half of the rate is left; seconds in
     * which a tile begins and ends */
    double product_rate, product_half, product_end;
    GpuLatency latency;
} Gpu;
enum { GPU_COUNT = 4 };
extern const Gpu gpus[GPU_COUNT];
const Gpu *gpu_named(const char *name); /* NULL: none */

#endif
