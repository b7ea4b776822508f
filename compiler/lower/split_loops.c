/* split_loops.c - where loops are to be split, so that what is inside reads without division and without a test.
 *
 * In:  a kernel that is made with loops as they are.
 * Out: splits and segments of sites, for when it is made again.
 * The one idea: a quotient of a loop by a divisor of its extent asks for two loops, a test of a loop for
 * two pieces. Where one site has the loop it is known for whom it is split.
 */
#include "lower_build.h"

/* Whose loop it is, and how many elements a round is; NULL: several share it. */
static LowerSite *site_at(Lower *l, IVar v, Dim *below)
{
    LoopOwner of = v < l->owner.n ? l->owner.v[v] : (LoopOwner){.site = SEVERAL_SITES};
    bool one = of.site && of.site != SEVERAL_SITES && (l->searching || !l->k->product.n);
    l->unsure |= !one;
    *below = of.below;
    return one ? &l->site.v[of.site - 1] : NULL;
}

static bool is_split_loop(Dim extent, Dim inner)
{
    Dim outer;
    return dim_div(extent, inner, &outer) && !dim_eq(outer, DIM(1)) && !dim_eq(inner, DIM(1));
}

static bool is_segment(Dim extent, int64_t at) { return dim_static(extent) && at > 0 && at < extent.n; }

/* Where several sites share the loop it is not known for whom it is split, only that it is. */
static bool add_split(Lower *l, IVar v, Dim inner)
{
    Dim extent = ix_info(l->k->ix, v)->extent;
    if (!is_split_loop(extent, inner))
        return false;
    Dim below;
    LowerSite *s = site_at(l, v, &below);
    if (!s)
        return false;
    for (size_t i = 0; i < s->split.n; i++)
        if (dim_eq(s->split.v[i].extent, extent) && dim_eq(s->split.v[i].below, below))
            return false;
    vec_push(l->splits, &s->split, (LoopSplit){extent, below, inner});
    return true;
}

static bool add_segment(Lower *l, IVar v, Dim extent, int64_t at)
{
    if (l->unsplit || !is_segment(extent, at))
        return false;
    Dim below;
    LowerSite *s = site_at(l, v, &below);
    if (!s)
        return false;
    for (size_t i = 0; i < s->segment.n; i++)
        if (dim_eq(s->segment.v[i].extent, extent) && dim_eq(s->segment.v[i].below, below) && s->segment.v[i].at == at)
            return false;
    vec_push(l->splits, &s->segment, (Segment){extent, below, at});
    return true;
}

/* quotients of a loop variable by a divisor of its extent */
static bool cuts_in(Lower *l, Ix ix)
{
    IxTable *t = l->k->ix;
    bool found = false;
    for (uint32_t i = 0; i < ix_form(t, ix)->n; i++) {
        const IVarInfo *v = ix_info(t, ix_form(t, ix)->t[i].var);
        if (v->kind != IV_DIV && v->kind != IV_MOD)
            continue;
        found |= cuts_in(l, v->base);
        IVar of;
        int64_t c;
        if (ix_is_var(t, v->base, &of, &c) && c == 0 && ix_info(t, of)->kind == IV_LOOP)
            found |= add_split(l, of, v->by);
    }
    return found;
}

/* A test of a loop, or of the inner one of the two that a loop is split into. */
static bool segments_in(Lower *l, const KEx *test)
{
    IxTable *t = l->k->ix;
    IVar of;
    int64_t c, none;
    if (!ix_is_var(t, test->ix, &of, &c))
        return false;
    const IVarInfo *v = ix_info(t, of);
    Dim extent = v->kind == IV_MOD ? v->by : v->extent;
    bool inner = v->kind == IV_MOD && ix_is_var(t, v->base, &of, &none) && none == 0;
    if (ix_info(t, of)->kind != IV_LOOP || (v->kind == IV_MOD && !inner))
        return false;
    bool first = add_segment(l, of, extent, -c);
    return add_segment(l, of, extent, ix_dim_at(t, test->extent) - c) || first;
}

static bool is_divided(const IxTable *t, Ix ix)
{
    for (uint32_t i = 0; i < ix_form(t, ix)->n; i++) {
        IVarKind kind = ix_info(t, ix_form(t, ix)->t[i].var)->kind;
        if (kind == IV_DIV || kind == IV_MOD)
            return true;
    }
    return false;
}

static void visit(Lower *l, Ex e, bool *seen, bool *found, bool *row_work)
{
    Kernel *k = l->k;
    if (!e || seen[e])
        return;
    seen[e] = true;
    const KEx x = *kx(k, e);
    for (int i = 0; i < 3; i++)
        visit(l, x.in[i], seen, found, row_work);
    const IxForm *f = ix_form(k->ix, x.ix);
    for (uint32_t i = 0; i < f->n; i++) {
        const IVarInfo *v = ix_info(k->ix, f->t[i].var);
        if (v->kind == IV_VALUE) {
            visit(l, v->value, seen, found, row_work);
            *row_work = true;
        }
    }
    if (is_divided(k->ix, x.ix) || x.kind == KX_SELECT || x.kind == KX_INSIDE)
        *row_work = true;
    *found |= cuts_in(l, x.ix);
    if (x.kind == KX_INSIDE)
        *found |= segments_in(l, &x);
}

bool lower_find_splits(Lower *l, bool *row_work)
{
    bool *seen = NEW_ARRAY(l->arena, bool, l->k->ex.n), found = false;
    *row_work = false;
    for (size_t r = 0; r < l->k->root.n; r++) {
        visit(l, l->k->root.v[r].value, seen, &found, row_work);
        found |= cuts_in(l, l->k->root.v[r].at);
        *row_work = *row_work || is_divided(l->k->ix, l->k->root.v[r].at); /* a slot of a longer row */
    }
    return found;
}
