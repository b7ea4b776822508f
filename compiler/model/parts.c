/* parts.c - see parts.h: which values of a model are computed sequence by sequence, which are sums
 * over sequences, and which are the same in every part.
 *
 * The one idea: B is a symbol, so the axis along which sequences lie is seen in a shape, and what an
 * operator does to sequences follows from its inputs' and its own. What is not known to keep them
 * apart counts as mixed, and a loss made of that is left as it was.
 */
#include "parts.h"

#include "compiler/graph/op.h"

typedef enum Way {
    SAME, /* the same in every part, once totals are those of the batch */
    ROWS, /* one axis holds the sequences, B-major; each is computed from itself alone */
    ADDS, /* the sum of the parts' values is that of the batch */
    MIXED /* anything else */
} Way;

struct Parts {
    const Model *m;
    uint8_t *way; /* by Val: a Way */
    bool *data;   /* by Val: made of inputs and constants of one part alone */
    Name *total;  /* by Val: the name of a sum that data decides, which counts as SAME; else NULL */
    VEC(Val) totals;
};

/* ---- which way a value is computed ---- */

enum { NO_AXIS = -1, BAD_AXIS = -2 };

/* The axis that holds the sequences. */
static int row_axis(const Shape *s)
{
    int axis = NO_AXIS;
    for (int k = 0; k < s->rank; k++)
        if (s->d[k].b)
            axis = axis == NO_AXIS && s->d[k].b == 1 ? k : BAD_AXIS;
    return axis;
}

/* Whether as many elements stand before one axis as before the other. */
static bool same_before(const Shape *a, int to_a, const Shape *b, int to_b)
{
    Dim n = DIM(1), m = DIM(1);
    for (int k = 0; k < to_a; k++)
        if (!dim_mul(n, a->d[k], &n))
            return false;
    for (int k = 0; k < to_b; k++)
        if (!dim_mul(m, b->d[k], &m))
            return false;
    return dim_eq(n, m);
}

static Way way_of_leaf(const Graph *g, const Node *n)
{
    int axis = row_axis(&n->shape);
    switch (n->op) {
    case OP_EXT: return g->ext.v[n->a.i].kind != EXT_INPUT ? SAME : axis >= 0 ? ROWS : MIXED;
    case OP_RAND:
    case OP_RANDN: /* the same numbers, or those of the sequences that a part has */
        return axis == NO_AXIS ? SAME : draws_of_sequence(g, n).n ? ROWS : MIXED;
    case OP_IOTA: return axis == NO_AXIS ? SAME : axis >= 0 && axis != n->a.i ? ROWS : MIXED;
    default: return SAME;
    }
}

/* How many of the inputs are computed that way. */
static int inputs(const Parts *p, const Node *n, Way way)
{
    int count = 0;
    for (size_t k = 0; k < n->n_in; k++)
        count += p->way[n->in[k]] == way;
    return count;
}

/* Linear in what adds up: of two factors one, of a fraction the upper half. */
static Way way_of_sums(const Parts *p, const Node *n)
{
    bool spread = row_axis(&n->shape) != NO_AXIS; /* of all sequences, to each of them */
    bool reals = n->dtype == DT_REAL && !spread;
    switch (n->op) {
    case OP_NEG:
    case OP_STOP:
    case OP_ADD:
    case OP_SUB:
    case OP_CONCAT:
    case OP_RESHAPE:
    case OP_PERMUTE:
    case OP_BROADCAST:
    case OP_SLICE:
    case OP_PAD:
    case OP_ROLL:
    case OP_SUM:
    case OP_CUMSUM: return reals ? ADDS : MIXED;
    case OP_SHIFT: return reals && n->a.x == 0 ? ADDS : MIXED;
    case OP_MUL:
    case OP_MATMUL: return reals && inputs(p, n, ADDS) == 1 ? ADDS : MIXED;
    case OP_DIV: return reals && p->way[n->in[1]] == SAME ? ADDS : MIXED;
    case OP_WHERE: return reals && p->way[n->in[0]] == SAME ? ADDS : MIXED;
    default: return MIXED;
    }
}

/* Every input that has sequences has them in this axis. */
static bool rows_in(const Parts *p, const Graph *g, const Node *n, int axis)
{
    for (size_t k = 0; k < n->n_in; k++)
        if (p->way[n->in[k]] == ROWS && row_axis(shape_of(g, n->in[k])) != axis)
            return false;
    return true;
}

