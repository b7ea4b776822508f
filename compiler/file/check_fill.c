/* check_fill.c - `fill` of a growth step: what new numbers begin with.
 *
 * In:  its items, then the models before and after.   Out: FillRule records; which tensors are copies of others.
 * The one idea: a value of `fill` is an initialiser or one of a few words; layers are numbers in paths, so that a copy of
 * a layer is the same path with another number.
 */
#include "check_fill.h"
#include "check_items.h"
#include "compiler/front/check_prim.h"
#include "compiler/growth/growth.h"

#include <stdlib.h>

/* Where each may stand says the row of that attribute. */
typedef struct Word {
    const char *name;
    FillKind kind;
} Word;
static const Word words[] = {
    {"copy", FILL_COPY}, {"split", FILL_SPLIT},       {"replicate", FILL_REPLICATE}, {"noise", FILL_NOISE},
    {"mean", FILL_MEAN}, {"identity", FILL_IDENTITY}, {"rescale", FILL_RESCALE},
};

/* ---- rules ---- */

/* The word that an expression is, or calls; NULL: it is none, or a name of the file. */
static const Word *word_of(const File *f, const Ast *e, const Ast **args)
{
    const Ast *name = e->kind == AST_CALL ? e->kid[0] : e;
    *args = e->kind == AST_CALL ? e->kid[1] : NULL;
    for (size_t i = 0; name->kind == AST_ID && i < COUNT_OF(words); i++)
        if (!strcmp(words[i].name, name->name) && !env_find(f->env, name->name))
            return &words[i];
    return NULL;
}

/* *found: the only argument, by its name or without one; NULL: there is none. False: an error is filed. */
static bool only_argument(Eval *ev, const Ast *args, const char *name, const char *of, const Ast **found)
{
    *found = NULL;
    for (uint32_t i = 0; args && i < args->n; i++) {
        const Ast *a = args->kid[i];
        if (a->kind == AST_OFF)
            continue;
        bool named = a->kind == AST_NAMED;
        if (*found || !name || (named && strcmp(a->name, name) != 0)) {
            if (name)
                err(ev, "E0206", a->span, "", "`%s` of fill takes one argument, `%s`", of, name);
            else
                err(ev, "E0206", a->span, "", "`%s` of fill takes no argument here", of);
            return false;
        }
        *found = named ? a->kid[0] : a;
    }
    return true;
}

static bool read_word(Eval *ev, File *f, const Word *w, const Ast *args, const Ast *it, FillRule *r)
{
    bool layers = !strcmp(r->part, "layers");
    if (!attribute_has_word(attribute_find("fill", r->part), w->name)) {
        Buf parts = buf_new(ev->arena);
        for (size_t i = 0; i < attribute_count(); i++)
            if (!strcmp(attribute_at(i)->node, "fill") && attribute_has_word(attribute_at(i), w->name))
                buf_printf(&parts, "%s%s", parts.n ? " " : "", attribute_at(i)->name);
        Diag *d = err(ev, "E0206", it->kid[1]->span, "", "`%s` means nothing for `%s`", w->name, r->part);
        diag_help(ev->ctx, d, "`%s` may stand in: %s", w->name, parts.s);
        return false;
    }
    r->kind = w->kind;
    r->share = EQUAL_SHARES;
    bool shares = w->kind == FILL_SPLIT || w->kind == FILL_NOISE;
    const char *takes = shares ? "share" : w->kind == FILL_COPY && layers ? "of" : NULL;
    const Ast *arg;
    if (!only_argument(ev, args, takes, w->name, &arg))
        return false;
    if (w->kind == FILL_COPY)
        r->of = arg;
    if (!arg && w->kind == FILL_NOISE) {
        Diag *d = err(ev, "E0104", it->kid[1]->span, "missing `share`", "`noise` needs `share`");
        diag_help(ev->ctx, d,
                  "for example `%s = noise(share = 10%%)`: a tenth of the standard deviation of the old numbers",
                  r->part);
        return false;
    }
    if (!arg || !shares)
        return true;
    Value v = eval(ev, arg, f->env, NULL);
    if (v.kind == V_POISON)
        return false;
    if (v.kind != V_NUM || !(v.num > 0 && (v.num < 1 || w->kind == FILL_NOISE))) {
        Diag *d = err(ev, "E0206", arg->span, "", "%s, got %s",
                      w->kind == FILL_NOISE ? "the share of `noise` is more than 0" : "a share lies between 0 and 1",
                      v.kind == V_NUM ? value_text(ev, &v) : value_kind_name(&v));
        if (w->kind == FILL_SPLIT)
            diag_help(ev->ctx, d,
                      "`split(share = 0.4)` leaves 0.6 to what is copied; without a share all get the same");
        return false;
    }
    r->share = v.num;
    return true;
}

