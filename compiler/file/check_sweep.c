/* check_sweep.c - the `sweep` nodes, elaborated.
 *
 * In:  a node, and what the command line adds.   Out: a SweepPlan: every point as settings of the file that is varied.
 * The one idea: a point is a list of `PATH=EXPR` as `--set` takes them, so what a sweep runs anybody can run alone. Axes that
 * move together, by `zip` or because they are drawn, are one dimension; points are the product of the dimensions.
 */
#include "check_fill.h"
#include "check_items.h"
#include "check_unit.h"
#include "check_sweep.h"

#include <math.h>

/* ---- values ---- */

/* A value whose text means the same in every file. */
static bool is_plain(const Value *v)
{
    if (v->kind == V_LIST)
        for (size_t i = 0; i < v->list->n; i++)
            if (!is_plain(&v->list->v[i]))
                return false;
    return v->kind == V_LIST || v->kind == V_NUM || v->kind == V_BOOL || v->kind == V_STR || v->kind == V_REL ||
           v->kind == V_QTY || v->kind == V_NONE;
}

static bool is_number(const Value *v) { return v->kind == V_NUM || v->kind == V_REL || v->kind == V_QTY; }

static const char *setting_text(Eval *ev, const Value *v, const Ast *written)
{
    return is_plain(v) ? value_text(ev, v) : expr_text(ev, written);
}

/* ---- axes ---- */

static Axis *axis_new(Sweep *s, const Ast *path, const Ast *expr, size_t n)
{
    Axis *a = &s->axis[s->n_axis++];
    *a = (Axis){.path = path, .expr = expr, .name = span_text(s->ev, path->span), .dim = -1};
    a->out.path = a->name;
    a->out.n = n;
    a->out.text = NEW_ARRAY(s->ev->arena, const char *, n);
    a->out.number = NEW_ARRAY(s->ev->arena, double, n);
    a->value = NEW_ARRAY(s->ev->arena, const Ast *, n);
    return a;
}

static void axis_value(Sweep *s, Axis *a, size_t k, const Value *v, const Ast *written)
{
    a->out.text[k] = setting_text(s->ev, v, written);
    a->out.number[k] = is_number(v) ? v->num : NAN;
    bool literal = written && (written->kind == AST_NUM || written->kind == AST_STR);
    a->value[k] = is_plain(v) && !literal ? NULL : written;
}

/* Messages about a value that was computed point at what it was computed from. */
static void put_at(Ast *e, Span at)
{
    e->span = e->name_span = at;
    for (uint32_t i = 0; i < e->n; i++)
        if (e->kid[i])
            put_at(e->kid[i], at);
}

/* Most points of a large sweep are never built, so a text is parsed for the first that is. */
static const Ast *axis_tree(Sweep *s, Axis *a, size_t k)
{
    Ctx *ctx = s->ev->ctx;
    if (!a->value[k]) {
        Ast *tree = vwn_parse_expr(ctx, source_add(ctx, "<sweep>", a->out.text[k], strlen(a->out.text[k])));
        bool literal = a->expr->kind == AST_LIST && a->expr->n == a->out.n;
        put_at(tree, literal ? a->expr->kid[k]->span : a->expr->span);
        a->value[k] = tree;
    }
    return a->value[k];
}

/* `[a, b]`, `1..8`, `range(...)`, a comprehension. */
static bool list_axis(Sweep *s, const Ast *path, const Ast *expr, const Value *v)
{
    Eval *ev = s->ev;
    bool literal = expr->kind == AST_LIST;
    Axis *a = axis_new(s, path, expr, v->list->n);
    for (size_t k = 0; k < v->list->n; k++) {
        const Value *x = &v->list->v[k];
        if (x->kind == V_POISON)
            return false;
        if (!literal && !is_plain(x)) {
            Diag *d = err(ev, "E0206", expr->span, "", "an axis of a sweep is a list of values, got %s in it",
                          value_kind_name(x));
            diag_help(ev->ctx, d, "write them out: `[a, b]`");
            return false;
        }
        if (k && (is_number(x) ? v->list->v[0].kind == V_STR : x->kind == V_STR && is_number(&v->list->v[0]))) {
            err(ev, "E0206", literal ? expr->kid[k]->span : expr->span, "",
                "values of the axis `%s` are of one kind, got %s and %s", a->name, value_kind_name(&v->list->v[0]),
                value_kind_name(x));
            return false;
        }
        axis_value(s, a, k, x, literal ? expr->kid[k] : NULL);
        for (size_t i = 0; i < k; i++)
            if (!strcmp(a->out.text[i], a->out.text[k])) {
                Diag *d = err(ev, "E0108", literal ? expr->kid[k]->span : expr->span, "given twice",
                              "the axis `%s` has the value %s twice", a->name, a->out.text[k]);
                diag_help(ev->ctx, d, "to run a point several times, give seeds: `seeds = [1, 2, 3]`");
                return false;
            }
    }
    return true;
}

