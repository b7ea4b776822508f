/* growth_proof.c - whether a growth step preserves the function, and whether what is new can learn.
 *
 * In:  a plan.   Out: a GrowthProof.
 * The one idea: the old graph is looked at with its weights as terms, the grown one with the same terms where weights
 * are old and with what `fill` says where they are new; outputs that come out as the same terms are the same function.
 * For life the gradient's graph is looked at, in which all that matters is what is zero; blocks with a gradient are
 * anything from the next update on.
 */
#include "growth_proof.h"

#include "growth_algebra.h"

/* The old tensor, with an axis of extent 1 in front where it becomes one of several copies. */
static GrowthBlock old_block(Values *x, const GrowthEntry *e)
{
    Attr a = {.i = e->before->buffer ? EXT_BUFFER : EXT_PARAM, .site = e->before->path};
    GrowthBlock b = block_whole(x, OP_EXT, &a, &e->before->shape, DT_REAL);
    Shape s = e->before->shape;
    if (e->after->shape.rank > s.rank) {
        memmove(s.d + 1, s.d, s.rank * sizeof *s.d);
        s.d[0] = DIM(1);
        s.rank++;
        b.term = term_reshape(x->terms, b.term, &s);
    }
    return b;
}

static GrowthValue *old_leaf(void *user, Values *x, Val v)
{
    (void)user;
    const Node *n = node_at(x->g, v);
    const Ext *e = &x->g->ext.v[n->a.i];
    return value_uniform(x, &n->shape,
                         block_whole(x, OP_EXT, &(Attr){.i = e->kind, .site = e->name}, &n->shape, DT_REAL));
}

/* Ones on the diagonal; what lies behind it in the longer axis is zero. */
static GrowthValue *identity(Values *x, const Shape *s)
{
    int64_t n = s->d[0].n < s->d[1].n ? s->d[0].n : s->d[1].n;
    Cuts cuts[MAX_RANK] = {{0}};
    for (int k = 0; k < 2; k++) {
        cuts[k] = (Cuts){NEW_ARRAY(x->arena, int64_t, 2), s->d[k].n > n ? 2 : 1};
        cuts[k].at[0] = 0;
        cuts[k].at[1] = n;
    }
    GrowthValue *v = value_cut(x, s, cuts);
    for (size_t i = 0; i < v->n; i++)
        v->block[i] = (GrowthBlock){.kind = BLOCK_ZERO};
    v->block[0] = (GrowthBlock){.kind = BLOCK_TERM, .term = term_identity(x->terms, n), .c = 1};
    return v;
}

/* What an initialisation gives a whole tensor. */
static GrowthValue *drawn(Values *x, const Param *p, const Init *init)
{
    enum { SMALL = 64 };
    GrowthBlock random = {.kind = BLOCK_ANY, .why = x->at};
    bool no_spread = (init->kind == INIT_NORMAL || init->kind == INIT_TRUNC_NORMAL) && init->a == 0;
    if (init->kind == INIT_FILL || no_spread)
        return value_uniform(x, &p->shape, block_number(x, p->shape.rank, no_spread ? 0 : init->a));
    if (init->kind == INIT_EYE && p->shape.rank == 2 && p->elements > SMALL && p->shape.d[0].n > 1 &&
        p->shape.d[1].n > 1)
        return identity(x, &p->shape);
    if ((init->kind != INIT_LIST && init->kind != INIT_EYE) || p->elements > SMALL)
        return value_uniform(x, &p->shape, random);
    Param q = *p;
    q.init = *init;
    double *data = NEW_ARRAY(x->arena, double, p->elements + 1);
    param_init(&q, 0, data);
    return value_table(x, &p->shape, data, (size_t)p->elements);
}

/* Cuts of roles: where parts of the plan begin. */
GrowthValue *growth_role_parts(Values *x, const GrowthEntry *e)
{
    Cuts cuts[MAX_RANK] = {{0}};
    for (int k = 0; k < e->after->shape.rank && e->kind != GROWTH_NEW && e->kind != GROWTH_CUT; k++) {
        cuts[k] = (Cuts){NEW_ARRAY(x->arena, int64_t, e->axis[k].n + 1), e->axis[k].n};
        for (size_t i = 0; i < e->axis[k].n; i++)
            cuts[k].at[i] = e->axis[k].part[i].at;
    }
    return value_cut(x, &e->after->shape, cuts);
}

