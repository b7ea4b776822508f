/* match.c - see family.h: which family a model is of.
 *
 * The one idea: values of lets are read off the model, the family's text is checked with them, and both graphs are walked side by side
 * from their logits. Where the walk ends without a difference each weight of one side has met its own on the other.
 */
#include "family.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "compiler/file/curve.h"

typedef struct Trial {
    Session *s;
    Unit *u;
    const Hooks *hooks;
    FamilyMatch match;
    const char *why; /* it is not of the family; NULL: it is */
    size_t reached;  /* how many nodes were alike before: of several families the nearest has most */
} Trial;

/* ---- settings ---- */

static const Param *param_at(const Model *m, const char *path)
{
    for (size_t i = 0; i < m->param.n; i++)
        if (!strcmp(m->param.v[i].path, path))
            return &m->param.v[i];
    return NULL;
}

static double number_of(const Trial *t, const FamilyKey *k)
{
    const Model *m = t->u->model;
    if (k->kind == KEY_LAYERS)
        return (double)place_count(t->u, k->at);
    if (k->kind == KEY_STD) {
        const Param *p = param_at(m, k->at);
        return p && p->init.kind == INIT_NORMAL ? p->init.a : NAN;
    }
    double x = k->at && *k->at ? place_number(t->u, k->at, k->attr) : NAN;
    if (!k->at || *k->at)
        return isnan(x) ? let_number(t->u, k->key) : x;
    return (double)(!strcmp(k->attr, "width") ? m->width : m->context);
}

/* False where the model has nothing at the key's place. */
static bool read_setting(Trial *t, size_t i)
{
    const FamilyKey *k = &t->match.family->key[i];
    Arena *a = t->s->arena;
    const char *own, **value = &t->match.value[i], **json = &t->match.json[i];
    if (k->kind == KEY_HAS || k->kind == KEY_LACKS) {
        bool has = param_at(t->u->model, k->at) != NULL;
        *value = *json = has == (k->kind == KEY_HAS) ? "true" : "false";
    } else if (k->kind == KEY_FUNCTION) {
        own = place_function(t->u, k->at, k->attr);
        *value = own;
        *json = own && family_function_there(own) ? arena_printf(a, "\"%s\"", family_function_there(own)) : NULL;
    } else {
        double x = number_of(t, k);
        if (isnan(x) && (k->kind == KEY_STD || k->kind == KEY_LET)) /* it is that of the family's text */
            return true;
        *value = *json = isnan(x) || x < 0 ? NULL : family_number(a, x);
        if (*value && k->kind == KEY_FLAG)
            *value = *json = x != 0 ? "true" : "false";
        if (*value && k->kind == KEY_WINDOW && x == 0)
            *json = "null";
    }
    if (!*value || !*json)
        t->why = k->attr ? arena_printf(a, "nothing of it is a `%s`, which would be `%s%s%s`", k->key, k->at,
                                        *k->at ? "." : "", k->attr)
                         : arena_printf(a, "nothing of it is a `%s`", k->key);
    return !t->why;
}

/* ---- both graphs ---- */

typedef struct SideBySide {
    Trial *t;
    const Graph *a, *b; /* the run's, the family's */
    Map met;            /* pairs */
    Map of_b, of_a;     /* by the number of an external tensor + 1: that of the other side + 1 */
    VEC(uint64_t) todo;
} SideBySide;

static void add_pair(SideBySide *w, Val a, Val b)
{
    uint64_t both = (uint64_t)a << 32 | b;
    void **slot = map_at(&w->met, (uintptr_t)both);
    if (*slot)
        return;
    *slot = w;
    vec_push(w->t->s->arena, &w->todo, both);
    w->t->reached++;
}

/* A weight meets one weight; an input the one of its name. */
static bool same_leaf(SideBySide *w, int64_t a, int64_t b)
{
    const Ext *x = &w->a->ext.v[a], *y = &w->b->ext.v[b];
    if (x->kind != y->kind || !shape_eq(&x->shape, &y->shape) || x->dtype != y->dtype)
        return false;
    if (x->kind != EXT_PARAM)
        return x->name == y->name;
    void **of_b = map_at(&w->of_b, (uintptr_t)b + 1);
    if (!*of_b)
        *of_b = (void *)(uintptr_t)(a + 1);
    void **of_a = map_at(&w->of_a, (uintptr_t)a + 1);
    if (!*of_a)
        *of_a = (void *)(uintptr_t)(b + 1);
    return (int64_t)(uintptr_t)*map_at(&w->of_b, (uintptr_t)b + 1) == a + 1 && (int64_t)(uintptr_t)*of_a == b + 1;
}

static bool same_node(SideBySide *w, Val a, Val b)
{
    const Node *x = node_at(w->a, a), *y = node_at(w->b, b);
    if (x->op == OP_EXT && y->op == OP_EXT)
        return same_leaf(w, x->a.i, y->a.i);
    if (x->op == OP_HOST || !node_same_function(x, y) || !shape_eq(&x->shape, &y->shape))
        return false;
    for (size_t k = x->n_in; k-- > 0;)
        add_pair(w, x->in[k], y->in[k]);
    return true;
}

