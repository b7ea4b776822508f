/* check_prim.c - the primitives of the language: names, signatures, what they build.
 *
 * In:  a call with evaluated arguments.   Out: a Value; tensors become graph nodes.
 * The one idea: a row per primitive. Elementwise rows come straight from ops.def; the signature text is
 * what binds arguments, what `vwn doc` prints and what error messages quote.
 */
#include "check.h"

#include "check_prim.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- binding arguments to a signature such as "x: tensor, over: any = -1" ---- */

typedef struct Param1 {
    char name[24], type[12], def[16];
    bool variadic, required;
    bool open; /* "*: text", at the end: further arguments of any name */
} Param1;

/* Called for each argument of each call, which printf would make a quarter of a check. */
static void copy_word(char *out, size_t size, const char *s, size_t n)
{
    n = n < size - 1 ? n : size - 1;
    memcpy(out, s, n);
    out[n] = 0;
}

static const char *next_param(const char *s, Param1 *p)
{
    memset(p, 0, sizeof *p);
    while (*s == ' ' || *s == ',')
        s++;
    if (!*s)
        return NULL;
    size_t n = strcspn(s, ":.,");
    copy_word(p->name, sizeof p->name, s, n);
    s += n;
    p->open = !strcmp(p->name, "*");
    if (!strncmp(s, "...", 3)) {
        p->variadic = true;
        s += 3;
    }
    s += strspn(s, ": ");
    n = strcspn(s, " ,=");
    copy_word(p->type, sizeof p->type, s, n);
    s += n;
    s += strspn(s, " ");
    p->required = *s != '=' && !p->open;
    if (*s == '=') {
        s += strspn(s, "= ");
        n = strcspn(s, ",");
        copy_word(p->def, sizeof p->def, s, n);
        s += n;
    }
    return s;
}

static Value default_value(Eval *ev, const char *text)
{
    if (!strcmp(text, "none"))
        return v_none();
    if (!strcmp(text, "true") || !strcmp(text, "false"))
        return v_bool(text[0] == 't');
    char *end;
    double x = strtod(text, &end);
    if (end != text && !*end)
        return v_num(x);
    return v_word(name_str(ev->ctx, text));
}

/* A number that may be of the run; as a `length` it may have a unit. */
static Value run_value(PrimArgs *a, Value v, Span at, const Param1 *p)
{
    bool length = p->type[0] == 'l';
    if (v.kind == V_POISON || v.kind == V_NONE || is_host_number(&v) || (length && v.kind == V_QTY))
        return v;
    Diag *d = err(a->ev, "E0206", at, "", "`%s` of `%s` must be %s, got %s", p->name, a->prim->name,
                  length ? "a length of training" : "a number", value_kind_name(&v));
    if (length)
        diag_help(a->ev->ctx, d, "for example `%s = 100 steps` or `%s = 1%%`", p->name, p->name);
    else if (v.kind == V_STR)
        advise_quotes(a->ev, d, &v, "a number", at, NULL);
    return v_poison();
}

static bool maps_values(const Prim *p); /* numbers and tensors alike: then infinity may be an entry */

static Value typed_value(PrimArgs *a, const Ast *e, const Param1 *p)
{
    Eval *ev = a->ev;
    if (!strcmp(p->type, "word"))
        return eval_word(ev, e, a->env, a->scope);
    if (!strcmp(p->type, "shape"))
        return v_none(); /* evaluated by the primitive through eval_shape */
    Value v = eval(ev, e, a->env, a->scope);
    if (!strcmp(p->type, "tensor"))
        return to_tensor(ev, v, e->span);
    if (v.kind == V_NUM && !isfinite(v.num) && (strcmp(p->type, "any") || !maps_values(a->prim))) {
        err(ev, "E0208", e->span, "", "`%s` of `%s` must be a finite number", p->name, a->prim->name);
        return v_poison();
    }
    if (!strcmp(p->type, "number") || !strcmp(p->type, "length"))
        return run_value(a, v, e->span, p);
    static const Ast int_type = {.kind = AST_ID, .name = "int"}, float_type = {.kind = AST_ID, .name = "float"},
                     dim_type = {.kind = AST_ID, .name = "dim"}, list_type = {.kind = AST_ID, .name = "list"},
                     bool_type = {.kind = AST_ID, .name = "bool"}, text_type = {.kind = AST_ID, .name = "string"};
    const Ast *t = !strcmp(p->type, "int")     ? &int_type
                   : !strcmp(p->type, "float") ? &float_type
                   : !strcmp(p->type, "dim")   ? &dim_type
                   : !strcmp(p->type, "list")  ? &list_type
                   : !strcmp(p->type, "bool")  ? &bool_type
                   : !strcmp(p->type, "text")  ? &text_type
                                               : NULL;
    if (t == &float_type && v.kind == V_HOST) {
        Diag *d = err(ev, "E0202", e->span, "known only while training", "`%s` of `%s` must be known when compiling",
                      p->name, a->prim->name);
        diag_note(ev->ctx, d, "run-time quantities may stand in a learning rate, the weight of a loss and `when`");
        return v_poison();
    }
    return t ? check_type(ev, v, t, e->span, p->name, a->env) : v;
}

/* Only what has the default `none` may be none. */
static Value arg_value(PrimArgs *a, const Ast *e, const Param1 *p)
{
    Value v = typed_value(a, e, p);
    if (v.kind == V_STR && !strcmp(p->type, "text"))
        v.word = name_str(a->ev->ctx, variant_path(a->ev, e->span, v.word));
    if (v.kind != V_NONE || !strcmp(p->def, "none") || !strcmp(p->type, "shape") || !strcmp(p->type, "any"))
        return v;
    err(a->ev, "E0206", e->span, "", "`%s` of `%s` cannot be none", p->name, a->prim->name);
    return v_poison();
}

