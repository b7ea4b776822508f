/* random.c - random graphs over the primitives against the reference evaluator.
 *
 * In:  a seed per graph (first argument: where to start, second: how many).
 * Out: every graph agrees with the reference, fused and not, in any split of rows.
 * The one idea: a pool of tensors over one set of extents grows by random operators that fit, views,
 * reductions, small products and connections among them; a few of the last become results.
 * When: optimised.
 */
#include "support/drawn.h"
#include "cases.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct Pool {
    Graph *g;
    Dice *dice;
    Val v[64];
    int n;
    Dim axis[6]; /* extents that shapes are made of */
} Pool;

static Val any(Pool *p) { return p->v[dice(p->dice, (uint32_t)p->n)]; }

static void put(Pool *p, Val v)
{
    Dim size;
    if (!v || !shape_size(shape_of(p->g, v), &size) || dim_at(size, 3, 11) > 60000)
        return;
    p->v[p->n < 64 ? p->n++ : (int)dice(p->dice, 64)] = v;
}

static Shape token_shape(Pool *p, int extra)
{
    Shape s = {.rank = 2, .d = {DIM_B, DIM_T}};
    while (extra-- > 0)
        s.d[s.rank++] = p->axis[dice(p->dice, 6)];
    return s;
}

/* keeps numbers of order one */
static Val tame(Pool *p, Val v) { return dice(p->dice, 3) ? v : ir_unary(p->g, OP_TANH, v); }

static Val partner(Pool *p, Val a)
{
    for (int i = 0; i < 12; i++) {
        Val b = any(p);
        Shape s;
        if (shape_broadcast(shape_of(p->g, a), shape_of(p->g, b), &s))
            return b;
    }
    return ir_fill(p->g, dice_real(p->dice, -1, 1));
}

static Val elementwise(Pool *p)
{
    static const Op unary[] = {OP_NEG,  OP_TANH, OP_SIGMOID,    OP_SIN, OP_COS,      OP_SILU,
                               OP_RELU, OP_GELU, OP_GELU_SLOPE, OP_ABS, OP_SOFTPLUS, OP_ERF};
    Graph *g = p->g;
    Val a = any(p);
    switch (dice(p->dice, 4)) {
    case 0: return ir_unary(g, unary[dice(p->dice, COUNT_OF(unary))], a);
    case 1: {
        Val b = ir_binary(g, OP_ADD, ir_unary(g, OP_ABS, partner(p, a)), ir_fill(g, 0.7));
        return ir_binary(g, OP_DIV, a, b);
    }
    default: {
        static const Op binary[] = {OP_ADD, OP_SUB, OP_MUL, OP_MUL, OP_MAX, OP_MIN};
        return tame(p, ir_binary(g, binary[dice(p->dice, COUNT_OF(binary))], a, partner(p, a)));
    }
    }
}

static Val view(Pool *p)
{
    Graph *g = p->g;
    Val a = any(p);
    Shape s = *shape_of(g, a);
    if (s.rank < 2)
        return 0;
    int axis = (int)dice(p->dice, s.rank);
    switch (dice(p->dice, 8)) {
    case 0: { /* merge the last two axes, or split the last */
        Shape to = s;
        if (s.rank > 3 && dim_mul(s.d[s.rank - 2], s.d[s.rank - 1], &to.d[s.rank - 2])) {
            to.rank--;
            return ir_reshape(g, a, &to);
        }
        Dim half;
        if (!dim_div(s.d[s.rank - 1], DIM(2), &half) || s.rank == MAX_RANK || dim_eq(half, DIM(0)))
            return 0;
        to.d[s.rank - 1] = DIM(2);
        to.d[to.rank++] = half;
        return ir_reshape(g, a, &to);
    }
    case 1: {
        int perm[MAX_RANK];
        for (int i = 0; i < s.rank; i++)
            perm[i] = i;
        if (s.rank < 4)
            return 0;
        perm[s.rank - 1] = s.rank - 2;
        perm[s.rank - 2] = s.rank - 1;
        return ir_permute(g, a, perm);
    }
    case 2:
        if (!dim_static(s.d[axis]) || s.d[axis].n < 2)
            return 0;
        return ir_slice(g, a, axis, 1, 1 + dice(p->dice, (uint32_t)s.d[axis].n - 1));
    case 3: return s.d[axis].t || s.d[axis].b ? 0 : ir_pad(g, a, axis, dice(p->dice, 3), dice(p->dice, 3));
    case 4: return s.d[axis].t || s.d[axis].b ? 0 : ir_concat(g, (Val[]){a, elementwise(p) ? a : a}, 2, axis);
    case 5: return ir_shift(g, a, axis, (int64_t)dice(p->dice, 5) - 2, dice_real(p->dice, -1, 1));
    case 6: return ir_roll(g, a, axis, (int64_t)dice(p->dice, 5) - 2);
    default: return ir_concat(g, (Val[]){a, ir_unary(g, OP_TANH, a)}, 2, s.rank - 1);
    }
}