static bool read_value(Eval *ev, File *f, const Ast *it, FillRule *r)
{
    static const Ast init_type = {.kind = AST_ID, .name = "init"};
    const Ast *args;
    const Word *w = word_of(f, it->kid[1], &args);
    if (w)
        return read_word(ev, f, w, args, it, r);
    Value v = check_type(ev, eval(ev, it->kid[1], f->env, NULL), &init_type, it->kid[1]->span, r->part, f->env);
    if (v.kind != V_INIT)
        return false;
    r->kind = FILL_INIT;
    r->init = *v.init;
    return true;
}

/* Selected weights have the attributes of `fill`, but selectors. */
void fill_rules(Eval *ev, File *f, const Ast *items, const char *selector, GrowStep *g)
{
    for (uint32_t i = 0; items && i < items->n; i++) {
        const Ast *it = items->kid[i];
        if (it->kind == AST_NODE && it->kid[0]->n && *selector)
            err(ev, "E0110", it->kid[0]->span, "", "a selector in `%s`, which chooses weights already", selector);
        if (it->kind == AST_NODE && it->kid[0]->n && !*selector) {
            size_t n;
            const char *text = source_text(ev->ctx, it->kid[0]->span.file, &n);
            Span s = it->kid[0]->span;
            attributes_fit(ev, it->kid[2], "fill");
            fill_rules(ev, f, it->kid[2], arena_copy(ev->arena, text + s.lo, s.hi - s.lo), g);
        }
        if (it->kind != AST_SET || it->kid[0]->n)
            continue;
        FillRule r = {
            .selector = selector, .part = it->kid[0]->name, .text = expr_text(ev, it->kid[1]), .span = it->span};
        if (read_value(ev, f, it, &r))
            vec_push(ev->arena, &g->fill, r);
    }
}

void fill_moments(Eval *ev, const Ast *items, GrowStep *g)
{
    for (uint32_t i = 0; items && i < items->n; i++) {
        const Ast *it = items->kid[i], *v = it->kind == AST_SET ? it->kid[1] : NULL;
        if (!v || it->kid[0]->n || strcmp(it->kid[0]->name, "moments") != 0)
            continue;
        Name word = attribute_word(ev, attribute_find("grow", "moments"), v, ev->unit->file->env);
        g->fresh_moments = word && !strcmp(word, "zeros");
    }
}

/* ---- copies of whole tensors ---- */

/* A path with the number of a layer in it: "layer[3].ffn.up.W". */
typedef struct Numbered {
    const char *path, *rest; /* rest: from "]" on */
    int name;                /* how many letters stand before "[" */
    int64_t number;
} Numbered;

static bool number_in(const char *path, Numbered *n)
{
    const char *open = strchr(path, '[');
    char *end;
    if (!open)
        return false;
    *n = (Numbered){.path = path, .name = (int)(open - path), .number = strtoll(open + 1, &end, 10)};
    n->rest = end;
    return *end == ']';
}

