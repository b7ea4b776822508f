/* resolve.c - prints a checked file with nothing left to defaults, overrides or other files.
 *
 * In:  a Unit and the evaluator's File behind it.   Out: the text of a .vwn file.
 * The one idea: print boldly, then prove. The text is checked like any other file and its model
 * is compared with the one at hand; when writing defaults out as items changed anything, they
 * are written as comments instead.
 */
#include "check.h"
#include "resolve.h"

#include <stdio.h>

typedef struct Part { /* of a node's path: "layer" with variable "layer", "attention" without
                         one */
    Name name, variable;
} Part;
enum { MOST_PARTS = 32 };

typedef struct Printer {
    Ctx *ctx;
    Arena *arena;
    Eval *ev;
    File *file; /* whose names the printed text uses */
    bool items; /* defaults as items, not as comments */
    Buf out;
    VEC(Name) seen; /* std files already imported, blocks already taken in */
    Part part[MOST_PARTS];
    int depth;
    bool training; /* inside `train` */
} Printer;

static void print_items(Printer *p, const Ast *items);

static bool seen(Printer *p, Name name)
{
    for (size_t i = 0; i < p->seen.n; i++)
        if (p->seen.v[i] == name)
            return true;
    vec_push(p->arena, &p->seen, name);
    return false;
}

static const char *place_text(Printer *p, Span at)
{
    LineCol c = source_position(p->ctx, at.file, at.lo);
    return arena_printf(p->arena, "%s:%u", source_path(p->ctx, at.file), c.line);
}

/* ---- expressions ---- */

static const Ast *rewrite(Printer *p, const Ast *e, File *home);

static bool is_literal(const Ast *e)
{
    return e->kind == AST_NUM || e->kind == AST_BOOL || e->kind == AST_STR ||
           (e->kind == AST_NEG && e->kid[0]->kind == AST_NUM) ||
           (e->kind == AST_ID && strcmp(e->name, "none") == 0);
}

static Ast *ast_new(Printer *p, AstKind kind, Name name, Span span, uint32_t n)
{
    Ast *a = NEW(p->arena, Ast);
    *a = (Ast){.kind = kind, .name = name, .span = span, .name_span = span, .n = n};
    a->kid = NEW_ARRAY(p->arena, Ast *, n + 1);
    return a;
}

/* The block that a name stands for where it is declared by `block`, not by a let. */
static const BlockDef *block_named(File *f, Name name)
{
    Binding *b = env_find(f->env, name);
    bool is_block = b && !b->is_let && b->state == BIND_READY && b->value.kind == V_BLOCK;
    return is_block ? b->value.block->def : NULL;
}

static bool has_argument(const Ast *args, Name name)
{
    for (uint32_t i = 0; i < args->n; i++)
        if (args->kid[i]->kind == AST_NAMED && args->kid[i]->name == name)
            return true;
    return false;
}

/* A call of a block, with the defaults that are plain values as further arguments. */
static const Ast *with_defaults(Printer *p, const Ast *call, const BlockDef *def)
{
    const Ast *params = def->ast->kid[0], *args = call->kid[1];
    Ast *out = ast_new(p, AST_CALL, NULL, call->span, 2);
    Ast *all = ast_new(p, AST_ARGS, NULL, args->span, args->n + params->n);
    all->n = 0;
    for (uint32_t i = 0; i < args->n; i++)
        if (args->kid[i]->kind != AST_OFF)
            all->kid[all->n++] = args->kid[i];
    for (uint32_t i = 0; i < params->n; i++) {
        const Ast *par = params->kid[i];
        if (!par->kid[1] || !is_literal(par->kid[1]) || has_argument(args, par->name))
            continue;
        Ast *named = ast_new(p, AST_NAMED, par->name, par->kid[1]->span, 1);
        named->kid[0] = par->kid[1];
        all->kid[all->n++] = named;
    }
    out->kid[0] = call->kid[0];
    out->kid[1] = all;
    return out;
}

/* A value that can be written as a literal, else NULL. */
static const Ast *literal_of(Printer *p, const Value *v, Span span)
{
    Buf b = buf_new(p->arena);
    if (v->kind == V_NUM) {
        buf_number(&b, v->num);
        return ast_new(p, AST_NUM, name_of(p->ctx, b.s, b.n), span, 0);
    }
    if (v->kind == V_BOOL)
        return ast_new(p, AST_BOOL, name_str(p->ctx, v->num != 0 ? "true" : "false"), span, 0);
    if (v->kind == V_STR)
        return ast_new(p, AST_STR, v->word, span, 0);
    return NULL;
}

