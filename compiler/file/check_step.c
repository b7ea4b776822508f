/* check_step.c - what a growth step says about training: `old`, `new`, `train`, plateaus.
 *
 * In:  the step's items and the grown file.   Out: rates of parts, the training from the step on.
 * The one idea: the `train` of a step is that of the file with other attributes, so these are overrides of
 * it, as `--set` gives them; what a run cannot take along is found by comparing the two trainings.
 */
#include "check_train.h"
#include "compiler/growth/growth.h"
#include "compiler/model/optimizer.h"

#include <math.h>

static const Ast *node_of(const Ast *items, const char *kind, Name label)
{
    for (uint32_t i = 0; items && i < items->n; i++) {
        const Ast *it = items->kid[i];
        bool named = it->kind == AST_NODE && !it->kid[0]->n && !strcmp(it->kid[0]->name, kind);
        if (named && (!label || (it->kid[1] && it->kid[1]->name == label)))
            return it;
    }
    return NULL;
}

/* ---- train ---- */

/* path.name */
static Ast *path_in(Eval *ev, const Ast *path, Name name, Span at)
{
    Ast *longer = NEW(ev->arena, Ast), *dot = NEW(ev->arena, Ast);
    *longer = *path;
    *dot = (Ast){.kind = AST_DOT, .name = name, .span = at, .name_span = at};
    longer->kid = NEW_ARRAY(ev->arena, Ast *, path->n + 1);
    for (uint32_t i = 0; i < path->n; i++)
        longer->kid[i] = path->kid[i];
    longer->kid[longer->n++] = dot;
    return longer;
}

/* path.lr.peak */
static const Ast *path_behind(Eval *ev, const Ast *path, const Ast *inner)
{
    Ast *all = path_in(ev, path, inner->name, inner->span);
    Ast **kid = NEW_ARRAY(ev->arena, Ast *, all->n + inner->n);
    memcpy(kid, all->kid, all->n * sizeof *kid);
    for (uint32_t i = 0; i < inner->n; i++)
        kid[all->n++] = inner->kid[i];
    all->kid = kid;
    return all;
}

static bool said_before(Eval *ev, const Ast *items, uint32_t n)
{
    const Ast *it = items->kid[n];
    for (uint32_t i = 0; i < n; i++) {
        const Ast *had = items->kid[i];
        if (had->kind != it->kind || strcmp(expr_text(ev, had->kid[0]), expr_text(ev, it->kid[0])) != 0 ||
            (it->kind == AST_NODE &&
             (it->kid[1] ? it->kid[1]->name : NULL) != (had->kid[1] ? had->kid[1]->name : NULL)))
            continue;
        Diag *d = err(ev, "E0108", it->kid[0]->span, "given twice", "`%s` is given twice", expr_text(ev, it->kid[0]));
        diag_label(ev->ctx, d, had->kid[0]->span, "first given here");
        return true;
    }
    return false;
}

/* A node that the training of the file has not, or has of another kind. */
static void no_such_node(Eval *ev, const Ast *it, const Ast *base)
{
    Name kind = it->kid[0]->name, label = it->kid[1] ? it->kid[1]->name : NULL;
    const Ast *other = node_of(base, kind, NULL);
    Span at = it->kid[1] ? span_join(it->kid[0]->span, it->kid[1]->span) : it->kid[0]->span;
    bool optimizer = !strcmp(kind, "optimizer");
    Diag *d = err(ev, "E0708", at, "",
                  optimizer && other ? "a growth step cannot change the optimizer"
                                     : "the `train` of the file has no `%s%s%s` that the step could change",
                  kind, label ? " " : "", label ? label : "");
    if (optimizer && other) {
        diag_label(ev->ctx, d, other->kid[0]->span, "the optimizer of the run");
        diag_note(ev->ctx, d, "its moments mean something else in another one");
    } else {
        diag_help(ev->ctx, d, "write it there, too: a step changes attributes of what there is");
    }
}