/* How many layers of this name a model has. */
static int64_t layers_of(const Model *m, const Numbered *like)
{
    int64_t most = 0;
    Numbered n;
    for (size_t i = 0; i < m->param.n; i++)
        if (number_in(m->param.v[i].path, &n) && n.name == like->name && !memcmp(n.path, like->path, (size_t)n.name) &&
            n.number > most)
            most = n.number;
    return most;
}

static Name renumbered(Eval *ev, const Numbered *n, int64_t number)
{
    return name_printf(ev->ctx, "%.*s[%lld%s", n->name, n->path, (long long)number, n->rest);
}

/* A path of the model and not a number: `layer[*].ffn.up`. */
static bool is_path(const Ast *e) { return e->kind == AST_FIELD || e->kind == AST_INDEX; }

/* The path as it is written, with the numbers of `path` for its stars; what stands behind the selector may follow. */
static Name starred(Eval *ev, const char *text, const char *selector, const char *path, bool with_rest)
{
    Buf b = buf_new(ev->arena);
    const char *from = path;
    for (; *text; text++) {
        if (*text != '*') {
            buf_putc(&b, *text);
            continue;
        }
        from = strchr(from, '[');
        if (!from)
            return name_str(ev->ctx, "");
        for (from++; *from && *from != ']'; from++)
            buf_putc(&b, *from);
    }
    const char *rest = path;
    for (const char *s = selector; *s; s++, rest++)
        if (*s == '*')
            while (rest[1] && rest[1] != ']')
                rest++;
    if (with_rest)
        buf_puts(&b, rest);
    return name_str(ev->ctx, b.s);
}

typedef struct FillSources {
    Eval *ev;
    File *file;
    GrowStep *g;
    Map had; /* paths of the model before the step */
} FillSources;

static bool is_old(const FillSources *s, Name path) { return map_get(&s->had, (uintptr_t)path) != NULL; }

/* What `copy(...)` says of a new weight; NULL: an error is filed, or there is nothing of that kind to copy. */
static Name copied_from(FillSources *s, const FillRule *r, Name path)
{
    Eval *ev = s->ev;
    Numbered n;
    if (r->of && is_path(r->of)) {
        const char *text = expr_text(ev, r->of);
        Name from = starred(ev, text, r->selector, path, false),
             below = starred(ev, text, r->selector, path, *r->selector);
        if (is_old(s, from) || is_old(s, below))
            return is_old(s, from) ? from : below;
        err(ev, "E0105", r->of->span, "", "the model before the step has no weight `%s`, which `%s` would copy", below,
            path);
        return NULL;
    }
    int64_t layers = number_in(path, &n) ? layers_of(s->g->before, &n) : 0,
            from = layers ? (n.number - 1) % layers + 1 : 0;
    if (!layers)
        return NULL;
    if (r->of) {
        Name name = name_printf(ev->ctx, "%.*s", n.name, path);
        Value v = eval(ev, r->of, env_bind(ev, s->file->env, name, v_num((double)n.number), NO_SPAN), NULL);
        if (v.kind == V_POISON)
            return NULL;
        if (v.kind != V_NUM || v.num < 1 || v.num > (double)layers || v.num != (double)(int64_t)v.num) {
            Diag *d = err(ev, "E0206", r->of->span, "", "%s[%lld] would be a copy of %s[%s]", name, (long long)n.number,
                          name, v.kind == V_NUM ? value_text(ev, &v) : "?");
            diag_note(ev->ctx, d, "the model before the step has %s 1 to %lld", name, (long long)layers);
            return NULL;
        }
        from = (int64_t)v.num;
    }
    Name source = renumbered(ev, &n, from);
    return is_old(s, source) ? source : NULL;
}

