/* kernel_verify.h - private to kernel_verify.c and its parts: what is known while the statements of a kernel are walked.
 *
 * In:  a statement.     Out: what it needs is there and becomes what it leaves; Check.why: the first fault.
 */
#ifndef VWN_KERNEL_VERIFY_H
#define VWN_KERNEL_VERIFY_H

#include "kernel.h"

enum { OPEN_EX, OPEN_VAR, OPEN_SCOPE, OPEN_PIECES };
typedef struct Open { /* what ends with the innermost scope */
    int what;
    uint32_t number;
} Open;

typedef struct Acc {      /* by expression: an accumulator */
    bool live, whole;     /* declared; all loops over its body are done */
    size_t depth, adds;   /* loops that were open where it was declared */
} Acc;
typedef struct ArrayState {
    bool declared, whole;
    Ex holds;             /* the expression in it, 0: none yet */
    size_t depth, writes; /* loops that were open around the whole of its writing */
    size_t open;          /* loops that have been open since the last write */
} ArrayState;
typedef struct BatchState {
    uint32_t n, in; /* elements, how many are given */
    Op op;
    bool ran;
} BatchState;

typedef struct Check {
    const Kernel *k;
    Arena *arena;
    const char *why; /* the first fault */
    bool *have, *have_var, *stored, *multiplied;
    bool *filling;    /* by buffer: a tile that the open loops store into */
    bool *loaded;     /* by buffer: something has read it */
    uint64_t *varies; /* by expression: bits of the loops that it changes with */
    Acc *acc;
    ArrayState *array;
    VEC(BatchState) batch;
    VEC(Open) open;
    VEC(IVar) loop;  /* open loops, from the outermost in; the row and the part are not among them */
    VEC(bool) simd;
    VEC(Ex) live;    /* declared accumulators */
    bool in_part, in_rows, had_rows;
    uint32_t simd_from, simd_n; /* accumulators that the open simd loop carries */
} Check;

/* Notes the first fault; later ones come of it. */
void verify_fault(Check *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* kernel_verify.c */
bool verify_exists(Check *c, Ex e);
void verify_use(Check *c, Ex e); /* it is there, and whole */
void verify_use_ix(Check *c, Ix ix);
void verify_define(Check *c, Ex e); /* from here on, in the innermost scope */
void verify_value(Check *c, const KEx *x); /* a statement may compute it here */
uint64_t verify_nest_bits(const Check *c, const KNest *n);
bool verify_in_list(const IVar *v, size_t n, IVar want);
bool verify_is_loop(const Check *c, IVar v);
/* Are the loops opened since `depth` exactly those of one or two nests? */
bool verify_loops_are(const Check *c, size_t depth, const KNest *a, const KNest *b);
bool verify_tile_ready(const Check *c, uint32_t buffer, bool but_additions); /* is all of a tile there? */
static inline KType verify_type(const Check *c, Ex e) { return (KType)kx(c->k, e)->type; }
/* Does the statement do this of itself? Without steps it does all but make room. */
static inline bool verify_does(const KStmt *s, int step) { return s->step ? s->step & step : step != STEP_NEW; }

/* kernel_verify_sums.c: accumulators, scratch arrays, batches */
void verify_acc(Check *c, Ex e);
void verify_acc_add(Check *c, Ex e);
void verify_arrays(Check *c, const KStmt *s);
void verify_batch(Check *c, const KStmt *s);

/* kernel_verify_results.c: what is stored, and products */
void verify_store(Check *c, const KStmt *s);
void verify_product(Check *c, uint32_t product);
void verify_whole(Check *c); /* when all is walked: is all of each buffer stored? */

#endif