bool prim_takes_word(const Prim *prim, Name name, size_t position)
{
    Param1 p;
    size_t i = 0;
    for (const char *s = next_param(prim->params, &p); s; s = next_param(s, &p), i++)
        if (name ? !strcmp(p.name, name) || p.open : i == position || p.variadic)
            return !strcmp(p.type, "word");
    return true; /* no such argument: that is said elsewhere */
}

bool prim_has_argument(const Prim *prim, Name name)
{
    Param1 p;
    for (const char *s = next_param(prim->params, &p); s; s = next_param(s, &p))
        if (!strcmp(p.name, name) || p.open)
            return true;
    return false;
}

void prim_unknown_argument(Eval *ev, const Prim *prim, const Ast *arg)
{
    Param1 p;
    VEC(Name) names = {0};
    for (const char *s = next_param(prim->params, &p); s; s = next_param(s, &p))
        vec_push(ev->arena, &names, name_str(ev->ctx, p.name));
    Diag *d = err(ev, "E0101", arg->name_span, "unknown argument", "`%s` has no argument `%s`", prim->name, arg->name);
    diag_note(ev->ctx, d, "it is %s(%s)", prim->name, prim->params);
    suggest_attribute(ev, d, arg->name, names.v, names.n, arg->name_span);
}

static bool given_twice(PrimArgs *a, const Ast *arg)
{
    err(a->ev, "E0108", arg->span, "given twice", "`%s` is given twice", arg->name);
    return false;
}

static bool bind_open(PrimArgs *a, const Ast *arg, const Param1 *p)
{
    Eval *ev = a->ev;
    Param1 named = *p;
    for (size_t i = 0; i < a->open.n; i++)
        if (a->open.v[i].name == arg->name)
            return given_twice(a, arg);
    snprintf(named.name, sizeof named.name, "%s", arg->name);
    Value *v = NEW(ev->arena, Value);
    *v = arg_value(a, arg->kid[0], &named);
    vec_push(ev->arena, &a->open, (Field){arg->name, v, arg->span});
    return v->kind != V_POISON;
}

static bool bind_named(PrimArgs *a, const Ast *arg)
{
    Param1 p;
    size_t i = 0;
    for (const char *s = next_param(a->prim->params, &p); s; s = next_param(s, &p), i++) {
        if (p.open)
            return bind_open(a, arg, &p);
        if (strcmp(p.name, arg->name))
            continue;
        if (a->ast[i])
            return given_twice(a, arg);
        a->ast[i] = arg->kid[0];
        a->span[i] = arg->span;
        a->v[i] = arg_value(a, arg->kid[0], &p);
        return a->v[i].kind != V_POISON;
    }
    prim_unknown_argument(a->ev, a->prim, arg);
    return false;
}

static void one_too_many(PrimArgs *a, const Ast *arg)
{
    Diag *d = err(a->ev, "E0313", arg->span, "one too many", "too many arguments for `%s`", a->prim->name);
    diag_note(a->ev->ctx, d, "it is %s(%s)", a->prim->name, a->prim->params);
    if (!strcmp(a->prim->name, "normal"))
        diag_help(a->ev->ctx, d, "its mean is 0: `normal(std = %s)`", expr_text(a->ev, arg));
    Param1 p;
    size_t i = 0;
    for (const char *s = next_param(a->prim->params, &p); s; s = next_param(s, &p), i++)
        if (!strcmp(p.type, "shape") || (!strcmp(p.type, "list") && p.required))
            advise_extents(a->ev, d, a->call, i);
}

/* Whether there are more positional arguments than parameters; the first of them is said. */
static bool too_many(PrimArgs *a)
{
    const Ast *args = a->call->kid[1];
    Param1 p;
    size_t room = 0, n = 0;
    for (const char *s = next_param(a->prim->params, &p); s; s = next_param(s, &p), room++)
        if (p.variadic || p.open)
            return false;
    for (uint32_t i = 0; i < args->n; i++) {
        bool positional = args->kid[i]->kind != AST_NAMED && args->kid[i]->kind != AST_OFF;
        if (positional && n++ == room) {
            one_too_many(a, args->kid[i]);
            return true;
        }
    }
    return false;
}

static bool bind_positional(PrimArgs *a, const Ast *e, size_t *at)
{
    Param1 p;
    size_t i = 0;
    for (const char *s = next_param(a->prim->params, &p); s; s = next_param(s, &p), i++) {
        if (p.variadic) {
            Value v = arg_value(a, e, &p);
            a->rest[a->n_rest++] = v;
            return v.kind != V_POISON;
        }
        if (i < *at || a->ast[i] || p.open)
            continue;
        *at = i + 1;
        a->ast[i] = e;
        a->span[i] = e->span;
        a->v[i] = arg_value(a, e, &p);
        return a->v[i].kind != V_POISON;
    }
    one_too_many(a, e);
    return false;
}

static bool fill_defaults(PrimArgs *a)
{
    Param1 p;
    size_t i = 0;
    for (const char *s = next_param(a->prim->params, &p); s; s = next_param(s, &p), i++) {
        a->n = i + 1;
        if (a->ast[i] || p.variadic || p.open)
            continue;
        if (p.required) {
            argument_missing(a->ev, a->prim, a->call, p.name);
            return false;
        }
        a->v[i] = default_value(a->ev, p.def);
    }
    return true;
}

