/* growth_axes.c - what the axes of weights consist of.
 *
 * In:  the graph of a model.   Out: for each axis of a parameter its factors or its segments.
 * The one idea: axes that an operator makes the same are one class (the columns of W and the last axis
 * of x W); a reshape says of a class what it is a product of, a slice or a concatenation where it is cut.
 */
#include "growth.h"

typedef struct Class {
    uint32_t up;
    VEC(int64_t) inner; /* extents of what stands inside, by reshapes: 64 of [16 * 64] */
    VEC(int64_t) cut;   /* places at which it is cut */
    uint32_t within;    /* 1 + the innermost axis of a reshape */
} Class;
typedef struct Axes {
    const Graph *g;
    Arena *arena;
    uint32_t *first; /* of a node: its axis 0 */
    Class *class;
} Axes;

static uint32_t class_of(Axes *a, uint32_t x)
{
    while (a->class[x].up != x)
        x = a->class[x].up = a->class[a->class[x].up].up;
    return x;
}

static uint32_t axis_of(const Axes *a, Val v, int k) { return a->first[v] + (uint32_t)k; }

static void join(Axes *a, Val x, int i, Val y, int j)
{
    if (!dim_eq(shape_of(a->g, x)->d[i], shape_of(a->g, y)->d[j]))
        return;
    uint32_t p = class_of(a, axis_of(a, x, i)), q = class_of(a, axis_of(a, y, j));
    a->class[p < q ? q : p].up = p < q ? p : q;
}

static void join_all(Axes *a, Val x, Val y, int but)
{
    int n = shape_of(a->g, x)->rank;
    for (int k = 0; k < n && n == shape_of(a->g, y)->rank; k++)
        if (k != but)
            join(a, x, k, y, k);
}

/* Axes of x and y, from the left, whose products are equal are groups; one to one is the same axis. */
static void join_reshape(Axes *a, Val x, Val y)
{
    const Shape *s = shape_of(a->g, x), *t = shape_of(a->g, y);
    for (int i = 0, j = 0; i < s->rank && j < t->rank;) {
        bool one = dim_eq(s->d[i], DIM(1)), other = dim_eq(t->d[j], DIM(1));
        if (one != other) { /* a bias becomes [1, 1, n] */
            *(one ? &i : &j) += 1;
            continue;
        }
        int i0 = i, j0 = j;
        Dim p = s->d[i++], q = t->d[j++];
        while (!dim_eq(p, q) && (i < s->rank || j < t->rank)) {
            bool left = p.n <= q.n && p.b <= q.b && p.t <= q.t && i < s->rank;
            if (!left && j == t->rank)
                left = true;
            if (left ? i == s->rank || !dim_mul(p, s->d[i++], &p) : !dim_mul(q, t->d[j++], &q))
                return;
        }
        if (!dim_eq(p, q))
            return;
        if (i - i0 == 1 && j - j0 == 1)
            join(a, x, i0, y, j0);
    }
}

/* The second time, when classes are complete: what a reshape says of an axis that it splits or makes. */
/* A 1 in front counts: one head is [8] -> [1, 8]. */
static void learn_reshape(Axes *a, Val one, Val many)
{
    const Shape *s = shape_of(a->g, one), *t = shape_of(a->g, many);
    for (int i = 0, j = 0; i < s->rank; i++) {
        Dim p = {1, 0, 0};
        int j0 = j;
        while (j < t->rank && !dim_eq(p, s->d[i]))
            if (!dim_mul(p, t->d[j++], &p))
                return;
        if (!dim_eq(p, s->d[i]))
            return;
        int64_t inner = 1;
        Class *c = &a->class[class_of(a, axis_of(a, one, i))];
        if (j > j0 + 1)
            c->within = axis_of(a, many, j - 1) + 1;
        for (int k = j - 1; k > j0; k--) {
            inner *= t->d[k].n;
            if (!dim_static(s->d[i]) || inner <= 1 || inner > s->d[i].n)
                continue;
            bool known = false;
            for (size_t m = 0; m < c->inner.n; m++)
                known |= c->inner.v[m] == inner;
            if (!known)
                vec_push(a->arena, &c->inner, inner);
        }
    }
}

