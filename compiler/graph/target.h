/* target.h - for what a graph is planned: sizes, a processor or a device, and what is asked for.
 *
 * In:  -     Out: PlanOptions, which every pass between a graph and its launches may read.
 */
#ifndef VWN_TARGET_H
#define VWN_TARGET_H

#include "ir.h"

/* What a block of sm_80 and of all that came later can have, and of sm_80 and sm_90 two of a multiprocessor. */
enum { PLAN_SHARED = 96 * 1024 };
typedef struct PlanOptions {
    int64_t B, T;
    bool no_fusion; /* every node its own kernel: for tests */
    bool single;    /* of a device: no launches are made as one: for tests */
    bool programs;  /* keep the text of the kernel programs: for dumps and tests */
    Half half;      /* operands of large products are rounded to it, and kept so but for fp16 on a CPU,
                       which multiplies these in float32; with `cuda` what lies between kernels too */
    bool cuda;      /* kernels over rows are CUDA C, for the threads of a device */
    bool any_order; /* of a device: gradients of tables are added up in any order, by atomic additions */
    /* What other rows hold changes no bit of a row. Only products of experts differ: which rows
     * an expert has depends on what is in them, so each row is multiplied alone. */
    bool rows_apart;
    bool arena_only; /* buffers and their places, without kernels: for how much memory it takes; not
                        with `cuda` */
    bool counted;    /* with `arena_only`: launches say what they compute, for how long that takes */
    int64_t shared;  /* of a device: bytes that a block of a kernel over rows may have; 0: PLAN_SHARED */
    struct PlanLayout *layout; /* of a device: rounded weights stay from run to run, and products of gradients are batches;
                                  NULL: each run rounds them, and gradients lie anywhere */
    struct Alike *alike; /* alike.h: shared with other plans at this B and T; NULL: its own */
} PlanOptions;

#endif
