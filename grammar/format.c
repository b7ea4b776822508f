/* format.c - `vwn fmt`: items and their bodies.
 *
 * In:  a file that parsed without errors.   Out: its canonical text; formatting that again
 * changes nothing, and the tree and all comments stay as they were. The one idea: there are no
 * options. A body stays on one line if the author wrote it so, it fits in 100 columns and has
 * at most six items; everything else is one item a line.
 */
#include "format.h"

enum { MOST_COLUMNS = 100, MOST_FLAT_ITEMS = 6, MOST_FLAT_BYTES = 400 };

static void put_item(Format *f, const Ast *item);

/* ---- one line or several ---- */

/* The bodies of an item; an `if` also has those of its `else`. */
static const Ast *body_of(const Ast *item)
{
    switch (item->kind) {
    case AST_CHECK:
    case AST_NODE:
    case AST_PARAM:
    case AST_BUFFER: return item->kid[2];
    case AST_BLOCK: return item->kid[3];
    case AST_FOR:
    case AST_IF: return item->kid[1];
    case AST_OFF: return body_of(item->kid[0]);
    default: return NULL;
    }
}

static const Ast *inner_item(const Ast *item) { return item->kind == AST_OFF ? inner_item(item->kid[0]) : item; }

/* Whether everything from the first `{` on may stay on one line, as far as the source tells. */
static bool can_be_flat(const Format *f, const Ast *item)
{
    const Ast *body = body_of(item);
    if (!body)
        return true;
    uint32_t lo = body->span.lo, hi = item->span.hi;
    if (hi - lo > MOST_FLAT_BYTES || fmt_broken(f, lo, hi))
        return false;
    for (const Ast *at = inner_item(item); body;) {
        if (body->n > MOST_FLAT_ITEMS)
            return false;
        for (uint32_t i = 0; i < body->n; i++)
            if (!can_be_flat(f, body->kid[i]))
                return false;
        const Ast *other = at->kind == AST_IF ? at->kid[2] : NULL;
        body = other && other->kind == AST_IF ? other->kid[1] : other;
        at = other && other->kind == AST_IF ? other : body;
    }
    return true;
}

/* ---- bodies ---- */

static Run run_of(const Ast *item)
{
    switch (item->kind) {
    case AST_LET: return RUN_LET;
    case AST_SET: return RUN_SET;
    case AST_PARAM:
    case AST_BUFFER: return RUN_TENSOR;
    case AST_ENTRY: return RUN_ENTRY;
    case AST_NODE: return item->kid[2] ? RUN_NODE : RUN_NONE;
    default: return RUN_NONE;
    }
}

static void put_items(Format *f, const Ast *items, uint32_t indent, uint32_t prev, uint32_t end)
{
    uint32_t base = f->base;
    bool first = true;
    for (uint32_t i = 0; i < items->n; i++) {
        const Ast *item = items->kid[i];
        fmt_newline(f, indent);
        fmt_own_lines(f, item->span.lo, &prev, first);
        first = false;
        f->base = f->indent = indent;
        size_t lines = f->lines.n;
        put_item(f, item);
        if (f->lines.n == lines)
            f->run = run_of(item);
        prev = item->span.hi;
        uint32_t limit = i + 1 < items->n ? items->kid[i + 1]->span.lo : end;
        if (fmt_trailing(f, prev, limit))
            prev = f->comments.v[f->next - 1].hi;
    }
    fmt_newline(f, indent);
    while (f->next < f->comments.n && f->comments.v[f->next].lo < end) {
        fmt_own_lines(f, f->comments.v[f->next].lo + 1, &prev, first);
        first = false;
    }
    f->base = base;
}

static void put_body(Format *f, const Ast *body)
{
    fmt_token(f, body->span.lo, true, "{");
    uint32_t lo = body->span.lo + 1, end = body->span.hi - 1;
    if (body->n == 0 && !fmt_comment_in(f, lo, end)) {
        fmt_token(f, end, false, "}");
        return;
    }
    if (f->one_line) {
        f->flat++;
        for (uint32_t i = 0; i < body->n; i++) {
            fmt_put(f, i ? ", " : " ", i ? 2 : 1);
            put_item(f, body->kid[i]);
        }
        f->flat--;
        fmt_token(f, end, true, "}");
        return;
    }
    uint32_t indent = f->base;
    if (fmt_trailing(f, lo, body->n ? body->kid[0]->span.lo : end))
        lo = f->comments.v[f->next - 1].hi;
    put_items(f, body, indent + 2, lo, end);
    fmt_newline(f, indent);
    fmt_token(f, end, false, "}");
}

/* ---- items ---- */

static void put_word(Format *f, const char *word) { fmt_put(f, word, strlen(word)); }

/* ` = value`; a comment in front of the value has to come before the `=`, because the line that
 * ends behind an `=` is an item without a value. */
static void put_value(Format *f, const Ast *value)
{
    fmt_cell(f);
    fmt_token(f, value->span.lo, true, "= ");
    fmt_expr(f, value);
}

static void put_name(Format *f, const Ast *item) { fmt_token(f, item->name_span.lo, true, item->name); }

static void put_quoted(Format *f, Span at)
{
    fmt_token(f, at.lo, true, "");
    fmt_put(f, f->text + at.lo, at.hi - at.lo);
}

