/* check_expr.c - expressions: static numbers, words, lists, run-time scalars and tensors.
 *
 * In:  an expression, an environment, the scope of the place.   Out: a Value.
 * The one idea: every value has a phase. Static numbers are folded at once, run-time scalars become a
 * HostExpr, tensors become graph nodes; mixing them converts upwards (number -> scalar -> tensor) and
 * never downwards.
 */
#include "attribute.h"
#include "check.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>

bool eval_number(Eval *ev, const Ast *e, Env *env, Scope *scope, const char *what, double *out)
{
    if (schedule_for_number(ev, e, env, what))
        return false;
    Value v = eval(ev, e, env, scope);
    if (v.kind == V_NUM && isfinite(v.num)) {
        *out = v.num;
        return true;
    }
    if (v.kind == V_POISON)
        return false;
    Span at = setting_place(ev, e->span, env);
    Diag *d = v.kind == V_NUM ? err(ev, "E0208", at, "", "`%s` must be a finite number", what)
                              : err(ev, "E0206", at, "", "`%s` must be a number, got %s", what, value_kind_name(&v));
    if (v.kind == V_STR)
        advise_quotes(ev, d, &v, "a number", at, env);
    if (v.kind != V_NUM)
        advise_kind(ev, d, &v);
    say_setting(ev, d, &v, at, e->span);
    return false;
}

const char *expr_text(Eval *ev, const Ast *e)
{
    Buf b = buf_new(ev->arena);
    ast_print_expr(&b, e);
    return b.s;
}

/* ---- names ---- */

static File *env_file(Env *env)
{
    while (env && !env->file)
        env = env->up;
    return env ? env->file : NULL;
}

bool host_name(Name name, HostVar *var)
{
    for (int i = 0; i < HV_NAMED; i++)
        if (!strcmp(name, host_var_name((HostVar)i))) {
            *var = (HostVar)i;
            return true;
        }
    return false;
}

static bool builtin_name(Eval *ev, Name name, Env *env, Span at, Value *out)
{
    HostVar var;
    if (ev->fan && !strcmp(name, "fan_in"))
        *out = v_num(ev->fan->fan_in);
    else if (ev->fan && !strcmp(name, "fan_out"))
        *out = v_num(ev->fan->fan_out);
    else if (!strcmp(name, "none"))
        *out = v_none();
    else if (!strcmp(name, "inf")) /* an entry of a tensor; whoever needs a finite number says so */
        *out = v_num(INFINITY);
    else if (prim_find(name))
        *out = (Value){.kind = V_FN, .prim = prim_find(name)};
    else if (ev->build && !strcmp(name, "B"))
        *out = v_dim(DIM_B);
    else if (ev->build && !strcmp(name, "T"))
        *out = v_dim(DIM_T);
    else if (is_file_field(name) && env_file(env) && (!ev->build || env_file(env)->model_ast))
        *out = file_field(ev, env_file(env), name, at);
    else if (host_name(name, &var))
        *out = (Value){.kind = V_HOST, .host = host_var(ev->arena, var)};
    else
        return false;
    return true;
}

Value unknown_name(Eval *ev, Name name, Env *env, Span at)
{
    if (!strcmp(name, "fan_in") || !strcmp(name, "fan_out")) {
        Diag *d = err(ev, "E0102", at, "known only inside an initialiser", "no name `%s` here", name);
        diag_help(ev->ctx, d, "write it in `init = ...` or in the init of a `param`");
        return v_poison();
    }
    File *f = env_file(env);
    Diag *d = err(ev, "E0102", at, "not found in this file or its imports", "no name `%s` here", name);
    if (is_scope_name(name) && env && env->file && advise_outside(ev, d, f, name, at))
        return v_poison();
    if (is_scope_name(name) && strcmp(name, "allow")) {
        const char *scoped = name_printf(ev->ctx, "scope.%s", name);
        diag_fix(ev->ctx, d, at, scoped, FIX_CERTAIN, "what the nearest node around sets is `%s`", scoped);
        return v_poison();
    }
    if (advise_name(ev, d, name, at) || help_import(ev, d, name))
        return v_poison();
    Name *names;
    size_t n = env_names(ev, env, &names);
    VEC(Name) all = {names, n, n};
    for (size_t i = 0; i < prim_count(); i++)
        vec_push(ev->arena, &all, prim_at(i)->name);
    for (size_t i = 0; !ev->build && file_field_at(i); i++)
        vec_push(ev->arena, &all, name_str(ev->ctx, file_field_at(i)));
    Name best = nearest_name(name, all.v, all.n);
    Binding *b = best && f ? map_get(&f->names, (uintptr_t)best) : NULL;
    if (b)
        diag_label(ev->ctx, d, b->span, "a similar name is defined here");
    suggest(ev, d, name, all.v, all.n, at);
    return v_poison();
}

static Value eval_name(Eval *ev, const Ast *e, Env *env, Scope *scope)
{
    Binding *b = env_find(env, e->name);
    if (b)
        return binding_get(ev, b, scope);
    Value v;
    if (builtin_name(ev, e->name, env, e->span, &v))
        return v;
    return unknown_name(ev, e->name, env, e->span);
}

