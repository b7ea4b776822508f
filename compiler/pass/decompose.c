/* decompose.c - small matrix products become products and sums, concatenations of many become concatenations of
 * concatenations.
 *
 * In:  a graph.     Out: an equal graph in which products that a library would do badly (an
 *      extent of a few, per token) are elementwise products and a sum, so that they fuse with
 *      what is around.
 * The one idea: a[.., M, K] b[.., K, N] is the sum over the last axis of a[.., M, 1, K] times
 * b^T[.., 1, N, K] when K is long, and over the second of the last three when N is.
 */
#include "rewrite.h"
#include "decompose.h"
#include "concat_buffers.h"
#include "compiler/graph/op.h"

enum {
    SMALL_PRODUCT = 96,
    FEW_DEPTH =
        4, /* Target.thin_product_max rows or columns stay a kernel's when they are at least so many times as long */
    FEW_ELEMENTS = 1 << 17, /* and the matrix stays in the second-level cache; */
    FEW_OF_ROW = 3, /* on a device, where each row loads all of it, so many at most for each of the row's own rows, */
    LOADED_LEAST = 1 << 14, /* unless it stays in the first-level cache; */
    TILE = 8,               /* extents of a row's products are multiples of it, unless tensor cores multiply them, */
    ROW_TERMS = 16,         /* a matrix shared by all rows is for at least so many rows of one, */
    TENSOR_TERMS = 8,       /* on tensor cores for so many, */
    TENSOR_LEAST = 32,      /* whose smaller two extents have so many pairs, */
    ROW_WORK = 1024,        /* there is as much to do, */
    ROW_ELEMENTS = 1 << 15  /* and no more to keep for each matrix */
};

typedef struct Product {
    Val a, b; /* inputs in the new graph */
    bool ta, tb, shared;
    Shape lead; /* batch axes of a */
    Dim M, N, K;
} Product;

static bool small(Dim d) { return dim_literal(d); }

static int64_t shorter(const Product *p) { return p->N.n < p->K.n ? p->N.n : p->K.n; }

static bool few(const Product *p, const PlanOptions *how)
{
    int64_t less = shorter(p), more = p->N.n + p->K.n - less;
    return dim_static(p->N) && dim_static(p->K) && less <= plan_target(how)->thin_product_max &&
           more >= FEW_DEPTH * less && less * more <= FEW_ELEMENTS;
}

static bool lead_is_static(const Product *p)
{
    for (int i = 0; i < p->lead.rank; i++)
        if (!dim_static(p->lead.d[i]))
            return false;
    return true;
}

/* Would rows of a device wait for this matrix, which all share? Loading it takes longer than writing the row for the library. */
static bool is_loaded(const Product *p, const PlanOptions *how)
{
    int64_t own = lead_is_static(p) ? 1 : p->M.n;
    return plan_target(how)->threads && dim_static(p->N) && dim_static(p->K) && shorter(p) > FEW_OF_ROW * own &&
           p->N.n * p->K.n > LOADED_LEAST;
}

/* Is it worth a loop of our own? */
static bool is_small(const Product *p, const PlanOptions *how)
{
    bool m = small(p->M), n = small(p->N), k = small(p->K);
    if (n && k && p->N.n * p->K.n > SMALL_PRODUCT) /* too much to unroll */
        return false;
    if (p->shared) /* one matrix for all rows: with a large K and N it is a library's */
        return (n || k || few(p, how)) && !is_loaded(p, how);
    if (p->lead.rank == 0) { /* the gradient of a shared matrix, or a product of two matrices */
        int64_t out = dim_at(p->M, how->B, how->T) * dim_at(p->N, how->B, how->T);
        return p->K.b || p->K.t ? (m || n) && out * 4 <= 64 * 1024 : n || k;
    }
    if (m && n && k)
        return p->M.n * p->N.n * p->K.n <= 512;
    return (m && n && p->M.n * p->N.n <= SMALL_PRODUCT) || (m && k && p->M.n * p->K.n <= SMALL_PRODUCT) ||
           (k && n && p->K.n * p->N.n <= SMALL_PRODUCT);
}

/* x [.., p, q] with an axis of 1 put before p (at = 0), q (1) or behind both (2) */
static Val widen(Graph *g, Val x, int at)
{
    Shape s = *shape_of(g, x), to = {.rank = (uint8_t)(s.rank + 1)};
    int own = s.rank - 2;
    for (int i = 0, j = 0; i < to.rank; i++)
        to.d[i] = i == own + at ? DIM(1) : s.d[j++];
    return ir_reshape(g, x, &to);
}