Value prim_call(Eval *ev, const Prim *prim, const Ast *e, Env *env, Scope *scope)
{
    const Ast *args = e->kid[1];
    for (size_t i = 0; !ev->build && i < tensor_prim_count; i++)
        if (prim == &tensor_prims[i]) {
            err(ev, "E0206", e->span, "", "`%s` works on tensors, which exist only inside a model", prim->name);
            return v_poison();
        }
    PrimArgs a = {.ev = ev, .prim = prim, .call = e, .env = env, .scope = scope};
    a.rest = NEW_ARRAY(ev->arena, Value, args->n + 1);
    bool ok = !too_many(&a);
    size_t at = 0;
    for (uint32_t i = 0; ok && i < args->n; i++) {
        const Ast *arg = args->kid[i];
        if (arg->kind == AST_OFF)
            continue;
        ok &= arg->kind == AST_NAMED ? bind_named(&a, arg) : bind_positional(&a, arg, &at);
    }
    if (!ok || !fill_defaults(&a))
        return v_poison();
    spend(ev, e->span, 1);
    if (ev->build) {
        ev->build->g->span = e->span;
        ev->build->g->name = scope ? scope->path : ev->build->g->name;
    }
    Value v = prim->run(&a);
    if (v.kind != V_NUM || isfinite(v.num))
        return v;
    err(ev, "E0208", e->span, "", "`%s` is not a finite number here", expr_text(ev, e));
    return v_poison();
}

/* ---- helpers ---- */

Graph *prim_graph(PrimArgs *a) { return a->ev->build->g; }

const Shape *prim_shape(PrimArgs *a, size_t i) { return shape_of(prim_graph(a), a->v[i].val); }

Value prim_fail(PrimArgs *a, const char *code, size_t i, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char text[512];
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    const Ast *arg = a->ast[i];
    Binding *b = arg && arg->kind == AST_ID ? env_find(a->env, arg->name) : NULL;
    bool given = b && b->is_param_of_block && b->arg_span.file && !in_library(a->ev, b->arg_span);
    err(a->ev, code, given ? b->arg_span : arg ? arg->span : a->call->span, "", "%s", text);
    return v_poison();
}

const char *prim_shape_text(PrimArgs *a, size_t i)
{
    Buf b = buf_new(a->ev->arena);
    shape_print(&b, prim_shape(a, i));
    return b.s;
}

bool prim_axis(PrimArgs *a, size_t i, uint8_t rank, int *axis)
{
    double k = a->v[i].num;
    if (a->v[i].kind != V_NUM) {
        prim_fail(a, "E0206", i, "an axis is a whole number, got %s", value_kind_name(&a->v[i]));
        return false;
    }
    if (!is_whole(k) || k < -rank || k > rank || k == 0) {
        Diag *d = err(a->ev, "E0318", a->ast[i] ? a->ast[i]->span : a->call->span, "",
                      "axis %s does not exist in a tensor of %d dimensions", value_text(a->ev, &a->v[i]), rank);
        if (rank)
            diag_note(a->ev->ctx, d, "axes count from 1 to %d, or from the end: -1 is the last, -%d the first", rank,
                      rank);
        if (k == 0 && rank)
            diag_help(a->ev->ctx, d, "write `1` for the first axis");
        return false;
    }
    *axis = (int)(k < 0 ? k + rank : k - 1);
    return true;
}

static bool axes_of(PrimArgs *a, size_t i, uint8_t rank, uint32_t *mask)
{
    *mask = 0;
    if (a->v[i].kind == V_NONE) {
        *mask = (1u << rank) - 1;
        return true;
    }
    Value one = a->v[i];
    const ValueList *l = one.kind == V_LIST ? one.list : NULL;
    size_t n = l ? l->n : 1;
    for (size_t k = 0; k < n; k++) {
        int axis;
        if (l)
            a->v[i] = l->v[k];
        bool ok = prim_axis(a, i, rank, &axis);
        a->v[i] = one;
        if (!ok)
            return false;
        if (*mask & 1u << axis) {
            prim_fail(a, "E0318", i, "axis %d is named twice", axis + 1);
            return false;
        }
        *mask |= 1u << axis;
    }
    return true;
}

/* Of argument i, whose numbers are of the other kind: what converts them. */
static bool other_numbers(PrimArgs *a, size_t i, const char *want, const char *got, const char *to)
{
    const Ast *e = a->ast[i] ? a->ast[i] : a->call;
    Diag *d = err(a->ev, "E0310", e->span, "", "`%s` needs %s, got a tensor of %s", a->prim->name, want, got);
    diag_help(a->ev->ctx, d, "convert it: `cast(%s, %s)`", a->ast[i] ? expr_text(a->ev, e) : "x", to);
    return false;
}

bool prim_real(PrimArgs *a, size_t i)
{
    return node_at(prim_graph(a), a->v[i].val)->dtype == DT_REAL ||
           other_numbers(a, i, "real numbers", "integers", "real");
}

bool prim_integer(PrimArgs *a, size_t i)
{
    return node_at(prim_graph(a), a->v[i].val)->dtype == DT_INT ||
           other_numbers(a, i, "integers", "real numbers", "int");
}

static bool list_numbers(PrimArgs *a, size_t i, const ValueList **out)
{
    const ValueList *l = a->v[i].list;
    for (size_t k = 0; k < l->n; k++)
        if (l->v[k].kind != V_NUM) {
            prim_fail(a, "E0206", i, "`%s` needs a list of numbers", a->prim->name);
            return false;
        }
    *out = l;
    return true;
}

/* ---- elementwise ---- */

/* Argument 0 of a function of numbers as a tensor, where it is no number. */
static Value number_to_tensor(PrimArgs *a)
{
    Value x = a->v[0];
    if (is_host_truth(&x))
        return prim_fail(a, "E0206", 0, "`%s` needs a number or a tensor, got %s", a->prim->name, value_kind_name(&x));
    if (x.kind == V_HOST && !a->ev->build)
        return prim_fail(a, "E0206", 0, "`%s` of a run-time number exists only inside a model, where it is a tensor",
                         a->prim->name);
    return a->v[0] = to_tensor(a->ev, x, a->span[0]);
}