static void train_items(Eval *ev, const Ast *items, const Ast *base, const Ast *path, OverrideList *out)
{
    for (uint32_t i = 0; items && i < items->n; i++) {
        const Ast *it = items->kid[i];
        bool fits = it->kind == AST_SET || (it->kind == AST_NODE && !it->kid[0]->n);
        if (it->kind == AST_OFF || (fits && said_before(ev, items, i)))
            continue;
        Name key = fits ? it->kid[0]->name : NULL,
             label = fits && it->kind == AST_NODE && it->kid[1] ? it->kid[1]->name : NULL;
        if (!fits || (label && strpbrk(label, ".*["))) {
            err(ev, "E0110", it->span, "",
                label ? "a growth step changes groups by their name, not by paths"
                      : "the `train` of a growth step cannot hold this item");
        } else if (it->kind == AST_SET) {
            LineCol at = source_position(ev->ctx, it->span.file, it->span.lo);
            Override o = {.path = path_behind(ev, path, it->kid[0]),
                          .expr = it->kid[1],
                          .of_step = true,
                          .span = it->kid[0]->n ? it->kid[0]->span : it->span};
            o.origin =
                name_printf(ev->ctx, "grow at %s:%u:%u", source_path(ev->ctx, it->span.file), at.line, at.column);
            vec_push(ev->arena, out, o);
        } else if (!node_of(base, key, label)) {
            no_such_node(ev, it, base);
        } else {
            const Ast *inner = path_in(ev, path, key, it->kid[0]->span);
            if (label && strcmp(key, "optimizer") != 0)
                inner = path_in(ev, inner, label, it->kid[1]->span);
            train_items(ev, it->kid[2], node_of(base, key, label)->kid[2], inner, out);
        }
    }
}

void step_train(Eval *ev, File *f, const Ast *items, OverrideList *out)
{
    const Ast *it = node_of(items, "train", NULL), path = {.kind = AST_PATH, .name = name_str(ev->ctx, "train")};
    if (it && !f->train_ast)
        diag_help(ev->ctx,
                  err(ev, "E0708", it->kid[0]->span, "", "%s has no `train` that the step could change", f->path),
                  "the `train` of a growth step gives attributes of the file's `train` other values");
    else if (it)
        train_items(ev, it->kid[2], f->train_ast->kid[2], &path, out);
}

static Diag *cannot_change(Eval *ev, const GrowStep *g, Span was, Span now, const char *what)
{
    bool same = was.file == now.file && was.lo == now.lo; /* a let that both were made of */
    Diag *d = err(ev, "E0708", same ? g->span : now, "", "a growth step cannot change %s", what);
    if (!same)
        diag_label(ev->ctx, d, was, "before the step");
    return d;
}

/* By path: the number of a parameter, from 1 on. */
static Map places_of(const Model *m, Arena *arena)
{
    Map places;
    map_init(&places, arena);
    for (size_t i = 0; i < m->param.n; i++)
        *map_at(&places, (uintptr_t)m->param.v[i].path) = (void *)(uintptr_t)(i + 1);
    return places;
}

/* The number of a parameter of `m`, or as many as it has. */
static size_t place_of(const Map *places, const Model *m, Name path)
{
    size_t i = (size_t)(uintptr_t)map_get(places, (uintptr_t)path);
    return i ? i - 1 : m->param.n;
}

/* Copies begin with the moments of what they copy, unless the step says otherwise; false: an error is filed. */
static bool moments_fit(Eval *ev, const GrowStep *g, const Train *was, size_t from, size_t i)
{
    const Train *now = g->train;
    const Name copy = g->after->param.v[i].path, of = g->before->param.v[from].path;
    bool learned = param_learns(g->before, was, from);
    bool other = was->optimizer.by_second && was->optimizer.by_second[from] != now->optimizer.by_second[i];
    if (learned && !other && optimizer_states(&was->optimizer, from) == optimizer_states(&now->optimizer, i))
        return true;
    Diag *d = err(ev, "E0708", g->span, "", "`%s` cannot begin with the moments of `%s`", copy, of);
    diag_note(ev->ctx, d,
              !learned ? "the file freezes `%s`, so the optimizer keeps nothing of it"
              : other  ? "another optimizer updates `%s`"
                       : "the optimizer keeps other moments of `%s`",
              of);
    diag_help(ev->ctx, d, "let copies begin without: `moments = zeros`");
    return false;
}

