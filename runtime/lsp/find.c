/* find.c - what stands at a position, and what its name is called elsewhere: in files that are imported, in the library.
 *
 * In:  a request.   Out: nodes around the position; the items that declare names.
 */
#include "compiler/front/check.h"
#include "compiler/portable/file.h"
#include "names.h"

#include <stdio.h>

static bool stands_in(const Ast *e, size_t offset) { return e && e->span.lo <= offset && offset <= e->span.hi; }

static void chain_of(NodeChain *c, const Ast *e, size_t offset)
{
    while (e && c->n < COUNT_OF(c->node)) {
        c->node[c->n++] = e;
        const Ast *inner = NULL;
        for (uint32_t i = 0; i < e->n; i++) /* of two that touch, the one that begins there */
            if (stands_in(e->kid[i], offset))
                inner = e->kid[i];
        e = inner;
    }
}

bool cursor_open(Cursor *a, Request *r)
{
    *a = (Cursor){.r = r};
    if (!lines_read(&r->lines, json_get(r->params, "position"), &a->offset)) {
        request_fail(r, RPC_PARAMS, "a position is missing");
        return false;
    }
    a->ast = request_parse(r, &a->source);
    a->names = names_of(r->ctx, a->ast);
    chain_of(&a->chain, a->ast, a->offset);
    return true;
}

/* ---- imports ---- */

static const char *read_text(Arena *arena, const char *path, size_t *n)
{
    enum { MOST = 16 << 20 };
    const char *why = file_not_vwn(path, true);
    FILE *f = why ? NULL : file_stream(path, "r", &why);
    if (!f)
        return NULL;
    Ctx *ctx = arena_ctx(arena);
    CtxGuard guard;
    if (!CTX_TRY(ctx, &guard)) {
        fclose(f);
        ctx_raise_again(ctx);
    }
    Buf b = buf_new(arena);
    char part[8192];
    size_t got;
    while (b.n < MOST && (got = fread(part, 1, sizeof part, f)) > 0)
        buf_put(&b, part, got);
    ctx_leave(ctx, &guard);
    fclose(f);
    *n = b.n;
    return b.s;
}

static const char *folder_of_path(Arena *a, const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? arena_copy(a, path, (size_t)(slash - path)) : ".";
}

bool import_open(Cursor *a, const Ast *import, Imported *out)
{
    Request *r = a->r;
    size_t n = 0;
    const char *path = import->kind == AST_IMPORT ? import->name : import->kid[1]->name, *text;
    *out = (Imported){.name = path};
    if (!path)
        return false;
    if (!strncmp(path, "std/", 4)) {
        text = std_text(path, &n);
    } else {
        path = import_path(r->arena, folder_of_path(r->arena, r->document->path), path);
        const Document *open = document_of_path(r->server, path);
        text = open ? open->text : read_text(r->arena, path, &n);
        n = open ? open->n : n;
        out->uri = uri_of_path(r->arena, path);
    }
    if (!text)
        return false;
    out->source = source_add(r->ctx, path, text, n);
    CtxGuard guard; /* a file with too many errors has no names */
    if (!CTX_TRY(r->ctx, &guard))
        return false;
    out->ast = vwn_parse(r->ctx, out->source);
    ctx_leave(r->ctx, &guard);
    return true;
}

bool is_variant(const Ast *it)
{
    return it->kind == AST_NODE && it->kid[0]->name && !strcmp(it->kid[0]->name, "variant") && it->kid[1];
}

/* Whether the file has all names of another as its own: one that is imported without a name, the base of a variant. */
bool brings_names(const Ast *it) { return it->kind == AST_IMPORT ? !it->kid[0] : is_variant(it); }

const Ast *top_item(const Ast *file, Name name)
{
    for (uint32_t i = 0; i < file->n; i++)
        if ((file->kid[i]->kind == AST_LET || file->kid[i]->kind == AST_BLOCK) && file->kid[i]->name == name)
            return file->kid[i];
    return NULL;
}

/* ---- names ---- */

bool find_name(Cursor *a, Name name, Name as, Found *out)
{
    for (size_t i = 0; !as && i < a->names->declared.n; i++) {
        const Declared *d = &a->names->declared.v[i];
        if (d->name == name && d->lo <= a->offset && a->offset <= d->hi && d->lo <= d->hi) {
            *out = (Found){.item = d->ast, .uri = a->r->document->uri, .source = a->source};
            if (d->hi != UINT32_MAX) /* the file's own comes first, an inner one is nearer */
                return true;
        }
    }
    if (out->item)
        return true;
    for (uint32_t i = 0; i < a->ast->n; i++) {
        const Ast *import = a->ast->kid[i];
        Imported file;
        bool fits =
            as ? import->kind == AST_IMPORT && import->kid[0] && import->kid[0]->name == as : brings_names(import);
        if (!fits || !import_open(a, import, &file))
            continue;
        const Ast *item = top_item(file.ast, name);
        if (item) {
            *out = (Found){.item = item, .uri = file.uri, .source = file.source, .where = file.name};
            return true;
        }
    }
    return false;
}

bool find_node(Cursor *a, const Ast *path, Found *out)
{
    Name label = path->n == 1 && path->kid[0]->kind == AST_DOT ? path->kid[0]->name : NULL;
    for (uint32_t i = 0; label && i < a->ast->n; i++) {
        Imported file;
        if (!is_variant(a->ast->kid[i]) || !import_open(a, a->ast->kid[i], &file))
            continue;
        for (uint32_t k = 0; k < file.ast->n; k++) {
            const Ast *it = file.ast->kid[k];
            if (it->kind != AST_NODE || it->kid[0]->name != path->name || !it->kid[1] || it->kid[1]->name != label)
                continue;
            *out = (Found){.item = it, .uri = file.uri, .source = file.source, .where = file.name};
            return true;
        }
    }
    return false;
}

bool find_block(Cursor *a, Name name, Name as, Found *out)
{
    enum { DEEPEST = 16 };
    *out = (Found){0};
    for (int depth = 0; depth < DEEPEST && find_name(a, name, as, out); depth++) {
        if (out->item->kind == AST_BLOCK)
            return true;
        const Ast *value = out->item->kind == AST_LET   ? out->item->kid[1]
                           : out->item->kind == AST_SET ? out->item->kid[1]
                                                        : NULL;
        const Ast *callee = value && value->kind == AST_CALL ? value->kid[0] : NULL;
        if (!callee || (callee->kind == AST_ID && callee->name == name))
            return false;
        as = callee->kind == AST_FIELD && callee->kid[0]->kind == AST_ID ? callee->kid[0]->name : NULL;
        name = callee->name;
        *out = (Found){0};
    }
    return false;
}

bool node_block(Cursor *a, const Ast *node, Found *out)
{
    const Ast *path = node->kid[0], *label = node->kid[1];
    if (!path || !path->name)
        return false;
    if (label && label->name && (!strcmp(path->name, "embed") || !strcmp(path->name, "head")))
        return find_block(a, name_printf(a->r->ctx, "%s_%s", path->name, label->name), NULL, out);
    bool field = path->n == 1 && path->kid[0]->kind == AST_DOT;
    return find_block(a, field ? path->kid[0]->name : path->name, field ? path->name : NULL, out);
}

const Ast *block_argument(const Ast *block, Name name)
{
    for (uint32_t i = 0; block->kid[0] && i < block->kid[0]->n; i++)
        if (block->kid[0]->kid[i]->name == name)
            return block->kid[0]->kid[i];
    return NULL;
}