static Value run_unary(PrimArgs *a)
{
    Value x = a->v[0];
    HostOp h = host_op_called(a->prim->name);
    if (x.kind == V_NUM) {
        double r = op_of_number(a->ev->ctx, (Op)a->prim->op, x.num);
        return isfinite(r) ? v_num(r) : prim_fail(a, "E0208", 0, "`%s` of %.6g is not a number", a->prim->name, x.num);
    }
    if (x.kind == V_HOST && is_host_number(&x) && h != HO_CONST)
        return v_host(host_op(a->ev->arena, h, x.host, NULL, NULL));
    x = number_to_tensor(a);
    if (x.kind == V_POISON)
        return x;
    if (a->prim->op == OP_STOP)
        return v_tensor(ir_stop(prim_graph(a), x.val, STOP_GRADIENT));
    return prim_real(a, 0) ? v_tensor(ir_unary(prim_graph(a), (Op)a->prim->op, x.val)) : v_poison();
}

static Value p_logit(PrimArgs *a)
{
    if (a->v[0].kind == V_NUM)
        return v_num(log(a->v[0].num / (1 - a->v[0].num)));
    Arena *arena = a->ev->arena;
    if (a->v[0].kind == V_HOST && is_host_number(&a->v[0])) {
        const HostExpr *p = a->v[0].host, *q = host_op(arena, HO_SUB, host_const(arena, 1), p, NULL);
        return v_host(host_op(arena, HO_LOG, host_op(arena, HO_DIV, p, q, NULL), NULL, NULL));
    }
    if (number_to_tensor(a).kind == V_POISON || !prim_real(a, 0))
        return v_poison();
    Graph *g = prim_graph(a);
    Val x = a->v[0].val, one = ir_fill(g, 1);
    return v_tensor(ir_unary(g, OP_LOG, ir_binary(g, OP_DIV, x, ir_binary(g, OP_SUB, one, x))));
}

/* ---- reductions and the overloaded max, min, sum, mean ---- */

static Value fold_list(PrimArgs *a, char what)
{
    const ValueList *l;
    if (!list_numbers(a, 0, &l))
        return v_poison();
    if (!l->n && what != '+')
        return prim_fail(a, "E0206", 0, "`%s` of an empty list", a->prim->name);
    double r = what == '+' || what == 'm' ? 0 : l->v[0].num;
    for (size_t i = 0; i < l->n; i++) {
        double x = l->v[i].num;
        r = what == '>' ? fmax(r, x) : what == '<' ? fmin(r, x) : r + x;
    }
    return v_num(what == 'm' ? r / (double)l->n : r);
}

/* A sum over no elements is 0; a mean, a largest one or a share of them is no number. */
static bool has_elements(PrimArgs *a, uint32_t axes)
{
    const Shape *s = prim_shape(a, 0);
    int axis = 0;
    while (axis < s->rank && (!(axes >> axis & 1) || s->d[axis].n))
        axis++;
    if (axis == s->rank)
        return true;
    prim_fail(a, "E0208", 0, "`%s` over axis %d of %s, which has no elements, has no value", a->prim->name, axis + 1,
              prim_shape_text(a, 0));
    return false;
}

static Value reduce(PrimArgs *a, char what, size_t over, size_t keep)
{
    a->v[0] = to_tensor(a->ev, a->v[0], a->span[0]);
    if (what == 'm' && a->v[0].kind == V_TENSOR) /* of integers it is a real number */
        a->v[0] = v_tensor(ir_cast(prim_graph(a), a->v[0].val, DT_REAL));
    if (a->v[0].kind == V_POISON || !prim_real(a, 0))
        return v_poison();
    Graph *g = prim_graph(a);
    uint32_t mask;
    if (!axes_of(a, over, prim_shape(a, 0)->rank, &mask) || (what != '+' && !has_elements(a, mask)))
        return v_poison();
    bool k = a->v[keep].kind == V_BOOL && a->v[keep].num != 0;
    Val x = a->v[0].val;
    if (what == '+')
        return v_tensor(ir_sum(g, x, mask, k));
    if (what == 'm')
        return v_tensor(ir_mean(g, x, mask, k));
    if (what == '>')
        return v_tensor(ir_max(g, x, mask, k));
    return v_tensor(ir_unary(g, OP_NEG, ir_max(g, ir_unary(g, OP_NEG, x), mask, k)));
}

/* `over` and `keep` speak of the axes of a tensor; where there is none they would be ignored. */
static bool no_axes(PrimArgs *a, size_t over, size_t keep, const char *what)
{
    size_t given = a->v[over].kind != V_NONE ? over : keep;
    if (a->v[over].kind == V_NONE && a->v[keep].num == 0)
        return true;
    prim_fail(a, "E0206", given, "`%s` of %s has no axes: `%s` means nothing here", a->prim->name, what,
              given == over ? "over" : "keep");
    return false;
}

static Value fold(PrimArgs *a, char what, size_t over, size_t keep)
{
    if (a->v[0].kind == V_LIST)
        return no_axes(a, over, keep, "a list") ? fold_list(a, what) : v_poison();
    return reduce(a, what, over, keep);
}

static Value p_sum(PrimArgs *a) { return fold(a, a->prim->name[0] == 's' ? '+' : 'm', 1, 2); }

