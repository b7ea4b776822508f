/* optimizer.c - clipping, AdamW, SGD, Lion, Muon and the average of the weights as graph nodes.
 *
 * In:  gradients, weights and moments as external tensors.   Out: the new ones, stored.
 * The one idea: an optimizer is arithmetic like any other. The learning rate and the bias
 * corrections are host scalars, so one compiled update serves every step; a gradient that is
 * not finite selects the old values, so that a diverged step leaves no trace.
 */
#include <float.h>
#include <math.h>

#include "optimizer.h"

/* ---- which weights learn, and at which rate ---- */

/* What is said of part b after the first `steps` growth steps; *at: by which of them, from 0. NULL: nothing. */
static const PartRate *rate_said(const GrownParts *g, size_t b, size_t steps, size_t *at)
{
    const PartRate *found = NULL;
    for (size_t k = b ? b : 1; g->old && k <= steps; k++) {
        const PartRate *r = k == b ? &g->fresh[k - 1] : &g->old[k - 1];
        if (!r->said)
            continue;
        found = r;
        *at = k - 1;
    }
    return found;
}

const HostExpr *part_factor(Arena *a, const GrownParts *g, size_t b)
{
    size_t at;
    const PartRate *r = rate_said(g, b, g->n, &at);
    if (!r || !r->warmup)
        return r ? r->scale : NULL;
    const HostExpr *one = host_const(a, 1), *count = host_const(a, 1 - g->updates[at]);
    const HostExpr *done = host_op(a, HO_ADD, host_var(a, HV_UPDATES), count, NULL);
    const HostExpr *ramp = host_op(a, HO_DIV, done, host_op(a, HO_MAX, r->warmup, one, NULL), NULL);
    return host_op(a, HO_MUL, r->scale, host_op(a, HO_MIN, ramp, one, NULL), NULL);
}

bool part_is_frozen(const GrownParts *g, size_t b, size_t steps)
{
    size_t at;
    double x;
    const PartRate *r = rate_said(g, b, steps, &at);
    return r && host_is_const(r->scale, &x) && x == 0;
}

/* Updates before the last growth step that moments have missed which came with step c, of a part that came with step b: those
 * before they came, or while what has them was frozen, which was part c until step b copied it. */
static double updates_missed(const GrownParts *g, size_t c, size_t b)
{
    double missed = c ? g->updates[c - 1] : 0;
    for (size_t k = c ? c : 1; k < g->n; k++)
        if (part_is_frozen(g, k < b ? c : b, k))
            missed += g->updates[k] - g->updates[k - 1];
    return missed;
}

/* Frozen as a whole by a growth step; its moments and its average are kept. */
bool param_is_held(const Model *m, const Train *t, size_t i)
{
    return t->births.n && !m->param.v[i].buffer && !t->births.some[i] && part_is_frozen(&t->births, 0, t->births.n);
}

bool param_learns(const Model *m, const Train *t, size_t i)
{
    const Param *p = &m->param.v[i];
    return !p->buffer && !p->frozen && !(t->optimizer.frozen && t->optimizer.frozen[i]);
}

bool param_is_trained(const Model *m, const Train *t, size_t i)
{
    return param_learns(m, t, i) && !param_is_held(m, t, i);
}

const int *param_owners(const Model *m, const Train *t, int ranks, Arena *arena)
{
    int *owner = NEW_ARRAY(arena, int, m->param.n + 1);
    int64_t all = 0, before = 0;
    for (size_t i = 0; i < m->param.n; i++)
        all += param_learns(m, t, i) ? m->param.v[i].elements : 0;
    for (size_t i = 0; i < m->param.n; i++) { /* the share that the middle of the tensor lies in */
        int64_t n = param_learns(m, t, i) ? m->param.v[i].elements : 0;
        double middle = all ? ((double)before + (double)n / 2) / (double)all : 0;
        int at = (int)(middle * ranks);
        owner[i] = at < ranks ? at : ranks - 1;
        before += n;
    }
    return owner;
}

static double constant_of(const Optimizer *o, const char *name, double otherwise)
{
    for (size_t i = 0; i < o->constant.n; i++)
        if (!strcmp(o->constant.v[i].name, name))
            return o->constant.v[i].value;
    return otherwise;
}

Name average_name(Ctx *ctx, const Param *p) { return name_printf(ctx, "%s:average", p->path); }

