/* growth_life.c - whether what a growth step adds can learn.
 *
 * In:  a plan.   Out: for each new block after how many updates it has a gradient, whether that is a matter of data, and
 * what keeps it from moving all the same.
 * The one idea: of the gradient's graph all that matters is what is zero. It is taken of a graph without what cancels by
 * algebra, so that what a loss does not depend on has no gradient at all; blocks with a gradient are anything from the next
 * update on.
 */
#include "growth_proof.h"

#include "compiler/model/optimizer.h"
#include "growth_algebra.h"

#include <math.h>

enum { MOST_PASSES = 60 }; /* each changes a block, or it is the last; chains are short */

/* ---- what never moves ---- */

static bool never_above_zero(const HostExpr *e)
{
    HostRange vars[HV_COUNT];
    for (int k = 0; k < HV_COUNT; k++)
        vars[k] = (HostRange){0, 1e12, false};
    vars[HV_LENGTH].lo = vars[HV_PROGRESS].hi = 1;
    HostRange r = host_range(e, vars);
    return !r.nan && r.hi <= 0;
}

static const Optimizer *optimizer_of(const Train *t, size_t param)
{
    const Optimizer *o = &t->optimizer;
    return o->second && o->by_second[param] ? o->second : o;
}

/* What keeps all numbers of a weight from moving, in the whole run. */
static GrowthBar bar_always(const GrowStep *step, const GrowthEntry *e)
{
    const Train *t = step->train;
    size_t i = (size_t)(e->after - step->after->param.v);
    if (!t)
        return BAR_NONE;
    const Optimizer *o = &t->optimizer, *of = optimizer_of(t, i);
    if (o->frozen && o->frozen[i])
        return BAR_FROZEN;
    bool stays = (o->lr_scale && o->lr_scale[i] == 0) || (of->lr && never_above_zero(of->lr));
    return stays ? BAR_RATE : BAR_NONE;
}

/* What keeps numbers of a weight from moving, whatever their gradient is: those that it has from the step on, or the others. */
static GrowthBar bar_of(const GrowStep *step, const GrowthEntry *e, bool fresh)
{
    double x;
    const PartRate *part = fresh ? &step->fresh : &step->old;
    GrowthBar bar = bar_always(step, e);
    return bar == BAR_NONE && part->said && host_is_const(part->scale, &x) && x == 0 ? BAR_RATE : bar;
}

/* Whether numbers of it get smaller without a gradient. */
static bool decays(const GrowStep *step, const GrowthEntry *e)
{
    size_t i = (size_t)(e->after - step->after->param.v);
    const Optimizer *o = step->train ? &step->train->optimizer : NULL;
    return o && o->decay && o->decay[i] > 0;
}

/* Numbers that the file itself declares to stay are not asked. */
static bool is_asked(const GrowthEntry *e) { return e->after && !e->after->buffer && !e->after->frozen; }

/* ---- blocks ---- */

/* Whether a part of a gradient that may be zero, as data is, lies within one of which some are not. */
static bool is_open(const GrowthValue *d, size_t i)
{
    const GrowthBlock *b = &d->block[i];
    bool open = b->open >> OPEN_FOR_GOOD & 1;
    for (int k = d->shape.rank - 1; k >= 0; k--) {
        open |= (b->open >> k & 1) && d->axis[k].n > 1;
        i /= d->axis[k].n;
    }
    return open;
}

/* How unsure it is that a part of a gradient is not zero: by chance, as data is. */
typedef enum Doubt { DOUBT_NONE, DOUBT_CHANCE, DOUBT_DATA } Doubt;
static Doubt doubt_of(const GrowthValue *d, size_t i)
{
    return is_open(d, i) ? DOUBT_DATA : d->block[i].open >> OPEN_CHANCE & 1 ? DOUBT_CHANCE : DOUBT_NONE;
}