static void take_in_blocks(Printer *p, File *from);

/* What a let of another file is, as an expression that this text understands. */
static const Ast *let_of(Printer *p, File *other, Name field, Span span)
{
    Value v = file_field(p->ev, other, field, span);
    const Ast *literal = literal_of(p, &v, span);
    if (literal)
        return literal;
    Binding *b = map_get(&other->names, (uintptr_t)field);
    if (!b || !b->expr)
        return NULL;
    take_in_blocks(p, other);
    Ast *paren = ast_new(p, AST_PAREN, NULL, span, 1);
    paren->kid[0] = (Ast *)rewrite(p, b->expr, b->env && b->env->file ? b->env->file : other);
    return paren;
}

/* `e`, written in file `home`, for the text of p->file: lets of other files are put in place.
 */
static const Ast *rewrite(Printer *p, const Ast *e, File *home)
{
    if (!e)
        return NULL;
    if (e->kind == AST_FIELD && e->kid[0]->kind == AST_ID) {
        Binding *b = env_find(home->env, e->kid[0]->name);
        if (b && b->state == BIND_READY && b->value.kind == V_FILE) {
            const Ast *value = let_of(p, b->value.file, e->name, e->span);
            return value ? value : e;
        }
    }
    if (e->kind == AST_ID && home != p->file && !env_find(p->file->env, e->name)) {
        Binding *b = map_get(&home->names, (uintptr_t)e->name);
        const Ast *value = b && b->is_let ? let_of(p, home, e->name, e->span) : NULL;
        return value ? value : e;
    }
    Ast *out = ast_new(p, e->kind, e->name, e->span, e->n);
    for (uint32_t i = 0; i < e->n; i++) /* the callee of a call is a name, not a value */
        out->kid[i] = (Ast *)rewrite(p, e->kid[i], home);
    const BlockDef *def = p->items && e->kind == AST_CALL && e->kid[0]->kind == AST_ID
                              ? block_named(home, e->kid[0]->name)
                              : NULL;
    return def ? with_defaults(p, out, def) : out;
}

static const char *expression(Printer *p, const Ast *e, File *home)
{
    Buf b = buf_new(p->arena);
    ast_print_expr(&b, rewrite(p, e, home));
    return b.s;
}

/* ---- overrides of attributes ---- */

/* Whether the override names attribute `attr` of the node where the printer stands; `condition`
 * gets what the loop variables must be, "" when nothing. */
static bool override_hits(Printer *p, const Override *o, Name attr, Buf *condition)
{
    const Ast *path = o->path;
    Name model = name_str(p->ctx, "model");
    Name name[MOST_PARTS + 1];
    const Ast *index[MOST_PARTS + 1];
    int n = 0;
    name[n] = path->name;
    index[n++] = NULL;
    for (uint32_t i = 0; i < path->n && n <= MOST_PARTS; i++) {
        if (path->kid[i]->kind == AST_AT) {
            index[n - 1] = path->kid[i]->kid[0];
        } else {
            name[n] = path->kid[i]->name;
            index[n++] = NULL;
        }
    }
    if (n == 2 && p->depth == 0 && !p->training)
        return name[0] == model && name[1] == attr;
    if (n != p->depth + 1 || name[n - 1] != attr)
        return false;
    for (int i = 0; i < p->depth; i++) {
        if (name[i] != p->part[i].name || (index[i] != NULL) != (p->part[i].variable != NULL))
            return false;
        if (!index[i] || index[i]->kind == AST_STAR)
            continue;
        buf_printf(condition, "%s%s == ", condition->n ? " and " : "", p->part[i].variable);
        ast_print_expr(condition, index[i]);
    }
    return true;
}

/* The value of an attribute after all overrides; *from tells of the last one. NULL: there is
 * none. */
static const char *overridden(Printer *p, Name attr, const char *written, const char **from)
{
    const char *value = written;
    for (size_t i = 0; i < p->file->overrides.n; i++) {
        const Override *o = &p->file->overrides.v[i];
        Buf condition = buf_new(p->arena);
        if (!o->expr || o->path->n == 0 || !override_hits(p, o, attr, &condition))
            continue;
        const char *text = expression(p, o->expr, p->file);
        if (condition.n)
            text = arena_printf(p->arena, "if %s then %s else %s", condition.s, text,
                                value ? value : "none");
        value = text;
        *from = o->origin ? o->origin : "override";
    }
    return value;
}

