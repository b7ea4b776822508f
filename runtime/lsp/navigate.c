/* navigate.c - where a name is declared and used, and another name for it.
 *
 * In:  a position.   Out: places, or edits.
 * The one idea: a new name is tried. Where any name of the text then means another thing, or a check says what it did not say
 * before, it is refused.
 */
#include "compiler/file/check_unit.h"
#include "names.h"

#include <stdlib.h>

static void put_location(Request *r, const char *key, const char *uri, uint32_t source, Span at)
{
    size_t n;
    const char *text = source_text(r->ctx, source, &n);
    TextLines lines = lines_of(r->arena, text, n, r->server->encoding);
    json_open(&r->t, key, '{');
    json_put_string(&r->t, "uri", uri);
    put_range(&r->t, "range", &lines, at.lo, at.hi);
    json_close(&r->t, '}');
}

/* The innermost node of a kind around the position, and what stands right in it. */
static const Ast *innermost(const Cursor *a, AstKind kind, const Ast **inner)
{
    for (size_t i = a->chain.n; i-- > 0;)
        if (a->chain.node[i]->kind == kind) {
            if (inner)
                *inner = i + 1 < a->chain.n ? a->chain.node[i + 1] : NULL;
            return a->chain.node[i];
        }
    return NULL;
}

static bool on(Span s, size_t offset) { return s.file && s.lo <= offset && offset <= s.hi; }

/* The name behind a point: of a file that is imported under the name before it. */
static bool behind_point(Cursor *a, Name *name, Name *as)
{
    const Ast *field = innermost(a, AST_FIELD, NULL), *path = innermost(a, AST_PATH, NULL);
    if (field && on(field->name_span, a->offset) && field->kid[0]->kind == AST_ID) {
        *name = field->name;
        *as = field->kid[0]->name;
        return true;
    }
    if (path && path->n && path->kid[0]->kind == AST_DOT && on(path->kid[0]->span, a->offset)) {
        *name = path->kid[0]->name;
        *as = path->name;
        return true;
    }
    return false;
}

/* The argument of a block whose name, in a call or a node, stands at the position. */
static bool argument_here(Cursor *a, Found *out)
{
    const Ast *named = innermost(a, AST_NAMED, NULL), *call = innermost(a, AST_CALL, NULL),
              *set = innermost(a, AST_SET, NULL), *node = innermost(a, AST_NODE, NULL);
    Name name = NULL;
    Found block = {0};
    if (named && on(named->name_span, a->offset) && call) {
        const Ast *callee = call->kid[0];
        name = named->name;
        bool field = callee->kind == AST_FIELD && callee->kid[0]->kind == AST_ID;
        if ((callee->kind == AST_ID || field) &&
            !find_block(a, callee->name, field ? callee->kid[0]->name : NULL, &block))
            return false;
    } else if (set && node && is_variant(node) && on(set->kid[0]->span, a->offset)) {
        return find_name(a, set->kid[0]->name, NULL, out) || find_node(a, set->kid[0], out);
    } else if (set && node && !set->kid[0]->n && on(set->kid[0]->span, a->offset)) {
        name = set->kid[0]->name;
        if (!node_block(a, node, &block))
            return false;
    }
    const Ast *par = name && block.item ? block_argument(block.item, name) : NULL;
    *out = block;
    out->item = par;
    return par != NULL;
}

bool found_here(Cursor *a, Found *out)
{
    Name name, as;
    *out = (Found){0};
    bool point = behind_point(a, &name, &as);
    if (point && find_name(a, name, as, out))
        return true;
    if (argument_here(a, out))
        return true;
    *out = (Found){0};
    const Used *u = name_at(a->names, a->offset);
    if (!u || point)
        return false;
    if (!u->declared)
        return find_name(a, u->name, NULL, out);
    const Declared *d = &a->names->declared.v[u->declared - 1];
    *out = (Found){.item = d->ast, .uri = a->r->document->uri, .source = a->source};
    return true;
}

void answer_definition(Request *r)
{
    Cursor a;
    Found f;
    Imported file;
    if (!cursor_open(&a, r))
        return;
    const Ast *import = innermost(&a, AST_IMPORT, NULL), *node = innermost(&a, AST_NODE, NULL);
    const Used *u = name_at(a.names, a.offset);
    bool named =
        import ? on(import->name_span, a.offset) : node && is_variant(node) && on(node->kid[1]->span, a.offset);
    if (named && import_open(&a, import ? import : node, &file) && file.uri)
        put_location(r, "result", file.uri, file.source, (Span){file.source, 0, 0});
    else if (u && u->declared && !innermost(&a, AST_FIELD, NULL) && !argument_here(&a, &f))
        put_location(r, "result", r->document->uri, a.source, a.names->declared.v[u->declared - 1].at);
    else if (found_here(&a, &f) && f.uri)
        put_location(r, "result", f.uri, f.source,
                     f.item->kind == AST_SET    ? f.item->kid[0]->span
                     : f.item->kind == AST_NODE ? f.item->kid[1]->span
                                                : f.item->name_span);
    else
        json_put_raw(&r->t, "result", "null"); /* the library is in no file */
}

