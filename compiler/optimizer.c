/* optimizer.c - clipping, AdamW, SGD and the average of the weights as graph nodes.
 *
 * In:  gradients, weights and moments as external tensors.   Out: the new ones, stored.
 * The one idea: an optimizer is arithmetic like any other. The learning rate and the bias
 * corrections are host scalars, so one compiled update serves every step; a gradient that is
 * not finite selects the old values, so that a diverged step leaves no trace.
 */
#include <math.h>

#include "optimizer.h"

bool param_is_trained(const Model *m, const Train *t, size_t i)
{
    const Param *p = &m->param.v[i];
    return !p->buffer && !p->frozen && !(t->optimizer.frozen && t->optimizer.frozen[i]);
}

static double constant_of(const Optimizer *o, const char *name, double otherwise)
{
    for (size_t i = 0; i < o->constant.n; i++)
        if (!strcmp(o->constant.v[i].name, name))
            return o->constant.v[i].value;
    return otherwise;
}

int optimizer_states(const Optimizer *o)
{
    if (!strcmp(o->kind, "adamw"))
        return 2;
    return constant_of(o, "momentum", 0) != 0 ? 1 : 0;
}

Name average_name(Ctx *ctx, const Param *p)
{
    return name_printf(ctx, "%s:average", p->path);
}

/* What every parameter's update shares. */
typedef struct Update {
    Graph *g;
    const Optimizer *o;
    Val rate;             /* the learning rate of this step */
    Val factor;           /* of clipping, 0 = none */
    Val finite;           /* mask: the gradient's norm is a number */
    Val unbias1, unbias2; /* 1 / (1 - beta^t), t = updates including this one */
    Val old, fresh;       /* shares of the average and of the new weight; 0 = no average */
} Update;

typedef struct Slot { /* one parameter */
    const Param *p;
    Val w, grad, rate;
    double decay;
} Slot;

static Val mul(Graph *g, Val a, Val b)
{
    return ir_binary(g, OP_MUL, a, b);
}
static Val add(Graph *g, Val a, Val b)
{
    return ir_binary(g, OP_ADD, a, b);
}

static Val state(const Update *u, const Slot *s, const char *which, Name *name)
{
    *name = name_printf(u->g->ctx, "%s:%s", s->p->path, which);
    return ir_ext(u->g, EXT_STATE, *name, DT_REAL, &s->p->shape);
}

static Val store(const Update *u, Val now, Val old, ExtKind kind, Name name)
{
    Val kept = ir_where(u->g, u->finite, now, old);
    ir_store(u->g, kept, kind, name);
    return kept;
}

/* The new weight, and its average: a <- decay a + (1 - decay) w. */
static void store_weight(const Update *u, const Slot *s, Val now)
{
    Graph *g = u->g;
    Val w = store(u, now, s->w, EXT_PARAM, s->p->path);
    if (!u->fresh)
        return;
    Name name = average_name(g->ctx, s->p);
    Val before = ir_ext(g, EXT_STATE, name, DT_REAL, &s->p->shape);
    Val kept = mul(g, before, u->old), added = mul(g, w, u->fresh);
    Val average = add(g, kept, added);
    store(u, average, before, EXT_STATE, name);
}

/* AdamW: decoupled weight decay (Loshchilov and Hutter, arXiv 1711.05101, Algorithm 2):
 *   m <- b1 m + (1 - b1) g      v <- b2 v + (1 - b2) g g
 *   w <- w - rate (m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + eps) + decay w) */
static void update_adamw(const Update *u, const Slot *s)
{
    Graph *g = u->g;
    double b1 = constant_of(u->o, "beta1", 0.9), b2 = constant_of(u->o, "beta2", 0.999);
    double eps = constant_of(u->o, "eps", 1e-8);
    Name m_name, v_name;
    Val m0 = state(u, s, "m", &m_name), v0 = state(u, s, "v", &v_name);
    Val m1 = add(g, ir_scale(g, m0, b1), ir_scale(g, s->grad, 1 - b1));
    Val v1 = add(g, ir_scale(g, v0, b2), ir_scale(g, mul(g, s->grad, s->grad), 1 - b2));
    Val root = ir_unary(g, OP_SQRT, mul(g, v1, u->unbias2));
    Val step = ir_binary(g, OP_DIV, mul(g, m1, u->unbias1), add(g, root, ir_fill(g, eps)));
    if (s->decay != 0)
        step = add(g, step, ir_scale(g, s->w, s->decay));
    store_weight(u, s, ir_binary(g, OP_SUB, s->w, mul(g, step, s->rate)));
    store(u, m1, m0, EXT_STATE, m_name);
    store(u, v1, v0, EXT_STATE, v_name);
}

