/* check_grow.c - the `grow` nodes, elaborated.
 *
 * In:  the node and the file.   Out: GrowStep records; grown models are shape-checked.
 * The one idea: a step is the same file with other lets, so it is evaluated like an import with
 * arguments; steps build on each other in the order of the file.
 */
#include "check_claim.h"
#include "check_fill.h"
#include "check_items.h"
#include "compiler/front/check_prim.h"
#include "check_train.h"

#include <math.h>

File *file_varied(Eval *ev, File *f, const Ast *items)
{
    for (uint32_t i = 0; items && i < items->n; i++) {
        const Ast *it = items->kid[i];
        if (it->kind != AST_SET || it->kid[0]->n || strcmp(it->kid[0]->name, "of"))
            continue;
        Value v = eval(ev, it->kid[1], f->env, NULL);
        if (v.kind == V_FILE)
            return v.file;
        if (v.kind != V_POISON)
            err(ev, "E0206", it->kid[1]->span, "", "`of` must be an imported file, got %s", value_kind_name(&v));
        return NULL;
    }
    return f;
}

Override let_override(Eval *ev, File *f, const Ast *let, const char *what)
{
    Ast *path = NEW(ev->arena, Ast);
    *path = (Ast){.kind = AST_PATH, .name = let->name, .span = let->name_span, .name_span = let->name_span};
    LineCol at = source_position(ev->ctx, let->span.file, let->span.lo);
    return (Override){.path = path,
                      .expr = let->kid[1],
                      .env = f->env,
                      .span = let->name_span,
                      .origin = name_printf(ev->ctx, "%s at %s:%u:%u", what, f->path, at.line, at.column)};
}

bool let_exists(Eval *ev, File *target, const Ast *let)
{
    if (map_get(&target->names, (uintptr_t)let->name))
        return true;
    Diag *d = err(ev, "E0115", let->name_span, "", "%s has no let `%s`", target->path, let->name);
    VEC(Name) names = {0};
    for (size_t k = 0; k < target->lets.n; k++)
        vec_push(ev->arena, &names, target->lets.v[k]->name);
    suggest(ev, d, let->name, names.v, names.n, let->name_span);
    return false;
}

/* When the step happens: fills `when` or `plateau`, or neither for the start. `was`: the training before it. */
static void trigger(Eval *ev, File *f, const Ast *items, const Train *was, GrowStep *g)
{
    for (uint32_t i = 0; items && i < items->n; i++) {
        const Ast *it = items->kid[i];
        if (it->kind != AST_SET || it->kid[0]->n || strcmp(it->kid[0]->name, "when"))
            continue;
        if (it->kid[1]->kind == AST_ID && !strcmp(it->kid[1]->name, "start"))
            return;
        Value v = eval(ev, it->kid[1], f->env, NULL);
        if (v.kind == V_HOST && is_host_truth(&v)) {
            g->when = v.host;
        } else if (v.kind == V_SPEC && !strcmp(v.record->name, "plateau")) {
            g->plateau = plateau_of(ev, &v, it->kid[1]->span, was);
        } else if (v.kind != V_POISON) {
            Diag *d = err(ev, "E0206", it->kid[1]->span, "", "`when` must be a condition on the run, got %s",
                          value_kind_name(&v));
            diag_help(
                ev->ctx, d,
                "for example `when = step >= 10k`, `when = progress >= 50%%`, `when = tokens >= 1B` or `when = start`");
        }
        return;
    }
    for (uint32_t i = 0; items && i < items->n; i++)
        if (items->kid[i]->kind == AST_SET && attribute_means(items->kid[i]->kid[0]->name, "when"))
            return; /* at = 25, which is said */
    Diag *d = err(ev, "E0104", g->span, "missing `when`", "`grow %s` needs `when`", g->name);
    diag_help(ev->ctx, d, "for example `%s`", attribute_find("grow", "when")->example);
}

static void inner_nodes(Eval *ev, const Ast *items)
{
    for (uint32_t i = 0; items && i < items->n; i++) {
        const Ast *it = items->kid[i];
        const NodeDoc *node = it->kind == AST_NODE && !it->kid[0]->n ? node_doc_find(it->kid[0]->name) : NULL;
        if (node && node_stands_in(node, "grow") && strcmp(node->name, "train") != 0)
            attributes_fit(ev, it->kid[2], node->name);
    }
}