static Value p_max(PrimArgs *a)
{
    bool up = !strcmp(a->prim->name, "max");
    Value x = a->v[0], y = a->v[1];
    if (y.kind == V_NONE)
        return fold(a, up ? '>' : '<', 2, 3);
    if (!no_axes(a, 2, 3, "two values"))
        return v_poison();
    if (x.kind == V_NUM && y.kind == V_NUM)
        return v_num(up ? fmax(x.num, y.num) : fmin(x.num, y.num));
    const HostExpr *h = to_host(a->ev, &x), *i = to_host(a->ev, &y);
    if (h && i)
        return v_host(host_op(a->ev->arena, up ? HO_MAX : HO_MIN, h, i, NULL));
    for (size_t k = 0; k < 2; k++)
        if (is_host_truth(&a->v[k]))
            return prim_fail(a, "E0206", k, "`%s` needs numbers or tensors, got %s", a->prim->name,
                             value_kind_name(&a->v[k]));
    Ast *kid[2] = {(Ast *)a->ast[0], (Ast *)a->ast[1]};
    Ast both = {.kind = AST_OP,
                .name = a->prim->name,
                .span = a->call->span,
                .name_span = a->call->kid[0]->span,
                .n = 2,
                .kid = kid};
    return tensor_binary(a->ev, &both, up ? OP_MAX : OP_MIN, x, y);
}

/* Whether all of some arguments are numbers that are known; else tensors or numbers of the run are among them. */
static bool all_static(const PrimArgs *a, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        if (a->v[i].kind != V_NUM)
            return false;
    return true;
}

static Value p_clamp(PrimArgs *a)
{
    double low = a->v[1].num, high = a->v[2].num;
    if (low > high)
        return prim_fail(a, "E0208", 1, "`clamp` needs low <= high");
    if (all_static(a, 0, 1))
        return v_num(fmin(fmax(a->v[0].num, low), high));
    Arena *arena = a->ev->arena;
    if (a->v[0].kind == V_HOST && is_host_number(&a->v[0]))
        return v_host(host_op(arena, HO_MIN, host_op(arena, HO_MAX, a->v[0].host, host_const(arena, low), NULL),
                              host_const(arena, high), NULL));
    a->v[0] = to_tensor(a->ev, a->v[0], a->span[0]);
    if (a->v[0].kind == V_POISON || !prim_real(a, 0))
        return v_poison();
    Graph *g = prim_graph(a);
    return v_tensor(ir_binary(g, OP_MIN, ir_binary(g, OP_MAX, a->v[0].val, ir_fill(g, low)), ir_fill(g, high)));
}

/* Of a tensor of integers and a whole number both become integers. */
static bool choices_to_tensors(PrimArgs *a)
{
    for (size_t i = 1; i < 3; i++) {
        const Value *other = &a->v[3 - i];
        Value whole = other->kind == V_TENSOR ? whole_tensor(a->ev, a->v[i], *other) : v_none();
        a->v[i] = whole.kind == V_TENSOR ? whole : to_tensor(a->ev, a->v[i], a->span[i]);
        if (a->v[i].kind == V_POISON)
            return false;
    }
    return true;
}

static Value p_where(PrimArgs *a)
{
    Value m = a->v[0];
    bool known = m.kind == V_NUM || m.kind == V_BOOL;
    if (known && all_static(a, 1, 3))
        return m.num != 0 ? a->v[1] : a->v[2];
    if (is_host_truth(&m) && m.kind == V_HOST && is_host_number(&a->v[1]) && is_host_number(&a->v[2]))
        return v_host(host_op(a->ev->arena, HO_IF, m.host, to_host(a->ev, &a->v[1]), to_host(a->ev, &a->v[2])));
    a->v[0] = to_tensor(a->ev, m, a->span[0]);
    if (a->v[0].kind == V_POISON || !choices_to_tensors(a) || !prim_real(a, 0))
        return v_poison();
    Shape s, t;
    Graph *g = prim_graph(a);
    if (node_at(g, a->v[1].val)->dtype != node_at(g, a->v[2].val)->dtype) {
        int i = node_at(g, a->v[1].val)->dtype == DT_INT ? 1 : 2;
        Diag *d = err(a->ev, "E0310", a->ast[i]->span, "integers",
                      "`where` chooses between a tensor of integers and one of real numbers");
        diag_help(a->ev->ctx, d, "convert the integers: `cast(%s, real)`", expr_text(a->ev, a->ast[i]));
        return v_poison();
    }
    bool choices = shape_broadcast(prim_shape(a, 1), prim_shape(a, 2), &s);
    if (!choices || !shape_broadcast(prim_shape(a, 0), &s, &t)) {
        int i = !choices ? 1 : 0, k = i || !shape_broadcast(prim_shape(a, 0), prim_shape(a, 2), &t) ? 2 : 1;
        shapes_differ(a->ev, a->call->kid[0]->span, "where", (const Ast *const[]){a->ast[i], a->ast[k]},
                      (const Value[]){a->v[i], a->v[k]});
        return v_poison();
    }
    return v_tensor(ir_where(g, a->v[0].val, a->v[1].val, a->v[2].val));
}

static bool maps_values(const Prim *p) { return p->op || p->run == p_max || p->run == p_where || p->run == p_clamp; }

static Value p_softmax(PrimArgs *a)
{
    int axis;
    if (!prim_real(a, 0) || !prim_axis(a, 1, prim_shape(a, 0)->rank, &axis) || !has_elements(a, 1u << axis))
        return v_poison();
    return v_tensor(ir_softmax(prim_graph(a), a->v[0].val, axis));
}

static Value p_logsumexp(PrimArgs *a)
{
    int axis;
    if (!prim_real(a, 0) || !prim_axis(a, 1, prim_shape(a, 0)->rank, &axis) || !has_elements(a, 1u << axis))
        return v_poison();
    return v_tensor(ir_logsumexp(prim_graph(a), a->v[0].val, axis, a->v[2].num != 0));
}

