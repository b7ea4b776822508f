/* chains.c - a chain of many statements is planned, and computes, in proportion to its length.
 *
 * In:  chains of one statement after the other, each reading the result before it once or twice, element by element
 *      or moved, and their gradients.
 * Out: a case for each; `N passed, N failed`. Three hundred statements (whole: ten thousand) are planned at all, with launches, operations
 *      and bytes for each statement that do not grow with their number. Products of small matrices in a chain, written
 *      out in one kernel millions of expressions, are several kernels. A row of many parts takes, for each part, what
 *      a row of half as many does, and no kernel of it or of its gradient is long.
 * The one idea: what a statement reads twice doubles, with each statement, the ways to the first one. Whoever walks
 *      along all of them, or prints or computes anew what lies on them, does not end with the second chain.
 * When: first, slow. kernel.ops, kernel.random and equal.models go the same ways.
 */
#include "support/models.h"
#include "support/sanitized.h"

#include "cases.h"

#include "compiler/plan/plan.h"

#include <sys/resource.h>

typedef Val Step(Graph *g, Val x, int i);

static Val turned(Graph *g, Val x, int i)
{
    (void)i;
    Val part[2] = {ir_slice(g, x, 2, 23, 17), ir_slice(g, x, 2, 0, 23)};
    return ir_concat(g, part, 2, 2);
}

static Val rolled(Graph *g, Val x, int i) { return ir_roll(g, x, 1, i % 3 + 1); }

static Val shifted(Graph *g, Val x, int i) { return ir_shift(g, x, 1 + i % 2, i % 5 - 2, 0.5); }

