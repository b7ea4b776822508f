/* hover.c - what is known of the thing at a position: its value or shape, how it is declared, what it is for.
 *
 * In:  a position.   Out: Markdown.
 * The one idea: values are those of the last check, and documentation that of `vwn doc`: nothing is written here.
 */
#include "compiler/front/attribute.h"
#include "compiler/front/check_prim.h"
#include "compiler/report/report.h"
#include "names.h"

static void put_code(Buf *b, const char *text, size_t n)
{
    while (n && (text[n - 1] == '\n' || text[n - 1] == ' '))
        n--;
    buf_printf(b, "%s```vwn\n", b->n ? "\n" : "");
    buf_put(b, text, n);
    buf_puts(b, "\n```\n");
}

static void put_doc(Buf *b, const char *doc)
{
    if (doc)
        buf_printf(b, "\n%s\n", doc);
}

/* ---- values ---- */

static const SeenValue *value_at(const Document *d, size_t offset)
{
    const SeenValue *best = NULL;
    for (size_t i = 0; d->facts && d->known && i < d->facts->seen.n; i++) {
        const SeenValue *s = &d->facts->seen.v[i];
        if (s->span.lo <= offset && offset <= s->span.hi &&
            (!best || s->span.hi - s->span.lo < best->span.hi - best->span.lo))
            best = s;
    }
    return best;
}

static void put_value(Buf *b, const Cursor *a)
{
    const SeenValue *s = value_at(a->r->document, a->offset);
    if (!s)
        return;
    Buf line = buf_new(b->arena);
    buf_put(&line, a->r->document->text + s->span.lo, s->span.hi - s->span.lo);
    buf_printf(&line, s->tensor ? ": %s" : " = %s", s->text);
    buf_puts(&line, s->others ? "  # the first time; others differ" : "");
    put_code(b, line.s, line.n);
}

/* ---- declarations ---- */

static void put_block(Cursor *a, Buf *b, const Ast *block)
{
    size_t n;
    const char *text = source_text(a->r->ctx, block->span.file, &n);
    uint32_t hi = block->kid[3] ? block->kid[3]->span.lo : block->span.hi;
    put_code(b, text + block->span.lo, hi - block->span.lo);
    put_doc(b, block->doc);
}

static void put_argument(Buf *b, const Ast *par)
{
    Buf line = buf_new(b->arena);
    buf_printf(&line, "%s: ", par->name);
    if (par->kid[0])
        ast_print_expr(&line, par->kid[0]);
    if (par->n > 1 && par->kid[1]) {
        buf_puts(&line, " = ");
        ast_print_expr(&line, par->kid[1]);
    }
    put_code(b, line.s, line.n);
    put_doc(b, par->doc);
    if (par->n > 1 && !par->kid[1])
        buf_puts(b, "\nrequired\n");
}

static void put_found(Cursor *a, Buf *b, const Found *f)
{
    enum { LONGEST = 400 };
    const Ast *it = f->item;
    if (it->kind == AST_BLOCK) {
        put_block(a, b, it);
    } else if (it->kind == AST_PAR) {
        put_argument(b, it);
    } else if (it->kind == AST_LET) {
        Buf line = buf_new(b->arena);
        buf_printf(&line, "let %s = ", it->name);
        if (it->kid[1])
            ast_print_expr(&line, it->kid[1]);
        put_code(b, line.s, line.n < LONGEST ? line.n : LONGEST);
        put_doc(b, it->doc);
    }
    if (f->where)
        buf_printf(b, "\nof `%s`\n", f->where);
}

/* ---- what C knows ---- */

static void put_attribute(Buf *b, const AttributeRow *row)
{
    buf_printf(b, "%s`%s` of `%s`: %s", b->n ? "\n" : "", row->name, row->node, row->values);
    if (row->fallback)
        buf_printf(b, "; default: %s", row->fallback);
    else if (row->example)
        buf_puts(b, "; required");
    buf_printf(b, "\n\n%s\n", row->text);
    if (row->example)
        buf_printf(b, "\nfor example `%s`\n", row->example);
}

