/* check_width.c - `geometric(...)`, `arithmetic(...)`, `constant(...)`: width schedules as lists.
 *
 * In:  the arguments of the call.   Out: a list with one width per layer (solve.c does the work).
 */
#include "check_prim.h"

#include "solve.h"

#include <math.h>

/* `rel`: the unit that argument i may have, 'd' or 'L'. */
static bool relative(PrimArgs *a, size_t i, char rel, double unit, double *out)
{
    Value v = a->v[i];
    if (v.kind == V_REL && v.rel != rel) {
        prim_fail(a, "E0207", i,
                  rel == 'd' ? "a width is a part of the base width such as `0.3d`, not of the layers"
                             : "a layer is a part of the depth such as `0.75L`, not of the width");
        return false;
    }
    if (v.kind == V_REL) {
        *out = v.num * unit;
        return true;
    }
    if (v.kind == V_NUM) {
        *out = v.num;
        return true;
    }
    prim_fail(a, "E0206", i, "expected a number or a relative length, got %s", value_kind_name(&v));
    return false;
}

static double spec_number(const Record *r, const char *name)
{
    for (size_t i = 0; i < r->n; i++)
        if (r->field[i].name && !strcmp(r->field[i].name, name))
            return r->field[i].value->num;
    return 0;
}

static bool read_match(PrimArgs *a, size_t i, WidthProblem *p)
{
    const Value *v = &a->v[i];
    if (v->kind == V_NONE)
        return true;
    if (v->kind == V_SPEC && !strcmp(v->record->name, "dense")) {
        p->match = MATCH_DENSE;
        p->mlp_matrices = spec_number(v->record, "mlp_matrices");
        p->expansion = spec_number(v->record, "expansion");
        return true;
    }
    if (v->kind == V_SPEC && !strcmp(v->record->name, "routed")) {
        p->match = MATCH_MOE;
        p->experts = spec_number(v->record, "experts");
        p->expert_ratio = spec_number(v->record, "ratio");
        return true;
    }
    prim_fail(a, "E0206", i, "`match` must be dense(...) or routed(...)");
    return false;
}

/* What to write in place of one argument that no schedule can have. */
static void advise(PrimArgs *a, Diag *d, const WidthAnswer *w, const WidthProblem *p)
{
    Ctx *ctx = a->ev->ctx;
    if (!strcmp(w->what, "at"))
        diag_help(ctx, d, "write a layer from 1 to %lld, or a part of the depth such as `at = 0.75L`",
                  (long long)p->layers);
    else if (!strcmp(w->what, "round") && p->round > 1)
        diag_help(ctx, d, "round to less than twice the width of the narrowest layer, or widen the bottleneck");
    else if (!strcmp(w->what, "round"))
        diag_help(ctx, d, "write `round = 1` or more; heads want a multiple of theirs");
}

static Value unsolved(PrimArgs *a, const WidthAnswer *w, const WidthProblem *p)
{
    static const char *const names[] = {"layers", "base", "bottleneck", "at", "match", "round", "first"};
    Span at = a->call->span;
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (!strcmp(names[i], w->what) && a->ast[i])
            at = a->span[i];
    Diag *d = err(a->ev, "E0401", at, "", "no width schedule satisfies these constraints");
    if (d->labels.n)
        d->labels.v[0].text = arena_copy(a->ev->arena, w->why, strlen(w->why));
    bool budget = !strcmp(w->what, "bottleneck") || !strcmp(w->what, "first");
    if (budget && p->match != MATCH_NONE && a->ast[4]) {
        diag_label(a->ev->ctx, d, a->span[4], "the parameter budget fixes the mean square width at %.6g", p->base);
        diag_help(a->ev->ctx, d, "for an x shape choose a bottleneck below 1.0d");
        diag_help(a->ev->ctx, d, "for a diamond give the most that layer 1 may have, `first = 1.0d`");
    }
    advise(a, d, w, p);
    return v_poison();
}