static Val reduction(Pool *p)
{
    Graph *g = p->g;
    Val a = any(p);
    const Shape *s = shape_of(g, a);
    if (s->rank < 1)
        return 0;
    uint32_t axes = 1u << (s->rank - 1);
    if (dice(p->dice, 3) == 0)
        axes = 1 + dice(p->dice, (1u << s->rank) - 1);
    switch (dice(p->dice, 4)) {
    case 0: return ir_max(g, a, axes, true);
    case 1: return ir_softmax(g, a, s->rank - 1);
    case 2: {
        Val m = ir_mean(g, ir_binary(g, OP_MUL, a, a), axes, true);
        Val r = ir_unary(g, OP_SQRT, ir_binary(g, OP_ADD, m, ir_fill(g, 0.1)));
        return ir_binary(g, OP_DIV, a, r);
    }
    default: return ir_mean(g, a, axes, dice(p->dice, 2));
    }
}

static Val product(Pool *p)
{
    Graph *g = p->g;
    for (int i = 0; i < 20; i++) {
        Val a = any(p), b = any(p);
        const Shape *x = shape_of(g, a), *y = shape_of(g, b);
        if (x->rank < 3 || y->rank != x->rank)
            continue;
        bool lead = true;
        for (int k = 0; k < x->rank - 2; k++)
            lead = lead && dim_eq(x->d[k], y->d[k]);
        if (!lead)
            continue;
        if (dim_eq(x->d[x->rank - 1], y->d[y->rank - 2]))
            return tame(p, ir_scale(g, ir_matmul(g, a, b), 0.2));
        if (dim_eq(x->d[x->rank - 2], y->d[y->rank - 2]))
            return tame(p, ir_scale(g, ir_matmul(g, ir_transpose(g, a), b), 0.2));
    }
    Val a = any(p);
    const Shape *s = shape_of(g, a);
    if (s->rank < 3)
        return 0;
    Shape w = {.rank = 2, .d = {s->d[s->rank - 1], p->axis[dice(p->dice, 6)]}};
    char name[32];
    snprintf(name, sizeof name, "w%zu", g->ext.n);
    if (!dim_static(w.d[0]))
        return 0;
    return tame(p, ir_matmul(g, a, ir_ext(g, EXT_PARAM, name_str(g->ctx, name), DT_REAL, &w)));
}

static Graph *random_graph(Ctx *ctx, Dice *d)
{
    static const int extents[] = {1, 2, 3, 4, 5, 7, 17, 20, 31, 33, 36};
    Pool p = {.g = graph_new(ctx, ctx->program), .dice = d};
    for (int i = 0; i < 6; i++)
        p.axis[i] = DIM(extents[dice(d, i < 3 ? 6 : COUNT_OF(extents))]);
    for (int i = 0; i < 4; i++) {
        Shape s = token_shape(&p, 1 + (int)dice(d, 2));
        put(&p, ir_ext(p.g, EXT_INPUT, name_printf(ctx, "x%d", i), DT_REAL, &s));
    }
    int steps = 10 + (int)dice(d, 30);
    for (int i = 0; i < steps; i++) {
        uint32_t k = dice(d, 10);
        put(&p, k < 4 ? elementwise(&p) : k < 6 ? view(&p) : k < 8 ? reduction(&p) : product(&p));
    }
    for (int i = 0; i < 4; i++) {
        Val v = p.v[p.n - 1 - (int)dice(d, (uint32_t)(p.n < 8 ? p.n : 8))];
        ir_output(p.g, name_printf(ctx, "y%d", i), v);
    }
    Shape *s = NEW(ctx->program, Shape);
    *s = *shape_of(p.g, p.v[p.n - 1]);
    ir_output(p.g, name_str(ctx, "sum"), ir_sum(p.g, p.v[p.n - 1], (1u << s->rank) - 1, false));
    return p.g;
}

int main(int argc, char **argv)
{
    Ctx *ctx = ctx_new(NULL);
    CtxGuard guard;
    int bad = 1, from = argc > 1 ? atoi(argv[1]) : 0,
        count = argc > 2 ? atoi(argv[2]) : (int)drawn_count(&(CaseDraw){.one_in = 8, .sanitized = 8}, 60);
    volatile int now = from;
    if (CTX_TRY(ctx, &guard)) {
        Cases *cases = cases_new(ctx, NULL);
        for (; now < from + count; now++) {
            Dice d = {(uint64_t)now * 7919 + 13};
            dice(&d, 2);
            char name[32];
            snprintf(name, sizeof name, "random graph %d", now);
            cases_add(cases, name, random_graph(ctx, &d), 1 + now % 3, now % 5 ? 11 : 1, 5, 3e-4);
        }
        bad = cases_run(cases);
        ctx_leave(ctx, &guard);
    } else {
        printf("FAIL graph %d: %s\n", now, ctx->message);
    }
    ctx_free(ctx);
    return bad != 0;
}
