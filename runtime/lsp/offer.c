/* offer.c - what can stand at a position.
 *
 * In:  a position in a text that is not finished.   Out: names with their documentation.
 * The one idea: what is open before the position says it: brackets with what stands in front of them, a point, an `=`. Names come
 * from the tables that messages suggest from: the file's, its imports', primitives, nodes and attributes.
 */
#include "compiler/front/attribute.h"
#include "compiler/front/check_prim.h"
#include "compiler/report/report.h"
#include "names.h"

enum {
    KIND_FUNCTION = 3,
    KIND_FIELD = 5,
    KIND_VARIABLE = 6,
    KIND_CLASS = 7,
    KIND_MODULE = 9,
    KIND_PROPERTY = 10,
    KIND_VALUE = 12,
    KIND_KEYWORD = 14,
    KIND_FILE = 17
};

/* A bracket that is open, and the words of the item or the name in front of it. */
typedef struct OpenBracket {
    char bracket;
    Name word[2], callee[2]; /* callee: the name, and the one before its point */
} OpenBracket;
typedef struct Scan {
    Ctx *ctx;
    const char *s;
    size_t n;
    OpenBracket open[256];
    size_t depth;
    Name word[2]; /* of the item so far */
    size_t words;
    Name last, before; /* the name that has just ended, and the one before its point */
    bool item_begins, value, point, in_string, in_comment; /* at the end: what stands right before */
    size_t string_at;
} Scan;

static bool name_letter(char c) { return c == '_' || ((c | 32) >= 'a' && (c | 32) <= 'z') || (c >= '0' && c <= '9'); }

static void new_item(Scan *c)
{
    c->words = 0;
    c->word[0] = c->word[1] = NULL;
    c->item_begins = true;
    c->value = c->point = false;
    c->last = NULL;
}

static void scan_bracket(Scan *c, size_t at)
{
    char b = c->s[at];
    if (b == '(' || b == '[' || b == '{') {
        if (c->depth < COUNT_OF(c->open)) {
            OpenBracket o = {.bracket = b, .word = {c->word[0], c->word[1]}, .callee = {c->last, c->before}};
            c->open[c->depth++] = o;
        }
    } else if (c->depth) { /* what stood in front goes on */
        const OpenBracket *o = &c->open[--c->depth];
        c->word[0] = o->word[0];
        c->word[1] = o->word[1];
        c->words = 2;
    }
    if (b == '{' || b == '}' || b == '(')
        new_item(c);
    c->item_begins &= b != ')' && b != '[' && b != ']';
    c->last = NULL;
}

static size_t scan_name(Scan *c, size_t at)
{
    size_t lo = at;
    while (at < c->n && name_letter(c->s[at]))
        at++;
    Name name = name_of(c->ctx, c->s + lo, at - lo);
    c->before = c->point ? c->last : NULL;
    c->last = name;
    if (c->words < 2)
        c->word[c->words++] = name;
    c->point = c->item_begins = false;
    return at;
}

/* What stands before the word at the end of s[0..n). */
static void scan(Scan *c)
{
    new_item(c);
    for (size_t i = 0; i < c->n;) {
        char x = c->s[i];
        bool in_parens = c->depth && c->open[c->depth - 1].bracket != '{';
        if (x == '#') {
            while (i < c->n && c->s[i] != '\n')
                i++;
            c->in_comment = i == c->n;
        } else if (x == '"') {
            c->string_at = ++i;
            while (i < c->n && c->s[i] != '"' && c->s[i] != '\n')
                i += c->s[i] == '\\' ? 2 : 1;
            c->in_string = i >= c->n;
            c->item_begins = c->point = false;
            c->last = NULL;
            i++;
        } else if (name_letter(x)) {
            i = scan_name(c, i);
        } else {
            if (strchr("()[]{}", x))
                scan_bracket(c, i);
            else if ((x == '\n' && !in_parens) || x == ';' ||
                     (x == ',' && !(c->depth && c->open[c->depth - 1].bracket == '[')))
                new_item(c);
            else if (x == '.')
                c->point = c->last != NULL;
            else if (x != ' ' && x != '\t' && x != '\r' && x != '\n') {
                c->value |= x == '=';
                c->item_begins = c->point = false;
                c->last = NULL;
            }
            i++;
        }
    }
}

