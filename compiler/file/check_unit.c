/* check_unit.c - the entry check_file(): a file with settings from the command line, all of its nodes, as a Unit.
 *
 * In:  a text, --set, what is wanted of it.     Out: the Unit; diagnostics.
 */
#include "check_claim.h"
#include "check_train.h"
#include "check_unit.h"

#include "compiler/front/override.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

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

static bool is_letter(char c) { return (c | 32) >= 'a' && (c | 32) <= 'z'; }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* foo.txt, ../data/corpus.bin: a name of letters alone behind the last dot, and no operator but `/`, `-`. */
static bool is_file_name(const char *value)
{
    const char *dot = strrchr(value, '.');
    size_t n = dot ? strlen(dot + 1) : 0;
    if (!n || n > 11)
        return false;
    for (const char *c = value; *c; c++)
        if (!is_letter(*c) && !is_digit(*c) && !strchr("._-/", *c))
            return false;
    return is_letter(dot[1]) && (is_letter(value[0]) || value[0] == '.' || value[0] == '/' || value[0] == '_');
}

/* Whether the n letters name what a file is given for. */
static bool takes_file(const char *path, int n)
{
    static const char *const of[] = {".data", ".path", ".tokenizer", ".start_from"};
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++) {
        int k = (int)strlen(of[i]);
        if (n > k && !strncmp(path + n - k, of[i], (size_t)k))
            return true;
    }
    return false;
}

/* What other programs call the list of layers, which they count from 0. */
static bool is_layers(const char *name, size_t n)
{
    static const char *const words[] = {"h", "layers", "blocks"};
    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (strlen(words[i]) == n && !memcmp(words[i], name, n))
            return true;
    return false;
}

/* PATH=VALUES as other programs write them; what is written instead, or NULL. */
static const char *written_here(Eval *ev, const char *text, const char *flag)
{
    const char *eq = strchr(text, '='), *value = eq ? eq + 1 : "";
    double first, last, by;
    long long low, high;
    int end = 0;
    if (!eq || eq == text)
        return NULL;
    int n = (int)(eq - text);
    if (!strcmp(flag, "--seeds") && sscanf(value, "[%lld..%lld]%n", &low, &high, &end) == 2 && end && !value[end])
        return "seeds are a list: `--seeds 1,2,3`";
    if (strcmp(flag, "--set") && sscanf(value, "%lf:%lf:%lf%n", &first, &last, &by, &end) == 3 && end && !value[end] &&
        by > 0 && last > first)
        return arena_printf(ev->arena,
                            "from %g to %g by %g: `%s '%.*s=range(%g, %g, %.0f)'`, whose last number says how many",
                            first, first + floor((last - first) / by) * by, by, flag, n, text, first,
                            first + floor((last - first) / by) * by, floor((last - first) / by) + 1);
    if (strcmp(flag, "--set") && sscanf(value, "%lf..%lf%n", &first, &last, &end) == 2 && end && !value[end] &&
        (first != floor(first) || last != floor(last)))
        return arena_printf(ev->arena,
                            "drawn from between: `%s '%.*s=between(%g, %g, scale = log)' --random 8`; at equal "
                            "ratios: `range(%g, %g, 5, scale = log)`",
                            flag, n, text, first, last, first, last);
    if (is_file_name(value) && takes_file(text, n))
        return arena_printf(ev->arena, "texts stand between quotes: `%s '%.*s%s=\"%s\"'`", flag, n, text,
                            n > 4 && !strncmp(eq - 5, ".data", 5) ? ".path" : "", value);
    Buf b = buf_new(ev->arena); /* layer.1.ffn, train/batch */
    bool other = false, quoted = memchr(text, '"', (size_t)n) != NULL;
    for (int i = 0; i < n && !quoted; i++) {
        int k = i + 1;
        while (k < n && is_digit(text[k]))
            k++;
        if (text[i] == '.' && i && k > i + 1 && (k == n || text[k] == '.')) {
            /* `transformer.h.0` is the first layer, whatever it is in */
            size_t from = b.n;
            while (from && b.s[from - 1] != '.')
                from--;
            bool layers = is_layers(b.s + from, b.n - from);
            if (layers)
                b.n = 0;
            buf_printf(&b, "%s[%d]", layers ? "layer" : "", atoi(text + i + 1) + layers);
            i = k - 1;
            other = true;
        } else if (text[i] == '.' && text[k] == '*') {
            buf_puts(&b, "[*]");
            i++;
            other = true;
        } else {
            buf_putc(&b, text[i] == '/' && i ? '.' : text[i]);
            other |= text[i] == '/';
        }
    }
    if (other)
        return arena_printf(ev->arena, "a path is written `%s '%s=%s'`, and layers are counted from 1", flag, b.s,
                            value);
    const char *colon = quoted ? NULL : memchr(text, '[', (size_t)n);
    colon = colon ? memchr(colon, ':', (size_t)(text + n - colon)) : NULL;
    if (colon)
        return arena_printf(ev->arena, "one layer is `layer[2]`, and all are `layer[*]`: one `%s` for each", flag);
    if (!strcmp(flag, "--set") && has_comma(value) && *value != '(')
        return arena_printf(
            ev->arena, "a list is written `--set '%.*s=[%s]'`; several values are a sweep: `vwn sweep FILE --vary %s`",
            n, text, value, text);
    return NULL;
}