/* An axis of one word is a let of the target; where another path leads the first point tells. */
static bool axis_fits(Sweep *s, const Ast *path)
{
    Eval *ev = s->ev;
    const char *name = span_text(ev, path->span);
    for (size_t i = 0; i < s->n_axis; i++)
        if (!strcmp(s->axis[i].name, name)) {
            Diag *d = err(ev, "E0108", path->span, "given twice", "the axis `%s` is given twice", name);
            diag_label(ev->ctx, d, s->axis[i].path->span, "first given here");
            return false;
        }
    if (s->n_axis == SWEEP_AXES_MOST)
        limit(ev, path->span, "sweep axes", SWEEP_AXES_MOST);
    if (path->n || map_get(&s->target->names, (uintptr_t)path->name))
        return true;
    override_unknown(ev, s->target, &(Override){.path = path, .span = path->span, .origin = s->vary});
    return false;
}

static bool add_axis(Sweep *s, const Ast *path, const Ast *expr, bool given)
{
    Eval *ev = s->ev;
    if (!axis_fits(s, path))
        return false;
    Value v = eval(ev, expr, s->file->env, NULL);
    if (v.kind == V_POISON)
        return false;
    if (v.kind == V_SPEC && !strcmp(v.record->name, "between"))
        return draw_axis(s, path, expr, &v);
    if (given && v.kind != V_LIST) { /* `--vary D=64` */
        Axis *a = axis_new(s, path, expr, 1);
        axis_value(s, a, 0, &v, expr);
        return true;
    }
    if (v.kind != V_LIST) {
        Diag *d =
            err(ev, "E0206", expr->span, "", "an axis of a sweep is a list of values, got %s", value_kind_name(&v));
        diag_help(
            ev->ctx, d,
            "for example `[256, 512]`, `range(1e-4, 1e-2, 5, scale = log)` or `between(1e-4, 1e-2, scale = log)`");
        return false;
    }
    if (!v.list->n) {
        Diag *d =
            err(ev, "E0709", expr->span, "an empty list", "the axis `%s` has no value", span_text(ev, path->span));
        diag_note(ev->ctx, d, "a sweep has a point for each combination of values, so this one has none");
        return false;
    }
    return list_axis(s, path, expr, &v);
}

/* Those of `vary { }`, but those that the command line gives or fixes. */
static bool vary_axes(Sweep *s, const Ast *items)
{
    for (uint32_t i = 0; items && i < items->n; i++) {
        const Ast *it = items->kid[i];
        if (it->kind == AST_OFF)
            continue;
        if (it->kind != AST_SET) {
            Diag *d = err(s->ev, "E0110", it->span, "", "`vary` holds `path = [values]`");
            const Ast *inner = it->kind == AST_NODE && it->kid[2] && it->kid[2]->n ? it->kid[2]->kid[0] : NULL;
            if (inner && inner->kind == AST_SET)
                diag_help(s->ev->ctx, d, "write the whole path: `%s.%s = %s`", it->kid[0]->name,
                          span_text(s->ev, inner->kid[0]->span), expr_text(s->ev, inner->kid[1]));
            return false;
        }
        if (!is_given(s, span_text(s->ev, it->kid[0]->span)) && !add_axis(s, it->kid[0], it->kid[1], false))
            return false;
    }
    return true;
}

/* ---- dimensions ---- */