/* Everything that means what stands at the position; `all`: also where the name is declared. */
static void put_uses(Request *r, bool links, bool all)
{
    Cursor a;
    if (!cursor_open(&a, r))
        return;
    const Used *u = name_at(a.names, a.offset);
    json_open(&r->t, "result", '[');
    for (size_t i = 0; u && i < a.names->used.n; i++) {
        const Used *other = &a.names->used.v[i];
        bool declares = u->declared && a.names->declared.v[u->declared - 1].at.lo == other->at.lo;
        if (other->declared != u->declared || other->name != u->name || (declares && !all))
            continue;
        if (links) {
            put_location(r, NULL, r->document->uri, a.source, other->at);
            continue;
        }
        json_open(&r->t, NULL, '{');
        put_range(&r->t, "range", &r->lines, other->at.lo, other->at.hi);
        json_close(&r->t, '}');
    }
    json_close(&r->t, ']');
}

void answer_references(Request *r)
{
    const Json *all = json_get(json_get(r->params, "context"), "includeDeclaration");
    put_uses(r, true, !all || all->kind != JSON_FALSE);
}

void answer_highlight(Request *r) { put_uses(r, false, true); }

/* ---- another name ---- */

/* Why what stands at the position cannot have another name; NULL: it can. */
static const char *not_renamed(const Cursor *a, const Used *u)
{
    if (!u)
        return "there is no name here";
    if (!u->declared)
        return "it is a name of the library, or of another file";
    switch (a->names->declared.v[u->declared - 1].kind) {
    case NAME_ARGUMENT: return "an argument's name stands wherever its block is used, also in other files";
    case NAME_TENSOR:
    case NAME_EXTENT: return "the names of what a block is applied to are a part of what it is";
    case NAME_WEIGHT: return "the name of weights is how checkpoints know them";
    case NAME_LOOP: return "the variable of a loop is a part of the paths of what stands in it";
    default: return NULL;
    }
}

/* A plain name of the language: the scanner says so. */
static bool is_name(Ctx *ctx, const char *text)
{
    size_t n = strlen(text), before = diag_count(ctx);
    const char *line = arena_printf(ctx->program, "let %s = 0\n", text);
    const Ast *ast = n <= 255 ? vwn_parse(ctx, source_add(ctx, "<name>", line, strlen(line))) : NULL;
    bool fine = ast && diag_count(ctx) == before && ast->n == 1 && ast->kid[0]->kind == AST_LET && ast->kid[0]->name &&
                !strcmp(ast->kid[0]->name, text);
    diag_truncate(ctx, before);
    return fine;
}

static int by_offset(const void *a, const void *b)
{
    const Used *x = a, *y = b;
    return (x->at.lo > y->at.lo) - (x->at.lo < y->at.lo);
}

/* Names that stand in a text once, in its order. */
static void in_order(FileNames *t)
{
    size_t n = 0;
    if (t->used.n)
        qsort(t->used.v, t->used.n, sizeof *t->used.v, by_offset);
    for (size_t i = 0; i < t->used.n; i++)
        if (!n || t->used.v[i].at.lo != t->used.v[n - 1].at.lo)
            t->used.v[n++] = t->used.v[i];
    t->used.n = n;
}

static const char *renamed_text(const Cursor *a, const Used *u, const char *name, size_t *size)
{
    const Document *d = a->r->document;
    Buf b = buf_new(a->r->arena);
    size_t at = 0;
    for (size_t i = 0; i < a->names->used.n; i++) {
        const Used *other = &a->names->used.v[i];
        if (other->declared != u->declared || other->at.lo < at)
            continue;
        buf_put(&b, d->text + at, other->at.lo - at);
        buf_puts(&b, name + strlen(other->front));
        at = other->at.hi;
    }
    buf_put(&b, d->text + at, d->n - at);
    *size = b.n;
    return b.s;
}

/* A name of the new text that means another thing than it did; NO_SPAN: there is none. */
static Span changed_meaning(const Cursor *a, const FileNames *after, const Used *u)
{
    for (size_t i = 0; i < a->names->used.n; i++) {
        const Used *x = &a->names->used.v[i], *y = i < after->used.n ? &after->used.v[i] : NULL;
        bool same = y && x->declared == y->declared && (x->declared == u->declared || x->name == y->name);
        if (!same)
            return x->at;
    }
    return NO_SPAN;
}

