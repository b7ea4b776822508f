/* check_unit.c - the entry check_file(): a file with settings from the command line, all of its nodes, as a Unit.
 *
 * In:  a text, --set, what is wanted of it.     Out: the Unit; diagnostics.
 */
#include <math.h>

#include "check_claim.h"
#include "check_train.h"

/* ---- overrides from the command line ---- */

/* `--vary D=64,128` is a list. */
static bool has_comma(const char *text)
{
    int depth = 0;
    bool quoted = false;
    for (; *text; text++) {
        if (*text == '"' && text[-1] != '\\')
            quoted = !quoted;
        if (!quoted)
            depth += (*text == '(' || *text == '[') - (*text == ')' || *text == ']');
        if (*text == ',' && !quoted && !depth)
            return true;
    }
    return false;
}

bool parse_setting(Eval *ev, const char *text, const char *flag, Override *o)
{
    uint32_t source = source_add(ev->ctx, "<command line>", text, strlen(text));
    const char *eq = strchr(text, '=');
    Span all = {source, 0, (uint32_t)strlen(text)};
    bool list = !strcmp(flag, "--vary");
    if (!eq || eq == text || !eq[1]) {
        Diag *d = err(ev, "E0105", all, "", list ? "`%s` needs PATH=VALUES" : "`%s` needs PATH=EXPR", flag);
        diag_help(ev->ctx, d, list ? "for example `--vary D=256,512` or `--vary 'lr=range(1e-4, 1e-2, 5, scale = log)'`"
                                   : "for example `--set D=768` or `--set conn='residual()'`");
        return false;
    }
    /* Both halves are parsed in place (padded with blanks), so that carets point into the argument. */
    size_t n = strlen(text), at = (size_t)(eq - text);
    char *left = arena_copy(ev->arena, text, at);
    char *right = arena_printf(ev->arena, "%s%s", text, list && has_comma(eq + 1) ? "]" : "");
    memset(right, ' ', at + 1);
    if (strlen(right) > n)
        right[at] = '[';
    uint32_t l = source_add(ev->ctx, "<command line>", left, at), r = source_add(ev->ctx, "<command line>", right, strlen(right));
    *o = (Override){.path = vwn_parse_path(ev->ctx, l), .expr = vwn_parse_expr(ev->ctx, r), .origin = name_str(ev->ctx, flag)};
    o->span = (Span){source, 0, (uint32_t)at};
    return o->path && o->expr;
}

static void add_set(Eval *ev, File *f, const char *text)
{
    Override o;
    if (!parse_setting(ev, text, "--set", &o))
        return;
    o.env = f->env;
    vec_push(ev->arena, &f->overrides, o);
}

/* An override without effect: one that comes later has its path. */
static bool set_twice(Eval *ev, File *f, size_t i)
{
    size_t n, m;
    Span a = f->overrides.v[i].span;
    const char *path = source_text(ev->ctx, a.file, &n);
    for (size_t k = i + 1; k < f->overrides.n; k++) {
        Span b = f->overrides.v[k].span;
        const char *other = source_text(ev->ctx, b.file, &m);
        if (a.hi != b.hi || memcmp(path, other, a.hi) != 0)
            continue;
        diag_error(ev->ctx, "E0108", a, "given twice", "`--set %.*s` is given twice", (int)a.hi, path);
        return true;
    }
    return false;
}

typedef VEC(Name) NameList;

/* The paths of attributes as they are written in the file, candidates for a misspelt one: those of `items` behind
 * `own`, those of the nodes among them behind `inner`. */
static void written_paths(Eval *ev, const Ast *items, const char *own, const char *inner, NameList *out)
{
    for (uint32_t i = 0; items && i < items->n; i++) {
        const Ast *it = items->kid[i];
        if (it->kind == AST_SET && *own)
            vec_push(ev->arena, out, name_printf(ev->ctx, "%s%s", own, it->kid[0]->name));
        if (it->kind == AST_FOR) {
            const char *path = arena_printf(ev->arena, "%s%s[*].", inner, it->name);
            written_paths(ev, it->kid[1], path, path, out);
        }
        if (it->kind == AST_IF)
            for (uint32_t k = 1; k < it->n; k++)
                written_paths(ev, it->kid[k], own, inner, out);
        if (it->kind != AST_NODE)
            continue;
        Name type = it->kid[0]->name, label = it->kid[1] ? it->kid[1]->name : NULL;
        bool model = !strcmp(type, "model"), plain = !label || model || !strcmp(type, "optimizer");
        const char *path = arena_printf(ev->arena, "%s%s%s%s.", inner, type, plain ? "" : ".", plain ? "" : label);
        written_paths(ev, it->kid[2], path, model ? "" : path, out);
    }
}

