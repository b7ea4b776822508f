/* ir.c - building the graph.
 *
 * In:  builder calls.     Out: nodes with shapes, appended to a graph.
 * The one idea: ir_node() is the only function that makes a node, and it asks the operator's
 * shape rule; every other builder only fills in attributes and brings operands to a common
 * shape.
 */
#include "op.h"

/* ---- types of stored numbers ---- */

static const HalfInfo halves[] = {
#define DTYPE(id, code, lt, of_map, ...) {.half = HALF_##id, .blas = lt, .map = of_map, __VA_ARGS__},
#include "dtype.def"
#undef DTYPE
};

const HalfInfo *half_at(size_t i) { return i < COUNT_OF(halves) ? &halves[i] : NULL; }

const HalfInfo *half_info(Half h)
{
    for (size_t i = 0; i < COUNT_OF(halves); i++)
        if (halves[i].half == h)
            return &halves[i];
    return NULL;
}

bool half_read(const char *word, bool precision, Half *out)
{
    for (size_t i = 1; i < COUNT_OF(halves); i++)
        if (!strcmp(word, halves[i].word)) {
            *out = halves[i].half;
            return halves[i].precision || !precision;
        }
    *out = HALF_NONE;
    return false;
}

const char *half_words(Arena *a, bool precision, const char *between)
{
    Buf b = buf_new(a);
    for (size_t i = 1; i < COUNT_OF(halves); i++)
        if (halves[i].precision || !precision)
            buf_printf(&b, "%s%s", b.n ? between : "", halves[i].word);
    return b.s;
}

Graph *graph_new(Ctx *ctx, Arena *arena)
{
    Graph *g = NEW(arena, Graph);
    g->ctx = ctx;
    g->arena = arena;
    map_init(&g->leaf, arena);
    vec_push(arena, &g->node, (Node){0});
    return g;
}

void graph_reserve(Graph *g, size_t nodes)
{
    if (g->node.cap > nodes)
        return;
    if (nodes > SIZE_MAX / 8 / sizeof(Node))
        ctx_raise(g->ctx, ST_ENVIRONMENT, "out of memory: %zu nodes", nodes);
    Node *node = arena_take(g->arena, (nodes + 1) * sizeof *node);
    memcpy(node, g->node.v, g->node.n * sizeof *node);
    g->node.v = node;
    g->node.cap = nodes + 1;
}

bool attr_same(const Attr *a, const Attr *b)
{
    return !memcmp(&a->x, &b->x, sizeof a->x) && !memcmp(&a->y, &b->y, sizeof a->y) &&
           !memcmp(&a->z, &b->z, sizeof a->z) && a->i == b->i && a->j == b->j && a->axes == b->axes &&
           a->made == b->made && dim_eq(a->dim, b->dim) && a->site == b->site && a->n == b->n &&
           (a->n == 0 || !memcmp(a->data, b->data, a->n * sizeof *a->data));
}

bool node_same_function(const Node *a, const Node *b)
{
    return a->op == b->op && a->dtype == b->dtype && a->n_in == b->n_in && attr_same(&a->a, &b->a);
}

static _Noreturn void misfit(const Ask *q, const char *wrong)
{
    Buf b = buf_new(q->g->ctx->scratch);
    buf_printf(&b, "%s(", op_info(q->op)->name);
    for (size_t k = 0; k < q->n_in; k++) {
        buf_printf(&b, "%s%%%u", k ? ", " : "", (unsigned)q->in[k]);
        if (q->in[k] < q->g->node.n)
            shape_print(&b, ask_shape(q, k));
    }
    buf_puts(&b, ")");
    if (q->given) {
        buf_puts(&b, " -> ");
        shape_print(&b, q->given);
    }
    buf_printf(&b, " i=%lld j=%lld", (long long)q->a->i, (long long)q->a->j);
    vwn_bug(q->g->ctx, "%s in %s: %s", b.s, q->g->name ? q->g->name : "the graph", wrong);
}

