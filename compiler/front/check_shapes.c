/* check_shapes.c - shapes against each other: of the tensors that a block is applied to, and what it returns, against what it
 * declares; of the operands of an operator.
 *
 * In:  a block's definition, tensors.     Out: its names of tensors and of extents, bound; or a diagnostic.
 * The one idea: the first tensor with an extent of a name says how long it is, each later one is compared with it. Where operands
 * do not fit, what would fit is tried: another axis, a transpose, another order, another declaration.
 */
#include "attribute.h"
#include "check.h"

/* ---- what would fit ---- */

/* An extent under its name in the block that is evaluated, where exactly one name of it is so long; else as a number. */
static const char *extent_word(Eval *ev, Dim extent)
{
    Buf b = buf_new(ev->arena);
    Name name = NULL;
    Env *env = ev->frame && ev->frame->env ? *ev->frame->env : NULL;
    for (; env && !env->block_edge && !env->file; env = env->up) {
        const Binding *bd = env->binding;
        Dim is = {-1, 0, 0};
        if (bd && (bd->is_dim || bd->is_param_of_block) && bd->state == BIND_READY)
            is = bd->value.kind == V_DIM ? bd->value.dim : bd->value.kind == V_NUM ? DIM((int64_t)bd->value.num) : is;
        if (!dim_eq(is, extent) || bd->name == name)
            continue;
        if (name || !dim_static(extent)) {
            name = NULL;
            break;
        }
        name = bd->name;
    }
    if (name)
        return name;
    dim_print(&b, extent);
    return b.s;
}

static const char *shape_text(Eval *ev, const Shape *s)
{
    Buf b = buf_new(ev->arena);
    shape_print(&b, s);
    return b.s;
}

/* Counted from the last, 1, the extents in which two shapes do not fit each other; 0: there are none. */
static int odd_pair(const Shape *s, const Shape *t)
{
    for (int k = 1; k <= s->rank && k <= t->rank; k++) {
        Dim x = s->d[s->rank - k], y = t->d[t->rank - k];
        if (!dim_eq(x, y) && !dim_eq(x, DIM(1)) && !dim_eq(y, DIM(1)))
            return k;
    }
    return 0;
}

const char *odd_extents(Eval *ev, const Shape *s, const Shape *t)
{
    static const char *const place[] = {"last", "second to last", "third to last"};
    int k = odd_pair(s, t);
    Buf b = buf_new(ev->arena);
    if (!k)
        return "";
    if (k <= (int)COUNT_OF(place))
        buf_printf(&b, "the %s extents, ", place[k - 1]);
    else
        buf_printf(&b, "the %d-th to last extents, ", k);
    dim_print(&b, s->d[s->rank - k]);
    buf_puts(&b, " and ");
    dim_print(&b, t->d[t->rank - k]);
    buf_puts(&b, ", differ");
    return b.s;
}

/* An operand as it stands beside `@` or in front of `.T`. */
static const char *operand(Eval *ev, const Ast *e)
{
    bool loose = e->kind == AST_OP || e->kind == AST_NEG || e->kind == AST_COND || e->kind == AST_NOT;
    return loose ? arena_printf(ev->arena, "(%s)", expr_text(ev, e)) : expr_text(ev, e);
}

static Shape with_one(const Shape *s, int at)
{
    Shape out = *s;
    out.rank++;
    for (int k = out.rank - 1; k > at; k--)
        out.d[k] = out.d[k - 1];
    out.d[at] = DIM(1);
    return out;
}

static Shape swapped(const Shape *s)
{
    Shape out = *s;
    out.d[s->rank - 1] = s->d[s->rank - 2];
    out.d[s->rank - 2] = s->d[s->rank - 1];
    return out;
}

