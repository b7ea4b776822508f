/* growth_exact.c - two looks at one graph, which tell each other what they know.
 *
 * In:  what is known of a value when weights are anything, and when they are terms.   Out: the same, better known.
 * The one idea: "anything" has no name, so anything less itself is anything. The second look gives each block that no rule
 * covers a term of its own; what cancels there is zero, whatever the weights are, and what is one term is one value,
 * so that where data decides whether it is zero it does so wherever the value comes up again.
 */
#include "growth_rules.h"

enum {
    MOST_NAMES = 8
}; /* of one value; cut into more pieces it is told apart no further than where weights are anything */

void value_name(Values *e, GrowthValue *v)
{
    size_t part[MAX_RANK] = {0};
    do {
        GrowthBlock *b = value_block(v, part);
        if (b->kind != BLOCK_ANY)
            continue;
        Shape s = v->shape;
        for (int k = 0; k < s.rank; k++)
            if (v->axis[k].n > 1)
                s.d[k] = DIM(part_end(v, k, part[k]) - v->axis[k].at[part[k]]);
        const Attr own = {.i = EXT_INPUT, .j = (int64_t)e->terms->node.n};
        *b = block_whole(e, OP_EXT, &own, &s, DT_REAL);
    } while (value_next(v, part));
}

/* Where the block begins in its term, in one number. */
static uint64_t place_of(const GrowthValue *v, const GrowthBlock *b)
{
    uint64_t h = b->term;
    for (int k = 0; k < v->shape.rank; k++)
        h = (h ^ (uint64_t)b->from[k]) * 0x9e3779b97f4a7c15u;
    return (h ^ h >> 31) | 1;
}

/* One block of each: a number that one knows the other knows; what is said of a term to be a matter of data is so wherever the
 * term comes up again. */
static void exchange(Values *x, Values *e, const GrowthValue *of, GrowthBlock *a, GrowthBlock *b)
{
    if (block_is_number(x, a))
        *b = *a;
    else if (block_is_number(x, b))
        *a = *b;
    b->open = 0;
    if (a->kind != BLOCK_ANY || b->kind != BLOCK_TERM)
        return;
    void **said = map_at(&e->doubt, place_of(of, b));
    if (!*said)
        *said = (void *)(uintptr_t)(a->open | 1u << 16);
    a->open |= (uint16_t)((uintptr_t)*said & 0xffff);
}

void values_meet(Values *x, Values *e, Val at)
{
    GrowthValue *a = x->of[at], *b = e->of[at];
    if (a->n == 1 && b->n == 1) {
        GrowthBlock one = a->block[0], other = b->block[0];
        if (other.kind == BLOCK_ANY) {
            b = e->of[at] = value_uniform(e, &b->shape, other);
            value_name(e, b);
            other = b->block[0];
        }
        exchange(x, e, b, &one, &other);
        if (memcmp(&one, &a->block[0], sizeof one)) {
            x->of[at] = value_uniform(x, &a->shape, one);
            x->of[at]->alike = a->alike;
            x->of[at]->stays_alike = a->stays_alike;
        }
        if (memcmp(&other, &b->block[0], sizeof other))
            e->of[at] = value_uniform(e, &b->shape, other);
        return;
    }
    Cuts cuts[MAX_RANK];
    for (int k = 0; k < a->shape.rank; k++)
        cuts[k] = cuts_union(x, a->axis[k], b->axis[k]);
    GrowthValue *fine = value_refine(x, a, cuts);
    b = value_refine(e, b, cuts);
    for (size_t i = 0; i < fine->n; i++)
        if (block_is_number(x, &fine->block[i]))
            b->block[i] = fine->block[i];
    b = value_tidy(e, b);
    value_name(e, b);
    GrowthValue *named = value_refine(e, b, cuts);
    for (size_t i = 0; i < fine->n; i++)
        exchange(x, e, named, &fine->block[i], &named->block[i]);
    x->of[at] = fine = value_tidy(x, fine);
    e->of[at] = b;
    if (b->n > MOST_NAMES && b->n > fine->n) {
        e->of[at] = value_refine(e, fine, fine->axis);
        value_name(e, e->of[at]);
    }
    x->of[at]->alike = a->alike;
    x->of[at]->stays_alike = a->stays_alike;
}