Val ir_node(Graph *g, Op op, const Val *in, size_t n_in, const Attr *a, const Shape *shape)
{
    static const Attr none = {0};
    Ask q = {g, op, in, n_in, a ? a : &none, shape};
    Node n = {.op = (uint8_t)op, .n_in = (uint16_t)n_in, .span = g->span, .name = g->name, .recomputed = g->recomputed};
    DType dtype;
    const char *wrong = n_in > UINT16_MAX ? "too many inputs" : op_infer(&q, &n.shape, &dtype);
    if (wrong)
        misfit(&q, wrong);
    if (g->node.n >= UINT32_MAX)
        ctx_raise(g->ctx, ST_ENVIRONMENT, "the graph has more than 4,294,967,295 nodes");
    n.dtype = (uint8_t)dtype;
    n.a = *q.a;
    if (n_in) {
        n.in = NEW_ARRAY(g->arena, Val, n_in);
        memcpy(n.in, in, n_in * sizeof *in);
    }
    if (n.a.n) {
        double *copy = NEW_ARRAY(g->arena, double, n.a.n);
        memcpy(copy, n.a.data, n.a.n * sizeof *copy);
        n.a.data = copy;
    }
    vec_push(g->arena, &g->node, n);
    return (Val)(g->node.n - 1);
}

Val ir_op(Graph *g, Op op, Val a, Val b, Val c, Attr attr, const Shape *shape)
{
    Val in[3] = {a, b, c};
    return ir_node(g, op, in, (size_t)(a ? b ? c ? 3 : 2 : 1 : 0), &attr, shape);
}

/* ---- leaves ---- */

/* Where an external tensor is in the table, and its leaf (0: none yet). */
typedef struct Leaf {
    int32_t ext;
    Val node;
} Leaf;

/* Names are 16-byte aligned, so name + kind is a key of its own. */
static Leaf *leaf_of(Graph *g, const Ext *x)
{
    void **slot = map_at(&g->leaf, (uintptr_t)x->name + (uintptr_t)x->kind);
    if (!*slot) {
        Leaf *fresh = NEW(g->arena, Leaf);
        fresh->ext = (int32_t)g->ext.n;
        vec_push(g->arena, &g->ext, *x);
        *slot = fresh;
    }
    Leaf *leaf = *slot;
    const Ext *known = &g->ext.v[leaf->ext];
    if (known->dtype != x->dtype || !shape_eq(&known->shape, &x->shape))
        vwn_bug(g->ctx, "external tensor %s with two shapes or types", x->name);
    return leaf;
}

int32_t ext_add(Graph *g, const Ext *x) { return leaf_of(g, x)->ext; }

void ext_set_leaf(Graph *g, Val v)
{
    Leaf *leaf = leaf_of(g, &g->ext.v[node_at(g, v)->a.i]);
    if (!leaf->node)
        leaf->node = v;
}

Val ir_ext(Graph *g, ExtKind kind, Name name, DType dtype, const Shape *shape)
{
    Leaf *leaf = leaf_of(g, &(Ext){kind, name, dtype, *shape});
    if (!leaf->node)
        leaf->node = ir_node(g, OP_EXT, NULL, 0, &(Attr){.i = leaf->ext}, NULL);
    return leaf->node;
}

Val ir_host(Graph *g, const HostExpr *e)
{
    double value;
    if (host_is_const(e, &value))
        return ir_fill(g, value);
    for (size_t i = 0; i < g->host.n; i++)
        if (g->host.v[i] == e)
            return ir_node(g, OP_HOST, NULL, 0, &(Attr){.i = (int64_t)i}, NULL);
    vec_push(g->arena, &g->host, e);
    return ir_node(g, OP_HOST, NULL, 0, &(Attr){.i = (int64_t)g->host.n - 1}, NULL);
}

Val ir_fill(Graph *g, double value) { return ir_node(g, OP_FILL, NULL, 0, &(Attr){.x = value}, NULL); }

Val ir_int(Graph *g, int64_t value) { return ir_node(g, OP_FILL, NULL, 0, &(Attr){.x = (double)value, .j = 1}, NULL); }

Val ir_const(Graph *g, const Shape *s, const double *v)
{
    Dim size;
    if (!shape_size(s, &size) || !dim_static(size))
        vwn_bug(g->ctx, "a table of numbers needs a static shape");
    return ir_node(g, OP_CONST, NULL, 0, &(Attr){.data = v, .n = (size_t)size.n}, s);
}

Val ir_dim(Graph *g, Dim d)
{
    if (dim_static(d))
        return ir_fill(g, (double)d.n);
    return ir_node(g, OP_DIM, NULL, 0, &(Attr){.dim = d}, NULL);
}

Val ir_iota(Graph *g, const Shape *s, int axis) { return ir_node(g, OP_IOTA, NULL, 0, &(Attr){.i = axis}, s); }

/* The first axis of more than one element, or the rank. */
static int first_axis(const Shape *s)
{
    int axis = 0;
    while (axis < s->rank && dim_eq(s->d[axis], DIM(1)))
        axis++;
    return axis;
}

