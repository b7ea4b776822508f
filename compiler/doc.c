/* doc.c - `vwn doc`: the library and the primitives, by name.
 *
 * In:  a name.   Out: the text of a library block or file as it is compiled in, or the line of
 * a primitive. The one idea: the library is text, so its documentation is that text.
 */
#include "check.h"
#include "report.h"

/* Visits every block of the library; stops when `visit` returns true. */
typedef bool (*BlockVisit)(void *user, Ctx *ctx, const char *path, const Ast *block);

static bool each_block(Ctx *ctx, BlockVisit visit, void *user)
{
    for (size_t i = 0; i < std_count(); i++) {
        size_t n;
        const char *text = std_text(std_path(i), &n);
        const Ast *file = vwn_parse(ctx, source_add(ctx, std_path(i), text, n));
        for (uint32_t k = 0; k < file->n; k++)
            if (file->kid[k] && file->kid[k]->kind == AST_BLOCK &&
                visit(user, ctx, std_path(i), file->kid[k]))
                return true;
    }
    return false;
}

/* The first sentence of a doc comment, on one line. */
static const char *first_sentence(Arena *arena, const char *doc)
{
    if (!doc)
        return "";
    const char *end = doc; /* a point before a blank and a capital: not that of "Eqs. 5-12" */
    while ((end = strchr(end, '.')) && !((end[1] == ' ' || end[1] == '\n') &&
                                         (end[2] == '`' || (end[2] >= 'A' && end[2] <= 'Z'))))
        end++;
    char *text = arena_copy(arena, doc, end ? (size_t)(end - doc) + 1 : strlen(doc));
    for (char *c = text; *c; c++)
        if (*c == '\n')
            *c = ' ';
    return text;
}

typedef struct Search {
    const char *name;
    Buf *out;
    VEC(Name) names; /* every name there is, for suggestions */
} Search;

static bool show_block(void *user, Ctx *ctx, const char *path, const Ast *block)
{
    Search *s = user;
    vec_push(ctx->scratch, &s->names, block->name);
    if (strcmp(block->name, s->name) != 0)
        return false;
    size_t n;
    const char *text = source_text(ctx, block->span.file, &n);
    LineCol at = source_position(ctx, block->span.file, block->span.lo);
    buf_printf(s->out, "# %s:%u\n", path, at.line);
    const char *line = block->doc;
    while (line && *line) {
        size_t size = strcspn(line, "\n");
        buf_printf(s->out, "## %.*s\n", (int)size, line);
        line += size + (line[size] == '\n');
    }
    buf_put(s->out, text + block->span.lo, block->span.hi - block->span.lo);
    buf_putc(s->out, '\n');
    return true;
}

static void put_prim(Buf *out, const Prim *p)
{
    buf_printf(out, "%s(%s)\n%s\n", p->name, p->params, p->doc);
}

/* ---- the list ---- */

typedef struct Listing {
    Table table;
    const char *path; /* of the file whose blocks are being listed */
    Buf *out;
} Listing;

static void flush_blocks(Listing *l)
{
    if (!l->path)
        return;
    buf_printf(l->out, "%s\n", l->path);
    table_print(l->out, &l->table);
    l->table.cell.n = 0;
}

static bool list_block(void *user, Ctx *ctx, const char *path, const Ast *block)
{
    Listing *l = user;
    if (l->path && strcmp(l->path, path) != 0)
        flush_blocks(l);
    l->path = path;
    table_text(&l->table, block->name);
    table_text(&l->table, first_sentence(ctx->scratch, block->doc));
    return false;
}

static void list_all(Ctx *ctx, Buf *out)
{
    Listing l = {.table = {.arena = ctx->scratch, .columns = 2}, .out = out};
    each_block(ctx, list_block, &l);
    flush_blocks(&l);
    Table prims = {.arena = ctx->scratch, .columns = 2};
    buf_puts(out, "primitives\n");
    for (size_t i = 0; i < prim_count(); i++) {
        table_text(&prims, prim_at(i)->name);
        table_text(&prims, prim_at(i)->doc);
    }
    table_print(out, &prims);
}

bool doc_write(Ctx *ctx, const char *name, Buf *out, Name *near)
{
    *near = NULL;
    if (!name) {
        list_all(ctx, out);
        return true;
    }
    size_t n;
    const char *file = strncmp(name, "std/", 4) == 0 ? std_text(name, &n) : NULL;
    if (file) {
        buf_put(out, file, n);
        return true;
    }
    Search s = {.name = name, .out = out};
    bool found = each_block(ctx, show_block, &s);
    const Prim *prim = prim_find(name);
    if (prim) /* a block and a primitive may share a name */
        put_prim(out, prim);
    if (found || prim)
        return true;
    for (size_t i = 0; i < prim_count(); i++)
        vec_push(ctx->scratch, &s.names, name_str(ctx, prim_at(i)->name));
    for (size_t i = 0; i < std_count(); i++)
        vec_push(ctx->scratch, &s.names, name_str(ctx, std_path(i)));
    *near = nearest_name(name_str(ctx, name), s.names.v, s.names.n);
    return false;
}
