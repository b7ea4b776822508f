/* check_shapes.c - the tensors that a block is applied to, and what it returns, against the shapes that it declares.
 *
 * In:  a block's definition, tensors.     Out: its names of tensors and of extents, bound; or a diagnostic.
 * The one idea: the first tensor with an extent of a name says how long it is, each later one is compared with it.
 */
#include "attribute.h"
#include "check.h"

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
        diag_related(ev->ctx, diag, at, "applied here");
        return false;
    }
    r->shape_text = expr_text(ev, type);
    return true;
}
