/* precision.c - matrix products with operands in bfloat16.
 *
 * In:  a simplified graph.     Out: an equal graph in which the operands of large products are
 *      rounded to bf16; then, of its groups, which values are kept in two bytes.
 * The one idea: rounding is a node of the graph like any other, so that the evaluator, the
 * gradients' kernels and fusion need to know nothing of precision. A rounded value that only
 * products read is stored as bf16 by the kernel that computes it; a product both of whose
 * operands lie so is one of bf16. Sums, norms, coefficients and attention stay as they are.
 */
#include "fuse.h"
#include "op.h"
#include "plan.h"
#include "recompute.h"
#include "simplify.h"

/* Extents from which on a product gains by bf16 even when it must have its left operand rounded
 * for itself alone. The rate as a share of that in float32, without and with the rounding; by
 * tests/runtime/bench_products.c on one core of a Zen 5 server, oneDNN 2.6:
 *     4096 x 256 x 256         184 %  175 %        256 x 256 x 4096 (A^T)    146 %  150 %
 *     4096 x 256 x 256 (B^T)   218 %  196 %        256 x 704 x 4096 (A^T)    156 %  154 %
 *     4096 x  64 x 256         184 %  130 %         64 x  64 x 4096 (A^T)    132 %  114 %
 *     4096 x  32 x 256         161 %   94 %         64 x 256 x  256          155 %  148 %
 *     4096 x  16 x 256         140 %   68 %       4096 x 256 x   64          179 %  170 % */
enum { BF16 = 16, EXTENT_LEAST = 64 };

/* ---- which products ---- */

/* By the shape alone: the same on every machine. */
static bool takes_bf16(const Graph *g, Val v, const PlanOptions *how)
{
    const Node *n = node_at(g, v);
    if (n->op != OP_MATMUL || !product_is_library(g, v, how))
        return false;
    const Shape *a = shape_of(g, n->in[0]), *y = &n->shape;
    int64_t B = how->B, T = how->T, k = dim_at(a->d[a->rank - (n->a.i & 1 ? 2 : 1)], B, T);
    int64_t m = dim_at(y->d[y->rank - 2], B, T), c = dim_at(y->d[y->rank - 1], B, T);
    if (shape_of(g, n->in[1])->rank == 2)
        for (int i = 0; i < y->rank - 2; i++)
            m *= dim_at(y->d[i], B, T);
    return m >= EXTENT_LEAST && c >= EXTENT_LEAST && k >= EXTENT_LEAST;
}

/* ---- rounding ---- */

typedef struct Rounding {
    const Graph *from;
    Graph *g;
    Val *map;     /* copies */
    Val *rounded; /* by Val of `from`: the copy rounded, or 0 */
} Rounding;

/* Reshapes and broadcasts move no element, so what is behind them is rounded, once for all. */
static bool is_seen_through(const Graph *g, Val v)
{
    return node_at(g, v)->op == OP_RESHAPE || node_at(g, v)->op == OP_BROADCAST;
}

static Val behind(const Graph *g, Val v)
{
    while (is_seen_through(g, v))
        v = node_at(g, v)->in[0];
    return v;
}

static Val copy_node(Rounding *r, Val v)
{
    const Node *n = node_at(r->from, v);
    Val *in = NEW_ARRAY(r->g->arena, Val, n->n_in + 1u);
    for (size_t k = 0; k < n->n_in; k++)
        in[k] = r->map[n->in[k]];
    Val copy = ir_node(r->g, (Op)n->op, in, n->n_in, &n->a,
                       op_uses((Op)n->op, 'S') ? &n->shape : NULL);
    if (n->op == OP_EXT)
        ext_set_leaf(r->g, copy);
    return copy;
}

static Val round_copy(Rounding *r, Val v)
{
    const Node *n = node_at(r->from, v);
    if (n->op == OP_ROUND_TO && n->a.i == BF16)
        return r->map[v];
    if (n->op == OP_EXT)
        r->g->name = r->from->ext.v[n->a.i].name;
    return ir_op(r->g, OP_ROUND_TO, r->map[v], 0, 0, (Attr){.i = BF16}, NULL);
}