/* Blocks of *now that have a gradient, or decay, become anything; true: there are some that were not. */
static bool let_learn(Values *x, GrowthValue **now, const GrowthValue *grad, bool decays)
{
    Cuts cuts[MAX_RANK];
    bool some = false, alike = (*now)->alike, stays = (*now)->stays_alike;
    for (int k = 0; k < grad->shape.rank; k++)
        cuts[k] = cuts_union(x, (*now)->axis[k], grad->axis[k]);
    GrowthValue *v = value_refine(x, *now, cuts);
    const GrowthValue *d = value_refine(x, grad, cuts);
    for (size_t i = 0; i < v->n; i++) {
        GrowthBlock *b = &v->block[i];
        bool moves = d->block[i].kind != BLOCK_ZERO;
        if (!moves && decays && b->kind == BLOCK_TERM) {
            *b = (GrowthBlock){.kind = BLOCK_ANY, .why = x->at};
            some = true;
        }
        some |= alike && !stays && moves;
        Doubt doubt = moves ? doubt_of(d, i) : DOUBT_DATA, had = doubt_of(v, i);
        if (!moves || (b->kind == BLOCK_ANY && (doubt >= had || !b->open)))
            continue;
        uint16_t left = doubt == DOUBT_CHANCE                          ? 1u << OPEN_CHANCE
                        : doubt == DOUBT_DATA && b->kind == BLOCK_ZERO ? d->block[i].open
                                                                       : 0;
        *b = (GrowthBlock){.kind = BLOCK_ANY, .why = x->at, .open = left};
        some = true;
    }
    *now = value_tidy(x, v);
    (*now)->alike = alike && (stays || !some);
    (*now)->stays_alike = stays;
    return some;
}

static GrowthRole role_of(const GrowthEntry *e, const GrowthValue *parts, const int64_t *at)
{
    size_t of[MAX_RANK] = {0};
    for (int k = 0; k < e->after->shape.rank; k++)
        while (of[k] + 1 < parts->axis[k].n && parts->axis[k].at[of[k] + 1] <= at[k])
            of[k]++;
    return growth_role(e, of);
}

/* Notes the pass in the blocks of *seen that have a gradient now: 1 more than it in `why`, and in `from[0]` where it may; a bit in
 * `from[1]` where not even chance decides. */
static void note_life(Values *x, GrowthValue **seen, const GrowthValue *grad, int pass)
{
    Cuts cuts[MAX_RANK];
    for (int k = 0; k < grad->shape.rank; k++)
        cuts[k] = cuts_union(x, (*seen)->axis[k], grad->axis[k]);
    *seen = value_refine(x, *seen, cuts);
    const GrowthValue *d = value_refine(x, grad, cuts);
    for (size_t i = 0; i < d->n; i++) {
        GrowthBlock *b = &(*seen)->block[i];
        if (d->block[i].kind == BLOCK_ZERO)
            continue;
        if (!b->from[0])
            b->from[0] = pass + 1;
        Doubt doubt = doubt_of(d, i);
        if (!b->why && doubt != DOUBT_DATA)
            b->why = (Val)pass + 1;
        b->from[1] |= doubt == DOUBT_NONE ? 1ll << pass : 0;
    }
}

static int later(int a, int b) { return a == NEVER || b == NEVER ? NEVER : a > b ? a : b; }

/* Whether more is the same within one than within the other, as far as is seen. */
static bool looks_other(const Values *x, const GrowthValue *a, const GrowthValue *b)
{
    if (a->n != b->n)
        return true;
    for (size_t i = 0; i < a->n; i++)
        for (int k = 0; k < a->shape.rank; k++)
            if (a->block[i].kind != b->block[i].kind ||
                block_varies(x, &a->block[i], k) != block_varies(x, &b->block[i], k))
                return true;
    return false;
}

/* Blocks of *named that have a gradient get new names: of what they were and of their gradient, so that what was the same and
 * is moved in the same way stays that. true: something is no longer the same as something else. */