Value eval_word(Eval *ev, const Ast *e, Env *env, Scope *scope)
{
    while (e->kind == AST_PAREN || e->kind == AST_COND) {
        Value c = e->kind == AST_COND ? eval(ev, e->kid[0], env, scope) : v_bool(true);
        if (c.kind != V_BOOL)
            return c.kind == V_POISON ? c : eval(ev, e, env, scope); /* says what is wrong with it */
        e = e->kid[e->kind == AST_PAREN ? 0 : c.num != 0 ? 1 : 2];
    }
    if (e->kind == AST_STR)
        return v_word(e->name);
    if (e->kind == AST_ID) {
        Binding *b = env_find(env, e->name);
        if (b && (b->is_param_of_block || b->is_let)) {
            Value v = binding_get(ev, b, scope);
            if (v.kind == V_WORD || v.kind == V_NONE || v.kind == V_POISON)
                return v;
        }
        return strcmp(e->name, "none") ? v_word(e->name) : v_none();
    }
    Value v = eval(ev, e, env, scope);
    if (v.kind == V_STR)
        v.kind = V_WORD;
    if (v.kind == V_FN)
        return v_word(name_str(ev->ctx, v.prim->name));
    if (v.kind != V_WORD && v.kind != V_NONE && v.kind != V_POISON) {
        Diag *d = err(ev, "E0206", e->span, "", "expected a name here, got %s", value_kind_name(&v));
        if (!advise_words(ev, d, e->span) && v.kind == V_BOOL && v.num != 0)
            diag_help(ev->ctx, d, "for example `tie = tokens`, the label of `embed tokens`");
        return v_poison();
    }
    return v;
}

/* ---- conversions ---- */

/* The name that begins at a place: `up` of `up` and `up()`; NULL: none does. */
static Name word_at(Eval *ev, Span at)
{
    size_t n, length = 0;
    const char *text = at.file ? source_text(ev->ctx, at.file, &n) + at.lo : "";
    while (text[length] == '_' || isalnum((unsigned char)text[length]))
        length++;
    bool alone = length && (at.hi - at.lo == length || !strncmp(text + length, "()", at.hi - at.lo - length));
    return alone ? name_of(ev->ctx, text, length) : NULL;
}

static bool flatten(const Value *v, Shape *shape, int depth, double *out, size_t *n, size_t cap)
{
    if (v->kind == V_NUM) {
        if (depth != shape->rank || *n >= cap)
            return false;
        out[(*n)++] = v->num;
        return true;
    }
    if (v->kind != V_LIST || depth >= shape->rank || (size_t)shape->d[depth].n != v->list->n)
        return false;
    for (size_t i = 0; i < v->list->n; i++)
        if (!flatten(&v->list->v[i], shape, depth + 1, out, n, cap))
            return false;
    return true;
}

static Value made_tensor(Eval *ev, Value v, Span at)
{
    Graph *g = ev->build->g;
    if (v.kind == V_NUM || v.kind == V_BOOL)
        return v_tensor(ir_fill(g, v.num));
    if (v.kind == V_HOST)
        return v_tensor(ir_host(g, v.host));
    if (v.kind == V_DIM)
        return v_tensor(ir_dim(g, v.dim));
    if (v.kind == V_LIST) {
        Shape s = {0};
        size_t total = 1;
        for (const Value *p = &v; p->kind == V_LIST && s.rank < MAX_RANK; p = &p->list->v[0]) {
            s.d[s.rank++] = DIM((int64_t)p->list->n);
            total *= p->list->n;
            if (!p->list->n || total > 1000000)
                break;
        }
        double *data = NEW_ARRAY(ev->arena, double, total ? total : 1);
        size_t n = 0;
        if (total && total <= 1000000 && flatten(&v, &s, 0, data, &n, total) && n == total)
            return v_tensor(ir_const(g, &s, data));
        Diag *d = err(ev, "E0309", at, "", "only a rectangular list of numbers can be a tensor");
        for (size_t i = 0; v.kind == V_LIST && i < v.list->n; i++)
            if (v.list->v[i].kind == V_TENSOR) {
                diag_help(ev->ctx, d,
                          "tensors are joined by `concat(a, b, axis = 1)`, each of them an argument of its own");
                break;
            }
        return v_poison();
    }
    Diag *d = err(ev, "E0206", at, "", "expected a tensor, got %s", value_kind_name(&v));
    const Ast *tensors = v.kind == V_BLOCK ? v.block->def->ast->kid[1] : NULL;
    if (tensors && !tensors->n)
        diag_help(ev->ctx, d, "name the block, which takes no tensors, and apply it: `let s = %s(...)`, then `s()`",
                  v.block->def->ast->name);
    else if (tensors && word_at(ev, at))
        diag_help(ev->ctx, d, "a block is applied to its tensors: `%s(%s)`", word_at(ev, at), tensors->kid[0]->name);
    advise_kind(ev, d, &v);
    return v_poison();
}

/* The node of a number says where the number was written, not what was built before it. */
Value to_tensor(Eval *ev, Value v, Span at)
{
    Graph *g = ev->build ? ev->build->g : NULL;
    if (v.kind == V_POISON || v.kind == V_TENSOR)
        return v;
    if (!g) {
        err(ev, "E0206", at, "", "a tensor exists only inside a model");
        return v_poison();
    }
    Span before = g->span;
    g->span = at;
    v = made_tensor(ev, v, at);
    g->span = before;
    return v;
}

