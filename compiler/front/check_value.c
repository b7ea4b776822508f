/* check_value.c - values, environments and scopes of the evaluator, and its error messages.
 *
 * In: pieces of an evaluation.   Out: immutable values, persistent environments, diagnostics.
 * The one idea: nothing here changes once it is bound (except a lazy binding being forced), so a closure
 * can be evaluated later without surprises.
 */
#include "check.h"

#include <math.h>
#include <stdio.h>

Value v_poison(void) { return (Value){.kind = V_POISON}; }
Value v_none(void) { return (Value){.kind = V_NONE}; }
Value v_num(double x) { return (Value){.kind = V_NUM, .num = x}; }
Value v_bool(bool b) { return (Value){.kind = V_BOOL, .num = b}; }
Value v_str(Name s) { return (Value){.kind = V_STR, .word = s}; }
Value v_word(Name s) { return (Value){.kind = V_WORD, .word = s}; }
Value v_tensor(Val v) { return (Value){.kind = V_TENSOR, .val = v}; }

Value v_dim(Dim d)
{
    if (dim_static(d))
        return v_num((double)d.n);
    return (Value){.kind = V_DIM, .dim = d};
}

Value v_host(const HostExpr *e)
{
    double x;
    if (host_is_const(e, &x))
        return v_num(x);
    return (Value){.kind = V_HOST, .host = e};
}

Value v_host_truth(const HostExpr *e)
{
    double x;
    if (host_is_const(e, &x))
        return v_bool(x != 0);
    return (Value){.kind = V_HOST, .host = e, .num = 1};
}

bool is_host_number(const Value *v) { return v->kind == V_NUM || (v->kind == V_HOST && v->num == 0); }

bool is_host_truth(const Value *v) { return v->kind == V_BOOL || (v->kind == V_HOST && v->num != 0); }

Value v_list(Eval *ev, const Value *v, size_t n)
{
    ValueList *l = NEW(ev->arena, ValueList);
    l->v = NEW_ARRAY(ev->arena, Value, n ? n : 1);
    if (n)
        memcpy(l->v, v, n * sizeof *v);
    l->n = l->total = n;
    for (size_t i = 0; i < n; i++)
        l->total += v[i].kind == V_LIST ? v[i].list->total : 0;
    enum { MOST = 1 << 20 };
    if (l->total > MOST)
        limit(ev, NO_SPAN, "values in a list", MOST);
    return (Value){.kind = V_LIST, .list = l};
}

Value v_record(Eval *ev, Name name, const Field *f, size_t n)
{
    Record *r = NEW(ev->arena, Record);
    r->name = name;
    r->field = NEW_ARRAY(ev->arena, Field, n ? n : 1);
    if (n)
        memcpy(r->field, f, n * sizeof *f);
    r->n = n;
    return (Value){.kind = V_RECORD, .record = r};
}

const char *value_kind_name(const Value *v)
{
    switch (v->kind) {
    case V_POISON: return "an error";
    case V_NONE: return "none";
    case V_NUM: return "a number";
    case V_QTY: return "a quantity";
    case V_REL: return "a relative length";
    case V_BOOL: return "true or false";
    case V_STR: return "a string";
    case V_WORD: return "a word";
    case V_LIST: return "a list";
    case V_DOTS: return "`..`";
    case V_DIM: return "a symbolic dimension";
    case V_TENSOR: return "a tensor";
    case V_INIT: return "an initialiser";
    case V_FN: return "a function";
    case V_BLOCK: return "a block";
    case V_SUB: return "a sublayer";
    case V_RECORD: return "a record";
    case V_FILE: return "an imported file";
    case V_HOST: return v->num != 0 ? "a run-time condition" : "a run-time number";
    case V_SPEC: return "a description";
    }
    return "?";
}

static void print_list(Buf *out, const ValueList *l)
{
    enum { LONGEST = 1 << 16 };
    buf_putc(out, '[');
    for (size_t i = 0; i < l->n; i++) {
        if (i)
            buf_puts(out, ", ");
        if (out->n > LONGEST) {
            buf_puts(out, "...");
            break;
        }
        value_print(out, &l->v[i]);
    }
    buf_putc(out, ']');
}