static Way way_of_rows(const Parts *p, const Graph *g, const Node *n)
{
    const Shape *in = shape_of(g, n->in[0]);
    int from = row_axis(in), axis = row_axis(&n->shape), last = in->rank - 1;
    bool all = inputs(p, n, ROWS) == n->n_in;
    if (axis == BAD_AXIS)
        return MIXED;
    switch (n->op) {
    case OP_RESHAPE: return axis >= 0 && same_before(in, from, &n->shape, axis) ? ROWS : MIXED;
    case OP_PERMUTE:
    case OP_BROADCAST:
    case OP_AUX: return axis >= 0 ? ROWS : MIXED;
    case OP_SLICE:
    case OP_PAD:
    case OP_SHIFT:
    case OP_ROLL:
    case OP_CONCAT:
    case OP_CUMSUM: return axis >= 0 && axis != n->a.i && rows_in(p, g, n, axis) ? ROWS : MIXED;
    case OP_SUM: return axis >= 0 ? ROWS : ADDS;
    case OP_AMAX: return axis >= 0 ? ROWS : MIXED;
    case OP_MATMUL: /* along the sequences: the sum of products of the parts */
        return axis >= 0 ? ROWS : all ? ADDS : MIXED;
    case OP_EXPERT_MATMUL: /* x, w, index */
        return axis >= 0 && p->way[n->in[1]] == SAME && rows_in(p, g, n, axis) && p->way[n->in[0]] == ROWS &&
                       p->way[n->in[2]] == ROWS
                   ? ROWS
                   : MIXED;
    case OP_GATHER: return axis >= 0 && p->way[n->in[0]] == SAME ? ROWS : MIXED;
    case OP_PICK: return axis >= 0 && all && axis != last && rows_in(p, g, n, axis) ? ROWS : MIXED;
    case OP_TOP_K: return axis >= 0 && axis != last ? ROWS : MIXED;
    case OP_SDPA: return axis == 0 && all && rows_in(p, g, n, 0) ? ROWS : MIXED;
    default: return op_is_map((Op)n->op) && axis >= 0 && all ? ROWS : MIXED;
    }
}

static Way way_of(const Parts *p, const Graph *g, const Node *n)
{
    if (n->n_in == 0)
        return way_of_leaf(g, n);
    bool rows = inputs(p, n, ROWS) > 0, adds = inputs(p, n, ADDS) > 0;
    if (inputs(p, n, MIXED) > 0 || (rows && adds))
        return MIXED;
    if (rows)
        return way_of_rows(p, g, n);
    if (adds)
        return way_of_sums(p, n);
    int axis = row_axis(&n->shape); /* one value for every sequence */
    return axis == NO_AXIS ? SAME : axis >= 0 && n->op == OP_BROADCAST ? ROWS : MIXED;
}

static bool is_data(const Parts *p, const Graph *g, const Node *n)
{
    bool data = n->op != OP_EXT || g->ext.v[n->a.i].kind == EXT_INPUT || g->ext.v[n->a.i].kind == EXT_BUFFER;
    data = data && !(n->op == OP_DIM && n->a.dim.b); /* what it counts is not of one part */
    for (size_t k = 0; data && k < n->n_in; k++)
        data = p->data[n->in[k]];
    return data;
}

/* The nodes that losses and metrics are made of. */
static bool *wanted(const Model *m, Arena *arena)
{
    const Graph *g = m->graph;
    bool *want = NEW_ARRAY(arena, bool, g->node.n + 1);
    for (size_t i = 0; i < m->loss.n; i++)
        want[m->loss.v[i].value] = true;
    for (Val v = (Val)g->node.n; v-- > 1;)
        for (size_t k = 0; want[v] && k < node_at(g, v)->n_in; k++)
            want[node_at(g, v)->in[k]] = true;
    return want;
}

Parts *parts_of(const Model *m, Arena *arena)
{
    const Graph *g = m->graph;
    const bool *want = wanted(m, arena);
    Parts *p = NEW(arena, Parts);
    p->m = m;
    p->way = NEW_ARRAY(arena, uint8_t, g->node.n + 1);
    p->data = NEW_ARRAY(arena, bool, g->node.n + 1);
    p->total = NEW_ARRAY(arena, Name, g->node.n + 1);
    for (Val v = 1; v < g->node.n; v++) {
        const Node *n = node_at(g, v);
        if (!want[v])
            continue;
        p->way[v] = (uint8_t)way_of(p, g, n);
        p->data[v] = is_data(p, g, n);
        if (n->op != OP_SUM || p->way[v] != ADDS || p->way[n->in[0]] != ROWS || !p->data[v] || n->dtype != DT_REAL)
            continue;
        p->way[v] = SAME;
        p->data[v] = false;
        p->total[v] = name_printf(g->ctx, "total.%zu", p->totals.n + 1);
        vec_push(arena, &p->totals, v);
    }
    return p;
}

size_t parts_totals(const Parts *p) { return p->totals.n; }

Val parts_total(const Parts *p, size_t i, Name *name)
{
    *name = p->total[p->totals.v[i]];
    return p->totals.v[i];
}

/* Whatever is multiplied by 0, as a loss without weight. */
static bool is_zero(const Graph *g, Val v)
{
    const Node *n = node_at(g, v);
    double x, y;
    return n->op == OP_MUL &&
           ((ir_is_uniform(g, n->in[0], &x) && x == 0) || (ir_is_uniform(g, n->in[1], &y) && y == 0));
}

bool parts_exact(const Parts *p, size_t i)
{
    Val v = p->m->loss.v[i].value;
    return p->way[v] == SAME || p->way[v] == ADDS || is_zero(p->m->graph, v);
}

/* ---- what a part adds ---- */

