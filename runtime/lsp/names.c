/* names.c - see names.h. */
#include "names.h"

typedef struct NameLevel { /* the names of a file, a body, or of braces in a model */
    struct NameLevel *up;
    Map names; /* name -> number of its declaration + 1 */
    uint32_t hi;
} NameLevel;
typedef enum Where { IN_FILE, IN_BODY, IN_NODE } Where;
typedef struct NameWalk {
    FileNames *t;
    NameLevel *level, *file;
} NameWalk;

static void items_of(NameWalk *w, const Ast *items, Where where);
static void item_of(NameWalk *w, const Ast *it, Where where);

static NameLevel *level_open(NameWalk *w, uint32_t hi)
{
    NameLevel *l = NEW(w->t->arena, NameLevel);
    l->up = w->level;
    l->hi = hi;
    map_init(&l->names, w->t->arena);
    w->level = l;
    return l;
}

static void level_close(NameWalk *w) { w->level = w->level->up; }

static size_t meaning(const NameLevel *l, Name name)
{
    size_t found = 0;
    for (; l && !found; l = l->up)
        found = (size_t)(uintptr_t)map_get(&l->names, (uintptr_t)name);
    return found;
}

static void use(NameWalk *w, Name name, Span at, size_t declared, const char *front)
{
    if (name && at.file && at.hi > at.lo)
        vec_push(w->t->arena, &w->t->used, (Used){name, at, declared, front});
}

static void declare_in(NameWalk *w, NameLevel *l, Name name, NameKind kind, Span at, const Ast *ast, uint32_t lo)
{
    if (!name)
        return;
    void **had = map_at(&l->names, (uintptr_t)name);
    if (!*had) {
        Declared d = {.name = name, .kind = kind, .at = at, .ast = ast, .lo = lo, .hi = l->hi};
        vec_push(w->t->arena, &w->t->declared, d);
        *had = (void *)(uintptr_t)w->t->declared.n;
    }
    use(w, name, at, (size_t)(uintptr_t)*had, "");
}

static void declare(NameWalk *w, Name name, NameKind kind, Span at, const Ast *ast)
{
    declare_in(w, w->level, name, kind, at, ast, at.hi);
}

/* ---- expressions ---- */

static void look(NameWalk *w, const Ast *e);

static void look_comprehension(NameWalk *w, const Ast *e)
{
    NameLevel *outer = w->level;
    for (uint32_t i = 0; e->kid[1] && i < e->kid[1]->n; i++) {
        const Ast *each = e->kid[1]->kid[i];
        look(w, each->kid[0]);
        level_open(w, e->span.hi);
        declare_in(w, w->level, each->name, NAME_EACH, each->name_span, each, e->span.lo);
    }
    look(w, e->kid[0]);
    if (e->n > 2)
        look(w, e->kid[2]);
    w->level = outer;
}

static void look(NameWalk *w, const Ast *e)
{
    if (!e)
        return;
    if (e->kind == AST_ID) {
        use(w, e->name, e->span, meaning(w->level, e->name), "");
    } else if (e->kind == AST_COMP) {
        look_comprehension(w, e);
    } else if (e->kind == AST_CALL && e->kid[0] && e->kid[0]->kind == AST_ID && !strcmp(e->kid[0]->name, "params") &&
               !meaning(w->level, e->kid[0]->name)) {
        use(w, e->kid[0]->name, e->kid[0]->span, 0, ""); /* its argument is a label */
    } else {
        for (uint32_t i = 0; i < e->n; i++)
            look(w, e->kid[i]);
    }
}

/* A declared type: a shape has names, the names of types are none. */
static void look_type(NameWalk *w, const Ast *type)
{
    if (type && type->kind == AST_LIST)
        look(w, type);
}

static bool is_letter(char c) { return c == '_' || ((c | 32) >= 'a' && (c | 32) <= 'z') || (c >= '0' && c <= '9'); }

/* Names between braces in the text of a block's check. */
static void look_text(NameWalk *w, const Ast *text)
{
    size_t n, depth = 0;
    const char *s = text && text->kind == AST_STR ? source_text(w->t->ctx, text->span.file, &n) : NULL;
    for (uint32_t i = s ? text->span.lo : 1, hi = s ? text->span.hi : 0; i < hi; i++) {
        depth = s[i] == '{' ? 1 : s[i] == '}' ? 0 : depth;
        if (!depth || !is_letter(s[i]) || (s[i] >= '0' && s[i] <= '9'))
            continue;
        uint32_t lo = i;
        while (i < hi && is_letter(s[i]))
            i++;
        Name name = name_of(w->t->ctx, s + lo, i - lo);
        if (s[lo - 1] != '.')
            use(w, name, (Span){text->span.file, lo, i}, meaning(w->level, name), "");
        i--;
    }
}

