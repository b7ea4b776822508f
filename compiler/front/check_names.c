/* check_names.c - names in what was never evaluated: lets that nothing reads, blocks that nothing places.
 *
 * In:  the tree of a file whose names are collected.   Out: E0102 for names that mean nothing, E0101 and E0104 for
 * arguments and attributes that do not exist or are missing.
 * The one idea: evaluation is lazy, so it meets only what is used, and stops behind the first error of a
 * model. This walk looks names up without evaluating anything. Where a bare word may be meant it says
 * nothing, and a body's names are taken together, in whatever order they are bound: what it reports is wrong
 * in every evaluation.
 */
#include "attribute.h"
#include "check_prim.h"

#include "grammar/foreign.h"

typedef struct Names { /* the names of a body, then those around it */
    struct Names *up;
    Map map;
} Names;
typedef struct Look {
    Eval *ev;
    File *file;
    Names *names;
} Look;

static void look(Look *l, const Ast *e);
static void items_of(Look *l, const Ast *items, bool body, const BlockDef *node);

static Names *names_new(Look *l)
{
    Names *n = NEW(l->ev->arena, Names);
    n->up = l->names;
    map_init(&n->map, l->ev->arena);
    return n;
}

static void add(Look *l, Names *n, Name name) { *map_at(&n->map, (uintptr_t)name) = l; }

static bool is_local(const Look *l, Name name)
{
    for (const Names *n = l->names; n; n = n->up)
        if (map_get(&n->map, (uintptr_t)name))
            return true;
    return false;
}

static bool is_builtin(Name name)
{
    static const char *const words[] = {"none", "inf", "fan_in", "fan_out", "B", "T"};
    HostVar var;
    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (!strcmp(words[i], name))
            return true;
    return is_file_field(name) || prim_find(name) || host_name(name, &var);
}

static bool is_bare(const Ast *e)
{
    while (e->kind == AST_PAREN)
        e = e->kid[0];
    return e->kind == AST_ID;
}

/* A value where a bare word may be meant: only what is inside of something larger is looked up. */
static void look_or_word(Look *l, const Ast *e, bool word)
{
    if (word && e->kind == AST_COND) {
        look(l, e->kid[0]);
        look_or_word(l, e->kid[1], true);
        look_or_word(l, e->kid[2], true);
    } else if (!word || !is_bare(e)) {
        look(l, e);
    }
}

/* Whether a place of this declared type takes words. */
static bool takes_words(const Ast *type)
{
    return !type || type->kind == AST_CALL || (type->kind == AST_ID && !strcmp(type->name, "name"));
}

static const BlockDef *block_named(const Look *l, Name name)
{
    Binding *b = is_local(l, name) ? NULL : env_find(l->file->env, name);
    return b && b->state == BIND_READY && b->value.kind == V_BLOCK ? b->value.block->def : NULL;
}

static bool argument_is_word(const BlockDef *d, Name name)
{
    const Ast *par = d ? block_param(d, name) : NULL;
    return !par || takes_words(par->kid[0]);
}

static void look_call(Look *l, const Ast *e)
{
    const Ast *callee = e->kid[0], *args = e->kid[1];
    Name name = callee->kind == AST_ID ? callee->name : NULL;
    bool bound = name && (is_local(l, name) || env_find(l->file->env, name));
    const Prim *prim = name && !bound ? prim_find(name) : NULL;
    const BlockDef *d = name ? block_named(l, name) : NULL;
    if (name && !bound && !strcmp(name, "params"))
        return; /* params(LABEL) */
    look(l, callee);
    size_t at = 0;
    for (uint32_t i = 0; i < args->n; i++) {
        const Ast *a = args->kid[i];
        if (a->kind == AST_OFF)
            continue;
        if (a->kind != AST_NAMED) {
            look_or_word(l, a, prim && prim_takes_word(prim, NULL, at++));
            continue;
        }
        if (d && !block_param(d, a->name))
            unknown_parameter(l->ev, d, a->name, a->name_span);
        if (prim && !prim_has_argument(prim, a->name))
            prim_unknown_argument(l->ev, prim, a);
        look_or_word(l, a->kid[0], prim ? prim_takes_word(prim, a->name, 0) : argument_is_word(d, a->name));
    }
}

static void look_comprehension(Look *l, const Ast *e)
{
    Names *outer = l->names;
    for (uint32_t i = 0; i < e->kid[1]->n; i++) {
        look(l, e->kid[1]->kid[i]->kid[0]);
        Names *n = names_new(l);
        add(l, n, e->kid[1]->kid[i]->name);
        l->names = n;
    }
    look(l, e->kid[0]);
    if (e->n > 2 && e->kid[2])
        look(l, e->kid[2]);
    l->names = outer;
}