/* A let that is given twice in one step or sweep. */
bool let_again(Eval *ev, const Override *o, size_t n, const Ast *let)
{
    for (size_t i = 0; i < n; i++)
        if (o[i].path->name == let->name) {
            Diag *d = err(ev, "E0108", let->name_span, "given twice", "`%s` is given twice", let->name);
            diag_label(ev->ctx, d, o[i].span, "first given here");
            return true;
        }
    return false;
}

/* The names a check inside the step sees: what a file can be asked means the grown model. */
static Env *grown_env(Eval *ev, File *f, File *after)
{
    static const char *const fields[] = {"params",      "stored_params",   "active_params",
                                         "dead_params", "flops_per_token", "state_width"};
    Env *env = f->env;
    for (size_t i = 0; i < COUNT_OF(fields); i++) {
        Name name = name_str(ev->ctx, fields[i]);
        env = env_bind(ev, env, name, file_field(ev, after, name, NO_SPAN), NO_SPAN);
    }
    return env;
}

/* The first weight that the step would cut or drop; NULL when all of them stay. *now: what takes it, or NULL. */
static const Param *shrinks(const GrowStep *g, const Param **now)
{
    for (size_t i = 0; i < g->before->param.n; i++) {
        const Param *had = &g->before->param.v[i];
        *now = fill_taker(g, had->path);
        if (!*now)
            return had;
        bool copied = (*now)->path != had->path;
        int spread = copied && (*now)->shape.rank == had->shape.rank + 1;
        if (copied && (*now)->shape.rank != had->shape.rank + spread)
            return had;
        for (uint8_t k = 0; k < had->shape.rank && had->shape.rank + spread == (*now)->shape.rank; k++)
            if ((*now)->shape.d[k + spread].n < had->shape.d[k].n)
                return had;
    }
    return NULL;
}

/* Points at the let that got smaller, if there is one: then nothing is claimed of the step. */
static bool only_adds(Eval *ev, const Ast *it, const GrowStep *g, File *was, File *after)
{
    const Param *now = NULL, *p = shrinks(g, &now);
    if (!p)
        return true;
    Diag *d = NULL;
    for (uint32_t i = 0; !d && i < it->kid[2]->n; i++) {
        const Ast *let = it->kid[2]->kid[i];
        Binding *a = let->kind == AST_LET ? map_get(&was->names, (uintptr_t)let->name) : NULL;
        Binding *b = a ? map_get(&after->names, (uintptr_t)let->name) : NULL;
        Value x = b ? binding_get(ev, a, NULL) : v_none(), y = b ? binding_get(ev, b, NULL) : v_none();
        if (x.kind == V_NUM && y.kind == V_NUM && y.num < x.num)
            d = err(ev, "E0705", let->span, "growth only adds", "`%s` would shrink from %s to %s", let->name,
                    value_text(ev, &x), value_text(ev, &y));
    }
    if (!d)
        d = err(ev, "E0705", g->span, "growth only adds", "`%s` would %s", p->path, now ? "shrink" : "disappear");
    Buf b = buf_new(ev->arena);
    buf_printf(&b, "%s ", p->path);
    shape_print(&b, &p->shape);
    buf_puts(&b, now ? " would become " : " would be lost");
    if (now)
        shape_print(&b, &now->shape);
    diag_note(ev->ctx, d, "%s", b.s);
    diag_help(ev->ctx, d, "for a smaller model start a new run");
    return false;
}

/* The lets of a step; `written` gets them as they stand there. */
static Override *step_lets(Eval *ev, File *f, File *target, const Ast *items, size_t *n, const char **written)
{
    Override *o = NEW_ARRAY(ev->arena, Override, (items ? items->n : 0) + 1);
    for (uint32_t i = 0; items && i < items->n; i++) {
        const Ast *let = items->kid[i];
        if (let->kind != AST_LET || !let_exists(ev, target, let) || let_again(ev, o, *n, let))
            continue;
        written[*n] = arena_printf(ev->arena, "%s = %s", let->name, expr_text(ev, let->kid[1]));
        o[(*n)++] = let_override(ev, f, let, "grow");
    }
    return o;
}

/* The first item of a step that is read and that no run carries out. */
static void find_refused(Eval *ev, const Ast *items, GrowStep *g)
{
    static const char *const done[] = {"when", "of", "fill", "moments", "old", "new", "train", "from"};
    for (uint32_t i = 0; items && i < items->n && !g->refused; i++) {
        const Ast *it = items->kid[i];
        bool named = (it->kind == AST_SET || it->kind == AST_NODE) && !it->kid[0]->n, carried = !named;
        for (size_t k = 0; k < COUNT_OF(done) && named; k++)
            carried |= !strcmp(it->kid[0]->name, done[k]);
        if (!carried) {
            g->refused = arena_printf(ev->arena, "`%s`", it->kid[0]->name);
            g->refused_at = it->span;
        }
    }
}