/* What is known of a weight right after the step. */
GrowthValue *growth_fresh(Values *x, const Proof *p, const GrowthEntry *e)
{
    if (e->kind == GROWTH_NEW || e->kind == GROWTH_CUT)
        return drawn(x, e->after, e->kind == GROWTH_NEW ? &e->init[ROLE_OLD] : &e->after->init);
    int rank = e->after->shape.rank;
    Cuts cuts[MAX_RANK] = {{0}};
    const GrowthValue *fill[ROLE_OWN + 1] = {0};
    const GrowthValue *roles = growth_role_parts(x, e);
    memcpy(cuts, roles->axis, sizeof cuts);
    for (int r = ROLE_ENTRY; r <= ROLE_OWN; r++) {
        fill[r] = drawn(x, e->after, &e->init[r]);
        for (int k = 0; k < rank; k++)
            cuts[k] = cuts_union(x, cuts[k], fill[r]->axis[k]);
    }
    GrowthValue *out = value_cut(x, &e->after->shape, cuts);
    size_t part[MAX_RANK] = {0};
    do {
        int64_t at[MAX_RANK] = {0};
        size_t of[MAX_RANK] = {0};
        for (int k = 0; k < rank; k++) {
            at[k] = out->axis[k].at[part[k]];
            while (of[k] + 1 < roles->axis[k].n && roles->axis[k].at[of[k] + 1] <= at[k])
                of[k]++;
        }
        GrowthBlock *b = value_block(out, part);
        double c = growth_weight(e, of);
        if (!growth_taken(e, of)) {
            *b = block_at(x, fill[growth_role(e, of)], at);
        } else if (c == 0) {
            *b = (GrowthBlock){.kind = BLOCK_ZERO};
        } else if (p->old_known) {
            *b = old_block(x, e);
            b->c = c;
            for (int k = 0; k < rank; k++)
                if (block_varies(x, b, k))
                    b->from[k] = e->axis[k].part[of[k]].from + at[k] - e->axis[k].part[of[k]].at;
        }
    } while (value_next(out, part));
    out = value_tidy(x, out);
    for (size_t i = 0; rank > 0 && i < e->axis[0].n; i++)
        out->stays_alike |= e->axis[0].part[i].fresh && e->axis[0].part[i].from >= 0;
    out->alike = rank > 0 && (e->axis[0].spread || out->stays_alike);
    out->stays_alike &= !e->axis[0].spread;
    return out;
}

const GrowthEntry *growth_entry(const Proof *p, Name path)
{
    size_t i = (size_t)(uintptr_t)map_get(&p->entry, (uintptr_t)path);
    return i ? &p->plan->entry[i - 1] : NULL;
}

GrowthValue *growth_leaf(void *user, Values *x, Val v)
{
    Proof *p = user;
    const GrowthEntry *e = growth_entry(p, x->g->ext.v[node_at(x->g, v)->a.i].name);
    return !p->now ? growth_fresh(x, p, e) : (x->data ? p->now : p->named)[e - p->plan->entry];
}

/* ---- preservation ---- */

static bool is_old(const Values *x, Val v, Term last)
{
    for (size_t i = 0; i < x->of[v]->n; i++)
        if (x->of[v]->block[i].kind == BLOCK_ANY || x->of[v]->block[i].term > last)
            return false;
    return true;
}

/* The first value on the way to `output` that consists of old ones and that the old model has not. */
static Val find_departure(const Values *x, Val output, Term last, Arena *arena)
{
    bool *leads = NEW_ARRAY(arena, bool, (size_t)output + 1);
    leads[output] = true;
    for (Val v = output; v > 0; v--)
        for (size_t i = 0; leads[v] && i < node_at(x->g, v)->n_in; i++)
            leads[node_at(x->g, v)->in[i]] = true;
    for (Val v = 1; v <= output; v++) {
        bool made = leads[v] && node_at(x->g, v)->n_in > 0, old = true;
        for (size_t i = 0; made && i < node_at(x->g, v)->n_in; i++)
            old &= is_old(x, node_at(x->g, v)->in[i], last);
        for (size_t i = 0; made && old && i < x->of[v]->n; i++)
            if (x->of[v]->block[i].kind == BLOCK_TERM && x->of[v]->block[i].term > last)
                return v;
    }
    return 0;
}