/* A weight whose optimizer states the step would lose, or find none of. */
static void states_follow(Eval *ev, const GrowStep *g, const Train *was)
{
    const Train *now = g->train;
    const Map places = places_of(g->before, ev->arena);
    for (size_t i = 0; i < g->after->param.n; i++) {
        Name path = g->after->param.v[i].path, source = g->source ? g->source[i] : path;
        bool copied = source != path && !(g->moved && g->moved[i]);
        size_t k = place_of(&places, g->before, source);
        bool there = k < g->before->param.n, learns = there && param_learns(g->after, now, i);
        if (copied) {
            if (learns && !g->fresh_moments && !moments_fit(ev, g, was, k, i))
                return;
            continue;
        }
        if (there && learns != param_learns(g->before, was, k)) {
            Diag *d =
                cannot_change(ev, g, was->optimizer.span, now->optimizer.span, "which weights are frozen by the file");
            diag_note(ev->ctx, d,
                      learns ? "`%s` was frozen, and the optimizer knows nothing of it" : "`%s` has learned until here",
                      path);
            diag_help(ev->ctx, d,
                      "weights that learn are frozen, for a time, by `old { lr_scale = 0 }` of a growth step");
            return;
        }
        if (!learns)
            continue;
        bool moved = was->optimizer.by_second && was->optimizer.by_second[k] != now->optimizer.by_second[i];
        if (!moved && optimizer_states(&was->optimizer, k) == optimizer_states(&now->optimizer, i))
            continue;
        Diag *d = cannot_change(ev, g, was->optimizer.span, now->optimizer.span, "what the optimizer keeps of weights");
        diag_note(ev->ctx, d,
                  moved ? "`%s` is updated by the other optimizer after the step"
                        : "`%s` has other moments after the step",
                  path);
        return;
    }
}

/* What a run cannot take along over a step. */
static void train_follows(Eval *ev, const GrowStep *g, const Train *was)
{
    const Train *now = g->train;
    if (!same_tokenizer(&was->tokenizer, &now->tokenizer))
        diag_note(ev->ctx, cannot_change(ev, g, was->tokenizer.span, now->tokenizer.span, "the tokenizer"),
                  "the embeddings would mean other tokens");
    else if (!was->average != !now->average)
        diag_help(
            ev->ctx,
            cannot_change(ev, g, was->average ? was->average_span : was->span,
                          now->average ? now->average_span : g->span, "whether weights are averaged"),
            "a decay of 0 is an average that is the weight itself: `ema(decay = if step < 1000 then 0 else 0.999)`");
    else
        states_follow(ev, g, was);
}

/* ---- old, new ---- */

static void part_rate(Eval *ev, File *after, const Ast *it, const Train *t, PartRate *out)
{
    Attrs a;
    Arena *arena = ev->arena;
    double x;
    attrs_open(&a, ev, after, it->kid[2], name_str(ev->ctx, ""), it->kid[0]->name, it->kid[0]->span);
    const TrainAttr *scale = attrs_get(&a, "lr_scale"), *warmup = attrs_get(&a, "warmup");
    const HostExpr *e = attr_of_run(&a, "lr_scale");
    *out = (PartRate){
        .said = true, .scale = host_const(arena, 1), .span = it->kid[0]->span, .scale_span = it->kid[0]->span};
    if (scale)
        out->scale_span = scale->expr->span;
    if (e)
        out->scale = e;
    if (warmup)
        out->warmup = attr_part_of_run(&a, warmup, t);
    if (warmup && host_is_const(out->scale, &x) && x == 0)
        diag_help(ev->ctx, err(ev, "E0708", warmup->span, "", "a rate of 0 needs no warm-up"), "leave `warmup` out");
    attrs_close(&a);
}

/* What all steps of the file up to this one say of rates. */
static GrownParts parts_up_to(Eval *ev, const GrowStep *g)
{
    size_t n = ev->unit->grow.n;
    PartRate *old = NEW_ARRAY(ev->arena, PartRate, n + 1), *fresh = NEW_ARRAY(ev->arena, PartRate, n + 1);
    for (size_t i = 0; i <= n; i++) {
        const GrowStep *step = i < n ? &ev->unit->grow.v[i] : g;
        old[i] = step->old;
        fresh[i] = step->fresh;
    }
    return (GrownParts){.n = n + 1, .old = old, .fresh = fresh};
}

/* An optimizer of whole matrices cannot leave a part of one as it is: the rest of the step is made of that part, too. */
static void frozen_parts(Eval *ev, const GrowStep *g)
{
    const Optimizer *o = g->train ? &g->train->optimizer : NULL;
    const GrownParts parts = parts_up_to(ev, g);
    const Model *first = ev->unit->grow.n ? ev->unit->grow.v[0].before : g->before;
    bool frozen = false;
    for (size_t b = 0; b <= parts.n; b++)
        frozen |= part_is_frozen(&parts, b, parts.n);
    if (!o || !o->by_second || !frozen)
        return;
    Span at = g->old.said ? g->old.scale_span : g->fresh.said ? g->fresh.scale_span : g->span;
    const Map places = places_of(first, ev->arena);
    for (size_t i = 0; i < g->after->param.n; i++) {
        const Param *p = &g->after->param.v[i];
        size_t k = place_of(&places, first, p->path);
        if (o->by_second[i] || k == first->param.n || first->param.v[k].elements == p->elements)
            continue;
        Diag *d = err(ev, "E0708", at, "", "`%s` cannot freeze a part of a matrix", o->kind);
        diag_note(ev->ctx, d, "it makes steps of whole matrices, and old and new weights are parts of `%s`", p->path);
        diag_help(ev->ctx, d, "let another optimizer update it: `group NAME { update = adamw }`, or take a small rate");
        return;
    }
}