Name born_name(Ctx *ctx, const Param *p, int axis) { return name_printf(ctx, "%s:born%d", p->path, axis); }

Name since_name(Ctx *ctx, const Param *p, int axis) { return name_printf(ctx, "%s:since%d", p->path, axis); }

/* What every parameter's update shares. */
typedef struct Update {
    Graph *g;
    const Model *model;
    const Train *train;
    Val factor;  /* of clipping, 0 = none */
    Val finite;  /* mask: the gradient's norm is a number, and the run goes on */
    Val unscale; /* 1 / the scale of the loss, 0 = none */
    const GrownParts *births;
    const Val *unbias1,
        *unbias2;         /* 1 / (1 - beta^t), t = updates including this one: [c * (n + 1) + b] of moments that came
                                     with step c, of a part that came with step b; the same Val where t is the same */
    const Val *factor_of; /* of the rate, by part, 0 = 1; NULL: no growth step says any */
    bool holds;           /* a growth step freezes some part */
    Val old, fresh;       /* shares of the average and of the new weight; 0 = no average */
} Update;

typedef struct Slot { /* one parameter */
    const Param *p;
    const Optimizer *o; /* its own: the constants */
    bool born;          /* parts of it came with growth steps */
    Val w, grad, rate;
    Val moves; /* mask: elements that are not frozen; 0 = all */
    double decay;
} Slot;

static Val mul(Graph *g, Val a, Val b) { return ir_binary(g, OP_MUL, a, b); }
static Val add(Graph *g, Val a, Val b) { return ir_binary(g, OP_ADD, a, b); }

static Val state(const Update *u, const Slot *s, const char *which, Name *name)
{
    *name = name_printf(u->g->ctx, "%s:%s", s->p->path, which);
    return ir_ext(u->g, EXT_STATE, *name, DT_REAL, &s->p->shape);
}

static Val store(const Update *u, Val moves, Val now, Val old, ExtKind kind, Name name)
{
    if (moves)
        now = ir_where(u->g, moves, now, old);
    Val kept = ir_where(u->g, u->finite, now, old);
    ir_store(u->g, kept, kind, name);
    return kept;
}

/* a <- decay a + (1 - decay) w */
static void store_average(const Update *u, const Param *p, Val w)
{
    Graph *g = u->g;
    if (!u->fresh)
        return;
    Name name = average_name(g->ctx, p);
    Val before = ir_ext(g, EXT_STATE, name, DT_REAL, &p->shape);
    Val kept = mul(g, before, u->old), added = mul(g, w, u->fresh);
    Val average = add(g, kept, added);
    store(u, 0, average, before, EXT_STATE, name);
}

/* The new weight, and its average. */
static void store_weight(const Update *u, const Slot *s, Val now)
{
    store_average(u, s->p, store(u, s->moves, now, s->w, EXT_PARAM, s->p->path));
}

/* w <- w - rate (step + decay w) */
static void store_decayed(const Update *u, const Slot *s, Val step)
{
    Graph *g = u->g;
    if (s->decay != 0)
        step = add(g, step, ir_scale(g, s->w, s->decay));
    store_weight(u, s, ir_binary(g, OP_SUB, s->w, mul(g, step, s->rate)));
}

/* The growth step with which each element came, or its moments: the last of those of its indices. */
static Val came_of(const Update *u, const Slot *s, Name (*which)(Ctx *, const Param *, int))
{
    Graph *g = u->g;
    const Shape *all = &s->p->shape;
    Val born = 0;
    for (int k = 0; k < all->rank || k == 0; k++) {
        Shape one = {.rank = 1, .d = {all->rank ? all->d[k] : DIM(1)}}, along = {.rank = all->rank};
        for (int i = 0; i < all->rank; i++)
            along.d[i] = i == k ? all->d[i] : DIM(1);
        Val axis = ir_reshape(g, ir_ext(g, EXT_STATE, which(g->ctx, s->p, k), DT_REAL, &one), &along);
        born = born ? ir_binary(g, OP_MAX, born, axis) : axis;
    }
    return born;
}

/* `plain`, or that of `later` where an element came later. */
static Val by_part(const Update *u, const Slot *s, Val plain, const Val *later)
{
    Graph *g = u->g;
    bool differs = false;
    for (size_t i = 0; i < u->births->n && s->born; i++)
        differs |= later[i] != plain;
    Val by = plain, born = differs ? came_of(u, s, born_name) : 0;
    for (size_t i = 0; i < u->births->n && differs; i++)
        by = ir_where(g, ir_binary(g, OP_LE, ir_fill(g, (double)i + 1), born), later[i], by);
    return by;
}