/* x with its first two axes as one: there is room for another. */
static Val merge_first(Graph *g, Val x)
{
    Shape s = *shape_of(g, x), to = {.rank = (uint8_t)(s.rank - 1)};
    for (int i = 0; i < to.rank; i++)
        to.d[i] = s.d[i + 1];
    if (!dim_mul(s.d[0], s.d[1], &to.d[0]))
        vwn_bug(g->ctx, "the size of a product overflows");
    return ir_reshape(g, x, &to);
}

/* Does the loop run over K, which is long? Of two long extents it is the longer one: the other is written out, and loads that step by
 * rows would each be as many as a vector has elements. */
static bool is_along_terms(const Product *p)
{
    if (small(p->N) || small(p->K))
        return small(p->N);
    return !dim_static(p->N) || !dim_static(p->K) || p->K.n >= p->N.n;
}

/* Sum of a b over K as the last axis (K long) or the middle one (N long). */
static Val as_sum(Graph *g, const Product *p, bool *copied, size_t cap)
{
    Val a = p->ta ? ir_transpose(g, p->a) : p->a; /* [lead, M, K] */
    bool lane_k = is_along_terms(p);
    bool same = p->shared || p->lead.rank == 0; /* one b for all rows */
    Val b = p->b, x;
    if (shape_of(g, a)->rank == MAX_RANK) {
        a = merge_first(g, a);
        b = same ? b : merge_first(g, b);
    }
    if (lane_k) {
        b = p->tb ? b : ir_transpose(g, b); /* [.., N, K] */
        if (!p->tb && same && !small(p->K) && b < cap && node_at(g, b)->op == OP_PERMUTE)
            copied[b] = true; /* K becomes contiguous, once for all rows */
        a = widen(g, a, 1);   /* [lead, M, 1, K] */
        b = widen(g, b, 0);   /* [lead, 1, N, K] */
        x = ir_binary(g, OP_MUL, a, b);
        int axis = shape_of(g, x)->rank - 1;
        x = ir_sum(g, x, (uint32_t)1 << axis, false);
    } else {
        b = p->tb ? ir_transpose(g, b) : b; /* [.., K, N] */
        if (p->tb && same && !small(p->N) && b < cap && node_at(g, b)->op == OP_PERMUTE)
            copied[b] = true;
        a = widen(g, a, 2); /* [lead, M, K, 1] */
        b = widen(g, b, 0); /* [lead, 1, K, N] */
        x = ir_binary(g, OP_MUL, a, b);
        int axis = shape_of(g, x)->rank - 2;
        x = ir_sum(g, x, (uint32_t)1 << axis, false);
    }
    return x;
}

/* [R, M]^T [R, N]: the sum over the first axis of a[R, M, 1] b[R, 1, N] */
static Val as_row_sum(Graph *g, const Product *p)
{
    Val a = p->ta ? p->a : ir_transpose(g, p->a); /* [K, M] */
    Val b = p->tb ? ir_transpose(g, p->b) : p->b; /* [K, N] */
    Shape sa = {.rank = 3, .d = {p->K, p->M, DIM(1)}};
    Shape sb = {.rank = 3, .d = {p->K, DIM(1), p->N}};
    Val x = ir_binary(g, OP_MUL, ir_reshape(g, a, &sa), ir_reshape(g, b, &sb));
    return ir_sum(g, x, 1, false);
}

static bool is_tile(Dim x, Dim y) { return dim_static(x) && dim_static(y) && x.n * y.n <= ROW_ELEMENTS; }

/* Of three extents the product of the smaller two */
static int64_t smaller_two(int64_t a, int64_t b, int64_t c)
{
    int64_t most = a > b ? a : b;
    return a * b * c / (most > c ? most : c);
}

/* Is it one small matrix by another for each row, or the sum of such over rows? */
static bool is_of_row(const Product *p, const PlanOptions *how)
{
    Dim K = p->K;
    bool rows = !lead_is_static(p), summed = p->lead.rank == 0 && (K.b || K.t), tensor = plan_has_tensor_cores(how);
    int64_t terms = tensor ? TENSOR_TERMS : ROW_TERMS;
    if (summed)
        K = DIM(K.n);
    if (!(rows || summed) || !is_tile(p->M, p->N) || !is_tile(p->M, K) || !is_tile(p->N, K) ||
        (!tensor && (p->M.n % TILE || p->N.n % TILE)) || p->M.n * p->N.n * K.n < ROW_WORK)
        return false;
    if (summed)
        return K.n >= terms && p->M.n * p->N.n * 4 <= 64 * 1024;
    if (p->shared)
        return p->M.n >= terms;
    return tensor ? smaller_two(p->M.n, p->N.n, K.n) >= TENSOR_LEAST : !is_small(p, how);
}

