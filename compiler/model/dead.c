/* dead.c - which weights can never learn, by shape.
 *
 * In:  a Model's graph.
 * Out: Param.dead (and, from cost.c, Param.active) of every parameter.
 * The one idea: an abstract interpretation with boxes, one interval of coordinates per axis.
 * Forward, `live` of a node is a box outside of which the node is zero whatever the weights
 * are; only pad and shift make such zeros, values of constants are never looked at. Backward,
 * `need` is the set of coordinates that anything reads, up to the trained losses and the
 * outputs: a few boxes. Nothing is needed where it is not live, and a product is live only
 * where both operands are, so what arrives at a parameter is what can receive a gradient. All
 * rules err on the side of "alive".
 *
 * An axis with B or T in its extent is taken as one coordinate: all or nothing. stop_gradient
 * passes need on: what an output shows is read, even if it does not learn from it.
 */
#include "cost.h"

typedef struct DeadBox {
    bool some; /* false: no coordinate at all */
    uint8_t rank;
    int64_t lo[MAX_RANK], hi[MAX_RANK];
} DeadBox;

enum { MOST_BOXES = 8 };
typedef struct Need {
    DeadBox *box;
    int n, cap;
} Need;

typedef struct Dead {
    const Graph *g;
    Arena *arena;
    DeadBox *live;
    Need *need;
} Dead;

/* ---- boxes ---- */

static int64_t extent(Dim d) { return dim_static(d) ? d.n : 1; }

static DeadBox box_full(const Shape *s)
{
    DeadBox b = {.some = true, .rank = s->rank};
    for (int k = 0; k < s->rank; k++) {
        b.hi[k] = extent(s->d[k]);
        if (b.hi[k] == 0)
            b.some = false;
    }
    return b;
}

static DeadBox box_none(const Shape *s) { return (DeadBox){.rank = s->rank}; }

/* The box with axis k replaced; empty intervals make an empty box. */
static DeadBox box_with(DeadBox b, int k, int64_t lo, int64_t hi)
{
    b.lo[k] = lo;
    b.hi[k] = hi;
    if (lo >= hi)
        b.some = false;
    return b;
}

static DeadBox box_cap(DeadBox a, DeadBox b)
{
    for (int k = 0; k < a.rank; k++) {
        int64_t lo = a.lo[k] > b.lo[k] ? a.lo[k] : b.lo[k];
        a = box_with(a, k, lo, a.hi[k] < b.hi[k] ? a.hi[k] : b.hi[k]);
    }
    a.some = a.some && b.some;
    return a;
}

/* The smallest box that holds both. */
static DeadBox box_hull(DeadBox a, DeadBox b)
{
    if (!a.some || !b.some)
        return a.some ? a : b;
    for (int k = 0; k < a.rank; k++) {
        a.lo[k] = a.lo[k] < b.lo[k] ? a.lo[k] : b.lo[k];
        a.hi[k] = a.hi[k] > b.hi[k] ? a.hi[k] : b.hi[k];
    }
    return a;
}

static bool box_holds(const DeadBox *a, const DeadBox *b)
{
    for (int k = 0; k < a->rank; k++)
        if (b->lo[k] < a->lo[k] || b->hi[k] > a->hi[k])
            return false;
    return true;
}

/* Is the union a box? All axes but one are equal, and there the intervals touch. */
static bool box_joins(const DeadBox *a, const DeadBox *b)
{
    int differ = 0;
    for (int k = 0; k < a->rank; k++)
        if (a->lo[k] != b->lo[k] || a->hi[k] != b->hi[k]) {
            if (++differ > 1 || a->lo[k] > b->hi[k] || b->lo[k] > a->hi[k])
                return false;
        }
    return true;
}

static void need_add(Dead *d, Need *need, DeadBox b)
{
    for (int i = 0; i < need->n;) {
        DeadBox *old = &need->box[i];
        if (box_holds(old, &b))
            return;
        if (box_holds(&b, old) || box_joins(&b, old) || need->n == MOST_BOXES) {
            b = box_hull(b, *old); /* exact, unless there are too many */
            *old = need->box[--need->n];
            i = 0;
        } else {
            i++;
        }
    }
    if (need->n == need->cap) {
        DeadBox *more = NEW_ARRAY(d->arena, DeadBox, (size_t)(need->cap ? 2 * need->cap : 1));
        if (need->n)
            memcpy(more, need->box, (size_t)need->n * sizeof *more);
        need->box = more;
        need->cap = need->cap ? 2 * need->cap : 1;
    }
    need->box[need->n++] = b;
}