Axis *sweep_axis_named(Sweep *s, const Ast *e)
{
    const char *name = expr_text(s->ev, e);
    for (size_t i = 0; i < s->n_axis; i++)
        if (!strcmp(s->axis[i].name, name))
            return &s->axis[i];
    Diag *d = err(s->ev, "E0105", e->span, "", "`%s` is no axis of this sweep", name);
    VEC(Name) names = {0};
    for (size_t i = 0; i < s->n_axis; i++)
        vec_push(s->ev->arena, &names, name_str(s->ev->ctx, s->axis[i].name));
    suggest(s->ev, d, name_str(s->ev->ctx, name), names.v, names.n, e->span);
    Buf all = buf_new(s->ev->arena);
    for (size_t i = 0; i < names.n; i++)
        buf_printf(&all, "%s`%s`", list_gap(i, names.n, " and "), names.v[i]);
    diag_note(s->ev->ctx, d, names.n == 1 ? "its axis is %s" : "its axes are %s", all.s);
    return NULL;
}

/* One list of `zip`: axes of as many values, which become one dimension. */
static bool zip_axes(Sweep *s, const Ast *list)
{
    Eval *ev = s->ev;
    Axis *first = NULL;
    for (uint32_t i = 0; i < list->n; i++) {
        if (is_given(s, expr_text(ev, list->kid[i])))
            continue; /* it moves by itself, or not at all */
        Axis *a = sweep_axis_named(s, list->kid[i]);
        if (!a)
            return false;
        if (a->dim >= 0 || a->out.drawn) {
            Diag *d =
                err(ev, "E0710", list->kid[i]->span, "",
                    a->out.drawn ? "the axis `%s` is drawn and cannot be zipped" : "the axis `%s` is zipped twice",
                    a->name);
            if (a->out.drawn)
                diag_note(ev->ctx, d, "all axes that are drawn move together already");
            return false;
        }
        if (first && first->out.n != a->out.n) {
            Diag *d = err(ev, "E0710", list->kid[i]->span, "",
                          "zipped axes need equally many values: `%s` has %zu, `%s` has %zu", first->name, first->out.n,
                          a->name, a->out.n);
            diag_label(ev->ctx, d, first->expr->span, "%zu values", first->out.n);
            diag_label(ev->ctx, d, a->expr->span, "%zu values", a->out.n);
            diag_help(ev->ctx, d, "for all combinations leave `zip` out");
            return false;
        }
        first = first ? first : a;
        a->dim = (int)s->n_dim;
    }
    if (first)
        s->dim[s->n_dim++] = (Dimension){.n = first->out.n};
    return true;
}

static bool zip_all(Sweep *s, const Ast *zip)
{
    if (!zip)
        return true;
    if (zip->kind != AST_LIST || !zip->n) {
        Diag *d = err(s->ev, "E0206", zip->span, "", "`zip` is a list of axes");
        diag_help(s->ev->ctx, d, "for example `zip = [d, L]`, or `zip = [[d, L], [lr, warmup]]`");
        return false;
    }
    bool nested = zip->kid[0]->kind == AST_LIST;
    for (uint32_t i = 0; nested && i < zip->n; i++)
        if (zip->kid[i]->kind != AST_LIST) {
            err(s->ev, "E0206", zip->kid[i]->span, "", "`zip` is a list of axes, or a list of such lists");
            return false;
        } else if (!zip_axes(s, zip->kid[i])) {
            return false;
        }
    return nested || zip_axes(s, zip);
}

/* Every axis gets its dimension, in the order in which they were written. */
static void order_dims(Sweep *s)
{
    int was[SWEEP_AXES_MOST], drawn = -1;
    Dimension dim[SWEEP_AXES_MOST];
    size_t n = 0;
    for (int i = 0; i < SWEEP_AXES_MOST; i++)
        was[i] = -1;
    for (size_t i = 0; i < s->n_axis; i++) {
        Axis *a = &s->axis[i];
        int *at = a->out.drawn ? &drawn : a->dim >= 0 ? &was[a->dim] : NULL;
        if (!at || *at < 0) {
            dim[n] = (Dimension){.n = a->out.n, .drawn = a->out.drawn};
            if (at)
                *at = (int)n;
            a->dim = (int)n++;
        } else {
            a->dim = *at;
        }
    }
    memcpy(s->dim, dim, n * sizeof *dim);
    s->n_dim = n;
}

/* ---- points ---- */

/* What the path names is known for lets at once, for attributes of nodes once they were built. */
static bool axes_used(Sweep *s, File *f, bool built)
{
    for (size_t i = 0; i < f->overrides.n; i++) {
        Override *o = &f->overrides.v[i];
        bool let = map_get(&f->names, (uintptr_t)o->path->name) != NULL;
        if (o->used || o->origin != s->vary || !(let || built))
            continue;
        override_unknown(s->ev, f, o);
        return false;
    }
    return true;
}

