/* chains.c - a chain of many statements is planned, and computes, in proportion to its length.
 *
 * In:  chains of one statement after the other, each reading the result before it once or twice, element by element
 *      or moved, and their gradients.
 * Out: a case for each; `N passed, N failed`. Ten thousand statements are planned at all, with launches, operations
 *      and bytes for each statement that do not grow with their number.
 * The one idea: what a statement reads twice doubles, with each statement, the ways to the first one. Whoever walks
 *      along all of them, or prints or computes anew what lies on them, does not end with the second chain.
 */
#include "../models.h"

#include "cases.h"

#include "compiler/plan.h"

typedef Val Step(Graph *g, Val x, int i);

static Val turned(Graph *g, Val x, int i)
{
    (void)i;
    Val part[2] = {ir_slice(g, x, 2, 23, 17), ir_slice(g, x, 2, 0, 23)};
    return ir_concat(g, part, 2, 2);
}

static Val rolled(Graph *g, Val x, int i)
{
    return ir_roll(g, x, 1, i % 3 + 1);
}

static Val shifted(Graph *g, Val x, int i)
{
    return ir_shift(g, x, 1 + i % 2, i % 5 - 2, 0.5);
}

static Val transposed(Graph *g, Val x, int i)
{
    const Shape apart = {.rank = 4, .d = {DIM_B, DIM_T, DIM(5), DIM(8)}}, turned = {.rank = 4, .d = {DIM_B, DIM_T, DIM(8), DIM(5)}};
    return ir_reshape(g, ir_transpose(g, ir_reshape(g, x, i % 2 ? &apart : &turned)), shape_of(g, x));
}

static Val reshaped(Graph *g, Val x, int i)
{
    const Shape apart = {.rank = 3, .d = {DIM_B, DIM(20), {2, 0, 1}}};
    (void)i;
    Val y = ir_reshape(g, x, &apart);
    return ir_reshape(g, ir_roll(g, y, 1, 3), shape_of(g, x));
}

static Val chosen(Graph *g, Val x, int i)
{
    return ir_where(g, ir_binary(g, OP_LT, x, ir_fill(g, 0.01 * (i % 7))), x, ir_roll(g, x, 2, 1));
}

static Val summed(Graph *g, Val x, int i)
{
    return ir_scale(g, ir_cumsum(g, x, 1 + i % 2, i % 3 == 0), 0.125);
}

static Val residual(Graph *g, Val x, int i)
{
    (void)i;
    return ir_binary(g, OP_ADD, x, ir_unary(g, OP_TANH, x));
}

static Val mixed(Graph *g, Val x, int i)
{
    return ir_binary(g, OP_ADD, x, ir_scale(g, ir_shift(g, x, 2, i % 2 ? 3 : 1, 0), 0.5));
}

static Val mixed_in_time(Graph *g, Val x, int i)
{
    return ir_binary(g, OP_ADD, x, ir_scale(g, ir_shift(g, x, 1, i % 2 ? 3 : 1, 0), 0.5));
}

/* h[t] = sum over u <= t of the products of a from u + 1 to t, times x[u]; statement i looks 2^i back. */
static Val scan(Graph *g, Val x, Val a, int steps)
{
    for (int i = 0; i < steps; i++) {
        x = ir_binary(g, OP_ADD, x, ir_binary(g, OP_MUL, a, ir_shift(g, x, 1, (int64_t)1 << i, 0)));
        a = ir_binary(g, OP_MUL, a, ir_shift(g, a, 1, (int64_t)1 << i, 0));
    }
    return x;
}

static const struct {
    const char *name;
    Step *step; /* NULL: scan() */
} kinds[] = {{"parts change places", turned}, {"roll", rolled}, {"shift", shifted}, {"transpose", transposed},
             {"reshape", reshaped}, {"where", chosen}, {"cumsum", summed}, {"x + f(x)", residual},
             {"x + shift(x)", mixed}, {"x + shift(x) in time", mixed_in_time}, {"scan by doubling", NULL}};

enum { MANY = 10000, FEW = 150, CHECKED = 9, T = 10, SCAN = 8, SCAN_FEW = 5 };