/* Node `in` is read at b. Where it is always zero nothing depends on what it is made of. */
static void want(Dead *d, Val in, DeadBox b)
{
    b = box_cap(b, d->live[in]);
    if (b.some)
        need_add(d, &d->need[in], b);
}

/* Elements in the union of boxes, which all lie in axes k.. of one tensor. */
static int64_t union_size(const DeadBox *box, int n, int axis)
{
    if (n == 0)
        return 0;
    if (axis == box[0].rank)
        return 1;
    int64_t total = 0, from = INT64_MIN;
    for (;;) { /* slabs between neighbouring interval ends */
        int64_t at = INT64_MAX, to = INT64_MAX;
        for (int i = 0; i < n; i++) {
            if (box[i].hi[axis] > from && box[i].lo[axis] < at)
                at = box[i].lo[axis];
        }
        at = at < from ? from : at;
        if (at == INT64_MAX)
            return total;
        DeadBox inside[MOST_BOXES];
        int n_inside = 0;
        for (int i = 0; i < n; i++) {
            if (box[i].lo[axis] > at && box[i].lo[axis] < to)
                to = box[i].lo[axis];
            if (box[i].lo[axis] <= at && box[i].hi[axis] > at) {
                inside[n_inside++] = box[i];
                to = box[i].hi[axis] < to ? box[i].hi[axis] : to;
            }
        }
        total += (to - at) * union_size(inside, n_inside, axis + 1);
        from = to;
    }
}

/* ---- boxes through views ---- */

/* Axes [i, i_end) of one shape and [j, j_end) of another that hold the same elements. */
typedef struct DeadBlock {
    int i, i_end, j, j_end;
} DeadBlock;

/* The smallest block that starts at axes i and j; false when only extents of 1 are left. */
static bool next_block(const Shape *a, const Shape *b, int i, int j, DeadBlock *out)
{
    Dim p = DIM(1);
    for (int ie = i + 1; ie <= a->rank; ie++) {
        Dim q = DIM(1);
        if (!dim_mul(p, a->d[ie - 1], &p))
            return false;
        for (int je = j + 1; je <= b->rank; je++) {
            if (!dim_mul(q, b->d[je - 1], &q))
                return false;
            if (dim_eq(p, q)) {
                *out = (DeadBlock){i, ie, j, je};
                return true;
            }
        }
    }
    return false;
}

static bool block_static(const Shape *s, int from, int to)
{
    for (int k = from; k < to; k++)
        if (!dim_static(s->d[k]))
            return false;
    return true;
}

/* The smallest range of row-major numbers within axes [from, to) that holds the box. */
static void box_range(const Shape *s, const DeadBox *b, int from, int to, int64_t *lo, int64_t *hi)
{
    int64_t stride = 1, last = 0;
    *lo = 0;
    for (int k = to - 1; k >= from; k--) {
        *lo += b->lo[k] * stride;
        last += (b->hi[k] - 1) * stride;
        stride *= s->d[k].n;
    }
    *hi = last + 1;
}

/* The smallest box in axes [from, to) that holds the range of row-major numbers [lo, hi). */
static void box_of_range(const Shape *s, DeadBox *b, int from, int to, int64_t lo, int64_t hi)
{
    int64_t stride = 1;
    for (int k = from; k < to; k++)
        stride *= s->d[k].n;
    for (int k = from; k < to; k++) {
        stride /= s->d[k].n;
        int64_t first = lo / stride, last = (hi - 1) / stride;
        b->lo[k] = first;
        b->hi[k] = last + 1;
        if (last != first)
            return; /* the axes after it stay full */
        lo -= first * stride;
        hi -= first * stride;
    }
}