static void look_field(Look *l, const Ast *e)
{
    const Ast *o = e->kid[0];
    if (o->kind == AST_ID && !is_local(l, o->name) && !env_find(l->file->env, o->name)) {
        HostVar var;
        Name full = name_printf(l->ev->ctx, "%s.%s", o->name, e->name);
        if (!strcmp(o->name, "scope") || !strcmp(o->name, "input") || host_name(full, &var) ||
            no_run_quantity(l->ev, o->name, full, e->span))
            return;
    }
    const Ast *root = o;
    while (root->kind == AST_FIELD)
        root = root->kid[0];
    if (root->kind == AST_ID && !is_local(l, root->name) && !env_find(l->file->env, root->name) && no_module(l->ev, e))
        return;
    look(l, o);
}

static void look(Look *l, const Ast *e)
{
    if (said_at(l->ev, e->span))
        return; /* what stands in it was meant otherwise */
    switch (e->kind) {
    case AST_ID:
        if (!is_local(l, e->name) && !env_find(l->file->env, e->name) && !is_builtin(e->name))
            unknown_name(l->ev, e->name, l->file->env, e->span);
        return;
    case AST_CALL: look_call(l, e); return;
    case AST_COMP: look_comprehension(l, e); return;
    case AST_FIELD: look_field(l, e); return;
    case AST_OP: {
        bool equality = !strcmp(e->name, "==") || !strcmp(e->name, "!=");
        look(l, e->kid[0]);
        look_or_word(l, e->kid[1], equality);
        return;
    }
    case AST_OFF: return;
    default:
        for (uint32_t i = 0; i < e->n; i++)
            if (e->kid[i])
                look(l, e->kid[i]);
    }
}

/* ---- bodies ---- */

static void bound_by(Look *l, Names *n, const Ast *items)
{
    for (uint32_t i = 0; items && i < items->n; i++) {
        const Ast *it = items->kid[i];
        switch (it->kind) {
        case AST_LET:
        case AST_PARAM:
        case AST_BUFFER:
        case AST_BLOCK: add(l, n, it->name); break;
        case AST_SET:
            add(l, n, it->kid[0]->name);
            if (it->kid[0]->n && foreign_next(FOREIGN_MODULE, it->kid[0]->name, NULL)) /* self.up = ... */
                add(l, n, it->kid[0]->kid[0]->name);
            break;
        case AST_NODE: /* q, k = ..., of which something was said */
            if (!it->kid[1] && !it->kid[2])
                add(l, n, it->kid[0]->name);
            break;
        case AST_FOR:
            add(l, n, it->name);
            bound_by(l, n, it->kid[1]);
            break;
        case AST_IF:
            bound_by(l, n, it->kid[1]);
            if (it->kid[2] && it->kid[2]->kind == AST_IF)
                bound_by(l, n, &(Ast){.kind = AST_ITEMS, .n = 1, .kid = &it->kid[2]});
            else
                bound_by(l, n, it->kid[2]);
            break;
        default: break;
        }
    }
}

static void look_block(Look *l, const Ast *block)
{
    Names *outer = l->names, *n = names_new(l);
    for (uint32_t k = 0; k < 2; k++)
        for (uint32_t i = 0; block->kid[k] && i < block->kid[k]->n; i++) {
            const Ast *par = block->kid[k]->kid[i];
            add(l, n, par->name);
            for (uint32_t j = 0; k == 1 && j < par->kid[0]->n; j++)
                if (par->kid[0]->kid[j]->kind == AST_ID)
                    add(l, n, par->kid[0]->kid[j]->name);
        }
    bound_by(l, n, block->kid[3]);
    l->names = n;
    for (uint32_t i = 0; block->kid[0] && i < block->kid[0]->n; i++)
        if (block->kid[0]->kid[i]->kid[1])
            look_or_word(l, block->kid[0]->kid[i]->kid[1], takes_words(block->kid[0]->kid[i]->kid[0]));
    items_of(l, block->kid[3], true, NULL);
    l->names = outer;
}

/* An attribute of the model, or of a node when its block is known. */
static bool attribute_is_word(Name name, const BlockDef *node)
{
    static const char *const values[] = {"width", "context", "init", "out_init", "connection", "pre_norm", "out_norm"};
    for (size_t i = 0; i < COUNT_OF(values); i++)
        if (!strcmp(values[i], name))
            return false;
    return argument_is_word(node, name);
}

/* A name that the block does not have counts as what it was meant to be: that is said. */
static bool is_meant(const BlockDef *d, Name given, Name name)
{
    return given == name || (!block_param(d, given) && (attribute_means(given, name) || nearest_name(given, &name, 1)));
}

