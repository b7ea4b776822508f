/* gpu_build.h - private to gpu_run.c and gpu_op.c: a warp that is being walked.
 *
 * In:  -     Out: its registers, what is asked of memory.
 */
#ifndef VWN_GPU_BUILD_H
#define VWN_GPU_BUILD_H

#include "gpu_run.h"

enum { LANES = 32, GROUPS = 33, COPY_GROUPS = 64, MBARRIERS = 64, SCHEDULERS = 4, SECTORS = 4 * LANES };
/* Threads that are at one place. */
typedef struct WalkGroup {
    uint32_t mask;
    uint32_t at;
    enum { RUNS, WAITS_FOR_GROUP, WAITS_FOR_WARP, WAITS_FOR_BLOCK, WAITS_FOR_PHASE } state;
    uint32_t barrier, want; /* of a group: its number; of a warp: the threads; of a phase: the barrier and its parity */
} WalkGroup;
/* A barrier in shared memory that counts arrivals and bytes. */
typedef struct WalkBarrier {
    uint64_t at;
    uint32_t count, left, phase; /* arrivals of a phase, those that are missing, phases that are over */
    int64_t bytes;               /* that are expected, less those that have come */
    uint64_t last, over;         /* when the last one of this phase came, and when the phase before was over */
} WalkBarrier;
typedef struct WalkBlock WalkBlock;
typedef struct Warp {
    WalkBlock *block;
    uint32_t number;
    uint32_t r[256][LANES];
    uint32_t u[256];
    uint32_t p[16]; /* predicates: a bit a thread; 7 and 15 are always true; from 8 on those of the warp */
    uint32_t alive;
    uint32_t converge[16];
    WalkGroup group[GROUPS];
    uint32_t n_group;
    uint64_t clock, ready[SASS_NAMES];
    uint64_t copies, copied[COPY_GROUPS]; /* asynchronous copies: groups, and when they are there */
    uint64_t copying;
    uint64_t groups, grouped[COPY_GROUPS]; /* products of warpgroups, the same */
    int far;                               /* what was read last: 0 in the first-level cache, 1 read before, 2 not */
    uint8_t *local;                        /* frame bytes of each thread */
} Warp;
struct WalkBlock {
    const GpuLaunch *l;
    GpuCounts *sum;
    Warp *warp;
    uint32_t n_warp, block;
    uint8_t *shared;
    uint64_t *line; /* what the first-level cache holds: a line of 128 bytes and a bit for each of its sectors */
    uint32_t lines;
    uint64_t *seen; /* lines that it, or a block before, has read at any time */
    /* Warps share four schedulers, each with a part of every unit: when these are free again. */
    uint64_t issue_free[SCHEDULERS], unit_free[SCHEDULERS][UNIT_COUNT];
    WalkBarrier barrier[MBARRIERS];
    uint32_t n_barrier;
    uint64_t copier_free; /* when the hardware that copies by maps has asked for all it was told to */
    uint64_t steps;
    uint64_t *each;
    char *why;
};

/* gpu_op.c: what an instruction leaves in registers, for the threads of `mask`. */
void gpu_compute(Warp *w, const Sass *s, uint32_t mask);
void gpu_fetch(const Warp *w, const SassOperand *o, unsigned word, uint32_t out[LANES]);
uint32_t gpu_predicate(const Warp *w, const SassOperand *o); /* of any other operand: all threads */
void gpu_put(Warp *w, const SassOperand *o, unsigned word, uint32_t mask, const uint32_t value[LANES]);
void gpu_put_predicate(Warp *w, const SassOperand *o, uint32_t mask, uint32_t bits);
uint32_t gpu_cut(uint32_t word, const Sass *s); /* what a load of less than 4 bytes leaves of a word */
uint32_t gpu_constant(const Warp *w, unsigned bank, int64_t at);

#endif
