/* growth_term.h - expressions over the values of a model before it grows.
 *
 * In:  operators and their inputs.   Out: numbers of terms; equal expressions have equal numbers.
 * The one idea: what a grown model computes is written as expressions over the old weights and inputs. A
 * factor is kept beside a term, not in it, and an axis along which a term does not vary has extent 1, so
 * that 1.02 times an old value is recognized as that.
 */
#ifndef VWN_GROWTH_TERM_H
#define VWN_GROWTH_TERM_H

#include "compiler/graph/ir.h"

typedef uint32_t Term; /* 0: none */
typedef struct TermIn {
    double c; /* a factor of the term */
    Term t;
} TermIn;
typedef struct TermNode {
    uint8_t op, dtype;
    uint16_t n_in;
    TermIn *in;
    Shape shape; /* elementwise: extents of 1 go with any extent */
    Attr a;
} TermNode;
typedef struct Terms {
    Arena *arena;
    VEC(TermNode) node;
    uint32_t *slot; /* by hash */
    size_t n_slot;
    Map moved; /* a reshape -> the form that it is brought to */
} Terms;

Terms *terms_new(Arena *arena);
/* Whether two factors are one number: whole ones exactly, others within 1e-12 of their size. */
bool factor_same(double a, double b);
/* Finds or makes; `in` is copied. */
Term term_make(Terms *t, Op op, DType dtype, const TermIn *in, size_t n_in, const Attr *a, const Shape *shape);
static inline const TermNode *term_at(const Terms *t, Term x) { return &t->node.v[x]; }
Term term_one(Terms *t, int rank); /* the number 1, every extent 1 */
bool term_is_one(const Terms *t, Term x);
Term term_identity(Terms *t, int64_t n); /* the matrix with ones on its diagonal; n > 1 */
bool term_is_identity(const Terms *t, Term x);
bool term_is_updated(const Terms *t, Term x, Name site);                  /* as block_updated() makes them */
Term term_slice(Terms *t, Term x, int axis, int64_t from, int64_t count); /* x itself when it is whole */
Term term_reshape(Terms *t, Term x, const Shape *to);
Term term_spread(Terms *t, Term x, int axis, Dim extent); /* extent 1 repeated */
/* x.c x.t + y.c y.t, of equal ranks; .t = 0: it is zero. */
TermIn term_sum(Terms *t, TermIn x, TermIn y);

#endif