static bool move_named(Values *x, const GrowStep *step, const GrowthEntry *e, GrowthValue **named, Val grad)
{
    const Values *exact = x->exact;
    Cuts cuts[MAX_RANK];
    const GrowthValue *parts = growth_role_parts(x, e);
    bool first = false,
         matrix =
             step->train && !strcmp(optimizer_of(step->train, (size_t)(e->after - step->after->param.v))->kind, "muon");
    for (int k = 0; k < (*named)->shape.rank; k++)
        cuts[k] = cuts_union(x, parts->axis[k], cuts_union(x, (*named)->axis[k], exact->of[grad]->axis[k]));
    GrowthValue *v = value_refine(x, *named, cuts);
    const GrowthValue *d = value_refine(x, exact->of[grad], cuts);
    size_t part[MAX_RANK] = {0};
    do {
        int64_t at[MAX_RANK];
        for (int k = 0; k < v->shape.rank; k++)
            at[k] = v->axis[k].at[part[k]];
        GrowthBlock *b = value_block(v, part);
        bool old = !growth_added(e) && e->kind != GROWTH_CUT && role_of(e, parts, at) == ROLE_OLD;
        bool moves = value_block(d, part)->kind != BLOCK_ZERO || (decays(step, e) && b->kind != BLOCK_ZERO);
        if (!moves || bar_of(step, e, !old) != BAR_NONE)
            continue;
        first |= b->kind != BLOCK_TERM || !term_is_updated(x->terms, b->term, e->path);
        GrowthBlock moved = block_updated(x, *b, *value_block(d, part), v->shape.rank, e->path, old);
        *b = matrix && v->n > 1 ? (GrowthBlock){.kind = BLOCK_ANY, .why = x->at}
                                : moved; /* what moves as a whole stays alike as a whole */
    } while (value_next(v, part));
    v = value_tidy(x, v);
    value_name(x, v);
    bool other = first || looks_other(x, v, *named);
    *named = v;
    return other;
}

/* The new cells of a weight. `ever`: the gradient when no weight is zero, NULL: the loss does not depend on it. What is zero
 * there is zero whatever it is filled with; it counts where that is a whole block. */
static void list_cells(Values *x, const GrowthEntry *e, const GrowthValue *seen, const GrowthValue *ever,
                       GrowthLife *life, Arena *arena)
{
    const GrowthValue *parts = growth_role_parts(x, e);
    bool some[ROLE_OWN + 1] = {0};
    for (int barren = 0; barren < 2; barren++) {
        size_t part[MAX_RANK] = {0};
        do {
            const GrowthBlock *b = value_block(seen, part);
            GrowthCell c = {
                .role = ROLE_OLD, .after = (int)b->why - 1, .may = (int)b->from[0] - 1, .sure = (uint64_t)b->from[1]};
            for (int k = 0; k < seen->shape.rank; k++) {
                c.at[k] = seen->axis[k].at[part[k]];
                c.count[k] = part_end(seen, k, part[k]) - c.at[k];
            }
            if (!growth_added(e) && e->kind != GROWTH_CUT && (c.role = role_of(e, parts, c.at)) == ROLE_OLD)
                continue;
            bool never = !ever || block_at(x, ever, c.at).kind == BLOCK_ZERO;
            if (never != barren || (barren && some[c.role]))
                continue;
            some[c.role] |= !barren;
            life->bar[c.role] = barren && !life->bar[c.role] ? BAR_SHAPE : life->bar[c.role];
            int *after = &life->after[c.role], *may = &life->may[c.role];
            *after = *after == NO_BLOCK ? c.after : later(*after, c.after);
            *may = *may == NO_BLOCK ? c.may : later(*may, c.may);
            vec_push(arena, &life->cell, c);
        } while (value_next(seen, part));
    }
}

/* ---- passes ---- */

