/* moved.c - see moved.h.
 *
 * In:  dice.     Out: graphs: what a parameter holds is moved, multiplied or summed, and moved again, and so are the
 *      gradients of that.
 * The one idea: shapes have from two to MAX_RANK axes and no unit is the same in all of them, so what a kernel has
 * for rows, and what it counts in loops, differs from one end of a chain of moves to the other.
 */
#include "moved.h"
#include "compiler/pass/simplify.h"

#include <stdio.h>
#include <stdlib.h>

enum { ELEMENTS_MAX = 600, PARAMS_MAX = 6 };

typedef struct Moves {
    Graph *g;
    Dice *dice;
    bool tokens; /* shapes begin with [B, T] */
    Val param[PARAMS_MAX];
    size_t n_param;
} Moves;

static int64_t below(Moves *m, int64_t n) { return (int64_t)dice(m->dice, (uint32_t)n); }

static Val parameter(Moves *m, const Shape *s)
{
    char name[16];
    snprintf(name, sizeof name, "w%zu", m->n_param);
    Val v = ir_ext(m->g, m->tokens ? EXT_INPUT : EXT_PARAM, name_str(m->g->ctx, name), DT_REAL, s);
    if (m->n_param < PARAMS_MAX)
        m->param[m->n_param++] = v;
    return v;
}

static int64_t elements(const Shape *s)
{
    Dim n;
    return shape_size(s, &n) ? dim_at(n, 2, 3) : INT64_MAX;
}

static Shape some_shape(Moves *m)
{
    static const int extent[] = {1, 2, 2, 2, 3, 3, 4, 5, 8, 12, 20, 33};
    Shape s;
    do {
        int rank = below(m, 6) ? 2 + (int)below(m, 4) : 2 + (int)below(m, MAX_RANK - 1);
        s = (Shape){0};
        if (m->tokens)
            s = (Shape){.rank = 2, .d = {DIM_B, DIM_T}};
        while (s.rank < rank || s.rank < 2)
            s.d[s.rank++] = DIM(extent[below(m, COUNT_OF(extent))]);
    } while (elements(&s) > ELEMENTS_MAX);
    return s;
}

static int known_axis(Moves *m, const Shape *s)
{
    int axis = (int)below(m, s->rank);
    return dim_static(s->d[axis]) ? axis : -1;
}

/* Elements of v elsewhere, in the same shape. */
static Val move_inside(Moves *m, Val v)
{
    Graph *g = m->g;
    const Shape s = *shape_of(g, v);
    int axis = (int)below(m, s.rank);
    int64_t by = below(m, 5) - 2;
    if (below(m, 3) == 0 || !dim_static(s.d[axis]))
        return ir_shift(g, v, axis, by, below(m, 2) ? 0 : 0.5);
    int64_t n = s.d[axis].n, at = below(m, n + 1);
    switch (below(m, 3)) {
    case 0: return ir_roll(g, v, axis, by);
    case 1: { /* a part of it, and zeros around that */
        if (at == n)
            return v;
        int64_t count = 1 + below(m, n - at);
        return ir_pad(g, ir_slice(g, v, axis, at, count), axis, n - at - count, at);
    }
    default: /* two parts change places */
        if (at == 0 || at == n)
            return ir_shift(g, v, axis, by, 0);
        return ir_concat(g, (Val[]){ir_slice(g, v, axis, at, n - at), ir_slice(g, v, axis, 0, at)}, 2, axis);
    }
}

static Val reshaped(Moves *m, Val v)
{
    Shape s = *shape_of(m->g, v), to = {0};
    int axis = known_axis(m, &s);
    if (axis < 0 || axis < (m->tokens ? 2 : 0))
        return v;
    if (axis + 1 < s.rank && s.rank > 3 && dim_static(s.d[axis + 1]) && below(m, 2)) { /* two axes become one */
        for (int i = 0; i < s.rank; i++)
            if (i == axis + 1)
                to.d[to.rank - 1].n *= s.d[i].n;
            else
                to.d[to.rank++] = s.d[i];
        return ir_reshape(m->g, v, &to);
    }
    for (int64_t n = 2; n < 6; n++) /* one becomes two */
        if (s.d[axis].n % n == 0 && s.d[axis].n > n && s.rank < MAX_RANK) {
            for (int i = 0; i < s.rank; i++) {
                to.d[to.rank++] = i == axis ? DIM(s.d[i].n / n) : s.d[i];
                if (i == axis)
                    to.d[to.rank++] = DIM(n);
            }
            return ir_reshape(m->g, v, &to);
        }
    return v;
}