/* Whether the expression is `sum(x, over = ...)` or another one that drops axes and could keep them. */
static bool drops_axes(const Ast *e)
{
    const Prim *p = e->kind == AST_CALL && e->kid[0]->kind == AST_ID ? prim_find(e->kid[0]->name) : NULL;
    bool over = false, keep = false;
    for (uint32_t i = 0; p && i < e->kid[1]->n; i++) {
        const Ast *arg = e->kid[1]->kid[i];
        over |= arg->kind == AST_NAMED ? !strcmp(arg->name, "over") : i == 1;
        keep |= arg->kind == AST_NAMED && !strcmp(arg->name, "keep");
    }
    return over && !keep && strstr(p->params, "keep: bool");
}

/* An axis of extent 1 in one place, and no other, makes `s` fit `t`. */
static bool advise_axis(Eval *ev, Diag *d, const Ast *e, const Shape *s, const Shape *t)
{
    int found = -1;
    for (int at = 0; at <= s->rank && s->rank < MAX_RANK; at++) {
        Shape more = with_one(s, at), out;
        if (!shape_broadcast(&more, t, &out))
            continue;
        if (found >= 0)
            return false;
        found = at;
    }
    if (found < 0)
        return false;
    const char *text = expr_text(ev, e);
    if (drops_axes(e)) {
        const char *with = arena_printf(ev->arena, "%.*s, keep = true)", (int)strlen(text) - 1, text);
        diag_fix(ev->ctx, d, e->span, with, FIX_CERTAIN, "keep the axis, with the extent 1: `%s`", with);
        return true;
    }
    Shape more = with_one(s, found);
    diag_help(ev->ctx, d, "with one axis more it fits: `unsqueeze(%s, %d)` is %s", text,
              found == s->rank ? -1 : found + 1, shape_text(ev, &more));
    return true;
}

/* The `param` of the block's body that the expression names, or NULL. */
static const Ast *declaration(Eval *ev, const Ast *e)
{
    const Ast *body = ev->frame && e->kind == AST_ID ? ev->frame->def->ast->kid[3] : NULL;
    for (uint32_t i = 0; body && i < body->n; i++)
        if (body->kid[i]->kind == AST_PARAM && body->kid[i]->name == e->name)
            return body->kid[i];
    return NULL;
}

/* Weights are declared with other extents; *fits: those that they should have. */
static bool advise_param(Eval *ev, Diag *d, const Ast *e, const Shape *fits)
{
    const Ast *param = declaration(ev, e);
    Buf b = buf_new(ev->arena);
    for (int k = 0; k < fits->rank; k++) {
        if (!dim_static(fits->d[k]))
            return false;
        buf_printf(&b, "%s%s", k ? ", " : "", extent_word(ev, fits->d[k]));
    }
    if (param)
        diag_help(ev->ctx, d, "it fits when it is declared so: `param %s : [%s] = %s`", e->name, b.s,
                  expr_text(ev, param->kid[1]));
    return param != NULL;
}

/* Tensors that differ in the last extent alone: a linear layer gives one of them that of the other. */
static void advise_linear(Eval *ev, Diag *d, const Ast *const e[2], const Shape *const s[2])
{
    Env *env = ev->frame && ev->frame->env ? *ev->frame->env : NULL;
    if (!env || !env_find(env, name_str(ev->ctx, "linear")) || s[0]->rank < 2 || s[1]->rank < 2)
        return;
    Shape first = *s[0], second = *s[1], out;
    Dim extent[2] = {first.d[--first.rank], second.d[--second.rank]};
    int i = e[0]->kind != AST_ID && e[1]->kind == AST_ID; /* the one that has a name */
    if (dim_static(extent[0]) && dim_static(extent[1]) && shape_broadcast(&first, &second, &out))
        diag_help(ev->ctx, d, "a linear layer makes `%s` as wide: `let proj = linear(out = %s)`, then `proj(%s)`",
                  expr_text(ev, e[i]), extent_word(ev, extent[1 - i]), expr_text(ev, e[i]));
}