static Val shared_out(Graph *g, Val x, Val share) { return ir_binary(g, OP_MUL, ir_cast(g, x, DT_REAL), share); }

/* Of what adds up, inputs that are the same in all parts add their share; factors, denominators and
 * masks stay. */
static bool adds_share(const Parts *p, const Node *n, size_t k)
{
    bool linear = n->op == OP_ADD || n->op == OP_SUB || n->op == OP_CONCAT || (n->op == OP_WHERE && k > 0);
    return linear && p->way[n->in[k]] == SAME;
}

/* 1 for the sequences that count, else 0, in the shape of what has them in an axis. The middle of a sequence's share of the
 * part lies before the end of those that count, or behind it, whatever is rounded. A number of each token is asked for its own
 * place, so that the kernel which computes it sums it, too. Of larger values a row of sequences is spread: the kernel that
 * counts tokens of all experts of 24_xformer_moe.vwn would else not fit into registers. */
static Val mask_of(Graph *g, const Shape *s)
{
    int axis = row_axis(s);
    bool alone = s->rank <= 2 && dim_eq(s->d[axis], DIM_B);
    Shape flat = {.rank = s->rank}, each = {2, {DIM_B, s->d[axis]}};
    each.d[1].b = 0;
    for (int k = 0; k < s->rank; k++)
        flat.d[k] = k == axis ? s->d[axis] : DIM(1);
    Val place = ir_cast(g, alone ? ir_iota(g, s, axis) : ir_iota(g, &each, 0), DT_REAL);
    Val middle = ir_binary(g, OP_DIV, ir_binary(g, OP_ADD, place, ir_fill(g, 0.5)), ir_dim(g, DIM_B));
    Val mask = ir_binary(g, OP_LT, middle, ir_host(g, host_var(g->arena, HV_FILLED)));
    return alone ? mask : ir_broadcast(g, ir_reshape(g, mask, &flat), s);
}

Val parts_filled_dim(Graph *g, Dim d)
{
    Val x = ir_dim(g, d);
    for (int k = 0; k < d.b; k++)
        x = ir_binary(g, OP_MUL, x, ir_host(g, host_var(g->arena, HV_FILLED)));
    return x;
}

Val parts_filled(const Parts *p, Graph *g, Val v, Val x)
{
    const Node *n = node_at(p->m->graph, v);
    bool adds = p->way[v] == ADDS || p->total[v];
    if (!adds || !n->n_in || p->way[n->in[0]] != ROWS)
        return x;
    const Shape s = *shape_of(g, x);
    return ir_where(g, mask_of(g, &s), x, ir_fill(g, 0));
}

/* Node v of the model where totals and extents are those of the batch. whole[] has what stands
 * before it. */
static Val whole_of(const Parts *p, Graph *g, Val v, const Val *map, const Val *whole, Val share, bool filled)
{
    const Node *n = node_at(p->m->graph, v);
    if (p->total[v])
        return ir_ext(g, EXT_TOTAL, p->total[v], DT_REAL, &n->shape);
    Val x = map[v];
    for (int k = 0; n->op == OP_DIM && k < n->a.dim.b; k++)
        x = ir_binary(g, OP_DIV, x, share);
    Val *in = NEW_ARRAY(g->arena, Val, n->n_in + 1u);
    bool changed = false;
    for (size_t k = 0; k < n->n_in; k++) {
        Val of = whole[n->in[k]];
        in[k] = p->way[v] == ADDS && adds_share(p, n, k) ? shared_out(g, of, share) : of;
        changed = changed || in[k] != map[n->in[k]];
    }
    if (!changed)
        return x;
    if (filled)
        in[0] = parts_filled(p, g, v, in[0]);
    double dropout = node_at(g, x)->a.z; /* of attention; none in an evaluation */
    x = ir_copy(g, p->m->graph, v, whole);
    memcpy(node_at(g, x)->in, in, n->n_in * sizeof *in);
    if (n->op == OP_SDPA)
        node_at(g, x)->a.z = dropout;
    return x;
}

void parts_apply(const Parts *p, Graph *g, Val *map, Val share, bool filled)
{
    const Graph *from = p->m->graph;
    Val *whole = NEW_ARRAY(g->arena, Val, from->node.n + 1);
    for (Val v = 1; v < from->node.n; v++) {
        if (!map[v] || p->way[v] == MIXED)
            continue;
        g->span = node_at(from, v)->span;
        g->name = node_at(from, v)->name;
        whole[v] = whole_of(p, g, v, map, whole, share, filled);
    }
    for (size_t i = 0; i < p->m->loss.n; i++) {
        Val v = p->m->loss.v[i].value;
        g->span = node_at(from, v)->span;
        g->name = node_at(from, v)->name;
        if (p->way[v] != ADDS)
            whole[v] = shared_out(g, p->way[v] == SAME ? whole[v] : map[v], share);
    }
    for (size_t i = 0; i < p->m->loss.n; i++)
        map[p->m->loss.v[i].value] = whole[p->m->loss.v[i].value];
    g->span = NO_SPAN;
    g->name = NULL;
}
