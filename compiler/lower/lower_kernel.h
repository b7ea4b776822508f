/* lower_kernel.h - a group of values as a kernel.
 *
 * In:  a group of Fusion with its row count.     Out: a scheduled, verified Kernel.
 * The one idea: a value is asked for at coordinates; how the graph moves elements only changes the coordinates.
 */
#ifndef VWN_LOWER_KERNEL_H
#define VWN_LOWER_KERNEL_H

#include "compiler/fuse/fuse.h"
#include "compiler/kernel/kernel.h"
#include "compiler/kernel/launch.h"

enum { FACTORS_MAX = 12 };

/* A sum over rows: the kernel writes one partial sum for each partition of the rows; a second launch adds these
 * up. */
typedef struct Sink {
    Val v;
    Op op;
    uint32_t buffer; /* in Kernel.buffer */
    int64_t size;    /* elements of one partial sum */
    int n_factor;    /* the result's extents in its own order, and their strides in a partial sum */
    int64_t extent[FACTORS_MAX], stride[FACTORS_MAX];
} Sink;

typedef struct Lowered {
    Kernel *kernel;
    VEC(Sink) sink;
    int64_t rows;    /* of the launch */
    PlanWork work;   /* of the launch */
    bool is_long;    /* more than a compiler should be given; of a group that may split there is no kernel then */
    size_t attempts; /* that were made */
} Lowered;

/* What a launch of it computes, without the kernel. */
typedef struct Counted {
    int64_t rows;
    bool by_part; /* rows are partitions of a sum */
    bool is_long; /* as above */
    PlanWork work;
} Counted;

/* Somebody who runs the passes of an attempt: plan/pipeline.c. */
struct Lower;
typedef struct LowerPasses {
    void *user;
    void (*build)(void *user, struct Lower *l, Dim rows); /* expressions and results, */
    void (*schedule)(void *user, Kernel *k);              /* statements, */
    const Kernel *(*map)(void *user, Kernel *k);          /* and the kernel for a device's threads, to look at */
} LowerPasses;
/* The kernel of l's group over so many rows, as its splits and its budget say; not scheduled. */
void lower_build(struct Lower *l, Dim rows);
size_t lower_expressions(const struct Lower *l); /* of that kernel */

/* same[v]: the value whose memory v's is (an external tensor it is stored into), else v. */
void lower_group(Lowered *out, Arena *arena, const Fusion *f, uint32_t group, const Val *same,
                 const LowerPasses *passes);
/* The same group, counted alone: for who does not want its kernel. Nothing of it stays in `arena`. */
void lower_count(Counted *out, Arena *arena, const Fusion *f, uint32_t group, const Val *same,
                 const LowerPasses *passes);
/* Is a launch's row a partition? */
static inline bool lower_by_part(const Kernel *k) { return k->part && !k->flat; }
/* What the statements of a scheduled kernel compute over all rows (work.c). */
PlanWork kernel_work(const Kernel *k);
/* Does a scheduled kernel compute most of its group's values over and over, or keep the threads of a row waiting for one of them? */
bool lower_has_low_utilisation(Kernel *k, const Fusion *f, uint32_t group, const LowerPasses *passes);
/* What a thread of a device does of one row, as if one by one. */
double kernel_thread_operations(const Kernel *mapped);
/* Of a sum over so many rows, on a processor. */
int64_t lower_partitions(int64_t rows);
/* Would one flat loop over all elements do, without a division or a test in it? */
bool lower_is_flat(Arena *arena, const Fusion *f, uint32_t group, Dim rows);

#endif