void shapes_differ(Eval *ev, Span at, const char *what, const Ast *const e[2], const Value v[2])
{
    const Shape *s[2] = {shape_of(ev->build->g, v[0].val), shape_of(ev->build->g, v[1].val)};
    Diag *d = err(ev, "E0311", at, odd_extents(ev, s[0], s[1]), "shapes do not match in `%s`", what);
    for (int i = 0; i < 2; i++)
        diag_label(ev->ctx, d, e[i]->span, "%s", shape_words(ev, &v[i]));
    diag_note(ev->ctx, d, "dimensions are compared from the last; each pair must be equal or one of them 1");
    for (int i = 1; i >= 0; i--) {
        const Shape *t = s[1 - i];
        Shape turned = s[i]->rank >= 2 ? swapped(s[i]) : *s[i], fits = {.rank = s[i]->rank}, out;
        for (int k = 1; k <= s[i]->rank && s[i]->rank <= t->rank; k++)
            fits.d[s[i]->rank - k] = t->d[t->rank - k];
        if (s[i]->rank >= 2 && shape_broadcast(&turned, t, &out)) {
            diag_help(ev->ctx, d, "the transpose fits: `%s.T` is %s", operand(ev, e[i]), shape_text(ev, &turned));
            return;
        }
        if (advise_axis(ev, d, e[i], s[i], t) || (s[i]->rank <= t->rank && advise_param(ev, d, e[i], &fits)))
            return;
    }
    advise_linear(ev, d, e, s);
}

/* ---- products ---- */

static Diag *no_matrices(Eval *ev, const Ast *e, const Value v[2], const Shape *const s[2])
{
    const char *text[2] = {expr_text(ev, e->kid[0]), expr_text(ev, e->kid[1])};
    Diag *d = err(ev, "E0301", e->span, "", "`@` needs matrices, got %s and %s", shape_words(ev, &v[0]),
                  shape_words(ev, &v[1]));
    Dim last[2] = {s[0]->rank ? s[0]->d[s[0]->rank - 1] : DIM(0), s[1]->rank ? s[1]->d[s[1]->rank - 1] : DIM(0)};
    bool row = s[0]->rank == 1 && s[1]->rank >= 2 && dim_eq(last[0], s[1]->d[s[1]->rank - 2]);
    if (!s[0]->rank || !s[1]->rank)
        diag_help(ev->ctx, d, "a number is multiplied by `*`: `%s * %s`", operand(ev, e->kid[0]),
                  operand(ev, e->kid[1]));
    else if (row)
        diag_help(ev->ctx, d, "make a row of it: `unsqueeze(%s, 1) @ %s`", text[0], operand(ev, e->kid[1]));
    else if (dim_eq(last[0], last[1]))
        diag_help(ev->ctx, d, "a product with a vector is a sum: `sum(%s * %s, over = -1)`", operand(ev, e->kid[0]),
                  operand(ev, e->kid[1]));
    else
        diag_help(ev->ctx, d, "use `sum(a * b, over = -1)` for a product of vectors");
    return d;
}

static bool product_fits(const Shape *s, const Shape *t)
{
    Shape lead[2] = {*s, *t}, out;
    lead[0].rank -= 2;
    lead[1].rank -= 2;
    return dim_eq(s->d[s->rank - 1], t->d[t->rank - 2]) && shape_broadcast(&lead[0], &lead[1], &out);
}

/* An operand, transposed where that is wanted; `tight`: as it stands behind `@`. */
static const char *turned(Eval *ev, const Ast *e, bool transpose, bool tight)
{
    if (transpose && e->kind == AST_FIELD && !strcmp(e->name, "T"))
        return expr_text(ev, e->kid[0]);
    return arena_printf(ev->arena, "%s%s", tight ? operand(ev, e) : expr_text(ev, e), transpose ? ".T" : "");
}