static void put_import(Format *f, const Ast *item)
{
    put_word(f, "import");
    put_quoted(f, item->name_span);
    if (item->kid[0]) {
        fmt_token(f, item->kid[0]->span.lo, true, "as");
        fmt_token(f, item->kid[0]->span.lo, true, item->kid[0]->name);
    }
    if (item->kid[1]) {
        fmt_token(f, item->kid[1]->span.lo, true, "");
        fmt_group(f, item->kid[1], "()");
    }
}

static void put_let(Format *f, const Ast *item)
{
    put_word(f, "let");
    put_name(f, item);
    if (item->kid[0]) {
        fmt_token(f, item->kid[0]->span.lo, true, ": ");
        fmt_expr(f, item->kid[0]);
    }
    put_value(f, item->kid[1]);
}

static void put_check(Format *f, const Ast *item)
{
    put_word(f, "check");
    fmt_flush(f, item->kid[0]->span.lo);
    fmt_token(f, 0, true, "");
    fmt_expr(f, item->kid[0]);
    if (item->kid[1])
        put_quoted(f, item->kid[1]->span);
    if (item->kid[2])
        put_body(f, item->kid[2]);
}

static void put_block_item(Format *f, const Ast *item)
{
    put_word(f, "block");
    put_name(f, item);
    fmt_group(f, item->kid[0], "()");
    if (item->kid[1])
        fmt_group(f, item->kid[1], "()");
    if (item->kid[2]) {
        fmt_token(f, item->kid[2]->span.lo, true, "-> ");
        fmt_expr(f, item->kid[2]);
    }
    put_body(f, item->kid[3]);
}

static void put_tensor(Format *f, const Ast *item)
{
    put_word(f, item->kind == AST_PARAM ? "param" : "buffer");
    fmt_cell(f);
    put_name(f, item);
    fmt_cell(f);
    fmt_token(f, item->kid[0]->span.lo, true, ": ");
    fmt_expr(f, item->kid[0]);
    put_value(f, item->kid[1]);
    if (item->kid[2]) {
        fmt_cell(f);
        put_body(f, item->kid[2]);
    }
}

static void put_for(Format *f, const Ast *item)
{
    put_word(f, "for");
    put_name(f, item);
    put_word(f, " in ");
    fmt_expr(f, item->kid[0]);
    put_body(f, item->kid[1]);
}

static void put_if(Format *f, const Ast *item)
{
    for (;;) {
        put_word(f, "if ");
        fmt_expr(f, item->kid[0]);
        put_body(f, item->kid[1]);
        const Ast *other = item->kid[2];
        if (!other)
            return;
        fmt_token(f, other->span.lo, true, "else");
        if (other->kind != AST_IF) {
            put_body(f, other);
            return;
        }
        put_word(f, " ");
        item = other;
    }
}

static void put_node(Format *f, const Ast *item)
{
    fmt_path(f, item->kid[0]);
    if (item->kid[1])
        put_quoted(f, item->kid[1]->span);
    if (item->kid[2]) {
        fmt_cell(f);
        put_body(f, item->kid[2]);
    }
}

static void put_plain(Format *f, const Ast *item)
{
    fmt_flush(f, item->span.lo);
    switch (item->kind) {
    case AST_IMPORT: put_import(f, item); break;
    case AST_LET: put_let(f, item); break;
    case AST_CHECK: put_check(f, item); break;
    case AST_BLOCK: put_block_item(f, item); break;
    case AST_PARAM:
    case AST_BUFFER: put_tensor(f, item); break;
    case AST_FOR: put_for(f, item); break;
    case AST_IF: put_if(f, item); break;
    case AST_NODE: put_node(f, item); break;
    case AST_RETURN:
        put_word(f, "return ");
        fmt_expr(f, item->kid[0]);
        break;
    case AST_SET:
        fmt_path(f, item->kid[0]);
        put_value(f, item->kid[1]);
        break;
    case AST_ENTRY:
        fmt_token(f, item->name_span.lo, false, "");
        fmt_put(f, f->text + item->name_span.lo, item->name_span.hi - item->name_span.lo);
        put_value(f, item->kid[0]);
        break;
    default: /* AST_OFF */
        put_word(f, "/- ");
        put_plain(f, item->kid[0]);
        break;
    }
}

/* A body on one line is tried first; when it turns out too long, everything since is taken
 * back. A short remark behind a tensor is part of its line however long that is. */
static void put_item(Format *f, const Ast *item)
{
    if (f->flat || !body_of(item) || !can_be_flat(f, item)) {
        put_plain(f, item);
        return;
    }
    Format before = *f;
    AstKind kind = inner_item(item)->kind;
    f->one_line = true;
    put_plain(f, item);
    f->one_line = false;
    if (kind == AST_PARAM || kind == AST_BUFFER || fmt_column(f) <= MOST_COLUMNS)
        return;
    *f = before;
    put_plain(f, item);
}

void vwn_format(Ctx *ctx, uint32_t file, const Ast *ast, Buf *out)
{
    Arena *arena = arena_new(ctx);
    Format f = {.arena = arena, .file = file, .text = source_text(ctx, file, NULL)};
    f.code = buf_new(arena);
    Lex *lx = NEW(arena, Lex);
    lex_open(lx, ctx, arena, file, &f.comments);
    while (lex_raw(lx) != 0) {}
    put_items(&f, ast, 0, 0, ast->span.hi);
    fmt_render(&f, out);
    arena_free(arena);
}