/* SGD with (Nesterov) momentum as Sutskever et al. 2013 give it in the form that applies the
 * rate last: g <- g + decay w      b <- momentum b + g      w <- w - rate (nesterov ? g +
 * momentum b : b) */
static void update_sgd(const Update *u, const Slot *s)
{
    Graph *g = u->g;
    double momentum = constant_of(u->o, "momentum", 0);
    Val step = s->grad;
    if (s->decay != 0)
        step = add(g, step, ir_scale(g, s->w, s->decay));
    if (momentum != 0) {
        Name name;
        Val b0 = state(u, s, "m", &name);
        Val b1 = add(g, ir_scale(g, b0, momentum), step);
        step = constant_of(u->o, "nesterov", 0) != 0 ? add(g, step, ir_scale(g, b1, momentum))
                                                     : b1;
        store(u, b1, b0, EXT_STATE, name);
    }
    store_weight(u, s, ir_binary(g, OP_SUB, s->w, mul(g, step, s->rate)));
}

/* ---- what all parameters share ---- */

/* 1 / (1 - beta^(step + 1)), evaluated on the host in float64. */
static Val unbias(Graph *g, double beta)
{
    Arena *a = g->arena;
    const HostExpr *one = host_const(a, 1);
    const HostExpr *t = host_op(a, HO_ADD, host_var(a, HV_STEP), one, NULL);
    const HostExpr *power = host_op(a, HO_POW, host_const(a, beta), t, NULL);
    const HostExpr *rest = host_op(a, HO_SUB, one, power, NULL);
    return ir_host(g, host_op(a, HO_DIV, one, rest, NULL));
}

static Val sum_of_squares(Graph *g, Val x)
{
    const uint32_t all = (1u << shape_of(g, x)->rank) - 1u;
    Val squares = mul(g, x, x);
    return all ? ir_sum(g, squares, all, false) : squares;
}

static Val gradient_norm(Graph *g, const Model *m, const Train *t)
{
    Val sum = 0;
    for (size_t i = 0; i < m->param.n; i++) {
        const Param *p = &m->param.v[i];
        if (!param_is_trained(m, t, i))
            continue;
        g->name = p->path;
        Val s = sum_of_squares(g, ir_ext(g, EXT_GRAD, p->path, DT_REAL, &p->shape));
        sum = sum ? add(g, sum, s) : s;
    }
    return sum ? ir_unary(g, OP_SQRT, sum) : ir_fill(g, 0);
}

/* min(1, clip / norm), without dividing by zero (Pascanu et al., arXiv 1211.5063). */
static Val clip_factor(Graph *g, Val norm, double clip)
{
    Val limit = ir_fill(g, clip);
    Val larger = ir_binary(g, OP_MAX, norm, limit);
    return ir_binary(g, OP_DIV, limit, larger);
}

Val optimizer_update(Graph *g, const Model *m, const Train *t)
{
    const Optimizer *o = &t->optimizer;
    bool adamw = !strcmp(o->kind, "adamw");
    if (!adamw && strcmp(o->kind, "sgd"))
        ctx_raise(g->ctx, ST_INPUT, "the optimizer `%s` is not known; there are adamw and sgd",
                  o->kind);
    const double most = 3e38; /* below the largest float32, so a NaN or an infinity is not */
    Val norm = gradient_norm(g, m, t);
    Update u = {.g = g, .o = o};
    u.finite = ir_binary(g, OP_LE, norm, ir_fill(g, most));
    u.factor = t->clip > 0 ? clip_factor(g, norm, t->clip) : 0;
    u.rate = ir_host(g, o->lr);
    if (t->average) {
        const HostExpr *one = host_const(g->arena, 1);
        u.old = ir_host(g, t->average);
        u.fresh = ir_host(g, host_op(g->arena, HO_SUB, one, t->average, NULL));
    }
    if (adamw) {
        u.unbias1 = unbias(g, constant_of(o, "beta1", 0.9));
        u.unbias2 = unbias(g, constant_of(o, "beta2", 0.999));
    }
    for (size_t i = 0; i < m->param.n; i++) {
        const Param *p = &m->param.v[i];
        if (!param_is_trained(m, t, i))
            continue;
        g->name = p->path;
        g->span = p->declared;
        Slot s = {.p = p, .decay = o->decay && !isnan(o->decay[i]) ? o->decay[i] : 0};
        double scale = o->lr_scale ? o->lr_scale[i] : 1;
        s.w = ir_ext(g, EXT_PARAM, p->path, DT_REAL, &p->shape);
        s.grad = ir_ext(g, EXT_GRAD, p->path, DT_REAL, &p->shape);
        if (u.factor)
            s.grad = mul(g, s.grad, u.factor);
        s.rate = scale == 1 ? u.rate : ir_scale(g, u.rate, scale);
        (adamw ? update_adamw : update_sgd)(&u, &s);
    }
    return norm;
}