/* The loop of a model over `variable`. */
static const Ast *loop_over(const Ast *items, Name variable)
{
    const Ast *found = NULL;
    for (uint32_t i = 0; items && i < items->n && !found; i++) {
        const Ast *it = items->kid[i];
        if (it->kind == AST_FOR && it->name == variable)
            return it;
        if (it->kind == AST_FOR)
            found = loop_over(it->kid[1], variable);
        for (uint32_t k = 1; it->kind == AST_IF && k < it->n && !found; k++)
            found = loop_over(it->kid[k], variable);
    }
    return found;
}

/* `layer[9]` where layers are 1 to 8: says so and names the nearest one. */
static bool no_such_iteration(Eval *ev, File *f, const Override *o)
{
    Name variable = o->path->name;
    for (uint32_t i = 0; f->model_ast && i < o->path->n; i++) {
        const Ast *part = o->path->kid[i];
        if (part->kind != AST_AT) {
            variable = part->name;
            continue;
        }
        const Ast *loop = part->kid[0]->kind == AST_NUM ? loop_over(f->model_ast->kid[2], variable) : NULL;
        size_t before = diag_count(ev->ctx);
        if (!loop)
            return false;
        Value values = eval(ev, loop->kid[0], f->env, NULL);
        diag_truncate(ev->ctx, before);
        if (values.kind != V_LIST || !values.list->n)
            return false;
        double want = ast_number(ev->ctx, part->kid[0]).value, near = values.list->v[0].num;
        bool there = false;
        for (size_t k = 0; k < values.list->n; k++) {
            double x = values.list->v[k].kind == V_NUM ? values.list->v[k].num : NAN;
            there |= x == want;
            near = fabs(x - want) < fabs(near - want) ? x : near;
        }
        if (there)
            continue;
        size_t n;
        const char *text = source_text(ev->ctx, o->span.file, &n);
        Diag *d = diag_error(ev->ctx, "E0105", o->span, "", "there is no `%s[%.6g]` in %s", variable, want, f->path);
        bool range = loop->kid[0]->kind == AST_RANGE;
        if (range)
            diag_note(ev->ctx, d, "`for %s in %s` runs from %.6g to %.6g", variable, expr_text(ev, loop->kid[0]), values.list->v[0].num,
                      values.list->v[values.list->n - 1].num);
        else
            diag_note(ev->ctx, d, "`for %s in %s` has the values %s", variable, expr_text(ev, loop->kid[0]), value_text(ev, &values));
        Span at = part->kid[0]->span;
        diag_help(ev->ctx, d, "the nearest is `--set %.*s%.6g%.*s=%s`", (int)at.lo, text, near, (int)(o->span.hi - at.hi), text + at.hi,
                  expr_text(ev, o->expr));
        return true;
    }
    return false;
}

void check_overrides_used(Eval *ev, File *f, bool built, bool trained)
{
    for (size_t i = 0; i < f->overrides.n; i++) {
        Override *o = &f->overrides.v[i];
        bool train = !strcmp(o->path->name, "train");
        if (o->used || (o->path->n && !(train ? trained : built)) || set_twice(ev, f, i))
            continue;
        if (no_such_iteration(ev, f, o))
            continue;
        Diag *d = diag_error(ev->ctx, "E0105", o->span, "nothing has this path", "`--set` names nothing in %s", f->path);
        NameList names = {0};
        for (size_t k = 0; k < f->lets.n; k++)
            if (f->lets.v[k]->is_let)
                vec_push(ev->arena, &names, f->lets.v[k]->name);
        written_paths(ev, f->ast, "", "", &names);
        size_t n;
        const char *text = source_text(ev->ctx, o->span.file, &n);
        Name best = nearest_name(name_printf(ev->ctx, "%.*s", (int)o->span.hi, text), names.v, names.n);
        const char *last;
        for (size_t k = 0; !best && k < names.n; k++) /* `lr`: an attribute without the way to it */
            best = (last = strrchr(names.v[k], '.')) && !strcmp(last + 1, o->path->name) && !o->path->n ? names.v[k] : NULL;
        if (best)
            diag_help(ev->ctx, d, "did you mean `--set %s=%s`?", best, expr_text(ev, o->expr));
        else
            diag_help(ev->ctx, d, "paths are lets (`D`), arguments of a let's call (`width.at`), or attributes of a node"
                                  " (`model.width`, `layer[*].attention.heads`, `train.seed`)");
    }
}