/* Whether all axes of a sweep that is about to run lead somewhere. What else is wrong with its first point the run of it says. */
static bool axes_lead(Sweep *s, File *f)
{
    Ctx *ctx = s->ev->ctx;
    size_t errors = diag_errors(ctx), filed = diag_count(ctx);
    Model *m = f->model_ast ? build_model(s->ev, f) : NULL;
    bool built = m && diag_errors(ctx) == errors, said = false;
    if (built && f->train_ast)
        build_train(s->ev, f, m);
    for (size_t i = 0; i < f->overrides.n; i++)
        said |= f->overrides.v[i].said && f->overrides.v[i].origin == s->vary;
    if (said)
        return false;
    built &= diag_errors(ctx) == errors;
    diag_truncate(ctx, filed);
    return axes_used(s, f, built);
}

/* The file of a point, without axes that move together (-1: with all). Right sides of settings are read where the lets of the target stand. */
static File *point_file(Sweep *s, const size_t *at, int without)
{
    size_t n = 0;
    Override *o = NEW_ARRAY(s->ev->arena, Override, s->n_set + s->n_axis + s->n_lets + 1);
    for (size_t i = 0; i < s->n_set; i++)
        o[n++] = s->set[i];
    for (size_t i = 0; i < s->n_axis; i++)
        if (s->axis[i].dim != without)
            o[n++] = (Override){.path = s->axis[i].path,
                                .expr = axis_tree(s, &s->axis[i], at[i]),
                                .span = s->axis[i].path->span,
                                .origin = s->vary};
    for (size_t i = 0; i < s->n_lets; i++)
        o[n++] = s->lets[i];
    File *f = file_again(s->ev, s->target, o, n);
    for (size_t i = 0; i < f->overrides.n; i++)
        if (!f->overrides.v[i].env)
            f->overrides.v[i].env = f->env;
    return f;
}

/* The train of a point; NULL where a message was filed, or where the file has none. */
static Train *build_point(Sweep *s, File *f, size_t errors)
{
    Ctx *ctx = s->ev->ctx;
    Model *m = build_model(s->ev, f);
    return m && f->train_ast && diag_errors(ctx) == errors ? build_train(s->ev, f, m) : NULL;
}

/* Whether the point has no message of this code without the axes of the dimension. */
static bool at_fault(Sweep *s, const size_t *at, int dim, const char *code)
{
    Ctx *ctx = s->ev->ctx;
    Diags *diags = ctx->diags; /* what is said without the axes is nobody's business */
    volatile bool still = true;
    CtxGuard guard;
    ctx->diags = NULL;
    if (CTX_TRY(ctx, &guard)) {
        build_point(s, point_file(s, at, dim), 0);
        still = false;
        for (size_t i = 0; i < diag_count(ctx); i++)
            still |= !strcmp(diag_get(ctx, i)->code, code);
        ctx_leave(ctx, &guard);
    }
    ctx->diags = diags;
    if (still && ctx->raised && ctx->raised != ST_INPUT)
        ctx_raise_again(ctx);
    return !still;
}

/* Marks the axes without which the message would not be there. */
static void mark_axes(Sweep *s, const size_t *at, Diag *d)
{
    for (size_t i = 0; i < s->n_axis; i++) {
        Span path = s->axis[i].path->span;
        if (path.file && at_fault(s, at, s->axis[i].dim, d->code))
            diag_related(s->ev->ctx, d, path, "the axis");
    }
}

/* Of a sweep that is about to run only whether its rungs fit: what else is wrong with a point its run says. */
static bool check_point(Sweep *s, File *f, const size_t *at)
{
    Ctx *ctx = s->ev->ctx;
    size_t errors = diag_errors(ctx), filed = diag_count(ctx);
    if (!f->model_ast)
        return true;
    Train *t = build_point(s, f, errors);
    bool sound = diag_errors(ctx) == errors;
    if (!s->checks)
        diag_truncate(ctx, filed);
    else if (!sound)
        override_notes(s->ev, f, NULL);
    for (size_t i = filed; i < diag_count(ctx); i++) {
        Diag *d = (Diag *)(uintptr_t)diag_get(ctx, i);
        diag_note(ctx, d, "at the point %s of the sweep", sweep_point_name(s, at));
        mark_axes(s, at, d);
    }
    if (t && sound)
        prune_fits(s, t);
    return diag_errors(ctx) == errors && (!s->checks || axes_used(s, f, true));
}