/* Where moments are carried they may have come before what has them. */
static Val unbias_by_part(const Update *u, const Slot *s, const Val *of)
{
    Graph *g = u->g;
    size_t n = u->births->n, wide = n + 1;
    Val *own = NEW_ARRAY(g->arena, Val, wide), *by = NEW_ARRAY(g->arena, Val, wide), born = 0;
    for (size_t c = 0; c <= n; c++)
        own[c] = by[c] = of[c * wide + c];
    if (!u->births->carried || !s->born)
        return by_part(u, s, own[0], own + 1);
    for (size_t c = 0; c <= n; c++)
        for (size_t b = c + 1; b <= n; b++) {
            if (of[c * wide + b] == of[c * wide + b - 1])
                continue;
            born = born ? born : came_of(u, s, born_name);
            by[c] = ir_where(g, ir_binary(g, OP_LE, ir_fill(g, (double)b), born), of[c * wide + b], by[c]);
        }
    Val all = by[0], since = came_of(u, s, since_name);
    for (size_t c = 1; c <= n; c++)
        all = ir_where(g, ir_binary(g, OP_LE, ir_fill(g, (double)c), since), by[c], all);
    return all;
}

static Val unbiased(const Update *u, const Slot *s, Val x, const Val *of)
{
    return mul(u->g, x, unbias_by_part(u, s, of));
}

/* Whether each part is frozen, as a mask of the elements; 0: none is. */
static Val moving(const Update *u, const Slot *s)
{
    Graph *g = u->g;
    size_t n = u->births->n;
    if (!u->holds || !s->born)
        return 0;
    Val stays = ir_fill(g, 0), moves = ir_fill(g, 1);
    Val *of = NEW_ARRAY(g->arena, Val, n + 1);
    for (size_t b = 0; b <= n; b++)
        of[b] = part_is_frozen(u->births, b, n) ? stays : moves;
    return ir_binary(g, OP_LT, stays, by_part(u, s, of[0], of + 1));
}

/* The rate times what growth steps say of each part. */
static Val rate_by_part(const Update *u, const Slot *s, Val rate)
{
    Graph *g = u->g;
    if (!u->factor_of)
        return rate;
    Val factor = by_part(u, s, u->factor_of[0], u->factor_of + 1);
    return mul(g, rate, factor);
}

/* AdamW: decoupled weight decay (Loshchilov and Hutter, arXiv 1711.05101, Algorithm 2):
 *   m <- b1 m + (1 - b1) g      v <- b2 v + (1 - b2) g g
 *   w <- w - rate (m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + eps) + decay w) */
static void update_adamw(const Update *u, const Slot *s)
{
    Graph *g = u->g;
    double b1 = constant_of(s->o, "beta1", 0.9), b2 = constant_of(s->o, "beta2", 0.999);
    double eps = constant_of(s->o, "eps", 1e-8);
    Name m_name, v_name;
    Val m0 = state(u, s, "m", &m_name), v0 = state(u, s, "v", &v_name);
    Val m1 = add(g, ir_scale(g, m0, b1), ir_scale(g, s->grad, 1 - b1));
    Val v1 = add(g, ir_scale(g, v0, b2), ir_scale(g, mul(g, s->grad, s->grad), 1 - b2));
    Val root = ir_unary(g, OP_SQRT, unbiased(u, s, v1, u->unbias2));
    Val step = ir_binary(g, OP_DIV, unbiased(u, s, m1, u->unbias1), add(g, root, ir_fill(g, eps)));
    store_decayed(u, s, step);
    store(u, s->moves, m1, m0, EXT_STATE, m_name);
    store(u, s->moves, v1, v0, EXT_STATE, v_name);
}

/* b <- momentum b + g, stored; gives nesterov ? g + momentum b : b. Without momentum g itself. */
static Val momentum_of(const Update *u, const Slot *s, Val grad)
{
    Graph *g = u->g;
    double momentum = constant_of(s->o, "momentum", 0);
    if (momentum == 0)
        return grad;
    Name name;
    Val b0 = state(u, s, "m", &name);
    Val b1 = add(g, ir_scale(g, b0, momentum), grad);
    store(u, s->moves, b1, b0, EXT_STATE, name);
    return constant_of(s->o, "nesterov", 0) != 0 ? add(g, grad, ir_scale(g, b1, momentum)) : b1;
}