static void print_fields(Buf *out, const Record *r)
{
    buf_printf(out, "%s(", r->name ? r->name : "");
    for (size_t i = 0; i < r->n; i++) {
        if (i)
            buf_puts(out, ", ");
        if (r->field[i].name)
            buf_printf(out, "%s = ", r->field[i].name);
        value_print(out, r->field[i].value);
    }
    buf_putc(out, ')');
}

static void print_init(Buf *out, const Init *i)
{
    switch (i->kind) {
    case INIT_FILL:
        if (i->a == 0 || i->a == 1) {
            buf_puts(out, i->a == 0 ? "zeros" : "ones");
            return;
        }
        buf_puts(out, "fill(");
        break;
    case INIT_EYE: buf_puts(out, "eye"); return;
    case INIT_NORMAL: buf_puts(out, "normal(std = "); break;
    case INIT_TRUNC_NORMAL: buf_puts(out, "trunc_normal(std = "); break;
    case INIT_UNIFORM: buf_puts(out, "uniform(low = "); break;
    case INIT_LIST: buf_printf(out, "a list of %zu numbers", i->n); return;
    }
    buf_number(out, i->a);
    if (i->kind == INIT_TRUNC_NORMAL || i->kind == INIT_UNIFORM) {
        buf_puts(out, i->kind == INIT_UNIFORM ? ", high = " : ", cutoff = ");
        buf_number(out, i->b);
    }
    buf_putc(out, ')');
}

static void print_block(Buf *out, const BlockValue *b)
{
    buf_printf(out, "%s(", b->def->ast->name);
    for (size_t i = 0; i < b->n_arg; i++) {
        if (i)
            buf_puts(out, ", ");
        buf_printf(out, "%s = ", b->arg[i].name);
        if (b->arg[i].expr)
            ast_print_expr(out, b->arg[i].expr);
        else
            value_print(out, &b->arg[i].value);
    }
    buf_putc(out, ')');
}

static bool unit_has_plural(const char *unit)
{
    static const char *const counted[] = {"step", "token", "seq", "image", "epoch"};
    for (size_t i = 0; i < COUNT_OF(counted); i++)
        if (!strcmp(unit, counted[i]))
            return true;
    return false;
}

void value_print(Buf *out, const Value *v)
{
    switch (v->kind) {
    case V_NUM: buf_number(out, v->num); break;
    case V_QTY:
        buf_number(out, v->num);
        buf_printf(out, " %s%s", v->word, unit_has_plural(v->word) && v->num != 1 ? "s" : "");
        break;
    case V_REL:
        buf_number(out, v->num);
        buf_putc(out, v->rel);
        break;
    case V_BOOL: buf_puts(out, v->num != 0 ? "true" : "false"); break;
    case V_STR: buf_json_string(out, v->word, strlen(v->word)); break;
    case V_WORD: buf_puts(out, v->word); break;
    case V_LIST: print_list(out, v->list); break;
    case V_DOTS: buf_puts(out, ".."); break;
    case V_DIM: dim_print(out, v->dim); break;
    case V_FN: buf_puts(out, v->prim->name); break;
    case V_INIT: print_init(out, v->init); break;
    case V_BLOCK: print_block(out, v->block); break;
    case V_RECORD:
    case V_SPEC: print_fields(out, v->record); break;
    case V_HOST: host_print(out, v->host); break;
    default: buf_puts(out, value_kind_name(v)); break;
    }
}

const char *value_text(Eval *ev, const Value *v)
{
    Buf b = buf_new(ev->arena);
    value_print(&b, v);
    return b.s;
}

/* What changes from one evaluation to the next, and is short. */
static bool is_short(const Value *v)
{
    return v->kind == V_NUM || v->kind == V_BOOL || v->kind == V_QTY || v->kind == V_DIM || v->kind == V_TENSOR ||
           v->kind == V_WORD;
}