/* False: it is skipped, or a message was filed. */
static bool wanted(Sweep *s, File *f)
{
    if (!s->skip)
        return true;
    Value v = eval(s->ev, s->skip, f->env, NULL);
    if (v.kind != V_BOOL && v.kind != V_POISON)
        err(s->ev, "E0206", s->skip->span, "", "`skip` must be true or false, got %s", value_kind_name(&v));
    s->plan.skipped += v.kind == V_BOOL && v.num != 0;
    return v.kind == V_BOOL && v.num == 0;
}

static const char *let_setting(Sweep *s, File *f, const Override *let)
{
    Binding *b = map_get(&f->names, (uintptr_t)let->path->name);
    Value v = binding_get(s->ev, b, NULL);
    return arena_printf(s->ev->arena, "%s=%s", let->path->name, setting_text(s->ev, &v, let->expr));
}

/* One combination of values: `at` by axis. */
static void add_config(Sweep *s, const size_t *at)
{
    Eval *ev = s->ev;
    enum { MOST_BUILT = 8 }; /* every further point is checked when its run starts */
    bool first = !s->looked, build = (s->checks || s->plan.n_rungs) && s->configs.n < MOST_BUILT;
    File *f = first || build || s->skip || s->n_lets ? point_file(s, at, -1) : NULL;
    if (first) {
        s->looked = true;
        if (s->checks ? !axes_used(s, f, false) : !axes_lead(s, f))
            return;
        if (s->n_cli && s->target != s->file)
            check_overrides_used(ev, f, false, false);
    }
    if (diag_errors(ev->ctx) || (f && !wanted(s, f)))
        return;
    SweepPoint p = {.set = NEW_ARRAY(ev->arena, const char *, s->n_all + s->n_axis + s->n_lets + 1),
                    .at = NEW_ARRAY(ev->arena, size_t, s->n_axis + 1)};
    memcpy(p.at, at, s->n_axis * sizeof *at);
    p.name = sweep_point_name(s, at);
    void **known = map_at(&s->names, (uintptr_t)name_str(ev->ctx, p.name));
    if (*known) { /* a value that was drawn again */
        s->plan.repeated++;
        return;
    }
    *known = s;
    for (size_t i = 0; i < s->n_all; i++)
        p.set[p.n_set++] = s->all[i];
    for (size_t i = 0; i < s->n_axis; i++)
        p.set[p.n_set++] = arena_printf(ev->arena, "%s=%s", s->axis[i].name, s->axis[i].out.text[at[i]]);
    for (size_t i = 0; i < s->n_lets && f; i++)
        p.set[p.n_set++] = let_setting(s, f, &s->lets[i]);
    if (build && !check_point(s, f, at))
        return;
    p.config = s->configs.n;
    vec_push(ev->arena, &s->configs, p);
}

/* The last dimension moves fastest. */
static void all_configs(Sweep *s)
{
    size_t level[SWEEP_AXES_MOST] = {0}, at[SWEEP_AXES_MOST] = {0};
    int64_t n = 1;
    for (size_t i = 0; i < s->n_dim; i++)
        if (!mul_i64(n, (int64_t)s->dim[i].n, &n) || n > SWEEP_POINTS_MOST)
            limit(s->ev, s->plan.span, "points of a sweep", SWEEP_POINTS_MOST);
    for (int64_t k = 0; k < n && !diag_errors(s->ev->ctx); k++) {
        spend(s->ev, s->plan.span, 100);
        for (size_t i = 0; i < s->n_axis; i++)
            at[i] = level[s->axis[i].dim];
        add_config(s, at);
        for (size_t i = s->n_dim; i-- > 0 && ++level[i] == s->dim[i].n;)
            level[i] = 0;
    }
    if (s->configs.n || diag_errors(s->ev->ctx))
        return;
    Diag *d = err(s->ev, "E0709", s->skip->span, "true for all of them",
                  "all %lld points of the sweep `%s` are skipped", (long long)n, s->plan.name);
    diag_help(s->ev->ctx, d, "`skip` is true for the points that are left out");
}