/* SGD with (Nesterov) momentum as Sutskever et al. 2013 give it in the form that applies the
 * rate last. Its decay is decoupled (Loshchilov and Hutter, Algorithm 1: SGDW), or coupled, a part
 * of the gradient that goes into the momentum, too:
 *   decoupled: w <- w - rate (momentum_of(g) + decay w)
 *   coupled:   w <- w - rate momentum_of(g + decay w) */
static void update_sgd(const Update *u, const Slot *s)
{
    Graph *g = u->g;
    bool coupled = constant_of(s->o, "coupled", 0) != 0 && s->decay != 0;
    if (!coupled) {
        store_decayed(u, s, momentum_of(u, s, s->grad));
        return;
    }
    Val step = momentum_of(u, s, add(g, s->grad, ir_scale(g, s->w, s->decay)));
    store_weight(u, s, ir_binary(g, OP_SUB, s->w, mul(g, step, s->rate)));
}

/* Lion (Chen et al., arXiv 2302.06675, Algorithm 2):
 *   w <- w - rate (sign(b1 m + (1 - b1) g) + decay w)      m <- b2 m + (1 - b2) g */
static void update_lion(const Update *u, const Slot *s)
{
    Graph *g = u->g;
    double b1 = constant_of(s->o, "beta1", 0.9), b2 = constant_of(s->o, "beta2", 0.99);
    Name name;
    Val m0 = state(u, s, "m", &name);
    Val kept = ir_scale(g, m0, b1), fresh = ir_scale(g, s->grad, 1 - b1);
    Val mixed = add(g, kept, fresh);
    kept = ir_scale(g, m0, b2);
    fresh = ir_scale(g, s->grad, 1 - b2);
    Val m1 = add(g, kept, fresh);
    store_decayed(u, s, ir_unary(g, OP_SIGN, mixed));
    store(u, s->moves, m1, m0, EXT_STATE, name);
}

/* X or its transpose times X, on the shorter side: [.., r, r], r = min(rows, columns). */
static Val gram(Graph *g, Val x, bool tall)
{
    Val other = ir_transpose(g, x);
    return tall ? ir_matmul(g, other, x) : ir_matmul(g, x, other);
}

/* Singular values of [.., rows, columns] towards 1, by iterations of an odd polynomial
 * (Jordan et al. 2024): X <- X / (|X| + 1e-7); X <- a X + (b A + c A A) X with A = X X^T. A tall
 * X is multiplied from the right by the same of X^T X. Leading axes are a batch of matrices. */
static Val orthogonal(Graph *g, const Optimizer *o, Val x)
{
    const Shape *s = shape_of(g, x);
    bool tall = s->d[s->rank - 2].n > s->d[s->rank - 1].n;
    const uint32_t both = 3u << (s->rank - 2);
    int steps = (int)constant_of(o, "steps", 5);
    double a = constant_of(o, "a", MUON_A), b = constant_of(o, "b", MUON_B);
    double c = constant_of(o, "c", MUON_C);
    Val squares = ir_sum(g, mul(g, x, x), both, true);
    Val length = add(g, ir_unary(g, OP_SQRT, squares), ir_fill(g, 1e-7));
    x = ir_binary(g, OP_DIV, x, length);
    for (int i = 0; i < steps; i++) {
        Val side = gram(g, x, tall), square = ir_matmul(g, side, side);
        Val first = ir_scale(g, side, b), second = ir_scale(g, square, c);
        Val poly = add(g, first, second);
        Val step = tall ? ir_matmul(g, x, poly) : ir_matmul(g, poly, x);
        x = add(g, ir_scale(g, x, a), step);
    }
    return x;
}

/* Muon: w <- w - rate (scale orthogonal(momentum_of(g)) + decay w), with weights [.., fan_in,
 * fan_out]. Jordan's momentum b + (1 - momentum) g differs by a factor that dividing by |X| takes
 * out. The scale is sqrt(max(1, fan_out / fan_in)) as Jordan has it, or makes entries of the step
 * as large as AdamW's (Liu et al., arXiv 2502.16982, rms = 0.2). */