/* When the steps before one have happened, at the earliest: they are taken one after the other, in the order of the file. */
typedef struct Since {
    double step, tokens;
    Name last; /* of the step that decides it; NULL: none does */
    Span at;
    bool restarts; /* one of them has a `train`, and perhaps another length */
} Since;

/* What the run can say while the training before the step goes on. */
static void reachable(const Train *t, const Since *since, HostRange vars[HV_COUNT])
{
    double length = (double)t->length_steps, tokens = length * (double)t->batch_seqs * (double)t->context;
    for (int i = 0; i < HV_COUNT; i++)
        vars[i] = (HostRange){-INFINITY, INFINITY, true};
    vars[HV_STEP] = (HostRange){fmin(since->step, length), length, false};
    vars[HV_TOKENS] = (HostRange){fmin(since->tokens, tokens), tokens, false};
    vars[HV_EPOCH] = (HostRange){0, t->length_epochs > 0 ? t->length_epochs + 1 : INFINITY, false};
    vars[HV_PROGRESS] = (HostRange){since->restarts ? 0 : fmin(since->step / length, 1), 1, false};
    vars[HV_LENGTH] = (HostRange){length, length, false};
    if (t->length_steps < 0) { /* known with the data */
        vars[HV_STEP] = (HostRange){since->step, INFINITY, false};
        vars[HV_TOKENS] = (HostRange){since->tokens, INFINITY, false};
        vars[HV_LENGTH] = (HostRange){0, INFINITY, false};
        vars[HV_PROGRESS].lo = 0;
    }
    if (t->eval_every <= 0)
        vars[HV_EVAL_LOSS] = (HostRange){INFINITY, INFINITY, false};
}

static bool never(const HostExpr *when, const HostRange vars[HV_COUNT])
{
    HostRange r = host_range(when, vars);
    return !r.nan && r.lo == 0 && r.hi == 0;
}

/* The step itself has happened, too: as early as its condition may be true. */
static void happens(const GrowStep *g, const Train *t, Since *since)
{
    HostRange vars[HV_COUNT];
    double lo = since->step, hi = t && t->length_steps > 0 ? (double)t->length_steps : lo;
    while (t && g->when && lo < hi) {
        double middle = floor((lo + hi) / 2), per_step = (double)t->batch_seqs * (double)t->context;
        reachable(t, since, vars);
        vars[HV_STEP].hi = middle;
        vars[HV_TOKENS].hi = fmax(since->tokens + (middle - since->step) * per_step, vars[HV_TOKENS].lo);
        vars[HV_PROGRESS].hi = since->restarts ? 1 : fmax(middle / (double)t->length_steps, vars[HV_PROGRESS].lo);
        if (never(g->when, vars))
            lo = middle + 1;
        else
            hi = middle;
    }
    if (lo > since->step) {
        since->tokens += (lo - since->step) * (double)t->batch_seqs * (double)t->context;
        since->step = lo;
        since->last = g->name;
        since->at = g->span;
    }
    since->restarts |= g->restarts;
}

static bool reads(const HostExpr *e, HostVar var)
{
    return e && ((e->op == HO_VAR && e->var == var) || reads(e->a, var) || reads(e->b, var) || reads(e->c, var));
}

static void note_end(Eval *ev, Diag *d, const Train *t)
{
    Buf b = buf_new(ev->arena);
    buf_puts(&b, "training ends after ");
    if (t->length_steps > 0) {
        buf_count(&b, t->length_steps);
        buf_puts(&b, " steps, ");
        buf_count(&b, t->length_steps * t->batch_seqs * t->context);
        buf_puts(&b, " tokens");
    } else {
        buf_number(&b, t->length_epochs);
        buf_puts(&b, " epochs");
    }
    diag_note(ev->ctx, d, "%s", b.s);
}