/* ---- items ---- */

static void block_of(NameWalk *w, const Ast *block)
{
    const Ast *arguments = block->kid[0], *tensors = block->kid[1];
    level_open(w, block->span.hi);
    for (uint32_t i = 0; arguments && i < arguments->n; i++)
        declare_in(w, w->level, arguments->kid[i]->name, NAME_ARGUMENT, arguments->kid[i]->name_span, arguments->kid[i],
                   block->span.lo);
    for (uint32_t i = 0; tensors && i < tensors->n; i++) {
        const Ast *par = tensors->kid[i], *shape = par->kid[0];
        declare_in(w, w->level, par->name, NAME_TENSOR, par->name_span, par, block->span.lo);
        for (uint32_t k = 0; shape && shape->kind == AST_LIST && k < shape->n; k++) {
            const Ast *e = shape->kid[k];
            if (e->kind == AST_ID && strcmp(e->name, "_") && strcmp(e->name, "B") && strcmp(e->name, "T"))
                declare_in(w, w->level, e->name, NAME_EXTENT, e->span, e, block->span.lo);
            else
                look(w, e);
        }
    }
    for (uint32_t i = 0; arguments && i < arguments->n; i++) {
        look_type(w, arguments->kid[i]->kid[0]);
        look(w, arguments->kid[i]->kid[1]);
    }
    look_type(w, block->kid[2]);
    items_of(w, block->kid[3], IN_BODY);
    level_close(w);
}

static void path_of(NameWalk *w, const Ast *path)
{
    for (uint32_t i = 0; path && i < path->n; i++)
        if (path->kid[i]->kind == AST_AT)
            look(w, path->kid[i]->kid[0]);
}

static void set_of(NameWalk *w, const Ast *it, Where where)
{
    const Ast *path = it->kid[0];
    path_of(w, path);
    look(w, it->kid[1]);
    if (where == IN_BODY && !path->n)
        declare(w, path->name, NAME_VALUE, path->span, it);
}

static bool is_node(const Ast *it, const char *name)
{
    return it->kid[0] && it->kid[0]->name && !strcmp(it->kid[0]->name, name);
}

/* A growth step's and a sweep's lets and axes are those of the file. Another file's, where a sweep is `of` that one, are nobody's here. */
static void other_lets(NameWalk *w, const Ast *items, bool axes)
{
    for (uint32_t i = 0; items && i < items->n; i++) {
        const Ast *it = items->kid[i], *path = it->kind == AST_SET ? it->kid[0] : NULL;
        size_t let = it->kind == AST_LET ? meaning(w->file, it->name) : path ? meaning(w->file, path->name) : 0;
        if (it->kind == AST_LET) {
            look(w, it->kid[1]);
            use(w, it->name, it->name_span, let, "");
        } else if (axes && path) {
            look(w, it->kid[1]);
            Span at = {path->span.file, path->span.lo, path->span.lo + (uint32_t)strlen(path->name)};
            use(w, path->name, at, let, "");
        } else if (it->kind == AST_NODE && is_node(it, "vary")) {
            other_lets(w, it->kid[2], true);
        } else {
            item_of(w, it, IN_NODE);
        }
    }
}

static const Ast *of_another(const Ast *sweep)
{
    for (uint32_t i = 0; sweep->kid[2] && i < sweep->kid[2]->n; i++) {
        const Ast *it = sweep->kid[2]->kid[i];
        if (it->kind == AST_SET && !strcmp(it->kid[0]->name, "of"))
            return it;
    }
    return NULL;
}

static void node_of(NameWalk *w, const Ast *it)
{
    const Ast *path = it->kid[0], *label = it->kid[1];
    bool place = label && (is_node(it, "embed") || is_node(it, "head"));
    path_of(w, path);
    if (path->name) {
        Span at = {path->span.file, path->span.lo, path->span.lo + (uint32_t)strlen(path->name)};
        use(w, path->name, at, meaning(w->level, path->name), "");
    }
    if (place && label->name) {
        const char *front = is_node(it, "embed") ? "embed_" : "head_";
        Name full = name_printf(w->t->ctx, "%s%s", front, label->name);
        use(w, full, label->span, meaning(w->level, full), front);
    }
    if (!it->kid[2])
        return;
    const Ast *of = w->level == w->file && is_node(it, "sweep") ? of_another(it) : NULL;
    level_open(w, it->kid[2]->span.hi);
    if (of)
        look(w, of->kid[1]);
    else if (w->level->up == w->file && (is_node(it, "grow") || is_node(it, "sweep")))
        other_lets(w, it->kid[2], false);
    else
        items_of(w, it->kid[2], IN_NODE);
    level_close(w);
}

