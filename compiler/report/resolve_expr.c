/* resolve_expr.c - expressions that need no other file and leave nothing to a default.
 *
 * In:  an expression and the file it was written in.   Out: what to put in its place.
 * The one idea: a name of another file is a value already, so its literal is written; where
 * it has none (a block, a schedule) its own expression is, rewritten in turn.
 */
#include "resolve_expr.h"

#include "compiler/front/check_prim.h"
#include "compiler/file/check_train.h"

bool resolve_is_literal(const Ast *e)
{
    return e->kind == AST_NUM || e->kind == AST_BOOL || e->kind == AST_STR ||
           (e->kind == AST_NEG && e->kid[0]->kind == AST_NUM) || (e->kind == AST_ID && strcmp(e->name, "none") == 0);
}

static Ast *ast_new(Resolver *r, AstKind kind, Name name, Span span, uint32_t n)
{
    Ast *a = NEW(r->arena, Ast);
    *a = (Ast){.kind = kind, .name = name, .span = span, .name_span = span, .n = n};
    a->kid = NEW_ARRAY(r->arena, Ast *, n + 1);
    return a;
}

static const Ast *parsed(Resolver *r, const char *text)
{
    return vwn_parse_expr(r->ctx, source_add(r->ctx, "<resolved>", text, strlen(text)));
}

/* ---- names of other files ---- */

const BlockDef *resolve_block(File *f, Name name)
{
    Binding *b = env_find(f->env, name);
    bool is_block = b && !b->is_let && b->state == BIND_READY && b->value.kind == V_BLOCK;
    return is_block ? b->value.block->def : NULL;
}

File *resolve_file(File *home, Name name)
{
    Binding *b = env_find(home->env, name);
    bool is_file = b && b->state == BIND_READY && b->value.kind == V_FILE;
    return is_file ? b->value.file : NULL;
}

static bool has_literal(const Value *v)
{
    if (v->kind == V_LIST) {
        bool all = true;
        for (size_t i = 0; i < v->list->n && all; i++)
            all = has_literal(&v->list->v[i]);
        return all;
    }
    return v->kind == V_NUM || v->kind == V_BOOL || v->kind == V_STR || v->kind == V_QTY || v->kind == V_REL;
}

static const Ast *literal_of(Resolver *r, const Value *v, Span span)
{
    if (!has_literal(v))
        return NULL;
    const Ast *e = parsed(r, value_text(r->ev, v));
    if (!e || e->kind != AST_NEG)
        return e;
    Ast *paren = ast_new(r, AST_PAREN, NULL, span, 1);
    paren->kid[0] = (Ast *)e;
    return paren;
}

/* The value of `e` where it has one without a model being built around it. */
static const Ast *evaluated(Resolver *r, const Ast *e, File *home)
{
    size_t before = diag_count(r->ctx);
    Value v = eval(r->ev, e, home->env, NULL);
    bool fine = diag_count(r->ctx) == before;
    diag_truncate(r->ctx, before);
    return fine ? literal_of(r, &v, e->span) : NULL;
}

static const Ast *rewrite(Resolver *r, const Ast *e, File *home);

/* What a let of another file is. */
static const Ast *let_text(Resolver *r, const Binding *b, File *home, Span span)
{
    Value v = binding_get(r->ev, (Binding *)b, NULL);
    const Ast *e = literal_of(r, &v, span);
    if (e || !b->expr)
        return e;
    e = rewrite(r, b->expr, b->env && b->env->file ? b->env->file : home);
    bool loose =
        e->kind == AST_OP || e->kind == AST_COND || e->kind == AST_RANGE || e->kind == AST_NOT || e->kind == AST_NEG;
    if (!loose)
        return e;
    Ast *paren = ast_new(r, AST_PAREN, NULL, span, 1);
    paren->kid[0] = (Ast *)e;
    return paren;
}

/* `m.X`, where m is the file `other`. */
static const Ast *field_text(Resolver *r, File *other, Name field, Span span)
{
    Binding *b = map_get(&other->names, (uintptr_t)field);
    resolve_take_in(r, other, false);
    if (b && b->is_let)
        return let_text(r, b, other, span);
    return b ? ast_new(r, AST_ID, field, span, 0) : NULL;
}

/* The name that stands first in `m.width.at` or `m.params(mtp)`. */
static const Ast *root_of(const Ast *e)
{
    while (e->kind == AST_FIELD || (e->kind == AST_CALL && e->kid[0]->kind == AST_FIELD))
        e = e->kid[0];
    return e;
}

const Ast *resolve_moved(Resolver *r, const Ast *e)
{
    const char *path = map_get(&r->ev->moved, (uintptr_t)e->span.file << 32 | e->span.lo);
    return path && e->kind != AST_NAMED ? ast_new(r, AST_STR, path, e->span, 0) : NULL;
}