/* Nodes of the expression as a tree, up to `most`. */
static size_t host_nodes(const HostExpr *e, size_t most)
{
    size_t n = e ? 1 : 0;
    const HostExpr *kid[3] = {e ? e->a : NULL, e ? e->b : NULL, e ? e->c : NULL};
    for (int i = 0; i < 3 && n < most; i++)
        n += kid[i] ? host_nodes(kid[i], most - n) : 0;
    return n;
}

const HostExpr *to_host(Eval *ev, const Value *v)
{
    if (!is_host_number(v))
        return NULL;
    return v->kind == V_HOST ? v->host : host_const(ev->arena, v->num);
}

const HostExpr *to_host_truth(Eval *ev, const Value *v)
{
    if (!is_host_truth(v))
        return NULL;
    return v->kind == V_HOST ? v->host : host_const(ev->arena, v->num);
}

/* ---- operators ---- */

typedef struct OpRow {
    const char *text;
    Op op;
    HostOp host;
    bool swap, negate, compares;
} OpRow;
static const OpRow op_rows[] = {
    {"+", OP_ADD, HO_ADD, false, false, false}, {"-", OP_SUB, HO_SUB, false, false, false},
    {"*", OP_MUL, HO_MUL, false, false, false}, {"/", OP_DIV, HO_DIV, false, false, false},
    {"^", OP_POW, HO_POW, false, false, false}, {"mod", OP_MOD, HO_MOD, false, false, false},
    {"<", OP_LT, HO_LT, false, false, true},    {"<=", OP_LE, HO_LE, false, false, true},
    {">", OP_LT, HO_LT, true, false, true},     {">=", OP_LE, HO_LE, true, false, true},
    {"==", OP_EQ, HO_EQ, false, false, true},   {"!=", OP_EQ, HO_EQ, false, true, true},
};

static const OpRow *op_row(Name text)
{
    for (size_t i = 0; i < COUNT_OF(op_rows); i++)
        if (op_rows[i].text[0] == text[0] && !strcmp(op_rows[i].text, text))
            return &op_rows[i];
    return NULL;
}

bool is_comparison(const Ast *e) { return e->kind == AST_OP && op_row(e->name) && op_row(e->name)->compares; }

const char *shape_words(Eval *ev, const Value *v)
{
    Buf b = buf_new(ev->arena);
    shape_print(&b, shape_of(ev->build->g, v->val));
    if (v->shape_text)
        buf_printf(&b, " (%s)", v->shape_text);
    return b.s;
}

static Value matmul(Eval *ev, const Ast *e, Value a, Value b)
{
    a = to_tensor(ev, a, e->kid[0]->span);
    b = to_tensor(ev, b, e->kid[1]->span);
    if (a.kind == V_POISON || b.kind == V_POISON)
        return v_poison();
    Graph *g = ev->build->g;
    for (int i = 0; i < 2; i++)
        if (node_at(g, (i ? b : a).val)->dtype != DT_REAL) {
            Diag *d = err(ev, "E0310", e->kid[i]->span, "", "`@` needs real numbers, got a tensor of integers");
            diag_help(ev->ctx, d, "convert it: `cast(%s, real)`", expr_text(ev, e->kid[i]));
            return v_poison();
        }
    const Shape *s = shape_of(g, a.val), *t = shape_of(g, b.val);
    Shape la = *s, lb = *t, lead;
    bool matrices = s->rank >= 2 && t->rank >= 2;
    la.rank -= matrices ? 2 : 0;
    lb.rank -= matrices ? 2 : 0;
    if (!matrices || !dim_eq(s->d[s->rank - 1], t->d[t->rank - 2]) || !shape_broadcast(&la, &lb, &lead)) {
        product_differs(ev, e, (const Value[]){a, b});
        return v_poison();
    }
    spend(ev, e->span, 1);
    g->span = e->span;
    return v_tensor(ir_matmul(g, a.val, b.val));
}

Value whole_tensor(Eval *ev, Value v, Value beside)
{
    Graph *g = ev->build ? ev->build->g : NULL;
    if (!g || beside.kind != V_TENSOR || node_at(g, beside.val)->dtype != DT_INT)
        return v;
    if (v.kind == V_NUM && is_whole(v.num))
        return v_tensor(ir_int(g, (int64_t)rint(v.num)));
    return v.kind == V_DIM ? v_tensor(ir_cast(g, ir_dim(g, v.dim), DT_INT)) : v;
}