static void check_of(NameWalk *w, const Ast *it, Where where)
{
    look(w, it->kid[0]);
    if (where != IN_BODY)
        return;
    look_text(w, it->kid[1]);
    for (uint32_t i = 0; it->kid[2] && i < it->kid[2]->n; i++)
        if (it->kid[2]->kid[i]->kind == AST_SET)
            look_text(w, it->kid[2]->kid[i]->kid[1]);
}

static void for_of(NameWalk *w, const Ast *it, Where where)
{
    look(w, it->kid[0]);
    if (where != IN_BODY)
        level_open(w, it->span.hi);
    declare(w, it->name, NAME_LOOP, it->name_span, it);
    items_of(w, it->kid[1], where);
    if (where != IN_BODY)
        level_close(w);
}

static void item_of(NameWalk *w, const Ast *it, Where where)
{
    switch (it->kind) {
    case AST_IMPORT:
        for (uint32_t i = 0; it->kid[1] && i < it->kid[1]->n; i++)
            look(w, it->kid[1]->kid[i]);
        break;
    case AST_LET:
        look_type(w, it->kid[0]);
        look(w, it->kid[1]);
        if (where != IN_FILE)
            declare(w, it->name, NAME_LET, it->name_span, it);
        break;
    case AST_CHECK: check_of(w, it, where); break;
    case AST_BLOCK:
        if (where != IN_FILE)
            declare(w, it->name, NAME_BLOCK, it->name_span, it);
        block_of(w, it);
        break;
    case AST_PARAM:
    case AST_BUFFER:
        look(w, it->kid[0]);
        look(w, it->kid[1]);
        items_of(w, it->n > 2 ? it->kid[2] : NULL, IN_NODE);
        declare(w, it->name, NAME_WEIGHT, it->name_span, it);
        break;
    case AST_RETURN: look(w, it->kid[0]); break;
    case AST_SET: set_of(w, it, where); break;
    case AST_FOR: for_of(w, it, where); break;
    case AST_IF:
        look(w, it->kid[0]);
        items_of(w, it->kid[1], where);
        if (it->kid[2] && it->kid[2]->kind == AST_IF)
            item_of(w, it->kid[2], where);
        else
            items_of(w, it->kid[2], where);
        break;
    case AST_NODE: node_of(w, it); break;
    case AST_OFF:
        level_open(w, it->span.hi);
        for (uint32_t i = 0; i < it->n; i++)
            if (it->kid[i]->kind <= AST_OFF)
                item_of(w, it->kid[i], IN_NODE);
            else
                look(w, it->kid[i]);
        level_close(w);
        break;
    default: break;
    }
}

static void items_of(NameWalk *w, const Ast *items, Where where)
{
    for (uint32_t i = 0; items && i < items->n; i++)
        if (items->kid[i])
            item_of(w, items->kid[i], where);
}

FileNames *names_of(Ctx *ctx, const Ast *file)
{
    FileNames *t = NEW(ctx->program, FileNames);
    *t = (FileNames){.arena = ctx->program, .ctx = ctx};
    NameWalk w = {.t = t};
    w.file = level_open(&w, UINT32_MAX);
    for (uint32_t i = 0; i < file->n; i++) {
        const Ast *it = file->kid[i];
        if (it->kind == AST_LET || it->kind == AST_BLOCK)
            declare_in(&w, w.file, it->name, it->kind == AST_LET ? NAME_LET : NAME_BLOCK, it->name_span, it, 0);
        else if (it->kind == AST_IMPORT && it->kid[0])
            declare_in(&w, w.file, it->kid[0]->name, NAME_IMPORT, it->kid[0]->span, it, 0);
    }
    items_of(&w, file, IN_FILE);
    return t;
}

const Used *name_at(const FileNames *t, size_t offset)
{
    const Used *behind = NULL;
    for (size_t i = 0; i < t->used.n; i++) {
        const Used *u = &t->used.v[i];
        if (u->at.lo <= offset && offset < u->at.hi)
            return u;
        if (u->at.hi == offset)
            behind = u;
    }
    return behind;
}
