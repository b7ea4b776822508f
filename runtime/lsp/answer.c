/* answer.c - what is asked of a document's text: its canonical form, its parts.
 *
 * In:  a request.   Out: its result.
 */
#include "lsp.h"

const Ast *request_parse(Request *r, uint32_t *source)
{
    static const Ast nothing = {.kind = AST_ITEMS};
    CtxGuard guard;
    *source = source_add(r->ctx, r->document->path, r->document->text, r->document->n);
    if (!CTX_TRY(r->ctx, &guard)) {
        if (r->ctx->raised != ST_INPUT)
            ctx_raise_again(r->ctx);
        return &nothing;
    }
    const Ast *ast = vwn_parse(r->ctx, *source);
    ctx_leave(r->ctx, &guard);
    return ast;
}

/* ---- formatting ---- */

/* One edit of the lines between what both texts begin and end with; none where they are the same. */
static void put_edits(Request *r, const char *after, size_t n)
{
    const Document *d = r->document;
    size_t least = d->n < n ? d->n : n, head = 0, tail = 0;
    while (head < least && d->text[head] == after[head])
        head++;
    while (head && d->text[head - 1] != '\n')
        head--;
    while (tail < least - head && d->text[d->n - tail - 1] == after[n - tail - 1])
        tail++;
    while (tail && d->text[d->n - tail - 1] != '\n')
        tail--;
    json_open(&r->t, "result", '[');
    if (d->n != n || head < n) {
        json_open(&r->t, NULL, '{');
        put_range(&r->t, "range", &r->lines, head, d->n - tail);
        json_put_bytes(&r->t, "newText", after + head, n - tail - head);
        json_close(&r->t, '}');
    }
    json_close(&r->t, ']');
}

void answer_format(Request *r)
{
    uint32_t source;
    const Ast *ast = request_parse(r, &source);
    if (diag_errors(r->ctx)) {
        json_put_raw(&r->t, "result", "null"); /* its errors are in the diagnostics */
        return;
    }
    Buf b = buf_new(r->arena);
    vwn_format(r->ctx, source, ast, &b);
    put_edits(r, b.s, b.n);
}

/* ---- symbols ---- */

enum {
    SYMBOL_MODULE = 2,
    SYMBOL_NAMESPACE = 3,
    SYMBOL_CLASS = 5,
    SYMBOL_FIELD = 8,
    SYMBOL_FUNCTION = 12,
    SYMBOL_VARIABLE = 13,
    SYMBOL_OBJECT = 19
};

static int symbol_kind(const Ast *it)
{
    switch (it->kind) {
    case AST_IMPORT: return SYMBOL_MODULE;
    case AST_LET: return SYMBOL_VARIABLE;
    case AST_BLOCK: return SYMBOL_FUNCTION;
    case AST_PARAM:
    case AST_BUFFER: return SYMBOL_FIELD;
    case AST_FOR: return SYMBOL_NAMESPACE;
    case AST_NODE: return strcmp(it->kid[0]->name, "model") == 0 ? SYMBOL_CLASS : SYMBOL_OBJECT;
    default: return 0;
    }
}

/* The items in braces behind it, or NULL. */
static const Ast *items_in(const Ast *it)
{
    switch (it->kind) {
    case AST_BLOCK: return it->kid[3];
    case AST_FOR: return it->kid[1];
    case AST_NODE: return it->kid[2];
    default: return NULL;
    }
}

static void put_symbols(Request *r, const char *key, const Ast *items)
{
    json_open(&r->t, key, '[');
    for (uint32_t i = 0; items && i < items->n; i++) {
        const Ast *it = items->kid[i];
        int kind = it ? symbol_kind(it) : 0;
        if (!kind)
            continue;
        const Ast *label = it->kind == AST_NODE ? it->kid[1] : NULL;
        Buf name = buf_new(r->arena);
        buf_puts(&name, it->kind == AST_NODE ? it->kid[0]->name : it->kind == AST_FOR ? "for " : "");
        buf_printf(&name, "%s%s", label ? " " : "", label ? label->name : it->kind == AST_NODE ? "" : it->name);
        Span at = it->kind == AST_NODE ? it->kid[0]->span : it->name_span;
        json_open(&r->t, NULL, '{');
        json_put_string(&r->t, "name", name.n ? name.s : "?");
        json_put_integer(&r->t, "kind", kind);
        put_range(&r->t, "range", &r->lines, it->span.lo, it->span.hi);
        put_range(&r->t, "selectionRange", &r->lines, at.lo, at.hi);
        if (items_in(it))
            put_symbols(r, "children", items_in(it));
        json_close(&r->t, '}');
    }
    json_close(&r->t, ']');
}

void answer_symbols(Request *r)
{
    uint32_t source;
    put_symbols(r, "result", request_parse(r, &source));
}