/* ---- items ---- */

typedef struct Offer {
    Cursor a;
    Scan *scan;
    const char *typed; /* the word that has begun */
    size_t typed_n;
    JsonText *t;
    Map offered;
    size_t n;
} Offer;

static bool begins(const Offer *o, const char *name)
{
    for (size_t i = 0; i < o->typed_n; i++)
        if (!name[i] || ((name[i] ^ o->typed[i]) & ~32))
            return false;
    return true;
}

static void offer(Offer *o, const char *name, int kind, const char *detail, const char *doc)
{
    enum { MOST = 1000 };
    if (!name || !*name || !begins(o, name) || o->n >= MOST)
        return;
    void **slot = map_at(&o->offered, (uintptr_t)name_str(o->a.r->ctx, name));
    if (*slot)
        return;
    *slot = o;
    o->n++;
    json_open(o->t, NULL, '{');
    json_put_string(o->t, "label", name);
    json_put_integer(o->t, "kind", kind);
    if (detail && *detail)
        json_put_string(o->t, "detail", detail);
    if (doc && *doc)
        json_put_string(o->t, "documentation", doc);
    json_close(o->t, '}');
}

static const char *expr_of(const Offer *o, const Ast *e)
{
    enum { LONGEST = 80 };
    Buf b = buf_new(o->a.r->arena);
    if (e)
        ast_print_expr(&b, e);
    if (b.n > LONGEST)
        b.s[LONGEST] = 0;
    return b.s;
}

static void offer_item(Offer *o, const Ast *it, const char *where)
{
    if (it->kind == AST_LET)
        offer(o, it->name, KIND_VARIABLE, expr_of(o, it->kid[1]), it->doc);
    else if (it->kind == AST_BLOCK)
        offer(o, it->name, KIND_FUNCTION, where ? where : "block", it->doc);
}

static void offer_file(Offer *o, const Imported *file)
{
    for (uint32_t i = 0; i < file->ast->n; i++)
        offer_item(o, file->ast->kid[i], file->name);
}

static void offer_declared(Offer *o, const FileNames *names)
{
    static const int kinds[] = {KIND_VARIABLE, KIND_FUNCTION, KIND_MODULE, KIND_PROPERTY, KIND_VARIABLE,
                                KIND_VALUE,    KIND_VARIABLE, KIND_FIELD,  KIND_VARIABLE, KIND_VARIABLE};
    for (size_t i = names->declared.n; i-- > 0;) {
        const Declared *d = &names->declared.v[i];
        if (d->lo > o->a.offset || o->a.offset > d->hi || d->at.hi == o->a.offset)
            continue;
        if (d->kind == NAME_LET || d->kind == NAME_BLOCK)
            offer_item(o, d->ast, NULL);
        else
            offer(o, d->name, kinds[d->kind], NULL, d->ast->doc);
    }
}

/* The text up to here, with all that is open closed: a body that is not finished has names, too. */
static const FileNames *names_so_far(Offer *o)
{
    const Scan *c = o->scan;
    Ctx *ctx = o->a.r->ctx;
    CtxGuard guard;
    if (!CTX_TRY(ctx, &guard))
        return NULL;
    Buf b = buf_new(ctx->program);
    buf_put(&b, c->s, c->n);
    buf_puts(&b, c->item_begins ? "" : "none");
    for (size_t i = c->depth; i-- > 0;)
        buf_puts(&b, c->open[i].bracket == '(' ? ")" : c->open[i].bracket == '[' ? "]" : "\n}");
    buf_putc(&b, '\n');
    const FileNames *names = names_of(ctx, vwn_parse(ctx, source_add(ctx, "<begun>", b.s, b.n)));
    ctx_leave(ctx, &guard);
    return names;
}