/* What is applied without further arguments has all that have no default. */
static void complete(Look *l, const Ast *e)
{
    const BlockDef *d = e->kind == AST_CALL && e->kid[0]->kind == AST_ID ? block_named(l, e->kid[0]->name) : NULL;
    for (uint32_t i = 0; d && i < e->kid[1]->n; i++)
        if (e->kid[1]->kid[i]->kind != AST_NAMED && e->kid[1]->kid[i]->kind != AST_OFF)
            return; /* applied, or configured by position, which is an error of its own */
    VEC(const Ast *) missing = {0};
    for (uint32_t i = 0; d && i < d->ast->kid[0]->n; i++) {
        const Ast *par = d->ast->kid[0]->kid[i];
        bool given = par->kid[1] != NULL;
        for (uint32_t k = 0; k < e->kid[1]->n; k++)
            given |= e->kid[1]->kid[k]->kind == AST_NAMED && is_meant(d, e->kid[1]->kid[k]->name, par->name);
        if (!given)
            vec_push(l->ev->arena, &missing, par);
    }
    if (missing.n)
        missing_parameters(l->ev, d, missing.v, missing.n, e->span);
}

static void look_set(Look *l, const Ast *it, bool body, const BlockDef *node)
{
    Name name = it->kid[0]->name;
    const Ast *v = it->kid[1];
    if (node && !body && !it->kid[0]->n && !block_param(node, name) && !is_scope_name(name) &&
        !said_at(l->ev, it->kid[0]->span))
        unknown_parameter(l->ev, node, name, it->kid[0]->span); /* in a branch that is not taken */
    if (v->kind == AST_CALL && v->kid[0]->kind == AST_ID && node_doc_find(v->kid[0]->name) &&
        said_at(l->ev, it->kid[0]->span))
        return; /* `tokens = embed(256)` */
    if (v->kind == AST_CALL && v->kid[0]->kind == AST_FIELD &&
        (said_at(l->ev, it->kid[0]->span) || said_at(l->ev, v->kid[0]->span)))
        return; /* `params = model.parameters()` */
    if (!body && !strcmp(name, "lr") && v->kind == AST_CALL && v->kid[0]->kind == AST_ID &&
        block_named(l, v->kid[0]->name))
        return; /* there `linear(...)` is a schedule */
    if (!body && (!strcmp(name, "pre_norm") || !strcmp(name, "out_norm") || !strcmp(name, "connection")))
        complete(l, v);
    bool list_of_words = !strcmp(name, "allow") || !strcmp(name, "recompute");
    if (body || !list_of_words)
        look_or_word(l, v, !body && attribute_is_word(name, node));
}

static void look_node(Look *l, const Ast *it)
{
    Name kind = it->kid[0]->name, label = it->kid[1] ? it->kid[1]->name : NULL;
    bool place = label && (!strcmp(kind, "embed") || !strcmp(kind, "head"));
    const BlockDef *d = block_named(l, place ? name_printf(l->ev->ctx, "%s_%s", kind, label) : kind);
    items_of(l, it->kid[2], false, d);
}

/* In a body `=` binds a value; in a node it sets an attribute, of the block `node` where that is known. */
static void items_of(Look *l, const Ast *items, bool body, const BlockDef *node)
{
    for (uint32_t i = 0; items && i < items->n; i++) {
        const Ast *it = items->kid[i];
        switch (it->kind) {
        case AST_LET: look_or_word(l, it->kid[1], it->kid[0] && takes_words(it->kid[0])); break;
        case AST_CHECK: look(l, it->kid[0]); break;
        case AST_PARAM:
        case AST_BUFFER:
            look(l, it->kid[0]);
            look(l, it->kid[1]);
            break;
        case AST_RETURN: look(l, it->kid[0]); break;
        case AST_SET: look_set(l, it, body, node); break;
        case AST_FOR:
            look(l, it->kid[0]);
            items_of(l, it->kid[1], body, node);
            break;
        case AST_IF:
            look(l, it->kid[0]);
            items_of(l, it->kid[1], body, node);
            if (it->kid[2] && it->kid[2]->kind == AST_IF)
                items_of(l, &(Ast){.kind = AST_ITEMS, .n = 1, .kid = &it->kid[2]}, body, node);
            else
                items_of(l, it->kid[2], body, node);
            break;
        case AST_BLOCK: look_block(l, it); break;
        case AST_NODE: look_node(l, it); break;
        default: break;
        }
    }
}

void check_names(Eval *ev, File *f)
{
    Look l = {.ev = ev, .file = f};
    for (uint32_t i = 0; i < f->ast->n; i++) {
        const Ast *it = f->ast->kid[i];
        if (it->kind == AST_LET || it->kind == AST_BLOCK || it->kind == AST_CHECK)
            items_of(&l, &(Ast){.kind = AST_ITEMS, .n = 1, .kid = &f->ast->kid[i]}, true, NULL);
        if (it != f->model_ast && it != f->train_ast)
            continue;
        l.names = names_new(&l);
        if (it == f->model_ast)
            bound_by(&l, l.names, it->kid[2]);
        look_node(&l, it);
        l.names = NULL;
    }
}