static Value p_cumsum(PrimArgs *a)
{
    int axis;
    if (!prim_real(a, 0) || !prim_axis(a, 1, prim_shape(a, 0)->rank, &axis))
        return v_poison();
    return v_tensor(ir_cumsum(prim_graph(a), a->v[0].val, axis, a->v[2].num != 0));
}

/* ---- static ---- */

static Value p_size(PrimArgs *a)
{
    if (a->v[0].kind == V_LIST)
        return v_num((double)a->v[0].list->n);
    return prim_fail(a, "E0206", 0, "`size` counts the entries of a list");
}

static Value p_near(PrimArgs *a) { return v_bool(fabs(a->v[0].num - a->v[1].num) <= a->v[2].num * fabs(a->v[1].num)); }

static Value p_mod_power(PrimArgs *a)
{
    int64_t base = (int64_t)a->v[0].num, e = (int64_t)a->v[1].num, m = (int64_t)a->v[2].num;
    if (m < 1 || m > INT32_MAX || e < 0)
        return prim_fail(a, "E0208", 2, "`mod_power` needs an exponent >= 0 and a modulus from 1 to 2^31 - 1");
    int64_t r = 1 % m;
    base = ((base % m) + m) % m;
    for (; e; e >>= 1, base = base * base % m)
        if (e & 1)
            r = r * base % m;
    return v_num((double)r);
}

static Value make_init(PrimArgs *a, InitKind kind, double x, double y)
{
    Init *i = NEW(a->ev->arena, Init);
    *i = (Init){.kind = kind, .a = x, .b = y};
    return (Value){.kind = V_INIT, .init = i};
}

static Value p_normal(PrimArgs *a)
{
    if (a->v[0].num < 0)
        return prim_fail(a, "E0208", 0, "a standard deviation cannot be negative");
    return make_init(a, INIT_NORMAL, a->v[0].num, 0);
}

static Value p_trunc_normal(PrimArgs *a)
{
    if (a->v[0].num < 0 || a->v[1].num <= 0)
        return prim_fail(a, "E0208", 0, "`trunc_normal` needs std >= 0 and cutoff > 0 (in units of std)");
    return make_init(a, INIT_TRUNC_NORMAL, a->v[0].num, a->v[1].num);
}

static Value p_uniform(PrimArgs *a)
{
    if (a->v[0].num > a->v[1].num)
        return prim_fail(a, "E0208", 0, "`uniform` needs low <= high");
    return make_init(a, INIT_UNIFORM, a->v[0].num, a->v[1].num);
}
static Value p_fill(PrimArgs *a) { return make_init(a, INIT_FILL, a->v[0].num, 0); }
static Value p_zeros(PrimArgs *a) { return make_init(a, INIT_FILL, 0, 0); }
static Value p_ones(PrimArgs *a) { return make_init(a, INIT_FILL, 1, 0); }

static Value p_eye(PrimArgs *a)
{
    Init *i = NEW(a->ev->arena, Init);
    *i = (Init){.kind = INIT_EYE};
    if (a->v[0].kind == V_NUM && a->v[0].num < 1)
        return prim_fail(a, "E0208", 0, "the size of `eye` must be at least 1, got %.6g", a->v[0].num);
    if (a->v[0].kind == V_DIM)
        return prim_fail(a, "E0206", 0, "the size of `eye` cannot depend on B or T");
    if (a->v[0].kind == V_NUM)
        i->a = a->v[0].num;
    return (Value){.kind = V_INIT, .init = i};
}

enum { RANGE_MOST = 100000 };

static Value p_matrix(PrimArgs *a) { return to_tensor(a->ev, a->v[0], a->span[0]); }

/* A description: kept as a record for whoever understands it (train, grow, sweep). */
Value prim_spec(PrimArgs *a)
{
    VEC(Field) f = {0};
    Param1 p;
    size_t i = 0;
    for (const char *s = next_param(a->prim->params, &p); s; s = next_param(s, &p), i++) {
        if (p.variadic || p.open || !a->ast[i])
            continue;
        Value *v = NEW(a->ev->arena, Value);
        *v = a->v[i];
        vec_push(a->ev->arena, &f, (Field){name_str(a->ev->ctx, p.name), v, a->span[i]});
    }
    for (i = 0; i < a->open.n; i++)
        vec_push(a->ev->arena, &f, a->open.v[i]);
    Value v = v_record(a->ev, a->prim->name, f.v, f.n);
    ((Record *)v.record)->span = a->call->span;
    v.kind = V_SPEC;
    return v;
}

static bool one_of_two(PrimArgs *a, size_t i, const char *what, const char *one, const char *other)
{
    bool fine = a->v[i].kind == V_WORD && (!strcmp(a->v[i].word, one) || !strcmp(a->v[i].word, other));
    if (!fine && a->v[i].kind != V_POISON)
        prim_fail(a, "E0205", i, "`%s` is %s or %s, got %s", what, one, other, value_text(a->ev, &a->v[i]));
    return fine;
}

static Value p_between(PrimArgs *a) { return one_of_two(a, 2, "scale", "linear", "log") ? prim_spec(a) : v_poison(); }

static Value p_draws(PrimArgs *a)
{
    return one_of_two(a, 2, "sequence", "random", "halton") ? prim_spec(a) : v_poison();
}