/* An attribute of a node that stands in the node around the position, or of the model in any node of it. */
static bool put_set(Cursor *a, Buf *b)
{
    const Ast *node = NULL, *set = NULL;
    for (size_t i = a->chain.n; i-- > 0 && !node;) {
        set = a->chain.node[i]->kind == AST_SET && !set ? a->chain.node[i] : set;
        node = a->chain.node[i]->kind == AST_NODE ? a->chain.node[i] : NULL;
    }
    if (!node || !set || set->kid[0]->n || !(set->kid[0]->span.lo <= a->offset && a->offset <= set->kid[0]->span.hi))
        return false;
    const Ast *kind = !strcmp(node->kid[0]->name, "optimizer") && node->kid[1] ? node->kid[1] : node->kid[0];
    const AttributeRow *row = attribute_find(kind->name, set->kid[0]->name);
    row = row ? row : attribute_find("model", set->kid[0]->name);
    if (row)
        put_attribute(b, row);
    return row != NULL;
}

/* The kind of a node, or its label. */
static bool put_node(Cursor *a, Buf *b)
{
    const Ast *node = NULL;
    for (size_t i = a->chain.n; i-- > 0 && !node;)
        node = a->chain.node[i]->kind == AST_NODE ? a->chain.node[i] : NULL;
    Span label = node && node->kid[1] ? node->kid[1]->span : NO_SPAN, kind = node ? node->kid[0]->span : NO_SPAN;
    bool here = node && ((kind.lo <= a->offset && a->offset <= kind.hi) ||
                         (label.file && label.lo <= a->offset && a->offset <= label.hi));
    Found f = {0};
    if (!here)
        return false;
    const NodeDoc *doc = node_doc_find(node->kid[0]->name);
    if (node_block(a, node, &f))
        put_found(a, b, &f);
    else if (doc)
        buf_printf(b, "%s`%s`: %s\n", b->n ? "\n" : "", doc->name, doc->text);
    return f.item || doc;
}

static Name word_here(const Cursor *a)
{
    const Document *d = a->r->document;
    size_t lo = a->offset, hi = a->offset;
    while (lo && (d->text[lo - 1] == '_' || ((d->text[lo - 1] | 32) >= 'a' && (d->text[lo - 1] | 32) <= 'z') ||
                  (d->text[lo - 1] >= '0' && d->text[lo - 1] <= '9')))
        lo--;
    while (hi < d->n && (d->text[hi] == '_' || ((d->text[hi] | 32) >= 'a' && (d->text[hi] | 32) <= 'z') ||
                         (d->text[hi] >= '0' && d->text[hi] <= '9')))
        hi++;
    return hi > lo && hi - lo < 256 ? name_of(a->r->ctx, d->text + lo, hi - lo) : NULL;
}

/* A primitive whose argument stands here, or anything else that `vwn doc` knows by its name. */
static void put_word(Cursor *a, Buf *b)
{
    const Ast *named = NULL, *call = NULL;
    for (size_t i = a->chain.n; i-- > 0 && !call;) {
        named = a->chain.node[i]->kind == AST_NAMED && !named ? a->chain.node[i] : named;
        call = a->chain.node[i]->kind == AST_CALL ? a->chain.node[i] : NULL;
    }
    Name word = word_here(a), near;
    if (named && call && named->name_span.lo <= a->offset && a->offset <= named->name_span.hi &&
        call->kid[0]->kind == AST_ID)
        word = call->kid[0]->name;
    Buf text = buf_new(b->arena);
    if (word && (prim_find(word) || !node_doc_find(word)) && doc_write(a->r->ctx, word, &text, &near))
        put_code(b, text.s, text.n);
}

void answer_hover(Request *r)
{
    Cursor a;
    Found f;
    if (!cursor_open(&a, r))
        return;
    Buf b = buf_new(r->arena);
    put_value(&b, &a);
    if (found_here(&a, &f))
        put_found(&a, &b, &f);
    else if (!put_set(&a, &b) && !put_node(&a, &b))
        put_word(&a, &b);
    if (!b.n) {
        json_put_raw(&r->t, "result", "null");
        return;
    }
    json_open(&r->t, "result", '{');
    json_open(&r->t, "contents", '{');
    json_put_string(&r->t, "kind", "markdown");
    json_put_bytes(&r->t, "value", b.s, b.n);
    json_close(&r->t, '}');
    json_close(&r->t, '}');
}