/* Attributes of this node that only overrides give. */
static size_t added_attributes(Printer *p, const Ast *items, Name names[64])
{
    size_t n = 0;
    for (size_t i = 0; i < p->file->overrides.n; i++) {
        const Ast *path = p->file->overrides.v[i].path;
        const Ast *last = path->n ? path->kid[path->n - 1] : NULL;
        Buf unused = buf_new(p->arena);
        if (!last || last->kind != AST_DOT || n == 64 ||
            !override_hits(p, &p->file->overrides.v[i], last->name, &unused))
            continue;
        bool known = false;
        for (uint32_t k = 0; items && k < items->n; k++)
            known |=
                items->kid[k]->kind == AST_SET && items->kid[k]->kid[0]->name == last->name;
        for (size_t k = 0; k < n; k++)
            known |= names[k] == last->name;
        if (!known)
            names[n++] = last->name;
    }
    return n;
}

/* ---- items ---- */

static void put_set(Printer *p, Name attr, const char *value, const char *from, const char *was)
{
    buf_printf(&p->out, "%s = %s", attr, value);
    if (from)
        buf_printf(&p->out, "  # %s%s%s", from, was ? "; was " : "", was ? was : "");
    buf_putc(&p->out, '\n');
}

static void print_set(Printer *p, const Ast *it)
{
    const char *written = expression(p, it->kid[1], p->file), *from = NULL;
    const char *value = overridden(p, it->kid[0]->name, written, &from);
    put_set(p, it->kid[0]->name, value, from, from ? written : NULL);
}

static void put_doc(Printer *p, const Ast *it)
{
    const char *line = it->doc;
    while (line && *line) {
        size_t n = strcspn(line, "\n");
        buf_printf(&p->out, "## %.*s\n", (int)n, line);
        line += n + (line[n] == '\n');
    }
}

/* Defaults of a node's block that the node does not set. */
static void print_node_defaults(Printer *p, const BlockDef *def, const Ast *items)
{
    const Ast *params = def->ast->kid[0];
    for (uint32_t i = 0; i < params->n; i++) {
        const Ast *par = params->kid[i];
        const char *from = NULL;
        bool given = false;
        for (uint32_t k = 0; items && k < items->n; k++)
            given |= items->kid[k]->kind == AST_SET && items->kid[k]->kid[0]->name == par->name;
        if (given || !par->kid[1] || overridden(p, par->name, NULL, &from))
            continue;
        Buf text = buf_new(p->arena);
        ast_print_expr(&text, par->kid[1]);
        bool item = p->items && is_literal(par->kid[1]) && !is_scope_name(par->name);
        buf_printf(&p->out, "%s%s = %s  # default, %s\n", item ? "" : "# ", par->name, text.s,
                   place_text(p, par->span));
    }
}

/* A label as it was written: a word, or a path in quotes. */
static void put_label(Printer *p, const Ast *label)
{
    size_t n;
    const char *text = source_text(p->ctx, label->span.file, &n);
    buf_putc(&p->out, ' ');
    if (label->span.lo < n && text[label->span.lo] == '"')
        buf_json_string(&p->out, label->name, strlen(label->name));
    else
        buf_puts(&p->out, label->name);
}

static void print_node(Printer *p, const Ast *it)
{
    Name kind = it->kid[0]->name, label = it->kid[1] ? it->kid[1]->name : NULL;
    int depth = p->depth;
    bool optimizer = p->training && strcmp(kind, "optimizer") == 0;
    bool is_model = !p->training && depth == 0 && strcmp(kind, "model") == 0;
    if (depth + 2 >= MOST_PARTS)
        ctx_raise(p->ctx, ST_INPUT, "nodes are nested too deeply to be written out");
    if (!is_model)
        p->part[p->depth++] = (Part){kind, NULL};
    if (label && !is_model && !optimizer)
        p->part[p->depth++] = (Part){label, NULL};
    const BlockDef *def = NULL;
    if (!p->training && !is_model) {
        bool labelled = !strcmp(kind, "embed") || !strcmp(kind, "head");
        def = block_named(p->file,
                          labelled && label ? name_printf(p->ctx, "%s_%s", kind, label) : kind);
    }
    Name added[64];
    size_t n = added_attributes(p, it->kid[2], added);
    buf_puts(&p->out, kind);
    if (label)
        put_label(p, it->kid[1]);
    if (it->kid[2] || n || def) {
        buf_puts(&p->out, " {\n");
        print_items(p, it->kid[2]);
        for (size_t i = 0; i < n; i++) {
            const char *from = NULL;
            const char *value = overridden(p, added[i], NULL, &from);
            put_set(p, added[i], value, from, NULL);
        }
        if (def)
            print_node_defaults(p, def, it->kid[2]);
        buf_putc(&p->out, '}');
    }
    buf_putc(&p->out, '\n');
    p->depth = depth;
}