static void cut_at(Axes *a, Val v, int k, int64_t at)
{
    Dim d = shape_of(a->g, v)->d[k];
    Class *c = &a->class[class_of(a, axis_of(a, v, k))];
    if (!dim_static(d) || at <= 0 || at >= d.n)
        return;
    for (size_t m = 0; m < c->cut.n; m++)
        if (c->cut.v[m] == at)
            return;
    vec_push(a->arena, &c->cut, at);
}

static void join_product(Axes *a, Val v)
{
    const Node *n = node_at(a->g, v);
    Val x = n->in[0], w = n->in[1];
    int rx = shape_of(a->g, x)->rank, rw = shape_of(a->g, w)->rank, r = n->shape.rank;
    bool tx = n->op == OP_MATMUL && n->a.i & 1, tw = n->a.i & (n->op == OP_MATMUL ? 2 : 1);
    join(a, x, tx ? rx - 2 : rx - 1, w, tw ? rw - 1 : rw - 2);
    join(a, v, r - 1, w, tw ? rw - 2 : rw - 1);
    if (n->op == OP_MATMUL)
        join(a, v, r - 2, x, tx ? rx - 1 : rx - 2);
    for (int k = 0; k < r - 2 && rx == r; k++)
        join(a, v, k, x, k);
    for (int k = 0; k < r - 2 && rw == r && n->op == OP_MATMUL; k++)
        join(a, v, k, w, k);
}

static void join_node(Axes *a, Val v)
{
    const Node *n = node_at(a->g, v);
    int r = n->shape.rank;
    if (op_is_map((Op)n->op)) {
        for (uint16_t i = 0; i < n->n_in; i++)
            join_all(a, v, n->in[i], -1);
        return;
    }
    switch ((Op)n->op) {
    case OP_BROADCAST:
    case OP_SHIFT:
    case OP_ROLL:
    case OP_CUMSUM: join_all(a, v, n->in[0], -1); break;
    case OP_SUM:
    case OP_AMAX:
        for (int k = 0; k < r; k++)
            if (!(n->a.axes >> k & 1))
                join(a, v, k, n->in[0], k);
        break;
    case OP_PERMUTE:
        for (int k = 0; k < r; k++)
            join(a, v, k, n->in[0], (int)n->a.data[k]);
        break;
    case OP_RESHAPE: join_reshape(a, n->in[0], v); break;
    case OP_SLICE:
    case OP_PAD: join_all(a, v, n->in[0], (int)n->a.i); break;
    case OP_CONCAT:
        for (uint16_t i = 0; i < n->n_in; i++)
            join_all(a, v, n->in[i], (int)n->a.i);
        break;
    case OP_MATMUL:
    case OP_EXPERT_MATMUL: join_product(a, v); break;
    case OP_GATHER: {
        int rt = shape_of(a->g, n->in[0])->rank;
        for (int k = 1; k < rt; k++)
            join(a, v, r - rt + k, n->in[0], k);
        break;
    }
    case OP_SDPA:
        join(a, v, 2, n->in[0], 2);
        join(a, n->in[0], 3, n->in[1], 3);
        join(a, v, 3, n->in[2], 3);
        join(a, n->in[1], 2, n->in[2], 2);
        break;
    default: break;
    }
}

static void learn_node(Axes *a, Val v)
{
    const Node *n = node_at(a->g, v);
    int k = (int)n->a.i;
    switch ((Op)n->op) {
    case OP_RESHAPE:
        learn_reshape(a, n->in[0], v);
        learn_reshape(a, v, n->in[0]);
        break;
    case OP_SLICE:
        cut_at(a, n->in[0], k, n->a.j);
        cut_at(a, n->in[0], k, n->a.j + n->shape.d[k].n);
        break;
    case OP_CONCAT: {
        int64_t at = 0;
        for (uint16_t i = 0; i < n->n_in && dim_static(n->shape.d[k]); i++)
            cut_at(a, v, k, at += shape_of(a->g, n->in[i])->d[k].n);
        break;
    }
    default: break;
    }
}

static void sort(int64_t *v, size_t n, bool down)
{
    for (size_t i = 1; i < n; i++)
        for (size_t k = i; k && (down ? v[k] > v[k - 1] : v[k] < v[k - 1]); k--) {
            int64_t x = v[k];
            v[k] = v[k - 1];
            v[k - 1] = x;
        }
}