static void update_muon(const Update *u, const Slot *s)
{
    Graph *g = u->g;
    const Shape *shape = &s->p->shape;
    double in = (double)shape->d[shape->rank - 2].n, out = (double)shape->d[shape->rank - 1].n;
    double rms = constant_of(s->o, "rms", NAN);
    double scale = isnan(rms) ? sqrt(fmax(1, out / fmax(in, 1))) : rms * sqrt(fmax(in, out));
    Val step = orthogonal(g, s->o, momentum_of(u, s, s->grad));
    store_decayed(u, s, ir_scale(g, step, scale));
}

/* ---- kinds ---- */

static const struct {
    const char *name;
    void (*update)(const Update *u, const Slot *s);
    int states; /* besides the one of a momentum that is not 0 */
} kinds[] = {{"adamw", update_adamw, 2}, {"sgd", update_sgd, 0}, {"lion", update_lion, 1}, {"muon", update_muon, 0}};

/* COUNT_OF(kinds) when there is none of that name. */
static size_t kind_of(const Optimizer *o)
{
    size_t k = 0;
    while (k < COUNT_OF(kinds) && strcmp(kinds[k].name, o->kind) != 0)
        k++;
    return k;
}

/* The optimizer of one parameter. */
static const Optimizer *optimizer_for(const Optimizer *o, size_t i)
{
    return o->second && o->by_second[i] ? o->second : o;
}

int optimizer_states(const Optimizer *o, size_t i)
{
    const Optimizer *own = optimizer_for(o, i);
    return kinds[kind_of(own)].states + (constant_of(own, "momentum", 0) != 0);
}

/* ---- what all parameters share ---- */

/* One of the numbers that a step is handed: element i, or all there is. */
static Val step_number(Graph *g, const char *name, int i)
{
    const Shape none = {0}, three = {.rank = 1, .d = {DIM(3)}};
    Name of = name_str(g->ctx, name);
    return i < 0 ? ir_ext(g, EXT_STEP, of, DT_REAL, &none)
                 : ir_reshape(g, ir_slice(g, ir_ext(g, EXT_STEP, of, DT_REAL, &three), 0, i, 1), &none);
}

/* Whether a step may be skipped without a word of the host. */
static bool may_skip(const Train *t) { return t->decides && half_info(t->compute)->scaled; }

Val step_scalar(Graph *g, const Train *t, const HostExpr *e)
{
    Val plain = ir_host(g, e);
    const HostExpr *skipped = may_skip(t) ? host_if_skipped(g->arena, e) : e;
    return skipped == e ? plain : ir_where(g, step_number(g, "skipped", -1), ir_host(g, skipped), plain);
}

/* 1 / (1 - beta^t), evaluated on the host in float64; t counts updates, since a step that is skipped
 * leaves the moments as they were, but not those that the weight has `missed`. */
static Val unbias(const Update *u, double beta, double missed)
{
    Arena *a = u->g->arena;
    const HostExpr *one = host_const(a, 1);
    const HostExpr *t = host_op(a, HO_ADD, host_var(a, HV_UPDATES), host_const(a, 1 - missed), NULL);
    const HostExpr *power = host_op(a, HO_POW, host_const(a, beta), t, NULL);
    const HostExpr *rest = host_op(a, HO_SUB, one, power, NULL);
    return step_scalar(u->g, u->train, host_op(a, HO_DIV, one, rest, NULL));
}

/* By what came when: see Update. */
static const Val *unbias_all(const Update *u, double beta)
{
    const GrownParts *g = u->births;
    size_t wide = g->n + 1;
    Val *of = NEW_ARRAY(u->g->arena, Val, wide * wide);
    for (size_t c = 0; c < wide; c++)
        for (size_t b = c; b < wide && (b == c || g->carried); b++) {
            bool as_before = b > c && updates_missed(g, c, b) == updates_missed(g, c, b - 1);
            of[c * wide + b] = as_before ? of[c * wide + b - 1] : unbias(u, beta, updates_missed(g, c, b));
        }
    return of;
}

static Val sum_of_squares(Graph *g, Val x)
{
    const uint32_t all = (1u << shape_of(g, x)->rank) - 1u;
    Val squares = mul(g, x, x);
    return all ? ir_sum(g, squares, all, false) : squares;
}

/* The gradient of the loss itself. Scales are powers of two, so nothing is lost; what has left the range of
 * float32 stays infinite. */