static Val transposed(Graph *g, Val x, int i)
{
    const Shape apart = {.rank = 4, .d = {DIM_B, DIM_T, DIM(5), DIM(8)}},
                turned = {.rank = 4, .d = {DIM_B, DIM_T, DIM(8), DIM(5)}};
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

static Val summed(Graph *g, Val x, int i) { return ir_scale(g, ir_cumsum(g, x, 1 + i % 2, i % 3 == 0), 0.125); }

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

static Val multiplied(Graph *g, Val x, int i)
{
    const Shape apart = {.rank = 5, .d = {DIM_B, DIM_T, DIM(2), DIM(5), DIM(4)}},
                flat = {.rank = 3, .d = {DIM_B, DIM_T, DIM(32)}};
    (void)i;
    Val a = ir_reshape(g, x, &apart), gram = ir_scale(g, ir_matmul(g, ir_transpose(g, a), a), 0.3);
    Val gate = ir_unary(g, OP_SIGMOID, gram),
        y = ir_scale(g, ir_matmul(g, ir_matmul(g, gram, gate), ir_transpose(g, gate)), 0.1);
    return ir_pad(g, ir_reshape(g, y, &flat), 2, 0, 8);
}

static const struct {
    const char *name;
    Step *step; /* NULL: scan() */
} kinds[] = {{"parts change places", turned},
             {"roll", rolled},
             {"shift", shifted},
             {"transpose", transposed},
             {"reshape", reshaped},
             {"where", chosen},
             {"cumsum", summed},
             {"x + f(x)", residual},
             {"x + shift(x)", mixed},
             {"x + shift(x) in time", mixed_in_time},
             {"scan by doubling", NULL}};

enum { MANY = 300, MANY_WHOLE = 10000, FEW = 100, CHECKED = 9, T = 10, SCAN = 8, SCAN_FEW = 5 };

typedef struct Cost {
    double launches, work, bytes; /* of a statement */
} Cost;

static Graph *chain_of(Ctx *ctx, Step *step, int steps)
{
    Graph *g = graph_new(ctx, ctx->program);
    const Shape s = {.rank = 3, .d = {DIM_B, DIM_T, DIM(40)}};
    Val x = ir_ext(g, EXT_PARAM, name_str(ctx, "x"), DT_REAL, &s), y = x, d = 0;
    if (!step)
        y = scan(g, x, ir_unary(g, OP_SIGMOID, x), steps);
    for (int i = 0; i < steps && step; i++)
        y = step(g, y, i);
    ir_output(g, name_str(ctx, "y"), y);
    graph_gradient(g, ir_sum(g, ir_binary(g, OP_MUL, y, y), 7, false), &x, 1, &d);
    ir_output(g, name_str(ctx, "dx"), d);
    return g;
}

static Graph *chain(Ctx *ctx, size_t kind, int steps) { return chain_of(ctx, kinds[kind].step, steps); }

/* device: kernels are printed for it; else they are counted. */
static Cost cost(Ctx *ctx, size_t kind, int steps, bool device)
{
    bool doubling = !kinds[kind].step;
    PlanOptions how = {.B = 2,
                       .T = doubling ? (int64_t)1 << steps : T,
                       .target = device ? &target_gpu : NULL,
                       .arena_only = !device,
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
    c->many = cost(ctx, c->kind, doubling ? SCAN : c->device ? 2 * FEW : test_whole() ? MANY_WHOLE : MANY, c->device);
}

/* A statement of many costs what one of a few does. */
static bool same(double few, double many) { return many <= 1.25 * few + 0.01; }

static bool run_one(size_t i)
{
    Case c = {.kind = i / 2, .device = i & 1};
    Ctx *ctx = ctx_new(NULL);
    bool ok = guarded(ctx, measure, &c) && same(c.few.launches, c.many.launches) && same(c.few.work, c.many.work) &&
              same(c.few.bytes, c.many.bytes);
    printf("%-22s %-6s a statement: %.3f launches, %.1f operations and %.1f bytes an element; of few: %.3f, %.1f, "
           "%.1f%s\n",
           kinds[c.kind].name, c.device ? "device" : "", c.many.launches, c.many.work, c.many.bytes, c.few.launches,
           c.few.work, c.few.bytes, ok ? "" : "  FAILED");
    ctx_free(ctx);
    return ok;
}

enum { PRODUCTS = 4, PRODUCTS_WHOLE = 6, KERNEL_BYTES = 800000, ADDRESSES = 2000000000 };

/* The mean of what every second element has from a mean, one element before: both sums run over as many elements, and
 * the inner one stands behind a test of where the outer one is. */
static Graph *sums_behind_tests(Ctx *ctx)
{
    const Shape s = {.rank = 3, .d = {DIM_B, DIM_T, DIM(40)}},
                column = {.rank = 4, .d = {DIM_B, DIM_T, DIM(40), DIM(1)}};
    const Shape pairs = {.rank = 3, .d = {DIM_B, DIM_T, DIM(80)}}, flat = {.rank = 2, .d = {DIM_B, {40, 0, 1}}};
    Graph *g = graph_new(ctx, ctx->program);
    Val x = ir_ext(g, EXT_PARAM, name_str(ctx, "x"), DT_REAL, &s), d = 0;
    Val part[2] = {ir_reshape(g, ir_binary(g, OP_SUB, x, ir_mean(g, x, 4, true)), &column)};
    part[1] = ir_binary(g, OP_MUL, part[0], part[0]);
    Val y = ir_slice(g, ir_reshape(g, ir_concat(g, part, 2, 3), &pairs), 2, 0, 40);
    y = ir_binary(g, OP_SUB, y, ir_mean(g, y, 4, true));
    y = ir_reshape(g, ir_shift(g, ir_reshape(g, y, &flat), 1, 1, 0), &s);
    ir_output(g, name_str(ctx, "y"), y);
    graph_gradient(g, ir_sum(g, ir_binary(g, OP_MUL, y, y), 7, false), &x, 1, &d);
    ir_output(g, name_str(ctx, "dx"), d);
    return g;
}

/* A row of parts in another order: part k has `narrow + k * wider` coordinates. What is computed is each part, or all
 * that they are parts of. */
static Graph *row_of_parts(Ctx *ctx, int parts, int narrow, int wider, bool before)
{
    int64_t width = parts * narrow + wider * parts * (parts - 1) / 2, from = 0;
    const Shape s = {.rank = 3, .d = {DIM_B, DIM_T, DIM(width)}};
    Graph *g = graph_new(ctx, ctx->program);
    Val x = ir_ext(g, EXT_PARAM, name_str(ctx, "x"), DT_REAL, &s), *part = NEW_ARRAY(ctx->program, Val, (size_t)parts),
        d = 0;
    Val all = before ? ir_unary(g, OP_TANH, x) : x;
    for (int k = 0; k < parts; from += narrow + wider * k++) {
        Val own = ir_slice(g, all, 2, from, narrow + wider * k);
        part[(k + 1) % parts] = before ? own : ir_unary(g, OP_TANH, own);
    }
    Val y = ir_concat(g, part, (size_t)parts, 2);
    y = ir_binary(g, OP_SUB, y, ir_mean(g, y, 4, true));
    ir_output(g, name_str(ctx, "y"), y);
    graph_gradient(g, ir_sum(g, ir_binary(g, OP_MUL, y, y), 7, false), &x, 1, &d);
    ir_output(g, name_str(ctx, "dx"), d);
    return g;
}

enum {
    PARTS = 520,
    EXTENTS = 40,
    TURNED = 1100
}; /* more than a kernel has loops, than it puts together, than it does pieces of */

/* What a plan of a row of parts takes, for each of them. */
static double bytes_of_a_part(int parts)
{
    Ctx *ctx = ctx_new(NULL);
    PlanOptions how = {.B = 2, .T = T};
    plan_build(ctx, ctx->program, plan_graph(row_of_parts(ctx, parts, 1, 0, false), ctx->program, &how), &how);
    double bytes = (double)ctx->peak_bytes / parts;
    ctx_free(ctx);
    return bytes;
}

static void check_parts(Ctx *ctx, void *arg)
{
    (void)ctx;
    double few = bytes_of_a_part(PARTS / 2), many = bytes_of_a_part(PARTS);
    printf("a row of %d parts: %.0f bytes a part to plan it; of %d: %.0f\n", PARTS, many, PARTS / 2, few);
    *(int *)arg += !same(few, many);
}

enum { PARTS_BYTES = 60000, PARTS_ALL = 120000 };

/* What a compiler takes seconds for is no kernel of these, nor are all of them together. */
static void check_texts(Ctx *ctx, void *arg)
{
    static const struct {
        int parts, narrow, wider;
        bool before;
    } row[] = {
        {PARTS, 1, 0, false}, {PARTS, 2, 0, true}, {PARTS, 20, 0, false}, {100, 1, 1, true}, {TURNED, 20, 0, true}};
    for (size_t r = 0; r < 2 * COUNT_OF(row); r++) {
        PlanOptions how = {.B = 2, .T = T, .target = r & 1 ? &target_gpu : NULL};
        const Graph *g = row_of_parts(ctx, row[r / 2].parts, row[r / 2].narrow, row[r / 2].wider, row[r / 2].before);
        const Plan *p = plan_build(ctx, ctx->program, plan_graph(g, ctx->program, &how), &how);
        size_t most = 0, all = 0;
        for (size_t i = 0; i < p->n_kernel; i++) {
            most = p->kernel[i].length > most ? p->kernel[i].length : most;
            all += p->kernel[i].length;
        }
        bool ok = most <= PARTS_BYTES && all <= PARTS_ALL;
        printf("a row of %d parts%s: %zu kernels, %zu bytes, %zu at most%s\n", row[r / 2].parts,
               how.target ? " on a device" : "", p->n_kernel, all, most, ok ? "" : "  FAILED");
        *(int *)arg += !ok;
    }
}

/* Kernels that a compiler can be given, found without more memory than that. */
static void check_products(Ctx *ctx, void *arg)
{
    int products = test_whole() ? PRODUCTS_WHOLE : PRODUCTS;
    for (int device = 0; device < 2; device++) {
        PlanOptions how = {.B = 2, .T = T, .target = device ? &target_gpu : NULL};
        const Plan *p =
            plan_build(ctx, ctx->program, plan_graph(chain_of(ctx, multiplied, products), ctx->program, &how), &how);
        size_t most = 0;
        for (size_t i = 0; i < p->n_kernel; i++)
            most = p->kernel[i].length > most ? p->kernel[i].length : most;
        printf("%d products%s: %zu kernels, %zu bytes at most\n", 3 * products, device ? " on a device" : "",
               p->n_kernel, most);
        *(int *)arg += most > KERNEL_BYTES;
    }
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
    cases_add(cases, "sums behind tests", sums_behind_tests(ctx), 2, T, 9, 2e-5);
    cases_add(cases, "parts of many extents", row_of_parts(ctx, EXTENTS, 17, 1, false), 2, T, 9, 2e-5);
    *(int *)arg = cases_run(cases);
}

int main(int argc, char **argv)
{
    int wrong = 1;
    Ctx *ctx = ctx_new(NULL);
    bool done = guarded(ctx, check_numbers, &wrong);
    done &= guarded(ctx, check_parts, &wrong);
    done &= guarded(ctx, check_texts, &wrong);
    ctx_free(ctx);
    int failed = 0, long_ones = 0;
    if (argc < 2 || strcmp(argv[1], "products") != 0) /* which is no case of a list */
        failed =
            run_drawn(argc, argv, &(CaseDraw){.one_in = 12, .sanitized = 12}, 2 * COUNT_OF(kinds), case_name, run_one);
    ctx = ctx_new(NULL);
    if (!SANITIZED) { /* which takes minutes, and more memory, of its own */
        setrlimit(RLIMIT_AS, &(const struct rlimit){ADDRESSES, ADDRESSES});
        done &= guarded(ctx, check_products, &long_ones);
    }
    ctx_free(ctx);
    return done && !wrong && !long_ones ? failed : 1;
}
