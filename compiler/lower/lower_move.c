/* lower_move.c - elements that come from other places: concatenation, padding and shifts.
 *
 * In:  coordinates of the result.     Out: the element of the input in which they lie, behind a test where that is open.
 * The one idea: which input it is follows from the coordinate. Where a loop is split at the inputs' borders no test is left.
 */
#include "lower_build.h"

/* Where an input of a concatenation begins, written as loops that are split there write it, so that both cancel. */
typedef struct Begin {
    Ix symbols; /* extents that training decides */
    int64_t numbers, at;
} Begin;

static Ix begin_form(IxTable *t, const Begin *b) { return ix_add(t, b->symbols, ix_dim(t, DIM(b->numbers), 1)); }

static void begin_behind(IxTable *t, Begin *b, Dim d)
{
    if (dim_static(d))
        b->numbers += d.n;
    else
        b->symbols = ix_add(t, b->symbols, ix_dim(t, d, 1));
    b->at += ix_dim_at(t, d);
}

/* For inputs in which the coordinate never lies no form is made: a concatenation of a thousand has a thousand pieces. */
Ex lower_concat_at(Lower *l, const Node *n, const Ix *c, Ex guard)
{
    int axis = (int)n->a.i;
    IxTable *t = l->k->ix;
    const int64_t lo = ix_form(t, c[axis])->lo, hi = ix_form(t, c[axis])->hi;
    const bool anywhere = ix_reads_value(t, c[axis]);
    VEC(Ex) inside = {0}, value = {0};
    Begin begin = {0};
    Dim d;
    for (int i = 0; i < n->n_in; i++, begin_behind(t, &begin, d)) {
        d = shape_of(l->g, n->in[i])->d[axis];
        bool outside = hi < begin.at || lo >= begin.at + ix_dim_at(t, d);
        if (fuse_empty(l->f, n->in[i]) || (outside && !anywhere))
            continue;
        Ix at[MAX_RANK];
        memcpy(at, c, sizeof at);
        at[axis] = ix_add(t, c[axis], ix_times(t, begin_form(t, &begin), -1));
        Ex in = kx_inside(l->k, at[axis], d);
        vec_push(l->arena, &inside, in);
        vec_push(l->arena, &value, lower_value_at(l, n->in[i], at, kx_and(l->k, guard, in)));
    }
    if (value.n == 0)
        return kx_number(l->k, (KType)lower_type_of(l, n->in[0]), 0, 0);
    Ex x = value.v[value.n - 1];
    for (size_t i = value.n - 1; i-- > 0;)
        x = kx_select(l->k, inside.v[i], value.v[i], x);
    return x;
}

Ex lower_moved_at(Lower *l, Val v, const Ix *c, Ex guard)
{
    const Node *n = node_at(l->g, v);
    int axis = (int)n->a.i;
    IxTable *t = l->k->ix;
    Dim d = shape_of(l->g, n->in[0])->d[axis];
    Ix at[MAX_RANK];
    memcpy(at, c, sizeof at);
    KType type = lower_type_of(l, n->in[0]);
    Ex fill = kx_number(l->k, type, n->op == OP_SHIFT ? n->a.x : 0, v);
    if (fuse_empty(l->f, n->in[0]))
        return fill;
    at[axis] = ix_add(t, c[axis], ix_const(t, -n->a.j));
    Ex inside = kx_inside(l->k, at[axis], d);
    double zero;
    if (inside && kx_is_number(l->k, inside, &zero))
        return fill;
    Ex value = lower_value_at(l, n->in[0], at, kx_and(l->k, guard, inside));
    return kx_select(l->k, inside, value, fill);
}