static Val gradient_of(const Update *u, const Param *p)
{
    Val stored = ir_ext(u->g, EXT_GRAD, p->path, DT_REAL, &p->shape);
    return u->unscale ? mul(u->g, stored, u->unscale) : stored;
}

/* Of what moves of parameter i. */
static Val squares_of(const Update *u, size_t i)
{
    Graph *g = u->g;
    const Param *p = &u->model->param.v[i];
    g->name = p->path;
    g->span = p->declared;
    const Slot slot = {.p = p, .born = u->births->n && u->births->some[i]};
    Val moves = moving(u, &slot), grad = gradient_of(u, p);
    return sum_of_squares(g, moves ? ir_where(g, moves, grad, ir_fill(g, 0)) : grad);
}

/* Of all parameters, in their order; where others have most of the gradients the host adds up what each has. */
static Val sum_of_all(const Update *u)
{
    Val sum = 0;
    if (u->train->owner)
        return step_number(u->g, "squares", -1);
    for (size_t i = 0; i < u->model->param.n; i++) {
        Val s = param_is_trained(u->model, u->train, i) ? squares_of(u, i) : 0;
        sum = sum && s ? add(u->g, sum, s) : s ? s : sum;
    }
    return sum;
}

static Val gradient_norm(const Update *u)
{
    Graph *g = u->g;
    Val sum = sum_of_all(u);
    g->name = name_str(g->ctx, "grad_norm");
    g->span = u->train->span;
    return sum ? ir_unary(g, OP_SQRT, sum) : ir_fill(g, 0);
}

/* The gradient that steps are made of. It is known only with the norm, with and without clipping: so an
 * update waits for that and is one kernel. What could be computed beside the sums of squares would be, and all new weights kept until then. */
static Val gradient_used(const Update *u, const Param *p)
{
    Graph *g = u->g;
    Val grad = gradient_of(u, p);
    if (u->factor)
        return mul(g, grad, u->factor);
    return ir_where(g, u->finite, grad, ir_fill(g, 0));
}

/* min(1, clip / norm), without dividing by zero (Pascanu et al., arXiv 1211.5063). */
static Val clip_factor(Graph *g, Val norm, double clip)
{
    Val limit = ir_fill(g, clip);
    Val larger = ir_binary(g, OP_MAX, norm, limit);
    return ir_binary(g, OP_DIV, limit, larger);
}

/* Factors of the rates by part. */
static void read_parts(Update *u)
{
    Graph *g = u->g;
    size_t n = u->births->n;
    Val *of = NEW_ARRAY(g->arena, Val, n + 1), one = ir_fill(g, 1);
    bool said = false;
    for (size_t b = 0; b <= n; b++) {
        const HostExpr *e = part_factor(g->arena, u->births, b);
        double x;
        of[b] = !e ? one : host_is_const(e, &x) ? ir_fill(g, x) : step_scalar(g, u->train, e);
        said |= e != NULL;
        u->holds |= part_is_frozen(u->births, b, n);
    }
    if (said)
        u->factor_of = of;
}

/* Whether this step changes anything, so that nobody has to read the loss before the next one begins: a mask. The median of a
 * window of which all losses but the last are known is that of three: the middle one of the known, and the last between those
 * around it. In fp16 a gradient that is not finite need not end the run. */
static Val goes_on(Graph *g, const Train *t, Val finite)
{
    Val loss = step_number(g, "loss", -1), last = step_number(g, "last", -1), halt = step_number(g, "halt", -1);
    Val low = step_number(g, "known", 0), middle = step_number(g, "known", 1), high = step_number(g, "known", 2);
    Val other = ir_binary(g, OP_MIN, ir_binary(g, OP_MAX, last, low), high), none = ir_fill(g, HALT_NOT);
    Val median = ir_scale(g, add(g, middle, other), 0.5);
    Val limit = ir_binary(g, OP_MAX, ir_scale(g, median, 4), add(g, median, ir_fill(g, 2)));
    Val is_number = ir_binary(g, OP_LE, ir_unary(g, OP_ABS, loss), ir_fill(g, FLT_MAX));
    Val now = ir_where(g, finite, none, ir_fill(g, HALT_NORM)), skips = 0;
    if (may_skip(t)) {
        skips = step_scalar(g, t, host_var(g->arena, HV_MAY_SKIP));
        now = ir_where(g, skips, none, now);
    }
    now = ir_where(g, ir_binary(g, OP_LE, loss, limit), now, ir_fill(g, HALT_JUMP));
    now = ir_where(g, is_number, now, ir_fill(g, HALT_LOSS));
    now = ir_where(g, ir_binary(g, OP_LT, none, halt), halt, now);
    Val on = ir_binary(g, OP_LE, now, none);
    ir_store(g, now, EXT_STEP, name_str(g->ctx, "halt"));
    ir_store(g, ir_where(g, on, loss, last), EXT_STEP, name_str(g->ctx, "last"));
    if (skips)
        ir_store(g, ir_where(g, finite, ir_fill(g, 0), ir_fill(g, 1)), EXT_STEP, name_str(g->ctx, "skipped"));
    ir_output(g, name_str(g->ctx, "halt"), now);
    return skips ? ir_where(g, finite, on, ir_fill(g, 0)) : on;
}