static bool empty(const Shape *s, int64_t B, int64_t T)
{
    for (int i = 0; i < s->rank; i++)
        if (dim_at(s->d[i], B, T) == 0)
            return true;
    return false;
}

/* The product n, whose operands are a and b in g. */
static Product product_of(const Graph *g, const Node *n, Val a, Val b)
{
    Product p = {.a = a, .b = b};
    p.ta = n->a.i & 1;
    p.tb = n->a.i >> 1 & 1;
    const Shape *sa = shape_of(g, p.a), *sb = shape_of(g, p.b);
    p.shared = sb->rank == 2 && sa->rank > 2;
    p.lead = *sa;
    p.lead.rank -= 2;
    p.M = sa->d[sa->rank - (p.ta ? 1 : 2)];
    p.K = sa->d[sa->rank - (p.ta ? 2 : 1)];
    p.N = sb->d[sb->rank - (p.tb ? 2 : 1)];
    return p;
}

/* The product as it is, marked. A shared matrix lies with its columns next to each other, and is made once
 * for all rows. */
static Val of_row(Graph *g, const Product *p, bool *copied, size_t cap)
{
    Val in[2] = {p->a, p->b};
    Attr a = {.i = (p->ta ? 1 : 0) | (p->tb ? 2 : 0), .made = PRODUCT_OF_ROW};
    if (p->shared && p->tb) {
        in[1] = ir_transpose(g, p->b);
        a.i &= ~(int64_t)2;
    }
    if (p->shared && in[1] < cap && node_at(g, in[1])->op != OP_EXT)
        copied[in[1]] = true;
    return ir_node(g, OP_MATMUL, in, 2, &a, NULL);
}

static Val rounded(Graph *g, Val x, Half to) { return ir_op(g, OP_ROUND_TO, x, 0, 0, (Attr){.i = to}, NULL); }

/* Is a shared matrix of float32 split into numbers of bf16 once for all rows? The result of both parts is a few numbers, whose sums are
 * shares of warps. */
static bool is_split(const Graph *g, const Product *p, const PlanOptions *how)
{
    enum { ROWS = 8, COLUMNS = 16 };
    return p->shared && !p->ta && !p->tb && plan_has_tensor_cores(how) && half_info(how->half)->splits &&
           p->M.n <= ROWS && p->N.n <= COLUMNS && !node_is_rounded(g, p->b, how->half);
}

/* a b, where b is the sum of u, which is b rounded to bf16, and v, what is left, rounded, too: both halves of a [u v] are added. The columns lie
 * one behind the other, so terms of a sum lie next to each other, as tensor cores want them. */
static Val split_product(Graph *g, const Product *p, Half to, bool *copied, size_t cap)
{
    Val upper = rounded(g, p->b, to), beside[2] = {p->b, ir_binary(g, OP_SUB, p->b, upper)};
    Val parts = rounded(g, ir_transpose(g, ir_concat(g, beside, 2, 1)), to);
    if (parts < cap)
        copied[parts] = true;
    Attr turned = {.i = 2, .made = PRODUCT_OF_ROW};
    Val x = ir_node(g, OP_MATMUL, (Val[]){p->a, parts}, 2, &turned, NULL);
    int axis = shape_of(g, x)->rank - 1;
    return ir_binary(g, OP_ADD, ir_slice(g, x, axis, 0, p->N.n), ir_slice(g, x, axis, p->N.n, p->N.n));
}

Val product_of_row_under(const Graph *g, Val v)
{
    const Node *sum = node_at(g, v), *half = v && sum->op == OP_ADD ? node_at(g, sum->in[0]) : NULL;
    Val x = half && half->op == OP_SLICE ? half->in[0] : v;
    return x && product_is_of_row(g, x) ? x : 0;
}

/* Is it a product by such a matrix turned, as gradients have it: long rows, of sums of so few terms that twice as many are one step of
 * tensor cores whose threads load eight at a time? */