static DeadBox box_reshape(const Shape *from, DeadBox b, const Shape *to)
{
    DeadBox out = box_full(to);
    out.some = out.some && b.some;
    DeadBlock k = {0};
    while (out.some && next_block(from, to, k.i_end, k.j_end, &k)) {
        if (!block_static(from, k.i, k.i_end) || !block_static(to, k.j, k.j_end))
            continue;
        int64_t lo, hi;
        box_range(from, &b, k.i, k.i_end, &lo, &hi);
        box_of_range(to, &out, k.j, k.j_end, lo, hi);
    }
    return out;
}

/* Input to output (`back` false) or output to input of permute. */
static DeadBox box_permute(const Node *n, DeadBox b, bool back)
{
    DeadBox out = b;
    for (int k = 0; k < b.rank; k++) {
        int from = (int)n->a.data[k];
        int dst = back ? from : k, src = back ? k : from;
        out.lo[dst] = b.lo[src];
        out.hi[dst] = b.hi[src];
    }
    return out;
}

/* The box moved along the axis and cut to the extent there; symbolic axes stay whole. */
static DeadBox box_move(DeadBox b, int axis, int64_t by, const Shape *from, const Shape *to)
{
    if (!b.some || !dim_static(from->d[axis]) || !dim_static(to->d[axis])) {
        DeadBox full = box_full(to);
        return box_with(b, axis, full.lo[axis], full.hi[axis]);
    }
    int64_t lo = b.lo[axis] + by, hi = b.hi[axis] + by, n = to->d[axis].n;
    return box_with(b, axis, lo < 0 ? 0 : lo, hi > n ? n : hi);
}

static DeadBox box_whole_axes(DeadBox b, uint32_t axes, const Shape *s)
{
    for (int k = 0; k < b.rank; k++)
        if (axes >> k & 1)
            b = box_with(b, k, 0, extent(s->d[k]));
    return b;
}

/* Along the axis a cumulative sum carries to the end (or to the start, when reversed). */
static DeadBox box_carry(DeadBox b, int axis, bool to_end, const Shape *s)
{
    if (!b.some)
        return b;
    return to_end ? box_with(b, axis, b.lo[axis], extent(s->d[axis])) : box_with(b, axis, 0, b.hi[axis]);
}

/* ---- forward: where a node may differ from zero ---- */

static DeadBox live_elementwise(const Dead *d, const Node *n)
{
    DeadBox a = d->live[n->in[0]];
    switch (n->op) {
    case OP_ADD:
    case OP_SUB:
    case OP_MIN:
    case OP_MAX: return box_hull(a, d->live[n->in[1]]);
    case OP_MUL: return box_cap(a, d->live[n->in[1]]);
    case OP_DIV: /* 0 / b = 0 */ return a;
    case OP_WHERE: return box_hull(d->live[n->in[1]], d->live[n->in[2]]);
    default: break;
    }
    bool keeps_zero = n->n_in == 1 && op_info((Op)n->op)->zero == ZERO_YES;
    return keeps_zero ? a : box_full(&n->shape);
}

static DeadBox live_move(const Dead *d, const Node *n)
{
    const Shape *from = shape_of(d->g, n->in[0]), *to = &n->shape;
    DeadBox b = d->live[n->in[0]];
    int axis = (int)n->a.i;
    int64_t at = 0;
    switch (n->op) {
    case OP_RESHAPE: return box_reshape(from, b, to);
    case OP_PERMUTE: return box_permute(n, b, false);
    case OP_BROADCAST: {
        DeadBox full = box_full(to);
        for (int k = 0; k < to->rank; k++)
            if (!dim_eq(from->d[k], to->d[k]))
                b = box_with(b, k, 0, full.hi[k]);
        return b;
    }
    case OP_SLICE: return box_move(b, axis, -n->a.j, from, to);
    case OP_PAD: return box_move(b, axis, n->a.j, from, to);
    case OP_SHIFT: return n->a.x == 0 ? box_move(b, axis, n->a.j, from, to) : box_full(to);
    case OP_ROLL: return box_whole_axes(b, 1u << axis, to);
    case OP_CONCAT:
        b = box_none(to);
        for (size_t k = 0; k < n->n_in; k++) {
            const Shape *piece = shape_of(d->g, n->in[k]);
            b = box_hull(b, box_move(d->live[n->in[k]], axis, at, piece, to));
            at += extent(piece->d[axis]);
        }
        return b;
    default: return box_full(to);
    }
}