/* What gradients are read with. */
static Update begin_update(Graph *g, const Model *m, const Train *t)
{
    Update u = {.g = g, .model = m, .train = t, .births = &t->births};
    if (half_info(t->compute)->scaled)
        u.unscale = step_scalar(
            g, t, host_op(g->arena, HO_DIV, host_const(g->arena, 1), host_var(g->arena, HV_LOSS_SCALE), NULL));
    read_parts(&u);
    return u;
}

size_t optimizer_squares(Graph *g, const Model *m, const Train *t)
{
    const Update u = begin_update(g, m, t);
    size_t n = 0;
    for (size_t i = 0; i < m->param.n; i++)
        if (param_is_trained(m, t, i) && param_is_here(t, i)) {
            ir_output(g, m->param.v[i].path, squares_of(&u, i));
            n++;
        }
    return n;
}

Val optimizer_update(Graph *g, const Model *m, const Train *t)
{
    const Optimizer *o = &t->optimizer;
    if (kind_of(o) == COUNT_OF(kinds))
        ctx_raise(g->ctx, ST_INPUT, "the optimizer `%s` is not known", o->kind);
    const double most = 3e38; /* below the largest float32, so a NaN or an infinity is not */
    Update u = begin_update(g, m, t);
    Val norm = gradient_norm(&u);
    u.finite = ir_binary(g, OP_LE, norm, ir_fill(g, most));
    if (t->decides)
        u.finite = goes_on(g, t, u.finite);
    u.factor = t->clip > 0 ? clip_factor(g, norm, t->clip) : 0;
    Val rate = ir_host(g, o->lr), second = o->second ? ir_host(g, o->second->lr) : 0;
    if (t->average) {
        const HostExpr *one = host_const(g->arena, 1);
        u.old = ir_host(g, t->average);
        u.fresh = ir_host(g, host_op(g->arena, HO_SUB, one, t->average, NULL));
    }
    const Optimizer *biased = o->second ? o->second : o;
    if (!strcmp(biased->kind, "adamw")) {
        double b1 = constant_of(biased, "beta1", 0.9), b2 = constant_of(biased, "beta2", 0.999);
        u.unbias1 = unbias_all(&u, b1);
        u.unbias2 = unbias_all(&u, b2);
    }
    for (size_t i = 0; i < m->param.n; i++) {
        const Param *p = &m->param.v[i];
        if (!param_is_here(t, i))
            continue;
        g->name = p->path;
        g->span = p->declared;
        if (param_learns(m, t, i) && param_is_held(m, t, i))
            store_average(&u, p, ir_ext(g, EXT_PARAM, p->path, DT_REAL, &p->shape));
        if (!param_is_trained(m, t, i))
            continue;
        Slot s = {.p = p, .o = optimizer_for(o, i), .decay = o->decay && !isnan(o->decay[i]) ? o->decay[i] : 0};
        s.born = t->births.n && t->births.some[i];
        double scale = o->lr_scale ? o->lr_scale[i] : 1;
        s.w = ir_ext(g, EXT_PARAM, p->path, DT_REAL, &p->shape);
        s.grad = gradient_used(&u, p);
        s.rate = s.o == o ? rate : second;
        if (scale != 1)
            s.rate = ir_scale(g, s.rate, scale);
        s.rate = rate_by_part(&u, &s, s.rate);
        s.moves = moving(&u, &s);
        kinds[kind_of(s.o)].update(&u, &s);
    }
    return norm;
}
