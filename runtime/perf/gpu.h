/* gpu.h - what is known of GPUs that nobody has here: one table, each fact with where it is from.
 *
 * In:  a name.   Out: multiprocessors, rates, latencies.
 * The one idea: figures of datasheets and of published measurements stand in gpu.c and nowhere else; whatever is assumed is
 * said there, and by the report that uses it. Rates of a machine that is here are measured instead (runtime/measure).
 */
#ifndef VWN_GPU_H
#define VWN_GPU_H

#include "gpu_run.h"

typedef struct Gpu {
    const char *name, *people, *arch;
    int number;               /* of the architecture: 80, 90, 100 */
    int multiprocessors;
    double clock;             /* cycles a second under load */
    int blocks, warps;        /* of a multiprocessor, at most */
    int64_t registers, shared; /* of a multiprocessor: words, bytes */
    int64_t first;            /* bytes of its first-level cache, of which shared memory is a part */
    double memory;            /* bytes a second, of the datasheet */
    double copy;              /* bytes a second that a copy reaches, read and written */
    double l2;                /* bytes a second between caches */
    double lanes[UNIT_COUNT]; /* threads that a unit of a multiprocessor takes in a cycle; tensor: multiply-adds */
    double grouped;           /* multiply-adds of warpgroups in a cycle; 0: it has none */
    double peak;              /* operations a second of dense bf16 products, of the datasheet */
    double peak_fp32;
    GpuLatency latency;
} Gpu;
enum { GPU_COUNT = 4 };
extern const Gpu gpus[GPU_COUNT];
const Gpu *gpu_named(const char *name); /* NULL: none */

/* What no datasheet says, of every GPU here. */
#define GPU_ISSUE 0.6         /* share of issue slots that are used: 2.4 of 4 a cycle */
#define GPU_UNIT 0.9          /* share of its rate that the busiest unit reaches */
#define GPU_PRODUCT 0.7       /* share of the peak that a large product of the library reaches */
#define GPU_LAUNCH 2.0e-6     /* seconds between one kernel and the next of a graph */

#endif