static void differ(SideBySide *w, Val a, Val b)
{
    const Node *x = node_at(w->a, a), *y = node_at(w->b, b);
    Buf text = buf_new(w->t->s->arena);
    buf_printf(&text, "`%s` there is %s ", x->name ? x->name : "what the logits are made of", op_info(x->op)->name);
    shape_print(&text, &x->shape);
    buf_printf(&text, ", and of %s it is %s ", w->t->match.family->type, op_info(y->op)->name);
    shape_print(&text, &y->shape);
    if (x->op == y->op && shape_eq(&x->shape, &y->shape))
        buf_puts(&text, " of something else, or with another number");
    w->t->why = text.s;
}

static Val logits_of(const Model *m)
{
    for (size_t i = 0; i < m->output.n; i++)
        if (!strcmp(m->output.v[i].name, "logits"))
            return m->output.v[i].value;
    return 0;
}

static void walk(Trial *t, const Model *own)
{
    const Model *m = t->u->model;
    SideBySide w = {.t = t, .a = m->graph, .b = own->graph};
    map_init(&w.met, t->s->arena);
    map_init(&w.of_a, t->s->arena);
    map_init(&w.of_b, t->s->arena);
    add_pair(&w, logits_of(m), logits_of(own));
    while (w.todo.n && !t->why) {
        uint64_t both = w.todo.v[--w.todo.n];
        if (!same_node(&w, (Val)(both >> 32), (Val)both))
            differ(&w, (Val)(both >> 32), (Val)both);
    }
    t->match.param = NEW_ARRAY(t->s->arena, size_t, own->param.n + 1);
    Map at; /* an external tensor of the run -> parameter + 1 */
    map_init(&at, t->s->arena);
    for (size_t i = 0; i < m->param.n; i++)
        *map_at(&at, (uintptr_t)node_at(m->graph, m->param.v[i].value)->a.i + 1) = (void *)(uintptr_t)(i + 1);
    size_t met = 0;
    for (size_t i = 0; i < own->param.n && !t->why; i++) {
        uintptr_t ext = (uintptr_t)map_get(&w.of_b, (uintptr_t)node_at(own->graph, own->param.v[i].value)->a.i + 1);
        size_t param = ext ? (size_t)(uintptr_t)map_get(&at, ext) : 0;
        if (!param)
            vwn_bug(t->s->ctx, "a weight of the family %s is not in its logits", t->match.family->type);
        t->match.param[i] = param - 1;
        met++;
    }
    for (size_t i = 0; i < m->param.n && !t->why && met < m->param.n; i++)
        if (!map_get(&w.of_a, (uintptr_t)node_at(m->graph, m->param.v[i].value)->a.i + 1))
            t->why =
                arena_printf(t->s->arena, "its logits are made without `%s`, which would be lost", m->param.v[i].path);
}

/* ---- one family, all families ---- */

static void try_family(Trial *t, const Family *f)
{
    Ctx *ctx = t->s->ctx;
    Arena *a = t->s->arena;
    t->match.family = f;
    t->match.value = NEW_ARRAY(a, const char *, f->n_key + 1);
    t->match.json = NEW_ARRAY(a, const char *, f->n_key + 1);
    for (size_t i = 0; i < f->n_key; i++)
        if (!read_setting(t, i))
            return;
    const char *text = family_text(a, f, t->match.value);
    size_t before = diag_count(ctx);
    CheckOptions how = {.path = arena_printf(a, "%s.vwn (of the family)", f->type),
                        .text = text,
                        .text_length = strlen(text),
                        .model_only = true};
    Unit *own = t->hooks->check(ctx, &how);
    bool checks = own->model && diag_only_checks(ctx, before);
    t->match.model = own->model;
    if (!checks)
        t->why = arena_printf(a, "there is no %s of these sizes: %s", f->type, diag_get(ctx, before)->message);
    diag_truncate(ctx, before);
    if (checks)
        walk(t, own->model);
}

FamilyMatch family_match(Session *s, Unit *u, const char *only, const Hooks *hooks)
{
    Trial nearest = {0};
    const Family *first = family_of(only ? only : u->model->name);
    if (only && !first)
        ctx_raise(s->ctx, ST_USAGE, "`%.40s` is none of the families %s", only, family_names(s->arena));
    if (!logits_of(u->model))
        ctx_raise(s->ctx, ST_INPUT, "the model has no logits: it is no language model");
    for (size_t i = first ? 0 : 1; i == 0 || (!only && family_at(i - 1)); i++) {
        Trial t = {.s = s, .u = u, .hooks = hooks};
        try_family(&t, i ? family_at(i - 1) : first);
        if (!t.why)
            return t.match;
        if (!nearest.why || t.reached > nearest.reached)
            nearest = t;
    }
    if (only)
        ctx_raise(s->ctx, ST_INPUT, "the model is no %s: %s", only, nearest.why);
    ctx_raise(s->ctx, ST_INPUT, "the model is of none of the families %s; it is nearest to %s: %s",
              family_names(s->arena), nearest.match.family->type, nearest.why);
}