static Value map_tensors(Eval *ev, const Ast *e, const OpRow *row, Value a, Value b)
{
    Graph *g = ev->build ? ev->build->g : NULL;
    Value x = to_tensor(ev, whole_tensor(ev, a, b), e->kid[0]->span);
    Value y = to_tensor(ev, whole_tensor(ev, b, a), e->kid[e->n - 1]->span);
    if (!g || x.kind == V_POISON || y.kind == V_POISON)
        return v_poison();
    bool xi = node_at(g, x.val)->dtype == DT_INT, yi = node_at(g, y.val)->dtype == DT_INT;
    if (xi != yi) {
        Diag *d =
            err(ev, "E0310", e->name_span, "", "`%s` mixes a tensor of integers with one of real numbers", row->text);
        diag_help(ev->ctx, d, "convert the integers: `cast(%s, real)`", expr_text(ev, e->kid[xi ? 0 : e->n - 1]));
        return v_poison();
    }
    if (xi && row->op == OP_MOD && b.kind == V_NUM && b.num == 0) {
        err(ev, "E0208", e->span, "", "division by zero");
        return v_poison();
    }
    if (xi && (row->op == OP_DIV || row->op == OP_POW)) {
        err(ev, "E0310", e->name_span, "", "`%s` is not defined for tensors of integers", row->text);
        return v_poison();
    }
    Shape out;
    if (!shape_broadcast(shape_of(g, x.val), shape_of(g, y.val), &out)) {
        shapes_differ(ev, e->name_span, row->text, (const Ast *const[]){e->kid[0], e->kid[e->n - 1]},
                      (const Value[]){x, y});
        return v_poison();
    }
    spend(ev, e->span, 1);
    g->span = e->span;
    Val v = row->swap ? ir_binary(g, row->op, y.val, x.val) : ir_binary(g, row->op, x.val, y.val);
    if (row->negate)
        v = ir_binary(g, OP_SUB, ir_fill(g, 1), v);
    return v_tensor(v);
}

Value tensor_binary(Eval *ev, const Ast *e, Op op, Value a, Value b)
{
    return map_tensors(ev, e, &(OpRow){.text = e->name, .op = op}, a, b);
}

static Value host_binary(Eval *ev, const Ast *e, const OpRow *row, Value a, Value b)
{
    const HostExpr *x = to_host(ev, &a), *y = to_host(ev, &b);
    if (!x || !y) {
        err(ev, "E0206", e->span, "", "cannot compute %s %s %s", value_kind_name(&a), row->text, value_kind_name(&b));
        return v_poison();
    }
    enum { MOST = 1000 };
    if (host_nodes(x, MOST) + host_nodes(y, MOST) >= MOST)
        limit(ev, e->span, "terms of a run-time expression", MOST);
    const HostExpr *r =
        row->swap ? host_op(ev->arena, row->host, y, x, NULL) : host_op(ev->arena, row->host, x, y, NULL);
    if (!row->compares)
        return v_host(r);
    return v_host_truth(row->negate ? host_op(ev->arena, HO_NOT, r, NULL, NULL) : r);
}

static Value number_binary(Eval *ev, const Ast *e, const OpRow *row, double x, double y)
{
    if ((row->op == OP_DIV || row->op == OP_MOD) && y == 0) {
        err(ev, "E0208", e->span, "", "division by zero");
        return v_poison();
    }
    double r = host_value(row->host, row->swap ? y : x, row->swap ? x : y, 0);
    if (row->compares)
        return v_bool((r != 0) != row->negate);
    if (isfinite(r))
        return v_num(r);
    err(ev, "E0208", e->span, "", "%.6g %s %.6g is not a finite number", x, row->text, y);
    return v_poison();
}

static bool quantity_binary(Eval *ev, const OpRow *row, const Value *a, const Value *b, Value *out)
{
    const Value *q = a->kind == V_QTY ? a : b, *o = q == a ? b : a;
    *out = *q;
    if (row->op == OP_MUL && o->kind == V_NUM)
        out->num = a->num * b->num;
    else if (row->op == OP_DIV && a->kind == V_QTY && b->kind == V_NUM && b->num != 0)
        out->num = a->num / b->num;
    else if ((row->op == OP_ADD || row->op == OP_SUB) && o->kind == V_QTY && a->word == b->word)
        out->num = row->op == OP_ADD ? a->num + b->num : a->num - b->num;
    else if (row->compares && o->kind == V_QTY && a->word == b->word)
        *out = number_binary(ev, NULL, row, a->num, b->num);
    else
        return false;
    return out->kind == V_BOOL || isfinite(out->num);
}

static bool dim_binary(const OpRow *row, const Value *a, const Value *b, Value *out)
{
    Dim x = a->kind == V_DIM ? a->dim : DIM((int64_t)a->num), y = b->kind == V_DIM ? b->dim : DIM((int64_t)b->num);
    if ((a->kind == V_NUM && !is_whole(a->num)) || (b->kind == V_NUM && !is_whole(b->num)))
        return false;
    Dim d;
    bool extents = x.n > 0 && y.n > 0, decided = dim_eq(x, y) || (dim_static(x) && dim_static(y));
    if (row->op == OP_MUL && extents && dim_mul(x, y, &d))
        *out = v_dim(d);
    else if (row->op == OP_DIV && extents && dim_div(x, y, &d))
        *out = v_dim(d);
    else if (row->op == OP_EQ && (decided || !extents))
        *out = v_bool(dim_eq(x, y) != row->negate);
    else
        return false;
    return true;
}

