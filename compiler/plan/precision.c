/* precision.c - what is computed with in bfloat16 or binary16 (fp16).
 *
 * In:  a simplified graph.     Out: an equal graph in which the operands of large products, and for a device
 *      what lies between kernels, are rounded to one of them.
 * The one idea: rounding is a node of the graph like any other, so that the evaluator, the
 * gradients' kernels and fusion need to know nothing of precision. A rounded value that only
 * products read is stored in 16 bits by the kernel that computes it; a product both of whose
 * operands lie so is one of that type. Kernels of a device read such values too: for them whatever
 * wide rows of elements lie between kernels are rounded as well, for all who read them. On a CPU of fp16 only
 * the values are: products of them are computed in float32. Sums, norms, statistics, coefficients and
 * everything of the size of a weight stay as they are. What leaves the range of fp16 is infinite: the scale of
 * the loss keeps gradients inside, and a step where one has left it changes nothing.
 */
#include "compiler/fuse/fuse.h"
#include "compiler/lower/lower_kernel.h"
#include "compiler/graph/op.h"
#include "compiler/pass/join.h"
#include "compiler/pass/rewrite.h"
#include "compiler/pass/recompute.h"
#include "plan_build.h"

/* Extents from which on a product gains by bf16 even when it must have its left operand rounded
 * for itself alone. The rate as a share of that in float32, without and with the rounding; by
 * tests/runtime/bench_products.c on one core of a Zen 5 server, oneDNN 2.6:
 *     4096 x 256 x 256         184 %  175 %        256 x 256 x 4096 (A^T)    146 %  150 %
 *     4096 x 256 x 256 (B^T)   218 %  196 %        256 x 704 x 4096 (A^T)    156 %  154 %
 *     4096 x  64 x 256         184 %  130 %         64 x  64 x 4096 (A^T)    132 %  114 %
 *     4096 x  32 x 256         161 %   94 %         64 x 256 x  256          155 %  148 %
 *     4096 x  16 x 256         140 %   68 %       4096 x 256 x   64          179 %  170 % */
enum { EXTENT_LEAST = PLAN_HALF_LEAST };
/* The row of a product's operand has a multiple of so many elements, on a device. */
enum { ROW_BYTES = 16 };

/* ---- which products ---- */

static bool is_large(int64_t m, int64_t n, int64_t k)
{
    return m >= EXTENT_LEAST && n >= EXTENT_LEAST && k >= EXTENT_LEAST;
}

/* Of pairs of a row and its expert, by the matrices of these. */
static bool experts_take_half(const Graph *g, Val v, const PlanOptions *how)
{
    const Node *n = node_at(g, v);
    const Shape *x = shape_of(g, n->in[0]), *y = &n->shape;
    Dim pairs;
    return shape_size(shape_of(g, n->in[2]), &pairs) &&
           is_large(dim_at(pairs, how->B, how->T), dim_at(x->d[x->rank - 1], how->B, how->T),
                    dim_at(y->d[y->rank - 1], how->B, how->T));
}

/* By the shape alone: the same on every machine. */
static bool takes_half(const Graph *g, Val v, const PlanOptions *how)
{
    const Node *n = node_at(g, v);
    if (op_is_expert((Op)n->op))
        return experts_take_half(g, v, how);
    if (n->op != OP_MATMUL || !product_is_library(g, v, how))
        return false;
    const Shape *a = shape_of(g, n->in[0]), *y = &n->shape;
    int64_t B = how->B, T = how->T, k = dim_at(a->d[a->rank - (n->a.i & 1 ? 2 : 1)], B, T);
    int64_t m = dim_at(y->d[y->rank - 2], B, T), c = dim_at(y->d[y->rank - 1], B, T);
    if (shape_of(g, n->in[1])->rank == 2)
        for (int i = 0; i < y->rank - 2; i++)
            m *= dim_at(y->d[i], B, T);
    return is_large(m, c, k);
}

/* ---- rounding ---- */