/* The view v of its rounded base. */
static Val rounded_view(Rounding *r, Val v)
{
    const Node *n = node_at(r->from, v);
    if (!r->rounded[v])
        r->rounded[v] = ir_op(r->g, (Op)n->op, rounded_view(r, n->in[0]), 0, 0, n->a, &n->shape);
    return r->rounded[v];
}

static Graph *round_products(const Graph *from, Arena *arena, const PlanOptions *how)
{
    size_t n = from->node.n;
    Rounding r = {from, graph_like(from, arena), NEW_ARRAY(arena, Val, n),
                  NEW_ARRAY(arena, Val, n)};
    bool *wanted = NEW_ARRAY(arena, bool, n), *product = NEW_ARRAY(arena, bool, n);
    for (Val v = 1; v < n; v++) {
        product[v] = takes_bf16(from, v, how);
        for (int k = 0; k < 2 && product[v]; k++)
            wanted[behind(from, node_at(from, v)->in[k])] = true;
    }
    for (Val v = 1; v < n; v++) {
        const Node *x = node_at(from, v);
        r.g->span = x->span;
        r.g->name = x->name;
        if (product[v]) {
            Val a = rounded_view(&r, x->in[0]), b = rounded_view(&r, x->in[1]);
            r.map[v] = ir_op(r.g, OP_MATMUL, a, b, 0, x->a, NULL);
        } else {
            r.map[v] = copy_node(&r, v);
        }
        if (wanted[v])
            r.rounded[v] = round_copy(&r, v);
    }
    for (size_t i = 0; i < from->out.n; i++) {
        Output o = from->out.v[i];
        o.value = r.map[o.value];
        vec_push(arena, &r.g->out, o);
    }
    r.g->span = from->span;
    r.g->name = from->name;
    return r.g;
}

Graph *plan_graph(const Graph *g, Arena *arena, const PlanOptions *how)
{
    Graph *simple = graph_release(graph_simplify(g, arena), arena);
    return how->bf16 && !g->exact ? round_products(simple, arena, how) : simple;
}

/* ---- what is kept in two bytes ---- */

static bool is_plain_view(const Fusion *f, Val v)
{
    return fuse_base(f, v) != v;
}

bool fuse_bf16_product(const Fusion *f, Val v)
{
    const Node *n = node_at(f->g, v);
    return f->bf16 && fuse_is_library(f->g, v) && n->op == OP_MATMUL &&
           f->bf16[fuse_base(f, n->in[0])] && f->bf16[fuse_base(f, n->in[1])];
}

void fuse_choose_bf16(Fusion *f)
{
    const Graph *g = f->g;
    f->bf16 = NEW_ARRAY(f->arena, bool, g->node.n);
    for (Val v = 1; v < g->node.n; v++) {
        const Node *n = node_at(g, v);
        f->bf16[v] = n->op == OP_ROUND_TO && n->a.i == BF16 && f->stored[v] && f->home[v] >= 0;
    }
    for (size_t i = 0; i < g->out.n; i++)
        f->bf16[fuse_base(f, g->out.v[i].value)] = false;
    for (Val v = 1; v < g->node.n; v++)
        for (size_t k = 0; k < node_at(g, v)->n_in; k++)
            if (node_at(g, v)->op != OP_MATMUL && !is_plain_view(f, v))
                f->bf16[fuse_base(f, node_at(g, v)->in[k])] = false;
    for (bool changed = true; changed;) { /* a product takes both operands so, or neither */
        changed = false;
        for (Val v = 1; v < g->node.n; v++) {
            const Node *n = node_at(g, v);
            if (n->op != OP_MATMUL || fuse_bf16_product(f, v))
                continue;
            for (int k = 0; k < 2; k++) {
                bool *x = &f->bf16[fuse_base(f, n->in[k])];
                changed = changed || *x;
                *x = false;
            }
        }
    }
}