Dim draws_of_sequence(const Graph *g, const Node *n)
{
    Dim all;
    Shape s = n->shape;
    if ((n->op == OP_SDPA || n->op == OP_SDPA_GRAD) && n->a.z > 0) {
        const Shape *q = shape_of(g, n->in[0]), *k = shape_of(g, n->in[1]);
        s = (Shape){4, {q->d[0], q->d[2], q->d[1], k->d[1]}};
    } else if (n->op != OP_RAND && n->op != OP_RANDN) {
        return DIM(0);
    }
    int axis = first_axis(&s);
    if (axis == s.rank || s.d[axis].b != 1 || !shape_size(&s, &all) || all.b != 1)
        return DIM(0);
    all.b = 0;
    return all;
}

/* The numbers lie sequence by sequence: the axis of these is made the first one, and put back. */
Val ir_random(Graph *g, Op op, const Shape *s, Name site)
{
    const Attr a = {.site = site};
    int axis = 0, there[MAX_RANK], back[MAX_RANK] = {0};
    while (axis < s->rank && s->d[axis].b != 1)
        axis++;
    if (axis == s->rank || axis <= first_axis(s))
        return ir_node(g, op, NULL, 0, &a, s);
    Shape moved = *s;
    for (int k = 0; k < s->rank; k++) {
        there[k] = k == 0 ? axis : k <= axis ? k - 1 : k;
        moved.d[k] = s->d[there[k]];
    }
    for (int k = 0; k < s->rank; k++)
        back[there[k]] = k;
    return ir_permute(g, ir_node(g, op, NULL, 0, &a, &moved), back);
}

/* ---- elementwise ---- */

Val ir_unary(Graph *g, Op op, Val x) { return ir_node(g, op, &x, 1, NULL, NULL); }

static Shape common_shape(Graph *g, Op op, Val a, Val b)
{
    Shape s;
    if (!shape_broadcast(shape_of(g, a), shape_of(g, b), &s)) {
        Val in[2] = {a, b};
        Attr none = {0};
        misfit(&(Ask){g, op, in, 2, &none, NULL}, "the shapes do not broadcast");
    }
    return s;
}

static Val as_real(Graph *g, Val x) { return node_at(g, x)->dtype == DT_INT ? ir_unary(g, OP_TO_REAL, x) : x; }

Val ir_binary(Graph *g, Op op, Val a, Val b)
{
    if (node_at(g, a)->dtype != node_at(g, b)->dtype) {
        a = as_real(g, a);
        b = as_real(g, b);
    }
    Shape s = common_shape(g, op, a, b);
    Val wide_a = ir_broadcast(g, a, &s), wide_b = ir_broadcast(g, b, &s);
    return ir_op(g, op, wide_a, wide_b, 0, (Attr){0}, NULL);
}

Val ir_where(Graph *g, Val mask, Val a, Val b)
{
    if (node_at(g, a)->dtype != node_at(g, b)->dtype) {
        a = as_real(g, a);
        b = as_real(g, b);
    }
    Shape s = common_shape(g, OP_WHERE, a, b);
    if (!shape_broadcast(&s, shape_of(g, mask), &s))
        common_shape(g, OP_WHERE, mask, a);
    mask = ir_broadcast(g, mask, &s);
    a = ir_broadcast(g, a, &s);
    b = ir_broadcast(g, b, &s);
    return ir_op(g, OP_WHERE, mask, a, b, (Attr){0}, NULL);
}

Val ir_cast(Graph *g, Val x, DType to)
{
    if (node_at(g, x)->dtype == (uint8_t)to)
        return x;
    return ir_unary(g, to == DT_INT ? OP_TO_INT : OP_TO_REAL, x);
}

/* ---- views ---- */

Val ir_reshape(Graph *g, Val x, const Shape *to)
{
    if (shape_eq(shape_of(g, x), to))
        return x;
    return ir_node(g, OP_RESHAPE, &x, 1, NULL, to);
}

Val ir_broadcast(Graph *g, Val x, const Shape *to)
{
    Shape s = *shape_of(g, x);
    if (shape_eq(&s, to))
        return x;
    if (s.rank < to->rank) {
        Shape up = {.rank = to->rank};
        int lift = to->rank - s.rank;
        for (int i = 0; i < to->rank; i++)
            up.d[i] = i < lift ? DIM(1) : s.d[i - lift];
        x = ir_reshape(g, x, &up);
        if (shape_eq(&up, to))
            return x;
    }
    return ir_node(g, OP_BROADCAST, &x, 1, NULL, to);
}