/* Names that stand for something here. */
static void offer_names(Offer *o)
{
    const FileNames *begun = names_so_far(o);
    if (begun)
        offer_declared(o, begun);
    offer_declared(o, o->a.names);
    for (uint32_t i = 0; i < o->a.ast->n; i++) {
        Imported file;
        if (brings_names(o->a.ast->kid[i]) && import_open(&o->a, o->a.ast->kid[i], &file))
            offer_file(o, &file);
    }
}

static void offer_values(Offer *o)
{
    static const char *const words[] = {"true", "false", "none", "if", "not", "inf"};
    offer_names(o);
    for (size_t i = 0; i < prim_count(); i++)
        if (prim_find(prim_at(i)->name))
            offer(o, prim_at(i)->name, KIND_FUNCTION, prim_at(i)->params, prim_at(i)->doc);
    for (int v = 0; v < HV_NAMED; v++)
        if (!strchr(host_var_name((HostVar)v), '.'))
            offer(o, host_var_name((HostVar)v), KIND_VALUE, "known while training", NULL);
    for (size_t i = 0; i < COUNT_OF(words); i++)
        offer(o, words[i], KIND_KEYWORD, NULL, NULL);
}

static void offer_arguments(Offer *o, const Ast *block)
{
    for (uint32_t i = 0; block->kid[0] && i < block->kid[0]->n; i++) {
        const Ast *par = block->kid[0]->kid[i];
        const char *type = expr_of(o, par->kid[0]);
        offer(o, par->name, KIND_PROPERTY,
              par->kid[1] ? arena_printf(o->a.r->arena, "%s = %s", type, expr_of(o, par->kid[1])) : type, par->doc);
    }
}

/* "x: tensor, over: int = -1": the names before the colons. */
static void offer_prim_arguments(Offer *o, const Prim *p)
{
    for (const char *s = p->params; s && *s;) {
        size_t n = strcspn(s, ":,"), end = strcspn(s, ",");
        if (s[n] == ':' && n < 64 && *s != '*')
            offer(o, arena_copy(o->a.r->arena, s, n), KIND_PROPERTY, arena_copy(o->a.r->arena, s, end), p->doc);
        s += end;
        s += strspn(s, ", ");
    }
}

static void offer_attributes(Offer *o, const char *node)
{
    for (size_t i = 0; i < attribute_count(); i++) {
        const AttributeRow *row = attribute_at(i);
        if (!strcmp(row->node, node))
            offer(o, row->name, KIND_PROPERTY, row->values, row->text);
    }
    for (size_t i = 0; i < node_doc_count(); i++)
        if (node_stands_in(node_doc_at(i), node))
            offer(o, node_doc_at(i)->name, KIND_CLASS, NULL, node_doc_at(i)->text);
}

/* ---- places ---- */

static bool word_is(Name word, const char *text) { return word && !strcmp(word, text); }

/* Whether one of the braces around the position is that of such an item. */
static bool inside(const Scan *c, const char *word)
{
    for (size_t i = 0; i < c->depth; i++)
        if (c->open[i].bracket == '{' && word_is(c->open[i].word[0], word))
            return true;
    return false;
}

