/* sizes.c - which sizes and offsets of a kernel are literals of its text, and which are arguments.
 *
 * In:  a term of an index form.     Out: yes or no.
 * The one idea: what differs between kernels of one structure is an argument, so that they share a text; what a
 * compiler must know to unroll and to keep in registers is part of the text. For extents ix_literal() of
 * graph/index.h decides.
 */
#include "kernel.h"

bool kernel_has_row_offset(const Kernel *k, const IxForm *f)
{
    for (uint32_t i = 0; i < f->n; i++) {
        const IxTerm *t = &f->t[i];
        if (t->var && t->mult == 1 && dim_eq(t->coef, DIM(1)) && ix_info(k->ix, t->var)->deps == ix_bit(k->ix, k->row))
            return true;
    }
    return false;
}

/* Places in what is written out are structure; a device has them in its instructions, as arguments they would take a
 * register each. */
bool kernel_is_argument(const Kernel *k, const IxTerm *t, bool away, bool device)
{
    int64_t m = t->mult < 0 ? -t->mult : t->mult;
    bool place = kernel_is_place(t);
    if (place && away && device)
        return true;
    if (device && m > LITERAL_MAX && m < k->unrolled)
        return false;
    return place ? !ix_literal(k->ix, DIM(m)) : m > LITERAL_MAX;
}

Dim kernel_array_size(const Kernel *k, const KArray *a)
{
    Dim n = DIM(1);
    for (uint32_t i = 0; i < a->nest.n; i++)
        if (!dim_mul(n, ix_info(k->ix, a->nest.var[i])->extent, &n))
            vwn_bug(k->ctx, "the size of a scratch array overflows");
    return n;
}