/* n numbers from the first to the last, both included, at equal distances or equal ratios. */
static Value p_range(PrimArgs *a)
{
    Eval *ev = a->ev;
    double low = a->v[0].num, high = a->v[1].num, n = a->v[2].num, round = a->v[4].num;
    bool rounded = a->v[4].kind == V_NUM;
    if (a->v[1].kind != V_NUM || a->v[2].kind != V_NUM) {
        Diag *d = err(ev, "E0104", a->call->kid[0]->span, "", "`range` needs its first and last number and how many");
        if (a->v[1].kind == V_NUM && ev->unit->file)
            diag_help(ev->ctx, d, "of a sweep `range(%.6g, %.6g, 3)` is three numbers, both ends included", low, high);
        advise_range(ev, d, a->call->kid[0]->span);
        return v_poison();
    }
    if (!is_whole(n) || n < 1 || n > RANGE_MOST)
        return prim_fail(a, "E0208", 2, "`n` must be a whole number from 1 to %d, got %s", RANGE_MOST,
                         value_text(ev, &a->v[2]));
    if (!one_of_two(a, 3, "scale", "linear", "log"))
        return v_poison();
    bool log = !strcmp(a->v[3].word, "log");
    if (log && (low <= 0 || high <= 0))
        return prim_fail(a, "E0208", low <= 0 ? 0 : 1, "a logarithmic range has numbers above 0");
    if (a->v[4].kind != V_NONE && !(rounded && round > 0))
        return prim_fail(a, "E0206", 4, "`round` must be a number above 0, got %s", value_text(ev, &a->v[4]));
    Value *v = NEW_ARRAY(ev->arena, Value, (size_t)n);
    for (size_t k = 0; k < (size_t)n; k++) {
        char text[40];
        double u = n > 1 ? (double)k / (n - 1) : 0, x = log ? low * pow(high / low, u) : low + (high - low) * u;
        snprintf(text, sizeof text, log && !rounded ? "%.6g" : "%.12g", rounded ? round * rint(x / round) : x);
        v[k] = v_num(strtod(text, NULL));
    }
    return v_list(ev, v, (size_t)n);
}

static Value p_preserves(PrimArgs *a)
{
    if (a->v[0].kind != V_NUM && a->v[0].kind != V_NONE)
        return prim_fail(a, "E0206", 0, "`tolerance` must be a number or none, got %s", value_kind_name(&a->v[0]));
    return prim_spec(a);
}

static Value p_alive(PrimArgs *a)
{
    const Value *v = &a->v[0];
    if (v->kind != V_NONE && !(v->kind == V_NUM && v->num == floor(v->num) && v->num >= 0))
        return prim_fail(a, "E0206", 0, "`steps` must be a whole number from 0 or none, got %s",
                         v->kind == V_NUM ? value_text(a->ev, v) : value_kind_name(v));
    return prim_spec(a);
}

/* ---- the table ---- */

static const Prim elementwise[] = {
#define ROW_UNARY(id, text, lang, doc) {text, "x: any", run_unary, doc, OP_##id, !lang},
#define ROW_LEAF(id, text, lang, doc)
#define ROW_BINARY    ROW_LEAF
#define ROW_TERNARY   ROW_LEAF
#define ROW_VIEW      ROW_LEAF
#define ROW_MOVE      ROW_LEAF
#define ROW_REDUCE    ROW_LEAF
#define ROW_MATMUL    ROW_LEAF
#define ROW_INDEX     ROW_LEAF
#define ROW_ATTENTION ROW_LEAF
#define ROW_AUX       ROW_LEAF
#define OP(id, text, class, n, zero, slope, real, integer, vector, cost, lang, doc, ...)                               \
    ROW_##class(id, text, lang, doc)
#include "compiler/graph/ops.def"
#undef OP
};