static void offer_behind_point(Offer *o)
{
    static const char *const inputs[] = {"tokens", "labels", "document"};
    Name word = o->scan->last;
    size_t n = strlen(word);
    for (uint32_t i = 0; i < o->a.ast->n; i++) {
        const Ast *import = o->a.ast->kid[i];
        Imported file;
        if (import->kind != AST_IMPORT || !import->kid[0] || import->kid[0]->name != word ||
            !import_open(&o->a, import, &file))
            continue;
        offer_file(o, &file);
        for (size_t k = 0; file_field_at(k); k++)
            offer(o, file_field_at(k), KIND_FIELD, "of a file with a model", NULL);
    }
    if (word_is(word, "scope"))
        for (size_t i = 0; i < attribute_count(); i++)
            if (!strcmp(attribute_at(i)->node, "model"))
                offer(o, attribute_at(i)->name, KIND_PROPERTY, attribute_at(i)->values, attribute_at(i)->text);
    for (size_t i = 0; word_is(word, "input") && i < COUNT_OF(inputs); i++)
        offer(o, inputs[i], KIND_FIELD, "[B, T], integers", NULL);
    for (int v = 0; v < HV_NAMED; v++) {
        const char *name = host_var_name((HostVar)v);
        if (!strncmp(name, word, n) && name[n] == '.')
            offer(o, name + n + 1, KIND_VALUE, "known while training", NULL);
    }
}

static void offer_call(Offer *o, const OpenBracket *call)
{
    Found f = {0};
    const Prim *prim = call->callee[0] && !call->callee[1] ? prim_find(call->callee[0]) : NULL;
    if (call->bracket == '(' && call->callee[0] && o->scan->item_begins) {
        if (find_block(&o->a, call->callee[0], call->callee[1], &f))
            offer_arguments(o, f.item);
        else if (prim)
            offer_prim_arguments(o, prim);
    }
    offer_values(o);
}

static void offer_in_braces(Offer *o, const OpenBracket *brace)
{
    Name node = brace->word[0];
    Found f = {0};
    Name block = word_is(node, "embed") || word_is(node, "head")
                     ? name_printf(o->a.r->ctx, "%s_%s", node, brace->word[1] ? brace->word[1] : "")
                     : node;
    if (inside(o->scan, "block") || word_is(node, "block")) {
        offer_attributes(o, "block");
        offer_values(o);
        return;
    }
    if (word_is(node, "variant"))
        offer_names(o);
    if (node && find_block(&o->a, block, NULL, &f))
        offer_arguments(o, f.item);
    if (node)
        offer_attributes(o, word_is(node, "optimizer") && brace->word[1] ? brace->word[1] : node);
    if (!inside(o->scan, "model"))
        return;
    offer_attributes(o, "model");
    offer_names(o);
}

static void offer_all(Offer *o)
{
    Scan *c = o->scan;
    const OpenBracket *open = c->depth ? &c->open[c->depth - 1] : NULL;
    if (c->in_comment)
        return;
    if (c->in_string) {
        o->typed = c->s + c->string_at;
        o->typed_n = o->a.offset - c->string_at;
        for (size_t i = 0; word_is(c->word[0], "import") && i < std_count(); i++)
            offer(o, arena_copy(o->a.r->arena, std_path(i), strlen(std_path(i)) - strlen(".vwn")), KIND_FILE,
                  "the library", NULL);
    } else if (c->point && c->last) {
        offer_behind_point(o);
    } else if (open && open->bracket != '{') {
        offer_call(o, open);
    } else if (c->item_begins && open) {
        offer_in_braces(o, open);
    } else if (c->item_begins) {
        offer_attributes(o, "file");
    } else if (c->value || !open || !word_is(c->word[0], "block")) {
        offer_values(o);
    }
}

void answer_complete(Request *r)
{
    Offer o = {.t = &r->t};
    if (!cursor_open(&o.a, r))
        return;
    const char *text = r->document->text;
    size_t lo = o.a.offset;
    while (lo && name_letter(text[lo - 1]))
        lo--;
    o.typed = text + lo;
    o.typed_n = o.a.offset - lo;
    o.scan = NEW(r->arena, Scan);
    *o.scan = (Scan){.ctx = r->ctx, .s = text, .n = lo};
    map_init(&o.offered, r->arena);
    scan(o.scan);
    json_open(&r->t, "result", '{');
    json_put_bool(&r->t, "isIncomplete", false);
    json_open(&r->t, "items", '[');
    offer_all(&o);
    json_close(&r->t, ']');
    json_close(&r->t, '}');
}