/* ---- the items of a sweep ---- */

typedef struct Items {
    const Ast *vary, *zip, *random, *order, *seeds, *until, *prune, *report;
} Items;

/* `train.length = 500 steps`: a setting of all points, read where the attribute stands. */
static void fix_setting(Sweep *s, const Ast *it)
{
    const char *path = span_text(s->ev, it->kid[0]->span);
    for (size_t i = 0; i < s->n_fixed; i++)
        if (!strcmp(span_text(s->ev, s->fixed[i].path->span), path)) {
            Diag *d = err(s->ev, "E0108", it->kid[0]->span, "given twice", "`%s` is given twice", path);
            diag_label(s->ev->ctx, d, s->fixed[i].span, "first given here");
            return;
        }
    s->fixed[s->n_fixed++] =
        (Override){.path = it->kid[0], .expr = it->kid[1], .span = it->kid[0]->span, .origin = s->vary};
}

static void read_items(Sweep *s, const Ast *items, Items *out)
{
    const struct {
        const char *name;
        const Ast **where;
    } slot[] = {{"zip", &out->zip},     {"random", &out->random}, {"order", &out->order},   {"seeds", &out->seeds},
                {"until", &out->until}, {"prune", &out->prune},   {"report", &out->report}, {"skip", &s->skip}};
    for (uint32_t i = 0; items && i < items->n; i++) {
        const Ast *k = items->kid[i];
        if (k->kind == AST_NODE && !strcmp(k->kid[0]->name, "vary"))
            out->vary = k;
        else if (k->kind == AST_LET && let_exists(s->ev, s->target, k) && !let_again(s->ev, s->lets, s->n_lets, k))
            s->lets[s->n_lets++] = let_override(s->ev, s->file, k, "sweep");
        bool path = k->kind == AST_SET && k->kid[0]->n;
        if (path)
            fix_setting(s, k);
        for (size_t j = 0; k->kind == AST_SET && !path && j < COUNT_OF(slot); j++)
            if (!strcmp(k->kid[0]->name, slot[j].name))
                *slot[j].where = k->kid[1];
    }
    for (size_t i = 0; i < s->n_lets; i++)
        s->lets[i].env = NULL; /* they see the target's names */
}

/* A let, or a setting of all points, that is an axis, too. */
static bool lets_fit(Sweep *s)
{
    for (size_t i = 0; i < s->n_lets + s->n_fixed; i++) {
        const Override *o = i < s->n_lets ? &s->lets[i] : &s->fixed[i - s->n_lets];
        for (size_t k = s->n_given; k < s->n_axis; k++) /* those of the command line take its place */
            if (!strcmp(s->axis[k].name, span_text(s->ev, o->path->span))) {
                Diag *d = err(s->ev, "E0108", o->span, "given twice", "`%s` is an axis and set for all points",
                              s->axis[k].name);
                diag_label(s->ev->ctx, d, s->axis[k].path->span, "the axis");
                return false;
            }
    }
    return true;
}

/* Whether the whole of what `inner` leads into is `outer`'s. */
static bool holds(const char *outer, const char *inner)
{
    size_t n = strlen(outer);
    return !strncmp(outer, inner, n) && (inner[n] == '.' || inner[n] == '[');
}

/* An axis whose values take the place of what was set before, which would be without effect. */
static bool axes_keep(Sweep *s)
{
    Eval *ev = s->ev;
    for (size_t k = 0; k < s->n_axis; k++)
        for (size_t i = 0; i < s->n_set + k; i++) {
            bool set = i < s->n_set;
            const Ast *path = set ? s->set[i].path : s->axis[i - s->n_set].path;
            const char *inner = span_text(ev, path->span);
            if (!holds(s->axis[k].name, inner))
                continue;
            Diag *d = err(ev, "E0108", s->axis[k].path->span, "", "values of the axis `%s` take the place of `%s`",
                          s->axis[k].name, inner);
            diag_label(ev->ctx, d, path->span, set ? "set for all points" : "an axis before it");
            diag_help(ev->ctx, d, set ? "write it into the values" : "let `%s` come first", s->axis[k].name);
            return false;
        }
    return true;
}