/* A mean over a grown axis to which a constant is added, as norms do. */
static bool in_norm(const Values *x, Val v, GrowthProof *out)
{
    const Node *n = node_at(x->g, v);
    if (n->op != OP_ADD)
        return false;
    for (int depth = 0; n->n_in && depth < 4; depth++, n = node_at(x->g, n->in[0])) {
        if (n->op != OP_SUM)
            continue;
        const GrowthValue *in = x->of[n->in[0]];
        int k = 0;
        while (k + 1 < in->shape.rank && !(n->a.axes >> k & 1))
            k++;
        size_t part[MAX_RANK] = {0};
        for (; part[k] < in->axis[k].n; part[k]++)
            if (value_block(in, part)->kind != BLOCK_ZERO)
                out->mean_of += part_end(in, k, part[k]) - in->axis[k].at[part[k]];
        out->mean_over = in->shape.d[k].n;
        return out->mean_of < out->mean_over;
    }
    return false;
}

/* Whether two expressions differ in numbers alone. */
static bool differ_in_number(const TermNode *a, const TermNode *b)
{
    Attr plain = b->a;
    plain.x = a->a.x;
    if (a->op != b->op || a->n_in != b->n_in || !shape_eq(&a->shape, &b->shape) || !attr_same(&a->a, &plain))
        return false;
    for (uint16_t i = 0; i < a->n_in; i++)
        if (a->in[i].t != b->in[i].t)
            return false;
    return a->n_in > 0;
}

/* Whether the old model has what departs at `v`, but for a number in it. */
static bool has_other_number(const Values *x, Val v, Term last)
{
    for (size_t i = 0; i < x->of[v]->n; i++) {
        const GrowthBlock *b = &x->of[v]->block[i];
        for (Term old = 1; b->kind == BLOCK_TERM && b->term > last && old <= last; old++)
            if (differ_in_number(term_at(x->terms, b->term), term_at(x->terms, old)))
                return true;
    }
    return false;
}

/* What a model is for: its outputs; where it has none, its losses. */
static size_t result_count(const Model *m) { return m->output.n ? m->output.n : m->loss.n; }

static Val result_at(const Model *m, size_t i, Name *name)
{
    *name = m->output.n ? m->output.v[i].name : m->loss.v[i].name;
    return m->output.n ? m->output.v[i].value : m->loss.v[i].value;
}

/* The i-th of those with this name; 0: there is none. Losses of several heads may have one name. */
static Val result_named(const Model *m, Name name, size_t i)
{
    for (size_t k = 0; k < result_count(m); k++) {
        Name other;
        Val v = result_at(m, k, &other);
        if (other == name && i-- == 0)
            return v;
    }
    return 0;
}

/* A node as it is told of, when its graph is gone; NULL: of none. */
static const Node *place(const Graph *g, Val v, Arena *arena)
{
    Node *n = NEW(arena, Node);
    *n = *node_at(g, v);
    n->in = NULL;
    n->n_in = 0;
    return v ? n : NULL;
}

