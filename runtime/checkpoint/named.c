/* named.c - see named.h. */
#include "named.h"

int named_shape(const Model *m, const ModelAlias *a, int64_t d[MAX_RANK])
{
    const Shape *s = &m->param.v[a->param].shape;
    const int skip = a->entry >= 0, rank = s->rank - skip;
    for (int k = 0; k < rank; k++)
        d[k] = s->d[k + skip].n;
    if (a->joined)
        d[rank - 1] = a->of;
    if (a->transposed) {
        int64_t last = d[rank - 1];
        d[rank - 1] = d[rank - 2];
        d[rank - 2] = last;
    }
    return rank;
}

void named_move(const Model *m, const ModelAlias *a, double *weight, double *tensor, bool out)
{
    const Param *p = &m->param.v[a->param];
    const int skip = a->entry >= 0, rank = p->shape.rank - skip;
    int64_t d[MAX_RANK], stride[MAX_RANK], at[MAX_RANK] = {0}, count = 1, step = 1, place;
    const int there = named_shape(m, a, d);
    for (int k = there - 1; k >= 0; k--) { /* of each axis of the model, in the tensor */
        int own = a->transposed && k >= rank - 2 ? 2 * rank - 3 - k : k;
        stride[own] = step;
        step *= d[k];
    }
    for (int k = 0; k < rank; k++)
        count *= p->shape.d[k + skip].n;
    weight += skip ? a->entry * count : 0;
    place = a->joined ? a->at * stride[rank - 1] : 0;
    for (int64_t i = 0; i < count; i++) {
        if (out)
            tensor[place] = weight[i];
        else
            weight[i] = tensor[place];
        for (int k = rank - 1; k >= 0; k--) {
            place += stride[k];
            if (++at[k] < p->shape.d[k + skip].n)
                break;
            place -= at[k] * stride[k];
            at[k] = 0;
        }
    }
}