/* Another order or a transpose: x @ W.T, W.T @ x, ... */
static bool advise_order(Eval *ev, Diag *d, const Ast *e, const Shape *const s[2])
{
    static const struct {
        bool swap, turn; /* the operands change places; the right one is transposed */
    } ways[] = {{false, true}, {true, false}, {true, true}, {false, false}};
    /* what is multiplied stands left of its weights */
    const char *order = s[0]->rank == 2 && s[1]->rank > 2 ? "2103" : "0123";
    for (size_t i = 0; i < COUNT_OF(ways); i++) {
        int way = order[i] - '0';
        bool swap = ways[way].swap, turn = ways[way].turn, first = way == 3; /* a.T @ b */
        int left = swap ? 1 : 0, right = 1 - left;
        Shape a = first ? swapped(s[left]) : *s[left], b = turn ? swapped(s[right]) : *s[right];
        if (!product_fits(&a, &b))
            continue;
        const char *text = arena_printf(ev->arena, "%s @ %s", turned(ev, e->kid[left], first, swap || first),
                                        turned(ev, e->kid[right], turn, true));
        diag_help(ev->ctx, d,
                  strstr(text, ".T") ? "multiply by the transpose: `%s`"
                  : swap             ? "in the other order: `%s`"
                                     : "without the transpose: `%s`",
                  text);
        return true;
    }
    return false;
}

Diag *product_differs(Eval *ev, const Ast *e, const Value v[2])
{
    const Shape *s[2] = {shape_of(ev->build->g, v[0].val), shape_of(ev->build->g, v[1].val)};
    if (s[0]->rank < 2 || s[1]->rank < 2)
        return no_matrices(ev, e, v, s);
    Dim inner = s[0]->d[s[0]->rank - 1], rows = s[1]->d[s[1]->rank - 2];
    Shape lead[2] = {*s[0], *s[1]};
    lead[0].rank -= 2;
    lead[1].rank -= 2;
    Buf label = buf_new(ev->arena);
    bool inner_fits = dim_eq(inner, rows);
    if (inner_fits) {
        buf_printf(&label, "leading extents %s and %s differ", shape_text(ev, &lead[0]), shape_text(ev, &lead[1]));
    } else {
        buf_puts(&label, "inner dimensions ");
        dim_print(&label, inner);
        buf_puts(&label, " and ");
        dim_print(&label, rows);
        buf_puts(&label, " differ");
    }
    Diag *d = err(ev, "E0301", e->name_span, label.s, "shapes do not match in `@`");
    for (int i = 0; i < 2; i++)
        diag_label(ev->ctx, d, e->kid[i]->span, "%s", shape_words(ev, &v[i]));
    Shape more = s[0]->rank < MAX_RANK ? with_one(s[0], s[0]->rank - 2) : *s[0], fits = *s[1];
    fits.d[fits.rank - 2] = inner;
    if (inner_fits) {
        diag_note(ev->ctx, d,
                  "axes in front of the last two are compared from the last of them; each pair must be equal "
                  "or one of them 1");
        if (product_fits(&more, s[1]))
            diag_help(ev->ctx, d, "for a product with each of the matrices: `unsqueeze(%s, %d) @ %s`",
                      expr_text(ev, e->kid[0]), s[0]->rank - 1, operand(ev, e->kid[1]));
        return d;
    }
    diag_note(ev->ctx, d, "`a @ b` needs the last dimension of `a` to equal the second-to-last of `b`");
    if (!advise_order(ev, d, e, s))
        advise_param(ev, d, e->kid[1], &fits);
    return d;
}

/* ---- blocks ---- */

static void shape_mismatch(Eval *ev, const BlockDef *d, const Ast *par, const Value *x, Span at, const char *why)
{
    Buf got = buf_new(ev->arena);
    shape_print(&got, shape_of(ev->build->g, x->val));
    Diag *diag = err(ev, "E0312", at, "", "`%s` takes %s : %s, got %s", d->ast->name, par->name,
                     expr_text(ev, par->kid[0]), got.s);
    diag_note(ev->ctx, diag, "%s", why);
    diag_related(ev->ctx, diag, par->span, "declared here");
}