static void print_for(Printer *p, const Ast *it)
{
    if (p->depth + 1 >= MOST_PARTS)
        ctx_raise(p->ctx, ST_INPUT, "loops are nested too deeply to be written out");
    buf_printf(&p->out, "for %s in %s {\n", it->name, expression(p, it->kid[0], p->file));
    p->part[p->depth++] = (Part){it->name, it->name};
    print_items(p, it->kid[1]);
    p->depth--;
    buf_puts(&p->out, "}\n");
}

static void print_if(Printer *p, const Ast *it)
{
    buf_printf(&p->out, "if %s {\n", expression(p, it->kid[0], p->file));
    print_items(p, it->kid[1]);
    buf_putc(&p->out, '}');
    if (it->kid[2] && it->kid[2]->kind == AST_IF) {
        buf_puts(&p->out, " else ");
        print_if(p, it->kid[2]);
        return;
    }
    if (it->kid[2]) {
        buf_puts(&p->out, " else {\n");
        print_items(p, it->kid[2]);
        buf_putc(&p->out, '}');
    }
    buf_putc(&p->out, '\n');
}

static void put_let(Printer *p, const Ast *it, const Ast *value, File *home)
{
    buf_printf(&p->out, "let %s", it->name);
    if (it->kid[0]) {
        buf_puts(&p->out, ": ");
        ast_print_expr(&p->out, it->kid[0]);
    }
    buf_printf(&p->out, " = %s", expression(p, value, home));
}

/* Keeps the empty lines between the items of the source. */
static void put_gap(Printer *p, const Ast *items, uint32_t i)
{
    size_t n;
    const char *text = source_text(p->ctx, items->span.file, &n);
    size_t from = i ? items->kid[i - 1]->span.hi : items->kid[i]->span.lo;
    int lines = 0;
    for (size_t k = from; k < items->kid[i]->span.lo && lines < 2; k++)
        lines = text[k] == '\n' ? lines + 1 : text[k] == ' ' || text[k] == '\t' ? lines : 0;
    if (lines == 2)
        buf_putc(&p->out, '\n');
}

/* Items inside `model` and `train`. */
static void print_items(Printer *p, const Ast *items)
{
    for (uint32_t i = 0; items && i < items->n; i++) {
        const Ast *it = items->kid[i];
        put_gap(p, items, i);
        put_doc(p, it);
        switch (it->kind) {
        case AST_SET: print_set(p, it); break;
        case AST_NODE: print_node(p, it); break;
        case AST_FOR: print_for(p, it); break;
        case AST_IF: print_if(p, it); break;
        case AST_LET:
            put_let(p, it, it->kid[1], p->file);
            buf_putc(&p->out, '\n');
            break;
        default: break; /* checks have been made; what is switched off is not there */
        }
    }
}

/* ---- whole files ---- */

static void put_source(Printer *p, const Ast *it)
{
    size_t n;
    const char *text = source_text(p->ctx, it->span.file, &n);
    put_doc(p, it);
    buf_put(&p->out, text + it->span.lo, it->span.hi - it->span.lo);
    buf_puts(&p->out, "\n\n");
}

static void print_import(Printer *p, File *f, const Ast *it);

/* The blocks of another file, and the library files they use. */
static void take_in_blocks(Printer *p, File *from)
{
    if (from->is_std || from == p->file ||
        seen(p, name_printf(p->ctx, "blocks of %s", from->path)))
        return;
    Buf main = p->out;
    p->out = buf_new(p->arena);
    for (uint32_t i = 0; i < from->ast->n; i++) {
        const Ast *it = from->ast->kid[i];
        if (it->kind == AST_IMPORT && !it->kid[0])
            print_import(p, from, it);
        else if (it->kind == AST_BLOCK && !seen(p, name_printf(p->ctx, "block %s", it->name)))
            put_source(p, it);
    }
    buf_put(&p->out, main.s, main.n);
}