Value binary(Eval *ev, const Ast *e, Value a, Value b)
{
    if (a.kind == V_POISON || b.kind == V_POISON)
        return v_poison();
    if (!strcmp(e->name, "@"))
        return matmul(ev, e, a, b);
    const OpRow *row = op_row(e->name);
    if (a.kind == V_TENSOR || b.kind == V_TENSOR) {
        const Value *o = a.kind == V_TENSOR ? &b : &a;
        if (row->op == OP_EQ && (o->kind == V_NONE || o->kind == V_WORD))
            return v_bool(row->negate); /* `x == none` asks whether x is there */
        return map_tensors(ev, e, row, a, b);
    }
    if (a.kind == V_NUM && b.kind == V_NUM)
        return number_binary(ev, e, row, a.num, b.num);
    Value out;
    if (a.kind == V_QTY && b.kind == V_NUM && row->op == OP_DIV && b.num == 0) {
        err(ev, "E0208", e->span, "", "division by zero");
        return v_poison();
    }
    if ((a.kind == V_QTY || b.kind == V_QTY) && quantity_binary(ev, row, &a, &b, &out))
        return out;
    bool da = a.kind == V_DIM || a.kind == V_NUM, db = b.kind == V_DIM || b.kind == V_NUM;
    if (da && db && dim_binary(row, &a, &b, &out))
        return out;
    if (a.kind == V_HOST || b.kind == V_HOST)
        return host_binary(ev, e, row, a, b);
    if (da && db) {
        Diag *d = err(ev, "E0206", e->span, "no extent of a tensor", "cannot compute `%s`", expr_text(ev, e));
        advise_symbols(ev, d, row->text);
        return v_poison();
    }
    if (row->op == OP_EQ)
        return v_bool(value_equal(&a, &b) != row->negate);
    err(ev, "E0206", e->name_span, "", "cannot compute %s %s %s", value_kind_name(&a), row->text, value_kind_name(&b));
    return v_poison();
}

static bool unbound_word(const Ast *e, Env *env)
{
    return e->kind == AST_ID && !env_find(env, e->name) && strcmp(e->name, "none");
}

static Value eval_op(Eval *ev, const Ast *e, Env *env, Scope *scope)
{
    bool is_and = !strcmp(e->name, "and"), is_or = !strcmp(e->name, "or");
    bool equality = !strcmp(e->name, "==") || !strcmp(e->name, "!=");
    Value a = eval(ev, e->kid[0], env, scope);
    if (is_and || is_or) {
        if (a.kind == V_BOOL && (a.num != 0) == is_or)
            return a;
        Value b = eval(ev, e->kid[1], env, scope);
        if (a.kind == V_POISON || b.kind == V_POISON)
            return v_poison();
        if (a.kind == V_BOOL && b.kind == V_BOOL)
            return b;
        const HostExpr *x = to_host_truth(ev, &a), *y = to_host_truth(ev, &b);
        if (x && y)
            return v_host_truth(host_op(ev->arena, is_and ? HO_AND : HO_OR, x, y, NULL));
        err(ev, "E0206", e->span, "", "`%s` needs true or false on both sides", e->name);
        return v_poison();
    }
    if (equality && (a.kind == V_WORD || a.kind == V_NONE || a.kind == V_FN) && unbound_word(e->kid[1], env)) {
        bool same = value_equal(&a, &(Value){.kind = V_WORD, .word = e->kid[1]->name});
        return v_bool(same == !strcmp(e->name, "=="));
    }
    return binary(ev, e, a, eval(ev, e->kid[1], env, scope));
}

/* ---- the other forms ---- */

static Value eval_list(Eval *ev, const Ast *e, Env *env, Scope *scope)
{
    VEC(Value) v = {0};
    for (uint32_t i = 0; i < e->n; i++) {
        Value x = e->kid[i]->kind == AST_DOTS ? (Value){.kind = V_DOTS} : eval(ev, e->kid[i], env, scope);
        if (x.kind == V_POISON)
            return x;
        vec_push(ev->arena, &v, x);
    }
    return v_list(ev, v.v, v.n);
}

static Value eval_range(Eval *ev, const Ast *e, Env *env, Scope *scope)
{
    double lo, hi;
    if (!eval_number(ev, e->kid[0], env, scope, "start of the range", &lo) ||
        !eval_number(ev, e->kid[1], env, scope, "end of the range", &hi))
        return v_poison();
    if (!is_whole(lo) || !is_whole(hi)) {
        err(ev, "E0206", e->span, "", "a range runs over whole numbers, got %.6g..%.6g", lo, hi);
        return v_poison();
    }
    enum { MOST = 100000 };
    if (hi - lo >= MOST)
        limit(ev, e->span, "range length", MOST);
    size_t n = hi >= lo ? (size_t)(hi - lo) + 1 : 0;
    spend(ev, e->span, (int64_t)n);
    Value *v = NEW_ARRAY(ev->arena, Value, n ? n : 1);
    for (size_t i = 0; i < n; i++)
        v[i] = v_num(lo + (double)i);
    return v_list(ev, v, n);
}

typedef VEC(Value) Values;

static bool comprehend(Eval *ev, const Ast *e, uint32_t level, Env *env, Scope *scope, Values *out)
{
    const Ast *iters = e->kid[1];
    if (level == iters->n) {
        if (e->n > 2 && e->kid[2]) {
            Value c = eval(ev, e->kid[2], env, scope);
            if (c.kind != V_BOOL) {
                if (c.kind != V_POISON)
                    err(ev, "E0206", e->kid[2]->span, "", "the filter must be true or false");
                return false;
            }
            if (c.num == 0)
                return true;
        }
        spend(ev, e->span, 1);
        Value v = eval(ev, e->kid[0], env, scope);
        vec_push(ev->arena, out, v);
        return v.kind != V_POISON;
    }
    const Ast *it = iters->kid[level];
    Value range = eval(ev, it->kid[0], env, scope);
    if (range.kind != V_LIST) {
        if (range.kind != V_POISON)
            no_list(ev, it->kid[0], &range);
        return false;
    }
    for (size_t i = 0; i < range.list->n; i++)
        if (!comprehend(ev, e, level + 1, env_bind(ev, env, it->name, range.list->v[i], it->name_span), scope, out))
            return false;
    return true;
}