void remember(Eval *ev, Span at, const Value *v)
{
    Unit *u = ev->unit;
    enum { MOST = 100000, LONGEST = 200, LIST = 32 };
    if (!u->remembers || v->kind == V_POISON || !ev->files.n || at.file != ev->files.v[0]->source ||
        (v->kind == V_TENSOR && !ev->build))
        return;
    void **had = map_at(&ev->seen, (uintptr_t)at.lo + 1);
    if (u->seen.n >= MOST || (*had && !is_short(v)))
        return;
    ArenaMark mark = arena_mark(ev->ctx->scratch);
    Buf b = buf_new(ev->ctx->scratch);
    if (v->kind == V_TENSOR)
        shape_print(&b, shape_of(ev->build->g, v->val));
    else if (v->kind == V_LIST && v->list->total > LIST)
        buf_printf(&b, "a list of %zu", v->list->n);
    else
        value_print(&b, v);
    if (*had) {
        u->seen.v[(uintptr_t)*had - 1].others |= strncmp(u->seen.v[(uintptr_t)*had - 1].text, b.s, LONGEST) != 0;
    } else {
        const char *text = arena_copy(ev->arena, b.s, b.n < LONGEST ? b.n : LONGEST);
        vec_push(ev->arena, &u->seen, (SeenValue){.span = at, .text = text, .tensor = v->kind == V_TENSOR});
        *had = (void *)(uintptr_t)u->seen.n;
    }
    arena_reset(ev->ctx->scratch, mark);
}

Name iteration_path(Eval *ev, Name up, Name variable, const Value *v, size_t index)
{
    bool plain = v->kind == V_NUM || v->kind == V_STR || v->kind == V_WORD;
    Value number = v_num((double)index + 1);
    return name_printf(ev->ctx, "%s%s%s[%s]", up, *up ? "." : "", variable, value_text(ev, plain ? v : &number));
}

bool is_whole(double x)
{
    double r = rint(x);
    return fabs(x) < 9e15 && fabs(x - r) <= 1e-9 * (fabs(x) < 1 ? 1 : fabs(x));
}

static Name spelled(const Value *v)
{
    if (v->kind == V_WORD || v->kind == V_STR)
        return v->word;
    if (v->kind == V_FN)
        return v->prim->name;
    if (v->kind == V_NONE)
        return "none";
    return NULL;
}

bool value_equal(const Value *a, const Value *b)
{
    Name x = spelled(a), y = spelled(b);
    if (x && y)
        return !strcmp(x, y);
    if (a->kind != b->kind)
        return false;
    switch (a->kind) {
    case V_NUM:
    case V_BOOL: return a->num == b->num;
    case V_QTY: return a->num == b->num && a->word == b->word;
    case V_REL: return a->num == b->num && a->rel == b->rel;
    case V_DIM: return dim_eq(a->dim, b->dim);
    case V_DOTS: return true;
    case V_LIST:
        if (a->list == b->list)
            return true;
        if (a->list->n != b->list->n)
            return false;
        for (size_t i = 0; i < a->list->n; i++)
            if (!value_equal(&a->list->v[i], &b->list->v[i]))
                return false;
        return true;
    case V_BLOCK: return a->block == b->block;
    case V_TENSOR: return a->val == b->val;
    default: return false;
    }
}

/* ---- environments ---- */

Binding *binding_new(Eval *ev, Name name, Span span)
{
    Binding *b = NEW(ev->arena, Binding);
    b->name = name;
    b->span = span;
    b->prefix = ev->frame && ev->frame->inst ? ev->frame->inst->path : name_str(ev->ctx, "");
    b->serial = ++ev->serial;
    return b;
}

Binding *binding_value(Eval *ev, Name name, Value v, Span span)
{
    remember(ev, span, &v);
    Binding *b = binding_new(ev, name, span);
    b->value = v;
    return b;
}

static void index_node(EnvIndex *x, const Env *e)
{
    void **slot = e->binding ? map_at(&x->names, (uintptr_t)e->binding->name) : NULL;
    if (slot && !*slot)
        *slot = e->binding;
    x->dots = x->dots ? x->dots : e->dots;
}

/* Of the nodes from `up` on. What older nodes have is taken over while it is not larger, so a name is copied a
 * logarithmic number of times, and is found in a logarithmic number of indices. */