/* Elements of v elsewhere, perhaps more, fewer or in another order. */
static Val move(Moves *m, Val v)
{
    Graph *g = m->g;
    const Shape s = *shape_of(g, v);
    int axis = known_axis(m, &s), first = m->tokens ? 2 : 0;
    switch (below(m, 9)) {
    case 0: {
        int perm[MAX_RANK], a, b;
        if (s.rank - first < 2)
            return v;
        for (int i = 0; i < s.rank; i++)
            perm[i] = i;
        a = first + (int)below(m, s.rank - first), b = first + (int)below(m, s.rank - first);
        perm[a] = b, perm[b] = a;
        return ir_permute(g, v, perm);
    }
    case 1: return reshaped(m, v);
    case 2:
        if (axis < 0 || s.d[axis].n < 2)
            return v;
        return ir_slice(g, v, axis, below(m, 2), 1 + below(m, s.d[axis].n - 1));
    case 3: return axis < 0 || s.d[axis].n > 40 ? v : ir_pad(g, v, axis, below(m, 3), below(m, 3));
    case 4: return axis < 0 || s.d[axis].n > 20 ? v : ir_concat(g, (Val[]){v, ir_unary(g, OP_TANH, v)}, 2, axis);
    case 5: return ir_unary(g, OP_TANH, v);
    default: return move_inside(m, v);
    }
}

static Val moves(Moves *m, Val v, int64_t most)
{
    for (int64_t n = below(m, most + 1); n > 0; n--) {
        Val next = move(m, v);
        v = elements(shape_of(m->g, next)) > 2 * ELEMENTS_MAX ? v : next;
    }
    return v;
}

/* What lies in one place beside what has moved. */
static Val beside(Moves *m, Val v)
{
    Val w = below(m, 2) ? v : parameter(m, &(Shape){.rank = 1, .d = {DIM(1)}});
    for (int64_t n = below(m, 3); n > 0; n--)
        w = move_inside(m, shape_of(m->g, w)->rank == 1 ? v : w);
    return ir_binary(m->g, below(m, 2) ? OP_MUL : OP_ADD, v, w);
}

static Val product(Moves *m, Val v)
{
    Graph *g = m->g;
    Shape s = *shape_of(g, v);
    Val other = v;
    if (s.rank - (m->tokens ? 2 : 0) < 2)
        return v;
    for (int64_t n = below(m, 3); n > 0; n--)
        other = move_inside(m, other);
    switch (below(m, 3)) {
    case 0: v = ir_matmul(g, v, ir_transpose(g, other)); break;
    case 1: v = ir_matmul(g, ir_transpose(g, v), other); break;
    default: {
        Shape w = {.rank = 2, .d = {s.d[s.rank - 1], DIM(below(m, 2) ? 3 : 24)}};
        v = ir_matmul(g, v, parameter(m, &w));
        break;
    }
    }
    return ir_scale(g, v, 0.3);
}

static Val sum(Moves *m, Val v)
{
    const Shape *s = shape_of(m->g, v);
    uint32_t axes = below(m, 2) ? 1u << (s->rank - 1) : 1u << below(m, s->rank);
    axes |= below(m, 3) ? 0 : 1u << below(m, s->rank);
    return ir_binary(m->g, OP_SUB, v, ir_mean(m->g, v, axes, true));
}

/* The square of a tensor's matrices, one of both factors moved two axes before them, and its gradient. */
static Graph *product_beside_shift(Ctx *ctx)
{
    Graph *g = graph_new(ctx, ctx->program);
    Shape s = {.rank = 4, .d = {DIM(2), DIM(2), DIM(33), DIM(33)}};
    Val w = ir_ext(g, EXT_PARAM, name_str(ctx, "w"), DT_REAL, &s), grad;
    Val loss = ir_mean(g, ir_matmul(g, w, ir_shift(g, w, 0, 1, 0)), 15, false);
    graph_gradient(g, loss, &w, 1, &grad);
    ir_output(g, name_str(ctx, "loss"), loss);
    ir_output(g, name_str(ctx, "grad"), grad);
    return g;
}