static bool is_split_turned(const Graph *g, const Product *p, const PlanOptions *how)
{
    enum { ROWS = 8, TERMS = 16, LONG = 256, LINE = 32 };
    return p->shared && !p->ta && p->tb && plan_has_tensor_cores(how) && half_info(how->half)->splits &&
           p->M.n <= ROWS && p->K.n == TERMS && p->N.n >= LONG && p->N.n % LINE == 0 && p->lead.rank + 3 <= MAX_RANK &&
           !node_is_rounded(g, p->b, how->half);
}

/* a b^T is [a a] [u v]^T. */
static Val split_turned(Graph *g, const Product *p, Half to, bool *copied, size_t cap)
{
    Val beside[2] = {p->b, ir_binary(g, OP_SUB, p->b, rounded(g, p->b, to))};
    Val parts = rounded(g, ir_concat(g, beside, 2, 1), to), twice = widen(g, p->a, 1);
    Shape s = *shape_of(g, p->a), both = *shape_of(g, twice);
    s.d[s.rank - 1].n *= 2;
    both.d[both.rank - 2] = DIM(2);
    twice = ir_reshape(g, ir_broadcast(g, twice, &both), &s);
    if (parts < cap)
        copied[parts] = true;
    Attr turned = {.i = 2, .made = PRODUCT_OF_PARTS};
    return ir_node(g, OP_MATMUL, (Val[]){twice, parts}, 2, &turned, NULL);
}

Val product_left(const Graph *g, Val v)
{
    Val left = node_at(g, v)->in[0];
    for (int views = node_at(g, v)->a.made == PRODUCT_OF_PARTS ? 3 : 0; views > 0; views--)
        left = node_at(g, left)->in[0];
    return left;
}

static Val product(Graph *g, const Graph *from, Val v, const Val *map, const PlanOptions *how, const Decomposed *d,
                   size_t cap)
{
    const Node *n = node_at(from, v);
    Product p = product_of(g, n, map[n->in[0]], map[n->in[1]]);
    if (empty(&n->shape, how->B, how->T) || dim_at(p.K, how->B, how->T) == 0)
        return ir_broadcast(g, ir_fill(g, 0), &n->shape);
    Val in[2] = {p.a, p.b};
    if (is_of_row(&p, how) && !(d->to_library && d->to_library[v]))
        return is_split(g, &p, how)          ? split_product(g, &p, how->half, d->copied, cap)
               : is_split_turned(g, &p, how) ? split_turned(g, &p, how->half, d->copied, cap)
                                             : of_row(g, &p, d->copied, cap);
    if (!is_small(&p, how)) {
        Attr a = {.i = n->a.i};
        return ir_node(g, OP_MATMUL, in, 2, &a, NULL);
    }
    bool over_rows = !p.shared && p.lead.rank == 0 && (p.K.b || p.K.t);
    Val x = over_rows ? as_row_sum(g, &p) : as_sum(g, &p, d->copied, cap);
    return ir_reshape(g, x, &n->shape);
}

bool node_is_library(const Graph *g, Val v)
{
    switch ((Op)node_at(g, v)->op) {
    case OP_MATMUL: return !product_is_of_row(g, v);
    case OP_CONCAT: return concat_of_copies(g, v) || concat_in_place(g, v);
    case OP_EXPERT_MATMUL:
    case OP_EXPERT_MATMUL_DW:
    case OP_SCATTER_ADD:
    case OP_TOP_K:
    case OP_CUMSUM:
    case OP_DYNAMIC_UPDATE_SLICE:
    case OP_DYNAMIC_SLICE:
    case OP_SDPA:
    case OP_SDPA_GRAD: return true;
    default: return false;
    }
}

bool node_is_rounded(const Graph *g, Val v, Half to)
{
    return node_at(g, v)->op == OP_ROUND_TO && node_at(g, v)->a.i == (int64_t)to;
}

bool product_is_library(const Graph *g, Val v, const PlanOptions *how)
{
    const Node *n = node_at(g, v);
    Product p = product_of(g, n, n->in[0], n->in[1]);
    return !empty(&n->shape, how->B, how->T) && dim_at(p.K, how->B, how->T) != 0 && !is_of_row(&p, how) &&
           !is_small(&p, how);
}

bool product_is_kernels(const Graph *g, Val v, Dim columns, const PlanOptions *how)
{
    const Node *n = node_at(g, v);
    Product p = product_of(g, n, n->in[0], n->in[1]);
    p.N = columns;
    return !empty(&n->shape, how->B, how->T) && is_of_row(&p, how);
}