static const EnvIndex *index_names(Eval *ev, Env *up)
{
    EnvIndex *x = NEW(ev->arena, EnvIndex);
    map_init(&x->names, ev->arena);
    Env *e = up;
    for (; e && !e->index && !e->block_edge && !e->file; e = e->up)
        index_node(x, e);
    for (; e && e->index && e->index->names.n <= x->names.n; e = e->index->base) {
        const Map *old = &e->index->names;
        index_node(x, e);
        for (size_t i = 0; i < old->cap; i++) {
            void **slot = old->key[i] ? map_at(&x->names, old->key[i]) : NULL;
            if (slot && !*slot)
                *slot = old->value[i];
        }
        x->dots = x->dots ? x->dots : e->index->dots;
    }
    x->base = e;
    return x;
}

Env *env_new(Eval *ev, Env *up, Binding *b)
{
    enum { SHORT = 32 }; /* nodes that are walked as fast as looked up */
    Env *e = NEW(ev->arena, Env);
    e->up = up;
    e->binding = b;
    if (!up || up->block_edge || up->file)
        return e;
    e->run = up->index ? 1 : up->run + 1;
    if (e->run == SHORT)
        e->index = index_names(ev, up);
    return e;
}

Env *env_edge(Eval *ev, Env *up)
{
    Env *e = NEW(ev->arena, Env);
    e->up = up;
    e->block_edge = true;
    return e;
}

Env *env_bind(Eval *ev, Env *up, Name name, Value v, Span span)
{
    return env_new(ev, up, binding_value(ev, name, v, span));
}

static Binding *file_name(File *f, Name name)
{
    Binding *b = map_get(&f->names, (uintptr_t)name);
    if (b)
        return b;
    for (size_t i = 0; i < f->imports.n; i++) {
        Import *im = &f->imports.v[i];
        if (im->as || !im->file)
            continue;
        b = map_get(&im->file->names, (uintptr_t)name);
        if (b) {
            im->used = true;
            return b;
        }
    }
    return NULL;
}

/* Of the node and those that its index has. */
static Binding *env_own(const Env *env, Name name)
{
    if (env->binding && env->binding->name == name)
        return env->binding;
    return env->index ? map_get(&env->index->names, (uintptr_t)name) : NULL;
}

static Env *env_behind(const Env *env) { return env->index ? env->index->base : env->up; }

Binding *env_find(Env *env, Name name)
{
    for (; env; env = env_behind(env)) {
        Binding *b = env_own(env, name);
        if (!b && env->file)
            b = file_name(env->file, name);
        if (b)
            return b;
    }
    return NULL;
}

Binding *env_find_local(Env *env, Name name)
{
    Binding *b = NULL;
    for (; env && !env->block_edge && !b; env = env_behind(env))
        b = env_own(env, name);
    return b;
}

const ValueList *env_dots(Env *env)
{
    for (; env && !env->block_edge; env = env_behind(env)) {
        if (env->dots)
            return env->dots;
        if (env->index && env->index->dots)
            return env->index->dots;
    }
    return NULL;
}

size_t env_names(Eval *ev, Env *env, Name **out)
{
    VEC(Name) v = {0};
    for (; env; env = env->up) {
        if (env->binding)
            vec_push(ev->arena, &v, env->binding->name);
        if (!env->file)
            continue;
        for (size_t i = 0; i < env->file->lets.n; i++)
            vec_push(ev->arena, &v, env->file->lets.v[i]->name);
        for (size_t i = 0; i < env->file->imports.n; i++) {
            Import *im = &env->file->imports.v[i];
            if (im->as)
                vec_push(ev->arena, &v, im->as);
            else
                for (size_t k = 0; im->file && k < im->file->lets.n; k++)
                    vec_push(ev->arena, &v, im->file->lets.v[k]->name);
        }
    }
    *out = v.v;
    return v.n;
}

/* Tensors belong to the model that was built when they were made. */
static bool holds_tensor(const Value *v)
{
    if (v->kind == V_LIST)
        for (size_t i = 0; i < v->list->n; i++)
            if (holds_tensor(&v->list->v[i]))
                return true;
    if (v->kind == V_RECORD)
        for (size_t i = 0; i < v->record->n; i++)
            if (holds_tensor(v->record->field[i].value))
                return true;
    return v->kind == V_TENSOR;
}