/* A tensor in 70 parts, put together in the other order, and its gradient. */
static Graph *many_parts(Ctx *ctx)
{
    enum { PARTS = 70 };
    Graph *g = graph_new(ctx, ctx->program);
    Shape s = {.rank = 2, .d = {DIM(5), DIM(2 * PARTS)}};
    Val x = ir_ext(g, EXT_PARAM, name_str(ctx, "x"), DT_REAL, &s), part[PARTS], grad;
    for (int i = 0; i < PARTS; i++)
        part[i] = ir_slice(g, x, 1, 2 * (PARTS - 1 - i), 2);
    Val y = ir_concat(g, part, PARTS, 1);
    graph_gradient(g, ir_mean(g, ir_binary(g, OP_MUL, ir_unary(g, OP_TANH, y), x), 3, false), &x, 1, &grad);
    ir_output(g, name_str(ctx, "y"), y);
    ir_output(g, name_str(ctx, "grad"), grad);
    return graph_simplify(g, ctx->program);
}

Graph *moved_graph(Ctx *ctx, Dice *d)
{
    Moves m = {.g = graph_new(ctx, ctx->program), .dice = d};
    m.tokens = below(&m, 3) == 0;
    Shape s = some_shape(&m);
    Val v = parameter(&m, &s);
    for (int64_t n = 1 + below(&m, 3); n > 0; n--) {
        v = moves(&m, v, 3);
        int64_t k = below(&m, 6);
        v = k < 3 ? product(&m, v) : k < 4 ? sum(&m, v) : beside(&m, v);
    }
    v = moves(&m, v, 2);
    Val loss = ir_mean(m.g, ir_binary(m.g, OP_MUL, v, parameter(&m, shape_of(m.g, v))),
                       (1u << shape_of(m.g, v)->rank) - 1, false);
    ir_output(m.g, name_str(ctx, "y"), v);
    ir_output(m.g, name_str(ctx, "loss"), loss);
    Val grad[PARAMS_MAX];
    graph_gradient(m.g, loss, m.param, m.n_param, grad);
    for (size_t i = 0; i < m.n_param; i++)
        if (grad[i])
            ir_output(m.g, name_printf(ctx, "g%zu", i), grad[i]);
    return below(&m, 2) ? graph_simplify(m.g, ctx->program) : m.g;
}

/* Plans for both kinds of machine, every kernel proved. */
static void plan_only(Ctx *ctx, const Graph *g)
{
    for (int kind = 0; kind < 4; kind++) {
        PlanOptions how = {.B = 2, .T = 3, .no_fusion = kind & 1, .target = kind & 2 ? &target_gpu : NULL};
        plan_verify(ctx, plan_build(ctx, ctx->program, g, &how));
    }
}

int moved_run(int argc, char **argv, const HostDevice *device, int count)
{
    Ctx *ctx = ctx_new(NULL);
    CtxGuard guard;
    int bad = 1;
    volatile int now = argc > 1 ? atoi(argv[1]) : 0;
    const int end = now + (argc > 2 ? atoi(argv[2]) : count), last = argc > 1 || device ? end : 8 * end;
    setenv("VWN_TEST_CFLAGS", "-O0", 0); /* kernels of such graphs are long, and run once */
    if (CTX_TRY(ctx, &guard)) {
        Cases *cases = cases_new(ctx, device);
        cases_add(cases, "a product beside a shift", product_beside_shift(ctx), 1, 1, 5, 1e-4);
        cases_add(cases, "many parts", many_parts(ctx), 1, 1, 5, 1e-4);
        for (; now < last; now++) {
            Dice d = {(uint64_t)now * 7919 + 13};
            dice(&d, 2);
            char name[32];
            snprintf(name, sizeof name, "moved graph %d", now);
            if (now < end)
                cases_add(cases, name, moved_graph(ctx, &d), 2, 3, 5, 1e-4);
            else
                plan_only(ctx, moved_graph(ctx, &d));
        }
        bad = cases_run(cases);
        ctx_leave(ctx, &guard);
    } else {
        printf("FAIL graph %d: %s\n", now, ctx->message);
    }
    ctx_free(ctx);
    return bad;
}