static void print_lets_and_blocks(Printer *p, File *f)
{
    for (uint32_t i = 0; i < f->ast->n; i++) {
        const Ast *it = f->ast->kid[i];
        if (it->kind == AST_IMPORT || it->kind == AST_LET)
            put_gap(p, f->ast, i);
        if (it->kind == AST_IMPORT)
            print_import(p, f, it);
        if (it->kind == AST_BLOCK && !seen(p, name_printf(p->ctx, "block %s", it->name)))
            put_source(p, it);
        if (it->kind != AST_LET)
            continue;
        Binding *b = map_get(&f->names, (uintptr_t)it->name);
        bool changed = b && b->origin;
        put_doc(p, it);
        if (changed && !b->expr) /* a value was put in its place */
            ctx_raise(p->ctx, ST_INPUT, "`%s` cannot be written out", it->name);
        File *home = changed && b->env && b->env->file ? b->env->file : f;
        put_let(p, it, changed ? b->expr : it->kid[1], f == p->file ? home : f);
        if (changed) {
            Buf was = buf_new(p->arena);
            ast_print_expr(&was, it->kid[1]);
            buf_printf(&p->out, "  # %s; was %s", b->origin, was.s);
        } else if (f != p->file) {
            buf_printf(&p->out, "  # %s", place_text(p, it->span));
        }
        buf_putc(&p->out, '\n');
    }
}

/* Library files stay imports; other files are taken in: whole when their names are used
 * unqualified, else let by let where `rewrite` meets them. */
static void print_import(Printer *p, File *f, const Ast *it)
{
    if (strncmp(it->name, "std/", 4) == 0) {
        if (!seen(p, it->name))
            buf_printf(&p->out, "import \"%s\"\n", it->name);
        return;
    }
    for (size_t i = 0; i < f->imports.n && !it->kid[0]; i++) {
        Import *im = &f->imports.v[i];
        if (im->span.lo == it->name_span.lo && im->span.file == it->name_span.file && im->file)
            print_lets_and_blocks(p, im->file);
    }
}

static char *print_unit(Unit *u, Arena *arena, bool items)
{
    File *f = u->file;
    Printer p = {.ctx = u->ctx,
                 .arena = arena,
                 .ev = f->ev,
                 .file = f,
                 .items = items,
                 .out = buf_new(arena)};
    buf_puts(&p.out, "edition = 1\n");
    print_lets_and_blocks(&p, f);
    for (uint32_t i = 0; i < f->ast->n; i++) {
        const Ast *it = f->ast->kid[i];
        if (it->kind != AST_NODE)
            continue;
        p.training = strcmp(it->kid[0]->name, "train") == 0;
        if (!p.training && strcmp(it->kid[0]->name, "model") != 0)
            continue;
        buf_putc(&p.out, '\n');
        put_doc(&p, it);
        print_node(&p, it);
    }
    uint32_t source = source_add(u->ctx, "<resolved>", p.out.s, p.out.n);
    size_t before = diag_count(u->ctx);
    const Ast *ast = vwn_parse(u->ctx, source);
    if (diag_count(u->ctx) > before) {
        diag_truncate(u->ctx, before);
        return NULL;
    }
    Buf text = buf_new(arena);
    buf_printf(&text, "# Resolved from %s.\n", u->path);
    vwn_format(u->ctx, source, ast, &text);
    return text.s;
}

/* Checks the text and compares. */
static bool proves(Unit *u, const char *text)
{
    Ctx *ctx = u->ctx;
    size_t before = diag_count(ctx);
    volatile bool same = false;
    char message[sizeof ctx->message];
    memcpy(message, ctx->message, sizeof message);
    CtxGuard guard;
    if (CTX_TRY(ctx, &guard)) {
        CheckOptions how = {.path = "-", .text = text, .text_length = strlen(text)};
        Unit *again = check_file(ctx, &how);
        bool errors = false;
        for (size_t i = before; i < diag_count(ctx); i++)
            errors |= diag_get(ctx, i)->level == LEVEL_ERROR;
        same = !errors && unit_same(u, again);
        ctx_leave(ctx, &guard);
    } else if (ctx->raised != ST_INPUT) {
        ctx_raise(ctx, ctx->raised, "%s",
                  arena_copy(ctx->scratch, ctx->message, strlen(ctx->message)));
    }
    diag_truncate(ctx, before);
    memcpy(ctx->message, message, sizeof message);
    return same;
}

char *unit_resolved_text(Unit *unit, Arena *arena)
{
    if (!unit->file || !unit->ast)
        ctx_raise(unit->ctx, ST_INPUT, "%s has errors", unit->path);
    for (int items = 1; items >= 0; items--) {
        char *text = print_unit(unit, arena, items);
        if (text && proves(unit, text))
            return text;
    }
    ctx_raise(unit->ctx, ST_BUG,
              "%s could not be written out as one file that builds the same model", unit->path);
}