/* A trigger that no training step makes true. `t`: the training before the step. */
static void trigger_fires(Eval *ev, const GrowStep *g, const Train *t, const Since *since, Span at)
{
    static const Since start;
    HostRange vars[HV_COUNT], alone[HV_COUNT];
    if (!t || (!g->when && !g->plateau))
        return;
    reachable(t, since, vars);
    reachable(t, &start, alone);
    bool silent = t->eval_every <= 0 && reads(g->plateau ? g->plateau->value : g->when, HV_EVAL_LOSS), short_of = false;
    if (g->plateau) {
        HostRange w = host_range(g->plateau->window, vars);
        short_of = t->length_steps > 0 && 2 * ceil(w.lo) > (double)t->length_steps;
    }
    if (g->plateau ? !silent && !short_of : !never(g->when, vars))
        return;
    Diag *d = err(ev, "E0706", at, "never true", "the growth step `%s` never happens", g->name);
    if (silent) {
        diag_note(ev->ctx, d, "`eval.loss` is never measured: `train` has no `eval`");
        diag_help(ev->ctx, d, "for example `eval { every = 250 steps }` in `train`");
        return;
    }
    if (!g->plateau && since->last && !never(g->when, alone)) {
        diag_label(ev->ctx, d, since->at, "not before step %.0f", since->step);
        diag_note(ev->ctx, d, "growth steps happen in the order of the file: this one waits for `%s`", since->last);
        diag_help(ev->ctx, d, "write the steps in the order in which they are to happen");
        return;
    }
    note_end(ev, d, t);
    if (short_of)
        diag_note(ev->ctx, d, "a plateau is seen when two windows have passed");
    diag_help(
        ev->ctx, d,
        "`length` of `train` says how long a run is, and `--until '100 steps'` stops one earlier; `/-` switches the "
        "step off");
}

static Span when_span(const Ast *items, Span otherwise)
{
    for (uint32_t i = 0; items && i < items->n; i++)
        if (items->kid[i]->kind == AST_SET && !items->kid[i]->kid[0]->n && !strcmp(items->kid[i]->kid[0]->name, "when"))
            return items->kid[i]->kid[1]->span;
    return otherwise;
}

/* `from`: only what happens at the start can begin with other weights than those of the run, and only once. */
static void from_of(Eval *ev, File *f, const Ast *items, GrowStep *g)
{
    for (uint32_t i = 0; items && i < items->n; i++) {
        const Ast *it = items->kid[i];
        if (it->kind != AST_SET || it->kid[0]->n || strcmp(it->kid[0]->name, "from"))
            continue;
        const Train *t = ev->unit->train;
        Value v = eval(ev, it->kid[1], f->env, NULL);
        g->from = start_spec(ev, f, &v, it->kid[1]->span, attribute_find("grow", "from"));
        if (g->when) {
            Diag *d = err(ev, "E0614", it->span, "", "`from` is for a step that happens at the start");
            diag_note(ev->ctx, d, "later the step begins with the weights that the run has then");
            diag_help(ev->ctx, d, "write `when = start`");
        } else if (ev->unit->grow.n || ev->unit->grown) {
            Diag *d = err(ev, "E0614", it->span, "", "`from` is for the first step of a file");
            diag_note(ev->ctx, d, "this step begins with the weights of the step before it");
        } else if (t && t->start.kind != START_DRAWN) {
            Diag *d = err(ev, "E0614", it->span, "", "the run would begin with two sets of weights");
            diag_label(ev->ctx, d, t->start.span, "the other one");
            diag_help(ev->ctx, d, "leave `start_from` out: `from` names the weights of the model before the step");
        }
    }
}

/* The file after a step: other lets, and another `train` where the step has one. */
static File *stage_file(Eval *ev, File *f, File *target, const Ast *items, size_t *n, const char **written)
{
    Override *lets = step_lets(ev, f, target, items, n, written);
    OverrideList all = {0};
    for (size_t i = 0; i < *n; i++)
        vec_push(ev->arena, &all, lets[i]);
    step_train(ev, target, items, &all);
    return diag_errors(ev->ctx) ? NULL : file_again(ev, target, all.v, all.n);
}

/* Whether a let has another value after the step; *same: one that has not, or NULL. */
static bool changes(Eval *ev, const Ast *items, File *was, File *after, const Ast **same)
{
    for (uint32_t i = 0; items && i < items->n; i++) {
        const Ast *let = items->kid[i];
        Binding *a = let->kind == AST_LET ? map_get(&was->names, (uintptr_t)let->name) : NULL;
        Binding *b = a ? map_get(&after->names, (uintptr_t)let->name) : NULL;
        if (!b)
            continue;
        Value x = binding_get(ev, a, NULL), y = binding_get(ev, b, NULL);
        if (!value_equal(&x, &y))
            return true;
        *same = let;
    }
    return false;
}

