/* kernel_verify.h - private to kernel_verify.c and its parts: what is known while a kernel is
 * walked.
 *
 * In:  a statement.
 * Out: what it needs is there, and what it leaves is noted; Check.why: the first fault.
 */
#ifndef VWN_KERNEL_VERIFY_H
#define VWN_KERNEL_VERIFY_H

#include "kernel.h"

enum { OPEN_EX, OPEN_VAR, OPEN_SCOPE, OPEN_PIECES, OPEN_VECTORS };
typedef struct Open { /* what ends with the innermost scope */
    int what;
    uint32_t number;
} Open;

/* Of a sum whose rounds threads share each of them has a part, until totals are taken. */
typedef struct Share {
    enum {
        SHARE_NONE,
        SHARE_OF_WARP,
        SHARE_OF_ROW
    } by; /* who has a part: none, each thread has all; the threads of a warp; all of the row */
    enum { HAS_PART, HAS_WARP, HAS_ALL } has; /* what a thread has now: its part, that of its warp, or the total */
    bool alone;                               /* and one lane alone has it, */
    const KTotals *step;                      /* by this step of totals of a warp; NULL: by none */
} Share;

/* A total of a warp that has not been taken. */
typedef struct SlotState {
    const KStmt *put; /* by this statement, NULL: there is none */
    uint32_t lane;    /* of a step: its number in it */
} SlotState;

typedef struct Acc {    /* by expression: an accumulator */
    bool live, whole;   /* declared; all loops over its body are done */
    size_t depth, adds; /* loops that were open where it was declared */
    Share share;
    enum {
        LANES_NONE,
        LANES_NEW,
        LANES_ADDED
    } lanes; /* of vectors: they have no sums, begin with 0, have added to them */
} Acc;
typedef struct ArrayState {
    bool declared, whole;
    Ex holds;             /* the expression in it, 0: none yet */
    size_t depth, writes; /* loops that were open around the whole of its writing */
    size_t open;          /* loops that have been open since the last write */
    Share share;          /* of sums in registers */
    uint32_t slot;        /* to which they are given */
} ArrayState;
typedef struct BatchState {
    uint32_t n, in; /* elements, how many are given */
    Op op;
    bool ran;
} BatchState;

/* What has been done with the partial sums of a buffer. */
typedef enum PartSums { SUMS_NOWHERE, SUMS_PLACED, SUMS_FILLED, SUMS_STORED } PartSums;

typedef struct Check {
    const Kernel *k;
    Arena *arena;
    const char *why; /* the first fault */
    bool *have, *have_var, *stored, *multiplied;
    bool *filling;    /* by buffer: a tile that the open loops store into */
    bool *loaded;     /* by buffer: something has read it */
    uint8_t *sums;    /* by buffer of partial sums: PartSums */
    uint64_t *varies; /* by expression: bits of the loops that it changes with */
    Acc *acc;
    ArrayState *array;
    VEC(BatchState) batch; /* by number; n is 0: it has not begun */
    Share *sum;            /* by root: of a sum over rows that threads hold */
    bool *summed;          /* by root: it is declared */
    bool row_tiles;        /* tiles of several rows know which one this is */
    SlotState *slot;       /* by slot */
    bool *column;          /* by column: lanes have it */
    VEC(Open) open;
    VEC(IVar)
    loop; /* open loops, from the outermost in; the row and the part are not among them */
    VEC(bool) simd;
    VEC(const KStmt *) by; /* their statements */
    VEC(Ex) live;          /* declared accumulators */
    bool in_part, in_rows, had_rows;
    const KStmt *pieces;        /* the open KS_PIECES, or NULL */
    const KStmt *vectors;       /* the open KS_VECTORS, or NULL */
    uint32_t simd_from, simd_n; /* accumulators that the open simd loop carries */
} Check;

/* Notes the first fault; later ones come of it. */
void verify_fault(Check *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* kernel_verify.c */
bool verify_exists(Check *c, Ex e);
void verify_use(Check *c, Ex e); /* it is there, and whole */
void verify_use_ix(Check *c, Ix ix);
void verify_index(Check *c, Ix ix);        /* of threads: does it fit? verify_use_ix() asks it, too */
void verify_define(Check *c, Ex e);        /* from here on, in the innermost scope */
void verify_value(Check *c, const KEx *x); /* a statement may compute it here */
void verify_op(Check *c, const KEx *x);    /* an operator of inputs whose types it takes */
uint64_t verify_nest_bits(const Check *c, const KNest *n);
bool verify_in_list(const IVar *v, size_t n, IVar want);
bool verify_is_loop(const Check *c, IVar v);
/* Are the loops opened since `depth` exactly those of one or two nests? */
bool verify_loops_are(const Check *c, size_t depth, const KNest *a, const KNest *b);
void verify_row_known(Check *c, uint32_t buffer); /* of a tile of several rows, which one this is */
bool verify_tile_ready(const Check *c, uint32_t buffer, bool but_additions); /* is all of a tile there? */
static inline KType verify_type(const Check *c, Ex e) { return (KType)kx(c->k, e)->type; }
/* Does the statement do this of itself? Without steps it does all but make room. */
static inline bool verify_does(const KStmt *s, int step) { return s->step ? s->step & step : step != STEP_NEW; }

/* kernel_verify_sums.c: accumulators, scratch arrays, batches */
void verify_acc(Check *c, Ex e);
void verify_acc_add(Check *c, Ex e);
void verify_lane_sums(Check *c, const KStmt *s); /* VECTOR_ACC, VECTOR_SUM */
void verify_arrays(Check *c, const KStmt *s);
void verify_batch(Check *c, const KStmt *s);

/* kernel_verify_vectors.c: loops of explicit vectors */
void verify_vector(Check *c, const KStmt *s);
void verify_vector_loop(Check *c, const KStmt *s);
void verify_vectors(Check *c, const KStmt *s); /* VECTORS: a loop of them, and of what they leave */
void verify_width(Check *c, const KStmt *s);   /* in a loop of which a thread takes several elements at one time */

/* kernel_verify_threads.c: what the threads of a row do together */
bool verify_has_all(const Share *s); /* a thread has the total itself */
void verify_shared(Check *c, Share *s,
                   size_t depth);              /* it is added to, in loops opened since `depth`: who has parts? */
void verify_total(Check *c, const KStmt *s);   /* WARP, WARP_PUT, WARP_TAKE */
void verify_row_sum(Check *c, const KStmt *s); /* SUM_NEW, SUM_PUT, and SINK where each thread has a row */
void verify_array_sums(Check *c, const KStmt *s);
void verify_lanes(Check *c, const KStmt *s); /* LANES, LANE_TAKE, LANE_STORE */
void verify_sums_whole(Check *c);            /* when all is walked */

/* kernel_verify_results.c: what is stored, partial sums, and products */
void verify_part(Check *c, const KStmt *s); /* PART_ROOM, PART_PLACE, PART_FILL, PART_STORE */
void verify_store(Check *c, const KStmt *s);
void verify_result(Check *c, uint32_t root); /* is it stored in its own loops, once, at a place of its own? */
void verify_prefetch(Check *c, const KStmt *s);
void verify_row_tiles(Check *c);
void verify_tile_place(Check *c, uint32_t buffer);
void verify_product(Check *c, uint32_t product);
void verify_whole(Check *c); /* when all is walked: is all of each buffer stored? */

#endif