static AxisShape shape_from(Axes *a, Class *c, int64_t extent)
{
    AxisShape s = {0};
    sort(c->inner.v, c->inner.n, true);
    int64_t outer = extent, *f = NEW_ARRAY(a->arena, int64_t, c->inner.n + 1);
    for (size_t i = 0; i < c->inner.n && outer; i++) {
        if (outer % c->inner.v[i]) /* split in ways that do not nest */
            outer = 0;
        else {
            f[s.n_factor++] = outer / c->inner.v[i];
            outer = c->inner.v[i];
        }
    }
    if (c->inner.n && outer) {
        f[s.n_factor++] = outer;
        s.factor = f;
        return s;
    }
    s.n_factor = 0;
    if (!c->cut.n)
        return s;
    sort(c->cut.v, c->cut.n, false);
    int64_t *part = NEW_ARRAY(a->arena, int64_t, c->cut.n + 1), at = 0;
    for (size_t i = 0; i < c->cut.n; at = c->cut.v[i++])
        part[s.n_segment++] = c->cut.v[i] - at;
    part[s.n_segment++] = extent - at;
    s.segment = part;
    return s;
}

/* Marks the axis of each parameter that its products sum over; `axis` follows it through transposes. */
static void find_reads(const Graph *g, Arena *arena, AxisShape **of, const size_t *param)
{
    typedef struct Seen { /* a value that is a parameter with its axes in another order */
        size_t param;     /* + 1 */
        int axis[MAX_RANK];
    } Seen;
    Seen *seen = NEW_ARRAY(arena, Seen, g->node.n);
    for (Val v = 1; v < (Val)g->node.n; v++) {
        const Node *n = node_at(g, v);
        if (param[v]) {
            seen[v].param = param[v];
            for (int k = 0; k < n->shape.rank; k++)
                seen[v].axis[k] = k;
            continue;
        }
        const Seen *x = &seen[first_input(n)];
        if (n->op == OP_PERMUTE && x->param) {
            seen[v].param = x->param;
            for (int k = 0; k < n->shape.rank; k++)
                seen[v].axis[k] = x->axis[(int)n->a.data[k]];
        } else if (n->op == OP_GATHER && x->param) {
            of[x->param - 1][x->axis[0]].reads = true;
        } else if (n->op == OP_MATMUL || n->op == OP_EXPERT_MATMUL) {
            for (int i = 0; i < 2; i++) {
                const Seen *y = &seen[n->in[i]];
                int r = shape_of(g, n->in[i])->rank;
                bool transposed = n->a.i & (n->op == OP_MATMUL ? 1 << i : i);
                if (y->param)
                    of[y->param - 1][y->axis[(i == 0) != transposed ? r - 1 : r - 2]].reads = true;
            }
        }
    }
}

AxisShape **growth_axes(const Model *m, Arena *arena)
{
    const Graph *g = m->graph;
    Axes a = {.g = g, .arena = arena, .first = NEW_ARRAY(arena, uint32_t, g->node.n + 1)};
    uint32_t n = 0;
    for (Val v = 1; v < (Val)g->node.n; v++) {
        a.first[v] = n;
        n += node_at(g, v)->shape.rank;
    }
    a.class = NEW_ARRAY(arena, Class, n + 1);
    for (uint32_t i = 0; i < n; i++)
        a.class[i].up = i;
    for (Val v = 1; v < (Val)g->node.n; v++)
        join_node(&a, v);
    for (Val v = 1; v < (Val)g->node.n; v++)
        learn_node(&a, v);
    AxisShape **of = NEW_ARRAY(arena, AxisShape *, m->param.n + 1);
    size_t *param = NEW_ARRAY(arena, size_t, g->node.n + 1);
    for (size_t i = 0; i < m->param.n; i++) {
        const Param *p = &m->param.v[i];
        param[p->value] = i + 1;
        of[i] = NEW_ARRAY(arena, AxisShape, p->shape.rank + 1u);
        for (int k = 0; k < p->shape.rank; k++) {
            uint32_t class = class_of(&a, axis_of(&a, p->value, k));
            of[i][k] = shape_from(&a, &a.class[class], p -> shape.d[k].n);
            of[i][k].class = class;
            of[i][k].within = a.class[class].within ? class_of(&a, a.class[class].within - 1) : class;
        }
    }
    find_reads(g, arena, of, param);
    return of;
}