Val ir_permute(Graph *g, Val x, const int *perm)
{
    double data[MAX_RANK];
    int rank = shape_of(g, x)->rank;
    bool same = true;
    for (int k = 0; k < rank; k++) {
        data[k] = perm[k];
        same = same && perm[k] == k;
    }
    if (same)
        return x;
    return ir_node(g, OP_PERMUTE, &x, 1, &(Attr){.data = data, .n = (size_t)rank}, NULL);
}

Val ir_transpose(Graph *g, Val x)
{
    int rank = shape_of(g, x)->rank, perm[MAX_RANK];
    if (rank < 2)
        vwn_bug(g->ctx, "transpose of a tensor of rank %d", rank);
    for (int k = 0; k < rank; k++)
        perm[k] = k;
    perm[rank - 2] = rank - 1;
    perm[rank - 1] = rank - 2;
    return ir_permute(g, x, perm);
}

static void need_axis(Graph *g, const char *what, Val x, int axis)
{
    if (axis < 0 || axis >= shape_of(g, x)->rank)
        vwn_bug(g->ctx, "%s along axis %d of %%%u, which has rank %d", what, axis, (unsigned)x, shape_of(g, x)->rank);
}

Val ir_slice(Graph *g, Val x, int axis, int64_t start, int64_t count)
{
    need_axis(g, "slice", x, axis);
    Shape s = *shape_of(g, x);
    if (start == 0 && dim_eq(s.d[axis], DIM(count)))
        return x;
    s.d[axis] = DIM(count);
    return ir_node(g, OP_SLICE, &x, 1, &(Attr){.i = axis, .j = start}, &s);
}

Val ir_pad(Graph *g, Val x, int axis, int64_t before, int64_t after)
{
    need_axis(g, "pad", x, axis);
    if (before == 0 && after == 0)
        return x;
    Shape s = *shape_of(g, x);
    if (!dim_static(s.d[axis]))
        vwn_bug(g->ctx, "pad along an axis of symbolic extent");
    s.d[axis].n += before + after;
    return ir_node(g, OP_PAD, &x, 1, &(Attr){.i = axis, .j = before}, &s);
}

Val ir_concat(Graph *g, const Val *x, size_t n, int axis)
{
    if (n == 1)
        return x[0];
    return ir_node(g, OP_CONCAT, x, n, &(Attr){.i = axis}, NULL);
}

Val ir_shift(Graph *g, Val x, int axis, int64_t k, double fill)
{
    return ir_node(g, OP_SHIFT, &x, 1, &(Attr){.i = axis, .j = k, .x = fill}, NULL);
}

Val ir_roll(Graph *g, Val x, int axis, int64_t k)
{
    return ir_node(g, OP_ROLL, &x, 1, &(Attr){.i = axis, .j = k}, NULL);
}

/* ---- reductions ---- */

bool shape_reduce(const Shape *in, uint32_t axes, Shape *out)
{
    if (axes >> in->rank)
        return false;
    *out = *in;
    for (int k = 0; k < in->rank; k++)
        if (axes >> k & 1)
            out->d[k] = DIM(1);
    return true;
}

static Val drop_axes(Graph *g, Val x, uint32_t axes)
{
    const Shape *from = shape_of(g, x);
    Shape s = {0};
    for (int k = 0; k < from->rank; k++)
        if (!(axes >> k & 1))
            s.d[s.rank++] = from->d[k];
    return ir_reshape(g, x, &s);
}

static Val reduce(Graph *g, Op op, Val x, uint32_t axes, bool keep)
{
    if (!axes)
        return x;
    Val v = ir_node(g, op, &x, 1, &(Attr){.axes = axes}, NULL);
    return keep ? v : drop_axes(g, v, axes);
}

Val ir_sum(Graph *g, Val x, uint32_t axes, bool keep) { return reduce(g, OP_SUM, x, axes, keep); }

Val ir_max(Graph *g, Val x, uint32_t axes, bool keep) { return reduce(g, OP_AMAX, x, axes, keep); }

Val ir_cumsum(Graph *g, Val x, int axis, bool reverse)
{
    return ir_node(g, OP_CUMSUM, &x, 1, &(Attr){.i = axis, .j = reverse}, NULL);
}

/* ---- products, indices, attention ---- */

/* x with its leading axes broadcast to those of `lead`, which has the rank of the result. */
static Val broadcast_lead(Graph *g, Val x, const Shape *lead)
{
    Shape s = *lead;
    const Shape *own = shape_of(g, x);
    for (int k = 1; k <= 2; k++)
        s.d[s.rank - k] = own->d[own->rank - k];
    return ir_broadcast(g, x, &s);
}

