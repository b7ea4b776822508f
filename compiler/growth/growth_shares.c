/* growth_shares.c - values of which only their sum over an axis is known.
 *
 * In:  a node and what is known of its inputs.   Out: the axis, and the value of the sum over it.
 * The one idea: weights that were divided by their sum add up to 1, whatever they are, so what they weigh comes out as it
 * is where it is the same along the axis: a token's experts that are copies of one another are that one.
 */
#include "growth_rules.h"

/* Whether in[1] of a quotient is the sum of in[0] over one axis; *axis is it. */
static bool by_own_sum(const Values *x, const Node *n, int *axis)
{
    const Node *d = node_at(x->g, n->in[1]);
    while (d->op == OP_BROADCAST)
        d = node_at(x->g, d->in[0]);
    if (d->op != OP_SUM || d->in[0] != n->in[0])
        return false;
    int count = 0;
    for (int k = 0; k < n->shape.rank; k++)
        if (d->a.axes >> k & 1) {
            *axis = k;
            count++;
        }
    return count == 1;
}

static GrowthValue *number(Values *x, const Shape *like, int axis, double c)
{
    Shape s = *like;
    s.d[axis] = DIM(1);
    return value_uniform(x, &s, block_number(x, s.rank, c));
}

static bool is_number(const Values *x, const GrowthValue *v)
{
    return v && v->n == 1 && block_is_number(x, &v->block[0]);
}

/* c times v, which is the same along the axis; NULL: it is not. */
static GrowthValue *weighed(Values *x, const GrowthValue *v, int axis, double c)
{
    Shape s = v->shape;
    s.d[axis] = DIM(1);
    if (v->axis[axis].n != 1)
        return NULL;
    GrowthValue *out = value_cut(x, &s, v->axis);
    for (size_t i = 0; i < v->n; i++) {
        GrowthBlock b = v->block[i];
        if (b.kind == BLOCK_ANY || block_varies(x, &b, axis))
            return NULL;
        b.c *= c;
        out->block[i] = b;
    }
    return out;
}

GrowthValue *value_shares(Values *x, const Node *n, int *axis)
{
    const Val a = n->n_in ? n->in[0] : 0;
    const GrowthValue *sums = a ? x->sums[a] : NULL;
    *axis = a ? x->along[a] : 0;
    switch ((Op)n->op) {
    case OP_DIV: return by_own_sum(x, n, axis) ? number(x, &n->shape, *axis, 1) : NULL;
    case OP_RESHAPE: { /* more axes of extent 1 behind */
        const Shape *was = shape_of(x->g, a);
        bool same = is_number(x, sums) && n->shape.rank >= was->rank;
        for (int k = 0; k < n->shape.rank && same; k++)
            same = dim_eq(n->shape.d[k], k < was->rank ? was->d[k] : DIM(1));
        return same ? number(x, &n->shape, *axis, block_number_of(&sums->block[0])) : NULL;
    }
    case OP_BROADCAST:
        return is_number(x, sums) && dim_eq(shape_of(x->g, a)->d[*axis], n->shape.d[*axis])
                   ? number(x, &n->shape, *axis, block_number_of(&sums->block[0]))
                   : NULL;
    case OP_MUL:
        for (int i = 0; i < 2; i++)
            if (is_number(x, x->sums[n->in[i]])) {
                *axis = x->along[n->in[i]];
                return weighed(x, x->of[n->in[1 - i]], *axis, block_number_of(&x->sums[n->in[i]]->block[0]));
            }
        return NULL;
    default: return NULL;
    }
}