static Value eval_cond(Eval *ev, const Ast *e, Env *env, Scope *scope)
{
    Value c = eval(ev, e->kid[0], env, scope);
    if (c.kind == V_POISON)
        return c;
    if (c.kind == V_BOOL)
        return eval(ev, e->kid[c.num != 0 ? 1 : 2], env, scope);
    Value a = eval(ev, e->kid[1], env, scope), b = eval(ev, e->kid[2], env, scope);
    if (a.kind == V_POISON || b.kind == V_POISON)
        return v_poison();
    if (c.kind == V_HOST && is_host_truth(&c)) {
        if (is_host_number(&a) && is_host_number(&b))
            return v_host(host_op(ev->arena, HO_IF, c.host, to_host(ev, &a), to_host(ev, &b)));
        if (is_host_truth(&a) && is_host_truth(&b))
            return v_host_truth(host_op(ev->arena, HO_IF, c.host, to_host_truth(ev, &a), to_host_truth(ev, &b)));
        err(ev, "E0206", e->span, "",
            "a run-time condition chooses between two numbers, or between two conditions, not %s and %s",
            value_kind_name(&a), value_kind_name(&b));
        return v_poison();
    }
    Diag *d = err(ev, "E0206", e->kid[0]->span, "", "a condition must be true or false, got %s", value_kind_name(&c));
    if (c.kind == V_TENSOR)
        diag_help(ev->ctx, d, "to choose element by element use `where(mask, a, b)`");
    return v_poison();
}

static const char *ordinal(Eval *ev, double n)
{
    static const char *const words[] = {"zeroth", "first",   "second", "third", "fourth", "fifth",
                                        "sixth",  "seventh", "eighth", "ninth", "tenth"};
    if (n >= 0 && n <= 10)
        return words[(int)n];
    static const char *const ends[] = {"th", "st", "nd", "rd"};
    int last = (int)fmod(n, 10), teen = (int)fmod(n, 100) / 10 == 1;
    return arena_printf(ev->arena, "%.0f%s", n, ends[last <= 3 && !teen ? last : 0]);
}

static void no_entry(Eval *ev, const Ast *e, const Ast *index, double k, size_t n, Env *env)
{
    const char *list = expr_text(ev, e->kid[0]), *name = index->kind == AST_ID ? index->name : NULL;
    const char *which = name ? arena_printf(ev->arena, "%s %.6g", name, k) : expr_text(ev, index);
    const char *label = name ? arena_printf(ev->arena, "%s = %.6g here", name, k) : "";
    bool beyond = is_whole(k) && k > (double)n;
    Diag *d = beyond ? err(ev, "E0402", e->span, label, "`%s` has %zu entr%s but %s asks for a %s", list, n,
                           n == 1 ? "y" : "ies", which, ordinal(ev, k))
                     : err(ev, "E0402", e->span, label, "`%s` has the entries 1 to %zu, and %s is none of them", list,
                           n, which);
    Binding *b = e->kid[0]->kind == AST_ID ? env_find(env, e->kid[0]->name) : NULL;
    if (b && b->expr)
        diag_label(ev->ctx, d, b->expr->span, "%zu entr%s", n, n == 1 ? "y" : "ies");
    if (beyond)
        diag_help(ev->ctx, d, "add an entry, or loop over the list: `for %s in 1..size(%s)`", name ? name : "i", list);
    if (k == 0)
        diag_note(ev->ctx, d, "lists, layers and axes count from 1");
    bool less = index->kind == AST_OP && index->n == 2 && !strcmp(index->name, "-") && index->kid[1]->kind == AST_NUM &&
                ast_number(ev->ctx, index->kid[1]).value == 1;
    if (k == 0 && less)
        diag_help(ev->ctx, d, "write `%s[%s]`", list, expr_text(ev, index->kid[0]));
    else if (k == 0 && !name && n)
        diag_help(ev->ctx, d, "write `%s[1]` for the first entry", list);
    else if (k < 0 && !name && n)
        diag_help(ev->ctx, d, "write `%s[%.0f]`: entries are not counted from the end", list,
                  -k <= (double)n ? (double)n + 1 + k : (double)n);
}

static Value eval_index(Eval *ev, const Ast *e, Env *env, Scope *scope)
{
    Value v = eval(ev, e->kid[0], env, scope);
    const Ast *list = e->kid[1];
    for (uint32_t i = 0; i < list->n && v.kind != V_POISON; i++) {
        double k;
        if (v.kind != V_LIST) {
            Diag *d = err(ev, "E0206", e->kid[0]->span, "", "only lists have entries, this is %s", value_kind_name(&v));
            if (v.kind == V_TENSOR)
                diag_help(
                    ev->ctx, d,
                    "parts of an axis are taken by functions: `slice(%s, from, count, axis = 1)`, `first`, `rest`,"
                    " `split`, by other tensors `gather` and `pick`; coordinates count from 1",
                    expr_text(ev, e->kid[0]));
            return v_poison();
        }
        if (!eval_number(ev, list->kid[i], env, scope, "index", &k))
            return v_poison();
        if (!is_whole(k) || k < 1 || k > (double)v.list->n) {
            no_entry(ev, e, list->kid[i], k, v.list->n, env);
            return v_poison();
        }
        v = v.list->v[(size_t)rint(k) - 1];
    }
    return v;
}