/* Whether no `--set` gives one value to what `--vary` gives several. */
static bool is_free(Sweep *s, const Ast *path)
{
    const char *name = span_text(s->ev, path->span);
    for (size_t i = 0; i < s->n_cli; i++)
        if (!strcmp(name, span_text(s->ev, s->set[i].path->span))) {
            Diag *d = err(s->ev, "E0108", path->span, "given twice", "`%s` is set and varied", name);
            diag_label(s->ev->ctx, d, s->set[i].path->span, "one value for all points");
            diag_help(s->ev->ctx, d, "leave one of the two out");
            return false;
        }
    return true;
}

/* The settings that all points share: arguments of the import, then those of the command line. */
static bool shared_settings(Sweep *s, const SweepAsk *ask, const char *const *set, size_t n_set)
{
    Eval *ev = s->ev;
    const File *t = s->target;
    s->all = NEW_ARRAY(ev->arena, const char *, t->overrides.n + n_set + s->n_fixed + 1);
    s->set = NEW_ARRAY(ev->arena, Override, n_set + s->n_fixed + 1);
    for (size_t i = 0; i < t->overrides.n; i++) {
        const Override *o = &t->overrides.v[i];
        if (o->of_variant) /* it stands in the file that each point is a run of */
            continue;
        Value v = o->expr ? eval(ev, o->expr, o->env ? o->env : t->env, NULL) : o->value;
        s->all[s->n_all++] = arena_printf(ev->arena, "%s=%s", o->path->name, setting_text(ev, &v, o->expr));
    }
    for (size_t i = 0; i < n_set; i++) {
        if (!parse_setting(ev, set[i], "--set", &s->set[s->n_set]))
            return false;
        s->all[s->n_all++] = set[i];
        s->n_set++;
    }
    s->n_cli = s->n_set;
    for (size_t i = 0; ask && i < ask->n_vary; i++) {
        Override o;
        if (!parse_setting(ev, ask->vary[i], "--vary", &o) || !is_free(s, o.path) || !add_axis(s, o.path, o.expr, true))
            return false;
    }
    s->n_given = s->n_axis;
    for (size_t i = 0; i < s->n_fixed; i++) {
        const char *path = span_text(ev, s->fixed[i].path->span);
        if (is_given(s, path))
            continue;
        s->set[s->n_set++] = s->fixed[i];
        s->all[s->n_all++] = arena_printf(ev->arena, "%s=%s", path, expr_text(ev, s->fixed[i].expr));
    }
    size_t n = 0;
    for (size_t i = 0; i < s->n_lets; i++)
        if (!is_given(s, s->lets[i].path->name))
            s->lets[n++] = s->lets[i];
    s->n_lets = n;
    return true;
}

bool is_given(const Sweep *s, const char *path)
{
    for (size_t i = 0; i < s->n_given; i++)
        if (!strcmp(s->axis[i].name, path))
            return true;
    for (size_t i = 0; i < s->n_cli; i++)
        if (!strcmp(span_text(s->ev, s->set[i].path->span), path))
            return true;
    return false;
}

static void finish(Sweep *s, const Items *items, const SweepAsk *ask)
{
    SweepPlan *p = &s->plan;
    p->axis = NEW_ARRAY(s->ev->arena, SweepAxis, s->n_axis + 1);
    p->n_axis = s->n_axis;
    for (size_t i = 0; i < s->n_axis; i++) {
        p->axis[i] = s->axis[i].out;
        p->axis[i].dim = s->axis[i].dim;
    }
    p->configs = s->configs.n;
    sweep_points(s, items->order, items->seeds, ask ? ask->seeds : NULL);
    sweep_report(s, items->report);
    if (!diag_errors(s->ev->ctx))
        vec_push(s->ev->arena, &s->ev->unit->sweep, *p);
}