/* The codes of everything that a check says of a text, in their order. */
static const char *codes_of(Request *r, const char *text, size_t n, const char **last)
{
    Ctx *ctx = ctx_new(&r->server->mem);
    CtxGuard guard, own;
    Buf b = buf_new(r->arena);
    *last = "";
    if (!ctx)
        ctx_raise(r->ctx, ST_ENVIRONMENT, "out of memory");
    if (!CTX_TRY(r->ctx, &own)) {
        ctx_free(ctx);
        ctx_raise_again(r->ctx);
    }
    ctx->byte_limit = (size_t)1 << 30;
    OpenTexts texts = {.server = r->server, .arena = ctx->program};
    CheckOptions how = {
        .path = r->document->path, .text = text, .text_length = n, .text_of = text_of_open, .user = &texts};
    if (CTX_TRY(ctx, &guard)) {
        check_file(ctx, &how);
        ctx_leave(ctx, &guard);
    }
    for (size_t i = 0; i < diag_count(ctx); i++) {
        const Diag *d = diag_get(ctx, i);
        buf_printf(&b, "%s\n", d->code);
        *last = arena_copy(r->arena, d->message, strlen(d->message));
    }
    ctx_leave(r->ctx, &own);
    ctx_free(ctx);
    return b.s;
}

static bool try_name(Cursor *a, const Used *u, const char *name)
{
    Request *r = a->r;
    size_t n;
    const char *text = renamed_text(a, u, name, &n), *said, *now_said;
    uint32_t source = source_add(r->ctx, r->document->path, text, n);
    FileNames *after = names_of(r->ctx, vwn_parse(r->ctx, source));
    in_order(after);
    Span at = changed_meaning(a, after, u);
    if (at.file || after->used.n != a->names->used.n) {
        LineCol place = source_position(r->ctx, a->source, at.lo);
        request_fail(r, RPC_FAILED, "`%s` is taken: what stands in line %u would mean another thing", name, place.line);
        return false;
    }
    const char *before = codes_of(r, r->document->text, r->document->n, &said), *now = codes_of(r, text, n, &now_said);
    if (strcmp(before, now) != 0)
        request_fail(r, RPC_FAILED, "`%s` cannot be the name: %s", name,
                     *now_said ? now_said : "the file would be another");
    return strcmp(before, now) == 0;
}

static void put_rename(Cursor *a, const Used *u, const char *name)
{
    Request *r = a->r;
    json_open(&r->t, "result", '{');
    json_open(&r->t, "changes", '{');
    json_open(&r->t, r->document->uri, '[');
    for (size_t i = 0; i < a->names->used.n; i++) {
        const Used *other = &a->names->used.v[i];
        if (other->declared != u->declared)
            continue;
        json_open(&r->t, NULL, '{');
        put_range(&r->t, "range", &r->lines, other->at.lo, other->at.hi);
        json_put_string(&r->t, "newText", name + strlen(other->front));
        json_close(&r->t, '}');
    }
    json_close(&r->t, ']');
    json_close(&r->t, '}');
    json_close(&r->t, '}');
}

void answer_rename(Request *r)
{
    Cursor a;
    const char *name = json_string(r->params, "newName");
    if (!cursor_open(&a, r))
        return;
    in_order(a.names);
    const Used *u = name_at(a.names, a.offset);
    const char *why = not_renamed(&a, u);
    if (diag_errors(r->ctx))
        why = "the file has errors of syntax";
    if (why) {
        request_fail(r, RPC_FAILED, "nothing is renamed: %s", why);
        return;
    }
    if (!name || !is_name(r->ctx, name)) {
        request_fail(r, RPC_PARAMS, "`%.100s` is no name", name ? name : "");
        return;
    }
    for (size_t i = 0; i < a.names->used.n; i++) {
        const Used *other = &a.names->used.v[i];
        if (other->declared == u->declared && strncmp(name, other->front, strlen(other->front)) != 0) {
            request_fail(r, RPC_FAILED, "the name begins with `%s`: line %u places it so", other->front,
                         source_position(r->ctx, a.source, other->at.lo).line);
            return;
        }
    }
    if (!strcmp(name, u->name) || try_name(&a, u, name))
        put_rename(&a, u, name);
}

void answer_prepare_rename(Request *r)
{
    Cursor a;
    if (!cursor_open(&a, r))
        return;
    const Used *u = name_at(a.names, a.offset);
    if (not_renamed(&a, u)) {
        json_put_raw(&r->t, "result", "null");
        return;
    }
    json_open(&r->t, "result", '{');
    put_range(&r->t, "range", &r->lines, u->at.lo, u->at.hi);
    json_put_string(&r->t, "placeholder", u->name);
    json_close(&r->t, '}');
}