typedef struct Rounding {
    const Graph *from;
    Graph *g;
    Val *map;     /* what stands for a node of `from` */
    Val *copy;    /* the node itself */
    Val *rounded; /* by Val of `from`: the copy rounded, or 0 */
    Half to;
    bool *whole; /* on a device, by Val of `from`: products read it in its own rows; NULL: this is none */
    Val *padded; /* by Val of `from`: the copy rounded, its rows padded to ROW_BYTES; 0: it lies so anyway */
    const bool *product, *shared, *kept; /* as round_values() has them */
    bool *read;                          /* by a product, so far */
    bool *wanted;                        /* rounded, by somebody */
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

static Val copy_node(Rewrite *w, Rounding *r, Val v)
{
    const Node *n = node_at(r->from, v);
    if (node_is_rounded(r->from, v, r->to) && node_is_rounded(r->g, r->map[n->in[0]], r->to))
        return r->map[n->in[0]];
    Val *in = rewrite_inputs(w, r->g->arena, v);
    for (size_t k = 0; k < n->n_in && n->op == OP_AUX; k++)
        in[k] = r->copy[n->in[k]];
    return rewrite_same(w, v, in);
}

static Val round_copy(Rounding *r, Val v)
{
    const Node *n = node_at(r->from, v);
    if (node_is_rounded(r->from, v, r->to))
        return r->map[v];
    if (n->op == OP_EXT)
        r->g->name = r->from->ext.v[n->a.i].name;
    return ir_op(r->g, OP_ROUND_TO, r->map[v], 0, 0, (Attr){.i = r->to}, NULL);
}

/* Tensor cores read sixteen bytes at a time. A matrix has as many rows, too: its product may be with what is exchanged. */
Shape plan_half_shape(const Shape *s, Half half)
{
    const int64_t multiple = ROW_BYTES / half_bytes(half);
    Shape to = *s;
    for (int i = s->rank == 2 ? 0 : s->rank - 1; i >= 0 && i < s->rank && s->rank >= 2; i++)
        if (dim_static(s->d[i]) && s->d[i].n >= EXTENT_LEAST)
            to.d[i].n = (s->d[i].n + multiple - 1) / multiple * multiple;
    return to;
}

Val plan_half_pad(Graph *g, Val v, Half half)
{
    const Shape from = *shape_of(g, v), to = plan_half_shape(&from, half);
    for (int i = 0; i < from.rank; i++)
        if (!dim_eq(from.d[i], to.d[i]))
            v = ir_pad(g, v, i, 0, to.d[i].n - from.d[i].n);
    return v;
}

/* The first n along an axis. */
static Val cut(Graph *g, Val v, int axis, Dim n)
{
    return dim_eq(shape_of(g, v)->d[axis], n) ? v : ir_slice(g, v, axis, 0, n.n);
}

/* What products read, and the zeros that lie behind its rows, which they do not see. */
static Val pad_rows(Rounding *r, Val v)
{
    const Shape *s = shape_of(r->from, v), to = plan_half_shape(s, r->to);
    if (!r->whole || !r->whole[v] || shape_eq(s, &to) || node_is_rounded(r->from, v, r->to))
        return round_copy(r, v);
    Val x = r->padded[v] =
        ir_op(r->g, OP_ROUND_TO, plan_half_pad(r->g, r->map[v], r->to), 0, 0, (Attr){.i = r->to}, NULL);
    for (int i = 0; i < s->rank; i++)
        x = cut(r->g, x, i, s->d[i]);
    return x;
}

/* The view v of its rounded base. */
static Val rounded_view(Rounding *r, Val v)
{
    const Node *n = node_at(r->from, v);
    if (!r->rounded[v])
        r->rounded[v] = ir_op(r->g, (Op)n->op, rounded_view(r, n->in[0]), 0, 0, n->a, &n->shape);
    return r->rounded[v];
}

/* An operand of a product. What is kept in float32 anyway is rounded for a second product once more, where that
 * is: in between it lies in memory once. */
static Val operand(Rounding *r, Val v, const bool *kept, bool *read)
{
    Val base = behind(r->from, v);
    if (kept && kept[base] && read[base]) {
        Name name = r->g->name;
        bool recomputed = r->g->recomputed;
        recompute_begin_copy(r->g, node_at(r->from, base)->name);
        for (Val u = v; u != base; u = node_at(r->from, u)->in[0])
            r->rounded[u] = 0;
        r->rounded[base] = round_copy(r, base);
        r->g->name = name;
        r->g->recomputed = recomputed;
    }
    read[base] = true;
    return rounded_view(r, v);
}

static bool same_rows(const Graph *g, Val v, Val base)
{
    const Shape *s = shape_of(g, v), *of = shape_of(g, base);
    return s->rank && of->rank && dim_eq(s->d[s->rank - 1], of->d[of->rank - 1]);
}

/* Whether each operand of a product has the rows of what is behind it: then they may lie further apart. */
static bool *whole_rows(const Graph *g, Arena *arena, const bool *product)
{
    bool *whole = NEW_ARRAY(arena, bool, g->node.n);
    memset(whole, true, g->node.n * sizeof *whole);
    for (Val v = 1; v < g->node.n; v++)
        for (int k = 0; k < 2 && product[v]; k++) {
            Val x = node_at(g, v)->in[k], base = behind(g, x);
            whole[base] = whole[base] && same_rows(g, x, base);
        }
    return whole;
}

/* Product v. A result of odd rows is computed with the zeros behind those of its right factor, where that is a matrix. */
static Val multiply(Rounding *r, Val v, Val a, Val b)
{
    const Node *n = node_at(r->from, v);
    const Shape *s = &n->shape, *right = shape_of(r->from, n->in[1]);
    if (op_is_expert((Op)n->op))
        return ir_op(r->g, (Op)n->op, a, b, r->map[n->in[2]], n->a, n->op == OP_EXPERT_MATMUL_DW ? s : NULL);
    Val wide = r->padded[n->in[1]];
    int inner = n->a.i & 2 ? 1 : 0;
    if (wide && right->rank == 2)
        b = cut(r->g, wide, inner, right->d[inner]);
    return cut(r->g, ir_op(r->g, OP_MATMUL, a, b, 0, n->a, NULL), s->rank - 1, s->d[s->rank - 1]);
}

static Val rounded_node(Rewrite *w, Val v, void *user)
{
    Rounding *r = user;
    const Node *n = node_at(r->from, v);
    if (r->product[v]) {
        Val a = operand(r, n->in[0], r->kept, r->read), b = operand(r, n->in[1], r->kept, r->read);
        r->map[v] = multiply(r, v, a, b);
    } else {
        r->map[v] = copy_node(w, r, v);
    }
    r->copy[v] = r->map[v];
    if (r->wanted[v])
        r->rounded[v] = r->shared[v] ? round_copy(r, v) : pad_rows(r, v);
    return r->shared[v] ? r->rounded[v] : r->map[v];
}

/* Rounds the operands of products, for them alone, and what is `shared`, for all who read it. kept: those that lie
 * in float32 until their last product in any case, or NULL. */
static Graph *round_values(const Graph *from, Arena *arena, Half to, const bool *product, const bool *shared,
                           const bool *kept, const Target *target)
{
    size_t n = from->node.n;
    Rewrite w = rewrite_begin(from, arena, arena, 0);
    Rounding r = {.from = from, .g = w.to, .map = w.map, .to = to, .product = product, .shared = shared, .kept = kept};
    r.copy = NEW_ARRAY(arena, Val, n);
    r.rounded = NEW_ARRAY(arena, Val, n);
    r.padded = NEW_ARRAY(arena, Val, n);
    r.whole = target->half_kernels ? whole_rows(from, arena, product) : NULL;
    r.read = NEW_ARRAY(arena, bool, n);
    r.wanted = NEW_ARRAY(arena, bool, n);
    for (Val v = 1; v < n; v++) {
        r.wanted[v] = shared[v];
        for (int k = 0; k < 2 && product[v]; k++)
            r.wanted[behind(from, node_at(from, v)->in[k])] = true;
    }
    return graph_rewrite(&w, NULL, rounded_node, &r);
}

Graph *plan_round_operands(const Graph *from, Arena *arena, const PlanOptions *how)
{
    size_t n = from->node.n;
    bool *product = NEW_ARRAY(arena, bool, n), *shared = NEW_ARRAY(arena, bool, n);
    bool *kept = NEW_ARRAY(arena, bool, n); /* results of attention, by its gradient */
    for (Val v = 1; v < n; v++) {
        const Node *x = node_at(from, v);
        product[v] = takes_half(from, v, how);
        for (size_t k = 0; x->op == OP_SDPA_GRAD && k < x->n_in; k++)
            kept[behind(from, x->in[k])] = true;
    }
    return round_values(from, arena, how->half, product, shared, plan_target(how)->half_kernels ? NULL : kept,
                        plan_target(how));
}

/* ---- what lies between kernels ---- */

/* A vector of some length for each position of each sequence: no statistics, nor what sequences share, nor
 * what has the size of a weight. */
static bool is_wide(const Graph *g, Val v, const PlanOptions *how)
{
    const Shape *s = shape_of(g, v);
    Dim size, last = s->rank ? s->d[s->rank - 1] : DIM(1);
    return node_at(g, v)->dtype == DT_REAL && shape_size(s, &size) && size.b && dim_static(last) &&
           last.n >= plan_target(how)->tuned->rounded_vector && size.n >= EXTENT_LEAST;
}

static int64_t size_at(const Graph *g, Val v, const PlanOptions *how)
{
    Dim size;
    return shape_size(shape_of(g, v), &size) ? dim_at(size, how->B, how->T) : INT64_MAX;
}

/* Has v as many elements as what it is made of, but for the zeros that a product has behind its rows? */
static bool is_as_large(const Graph *g, Val v, Val in, const PlanOptions *how)
{
    const Node *n = node_at(g, v);
    Shape wide = plan_half_shape(&n->shape, how->half);
    bool cut = n->op == OP_SLICE && node_at(g, in)->op == OP_MATMUL && shape_eq(&wide, shape_of(g, in));
    return cut || size_at(g, v, how) == size_at(g, in, how);
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
 * element. Those that are made beside each other, and then cut apart, are known by their product. */
static bool *find_coefficients(const Graph *g, Arena *arena, const PlanOptions *how)
{
    bool *is = NEW_ARRAY(arena, bool, g->node.n);
    for (Val v = 1; v < g->node.n; v++)
        if (product_is_joined(g, v, how))
            is[v] = true;
        else if (node_at(g, v)->op == OP_MATMUL && shape_of(g, node_at(g, v)->in[1])->rank > 2)
            mark_coefficients(g, v, how, is);
    for (bool changed = true; changed;) {
        changed = false;
        for (Val v = 1; v < g->node.n; v++) {
            const Node *n = node_at(g, v);
            bool map = op_is_map((Op)n->op) || op_is_view((Op)n->op);
            for (size_t k = 0; map && k < n->n_in; k++)
                if (is[v] != is[n->in[k]] && is_as_large(g, v, n->in[k], how))
                    is[v] = is[n->in[k]] = changed = true;
        }
    }
    return is;
}

static Val base_of(const Graph *g, Val v)
{
    while (op_is_view((Op)node_at(g, v)->op))
        v = node_at(g, v)->in[0];
    return v;
}

/* What a softmax or a choice of the largest sees, back to where it was last multiplied or summed. */
static bool *find_scores(const Graph *g, Arena *arena, const PlanOptions *how)
{
    bool *is = NEW_ARRAY(arena, bool, g->node.n);
    for (Val v = (Val)g->node.n - 1; v > 0; v--) {
        const Node *n = node_at(g, v);
        bool map = op_is_map((Op)n->op) || op_is_view((Op)n->op);
        for (size_t k = 0; k < n->n_in; k++)
            if (n->op == OP_AMAX || n->op == OP_TOP_K || (is[v] && map && is_as_large(g, v, n->in[k], how)))
                is[n->in[k]] = true;
    }
    return is;
}

typedef struct Between {
    const Graph *g;
    const PlanOptions *how;
    bool *bare; /* some library reads it in float32, or it is a result of the graph */
    bool attention;
} Between;

static bool is_product(const Between *b, Val v)
{
    const Node *n = node_at(b->g, v);
    return (op_is_expert((Op)n->op) || (n->op == OP_MATMUL && product_is_library(b->g, v, b->how))) &&
           node_is_rounded(b->g, base_of(b->g, n->in[0]), b->how->half) &&
           node_is_rounded(b->g, base_of(b->g, n->in[1]), b->how->half);
}

static void find_bare(Between *b)
{
    const Graph *g = b->g;
    for (size_t i = 0; i < g->out.n; i++)
        b->bare[base_of(g, g->out.v[i].value)] = true;
    for (Val v = 1; v < g->node.n; v++)
        for (size_t k = 0; k < node_at(g, v)->n_in; k++) {
            const Node *n = node_at(g, v);
            bool library = n->op == OP_MATMUL ? product_is_library(g, v, b->how) : node_is_library(g, v);
            if (library && !is_product(b, v) && n->op != OP_SCATTER_ADD &&
                !(fuse_is_attention(g, v) && fuse_attention_takes(g, v, k)))
                b->bare[base_of(g, n->in[k])] = true;
        }
}

static bool attention_fits(const Between *b)
{
    enum { HEAD_MULTIPLE = 2 }; /* 4 bytes are the least that is copied */
    const Graph *g = b->g;
    bool fits = true;
    for (Val v = 1; v < g->node.n; v++) {
        const Node *n = node_at(g, v);
        for (size_t k = 0; fuse_is_attention(g, v) && k < n->n_in; k++) {
            const Shape *s = shape_of(g, n->in[k]);
            if (fuse_attention_takes(g, v, k))
                fits = fits && !b->bare[base_of(g, n->in[k])] && dim_static(s->d[3]) && s->d[3].n % HEAD_MULTIPLE == 0;
        }
        if (fuse_is_attention_result(g, v))
            fits = fits && !b->bare[v];
    }
    return fits;
}

/* What attention takes and gives, and results of products, but for scores of few choices: softmax and its sums are of 24 bits. */
static void share_with_libraries(const Between *b, const bool *coefficient, const bool *score, bool *shared)
{
    const Graph *g = b->g;
    for (Val v = 1; v < g->node.n; v++) {
        const Node *n = node_at(g, v);
        bool few = score[v] && n->shape.d[n->shape.rank - 1].n < plan_target(b->how)->tuned->rounded_scores;
        if (is_product(b, v) && is_wide(g, v, b->how) && !coefficient[v] && !few && !b->bare[v])
            shared[v] = true;
        if (!b->attention)
            continue;
        for (size_t k = 0; fuse_is_attention(g, v) && k < n->n_in; k++)
            if (fuse_attention_takes(g, v, k))
                shared[base_of(g, n->in[k])] = true;
        if (fuse_is_attention_result(g, v))
            shared[v] = true;
    }
}

/* What lies in memory as a slice of a concatenation. */
static bool *find_parts(const Fusion *f, Arena *arena)
{
    bool *is = NEW_ARRAY(arena, bool, f->g->node.n);
    for (Val v = 1; v < f->g->node.n; v++)
        for (size_t k = 0; concat_stored(f->g, v) && k < node_at(f->g, v)->n_in; k++)
            is[fuse_base(f, node_at(f->g, v)->in[k])] = true;
    return is;
}

/* Fusion decides what kernels hand to each other; it is asked once without these nodes, and with them when
 * the plan is made. */
Graph *plan_round_boundaries(const Graph *from, Arena *arena, const PlanOptions *how)
{
    size_t n = from->node.n;
    Arena *tmp = arena_new(from->ctx);
    bool *shared = NEW_ARRAY(tmp, bool, n), *none = NEW_ARRAY(tmp, bool, n);
    Decomposed d;
    Fusion *f = pipeline_look_at_groups(from, tmp, how, &d);
    const bool *coefficient = find_coefficients(from, tmp, how), *score = find_scores(from, tmp, how);
    Between b = {from, how, NEW_ARRAY(tmp, bool, n), false};
    find_bare(&b);
    b.attention = attention_fits(&b);
    const bool *part = find_parts(f, tmp);
    for (Val v = 1; v < n; v++) {
        const Node *x = node_at(from, v);
        bool view = op_is_view((Op)x->op), softmax = x->op == OP_EXP || score[v];
        if (view || softmax || coefficient[v] || b.bare[v] || !is_wide(from, v, how))
            continue;
        Val at = fuse_base(f, d.made[v]);
        bool rows = f->home[at] >= 0 && f->group.v[f->home[at]].kind == GROUP_ROWS;
        shared[v] = rows && (f->stored[at] || part[at]);
    }
    share_with_libraries(&b, coefficient, score, shared);
    if (!b.attention) /* it reads float32 */
        for (Val v = 1; v < n; v++)
            for (size_t k = 0; fuse_is_attention(from, v) && k < node_at(from, v)->n_in; k++)
                shared[base_of(from, node_at(from, v)->in[k])] = false;
    fuse_free(f);
    Graph *rounded = round_values(from, arena, how->half, none, shared, NULL, plan_target(how));
    arena_free(tmp);
    return rounded;
}

HalfCount plan_count_half(const Graph *g, Half half)
{
    HalfCount count = {0};
    for (Val v = 1; v < g->node.n; v++) {
        const Node *n = node_at(g, v);
        count.values += node_is_rounded(g, v, half);
        if (n->op != OP_MATMUL && !op_is_expert((Op)n->op))
            continue;
        count.products++;
        count.rounded +=
            node_is_rounded(g, base_of(g, n->in[0]), half) && node_is_rounded(g, base_of(g, n->in[1]), half);
    }
    return count;
}