static Value scope_field(Eval *ev, const Ast *e, Scope *scope)
{
    bool found;
    Value v = scope_value(ev, scope, e->name, &found);
    if (found)
        return v;
    Name path = scope ? scope->path : "";
    Diag *d = err(ev, "E0203", e->span, "asked for here", "no `%s` for `%s`", e->name, *path ? path : "this place");
    diag_note(ev->ctx, d, "`%s` takes `scope.%s`, and no enclosing scope sets `%s`",
              ev->frame ? ev->frame->def->ast->name : "this place", e->name, e->name);
    if (is_scope_name(e->name)) {
        diag_help(ev->ctx, d, "add `%s = ...` to the model or to this node%s", e->name,
                  strstr(e->name, "init") ? ", for example `normal(std = 0.02)`" : "");
    } else {
        const char *known;
        size_t n;
        attribute_names(ev->ctx, ev->arena, "model", false, &n, &known);
        diag_note(ev->ctx, d, "a model sets %s; a node also what its block has as parameters", known);
        diag_help(ev->ctx, d,
                  "make it a parameter of the block, `%s(%s: float)`, read it by its name, and write `{ %s = ... }`"
                  " at the node",
                  ev->frame ? ev->frame->def->ast->name : "NAME", e->name, e->name);
    }
    return v_poison();
}

Value graph_input(Eval *ev, Name name, DType dtype, const Shape *s, Span at)
{
    Graph *g = ev->build->g;
    for (size_t i = 0; i < g->ext.n; i++) {
        const Ext *x = &g->ext.v[i];
        if (x->kind != EXT_INPUT || x->name != name || (x->dtype == dtype && shape_eq(&x->shape, s)))
            continue;
        Buf had = buf_new(ev->arena), wants = buf_new(ev->arena);
        shape_print(&had, &x->shape);
        shape_print(&wants, s);
        err(ev, "E0312", at, "", "input `%s` is %s %s here, but %s %s elsewhere in this model", name,
            dtype == DT_INT ? "int" : "real", wants.s, x->dtype == DT_INT ? "int" : "real", had.s);
        return v_poison();
    }
    g->span = at;
    return v_tensor(ir_ext(g, EXT_INPUT, name, dtype, s));
}

static Value input_field(Eval *ev, const Ast *e)
{
    Shape s = {.rank = 2, .d = {DIM_B, DIM_T}};
    if (!ev->build) {
        Diag *d = err(ev, "E0206", e->span, "", "`input.%s` exists only inside a model", e->name);
        diag_help(ev->ctx, d, "the name of a file stands in quotes: `\"input.%s\"`", e->name);
        return v_poison();
    }
    if (strcmp(e->name, "tokens") && strcmp(e->name, "labels") && strcmp(e->name, "document")) {
        Diag *d = err(ev, "E0102", e->name_span, "", "no input `%s`", e->name);
        diag_help(ev->ctx, d,
                  "inputs are `input.tokens`, `input.labels` and `input.document` ([B, T] integers); others are"
                  " declared with `input(name, [shape])`");
        return v_poison();
    }
    return graph_input(ev, e->name, DT_INT, &s, e->span);
}

static Value argument_of(Eval *ev, const Ast *e, Env *env, Scope *scope, bool *found)
{
    const Ast *o = e->kid[0];
    Binding *b = o->kind == AST_ID ? env_find(env, o->name) : NULL;
    *found = false;
    if (!b || !b->expr || b->expr->kind != AST_CALL)
        return v_none();
    const Ast *args = b->expr->kid[1];
    for (uint32_t i = 0; i < args->n; i++)
        if (args->kid[i]->kind == AST_NAMED && args->kid[i]->name == e->name) {
            *found = true;
            return eval(ev, args->kid[i]->kid[0], b->env, scope);
        }
    return v_none();
}