/* ---- the entry ---- */

static void list_lets(Eval *ev, File *f)
{
    for (size_t i = 0; i < f->lets.n; i++) {
        Binding *b = f->lets.v[i];
        if (!b->is_let)
            continue;
        bool used = b->used;
        size_t before = diag_count(ev->ctx);
        Value v = binding_get(ev, b, NULL);
        b->used = used;
        diag_truncate(ev->ctx, before);
        LineCol at = source_position(ev->ctx, b->span.file, b->span.lo);
        LetInfo info = {.name = b->name, .text = value_text(ev, &v), .span = b->span,
                        .origin = b->origin ? b->origin
                                            : arena_printf(ev->arena, "%s:%u:%u", f->path, at.line, at.column)};
        vec_push(ev->arena, &ev->unit->let, info);
    }
}

/* In files of the user, once each, after everything that was evaluated had its say. */
static void look_up_names(Eval *ev)
{
    for (size_t i = 0; i < ev->files.n; i++) {
        File *f = ev->files.v[i];
        if (f->ast && !f->is_std && !f->quiet)
            check_names(ev, f);
    }
}

Unit *check_file(Ctx *ctx, const CheckOptions *how)
{
    Unit *u = NEW(ctx->program, Unit);
    Eval *ev = NEW(ctx->program, Eval);
    u->ctx = ctx;
    u->path = how->path;
    u->set = NEW_ARRAY(ctx->program, const char *, how->n_set + 1);
    for (; u->n_set < how->n_set; u->n_set++)
        u->set[u->n_set] = arena_copy(ctx->program, how->set[u->n_set], strlen(how->set[u->n_set]));
    *ev = (Eval){.ctx = ctx, .decide_claim = decide_claim, .arena = ctx->program, .unit = u, .bytes_before = ctx->bytes};
    File *f = file_load(ev, how->path, how->text, how->text_length, NO_SPAN, NULL);
    u->file = f;
    u->ast = f ? f->ast : NULL;
    if (!f || diag_errors(ctx))
        return u;
    File *written = f;
    for (size_t i = 0; i < how->n_set; i++)
        add_set(ev, f, how->set[i]);
    if (how->n_set && !diag_errors(ctx)) {
        Override *o = f->overrides.v;
        size_t n = f->overrides.n;
        f->overrides.n = 0;
        f->overrides.v = NULL;
        f->overrides.cap = 0;
        u->file = f = file_again(ev, f, o, n);
        f->quiet = false;
        for (size_t i = 0; i < f->overrides.n; i++)
            f->overrides.v[i].env = f->env;
        for (size_t i = 0; i < f->lets.n; i++)
            if (f->lets.v[i]->origin)
                f->lets.v[i]->env = f->env;
    }
    if (how->grown && !diag_errors(ctx))
        u->file = f = grown_file(ev, f, how->grown);
    if (diag_errors(ctx))
        return u;
    u->model = build_model(ev, f);
    if (u->model)
        build_aliases(ev, f, u->model);
    if (!how->model_only) {
        if (f->train_ast && (u->model || !f->model_ast) && !diag_errors(ctx))
            u->train = build_train(ev, f, u->model);
        size_t before = diag_errors(ctx);
        for (size_t i = 0; i < f->checks.n && !before && !u->grown; i++) /* they mean the file's model */
            run_check(ev, f, f->checks.v[i], f->env, "", NULL);
        if (!before)
            build_grow(ev, f);
        if (!before && !how->no_sweeps)
            build_sweeps(ev, f);
        if (!diag_errors(ctx))
            lint_unused(ev, f);
    }
    list_lets(ev, f);
    look_up_names(ev);
    bool built = diag_errors(ctx) == 0;
    bool own = true;
    if (how->sweep && built) { /* what `vwn check` refuses is not swept */
        u->sweep.n = 0;
        own = build_sweep(ev, written, how->sweep, how->set, how->n_set);
    }
    if (own)
        check_overrides_used(ev, f, built, built && !how->model_only);
    return u;
}
