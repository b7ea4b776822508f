/* growth_value.h - what is known of the values of a graph, block by block.
 *
 * In:  a graph, what is known of its weights.   Out: for every node blocks that are zero, a factor times a
 * window of a term over the old model, or anything.
 * The one idea: a value's axes are cut into parts and its blocks have one statement each; statements are
 * equalities between real numbers, so that what follows from them is true, whatever the sizes.
 */
#ifndef VWN_GROWTH_VALUE_H
#define VWN_GROWTH_VALUE_H

#include "growth_term.h"

typedef enum BlockKind {
    BLOCK_ANY, /* not zero, as far as is known: it has new random numbers, or what no rule covers */
    BLOCK_ZERO,
    BLOCK_TERM
} BlockKind;
typedef struct Block {
    BlockKind kind;
    Term term;
    double c;
    int64_t from[MAX_RANK]; /* where the window begins in the term; its size is the block's. 0 at extents of 1 */
    Val why;                /* ANY: the leaf, or the node without a rule, that it began at */
    bool balanced;          /* ANY, whose sums over axis 1 are zero: gradients of keys */
} Block;
typedef struct Cuts {
    int64_t *at; /* where parts begin; at[0] = 0 */
    size_t n;
} Cuts;
typedef struct Value {
    Shape shape;
    Cuts axis[MAX_RANK];
    Block *block; /* row-major by parts */
    size_t n;
    bool still;    /* made of weights and numbers alone: the same along every axis of symbolic extent */
} Value;

typedef struct Values Values;
typedef Value *KnownLeaf(void *user, Values *x, Val v); /* of weights and buffers */
struct Values {
    Arena *arena;
    Terms *terms;
    const Graph *g;
    Value **of;      /* by node */
    Value **sums;    /* by node: of what is not known, the sum over axis along[node]; NULL: neither */
    int8_t *along;
    KnownLeaf *leaf;
    void *user;
    const Values *like; /* of the old model, or NULL: where its counts along an axis end */
    Val at;             /* the node that is being looked at */
    Val undefined;      /* the first that is no number for sure: 0 / 0 */
};
/* Looks at every node of `g`. */
Values *values_find(Arena *arena, Terms *terms, const Graph *g, KnownLeaf *leaf, void *user, const Values *like);
/* A value whose blocks are all as `b`, with one part along each axis. */
Value *value_uniform(Values *x, const Shape *s, Block b);
/* The numbers of a small table, each a block of its own where neighbours differ. */
Value *value_table(Values *x, const Shape *s, const double *data, size_t n);
Value *value_cut(Values *x, const Shape *s, const Cuts axis[MAX_RANK]); /* all ANY, of those parts */
Value *value_tidy(Values *x, Value *v); /* with as few parts as its blocks allow */
static inline int64_t part_end(const Value *v, int k, size_t i)
{
    return i + 1 < v->axis[k].n ? v->axis[k].at[i + 1] : v->shape.d[k].n;
}
/* The block of part[k] of each axis. */
Block *value_block(const Value *v, const size_t *part);
bool value_next(const Value *v, size_t *part); /* the next combination of parts; false behind the last */
Block block_number(Values *x, int rank, double c);
Block block_whole(Values *x, Op op, const Attr *a, const Shape *s, DType dtype);
/* Their sum, as equal shapes. */
Block block_add(Values *x, Block a, Block b, int rank);
/* Whether a == factor * b with one factor everywhere; *why the first place of `a` where it does not hold. */
bool value_scales(Values *x, const Value *a, const Value *b, double *factor, Val *why);

#endif