const Ast *resolve_foreign(Resolver *r, const Ast *e, File *home)
{
    const Ast *moved = resolve_moved(r, e);
    if (moved)
        return moved;
    if (e->kind == AST_FIELD || (e->kind == AST_CALL && e->kid[0]->kind == AST_FIELD)) {
        const Ast *root = root_of(e);
        File *other = root->kind == AST_ID ? resolve_file(home, root->name) : NULL;
        for (size_t i = 0; home == r->file && i < r->stays.n; i++)
            if (r->stays.v[i] == root->name)
                return NULL;
        if (!other)
            return NULL;
        const Ast *value = evaluated(r, e, home);
        bool direct = e->kind == AST_FIELD && e->kid[0] == root;
        return value || !direct ? value : field_text(r, other, e->name, e->span);
    }
    if (e->kind != AST_ID || home == r->file)
        return NULL;
    Binding *b = env_find(home->env, e->name);
    bool here = !b || env_find(r->file->env, e->name) == b;
    return here || !b->is_let ? NULL : let_text(r, b, home, e->span);
}

/* ---- defaults ---- */

static bool is_given(const Ast *args, Name name, size_t place)
{
    size_t by_position = 0;
    for (uint32_t i = 0; i < args->n; i++) {
        const Ast *a = args->kid[i];
        if (a->kind == AST_NAMED && a->name == name)
            return true;
        by_position += a->kind != AST_NAMED && a->kind != AST_OFF;
    }
    return place < by_position;
}

static size_t block_defaults(Resolver *r, const Ast *args, const Ast *params, const Ast ***named)
{
    size_t n = 0;
    *named = NEW_ARRAY(r->arena, const Ast *, params->n + 1);
    for (uint32_t i = 0; i < params->n; i++) {
        const Ast *par = params->kid[i];
        if (!par->kid[1] || !resolve_is_literal(par->kid[1]) || is_given(args, par->name, 0))
            continue;
        Ast *a = ast_new(r, AST_NAMED, par->name, par->kid[1]->span, 1);
        a->kid[0] = par->kid[1];
        (*named)[n++] = a;
    }
    return n;
}

/* From a signature such as "path: text, val: float = 0". */
static size_t spec_defaults(Resolver *r, const Ast *args, const char *s, const Ast ***named)
{
    size_t n = 0, place = 0;
    *named = NEW_ARRAY(r->arena, const Ast *, strlen(s) + 1);
    for (; *s; place++) {
        size_t size = strcspn(s, ","), name = strcspn(s, ":,");
        const char *equals = memchr(s, '=', size);
        Name key = name_of(r->ctx, s, name);
        if (equals && !is_given(args, key, place)) {
            const char *text = arena_copy(r->arena, equals + 1, size - (size_t)(equals + 1 - s));
            Ast *a = ast_new(r, AST_NAMED, key, args->span, 1);
            a->kid[0] = (Ast *)parsed(r, text);
            (*named)[n++] = a;
        }
        s += size;
        s += strspn(s, ", ");
    }
    return n;
}

size_t resolve_defaults(Resolver *r, const Ast *call, File *home, const Ast ***named)
{
    const Ast *callee = call->kid[0];
    Name name = callee->name;
    if (r->items && callee->kind == AST_FIELD && callee->kid[0]->kind == AST_ID) {
        File *other = resolve_file(home, callee->kid[0]->name);
        const BlockDef *its = other ? resolve_block(other, name) : NULL;
        return its ? block_defaults(r, call->kid[1], its->ast->kid[0], named) : 0;
    }
    if (!r->items || callee->kind != AST_ID)
        return 0;
    const Prim *schedule = call == r->rate ? schedule_prim(name) : NULL;
    if (schedule)
        return spec_defaults(r, call->kid[1], schedule->params, named);
    const BlockDef *def = resolve_block(home, name);
    if (def)
        return block_defaults(r, call->kid[1], def->ast->kid[0], named);
    const Prim *prim = env_find(home->env, name) ? NULL : prim_find(name);
    return prim && prim->run == prim_spec ? spec_defaults(r, call->kid[1], prim->params, named) : 0;
}

/* ---- both ---- */

static const Ast *rewrite(Resolver *r, const Ast *e, File *home)
{
    if (!e)
        return NULL;
    const Ast *foreign = resolve_foreign(r, e, home), **more;
    if (foreign)
        return foreign;
    Ast *out = ast_new(r, e->kind, e->name, e->span, e->n);
    for (uint32_t i = 0; i < e->n; i++)
        out->kid[i] = (Ast *)rewrite(r, e->kid[i], home);
    size_t n = e->kind == AST_CALL ? resolve_defaults(r, e, home, &more) : 0;
    if (!n)
        return out;
    const Ast *args = out->kid[1];
    Ast *all = ast_new(r, AST_ARGS, NULL, args->span, args->n + (uint32_t)n);
    all->n = 0;
    for (uint32_t i = 0; i < args->n; i++)
        if (args->kid[i]->kind != AST_OFF)
            all->kid[all->n++] = args->kid[i];
    for (size_t i = 0; i < n; i++)
        all->kid[all->n++] = (Ast *)more[i];
    out->kid[1] = all;
    return out;
}

const char *resolve_text(Resolver *r, const Ast *e, File *home)
{
    Buf b = buf_new(r->arena);
    ast_print_expr(&b, rewrite(r, e, home));
    return b.s;
}