static Value eval_field(Eval *ev, const Ast *e, Env *env, Scope *scope)
{
    const Ast *o = e->kid[0];
    if (o->kind == AST_ID && !env_find(env, o->name)) {
        if (!strcmp(o->name, "scope"))
            return scope_field(ev, e, scope);
        if (!strcmp(o->name, "input"))
            return input_field(ev, e);
        HostVar var;
        Name full = name_printf(ev->ctx, "%s.%s", o->name, e->name);
        if (host_name(full, &var))
            return (Value){.kind = V_HOST, .host = host_var(ev->arena, var)};
        if (no_run_quantity(ev, o->name, full, e->span))
            return v_poison();
    }
    const Ast *root = o;
    while (root->kind == AST_FIELD)
        root = root->kid[0];
    if (root->kind == AST_ID && !env_find(env, root->name) && no_module(ev, e))
        return v_poison();
    bool found;
    Value v = argument_of(ev, e, env, scope, &found);
    if (found)
        return v;
    v = eval(ev, o, env, scope);
    if (v.kind == V_POISON)
        return v;
    if (v.kind == V_FILE)
        return file_field(ev, v.file, e->name, e->name_span);
    if (v.kind == V_TENSOR && !strcmp(e->name, "T")) {
        if (shape_of(ev->build->g, v.val)->rank >= 2)
            return v_tensor(ir_transpose(ev->build->g, v.val));
        Diag *d = err(ev, "E0301", e->span, "", "`.T` needs at least two dimensions, got %s", shape_words(ev, &v));
        diag_fix(ev->ctx, d, e->span, expr_text(ev, o), FIX_CERTAIN, "there is nothing to swap: write `%s`",
                 expr_text(ev, o));
        return v_poison();
    }
    if (v.kind == V_RECORD || v.kind == V_SPEC) {
        VEC(Name) names = {0};
        for (size_t i = 0; i < v.record->n; i++) {
            if (v.record->field[i].name == e->name)
                return *v.record->field[i].value;
            if (v.record->field[i].name)
                vec_push(ev->arena, &names, v.record->field[i].name);
        }
        Diag *d = err(ev, "E0102", e->name_span, "", "`%s` has no field `%s`", expr_text(ev, o), e->name);
        suggest(ev, d, e->name, names.v, names.n, e->name_span);
        return v_poison();
    }
    Diag *d = err(ev, "E0206", e->span, "", "%s has no field `%s`", value_kind_name(&v), e->name);
    if (v.kind == V_TENSOR)
        advise_method(ev, d, e);
    else if (v.kind == V_BLOCK)
        diag_help(ev->ctx, d, "a value that two places share is a let of the file: `let %s = ...`, then `%s` in both",
                  e->name, e->name);
    return v_poison();
}

static void no_truth(Eval *ev, const Ast *e, const Value *v)
{
    Diag *d = err(ev, "E0206", e->span, "", "`not` needs true or false, got %s", value_kind_name(v));
    if (v->kind == V_TENSOR)
        diag_help(ev->ctx, d, "a comparison of tensors is 1 or 0: write `1 - %s`", expr_text(ev, e->kid[0]));
}

static Value eval_not(Eval *ev, const Ast *e, Env *env, Scope *scope)
{
    Value v = eval(ev, e->kid[0], env, scope);
    if (v.kind == V_BOOL)
        return v_bool(v.num == 0);
    if (v.kind == V_HOST && is_host_truth(&v))
        return v_host_truth(host_op(ev->arena, HO_NOT, v.host, NULL, NULL));
    if (v.kind != V_POISON)
        no_truth(ev, e, &v);
    return v_poison();
}

static Value eval_neg(Eval *ev, const Ast *e, Env *env, Scope *scope)
{
    Value v = eval(ev, e->kid[0], env, scope);
    if (v.kind == V_NUM || v.kind == V_REL || v.kind == V_QTY) {
        v.num = -v.num;
        return v;
    }
    if (v.kind == V_HOST && is_host_number(&v))
        return v_host(host_op(ev->arena, HO_NEG, v.host, NULL, NULL));
    if (v.kind == V_TENSOR && node_at(ev->build->g, v.val)->dtype == DT_INT)
        return v_tensor(ir_binary(ev->build->g, OP_SUB, ir_int(ev->build->g, 0), v.val));
    if (v.kind == V_TENSOR)
        return v_tensor(ir_unary(ev->build->g, OP_NEG, v.val));
    if (v.kind != V_POISON)
        err(ev, "E0206", e->span, "", "`-` needs a number or a tensor, got %s", value_kind_name(&v));
    return v_poison();
}

static Value eval_number_token(Eval *ev, const Ast *e)
{
    AstNumber n = ast_number(ev->ctx, e);
    if (e->kind == AST_QTY)
        return (Value){.kind = V_QTY, .num = n.value, .word = n.unit};
    if (n.rel)
        return (Value){.kind = V_REL, .num = n.value, .rel = n.rel};
    return v_num(n.value);
}

Value eval(Eval *ev, const Ast *e, Env *env, Scope *scope)
{
    switch (e->kind) {
    case AST_NUM:
    case AST_QTY: return eval_number_token(ev, e);
    case AST_STR: return v_str(e->name);
    case AST_BOOL: return v_bool(e->name[0] == 't');
    case AST_ID: {
        Value v = eval_name(ev, e, env, scope);
        remember(ev, e->span, &v);
        return v;
    }
    case AST_LIST: return eval_list(ev, e, env, scope);
    case AST_RANGE: return eval_range(ev, e, env, scope);
    case AST_COMP: {
        Values out = {0};
        if (!comprehend(ev, e, 0, env, scope, &out))
            return v_poison();
        return v_list(ev, out.v, out.n);
    }
    case AST_COND: return eval_cond(ev, e, env, scope);
    case AST_NOT: return eval_not(ev, e, env, scope);
    case AST_NEG: return eval_neg(ev, e, env, scope);
    case AST_OP: return eval_op(ev, e, env, scope);
    case AST_PAREN: return eval(ev, e->kid[0], env, scope);
    case AST_CALL: return call(ev, e, env, scope);
    case AST_INDEX: return eval_index(ev, e, env, scope);
    case AST_FIELD: return eval_field(ev, e, env, scope);
    case AST_DOTS:
    case AST_STAR:
        err(ev, "E0206", e->span, "", "`%s` has no meaning here", e->kind == AST_DOTS ? ".." : "*");
        return v_poison();
    default: vwn_bug(ev->ctx, "eval of a %s", ast_kind_name(e->kind));
    }
}