typedef struct Cost {
    double launches, work, bytes; /* of a statement */
} Cost;

static Graph *chain(Ctx *ctx, size_t kind, int steps)
{
    Graph *g = graph_new(ctx, ctx->program);
    const Shape s = {.rank = 3, .d = {DIM_B, DIM_T, DIM(40)}};
    Val x = ir_ext(g, EXT_PARAM, name_str(ctx, "x"), DT_REAL, &s), y = x, d = 0;
    if (!kinds[kind].step)
        y = scan(g, x, ir_unary(g, OP_SIGMOID, x), steps);
    for (int i = 0; i < steps && kinds[kind].step; i++)
        y = kinds[kind].step(g, y, i);
    ir_output(g, name_str(ctx, "y"), y);
    graph_gradient(g, ir_sum(g, ir_binary(g, OP_MUL, y, y), 7, false), &x, 1, &d);
    ir_output(g, name_str(ctx, "dx"), d);
    return g;
}

/* device: kernels are printed for it; else they are counted. */
static Cost cost(Ctx *ctx, size_t kind, int steps, bool device)
{
    bool doubling = !kinds[kind].step;
    PlanOptions how = {.B = 2, .T = doubling ? (int64_t)1 << steps : T, .cuda = device, .arena_only = !device,
                       .counted = !device};
    const Graph *g = chain(ctx, kind, steps);
    const Plan *p = plan_build(ctx, ctx->program, plan_graph(g, ctx->program, &how), &how);
    Cost c = {(double)p->n_launch, 0, 0};
    for (size_t i = 0; i < p->n_launch; i++) {
        c.work += p->launch[i].work.lane + p->launch[i].work.single + p->launch[i].work.call;
        c.bytes += p->launch[i].bytes;
    }
    double elements = (double)(how.B * how.T * 40);
    return (Cost){c.launches / steps, c.work / steps / elements, c.bytes / steps / elements};
}

typedef struct Case {
    size_t kind;
    bool device;
    Cost few, many;
} Case;

static void measure(Ctx *ctx, void *arg)
{
    Case *c = arg;
    bool doubling = !kinds[c->kind].step;
    c->few = cost(ctx, c->kind, doubling ? SCAN_FEW : FEW, c->device);
    c->many = cost(ctx, c->kind, doubling ? SCAN : c->device ? 2 * FEW : MANY, c->device);
}

/* A statement of many costs what one of a few does. */
static bool same(double few, double many) { return many <= 1.25 * few + 0.01; }

static bool run_one(size_t i)
{
    Case c = {.kind = i / 2, .device = i & 1};
    Ctx *ctx = ctx_new(NULL);
    bool ok = guarded(ctx, measure, &c) && same(c.few.launches, c.many.launches) && same(c.few.work, c.many.work) &&
              same(c.few.bytes, c.many.bytes);
    printf("%-22s %-6s a statement: %.3f launches, %.1f operations and %.1f bytes an element; of few: %.3f, %.1f, %.1f%s\n",
           kinds[c.kind].name, c.device ? "device" : "", c.many.launches, c.many.work,
           c.many.bytes, c.few.launches, c.few.work, c.few.bytes, ok ? "" : "  FAILED");
    ctx_free(ctx);
    return ok;
}

static const char *case_name(size_t i) { return kinds[i / 2].name; }

/* The numbers of short chains are those of the reference evaluator. */
static void check_numbers(Ctx *ctx, void *arg)
{
    Cases *cases = cases_new(ctx, NULL);
    for (size_t kind = 0; kind < COUNT_OF(kinds); kind++) {
        const Graph *g = chain(ctx, kind, kinds[kind].step ? CHECKED : 4);
        cases_add(cases, kinds[kind].name, g, 2, T, 9, 2e-5);
    }
    *(int *)arg = cases_run(cases);
}

int main(int argc, char **argv)
{
    int wrong = 1;
    Ctx *ctx = ctx_new(NULL);
    bool done = guarded(ctx, check_numbers, &wrong);
    ctx_free(ctx);
    int failed = run_cases(argc, argv, 2 * COUNT_OF(kinds), case_name, run_one);
    return done && !wrong ? failed : 1;
}