/* `was`: the training before the step, NULL where the file has none of its own. */
static File *grow_one(Eval *ev, File *f, File *target, const Ast *it, const Model *before, const Train *was,
                      Since *since)
{
    const Ast *items = it->kid[2];
    Name name = it->kid[1] ? it->kid[1]->name : name_str(ev->ctx, "grow");
    GrowStep g = {.name = name, .before = before, .tolerance = INFINITY, .span = it->kid[0]->span};
    attributes_fit(ev, items, "grow");
    inner_nodes(ev, items);
    for (uint32_t i = 0; items && i < items->n; i++)
        if (items->kid[i]->kind == AST_NODE && !items->kid[i]->kid[0]->n &&
            !strcmp(items->kid[i]->kid[0]->name, "fill"))
            fill_rules(ev, f, items->kid[i]->kid[2], "", &g);
    fill_moments(ev, items, &g);
    trigger(ev, f, items, was, &g);
    from_of(ev, f, items, &g);
    find_refused(ev, items, &g);
    size_t n = 0;
    const char **lets = NEW_ARRAY(ev->arena, const char *, (items ? items->n : 0) + 1);
    File *after = stage_file(ev, f, target, items, &n, lets);
    g.lets = lets;
    g.n_lets = n;
    if (!after)
        return NULL;
    g.after = build_model(ev, after);
    g.file = after;
    if (g.after)
        fill_models(ev, f, &g);
    bool filled = g.after && !diag_errors(ev->ctx), adds = filled && only_adds(ev, it, &g, target, after);
    if (filled) {
        trigger_fires(ev, &g, was, since, when_span(items, it->kid[0]->span));
        step_training(ev, after, items, was, &g);
        happens(&g, was, since);
        Env *env = grown_env(ev, f, after);
        Claims claims = {.step = &g};
        bool planned = adds && plan_step(ev, &claims);
        for (uint32_t i = 0; items && i < items->n && planned; i++)
            if (items->kid[i]->kind == AST_CHECK)
                run_check(ev, after, items->kid[i], env, name, &claims);
        if (!diag_errors(ev->ctx) && !g.refused)
            refuse_dead(ev, &claims, g.span);
    }
    const Ast *same = NULL;
    bool others = g.refused || g.old.said || g.fresh.said || g.restarts;
    if (g.after && !others && !diag_errors(ev->ctx) && !changes(ev, items, target, after, &same))
        diag_help(ev->ctx,
                  err(ev, "E0707", same ? same->span : it->kid[0]->span, same ? "the value that it has already" : "",
                      "the growth step `%s` changes nothing", name),
                  "give a `let` of the file another value, as `let hidden = 4096`");
    vec_push(ev->arena, &ev->unit->grow, g);
    return after;
}

File *grown_file(Eval *ev, File *f, size_t n)
{
    File *now = f;
    for (size_t i = 0; i < f->grows.n && i < n && !diag_errors(ev->ctx); i++) {
        const Ast *items = f->grows.v[i]->kid[2];
        size_t n_lets = 0;
        const char **written = NEW_ARRAY(ev->arena, const char *, (items ? items->n : 0) + 1);
        File *after = stage_file(ev, now, now, items, &n_lets, written);
        if (!after)
            return now;
        now = after;
        now->quiet = false;
        ev->unit->grown++;
    }
    return now;
}

void build_grow(Eval *ev, File *f)
{
    File *now = NULL, *target = NULL;
    const Train *was = NULL;
    Since since = {0};
    for (size_t i = ev->unit->grown; i < f->grows.n && !diag_errors(ev->ctx); i++) {
        const Ast *it = f->grows.v[i];
        File *of = file_varied(ev, f, it->kid[2]);
        if (!of)
            return;
        if (of != target) {
            target = now = of;
            was = of == f ? ev->unit->train : NULL;
            since = (Since){0};
        }
        const Model *before = build_model(ev, now);
        if (!before) {
            if (!diag_errors(ev->ctx))
                err(ev, "E0111", it->kid[0]->span, "", "%s has no model to grow", now->path);
            return;
        }
        File *after = grow_one(ev, of == f ? now : f, now, it, before, was,
                               &since); /* right sides see the file before the step */
        if (!after)
            return;
        if (ev->unit->grow.n)
            was = ev->unit->grow.v[ev->unit->grow.n - 1].train;
        now = after;
    }
}
