/* fuse_loads.c - what the kernel of a group loads, without the kernel.
 *
 * In:  a group.     Out: the values that its kernel loads.
 * The one idea: of a value a kernel computes only what its readers want, a box of its elements, the smallest that has all of these. So an
 * input of a concatenation of which nothing is wanted is not loaded. Readers stand behind what they read, so one walk from the last
 * value to the first knows all readers of each.
 */
#include "fuse.h"

/* On each axis from `from` on, up to `to`. */
typedef struct WantedPart {
    int64_t from[MAX_RANK], to[MAX_RANK];
} WantedPart;

static WantedPart whole(const Fusion *f, const Shape *s)
{
    WantedPart p = {0};
    for (int i = 0; i < s->rank; i++)
        p.to[i] = dim_at(s->d[i], f->B, f->T);
    return p;
}

static bool is_empty(const WantedPart *p, int rank)
{
    bool empty = false;
    for (int i = 0; i < rank; i++)
        empty = empty || p->from[i] >= p->to[i];
    return empty;
}

/* Moves a part along an axis, as far as it stays in the tensor. */
static void move(WantedPart *p, int axis, int64_t by, int64_t extent)
{
    p->from[axis] = p->from[axis] + by > 0 ? p->from[axis] + by : 0;
    p->to[axis] = p->to[axis] + by < extent ? p->to[axis] + by : extent;
}

/* Of input k, what a part of v is computed from. */
static WantedPart input_part(const Fusion *f, Val v, size_t k, const WantedPart *of)
{
    const Node *n = node_at(f->g, v);
    const Shape *s = shape_of(f->g, n->in[k]);
    WantedPart all = whole(f, s), p = *of;
    int axis = (int)n->a.i;
    int64_t begin = 0;
    switch (op_info((Op)n->op)->class) {
    case CLASS_UNARY:
    case CLASS_BINARY:
    case CLASS_TERNARY: return p;
    case CLASS_VIEW:
    case CLASS_MOVE: break;
    default: return all;
    }
    switch ((Op)n->op) {
    case OP_SLICE: move(&p, axis, n->a.j, all.to[axis]); return p;
    case OP_PAD:
    case OP_SHIFT: move(&p, axis, -n->a.j, all.to[axis]); return p;
    case OP_CONCAT:
        for (size_t i = 0; i < k; i++)
            begin += dim_at(shape_of(f->g, n->in[i])->d[axis], f->B, f->T);
        move(&p, axis, -begin, all.to[axis]);
        return p;
    default: return all;
    }
}

/* v, and what the group computes it from. */
static void add_needed(Fusion *f, uint32_t group, Val v, Vals *needed)
{
    const Node *n = node_at(f->g, v);
    if (f->seen[v] == f->stamp || fuse_empty(f, v))
        return;
    f->seen[v] = f->stamp;
    f->part[v] = (WantedPart){0};
    vec_push(f->tmp, needed, v);
    for (size_t k = 0; k < n->n_in && !fuse_loads(f, group, v); k++)
        add_needed(f, group, n->in[k], needed);
}

static void unite(WantedPart *p, const WantedPart *q, int rank)
{
    if (is_empty(p, rank)) {
        *p = *q;
        return;
    }
    for (int i = 0; i < rank; i++) {
        p->from[i] = p->from[i] < q->from[i] ? p->from[i] : q->from[i];
        p->to[i] = p->to[i] > q->to[i] ? p->to[i] : q->to[i];
    }
}

void fuse_find_loads(Fusion *f, uint32_t group, Vals *loads)
{
    const Group *gr = &f->group.v[group];
    Vals needed = {0};
    f->stamp++;
    if (!f->part)
        f->part = NEW_ARRAY(f->arena, WantedPart, f->g->node.n);
    for (size_t i = 0; i < gr->store.n; i++)
        add_needed(f, group, gr->store.v[i], &needed);
    fuse_sort(needed.v, needed.n);
    for (size_t i = 0; i < gr->store.n; i++)
        f->part[gr->store.v[i]] = whole(f, shape_of(f->g, gr->store.v[i]));
    for (size_t i = needed.n; i-- > 0;) {
        Val v = needed.v[i];
        const Node *n = node_at(f->g, v);
        if (is_empty(&f->part[v], n->shape.rank))
            continue;
        if (fuse_loads(f, group, v)) {
            vec_push(f->tmp, loads, v);
            continue;
        }
        for (size_t k = 0; k < n->n_in; k++) {
            WantedPart p = input_part(f, v, k, &f->part[v]);
            int rank = shape_of(f->g, n->in[k])->rank;
            if (!is_empty(&p, rank))
                unite(&f->part[n->in[k]], &p, rank);
        }
    }
}