static void prove_preserved(Proof *p, GrowthProof *out, Arena *arena)
{
    const Model *a = p->plan->step->before, *b = p->plan->step->after;
    Terms *terms = terms_new(p->arena);
    p->old_known = true;
    const Val *was, *is;
    bool single = a->context == 1 && b->context == 1;
    const Graph *ga = growth_algebra(a->graph, single ? 1 : 0, false, p->arena, &was, NULL),
                *gb = growth_algebra(b->graph, single ? 1 : 0, false, p->arena, &is, NULL);
    const Values *had = values_find(p->arena, terms, ga, old_leaf, NULL, NULL, NULL);
    Term last = (Term)terms->node.n - 1;
    Values *has = values_find(p->arena, terms, gb, growth_leaf, p, had, NULL);
    out->preserved = true;
    for (size_t i = 0; i < result_count(a); i++) {
        Name name, other;
        Val before = was[result_at(a, i, &name)], why = 0;
        size_t earlier = 0;
        for (size_t k = 0; k < i; k++) {
            result_at(a, k, &other);
            earlier += other == name;
        }
        Val now = is[result_named(b, name, earlier)];
        double factor = 0;
        bool scales = now && value_scales(has, has->of[now], had->of[before], &factor, &why);
        out->factor = scales && (i == 0 || out->factor == factor) ? factor : 0;
        if (scales && factor > 1 - 1e-9 && factor < 1 + 1e-9)
            continue;
        if (out->preserved) {
            out->output = name;
            out->had = node_at(ga, before)->shape;
            out->there = now != 0;
            out->has = now ? node_at(gb, now)->shape : (Shape){0};
            const Node *leaf = why ? node_at(gb, why) : NULL;
            const GrowthEntry *e = leaf && leaf->op == OP_EXT ? growth_entry(p, gb->ext.v[leaf->a.i].name) : NULL;
            out->leak = e ? e->after : NULL;
            Val departs = now ? find_departure(has, now, last, p->arena) : 0;
            out->lost = e ? NULL : place(gb, why, arena);
            out->departs = place(gb, departs, arena);
            out->constant = departs && has_other_number(has, departs, last);
            out->in_norm = departs && in_norm(has, departs, out);
        }
        out->preserved = false;
    }
}

static GrowthProof *prove(Proof *p, Arena *arena)
{
    const GrowthPlan *plan = p->plan;
    GrowthProof *out = NEW(arena, GrowthProof);
    map_init(&p->entry, p->arena);
    out->life = NEW_ARRAY(arena, GrowthLife, plan->n + 1);
    for (size_t i = 0; i < plan->n; i++) {
        const GrowthEntry *e = &plan->entry[i];
        *map_at(&p->entry, (uintptr_t)e->path) = (void *)(uintptr_t)(i + 1);
        for (int r = ROLE_OLD; r <= ROLE_OWN; r++)
            out->life[i].after[r] = out->life[i].may[r] = NO_BLOCK;
        for (int k = 0; e->after && k < e->after->shape.rank; k++)
            out->recut = e->axis[k].recut && !out->recut ? e->after : out->recut;
    }
    prove_preserved(p, out, arena);
    growth_prove_life(p, out, arena);
    for (size_t i = 0; i < plan->n; i++)
        for (int r = ROLE_OLD; r <= ROLE_OWN; r++) {
            const GrowthLife *life = &out->life[i];
            if (life->after[r] == NO_BLOCK)
                continue;
            int after = life->after[r] == NEVER ? life->may[r] : life->after[r];
            out->blocks++;
            out->barred += life->bar[r] != BAR_NONE;
            if (life->bar[r] != BAR_NONE)
                continue;
            out->dead += after == NEVER;
            out->open += after != NEVER && life->after[r] == NEVER;
            out->alive_after = after == NEVER || out->alive_after == NEVER ? NEVER
                               : after > out->alive_after                  ? after
                                                                           : out->alive_after;
        }
    return out;
}

/* A look keeps the blocks of all values, so that many parts of an axis take much memory. */
GrowthProof *growth_prove(const GrowthPlan *plan, Arena *arena)
{
    Ctx *ctx = arena_ctx(arena);
    Proof *p = NEW(arena, Proof);
    *p = (Proof){.plan = plan, .arena = arena_new(ctx)};
    GrowthProof **out = NEW(arena, GrowthProof *);
    const size_t limit = ctx->byte_limit, most = ctx->bytes + ((size_t)PROOF_MIB << 20);
    CtxGuard guard;
    ctx->at_limit = false;
    ctx->byte_limit = limit && limit < most ? limit : most;
    bool whole = CTX_TRY(ctx, &guard);
    if (whole) {
        *out = prove(p, arena);
        ctx_leave(ctx, &guard);
    }
    ctx->byte_limit = limit;
    arena_free(p->arena);
    if (whole)
        return *out;
    if (p->pass)
        arena_free(p->pass);
    if (p->began)
        arena_free(p->began);
    if (!ctx->at_limit)
        ctx_raise_again(ctx);
    *out = NEW(arena, GrowthProof);
    (*out)->too_large = true;
    return *out;
}
