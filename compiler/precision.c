/* precision.c - what is computed with and stored in bfloat16.
 *
 * In:  a simplified graph.     Out: an equal graph in which the operands of large products, and for a device
 *      what lies between kernels, are rounded to bf16; then, of its groups, which values are kept in two bytes.
 * The one idea: rounding is a node of the graph like any other, so that the evaluator, the
 * gradients' kernels and fusion need to know nothing of precision. A rounded value that only
 * products read is stored as bf16 by the kernel that computes it; a product both of whose
 * operands lie so is one of bf16. Kernels of a device read such values too: for them whatever
 * wide rows of numbers lie between kernels are rounded as well, for all who read them. Sums, norms,
 * statistics, coefficients and everything of the size of a weight stay as they are.
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
/* Neighbours in what is stored in two bytes: two accesses of 16 bytes. */
enum { VECTOR_LEAST = 16 };

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

static bool is_rounded(const Graph *g, Val v)
{
    return node_at(g, v)->op == OP_ROUND_TO && node_at(g, v)->a.i == BF16;
}

static Val copy_node(Rounding *r, Val v)
{
    const Node *n = node_at(r->from, v);
    if (is_rounded(r->from, v) && is_rounded(r->g, r->map[n->in[0]]))
        return r->map[n->in[0]];
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
    if (is_rounded(r->from, v))
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

/* Rounds the operands of products, for them alone, and what is `shared`, for all who read it. */
static Graph *round_values(const Graph *from, Arena *arena, const bool *product, const bool *shared)
{
    size_t n = from->node.n;
    Rounding r = {from, graph_like(from, arena), NEW_ARRAY(arena, Val, n),
                  NEW_ARRAY(arena, Val, n)};
    bool *wanted = NEW_ARRAY(arena, bool, n);
    for (Val v = 1; v < n; v++) {
        wanted[v] = shared[v];
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
        if (shared[v])
            r.map[v] = r.rounded[v];
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

static Graph *round_products(const Graph *from, Arena *arena, const PlanOptions *how)
{
    size_t n = from->node.n;
    bool *product = NEW_ARRAY(arena, bool, n), *shared = NEW_ARRAY(arena, bool, n);
    for (Val v = 1; v < n; v++)
        product[v] = takes_bf16(from, v, how);
    return round_values(from, arena, product, shared);
}

/* ---- what lies between kernels ---- */

/* A vector of some length for each position of each sequence: no statistics, nor what sequences share, nor
 * what has the size of a weight. */
static bool is_wide(const Graph *g, Val v)
{
    const Shape *s = shape_of(g, v);
    Dim size, last = s->rank ? s->d[s->rank - 1] : DIM(1);
    return node_at(g, v)->dtype == DT_REAL && shape_size(s, &size) && size.b && dim_static(last) &&
           last.n >= VECTOR_LEAST && size.n >= EXTENT_LEAST;
}

static int64_t size_at(const Graph *g, Val v, const PlanOptions *how)
{
    Dim size;
    return shape_size(shape_of(g, v), &size) ? dim_at(size, how->B, how->T) : INT64_MAX;
}

/* Of a product of each position: the factor that is smaller than the other and the result, or the result that
 * is smaller than both factors. */
static void mark_coefficients(const Graph *g, Val v, const PlanOptions *how, bool *is)
{
    const Node *n = node_at(g, v);
    int64_t y = size_at(g, v, how), a = size_at(g, n->in[0], how), b = size_at(g, n->in[1], how);
    if (a < b && a < y)
        is[n->in[0]] = true;
    else if (b < a && b < y)
        is[n->in[1]] = true;
    else if (y < a && y < b)
        is[v] = true;
}

/* Coefficients of what positions hold, and what they are computed from, or their gradients, element by
 * element. */
static bool *find_coefficients(const Graph *g, Arena *arena, const PlanOptions *how)
{
    bool *is = NEW_ARRAY(arena, bool, g->node.n);
    for (Val v = 1; v < g->node.n; v++)
        if (node_at(g, v)->op == OP_MATMUL && shape_of(g, node_at(g, v)->in[1])->rank > 2)
            mark_coefficients(g, v, how, is);
    for (bool changed = true; changed;) {
        changed = false;
        for (Val v = 1; v < g->node.n; v++) {
            const Node *n = node_at(g, v);
            OpClass c = op_info((Op)n->op)->class;
            bool map = c == CLASS_UNARY || c == CLASS_BINARY || c == CLASS_TERNARY || c == CLASS_VIEW;
            for (size_t k = 0; map && k < n->n_in; k++)
                if (is[v] != is[n->in[k]] && size_at(g, v, how) == size_at(g, n->in[k], how))
                    is[v] = is[n->in[k]] = changed = true;
        }
    }
    return is;
}

/* Values that no library but a product of bf16 reads, by their bases. */
static bool *find_free(const Fusion *f, Arena *arena)
{
    const Graph *g = f->g;
    bool *is = NEW_ARRAY(arena, bool, g->node.n);
    memset(is, 1, g->node.n);
    for (size_t i = 0; i < g->out.n; i++)
        is[fuse_base(f, g->out.v[i].value)] = false;
    for (Val v = 1; v < g->node.n; v++)
        for (size_t k = 0; fuse_is_library(g, v) && k < node_at(g, v)->n_in; k++)
            is[fuse_base(f, node_at(g, v)->in[k])] = false;
    return is;
}

/* Fusion decides what kernels hand to each other; it is asked once without these nodes, and with them when
 * the plan is made. */
static Graph *round_between(const Graph *from, Arena *arena, const PlanOptions *how)
{
    Arena *tmp = arena_new(from->ctx);
    Decomposed d = {0};
    bool *shared = NEW_ARRAY(arena, bool, from->node.n);
    bool *none = NEW_ARRAY(arena, bool, from->node.n);
    const Graph *g = decompose(from->ctx, tmp, from, how, &d);
    Fusion *f = fuse_graph(from->ctx, tmp, g, how, d.copied);
    const bool *coefficient = find_coefficients(from, tmp, how), *is_free = find_free(f, tmp);
    for (Val v = 1; v < from->node.n; v++) {
        const Node *n = node_at(from, v);
        bool view = op_info((Op)n->op)->class == CLASS_VIEW, softmax = n->op == OP_EXP;
        if (view || softmax || coefficient[v] || !is_wide(from, v))
            continue;
        Val x = fuse_base(f, d.made[v]);
        shared[v] = f->stored[x] && f->home[x] >= 0 && is_free[x] &&
                    f->group.v[f->home[x]].kind == GROUP_ROWS;
    }
    fuse_free(f);
    Graph *g2 = round_values(from, arena, none, shared);
    arena_free(tmp);
    return g2;
}

Graph *plan_graph(const Graph *g, Arena *arena, const PlanOptions *how)
{
    Graph *simple = graph_release(graph_simplify(g, arena), arena);
    if (!how->bf16 || g->exact)
        return simple;
    Graph *rounded = round_products(simple, arena, how);
    return how->cuda ? round_between(rounded, arena, how) : rounded;
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

bool fuse_may_be_bf16(const Fusion *f, Val v) { return is_rounded(f->g, v); }

/* What is stored rounded, and read in two bytes by all who read it: products, and kernels of a device. */
void fuse_choose_bf16(Fusion *f)
{
    const Graph *g = f->g;
    f->bf16 = NEW_ARRAY(f->arena, bool, g->node.n);
    for (Val v = 1; v < g->node.n; v++)
        f->bf16[v] = fuse_may_be_bf16(f, v) && f->stored[v] && f->home[v] >= 0;
    for (size_t i = 0; i < g->out.n; i++)
        f->bf16[fuse_base(f, g->out.v[i].value)] = false;
    for (Val v = 1; v < g->node.n; v++)
        for (size_t k = 0; k < node_at(g, v)->n_in; k++)
            if (node_at(g, v)->op != OP_MATMUL && !is_plain_view(f, v) &&
                (!f->device || fuse_is_library(g, v)))
                f->bf16[fuse_base(f, node_at(g, v)->in[k])] = false;
    for (bool changed = true; changed;) { /* a product takes both operands so, or neither */
        changed = false;
        for (Val v = 1; v < g->node.n; v++) {
            const Node *n = node_at(g, v);
            if (n->op != OP_MATMUL || (f->device && !fuse_is_library(g, v)) || fuse_bf16_product(f, v))
                continue;
            for (int k = 0; k < 2; k++) {
                bool *x = &f->bf16[fuse_base(f, n->in[k])];
                changed = changed || *x;
                *x = false;
            }
        }
    }
}