static bool bind_dim(Eval *ev, const Ast *dim, Dim extent, Env **env, Scope *scope, const char **why)
{
    Value have;
    if (dim->kind == AST_ID) {
        if (!strcmp(dim->name, "_"))
            return true;
        Binding *b = env_find_local(*env, dim->name);
        if (!b || !(b->is_dim || b->is_param_of_block)) {
            Binding *n = binding_value(ev, dim->name, v_dim(extent), dim->span);
            n->is_dim = true;
            *env = env_new(ev, *env, n);
            return true;
        }
        have = binding_get(ev, b, scope);
    } else {
        have = eval(ev, dim, *env, scope);
    }
    Dim want;
    if (have.kind == V_POISON || !value_dim(ev, &have, dim->span, expr_text(ev, dim), &want)) {
        *why = NULL;
        return false;
    }
    if (dim_eq(want, extent))
        return true;
    Buf b = buf_new(ev->arena);
    buf_printf(&b, "`%s` is ", expr_text(ev, dim));
    dim_print(&b, want);
    buf_puts(&b, " here, the tensor has ");
    dim_print(&b, extent);
    *why = b.s;
    return false;
}

static bool bind_shape(Eval *ev, const BlockDef *d, const Ast *par, Value *x, Env **env, Scope *scope, Span at)
{
    const Ast *type = par->kid[0];
    const Shape *s = shape_of(ev->build->g, x->val);
    uint32_t i = 0;
    uint8_t lead = 0;
    const char *why = NULL;
    if (type->n && type->kid[0]->kind == AST_DOTS) {
        i = 1;
        if (type->n - 1 > s->rank) {
            shape_mismatch(ev, d, par, x, at, "the tensor has too few dimensions");
            return false;
        }
        lead = (uint8_t)(s->rank - (type->n - 1));
        Value v[MAX_RANK];
        for (uint8_t k = 0; k < lead; k++)
            v[k] = v_dim(s->d[k]);
        const ValueList *had = env_dots(*env);
        if (had) {
            bool same = had->n == lead;
            for (uint8_t k = 0; same && k < lead; k++)
                same = value_equal(&had->v[k], &v[k]);
            if (!same) {
                shape_mismatch(
                    ev, d, par, x, at,
                    "`..` is the same everywhere in a block, and another tensor has other leading dimensions");
                return false;
            }
        } else {
            Env *e = env_new(ev, *env, NULL);
            e->dots = v_list(ev, v, lead).list;
            *env = e;
        }
    } else if (type->n != s->rank) {
        shape_mismatch(ev, d, par, x, at, "the number of dimensions differs");
        return false;
    }
    for (; i < type->n; i++)
        if (!bind_dim(ev, type->kid[i], s->d[lead++], env, scope, &why)) {
            if (why)
                shape_mismatch(ev, d, par, x, at, why);
            return false;
        }
    x->shape_text = expr_text(ev, type);
    return true;
}

bool block_bind_tensors(Eval *ev, const BlockDef *d, const Value *x, size_t n, Env **env, Scope *scope, Span at)
{
    const Ast *params = d->ast->kid[1];
    size_t want = params ? params->n : 0;
    if (n != want) {
        Diag *diag = err(ev, "E0313", at, "", "`%s` is applied to %zu tensor%s, got %zu", d->ast->name, want,
                         want == 1 ? "" : "s", n);
        diag_help(ev->ctx, diag, "configuration goes by name: `%s(name = value)(x)`", d->ast->name);
        return false;
    }
    for (uint32_t i = 0; i < want; i++) {
        const Ast *par = params->kid[i];
        Value v = x[i];
        if (v.kind == V_POISON)
            return false;
        if (par->kid[0]->kind == AST_LIST) {
            v = to_tensor(ev, v, at);
            if (v.kind == V_POISON || !bind_shape(ev, d, par, &v, env, scope, at))
                return false;
        }
        Binding *b = binding_value(ev, par->name, v, par->name_span);
        b->prefix = scope->path;
        *env = env_new(ev, *env, b);
    }
    return true;
}