/* A concatenation of many inputs would be a kernel of as many loops: it is made of concatenations of a few, which
 * kernels of their own store. Marks these as copied. */
static Val few_parts(Graph *g, Val *in, size_t n, const Attr *a, bool *copied, size_t cap)
{
    const Attr some_of = {.i = a->i, .made = CONCAT_OF_PARTS};
    while (n > PARTS_MAX) {
        size_t rows = 0;
        for (size_t k = 0; k < n; k += PARTS_MAX, rows++) {
            size_t some = n - k < PARTS_MAX ? n - k : PARTS_MAX;
            Val row = some == 1 ? in[k] : ir_node(g, OP_CONCAT, in + k, some, &some_of, NULL);
            if (some > 1 && row < cap)
                copied[row] = true;
            in[rows] = row;
        }
        n = rows;
    }
    return ir_node(g, OP_CONCAT, in, n, a, NULL);
}

static Val copy_node(Graph *g, const Graph *from, Val v, const Val *map, bool *copied, size_t cap)
{
    const Node *n = node_at(from, v);
    if (n->op != OP_CONCAT)
        return ir_copy(g, from, v, map);
    Val *in = NEW_ARRAY(g->arena, Val, n->n_in + 1u);
    for (size_t k = 0; k < n->n_in; k++)
        in[k] = map[n->in[k]];
    return few_parts(g, in, n->n_in, &n->a, copied, cap);
}

/* A concatenation of rounded values may have become a function that rounds. */
static bool is_rounded_so(const Graph *g, Val v, int64_t to)
{
    return node_at(g, v)->op == OP_ROUND_TO && node_at(g, v)->a.i == to;
}

typedef struct Decompose {
    const PlanOptions *how;
    Decomposed *d;
    const ConcatLayout *layout; /* NULL: concatenations stay */
    size_t cap;                 /* nodes at most */
} Decompose;

static Val decomposed(Rewrite *r, Val v, void *user)
{
    const Decompose *q = user;
    const Graph *from = r->from;
    const Node *n = node_at(from, v);
    if (n->op == OP_MATMUL && !q->how->no_fusion)
        return product(r->to, from, v, r->map, q->how, q->d, q->cap);
    if (n->op == OP_MATMUL && dim_at(product_of(from, n, n->in[0], n->in[1]).K, q->how->B, q->how->T) == 0)
        return ir_broadcast(r->to, ir_fill(r->to, 0), &n->shape);
    if (n->op == OP_ROUND_TO && is_rounded_so(r->to, r->map[n->in[0]], n->a.i))
        return r->map[n->in[0]];
    Val row = q->layout ? assembled(q->layout, r->to, v, r->map) : 0;
    return row ? row : copy_node(r->to, from, v, r->map, q->d->copied, q->cap);
}

static Val decomposed_and_marked(Rewrite *r, Val v, void *user)
{
    const Decompose *q = user;
    Val to = decomposed(r, v, user);
    if (r->to->node.n > q->cap)
        vwn_bug(r->to->ctx, "decompose: too many nodes");
    if (q->layout && (concat_stored(r->to, to) || padded_for_later(q->layout, v)))
        q->d->copied[to] = true;
    return to;
}

Graph *decompose(Ctx *ctx, Arena *arena, const Graph *from, const PlanOptions *how, Decomposed *d)
{
    size_t n = from->node.n;
    Rewrite r = {from, graph_new(ctx, arena), NEW_ARRAY(arena, Val, n)};
    Decompose q = {how, d, how->no_fusion ? NULL : concat_layout_new(arena, from, how), n * 12 + 64};
    bool *wanted = NEW_ARRAY(arena, bool, n);
    graph_reserve(r.to, n + n / 4);
    d->copied = NEW_ARRAY(arena, bool, q.cap);
    d->made = r.map;
    d->values = n;
    for (Val v = 1; v < n; v++)
        wanted[v] = !q.layout || concat_wants(q.layout, v);
    rewrite_nodes(&r, wanted, decomposed_and_marked, &q);
    for (size_t i = 0; i < from->out.n; i++) {
        const Output *o = &from->out.v[i];
        if (o->ext < 0)
            ir_output(r.to, o->name, r.map[o->value]);
        else
            ir_store(r.to, r.map[o->value], from->ext.v[o->ext].kind, from->ext.v[o->ext].name);
    }
    return r.to;
}