/* `it`: the node, NULL: what the command line says alone. Whether the file itself is varied. */
static bool sweep_one(Eval *ev, File *f, const Ast *it, const SweepAsk *ask, const char *const *set, size_t n_set)
{
    const Ast *items = it ? it->kid[2] : NULL;
    Sweep *s = NEW(ev->arena, Sweep);
    *s = (Sweep){.ev = ev, .file = f, .checks = !ask, .vary = name_str(ev->ctx, "vary")};
    s->plan.span = it ? it->kid[0]->span : f->model_ast ? f->model_ast->kid[0]->span : NO_SPAN;
    const Ast *label = it ? it->kid[1] : f->model_ast ? f->model_ast->kid[1] : NULL;
    s->plan.name = label ? label->name : name_str(ev->ctx, "sweep");
    attributes_fit(ev, items, "sweep");
    s->target = file_varied(ev, f, items);
    if (!s->target)
        return true;
    s->plan.file = s->target->path;
    s->plan.model = s->target->model_ast && s->target->model_ast->kid[1] ? s->target->model_ast->kid[1]->name : NULL;
    s->plan.hash = sweep_hash(s->target);
    s->axis = NEW_ARRAY(ev->arena, Axis, SWEEP_AXES_MOST);
    s->lets = NEW_ARRAY(ev->arena, Override, (items ? items->n : 0) + 1);
    s->fixed = NEW_ARRAY(ev->arena, Override, (items ? items->n : 0) + 1);
    map_init(&s->names, ev->arena);
    Items read = {0};
    read_items(s, items, &read);
    if (ask && ask->until)
        read.until = vwn_parse_expr(ev->ctx, source_add(ev->ctx, "<command line>", ask->until, strlen(ask->until)));
    if (ask && ask->random)
        read.random = vwn_parse_expr(ev->ctx, source_add(ev->ctx, "<command line>", ask->random, strlen(ask->random)));
    if (diag_errors(ev->ctx) || !sweep_draws(s, read.random) || !shared_settings(s, ask, set, n_set) ||
        !vary_axes(s, read.vary ? read.vary->kid[2] : NULL))
        return s->target == f;
    if (!s->n_axis && !(ask && ask->seeds) && !read.seeds) {
        Diag *d = err(ev, "E0104", it ? s->plan.span : NO_SPAN, "missing `vary`",
                      it ? "`sweep` needs `vary`" : "%s has no `sweep`, and no `--vary` is given", f->path);
        diag_help(ev->ctx, d, ask && !it ? "for example `--vary D=256,512`" : "for example `vary { D = [256, 512] }`");
        return s->target == f;
    }
    if (!draws_fit(s, read.random, ask && ask->random) || !zip_all(s, read.zip) || !lets_fit(s) || !axes_keep(s) ||
        !sweep_bounds(s, read.until, read.prune))
        return s->target == f;
    order_dims(s);
    all_configs(s);
    if (!diag_errors(ev->ctx))
        finish(s, &read, ask);
    return s->target == f;
}

void build_sweeps(Eval *ev, File *f)
{
    for (size_t i = 0; i < f->sweeps.n && !diag_errors(ev->ctx); i++)
        sweep_one(ev, f, f->sweeps.v[i], NULL, NULL, 0);
}

bool build_sweep(Eval *ev, File *f, const SweepAsk *ask, const char *const *set, size_t n_set)
{
    const Ast *node = f->sweeps.n == 1 || (f->sweeps.n && !ask->name) ? f->sweeps.v[0] : NULL;
    VEC(Name) names = {0};
    bool found = !ask->name && f->sweeps.n < 2;
    for (size_t i = 0; i < f->sweeps.n; i++) {
        const Ast *label = f->sweeps.v[i]->kid[1];
        vec_push(ev->arena, &names, label ? label->name : name_str(ev->ctx, "sweep"));
        if (ask->name && !strcmp(names.v[i], ask->name)) {
            node = f->sweeps.v[i];
            found = true;
        }
    }
    if (found)
        return sweep_one(ev, f, node, ask, set, n_set);
    Buf all = buf_new(ev->arena);
    for (size_t i = 0; i < names.n; i++)
        buf_printf(&all, "%s%s", i ? ", " : "", names.v[i]);
    if (!ask->name)
        ctx_raise(ev->ctx, ST_USAGE, "%s has %zu sweeps; say which: %s", f->path, names.n, all.s);
    Name near = nearest_name(name_str(ev->ctx, ask->name), names.v, names.n);
    if (ask->n_vary && strspn(ask->name, "0123456789.e-") == strlen(ask->name))
        ctx_raise(ev->ctx, ST_USAGE, "%s has no sweep `%s`; did you mean `--vary %s,%s`?", f->path, ask->name,
                  ask->vary[ask->n_vary - 1], ask->name);
    ctx_raise(ev->ctx, ST_USAGE, "%s has no sweep `%s`%s%s%s", f->path, ask->name,
              near      ? "; did you mean `"
              : names.n ? "; it has "
                        : "",
              near ? near : all.s, near ? "`?" : "");
}