/* A bottleneck alone says nothing of the ends. */
static Value no_end(PrimArgs *a)
{
    Diag *d = err(a->ev, "E0104", a->call->span, "missing `match` or `first`", "`%s` needs `match` or `first`",
                  a->prim->name);
    diag_help(a->ev->ctx, d, "`first = 1.0d`: the width of layer 1");
    diag_help(a->ev->ctx, d,
              "`match = dense(mlp_matrices = 2, expansion = 4)`: as many weights as that many layers of one width");
    return v_poison();
}

static Value p_widths(PrimArgs *a)
{
    WidthProblem p = {.shape = a->prim->name[0] == 'g' ? WIDTH_GEOMETRIC : WIDTH_ARITHMETIC};
    double at;
    p.layers = (int64_t)a->v[0].num;
    p.base = a->v[1].num;
    if (p.layers < 1 || p.layers > 4096)
        return prim_fail(a, "E0401", 0, "`layers` must be from 1 to 4096");
    if (!relative(a, 2, 'd', p.base, &p.bottleneck) || !relative(a, 3, 'L', (double)p.layers, &at) ||
        !read_match(a, 4, &p))
        return v_poison();
    p.at = (int64_t)rint(at);
    p.round = (int64_t)a->v[5].num;
    if (a->v[6].kind != V_NONE && !relative(a, 6, 'd', p.base, &p.first))
        return v_poison();
    if (p.match == MATCH_NONE && a->v[6].kind == V_NONE)
        return no_end(a);
    Name order = a->v[7].kind == V_WORD ? a->v[7].word : "";
    p.round_early = !strcmp(order, "early");
    if (!p.round_early && strcmp(order, "late"))
        return prim_fail(a, "E0205", 7, "`order` must be `late` or `early`");
    WidthAnswer w = solve_widths(a->ev->arena, &p);
    if (w.why)
        return unsolved(a, &w, &p);
    Value *v = NEW_ARRAY(a->ev->arena, Value, (size_t)p.layers);
    for (int64_t i = 0; i < p.layers; i++)
        v[i] = v_num(w.width[i]);
    return v_list(a->ev, v, (size_t)p.layers);
}

static Value p_constant(PrimArgs *a)
{
    if (a->v[0].kind == V_NONE && a->v[1].kind != V_NONE)
        return prim_fail(a, "E0104", 0, "`constant` of a `width` needs `layers`"); /* at the call: there is none */
    if (a->v[0].kind == V_NONE)
        return prim_spec(a); /* a learning rate: constant(4e-4, warmup = ...) */
    int64_t n = (int64_t)a->v[0].num;
    if (n < 1 || n > 4096 || a->v[1].kind != V_NUM)
        return prim_fail(a, "E0401", 0, "`constant` needs layers (1 to 4096) and width");
    for (size_t k = 2; k < 4; k++)
        if (a->ast[k])
            return prim_fail(a, "E0206", k, "`constant` of layers is a list of widths: it has no `%s`",
                             k == 2 ? "peak" : "warmup");
    Value *v = NEW_ARRAY(a->ev->arena, Value, (size_t)n);
    for (int64_t i = 0; i < n; i++)
        v[i] = a->v[1];
    return v_list(a->ev, v, (size_t)n);
}

const Prim width_prims[] = {
    {"geometric",
     "layers: int, base: float, bottleneck: any, at: any, match: any = none, round: int = 1, first: any = none, order: "
     "word = late",
     p_widths, "widths that shrink to layer `at` and grow back by constant ratios", 0, false},
    {"arithmetic",
     "layers: int, base: float, bottleneck: any, at: any, match: any = none, round: int = 1, first: any = none, order: "
     "word = late",
     p_widths, "widths that shrink to layer `at` and grow back by constant differences", 0, false},
    {"constant", "layers: int = none, width: float = none, peak: number = none, warmup: length = none", p_constant,
     "one width for all layers; as a learning rate, constant(peak = ..., warmup = ...)", 0, false},
};
const size_t width_prim_count = COUNT_OF(width_prims);