/* Of copies of copies it is not known which updates their moments have missed, where what they copy was frozen for a time and
 * what that had copied was not. */
static void copied_again(Eval *ev, const GrowStep *g)
{
    const GrownParts parts = parts_up_to(ev, g);
    for (size_t b = 1; b < parts.n && growth_carries(g); b++)
        for (size_t k = b; k < parts.n && growth_carries(&ev->unit->grow.v[b - 1]); k++)
            for (size_t c = 0; c < b; c++) {
                if (part_is_frozen(&parts, b, k) == part_is_frozen(&parts, c, k))
                    continue;
                Diag *d = err(ev, "E0708", g->span, "", "copies of copies cannot begin with moments here");
                diag_note(ev->ctx, d,
                          "weights that `%s` has copied were frozen while what they copied was not, or the other way "
                          "round, so "
                          "their moments have seen other updates",
                          ev->unit->grow.v[b - 1].name);
                diag_help(ev->ctx, d, "let copies begin without: `moments = zeros`");
                return;
            }
}

void step_training(Eval *ev, File *after, const Ast *items, const Train *was, GrowStep *g)
{
    size_t errors = diag_errors(ev->ctx), said = diag_count(ev->ctx);
    const Ast *old = node_of(items, "old", NULL), *fresh = node_of(items, "new", NULL);
    g->restarts = node_of(items, "train", NULL) != NULL;
    g->train = was ? build_train(ev, after, (Model *)g->after) : NULL;
    for (size_t i = 0; i < after->overrides.n && diag_errors(ev->ctx) == errors; i++)
        if (after->overrides.v[i].of_step && !after->overrides.v[i].used)
            override_unknown(ev, after, &after->overrides.v[i]);
    if (was && diag_errors(ev->ctx) == errors)
        diag_truncate(ev->ctx, said); /* warnings that the file's training had before */
    const Train unknown = {.batch_seqs = 1, .context = g->after->context, .length_steps = 1};
    const Train *t = g->train ? g->train : &unknown;
    if (diag_errors(ev->ctx) == errors && old)
        part_rate(ev, after, old, t, &g->old);
    if (diag_errors(ev->ctx) == errors && fresh)
        part_rate(ev, after, fresh, t, &g->fresh);
    if (diag_errors(ev->ctx) == errors && was && g->train)
        train_follows(ev, g, was);
    if (diag_errors(ev->ctx) == errors)
        frozen_parts(ev, g);
    if (diag_errors(ev->ctx) == errors)
        copied_again(ev, g);
}

/* ---- plateaus ---- */

const Plateau *plateau_of(Eval *ev, const Value *spec, Span at, const Train *was)
{
    const Record *r = spec->record;
    Plateau *p = NEW(ev->arena, Plateau);
    const Train unknown = {.batch_seqs = 1, .context = 1, .length_steps = 1};
    p->span = at;
    for (size_t i = 0; i < r->n; i++) {
        const Field *f = &r->field[i];
        Span here = f->span.file ? f->span : at;
        double x = 0;
        if (f->value->kind == V_POISON)
            return NULL;
        if (!strcmp(f->name, "value"))
            p->value = to_host(ev, f->value);
        else if (!strcmp(f->name, "window"))
            p->window = steps_of(ev, f->value, here, "window", was ? was : &unknown);
        else
            p->least = f->value->kind == V_NUM ? f->value->num : -1;
        if (!strcmp(f->name, "value") && (!p->value || host_is_const(p->value, &x))) {
            diag_help(ev->ctx, err(ev, "E0206", here, "", "a plateau is one of a number that changes during training"),
                      "for example `plateau(eval.loss, window = 2000 steps, less_than = 0.2%%)`");
            return NULL;
        }
        if (!strcmp(f->name, "window") && p->window && host_is_const(p->window, &x) && x < 1)
            p->window = (err(ev, "E0208", here, "", "`window` must be at least one step"), NULL);
        if (!strcmp(f->name, "less_than") && !(p->least >= 0))
            return err(ev, "E0208", here, "", "`less_than` is a share from 0, as 0.2%%"), NULL;
    }
    return p->value && p->window ? p : NULL;
}
