/* settings.c - see settings.h. */
#include "settings.h"

#include <stdlib.h>

#include "grammar/ast.h"
#include "run_dir.h"

typedef struct Flattening {
    Ctx *ctx;
    Arena *arena;
    SettingList out;
} Flattening;

static void items(Flattening *f, const Ast *list, const char *prefix);

/* The second of two equal names is name[2]. */
static void add(Flattening *f, const char *name, const char *value)
{
    Name is = name_str(f->ctx, name);
    for (int k = 2; settings_get(&f->out, is); k++)
        is = name_printf(f->ctx, "%s[%d]", name, k);
    vec_push(f->arena, &f->out, ((Setting){is, value}));
}

static const char *value_text(Flattening *f, const Ast *value)
{
    Buf b = buf_new(f->arena);
    ast_print_expr(&b, value);
    return b.s;
}

/* "width.bottleneck" */
static const char *path_text(Flattening *f, const Ast *path)
{
    Buf b = buf_new(f->arena);
    buf_puts(&b, path->name);
    for (uint32_t i = 0; i < path->n; i++)
        if (path->kid[i]->kind == AST_DOT)
            buf_printf(&b, ".%s", path->kid[i]->name);
        else
            buf_puts(&b, "[*]");
    return b.s;
}

/* `model nano` gives "model" = nano and names without it; `optimizer adamw` is one of a kind, `head lm` one of several. */
static void node(Flattening *f, const Ast *it, const char *prefix)
{
    const char *name = path_text(f, it->kid[0]), *label = it->kid[1] ? it->kid[1]->name : NULL;
    bool model = !*prefix && !strcmp(name, "model"), kind = !strcmp(name, "optimizer");
    if (label && (model || kind))
        add(f, arena_printf(f->arena, "%s%s", prefix, name), label);
    const char *inner = model            ? ""
                        : label && !kind ? arena_printf(f->arena, "%s%s.%s.", prefix, name, label)
                                         : arena_printf(f->arena, "%s%s.", prefix, name);
    if (it->kid[2])
        items(f, it->kid[2], inner);
}

static void item(Flattening *f, const Ast *it, const char *prefix)
{
    switch (it->kind) {
    case AST_LET: add(f, arena_printf(f->arena, "%s%s", prefix, it->name), value_text(f, it->kid[1])); break;
    case AST_SET:
        add(f, arena_printf(f->arena, "%s%s", prefix, path_text(f, it->kid[0])), value_text(f, it->kid[1]));
        break;
    case AST_NODE: node(f, it, prefix); break;
    case AST_FOR: items(f, it->kid[1], arena_printf(f->arena, "%s%s[*].", prefix, it->name)); break;
    case AST_IF:
        items(f, it->kid[1], prefix);
        if (it->kid[2])
            it->kid[2]->kind == AST_IF ? item(f, it->kid[2], prefix) : items(f, it->kid[2], prefix);
        break;
    default: break;
    }
}

static void items(Flattening *f, const Ast *list, const char *prefix)
{
    for (uint32_t i = 0; i < list->n; i++)
        item(f, list->kid[i], prefix);
}

SettingList settings_read(Session *s, Arena *a, const char *run)
{
    Flattening f = {.ctx = s->ctx, .arena = a};
    size_t n, before = diag_count(s->ctx);
    const char *path = arena_printf(s->arena, "%s/" RESOLVED_FILE, run), *text = run_read_file(s->arena, path, &n);
    if (!text)
        return f.out;
    const Ast *ast = vwn_parse(s->ctx, source_add(s->ctx, path, text, n));
    if (diag_count(s->ctx) == before && ast)
        items(&f, ast, "");
    diag_truncate(s->ctx, before);
    return f.out;
}

const char *settings_get(const SettingList *l, Name name)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->v[i].name == name)
            return l->v[i].value;
    return NULL;
}

/* ---- what differs ---- */

static int by_text(const void *x, const void *y) { return strcmp(*(const char *const *)x, *(const char *const *)y); }

static bool differs(const SettingList *const *l, size_t n, const Setting *s)
{
    for (size_t j = 0; j < n; j++) {
        const char *v = settings_get(l[j], s->name);
        if (l[j]->n && (!v || strcmp(v, s->value)))
            return true;
    }
    return false;
}

SettingNames settings_differing(Arena *a, const SettingList *const *l, size_t n)
{
    SettingNames out = {0};
    Map seen;
    map_init(&seen, a);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < l[i]->n; k++) {
            const Setting *s = &l[i]->v[k];
            void **at = map_at(&seen, (uintptr_t)s->name);
            if (!*at && differs(l, n, s))
                vec_push(a, &out, s->name);
            *at = (void *)s;
        }
    if (out.n)
        qsort(out.v, out.n, sizeof *out.v, by_text);
    return out;
}

Name settings_holder(const SettingList *l, Ctx *ctx, Name name)
{
    enum { PASSED_ON_MOST = 8 };
    for (int i = 0; i < PASSED_ON_MOST; i++) {
        const char *v = settings_get(l, name);
        Name next = v ? name_str(ctx, v) : NULL;
        if (!next || next == name || !settings_get(l, next))
            break;
        name = next;
    }
    return name;
}

bool settings_same_but_seed(const SettingList *x, const SettingList *y, Ctx *ctx)
{
    Name seed = settings_holder(x, ctx, name_str(ctx, "train.seed"));
    if (seed != settings_holder(y, ctx, name_str(ctx, "train.seed")))
        return false;
    for (size_t i = 0; i < x->n; i++) {
        const char *v = settings_get(y, x->v[i].name);
        if (x->v[i].name != seed && (!v || strcmp(v, x->v[i].value)))
            return false;
    }
    return x->n && x->n == y->n;
}

static bool is_of_training(const char *name) { return !strncmp(name, "train.", 6); }

static bool in_word(char c)
{
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Whether an expression has the word. */
static bool reads(const char *value, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = strstr(value, word); at; at = strstr(at + 1, word))
        if ((at == value || !in_word(at[-1])) && !in_word(at[n]))
            return true;
    return false;
}

/* A `let` of the file that nothing but training reads, not even through another `let`. */
static bool only_trains(const SettingList *l, const char *name)
{
    bool read = false;
    if (strchr(name, '.'))
        return false;
    for (size_t i = 0; i < l->n; i++) {
        if (l->v[i].name == name || !reads(l->v[i].value, name))
            continue;
        if (!is_of_training(l->v[i].name))
            return false;
        read = true;
    }
    return read;
}

bool settings_same_model(const SettingList *x, const SettingList *y)
{
    if (!x->n || !y->n)
        return false;
    for (int turn = 0; turn < 2; turn++) {
        const SettingList *a = turn ? y : x, *b = turn ? x : y;
        for (size_t i = 0; i < a->n; i++) {
            const char *v = settings_get(b, a->v[i].name);
            bool same = v && !strcmp(v, a->v[i].value);
            if (!same && !is_of_training(a->v[i].name) && !only_trains(a, a->v[i].name))
                return false;
        }
    }
    return true;
}
