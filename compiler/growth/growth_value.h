/* growth_value.h - what is known of the values of a graph, block by block.
 *
 * In:  a graph, what is known of its weights.   Out: for every node blocks that are zero, a factor times a
 * window of a term over the old model, or anything.
 * The one idea: a value's axes are cut into parts and its blocks have one statement each; statements are
 * equalities between real numbers, so that what follows from them is true, whatever the sizes.
 */
#ifndef VWN_GROWTH_VALUE_H
#define VWN_GROWTH_VALUE_H

#include "growth_algebra.h"
#include "growth_term.h"

typedef enum BlockKind {
    BLOCK_ANY, /* not zero, as far as is known: it has new random numbers, or what no rule covers */
    BLOCK_ZERO,
    BLOCK_TERM
} BlockKind;
/* Bits of GrowthBlock.open. SUMMED: along an axis that is being summed over; CHANCE: as comparisons with numbers fall, as of
 * units of relu, which some weights and inputs make zero: that is no doubt of a gradient, but none is expected of one window. */
enum { OPEN_FOR_GOOD = 15, OPEN_SUMMED = 14, OPEN_CHANCE = 13, OPEN_STAYS = 1 << OPEN_FOR_GOOD | 1 << OPEN_CHANCE };
typedef struct GrowthBlock {
    BlockKind kind;
    Term term;
    double c;
    int64_t from[MAX_RANK]; /* where the window begins in the term; its size is the block's. 0 at extents of 1 */
    Val why;                /* ANY: the leaf, or the node without a rule, that it began at */
    uint16_t open; /* ANY, which may be zero as data is: bit k: not all along axis k; OPEN_FOR_GOOD: all of it */
    bool balanced; /* ANY, whose sums over axis 1 are zero: gradients of keys */
} GrowthBlock;
typedef struct Cuts {
    int64_t *at; /* where parts begin; at[0] = 0 */
    size_t n;
} Cuts;
typedef struct GrowthValue {
    Shape shape;
    Cuts axis[MAX_RANK];
    GrowthBlock *block; /* row-major by parts */
    size_t n;
    bool alike;       /* of a weight: along axis 0 all or some are the same, whatever they are */
    bool stays_alike; /* with the same gradients */
    bool still;       /* made of weights and numbers alone: the same along every axis of symbolic extent */
} GrowthValue;

/* What a value is where the expert that `index` chooses for a slot is in each part of them. */
typedef struct ByExpert {
    Val index;
    Cuts parts;
    GrowthValue **of;
} ByExpert;
enum {
    SAME = 1,
    SAME_COPIES = 2,
    SAME_SUMMED = 4
}; /* along axis 2; made of what copies of an expert give; of its sum over axis 2 */
typedef struct Values Values;
/* What is asked when it matters whether data decides that something is zero. */
typedef struct DataFacts {
    int64_t positions;       /* of a sequence, T */
    const ValueRange *range; /* of the first values of the graph */
    size_t n_range;
    const Values *began; /* of the same graph right after the step; NULL: these are */
} DataFacts;
typedef GrowthValue *KnownLeaf(void *user, Values *x, Val v); /* of weights and buffers */
struct Values {
    Arena *arena;
    Terms *terms;
    const Graph *g;
    GrowthValue **of;   /* by node */
    GrowthValue **sums; /* by node: of what is not known, the sum over axis along[node]; NULL: neither */
    int8_t *along;
    KnownLeaf *leaf;
    void *user;
    const Values *like;    /* of the old model, or NULL: where its counts along an axis end */
    Val at;                /* the node that is being looked at */
    Val undefined;         /* the first that is no number for sure: 0 / 0 */
    const DataFacts *data; /* NULL: it is not asked what data decides, and there are none of these: */
    bool drops;            /* masks of dropout are as they are drawn; else ones */
    const ByExpert **by;   /* by node; NULL: experts are not told apart */
    uint8_t *same;         /* by node: bits of these */
    Values *exact; /* the same graph, where every block that is not known has a term of its own; NULL: not asked for */
    Map doubt;     /* of that one: which terms data decides */
};
/* Looks at every node of `g`. */
Values *values_find(Arena *arena, Terms *terms, const Graph *g, KnownLeaf *leaf, void *user, const Values *like,
                    const DataFacts *data);
/* A value whose blocks are all as `b`, with one part along each axis. */
GrowthValue *value_uniform(Values *x, const Shape *s, GrowthBlock b);
/* The numbers of a small table, each a block of its own where neighbours differ. */
GrowthValue *value_table(Values *x, const Shape *s, const double *data, size_t n);
GrowthValue *value_cut(Values *x, const Shape *s, const Cuts axis[MAX_RANK]); /* all ANY, of those parts */
GrowthValue *value_copy(Arena *arena, const GrowthValue *v);                  /* with all that it points to */
GrowthValue *value_tidy(Values *x, GrowthValue *v); /* with as few parts as its blocks allow */
static inline int64_t part_end(const GrowthValue *v, int k, size_t i)
{
    return i + 1 < v->axis[k].n ? v->axis[k].at[i + 1] : v->shape.d[k].n;
}
/* The block of part[k] of each axis. */
GrowthBlock *value_block(const GrowthValue *v, const size_t *part);
bool value_next(const GrowthValue *v, size_t *part); /* the next combination of parts; false behind the last */
GrowthBlock block_number(Values *x, int rank, double c);
GrowthBlock block_whole(Values *x, Op op, const Attr *a, const Shape *s, DType dtype);
/* Their sum, as equal shapes. */
GrowthBlock block_add(Values *x, GrowthBlock a, GrowthBlock b, int rank);
/* Whether a == factor * b with one factor everywhere; *why the first place of `a` where it does not hold. */
bool value_scales(Values *x, const GrowthValue *a, const GrowthValue *b, double *factor, Val *why);

#endif