/* Where each layer stands several times: those of before, each followed by its copies. */
static Name replicated(FillSources *s, const FillRule *r, Name path, bool *first)
{
    Numbered n;
    int64_t had = number_in(path, &n) ? layers_of(s->g->before, &n) : 0, has = had ? layers_of(s->g->after, &n) : 0;
    *first = true;
    if (!had || !has)
        return path;
    if (has % had) {
        Diag *d = err(s->ev, "E0206", r->span, "", "%lld layers cannot each become as many of %lld", (long long)had,
                      (long long)has);
        diag_help(s->ev->ctx, d,
                  "`layers = replicate` takes a multiple of %lld; `layers = copy` puts copies behind them",
                  (long long)had);
        return NULL;
    }
    *first = (n.number - 1) % (has / had) == 0;
    Name source = renumbered(s->ev, &n, (n.number - 1) / (has / had) + 1);
    return is_old(s, source) ? source : NULL;
}

/* "": it is new as a whole; its own path: what it was. The last rule that fits holds. *itself: it is the old one, under
 * another number where layers are put between. */
static Name source_of(FillSources *s, Name path, bool *itself)
{
    bool moves = false, first = true;
    Name moved = NULL, none = name_str(s->ev->ctx, "");
    for (size_t i = 0; i < s->g->fill.n; i++) {
        const FillRule *r = &s->g->fill.v[i];
        if (r->kind == FILL_REPLICATE && !strcmp(r->part, "layers") &&
            (!*r->selector || growth_selects(r->selector, path))) {
            moved = replicated(s, r, path, &first);
            moves = true;
        }
    }
    *itself = moves ? first && moved : is_old(s, path);
    if (*itself)
        return moves ? moved : path;
    Name from = none;
    for (size_t i = 0; i < s->g->fill.n && !diag_errors(s->ev->ctx); i++) {
        const FillRule *r = &s->g->fill.v[i];
        if (strcmp(r->part, "layers") != 0 || (*r->selector && !growth_selects(r->selector, path)))
            continue;
        Name copy = r->kind == FILL_COPY ? copied_from(s, r, path) : r->kind == FILL_REPLICATE ? moved : NULL;
        from = copy ? copy : none;
    }
    return from;
}

static void find_sources(Eval *ev, File *f, GrowStep *g)
{
    bool any = false;
    for (size_t i = 0; i < g->fill.n; i++)
        any |= !strcmp(g->fill.v[i].part, "layers") &&
               (g->fill.v[i].kind == FILL_COPY || g->fill.v[i].kind == FILL_REPLICATE);
    if (!any)
        return;
    FillSources s = {.ev = ev, .file = f, .g = g};
    map_init(&s.had, ev->arena);
    for (size_t i = 0; i < g->before->param.n; i++)
        *map_at(&s.had, (uintptr_t)g->before->param.v[i].path) = (void *)(uintptr_t)(i + 1);
    Name *source = NEW_ARRAY(ev->arena, Name, g->after->param.n + 1);
    bool *moved = NEW_ARRAY(ev->arena, bool, g->after->param.n + 1);
    for (size_t i = 0; i < g->after->param.n && !diag_errors(ev->ctx); i++)
        source[i] = source_of(&s, g->after->param.v[i].path, &moved[i]);
    g->source = source;
    g->moved = moved;
}

void fill_models(Eval *ev, File *f, GrowStep *g)
{
    for (size_t i = 0; i < g->fill.n; i++) {
        const FillRule *r = &g->fill.v[i];
        bool met = !*r->selector;
        for (size_t k = 0; k < g->after->param.n && !met; k++)
            met = growth_selects(r->selector, g->after->param.v[k].path);
        if (met)
            continue;
        Diag *d = err(ev, "E0105", r->span, "", "`%s` selects no weight of the grown model", r->selector);
        diag_help(ev->ctx, d, "`vwn grow FILE %s --plan` prints their paths, `layer[*]` is every layer", g->name);
        return;
    }
    find_sources(ev, f, g);
}

const Param *fill_taker(const GrowStep *g, Name path)
{
    for (size_t i = 0; i < g->after->param.n; i++)
        if ((g->source ? g->source[i] : g->after->param.v[i].path) == path)
            return &g->after->param.v[i];
    return NULL;
}
