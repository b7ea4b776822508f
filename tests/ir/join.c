/* join.c - products of a row that have one left factor, joined, against the graph as it was.
 *
 * In:  rows of a state, normalised and multiplied by three matrices of a few columns, with and without a gradient.
 * Out: checks that the joined graph gives the same values, how many products it has, and whether they read the state as it
 *      lies; that where something else reads what they read, or where they do not fit beside each other, less is done.
 * When: quick.
 */
#include "compiler/pass/join.h"
#include "compiler/pass/simplify.h"
#include "support.h"

#include <math.h>
#include <stdio.h>

enum { SEGMENTS = 8, WIDTH = 64, MATRICES = 3 };

typedef struct Case {
    const char *name;
    bool gradient, gain_learns; /* of the loss by the matrices and the state; by the gain, too */
    bool bare;                  /* no norm */
    bool read;                  /* what is normalised is also a result */
    int last;                   /* columns of the last matrix */
    int products;               /* expected */
    bool as_it_lies;            /* the state itself is multiplied */
} Case;

static const Case cases[] = {
    {"forward", false, false, false, false, 8, 1, true},
    {"with gradients", true, true, false, false, 8, 3, true},
    {"a gain that learns nothing", true, false, false, false, 8, 3, true},
    {"no norm", true, false, true, false, 8, 3, true},
    {"a norm that others read", false, false, false, true, 8, 1, false},
    {"a norm that others read, with gradients", true, true, false, true, 8, 3, false},
    {"seventeen columns", true, true, false, false, 9, 9, false},
};

static Val mean_square(Graph *g, Val x) { return ir_mean(g, ir_binary(g, OP_MUL, x, x), 1u << 3, true); }

/* The loss, a sum that is different for each coefficient. */
static Val build(Bench *b, const Case *c, Val *wrt, size_t *n)
{
    Graph *g = b->g;
    const int columns[MATRICES] = {4, 4, c->last};
    Shape state = bench_shape(4, DIM_B, DIM_T, DIM(SEGMENTS), DIM(WIDTH)), gain = bench_shape(1, DIM(WIDTH));
    Val x = bench_param(b, &state, -1, 1), y = x, w[MATRICES];
    for (int i = 0; i < MATRICES; i++) {
        Shape s = bench_shape(2, DIM(WIDTH), DIM(columns[i]));
        w[i] = bench_param(b, &s, -0.3, 0.5);
    }
    Val of = bench_param(b, &gain, 0.5, 1.5), loss = 0;
    if (!c->bare)
        y = ir_binary(g, OP_MUL, ir_binary(g, OP_DIV, x, ir_unary(g, OP_SQRT, mean_square(g, x))), of);
    if (c->read)
        ir_output(g, bench_name(b, "norm"), y);
    for (int i = 0; i < MATRICES; i++) {
        Val z = ir_unary(g, OP_TANH, ir_scale(g, ir_matmul(g, y, w[i]), 0.25));
        Val part = ir_sum(g, ir_binary(g, OP_MUL, z, ir_binary(g, OP_ADD, z, ir_fill(g, 0.3 + i))), 15, false);
        loss = loss ? ir_binary(g, OP_ADD, loss, part) : part;
    }
    *n = 0;
    wrt[(*n)++] = x;
    for (int i = 0; i < MATRICES; i++)
        wrt[(*n)++] = w[i];
    if (c->gain_learns)
        wrt[(*n)++] = of;
    return loss;
}

static Graph *graph_of(Bench *b, const Case *c)
{
    Val wrt[MATRICES + 2], d[MATRICES + 2];
    size_t n;
    Val loss = build(b, c, wrt, &n);
    ir_output(b->g, bench_name(b, "loss"), loss);
    if (c->gradient) {
        graph_gradient(b->g, loss, wrt, n, d);
        for (size_t i = 0; i < n; i++)
            ir_output(b->g, bench_name(b, arena_printf(b->ctx->program, "d%zu", i)), d[i]);
    }
    b->g->differentiated = true;
    return graph_simplify(b->g, b->ctx->program);
}

static int products_of(const Graph *g)
{
    int n = 0;
    for (Val v = 1; v < g->node.n; v++)
        n += node_at(g, v)->op == OP_MATMUL;
    return n;
}

/* Do all products by weights read what is given, as it lies? */
static bool reads_state(const Graph *g)
{
    bool all = true;
    for (Val v = 1; v < g->node.n; v++) {
        const Node *n = node_at(g, v);
        if (n->op == OP_MATMUL && !(n->a.i & 2) && shape_of(g, n->in[1])->rank == 2) {
            Val x = n->in[0];
            while (node_at(g, x)->op == OP_RESHAPE)
                x = node_at(g, x)->in[0];
            all = all && node_at(g, x)->op == OP_EXT;
        }
    }
    return all;
}

static double difference(const Tensor *x, const Tensor *y)
{
    double worst = 0;
    for (int64_t i = 0; i < x->size; i++) {
        double off = fabs(x->real[i] - y->real[i]) / fmax(1e-3, fabs(x->real[i]));
        worst = isnan(off) ? INFINITY : fmax(worst, off);
    }
    return worst;
}

static void check_case(Tally *t, const Case *c)
{
    Bench *b = bench_new();
    b->B = 2;
    b->T = 3;
    Graph *g = graph_of(b, c);
    PlanOptions how = {.B = b->B, .T = b->T, .target = &target_gpu, .half = HALF_BF16};
    const Graph *joined = graph_join(g, b->ctx->program, &how);
    graph_verify(joined);
    Tensor **x = bench_run(b, g), **y = bench_run(b, joined);
    check(t, joined->out.n == g->out.n, "%s: %zu results of %zu", c->name, joined->out.n, g->out.n);
    for (size_t i = 0; x && y && i < g->out.n; i++) {
        double off = difference(x[i], y[i]);
        check(t, off < 1e-9, "%s: %s is off by %g", c->name, g->out.v[i].name, off);
    }
    check(t, products_of(joined) == c->products, "%s: %d products, %d expected", c->name, products_of(joined),
          c->products);
    check(t, reads_state(joined) == c->as_it_lies, "%s: products read %s", c->name,
          c->as_it_lies ? "something else than the state" : "the state");
    how.target = &target_cpu;
    check(t, graph_join(g, b->ctx->program, &how) == g, "%s: joined where no tensor cores are", c->name);
    printf("%-42s %d products of %d\n", c->name, products_of(joined), products_of(g));
    bench_free(b);
}

int main(void)
{
    Tally t = {0};
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        check_case(&t, &cases[i]);
    return tally_end(&t, "join");
}
