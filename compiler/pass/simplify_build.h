/* simplify_build.h - private to the two files of the simplifier.
 *
 * In:  a node as it is about to be made.     Out: a value that does the same with less.
 * The one idea: a rule looks only at the node and at what its inputs are, never at who uses it.
 * So a node that no rule changes stays unchanged in a second run: simplifying is idempotent.
 */
#ifndef VWN_SIMPLIFY_BUILD_H
#define VWN_SIMPLIFY_BUILD_H

#include "compiler/graph/op.h"
#include "rewrite.h"

typedef struct Simplifier {
    Graph *g;       /* what is being built */
    bool drop_stop; /* gradients have been taken */
    Val *bucket;    /* hash table of the nodes of g: first of a chain */
    Val *chain;     /* next with the same hash */
    size_t n_bucket, n_chain;
    Arena *memory;
} Simplifier;

/* A node that is about to be made; its inputs are nodes of g that are simplified already. */
typedef struct Draft {
    Op op;
    Val in[3]; /* copies of the first inputs */
    const Val *all;
    size_t n_in;
    Attr a;
    const Shape *given;
    Shape shape; /* inferred */
    DType dtype;
} Draft;

/* Makes a node, or finds one that does the same. */
Val make_node(Simplifier *s, Op op, const Val *in, size_t n_in, const Attr *a, const Shape *given);

/* What the draft is replaced by, or 0. */
Val simplify_elementwise(Simplifier *s, const Draft *d);
Val simplify_layout(Simplifier *s, const Draft *d);
Val simplify_constant(Simplifier *s, const Draft *d);

Val emit_uniform(Simplifier *s, const Shape *shape, DType dtype, double x);
static inline const Node *made(const Simplifier *s, Val v) { return node_at(s->g, v); }
static inline Val emit_op(Simplifier *s, Op op, Val a, Val b, Val c)
{
    Val in[3] = {a, b, c};
    return make_node(s, op, in, (size_t)(c ? 3 : b ? 2 : 1), NULL, NULL);
}
static inline Val emit_shaped(Simplifier *s, Op op, Val x, const Shape *shape)
{
    return make_node(s, op, &x, 1, NULL, shape);
}

#endif