Value binding_get(Eval *ev, Binding *b, Scope *placement)
{
    b->used = true;
    if (b->state == BIND_READY)
        return b->value;
    if (b->state == BIND_BUSY) {
        Diag *d = err(ev, "E0109", b->span, "needs its own value", "`%s` is defined by itself", b->name);
        diag_help(ev->ctx, d, "break the circle: one of these names must not use the other");
        b->state = BIND_READY;
        return b->value = v_poison();
    }
    b->state = BIND_BUSY;
    Scope *scope = b->scope ? b->scope : placement;
    Fan *fan = ev->fan;
    if (!b->by_name)
        ev->fan = NULL; /* a value that is kept cannot depend on the tensor it is for */
    Value v = b->type ? eval_as(ev, b->expr, b->env, scope, b->type, b->name) : eval(ev, b->expr, b->env, scope);
    ev->fan = fan;
    if (b->state == BIND_BUSY) {
        bool again = b->by_name || (b->env && b->env->file && holds_tensor(&v));
        b->state = again ? BIND_LAZY : BIND_READY;
        b->value = v;
    }
    return v;
}

/* ---- scopes ---- */

Scope *scope_new(Eval *ev, Scope *up, Name path, Span span)
{
    Scope *s = NEW(ev->arena, Scope);
    s->up = up;
    s->path = path;
    s->span = span;
    return s;
}

void scope_set(Eval *ev, Scope *s, Name name, const Ast *expr, Env *env, Span span)
{
    Attribute *grown = NEW_ARRAY(ev->arena, Attribute, s->n_attr + 1);
    size_t n = 0;
    for (size_t i = 0; i < s->n_attr; i++)
        if (s->attr[i].name != name)
            grown[n++] = s->attr[i];
    grown[n++] = (Attribute){.name = name, .expr = expr, .env = env, .span = span};
    s->attr = grown;
    s->n_attr = n;
}

Attribute *scope_find(Scope *s, Name name, Scope **where)
{
    for (; s; s = s->up)
        for (size_t i = 0; i < s->n_attr; i++)
            if (s->attr[i].name == name) {
                if (where)
                    *where = s;
                return &s->attr[i];
            }
    return NULL;
}

Value scope_value(Eval *ev, Scope *s, Name name, bool *found)
{
    Scope *where = NULL;
    Attribute *a = scope_find(s, name, &where);
    if (found)
        *found = a != NULL;
    if (!a)
        return v_none();
    a->used = true;
    static const struct {
        const char *name, *type;
    } types[] = {{"mask", "name"},        {"width", "dim"},           {"context", "int"},
                 {"connection", "block"}, {"connection_per", "name"}, {"pre_norm", "block"},
                 {"out_norm", "block"},   {"init", "init"},           {"out_init", "init"}};
    if (!strcmp(name, "cond"))
        return scope_tensor(ev, a, where);
    for (size_t i = 0; i < COUNT_OF(types); i++)
        if (!strcmp(name, types[i].name)) {
            Ast type = {.kind = AST_ID, .name = types[i].type};
            return eval_as(ev, a->expr, a->env, where->up, &type, name);
        }
    return eval(ev, a->expr, a->env, where->up);
}

/* ---- messages ---- */

bool in_library(Eval *ev, Span s) { return s.file && !strncmp(source_path(ev->ctx, s.file), "std/", 4); }

Diag *err(Eval *ev, const char *code, Span at, const char *label, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char text[1024];
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (in_library(ev, at)) {
        for (Frame *f = ev->frame; f; f = f->up) {
            if (!f->call.file || in_library(ev, f->call))
                continue;
            Diag *d = diag_error(ev->ctx, code, f->call, "while building this", "%s", text);
            diag_related(ev->ctx, d, at, "%s", label && *label ? label : "here");
            return d;
        }
    }
    return diag_error(ev->ctx, code, at, label, "%s", text);
}

void suggest(Eval *ev, Diag *d, Name word, const Name *names, size_t n, Span at)
{
    bool sure;
    Name best = meant_name(word, names, n, &sure);
    size_t end = best ? strlen(best) : 0, given = strlen(word);
    bool longer = best && !strncmp(word, best, given < end ? given : end); /* layer and layers, adam and adamw */
    if (best)
        diag_fix(ev->ctx, d, at, best, sure && (!longer || end == given) ? FIX_CERTAIN : FIX_MAYBE,
                 "did you mean `%s`?", best);
}