static const Prim general[] = {
    {"logit", "x: any", p_logit, "log(x / (1 - x))", 0, false},
    {"sum", "x: any, over: any = none, keep: bool = false", p_sum,
     "sum of a list, or of a tensor over axes (all by default)", 0, false},
    {"mean", "x: any, over: any = none, keep: bool = false", p_sum, "mean of a list, or of a tensor over axes", 0,
     false},
    {"max", "x: any, y: any = none, over: any = none, keep: bool = false", p_max,
     "the larger of two; of a list; of a tensor over axes", 0, false},
    {"min", "x: any, y: any = none, over: any = none, keep: bool = false", p_max,
     "the smaller of two; of a list; of a tensor over axes", 0, false},
    {"where", "mask: any, a: any, b: any", p_where, "a where the mask is not 0, else b", 0, false},
    {"clamp", "x: any, low: float, high: float", p_clamp, "limited to [low, high]", 0, false},
    {"softmax", "x: tensor, over: int = -1", p_softmax, "exp(x) / sum(exp(x)) along an axis", 0, false},
    {"logsumexp", "x: tensor, over: int = -1, keep: bool = false", p_logsumexp, "log(sum(exp(x))) along an axis", 0,
     false},
    {"cumsum", "x: tensor, over: int = -1, reverse: bool = false", p_cumsum, "running sum along an axis", 0, false},
    {"size", "x: any", p_size, "number of entries of a list", 0, false},
    {"near", "a: float, b: float, tol: float", p_near, "|a - b| <= tol |b|", 0, false},
    {"mod_power", "base: int, exponent: int, modulus: int", p_mod_power, "base^exponent mod modulus, exactly (static)",
     0, false},
    {"normal", "std: float", p_normal, "initialiser: normal with mean 0", 0, false},
    {"trunc_normal", "std: float, cutoff: float", p_trunc_normal,
     "initialiser: normal cut at cutoff standard deviations", 0, false},
    {"uniform", "low: float, high: float", p_uniform, "initialiser: uniform in [low, high)", 0, false},
    {"fill", "value: float", p_fill, "initialiser: one value everywhere", 0, false},
    {"zeros", "", p_zeros, "initialiser: 0 everywhere", 0, false},
    {"ones", "", p_ones, "initialiser: 1 everywhere", 0, false},
    {"eye", "n: dim = none", p_eye, "initialiser: 1 on the diagonal, 0 elsewhere", 0, false},
    {"matrix", "rows: list", p_matrix, "a constant tensor from a nested list", 0, false},
    {"text_file", "path: text, val: float = 0, separator: any = none", prim_spec,
     "data: one text file; the last share `val` is held out; documents begin with the character `separator`", 0, false},
    {"token_files",
     "path: text, dtype: word = none, header: word = none, val: float = 0, val_path: text = none, separator: any = "
     "none",
     prim_spec,
     "data: shards of token ids; dtype u16 or u32, none where the files say it; header llm_c, npy or megatron, none "
     "where there is "
     "none; documents begin with the id `separator`",
     0, false},
    {"arrays", "val: float = 0, *: text", prim_spec,
     "data: .npy files by the names of the model's inputs, an example a row; the share `val` of them, drawn once, is "
     "held out",
     0, false},
    {"bytes", "", prim_spec, "tokenizer: one token per byte, 256 of them", 0, false},
    {"chars", "", prim_spec, "tokenizer: one token per distinct character of the text", 0, false},
    {"file", "path: text, merges: text = none, split: text = none, special: list = none", prim_spec,
     "tokenizer: a tokenizer.json; ranks of tiktoken, or a vocabulary with its `merges`, cut by the pattern `split`, "
     "with `special` "
     "tokens behind them",
     0, false},
    {"run",
     "path: text, new: word = none, grown: word = none, cut: word = none, left: word = none, last: bool = false, "
     "preserves: any = none",
     prim_spec,
     "start: the weights of a run or of its checkpoint; `new = draw`, `grown = draw`, `cut = drop` and `left = drop` "
     "allow what else is an error",
     0, false},
    {"weights", "path: text, new: word = none, grown: word = none, cut: word = none, left: word = none", prim_spec,
     "start: the weights of a safetensors file, or of the shards that a .index.json lists, under the paths of the "
     "model or the names of a `names` table",
     0, false},
    {"mixed", "compute: word, master: word", prim_spec, "precision: products in `compute`, weights in `master`", 0,
     false},
    {"ema", "decay: number", prim_spec,
     "average of the weights: after each step, decay times itself plus 1 - decay times the weights", 0, false},
    {"cosine", "peak: number, floor: number, warmup: length = 0, total: length = none", prim_spec,
     "schedule: linear warm-up, then half a cosine to floor", 0, false},
    {"power", "peak: number, exponent: float, scale: number = none, warmup: length = 0", prim_spec,
     "schedule: min(peak, scale * tokens^exponent) after warm-up", 0, false},
    {"wsd", "peak: number, warmup: length = 0, decay: length, floor: number = 0, total: length = none", prim_spec,
     "schedule: warm-up, constant, linear decay over the last `decay`", 0, false},
    {"dense", "mlp_matrices: float, expansion: float", prim_spec,
     "match: parameters of a dense model of constant width", 0, false},
    {"routed", "experts: float, ratio: float", prim_spec,
     "match: parameters of a mixture of experts; ratio = expert width / d", 0, false},
    {"plateau", "value: number, window: length, less_than: number", prim_spec,
     "trigger: the mean of the value over a window is not below that over the window before by this share", 0, false},
    {"preserves", "tolerance: any", p_preserves, "growth claim: outputs change by at most this (or `none`)", 0, false},
    {"alive", "steps: any", p_alive,
     "growth claim: every new weight has a gradient within this many steps (or `none`: some never learn)", 0, false},
    {"range", "first: float, last: any = none, n: any = none, scale: word = linear, round: any = none", p_range,
     "a list of n numbers from the first to the last, both included, at equal distances, or with scale = log at equal "
     "ratios",
     0, false},
    {"between", "low: any, high: any, scale: word = linear, round: any = none, n: any = none", p_between,
     "sweep axis: drawn between two numbers, evenly or evenly in the logarithm, as multiples of `round`; with n lists "
     "of so many",
     0, false},
    {"draws", "points: any, seed: any = none, sequence: word = random", p_draws,
     "of `random` in a sweep: so many points, of random numbers or of the Halton sequence", 0, false},
    {"halving", "rungs: list, keep: any, by: number = none", prim_spec,
     "of `prune` in a sweep: at each rung the best share of the points goes on", 0, false},
    {"table", "rows: any, columns: any, value: any, spread: any = none", prim_spec, "sweep report", 0, false},
};

static bool search(const Prim *rows, size_t n, const char *name, const Prim **out)
{
    for (size_t i = 0; i < n; i++)
        if (rows[i].name[0] == name[0] && !rows[i].hidden && !strcmp(rows[i].name, name)) {
            *out = &rows[i];
            return true;
        }
    return false;
}

const Prim *prim_find(const char *name)
{
    const Prim *p = NULL;
    if (search(general, COUNT_OF(general), name, &p) || search(elementwise, COUNT_OF(elementwise), name, &p))
        return p;
    if (!search(tensor_prims, tensor_prim_count, name, &p))
        search(width_prims, width_prim_count, name, &p);
    return p;
}

const Prim *schedule_prim(const char *name)
{
    static const Prim rows[] = {
        {"linear", "peak: number, floor: number, warmup: length = 0, total: length = none", prim_spec,
         "schedule: linear warm-up, then a straight line to floor", 0, false},
        {"constant", "peak: number, warmup: length = 0", prim_spec, "schedule: linear warm-up, then peak", 0, false}};
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (!strcmp(rows[i].name, name))
            return &rows[i];
    return NULL;
}

size_t prim_count(void) { return COUNT_OF(general) + COUNT_OF(elementwise) + tensor_prim_count + width_prim_count; }

const Prim *prim_at(size_t i)
{
    if (i < COUNT_OF(general))
        return &general[i];
    i -= COUNT_OF(general);
    if (i < COUNT_OF(elementwise))
        return &elementwise[i];
    i -= COUNT_OF(elementwise);
    return i < tensor_prim_count ? &tensor_prims[i] : &width_prims[i - tensor_prim_count];
}