/* The graph of the loss, as it is computed in training or without what cancels in it, and its gradients; grad[i]: that of entry i, 0:
 * the loss does not depend on it. */
static const Graph *gradients(const Proof *p, bool plain, DataFacts *data, Val *grad)
{
    const GrowthPlan *plan = p->plan;
    Graph *g = step_trained(plan->step->after, p->arena);
    if (!plain)
        g = growth_algebra(g, data->positions, true, p->arena, NULL, &data->range);
    data->n_range = plain ? 0 : g->node.n;
    Val loss = 0, *leaf = NEW_ARRAY(p->arena, Val, plan->n + 1), *d = NEW_ARRAY(p->arena, Val, plan->n + 1);
    for (size_t i = 0; i < g->out.n; i++)
        if (!strcmp(g->out.v[i].name, "loss"))
            loss = g->out.v[i].value;
    size_t n = 0, *at = NEW_ARRAY(p->arena, size_t, plan->n + 1);
    for (Val v = 1; v < (Val)g->node.n; v++) {
        const Ext *e = node_at(g, v)->op == OP_EXT ? &g->ext.v[node_at(g, v)->a.i] : NULL;
        if (e && e->kind == EXT_PARAM) {
            at[n] = (size_t)(growth_entry(p, e->name) - plan->entry);
            leaf[n++] = v;
        }
    }
    graph_gradient(g, loss, leaf, n, d);
    for (size_t i = 0; i < n; i++)
        grad[at[i]] = d[i];
    return g;
}