/* Axes of a product: row and contracted of the left one, contracted and column of b. */
typedef struct MatAxes {
    int ai, ak, bk, bj, rank, lead; /* lead: leading axes that b has too, from 0 */
} MatAxes;

static MatAxes matmul_axes(const Graph *g, const Node *n)
{
    int ra = shape_of(g, n->in[0])->rank, rb = shape_of(g, n->in[1])->rank;
    bool ta = n->a.i & 1, tb = n->a.i & 2;
    return (MatAxes){.ai = ra - (ta ? 1 : 2),
                     .ak = ra - (ta ? 2 : 1),
                     .bk = rb - (tb ? 1 : 2),
                     .bj = rb - (tb ? 2 : 1),
                     .rank = ra,
                     .lead = rb > 2 ? rb - 2 : 0};
}

static DeadBox live_matmul(const Dead *d, const Node *n)
{
    MatAxes x = matmul_axes(d->g, n);
    DeadBox a = d->live[n->in[0]], b = d->live[n->in[1]], out = a;
    out.some = a.some && b.some;
    if (a.lo[x.ak] >= b.hi[x.bk] || b.lo[x.bk] >= a.hi[x.ak])
        out.some = false;
    for (int k = 0; k < x.lead; k++)
        out = box_with(out, k, a.lo[k] > b.lo[k] ? a.lo[k] : b.lo[k], a.hi[k] < b.hi[k] ? a.hi[k] : b.hi[k]);
    out.lo[x.rank - 2] = a.lo[x.ai];
    out.hi[x.rank - 2] = a.hi[x.ai];
    out.lo[x.rank - 1] = b.lo[x.bj];
    out.hi[x.rank - 1] = b.hi[x.bj];
    return out;
}

static DeadBox live_experts(const Dead *d, const Node *n)
{
    DeadBox x = d->live[n->in[0]], w = d->live[n->in[1]], out = box_full(&n->shape);
    int ik = n->a.i ? 2 : 1, same = x.rank - 1, last = out.rank - 1;
    out.some = out.some && x.some && w.some && x.lo[same] < w.hi[ik] && w.lo[ik] < x.hi[same];
    for (int k = 0; k < same; k++)
        out = box_with(out, k, x.lo[k], x.hi[k]);
    return box_with(out, last, w.lo[3 - ik], w.hi[3 - ik]);
}

/* Query heads [lo, hi) of n per key head, and back. */
static DeadBox heads_of_keys(DeadBox out, DeadBox keys, int64_t per)
{
    out = box_with(out, 2, keys.lo[2] * per, keys.hi[2] * per);
    return box_with(out, 3, keys.lo[3], keys.hi[3]);
}

static int64_t heads_per_key(const Graph *g, const Node *n)
{
    return shape_of(g, n->in[0])->d[2].n / shape_of(g, n->in[1])->d[2].n;
}

static DeadBox live_of(const Dead *d, Val v)
{
    const Node *n = node_at(d->g, v);
    DeadBox full = box_full(&n->shape);
    if (!full.some || n->n_in == 0)
        return full;
    DeadBox first = d->live[n->in[0]];
    switch (op_info((Op)n->op)->class) {
    case CLASS_UNARY:
    case CLASS_BINARY:
    case CLASS_TERNARY: return live_elementwise(d, n);
    case CLASS_VIEW:
    case CLASS_MOVE: return live_move(d, n);
    case CLASS_REDUCE:
        if (n->op == OP_CUMSUM)
            return box_carry(first, (int)n->a.i, !n->a.j, &n->shape);
        return box_whole_axes(first, n->a.axes, &n->shape);
    default: break;
    }
    switch (n->op) {
    case OP_MATMUL: return live_matmul(d, n);
    case OP_EXPERT_MATMUL: return live_experts(d, n);
    case OP_SDPA: {
        DeadBox v_live = d->live[n->in[2]];
        full.some = v_live.some;
        return v_live.some ? heads_of_keys(full, v_live, heads_per_key(d->g, n)) : full;
    }
    case OP_GATHER: { /* [V, ..r] by [..i] -> [..i, ..r] */
        int lead = full.rank - (first.rank - 1);
        full.some = first.some;
        for (int k = 1; k < first.rank; k++)
            full = box_with(full, lead + k - 1, first.lo[k], first.hi[k]);
        return full;
    }
    case OP_PICK: return box_whole_axes(first, 1u << (first.rank - 1), &n->shape);
    default: return full;
    }
}

