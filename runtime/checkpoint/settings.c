/* settings.c - see settings.h. */
#include "settings.h"

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
    const char *inner = model           ? ""
                        : label && !kind ? arena_printf(f->arena, "%s%s.%s.", prefix, name, label)
                                         : arena_printf(f->arena, "%s%s.", prefix, name);
    if (it->kid[2])
        items(f, it->kid[2], inner);
}

static void item(Flattening *f, const Ast *it, const char *prefix)
{
    switch (it->kind) {
    case AST_LET: add(f, arena_printf(f->arena, "%s%s", prefix, it->name), value_text(f, it->kid[1])); break;
    case AST_SET: add(f, arena_printf(f->arena, "%s%s", prefix, path_text(f, it->kid[0])), value_text(f, it->kid[1])); break;
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
    const char *path = arena_printf(s->arena, "%s/resolved.vwn", run), *text = run_read_file(s->arena, path, &n);
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