bool parse_setting(Eval *ev, const char *text, const char *flag, Override *o)
{
    uint32_t source = source_add(ev->ctx, "<command line>", text, strlen(text));
    const char *eq = strchr(text, '=');
    Span all = {source, 0, (uint32_t)strlen(text)};
    bool list = !strcmp(flag, "--vary");
    if (!eq || eq == text || !eq[1]) {
        Diag *d = err(ev, "E0105", all, "", list ? "`%s` needs PATH=VALUES" : "`%s` needs PATH=EXPR", flag);
        const char *value = !eq ? strchr(text, ':') : NULL; /* PATH: VALUE */
        if (value && value > text && value[1])
            diag_help(ev->ctx, d, "write `%s '%.*s=%s'`", flag, (int)(value - text), text,
                      value + 1 + strspn(value + 1, " "));
        else
            diag_help(ev->ctx, d,
                      list ? "for example `--vary D=256,512` or `--vary 'lr=range(1e-4, 1e-2, 5, scale = log)'`"
                           : "for example `--set D=768` or `--set conn='residual()'`");
        return false;
    }
    const char *here = written_here(ev, text, flag);
    if (here) {
        Diag *d = err(ev, "E0105", all, "", "`%s` is not written so", flag);
        diag_help(ev->ctx, d, "%s", here);
        return false;
    }
    /* Both halves are parsed in place (padded with blanks), so that carets point into the argument, which excerpts show. */
    size_t n = strlen(text), at = (size_t)(eq - text);
    char *left = arena_copy(ev->arena, text, n);
    memset(left + at, ' ', n - at);
    char *right = arena_printf(ev->arena, "%s%s", text, list && has_comma(eq + 1) ? "]" : "");
    memset(right, ' ', at + 1);
    if (strlen(right) > n)
        right[at] = '[';
    uint32_t l = source_add(ev->ctx, "<command line>", left, n),
             r = source_add(ev->ctx, "<command line>", right, strlen(right));
    source_show(ev->ctx, l, text);
    source_show(ev->ctx, r, text);
    *o = (Override){
        .path = vwn_parse_path(ev->ctx, l), .expr = vwn_parse_expr(ev->ctx, r), .origin = name_str(ev->ctx, flag)};
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

void check_overrides_used(Eval *ev, File *f, bool built, bool trained)
{
    for (size_t i = 0; i < f->overrides.n; i++) {
        Override *o = &f->overrides.v[i];
        bool train = !strcmp(o->path->name, "train");
        if (!o->used && (!o->path->n || (train ? trained : built)))
            override_unknown(ev, f, o);
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
        remember(ev, b->span, &v);
        LineCol at = source_position(ev->ctx, b->span.file, b->span.lo);
        LetInfo info = {.name = b->name,
                        .text = value_text(ev, &v),
                        .span = b->span,
                        .origin = b->origin ? b->origin
                                            : arena_printf(ev->arena, "%s:%u:%u", source_path(ev->ctx, b->span.file),
                                                           at.line, at.column)};
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
        if (f->base && f->parent && !f->quiet) /* of a variant that is imported what was built of it */
            check_overrides_used(ev, f, f->model_state == 2, false);
    }
}

static Unit *check_all(Ctx *ctx, const CheckOptions *how)
{
    Unit *u = NEW(ctx->program, Unit);
    Eval *ev = NEW(ctx->program, Eval);
    u->ctx = ctx;
    u->path = how->path;
    u->folder = how->folder;
    u->remembers = how->remember;
    u->set = NEW_ARRAY(ctx->program, const char *, how->n_set + 1);
    for (; u->n_set < how->n_set; u->n_set++)
        u->set[u->n_set] = arena_copy(ctx->program, how->set[u->n_set], strlen(how->set[u->n_set]));
    *ev = (Eval){.ctx = ctx,
                 .decide_claim = decide_claim,
                 .arena = ctx->program,
                 .unit = u,
                 .bytes_before = ctx->bytes,
                 .text_of = how->text_of,
                 .text_user = how->user};
    map_init(&ev->seen, ctx->program);
    map_init(&ev->moved, ctx->program);
    File *f = file_load(ev, how->path, how->text, how->text_length, NO_SPAN, NULL);
    if (f && how->folder)
        f->folder = how->folder;
    u->file = f;
    u->ast = f && f->base ? f->base->ast : f ? f->ast : NULL;
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
        file_list_gone(ev, f, written->base ? written->base->n_gone : 0);
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
        if (!before && how->so_far && f->checks.n + f->grows.n + f->sweeps.n)
            how->so_far(how->user, u);
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

Unit *check_file(Ctx *ctx, const CheckOptions *how)
{
    Unit *u = check_all(ctx, how);
    if (!u->file || !diag_errors(ctx))
        return u;
    Buf with = buf_new(ctx->program);
    for (size_t i = 0; i < how->n_set; i++)
        buf_printf(&with, "%s`--set %s`", list_gap(i, how->n_set, " and "), how->set[i]);
    override_notes(u->file->ev, u->file, how->n_set ? with.s : NULL);
    return u;
}

Name unit_model_name(const Unit *u)
{
    const Ast *ast = u->file ? u->file->ast : NULL;
    for (uint32_t i = 0; ast && i < ast->n; i++) {
        const Ast *it = ast->kid[i];
        if (it->kind == AST_NODE && !strcmp(it->kid[0]->name, "model") && it->kid[1])
            return it->kid[1]->name;
    }
    return NULL;
}

bool unit_has_growth(const Unit *u, const char *name)
{
    const Ast *ast = u->file ? u->file->ast : NULL;
    for (uint32_t i = 0; ast && i < ast->n; i++) {
        const Ast *it = ast->kid[i];
        if (it->kind == AST_NODE && !strcmp(it->kid[0]->name, "grow") && it->kid[1] && !strcmp(it->kid[1]->name, name))
            return true;
    }
    return false;
}

const char *setting_meant(const Unit *u, const char *word, const char **inner)
{
    *inner = NULL;
    return u->ast ? override_nearest(u->file->ev, u->file, word, inner) : NULL;
}
