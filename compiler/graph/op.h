/* op.h - what an operator has to say about itself; private to the graph's own files.
 *
 * In:  a row of ops.def.     Out: three rules with fixed names: shape_ID, grad_ID, eval_ID.
 * The one idea: the rules are declared here from the table and defined in the files of the classes, so
 * an operator without one of them does not link.
 */
#ifndef VWN_OP_H
#define VWN_OP_H

#include "ir.h"

/* A node that is to be made, or that is being verified. */
typedef struct Ask {
    const Graph *g;
    Op op;
    const Val *in;
    size_t n_in;
    const Attr *a;
    const Shape *given; /* for operators whose row has the attribute S, else NULL */
} Ask;
static inline const Shape *ask_shape(const Ask *q, size_t k) { return shape_of(q->g, q->in[k]); }
static inline DType ask_dtype(const Ask *q, size_t k) { return (DType)node_at(q->g, q->in[k])->dtype; }
/* Whether input k is an integer for each element of the first axis of input 0. */
static inline bool ask_is_each(const Ask *q, size_t k)
{
    const Shape *s = ask_shape(q, k);
    return ask_dtype(q, k) == DT_INT && s->rank == 1 && dim_eq(s->d[0], ask_shape(q, 0)->d[0]);
}

/* Whether this attention, or gradient of one, has for each query the first key that it sees. */
bool sdpa_has_oldest(const Graph *g, const Node *n);

/* Fills *out and *dtype. Returns NULL, or a sentence that says what does not fit. */
typedef const char *ShapeRule(const Ask *q, Shape *out, DType *dtype);

/* d is d loss / d v, of v's shape. For each k with want[k], din[k] becomes d loss / d in[k], or
 * stays 0 where there is none. Only builds nodes; g->node may move, so node_at() must be asked
 * again. */
typedef void GradRule(Graph *g, Val v, Val d, const bool *want, Val *din);

/* Computes one node of the reference evaluator. `out` is there, zeroed; so are the aux
 * results. */
typedef struct OpEval {
    Ctx *ctx;
    const Graph *g;
    const RefRun *run;
    const Node *n;
    Tensor *const *in; /* of AUX: the aux result itself */
    Tensor *out;
    Tensor *const *aux;
    uint64_t drawn; /* the number of the first element's random number */
} OpEval;
typedef void EvalRule(const OpEval *e);

#define OP(id, ...)                                                                                                    \
    ShapeRule shape_##id;                                                                                              \
    GradRule grad_##id;                                                                                                \
    EvalRule eval_##id;
#include "ops.def"
#undef OP

typedef struct OpRules {
    ShapeRule *shape;
    GradRule *grad;
    EvalRule *eval;
} OpRules;
extern const OpRules op_rules[OP_COUNT];

/* The attributes an operator uses are letters in its row: i j x y z, A axes, D dim, K site, T
 * data, S the shape is given. */
static inline bool op_uses(Op op, char letter) { return strchr(op_info(op)->attrs, letter) != NULL; }

/* The shape that ir_node() wants to be given for such a node, or NULL. */
static inline const Shape *op_given(const Node *n) { return op_uses((Op)n->op, 'S') ? &n->shape : NULL; }

/* Shape and type of a node that may not exist yet; NULL or what is wrong. Checks everything. */
const char *op_infer(const Ask *q, Shape *out, DType *dtype);
int op_aux_count(Op op);
const char *op_aux_shape(const Graph *g, Val producer, int64_t which, Shape *out);

/* ---- used by gradient rules, compositions and the simplifier ---- */
Val ir_op(Graph *g, Op op, Val a, Val b, Val c, Attr attr, const Shape *shape); /* 0 = no input */
/* Node v of another graph over mapped inputs; external tensors and host scalars become g's. */
Val ir_copy(Graph *g, const Graph *from, Val v, const Val *map);
int32_t ext_add(Graph *g, const Ext *x);                       /* its place in the table, found or made */
void ext_set_leaf(Graph *g, Val v);                            /* v, an EXT node, becomes what ir_ext() returns */
Val ir_count(Graph *g, const Shape *s, uint32_t axes);         /* product of extents, a real scalar */
bool ir_is_uniform(const Graph *g, Val v, double *value);      /* one number everywhere? */
bool shape_reduce(const Shape *in, uint32_t axes, Shape *out); /* axes become 1 */

/* A loop over the elements of a tensor seen as [outer, n, inner] around one axis. */
typedef struct Around {
    int64_t outer, n, inner;
} Around;
static inline Around around(const Tensor *t, int axis)
{
    Around a = {1, t->d[axis], 1};
    for (int i = 0; i < axis; i++)
        a.outer *= t->d[i];
    for (int i = axis + 1; i < t->rank; i++)
        a.inner *= t->d[i];
    return a;
}
/* Rules of operators that have nothing to say. */
#define NO_GRAD(id)                                                                                                    \
    void grad_##id(Graph *g, Val v, Val d, const bool *want, Val *din)                                                 \
    {                                                                                                                  \
        (void)g, (void)v, (void)d, (void)want, (void)din;                                                              \
    }
#define SAME_SHAPE_RULE(id, rule)                                                                                      \
    const char *shape_##id(const Ask *q, Shape *out, DType *dtype) { return rule(q, out, dtype); }

#endif