void growth_prove_life(Proof *p, GrowthProof *out, Arena *arena)
{
    const GrowthPlan *plan = p->plan;
    const Model *m = plan->step->after;
    for (size_t i = 0; i < m->loss.n; i++)
        out->trained |= m->loss.v[i].trained;
    if (!out->trained)
        return;
    DataFacts data = {.positions = plan->step->train ? plan->step->train->context : m->context};
    Val *grad = NEW_ARRAY(p->arena, Val, plan->n + 1);
    const Graph *g = gradients(p, true, &data, grad);
    Terms *terms = terms_new(p->arena);
    Values first = {.arena = p->arena, .terms = terms, .g = g};
    GrowthValue **seen = NEW_ARRAY(p->arena, GrowthValue *, plan->n + 1),
                **now = NEW_ARRAY(p->arena, GrowthValue *, plan->n + 1);
    GrowthValue **named = NEW_ARRAY(p->arena, GrowthValue *, plan->n + 1);
    p->now = now;
    p->named = named;
    for (size_t i = 0; i < plan->n; i++)
        if (plan->entry[i].after) {
            p->old_known = true;
            named[i] = growth_fresh(&first, p, &plan->entry[i]);
            value_name(&first, named[i]);
            p->old_known = false;
            now[i] = growth_fresh(&first, p, &plan->entry[i]);
            bool declared =
                bar_always(plan->step, &plan->entry[i]) != BAR_NONE; /* what is old may be as it was declared: 0 */
            for (size_t k = 0; k < now[i]->n && declared; k++)
                now[i]->block[k].open |= now[i]->block[k].kind == BLOCK_ANY ? 1u << OPEN_CHANCE : 0;
        }
    Val undefined = values_find(p->arena, terms, g, growth_leaf, p, NULL, &data)->undefined;
    if (undefined)
        out->undefined = node_at(g, undefined)->name ? node_at(g, undefined)->name : "the model";
    memset(grad, 0, plan->n * sizeof *grad);
    first.g = g = gradients(p, false, &data, grad);
    GrowthValue **fresh = now;
    p->now = p->named = NEW_ARRAY(p->arena, GrowthValue *, plan->n + 1);
    for (size_t i = 0; i < plan->n; i++)
        if (plan->entry[i].after)
            p->now[i] = value_uniform(&first, &plan->entry[i].after->shape, (GrowthBlock){.kind = BLOCK_ANY});
    const Values *ever = values_find(p->arena, terms, g, growth_leaf, p, NULL, &data);
    p->now = now = fresh;
    p->named = named;
    for (size_t i = 0; i < plan->n; i++) {
        const GrowthEntry *e = &plan->entry[i];
        if (!e->after)
            continue;
        seen[i] = growth_role_parts(&first, e); /* at 0: no `why` */
        Cuts cuts[MAX_RANK];
        for (int k = 0; k < e->after->shape.rank && grad[i]; k++)
            cuts[k] = cuts_union(&first, seen[i]->axis[k], ever->of[grad[i]]->axis[k]);
        if (grad[i])
            seen[i] = value_refine(&first, seen[i], cuts);
    }
    bool changed = true;
    int pass = 0;
    for (; changed && pass < MOST_PASSES; pass++) {
        p->pass = arena_new(arena_ctx(p->arena));
        Values *x = values_find(p->pass, terms, g, growth_leaf, p, NULL, &data);
        changed = false;
        for (size_t i = 0; i < plan->n; i++) {
            const GrowthEntry *e = &plan->entry[i];
            if (!grad[i])
                continue;
            note_life(x, &seen[i], x->of[grad[i]], pass);
            if (!is_asked(e))
                continue;
            if (bar_of(plan->step, e, true) == BAR_NONE)
                changed |= let_learn(x, &now[i], x->of[grad[i]], decays(plan->step, e));
            changed |= move_named(x, plan->step, e, &named[i], grad[i]);
        }
        for (size_t i = 0; i < plan->n; i++)
            if (grad[i]) {
                seen[i] = value_copy(p->arena, seen[i]);
                now[i] = value_copy(p->arena, now[i]);
                named[i] = value_copy(p->arena, named[i]);
            }
        if (data.began)
            arena_free(p->pass);
        else
            p->began = p->pass;
        p->pass = NULL;
        data.began = data.began ? data.began : x;
    }
    for (size_t i = 0; i < plan->n; i++) {
        const GrowthEntry *e = &plan->entry[i];
        if (!is_asked(e) || !e->after->elements)
            continue;
        for (int r = ROLE_OLD; r <= ROLE_OWN; r++)
            out->life[i].bar[r] = bar_of(plan->step, e, true);
        out->life[i].passes = pass;
        list_cells(&first, e, seen[i], grad[i] ? ever->of[grad[i]] : NULL, &out->life[i], arena);
    }
    arena_free(p->began);
    p->began = NULL;
}

/* Whether after so many updates some of a role has a gradient, whatever comparisons give. */
static bool is_sure(const GrowthLife *life, GrowthRole role, int pass)
{
    int at = pass < life->passes ? pass : life->passes - 1;
    for (size_t i = 0; at >= 0 && i < life->cell.n; i++)
        if (life->cell.v[i].role == role && life->cell.v[i].sure >> at & 1)
            return true;
    return false;
}

GrowthContradiction growth_contradiction(const GrowthLife *life, GrowthRole role, const double *norm, int n,
                                         double most, bool moved, int *at)
{
    int first = INT32_MAX;
    for (size_t i = 0; i < life->cell.n; i++)
        if (life->cell.v[i].role == role && life->cell.v[i].may != NEVER && life->cell.v[i].may < first)
            first = life->cell.v[i].may;
    for (*at = 0; *at < n; ++*at)
        if (norm[*at] > 1e-6 * (most + 1e-30) && *at < first)
            return life->after[role] == NO_BLOCK ? FITS : HAS_ONE;
    for (*at = 0; *at < (moved ? n : 1); ++*at)
        if (is_sure(life, role, *at)) {
            bool none = true; /* from here on: updates of one size may once meet 0 */
            for (int k = *at; k < n && none; k++)
                none = norm[k] == 0 && is_sure(life, role, k);
            if (none || (*at == 0 && norm[0] == 0))
                return HAS_NONE;
        }
    return FITS;
}
