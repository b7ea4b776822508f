/* launch.h - how a kernel is launched, how much it computes, and what its text relies on.
 *
 * In:  -     Out: the grid of a device's kernel, conditions on sizes, work of a launch.
 * The one idea: a backend launches by these data alone, and knows no kernel by its name.
 */
#ifndef VWN_LAUNCH_H
#define VWN_LAUNCH_H

#include "compiler/graph/ir.h"

/* How a device launches a kernel: blocks of `threads`, each for `units` rows at a time. A kernel goes on to
 * further rows by itself, so that any number of blocks is right; ceil(rows / units) leaves none waiting, and a
 * `whole` grid has so many and no other number. Its arguments, each by itself: p, n, s, rows (int64_t), tensor maps. */
typedef struct PlanShared {
    uint32_t n;     /* which of n[] */
    uint32_t bytes; /* of shared memory for each of it, in units rounded up to 16 bytes */
} PlanShared;
typedef struct PlanGrid {
    uint32_t threads, units; /* threads 0: not a device's */
    uint32_t shared;         /* bytes of dynamic shared memory whatever the sizes */
    uint32_t n_term;         /* and more for each of these */
    const PlanShared *term;
    bool whole;
    uint32_t blocks; /* at most so many: each has n[spilled] elements of the last buffer; 0: any number */
    uint32_t spilled;
} PlanGrid;
/* The blocks of a launch. */
static inline int64_t plan_blocks(const PlanGrid *g, int64_t rows)
{
    int64_t n = (rows + g->units - 1) / g->units;
    return g->blocks && n > g->blocks ? g->blocks : n;
}

/* A tensor of 16-bit numbers in a buffer as a device's hardware copies it, box by box, past the registers (a tensor map): columns of heads of
 * rows of sequences. What a box has beyond the tensor is 0. Each is an argument of the launch, behind the rows. */
enum {
    MAP_RANK = 4,
    MAP_PIECE = 16 /* bytes: places and strides are multiples of it */,
    MAP_BOX = 256 /* the most of an extent */
};
typedef struct LaunchMap {
    uint32_t buffer; /* which of the launch's arguments */
    Half half;
    int64_t extent[MAP_RANK]; /* innermost first */
    int64_t stride[MAP_RANK]; /* elements from one to the next; of columns 1 */
    uint32_t box[MAP_RANK];   /* one line of 128 bytes of each row, whose 16-byte pieces are swizzled */
} LaunchMap;

/* What a text relies on about a size. */
typedef struct PlanSize {
    int64_t multiple, most; /* most 0: any */
} PlanSize;
static inline bool plan_size_fits(PlanSize s, int64_t n) { return n % s.multiple == 0 && (!s.most || n <= s.most); }

/* What a kernel computes, by how fast a processor does it. */
typedef struct PlanWork {
    double lane, single; /* simple operations: in vectors, one by one */
    double call;         /* functions such as exp(), in vectors */
    double random;       /* random numbers */
    double product;      /* additions and multiplications of products of a row */
    double attention;    /* the same of attention, within its mask and window, */
    double scores;       /* and its scores */
    bool backward;       /* of attention */
    double expert;       /* of products by expert, where they are a device's kernels, in float32 */
    double expert_half;  /* and of bf16 or fp16 */
} PlanWork;

#endif