Val ir_matmul(Graph *g, Val a, Val b)
{
    if (shape_of(g, a)->rank < 2 || shape_of(g, b)->rank < 2)
        vwn_bug(g->ctx, "a product @ of tensors of ranks %d and %d", shape_of(g, a)->rank, shape_of(g, b)->rank);
    if (shape_of(g, b)->rank > 2) {
        Shape la = *shape_of(g, a), lb = *shape_of(g, b), lead;
        for (int k = 1; k <= 2; k++)
            la.d[la.rank - k] = lb.d[lb.rank - k] = DIM(1);
        if (!shape_broadcast(&la, &lb, &lead)) {
            Val in[2] = {a, b};
            Attr none = {0};
            misfit(&(Ask){g, OP_MATMUL, in, 2, &none, NULL}, "leading axes do not broadcast");
        }
        a = broadcast_lead(g, a, &lead);
        b = broadcast_lead(g, b, &lead);
    }
    return ir_op(g, OP_MATMUL, a, b, 0, (Attr){0}, NULL);
}

Val ir_gather(Graph *g, Val table, Val index) { return ir_op(g, OP_GATHER, table, index, 0, (Attr){0}, NULL); }

Val ir_pick(Graph *g, Val x, Val index) { return ir_op(g, OP_PICK, x, index, 0, (Attr){0}, NULL); }

Val ir_top_k(Graph *g, Val x, int64_t k) { return ir_op(g, OP_TOP_K, x, 0, 0, (Attr){.j = k}, NULL); }

Val ir_one_hot(Graph *g, Val index, int64_t n)
{
    Shape s = *shape_of(g, index);
    if (s.rank >= MAX_RANK)
        vwn_bug(g->ctx, "one_hot of a tensor of rank %d", s.rank);
    s.d[s.rank++] = DIM(1);
    Val column = ir_reshape(g, index, &s);
    s.d[s.rank - 1] = DIM(n);
    return ir_binary(g, OP_EQ, column, ir_iota(g, &s, s.rank - 1));
}

Val ir_expert_matmul(Graph *g, Val x, Val w, Val index)
{
    return ir_op(g, OP_EXPERT_MATMUL, x, w, index, (Attr){0}, NULL);
}

Val ir_copy(Graph *g, const Graph *from, Val v, const Val *map)
{
    const Node *n = node_at(from, v);
    if (n->op == OP_EXT) {
        const Ext *e = &from->ext.v[n->a.i];
        return ir_ext(g, e->kind, e->name, e->dtype, &e->shape);
    }
    if (n->op == OP_HOST)
        return ir_host(g, from->host.v[n->a.i]);
    Node copy = *n;
    copy.in = NEW_ARRAY(g->arena, Val, n->n_in + 1u);
    for (size_t i = 0; i < n->n_in; i++)
        copy.in[i] = map[n->in[i]];
    if (n->a.n) {
        double *data = NEW_ARRAY(g->arena, double, n->a.n);
        memcpy(data, n->a.data, n->a.n * sizeof *data);
        copy.a.data = data;
    }
    vec_push(g->arena, &g->node, copy);
    return (Val)(g->node.n - 1);
}

Val ir_put(Graph *g, Val table, Val x, Val start, Val on)
{
    Val in[4] = {table, x, start, on};
    return ir_node(g, OP_DYNAMIC_UPDATE_SLICE, in, 4, &(Attr){0}, NULL);
}

Val ir_take(Graph *g, Val table, Val start, Dim rows, double fill)
{
    Shape s = *shape_of(g, table);
    s.d[1] = rows;
    return ir_op(g, OP_DYNAMIC_SLICE, table, start, 0, (Attr){.x = fill}, &s);
}

Val ir_sdpa(Graph *g, Val q, Val k, Val v, const Sdpa *how)
{
    Attr a = {
        .x = how->scale, .y = how->softcap, .z = how->dropout, .i = how->causal, .j = how->window, .site = how->site};
    Val in[4] = {q, k, v, how->first ? how->first : how->oldest};
    return ir_node(g, OP_SDPA, in, in[3] ? 4 : 3, &a, NULL);
}

Val ir_stop(Graph *g, Val x, StopKind kind) { return ir_node(g, OP_STOP, &x, 1, &(Attr){.i = kind}, NULL); }

/* ---- results ---- */

void ir_output(Graph *g, Name name, Val v) { vec_push(g->arena, &g->out, (Output){name, v, -1}); }

void ir_store(Graph *g, Val v, ExtKind kind, Name name)
{
    Ext x = {kind, name, (DType)node_at(g, v)->dtype, *shape_of(g, v)};
    vec_push(g->arena, &g->out, (Output){name, v, ext_add(g, &x)});
}