/* ---- backward: what anything reads of a node's inputs, when `b` of the node is read ---- */

static void need_move(Dead *d, const Node *n, DeadBox b)
{
    const Shape *to = shape_of(d->g, n->in[0]), *from = &n->shape;
    int axis = (int)n->a.i;
    int64_t at = 0;
    switch (n->op) {
    case OP_RESHAPE: want(d, n->in[0], box_reshape(from, b, to)); break;
    case OP_PERMUTE: want(d, n->in[0], box_permute(n, b, true)); break;
    case OP_BROADCAST:
        for (int k = 0; k < to->rank; k++)
            if (!dim_eq(from->d[k], to->d[k]))
                b = box_with(b, k, 0, extent(to->d[k]));
        want(d, n->in[0], b);
        break;
    case OP_SLICE: want(d, n->in[0], box_move(b, axis, n->a.j, from, to)); break;
    case OP_PAD:
    case OP_SHIFT: want(d, n->in[0], box_move(b, axis, -n->a.j, from, to)); break;
    case OP_ROLL: want(d, n->in[0], box_whole_axes(b, 1u << axis, to)); break;
    case OP_CONCAT:
        for (size_t k = 0; k < n->n_in; k++) {
            const Shape *piece = shape_of(d->g, n->in[k]);
            want(d, n->in[k], box_move(b, axis, -at, from, piece));
            at += extent(piece->d[axis]);
        }
        break;
    default: want(d, n->in[0], box_full(to));
    }
}

static void need_matmul(Dead *d, const Node *n, DeadBox b)
{
    MatAxes x = matmul_axes(d->g, n);
    Val a = n->in[0], c = n->in[1];
    DeadBox la = d->live[a], lc = d->live[c], left = b, right = lc;
    left = box_with(left, x.ai, b.lo[x.rank - 2], b.hi[x.rank - 2]);
    left = box_with(left, x.ak, lc.lo[x.bk], lc.hi[x.bk]);
    right = box_with(right, x.bk, la.lo[x.ak], la.hi[x.ak]);
    right = box_with(right, x.bj, b.lo[x.rank - 1], b.hi[x.rank - 1]);
    for (int k = 0; k < x.lead; k++)
        right = box_with(right, k, b.lo[k], b.hi[k]);
    want(d, a, left);
    want(d, c, right);
}

static void need_experts(Dead *d, const Node *n, DeadBox b)
{
    DeadBox lx = d->live[n->in[0]], lw = d->live[n->in[1]], x = lx, w = lw, index = b;
    int ik = n->a.i ? 2 : 1, same = lx.rank - 1;
    for (int k = 0; k < same; k++)
        x = box_with(x, k, b.lo[k], b.hi[k]);
    x = box_with(x, same, lw.lo[ik], lw.hi[ik]);
    w = box_with(w, ik, lx.lo[same], lx.hi[same]);
    w = box_with(w, 3 - ik, b.lo[b.rank - 1], b.hi[b.rank - 1]);
    index.rank--;
    want(d, n->in[0], x);
    want(d, n->in[1], w);
    want(d, n->in[2], index);
}

static void need_attention(Dead *d, const Node *n, DeadBox b)
{
    DeadBox q = d->live[n->in[0]], k = d->live[n->in[1]], v = box_full(shape_of(d->g, n->in[2]));
    int64_t per = heads_per_key(d->g, n);
    DeadBox keys = box_full(shape_of(d->g, n->in[1]));
    keys = box_with(keys, 0, b.lo[0], b.hi[0]);
    keys = box_with(keys, 2, b.lo[2] / per, (b.hi[2] - 1) / per + 1);
    v = box_with(v, 0, b.lo[0], b.hi[0]);
    v = box_with(v, 2, keys.lo[2], keys.hi[2]);
    want(d, n->in[2], box_with(v, 3, b.lo[3], b.hi[3]));
    if (!q.some || !k.some)
        return; /* all scores are zero */
    want(d, n->in[0], box_with(b, 3, k.lo[3], k.hi[3]));
    want(d, n->in[1], box_with(keys, 3, q.lo[3], q.hi[3]));
}