void suggest_attribute(Eval *ev, Diag *d, Name word, const Name *names, size_t n, Span at)
{
    bool sure;
    Name best = meant_name(word, names, n, &sure);
    if (advise_attribute(ev, d, word, names, n, at) || (!sure && tell_attribute(ev, d, word)) || !best)
        return;
    sure = sure && !given_beside(ev, at, best);
    diag_fix(ev->ctx, d, at, best, sure ? FIX_CERTAIN : FIX_MAYBE, "did you mean `%s`?", best);
}

bool said_at(Eval *ev, Span at)
{
    for (size_t i = diag_errors(ev->ctx) ? diag_count(ev->ctx) : 0; i-- > 0;) {
        const Diag *d = diag_get(ev->ctx, i);
        Span s = d->labels.n ? d->labels.v[0].span : NO_SPAN;
        if (d->level == LEVEL_ERROR && s.file == at.file && s.lo == at.lo && s.hi == at.hi)
            return true;
    }
    return false;
}

void set_before(Eval *ev, const Ast *items, uint32_t i)
{
    const Ast *it = items->kid[i];
    for (uint32_t k = 0; k < i; k++) {
        const Ast *had = items->kid[k];
        if (had->kind != AST_SET || had->kid[0]->n || had->kid[0]->name != it->kid[0]->name)
            continue;
        Diag *d = err(ev, "E0108", it->kid[0]->span, "given twice", "`%s` is given twice", it->kid[0]->name);
        diag_label(ev->ctx, d, had->kid[0]->span, "first given here");
        return;
    }
}

void limit(Eval *ev, Span at, const char *name, long long value)
{
    for (Frame *f = ev->frame; f && !at.file; f = f->up)
        at = f->call;
    Diag *d = err(ev, "E0008", at.file ? at : ev->at, "too much", "limit `%s` reached: %lld", name, value);
    diag_note(ev->ctx, d, "limits keep a mistake in one number from taking the machine down");
    ctx_raise(ev->ctx, ST_INPUT, NULL);
}

void spend(Eval *ev, Span at, int64_t work)
{
    enum { MOST = 4000000, MEMORY = 384 << 20 };
    ev->steps += work;
    if (at.file)
        ev->at = at;
    if (ev->ctx->bytes > ev->bytes_before + MEMORY)
        limit(ev, at, "memory of the evaluation", MEMORY);
    if (ev->steps > MOST || work > MOST)
        limit(ev, at, "evaluation steps", MOST);
}

/* ---- tensors of a scope ---- */

static Value apply_cond(Eval *ev, const BlockValue *b, const Attribute *a, Scope *where)
{
    Graph *g = ev->build->g;
    Frame *frame = ev->frame;
    Fan *fan = ev->fan;
    Span span = g->span;
    Name name = g->name;
    ev->frame = NULL; /* it belongs to its scope, not to the block that asks first */
    ev->fan = NULL;
    Value v = block_apply_path(ev, b, NULL, 0, name_printf(ev->ctx, "%s%scond", where->path, *where->path ? "." : ""),
                               where, a->span);
    v = v.kind == V_POISON ? v : to_tensor(ev, v, a->span);
    ev->frame = frame;
    ev->fan = fan;
    g->span = span;
    g->name = name;
    return v;
}

Value scope_tensor(Eval *ev, Attribute *a, Scope *where)
{
    static const Ast type = {.kind = AST_ID, .name = "block"};
    if (a->made)
        return a->tensor;
    if (a->making) {
        err(ev, "E0109", a->span, "needs its own value", "`cond` is defined by itself");
        return v_poison();
    }
    a->making = true;
    Value v = eval_as(ev, a->expr, a->env, where->up, &type, "cond");
    if (v.kind == V_BLOCK && ev->build) {
        v = apply_cond(ev, v.block, a, where);
    } else if (v.kind != V_NONE && v.kind != V_POISON) {
        Diag *d =
            err(ev, "E0206", a->expr->span, "", "`cond` must be a block without tensors, got %s", value_kind_name(&v));
        diag_help(ev->ctx, d, "what it returns is `scope.cond` for everything inside");
        v = v_poison();
    }
    a->made = true;
    return a->tensor = v;
}