/* Where the block returns, and what of the declared shape is otherwise. */
static void say_result(Eval *ev, Diag *diag, const BlockDef *d, const Ast *type, const Shape *s, Env *env, Scope *scope)
{
    const Ast *body = d->ast->kid[3], *last = body && body->n ? body->kid[body->n - 1] : NULL;
    for (uint32_t i = 1; i <= type->n && i <= s->rank; i++) { /* from the last */
        const Ast *dim = type->kid[type->n - i];
        size_t before = diag_count(ev->ctx);
        Value v = dim->kind == AST_DOTS ? v_none() : eval(ev, dim, env, scope);
        Dim want;
        bool known = (v.kind == V_NUM || v.kind == V_DIM) && value_dim(ev, &v, dim->span, "", &want);
        diag_truncate(ev->ctx, before);
        if (!known)
            break;
        if (dim_eq(want, s->d[s->rank - i]))
            continue;
        Buf is = buf_new(ev->arena), got = buf_new(ev->arena);
        dim_print(&is, want);
        dim_print(&got, s->d[s->rank - i]);
        diag_note(ev->ctx, diag, "`%s` is %s here, and %s is returned", expr_text(ev, dim), is.s, got.s);
        if (i == 1 && dim->kind == AST_ID && env_find(env, name_str(ev->ctx, "linear")) && s->rank > 1)
            diag_help(ev->ctx, diag,
                      "end with a layer that makes it so wide, `let down = linear(out = %s)`, or declare %s", dim->name,
                      shape_text(ev, s));
        break;
    }
    if (last && last->kind == AST_RETURN && last->span.file == type->span.file)
        diag_label(ev->ctx, diag, last->kid[0]->span, "%s", shape_text(ev, s));
}

bool block_check_result(Eval *ev, const BlockDef *d, Value *r, Env *env, Scope *scope, Span at)
{
    const Ast *type = d->ast->kid[2];
    if (!type || type->kind != AST_LIST || r->kind == V_POISON)
        return true;
    if (r->kind != V_TENSOR)
        *r = to_tensor(ev, *r, at);
    if (r->kind != V_TENSOR)
        return false;
    const Shape *s = shape_of(ev->build->g, r->val);
    const ValueList *dots = env_dots(env);
    size_t lead = 0;
    bool fits = true;
    uint32_t i = 0;
    if (type->n && type->kid[0]->kind == AST_DOTS) {
        lead = dots ? dots->n : 0;
        i = 1;
    }
    fits = s->rank == lead + type->n - i;
    for (size_t k = 0; fits && k < lead; k++) {
        Value v = v_dim(s->d[k]);
        fits = value_equal(&v, &dots->v[k]);
    }
    for (size_t k = lead; fits && i < type->n; i++, k++) {
        const Ast *dim = type->kid[i];
        if (dim->kind == AST_ID && !strcmp(dim->name, "_"))
            continue;
        Value v = eval(ev, dim, env, scope);
        Dim want;
        if (v.kind == V_POISON || !value_dim(ev, &v, dim->span, expr_text(ev, dim), &want))
            return false;
        fits = dim_eq(want, s->d[k]);
    }
    if (!fits) {
        Buf got = buf_new(ev->arena);
        shape_print(&got, s);
        Diag *diag =
            err(ev, "E0314", type->span, "", "`%s` returns %s, declared %s", d->ast->name, got.s, expr_text(ev, type));
        say_result(ev, diag, d, type, s, env, scope);
        diag_related(ev->ctx, diag, at, "applied here");
        return false;
    }
    r->shape_text = expr_text(ev, type);
    return true;
}