static void need_all_inputs(Dead *d, const Node *n)
{
    for (size_t k = 0; k < n->n_in; k++)
        want(d, n->in[k], box_full(shape_of(d->g, n->in[k])));
}

static void need_indexed(Dead *d, const Node *n, DeadBox b)
{
    const Shape *s = shape_of(d->g, n->in[0]);
    DeadBox x = box_full(s);
    if (n->op == OP_GATHER) {
        int lead = b.rank - (s->rank - 1);
        for (int k = 1; k < s->rank; k++)
            x = box_with(x, k, b.lo[lead + k - 1], b.hi[lead + k - 1]);
        want(d, n->in[0], x);
        want(d, n->in[1], box_full(shape_of(d->g, n->in[1])));
    } else if (n->op == OP_PICK || n->op == OP_TOP_K) {
        want(d, n->in[0], box_whole_axes(b, 1u << (b.rank - 1), s));
        if (n->op == OP_PICK)
            want(d, n->in[1], b);
    } else {
        need_all_inputs(d, n);
    }
}

static void need_inputs(Dead *d, const Node *n, DeadBox b)
{
    if (n->n_in == 0)
        return;
    const Shape *s = shape_of(d->g, n->in[0]);
    switch (op_info((Op)n->op)->class) {
    case CLASS_UNARY:
    case CLASS_BINARY:
    case CLASS_TERNARY:
        for (size_t k = 0; k < n->n_in; k++)
            want(d, n->in[k], b);
        break;
    case CLASS_VIEW:
    case CLASS_MOVE: need_move(d, n, b); break;
    case CLASS_REDUCE:
        if (n->op == OP_CUMSUM)
            want(d, n->in[0], box_carry(b, (int)n->a.i, n->a.j, s));
        else
            want(d, n->in[0], box_whole_axes(b, n->a.axes, s));
        break;
    case CLASS_INDEX: need_indexed(d, n, b); break;
    case CLASS_AUX: /* a side result: everything its node has read */
        need_all_inputs(d, node_at(d->g, n->in[0]));
        break;
    default:
        if (n->op == OP_MATMUL)
            need_matmul(d, n, b);
        else if (n->op == OP_EXPERT_MATMUL)
            need_experts(d, n, b);
        else if (n->op == OP_SDPA)
            need_attention(d, n, b);
        else
            need_all_inputs(d, n);
    }
}

/* ---- the two passes ---- */

static void interpret(Dead *d, const Val *roots, size_t n_roots)
{
    const Graph *g = d->g;
    for (Val v = 1; v < g->node.n; v++)
        d->live[v] = live_of(d, v);
    for (size_t i = 0; i < n_roots; i++)
        want(d, roots[i], box_full(shape_of(g, roots[i])));
    for (Val v = (Val)g->node.n; v-- > 1;)
        for (int i = 0; i < d->need[v].n; i++)
            need_inputs(d, node_at(g, v), d->need[v].box[i]);
}

void model_find_dead(Model *m)
{
    Arena *scratch = m->graph->ctx->scratch;
    ArenaMark mark = arena_mark(scratch);
    Dead d = {.g = m->graph, .arena = scratch};
    size_t n_roots;
    const Val *roots = model_roots(m, ROOTS_LEARNING, scratch, &n_roots);
    d.live = NEW_ARRAY(scratch, DeadBox, m->graph->node.n);
    d.need = NEW_ARRAY(scratch, Need, m->graph->node.n);
    interpret(&d, roots, n_roots);
    for (size_t i = 0; i < m->param.n; i++) {
        Param *p = &m->param.v[i];
        const Need *need = p->value ? &d.need[p->value] : NULL;
        p->dead = p->buffer ? 0 : p->elements - (need ? union_size(need->box, need->n, 0) : 0);
    }
    arena_reset(scratch, mark);
    model_find_active(m);
}
