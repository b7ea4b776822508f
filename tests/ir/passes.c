/* passes.c - simplifying, writing and reading back, on random graphs and on a decoder.
 *
 * In:  random graphs over the primitives, with and without their gradients.
 * Out: checks that a pass keeps the values and the tables, that simplifying twice is
 * simplifying
 *      once, that the text reads back to the same text, and that each identity does what it
 * says.
 * When: quick.
 */
#include "compiler/pass/simplify.h"
#include "support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static bool close_to(double a, double b)
{
    if (isnan(a) || isnan(b))
        return isnan(a) && isnan(b);
    return a == b || fabs(a - b) <= 1e-9 * fmax(1, fmax(fabs(a), fabs(b)));
}

static double largest_difference(const Graph *g, Tensor **x, Tensor **y, size_t *where)
{
    double worst = 0;
    for (size_t i = 0; i < g->out.n; i++)
        for (int64_t k = 0; k < x[i]->size; k++) {
            double a = x[i]->dtype == DT_INT ? (double)x[i]->integer[k] : x[i]->real[k];
            double b = y[i]->dtype == DT_INT ? (double)y[i]->integer[k] : y[i]->real[k];
            if (!close_to(a, b) && !(fabs(a - b) <= worst)) {
                worst = isnan(a - b) ? INFINITY : fabs(a - b);
                *where = i;
            }
        }
    return worst;
}

static void same_values(Tally *t, Bench *b, const Graph *x, const Graph *y, const char *what, int n)
{
    size_t where = 0;
    Tensor **rx = bench_run(b, x), **ry = bench_run(b, y);
    double worst = rx && ry ? largest_difference(x, rx, ry, &where) : INFINITY;
    check(t, worst == 0, "%s %d: output %zu differs by %g", what, n, where, worst);
}

static void text_round_trip(Tally *t, Bench *b, const Graph *g, const char *what, int n)
{
    const char *text = bench_dump(b, g);
    Graph *again = bench_read(b, text);
    check(t, again != NULL, "%s %d: the text does not read back", what, n);
    if (!again)
        return;
    graph_verify(again);
    check(t, !strcmp(bench_dump(b, again), text), "%s %d: the text changes", what, n);
    same_values(t, b, g, again, what, n);
}

static void check_graph(Tally *t, Bench *b, const char *what, int n, size_t *before, size_t *after)
{
    graph_verify(b->g);
    Graph *s = graph_simplify(b->g, b->ctx->program);
    graph_verify(s);
    *before += b->g->node.n;
    *after += s->node.n;
    same_values(t, b, b->g, s, what, n);
    Graph *twice = graph_simplify(s, b->ctx->program);
    const char *one = bench_dump(b, s), *two = bench_dump(b, twice);
    check(t, !strcmp(one, two), "%s %d: simplifying again changes the graph", what, n);
    check(t, s->ext.n == b->g->ext.n && s->host.n == b->g->host.n && s->out.n == b->g->out.n,
          "%s %d: the tables change", what, n);
    text_round_trip(t, b, b->g, what, n);
    text_round_trip(t, b, s, what, n);
}

static void random_graph(Tally *t, int n, size_t *before, size_t *after)
{
    Bench *b = bench_new();
    b->seed = (uint64_t)n * 7919 + 11;
    b->B = 1 + n % 3;
    b->T = 1 + n % 4;
    CtxGuard guard;
    if (CTX_TRY(b->ctx, &guard)) {
        bench_random_graph(b, 10 + n % 50, n % 2);
        check_graph(t, b, "random graph", n, before, after);
        ctx_leave(b->ctx, &guard);
    } else {
        check(t, false, "random graph %d raised: %s", n, b->ctx->message);
    }
    bench_free(b);
}

static void random_graphs(Tally *t, int count)
{
    size_t before = 0, after = 0;
    for (int n = 0; n < count; n++)
        random_graph(t, n, &before, &after);
    printf("random graphs: %zu nodes, %zu simplified\n", before, after);
}

static void decoder(Tally *t)
{
    Bench *b = bench_new();
    b->T = 5;
    size_t before = 0, after = 0, compared = 0;
    Val loss = bench_decoder(b, 2, 8, 4, 11);
    double error = bench_gradient_error(b, loss, &compared);
    check(t, error < 1e-6, "decoder: gradient wrong by %g", error);
    check_graph(t, b, "decoder", 0, &before, &after);
    printf("decoder: %zu nodes, %zu simplified, %zu derivatives, worst %.2g\n", before, after, compared, error);
    bench_free(b);
}

/* Every shared matrix gets its gradient from one product over all rows. */
static void weight_gradients(Tally *t)
{
    Bench *b = bench_new();
    Val loss = bench_decoder(b, 1, 8, 4, 11);
    Val *d = NEW_ARRAY(b->ctx->program, Val, b->params.n);
    graph_gradient(b->g, loss, b->params.v, b->params.n, d);
    int products = 0;
    for (size_t p = 0; p < b->params.n; p++) {
        const Node *n = node_at(b->g, d[p]);
        const Shape *s = shape_of(b->g, b->params.v[p]);
        if (s->rank != 2 || n->op != OP_MATMUL)
            continue;
        products++;
        check(t, shape_of(b->g, n->in[0])->rank == 2 && shape_of(b->g, n->in[1])->rank == 2,
              "the gradient of parameter %zu is not one product", p);
    }
    check(t, products == 7, "%d of 7 matrices have one product as gradient", products);
    bench_free(b);
}

/* ---- the identities, one by one ---- */

typedef struct Identity {
    const char *name;
    Val (*build)(Bench *b, Val x); /* x: [B, T, 4, 6] */
    const char *expect;            /* the operators of the result's nodes, in order */
} Identity;

#define IDENTITY(id) static Val id(Bench *b, Val x)
#define U(op, a)     ir_unary(b->g, OP_##op, a)
#define B2(op, a, c) ir_binary(b->g, OP_##op, a, c)
#define N(v)         ir_fill(b->g, v)

IDENTITY(plus_zero) { return B2(ADD, B2(ADD, N(0), x), N(0)); }
IDENTITY(minus_zero) { return B2(SUB, x, N(0)); }
IDENTITY(from_zero) { return B2(SUB, N(0), x); }
IDENTITY(times_one) { return B2(MUL, B2(MUL, N(1), x), N(1)); }
IDENTITY(times_zero) { return B2(MUL, U(EXP, x), N(0)); }
IDENTITY(over_one) { return B2(DIV, x, N(1)); }
IDENTITY(over_four) { return B2(DIV, x, N(4)); }
IDENTITY(over_three) { return B2(DIV, x, N(3)); }
IDENTITY(twice_negated) { return U(NEG, U(NEG, x)); }
IDENTITY(minus_negated) { return B2(SUB, x, U(NEG, x)); }
IDENTITY(squared) { return B2(POW, x, N(2)); }
IDENTITY(root) { return B2(POW, x, N(0.5)); }
IDENTITY(cubed) { return B2(POW, x, N(3)); }
IDENTITY(same_twice) { return B2(ADD, U(EXP, x), U(EXP, x)); }
IDENTITY(turned_sum)
{
    Val e = U(EXP, x), s = U(SIN, x);
    return B2(SUB, B2(ADD, e, s), B2(ADD, s, e));
}
IDENTITY(turned_difference)
{
    Val e = U(EXP, x), s = U(SIN, x);
    return B2(MUL, B2(SUB, e, s), B2(SUB, s, e));
}
IDENTITY(always_first) { return ir_where(b->g, N(1), U(EXP, x), U(SIN, x)); }
IDENTITY(always_second) { return ir_where(b->g, N(0), U(EXP, x), U(SIN, x)); }
IDENTITY(same_choice) { return ir_where(b->g, B2(LT, x, N(1)), U(SIN, x), U(SIN, x)); }
IDENTITY(turned_back) { return ir_transpose(b->g, ir_transpose(b->g, x)); }
IDENTITY(reshaped_back)
{
    Shape flat = {.rank = 1}, s = *shape_of(b->g, x);
    shape_size(&s, &flat.d[0]);
    return ir_reshape(b->g, ir_reshape(b->g, x, &flat), &s);
}
IDENTITY(ones_moved)
{
    Shape s = bench_shape(3, DIM(1), DIM(4), DIM(1));
    Shape t = bench_shape(3, DIM(4), DIM(1), DIM(1));
    Val y = bench_param(b, &t, -1, 1);
    (void)x;
    return ir_permute(b->g, ir_reshape(b->g, y, &s), (int[]){1, 0, 2});
}
IDENTITY(left_flag) { return ir_matmul(b->g, ir_transpose(b->g, x), x); }
IDENTITY(both_flags)
{
    Shape w = bench_shape(2, DIM(3), DIM(4));
    Val y = ir_transpose(b->g, bench_param(b, &w, -1, 1));
    return ir_matmul(b->g, ir_transpose(b->g, x), y);
}
IDENTITY(shared_again)
{
    Shape w = bench_shape(2, DIM(6), DIM(3)), s = *shape_of(b->g, x);
    s.d[2] = DIM(6), s.d[3] = DIM(3);
    return ir_matmul(b->g, x, ir_broadcast(b->g, bench_param(b, &w, -1, 1), &s));
}
IDENTITY(sum_of_repeats)
{
    Val s = ir_sum(b->g, x, 8, true);
    return ir_sum(b->g, ir_broadcast(b->g, s, shape_of(b->g, x)), 8, true);
}
IDENTITY(sum_of_ones)
{
    Val s = ir_sum(b->g, x, 8, true);
    return ir_sum(b->g, s, 8, true);
}
IDENTITY(split_and_joined)
{
    Val p[2] = {ir_slice(b->g, x, 3, 0, 2), ir_slice(b->g, x, 3, 2, 4)};
    return ir_concat(b->g, p, 2, 3);
}
/* the gradients of three slices, as the sweep adds them up */
IDENTITY(slices_summed)
{
    Val p0 = ir_pad(b->g, ir_slice(b->g, U(EXP, x), 3, 0, 2), 3, 0, 4);
    Val p1 = ir_pad(b->g, ir_slice(b->g, U(SIN, x), 3, 0, 3), 3, 2, 1);
    Val p2 = ir_pad(b->g, ir_slice(b->g, U(COS, x), 3, 0, 1), 3, 5, 0);
    return B2(ADD, B2(ADD, B2(ADD, x, p2), p1), p0);
}
IDENTITY(slices_apart)
{
    Val p0 = ir_pad(b->g, ir_slice(b->g, x, 3, 0, 2), 3, 0, 4);
    Val p1 = ir_pad(b->g, ir_slice(b->g, x, 3, 1, 2), 3, 1, 3);
    return B2(ADD, p0, p1);
}
/* the gradient of what a narrower state leaves behind, where it has not become narrower */
IDENTITY(pad_of_nothing) { return B2(ADD, x, ir_pad(b->g, ir_slice(b->g, U(EXP, x), 3, 6, 0), 3, 6, 0)); }
IDENTITY(joined_and_split)
{
    Val p[2] = {x, U(EXP, x)};
    return ir_slice(b->g, ir_concat(b->g, p, 2, 3), 3, 1, 5);
}
IDENTITY(second_part)
{
    Val p[3] = {U(EXP, x), U(SIN, x), U(COS, x)};
    return ir_slice(b->g, ir_concat(b->g, p, 3, 3), 3, 7, 4);
}
IDENTITY(across_parts)
{
    Val p[2] = {U(EXP, x), U(SIN, x)};
    return ir_slice(b->g, ir_concat(b->g, p, 2, 3), 3, 5, 2);
}
IDENTITY(sliced_twice) { return ir_slice(b->g, ir_slice(b->g, x, 3, 2, 4), 3, 1, 2); }
IDENTITY(swapped_parts)
{
    Val p[2] = {ir_slice(b->g, x, 3, 4, 2), ir_slice(b->g, x, 3, 0, 4)};
    return ir_concat(b->g, p, 2, 3);
}
IDENTITY(more_swapped)
{
    Shape s = bench_shape(4, DIM(3), DIM(3), DIM(4), DIM(6));
    Val y = bench_param(b, &s, -1, 1);
    (void)x;
    return ir_matmul(b->g, ir_permute(b->g, y, (int[]){1, 0, 3, 2}), y);
}
IDENTITY(folded)
{
    Shape s = bench_shape(1, DIM(6));
    Val c = ir_const(b->g, &s, (double[]){1, 2, 3, 4, 5, 6});
    return B2(MUL, x, B2(ADD, U(EXP, c), B2(MUL, N(2), N(3))));
}
IDENTITY(scalar_first)
{
    Val h = ir_host(b->g, host_var(b->g->arena, HV_STEP));
    Val y = ir_broadcast(b->g, h, shape_of(b->g, x));
    return B2(MUL, x, U(EXP, B2(ADD, y, N(1))));
}
IDENTITY(same_noise)
{
    Val p = ir_random(b->g, OP_RAND, shape_of(b->g, x), bench_name(b, "one"));
    Val q = ir_random(b->g, OP_RAND, shape_of(b->g, x), bench_name(b, "one"));
    return B2(MUL, x, B2(SUB, p, q));
}
IDENTITY(other_noise)
{
    Val p = ir_random(b->g, OP_RAND, shape_of(b->g, x), bench_name(b, "one"));
    Val q = ir_random(b->g, OP_RAND, shape_of(b->g, x), bench_name(b, "two"));
    return B2(MUL, x, B2(SUB, p, q));
}
IDENTITY(stopped) { return ir_stop(b->g, U(EXP, x), STOP_GRADIENT); }
IDENTITY(dead)
{
    U(EXP, x);
    U(LOG, x);
    return U(SIN, x);
}

static const Identity identities[] = {
    {"x + 0", plus_zero, "ext"},
    {"x - 0", minus_zero, "ext"},
    {"0 - x", from_zero, "ext neg"},
    {"x * 1", times_one, "ext"},
    {"x * 0", times_zero, "fill reshape broadcast"},
    {"x / 1", over_one, "ext"},
    {"x / 4", over_four, "ext fill reshape broadcast mul"},
    {"x / 3", over_three, "ext fill reshape broadcast div"},
    {"--x", twice_negated, "ext"},
    {"x - -x", minus_negated, "ext add"},
    {"x ^ 2", squared, "ext mul"},
    {"x ^ 0.5", root, "ext sqrt"},
    {"x ^ 3", cubed, "ext fill reshape broadcast pow"},
    {"doubles", same_twice, "ext exp add"},
    {"a + b = b + a", turned_sum, "ext exp sin add sub"},
    {"a - b is not b - a", turned_difference, "ext exp sin sub sub mul"},
    {"always the first", always_first, "ext exp"},
    {"always the second", always_second, "ext sin"},
    {"the same choice", same_choice, "ext sin"},
    {"transpose twice", turned_back, "ext"},
    {"reshape twice", reshaped_back, "ext"},
    {"only ones move", ones_moved, "ext"},
    {"transposed left", left_flag, "ext matmul"},
    {"transposed both", both_flags, "ext ext matmul"},
    {"transposed and more", more_swapped, "ext permute matmul"},
    {"a matrix repeated", shared_again, "ext ext matmul"},
    {"sum of repeats", sum_of_repeats, "ext sum fill reshape broadcast mul"},
    {"sum over one", sum_of_ones, "ext sum"},
    {"split and joined", split_and_joined, "ext"},
    {"slices summed", slices_summed, "ext exp slice sin slice cos slice concat add"},
    {"slices that overlap", slices_apart, "ext slice pad slice pad add"},
    {"a pad of nothing", pad_of_nothing, "ext"},
    {"joined and split", joined_and_split, "ext slice"},
    {"second part", second_part, "ext sin slice"},
    {"across parts", across_parts, "ext exp sin concat slice"},
    {"sliced twice", sliced_twice, "ext slice"},
    {"swapped parts", swapped_parts, "ext slice slice concat"},
    {"tables", folded, "ext const broadcast mul"},
    {"scalars first", scalar_first, "ext host reshape fill reshape add exp broadcast mul"},
    {"the same noise", same_noise, "ext rand sub mul"},
    {"other noise", other_noise, "ext rand rand sub mul"},
    {"stop stays", stopped, "ext exp stop_gradient"},
    {"dead code", dead, "ext sin"},
};

static const char *operators(Bench *b, const Graph *g)
{
    Buf out = buf_new(b->ctx->program);
    for (Val v = 1; v < g->node.n; v++)
        buf_printf(&out, "%s%s", v > 1 ? " " : "", op_info((Op)node_at(g, v)->op)->name);
    return out.s;
}

static void check_identities(Tally *t)
{
    for (size_t k = 0; k < COUNT_OF(identities); k++) {
        const Identity *id = &identities[k];
        Bench *b = bench_new();
        Shape s = bench_shape(4, DIM_B, DIM_T, DIM(4), DIM(6));
        size_t before = 0, after = 0;
        Val y = id->build(b, bench_param(b, &s, 0.5, 2));
        ir_output(b->g, bench_name(b, "y"), y);
        check_graph(t, b, id->name, 0, &before, &after);
        const char *have = operators(b, graph_simplify(b->g, b->ctx->program));
        check(t, !strcmp(have, id->expect), "%s: `%s` instead of `%s`", id->name, have, id->expect);
        bench_free(b);
    }
}

/* STOP has done its work once gradients were taken, and only then. */
static void stop_goes(Tally *t)
{
    Bench *b = bench_new();
    Shape s = bench_shape(1, DIM(3));
    Val x = bench_param(b, &s, 0.5, 2), d;
    Val y = ir_binary(b->g, OP_MUL, x, ir_stop(b->g, x, STOP_GRADIENT));
    Val loss = ir_sum(b->g, y, 1, false);
    graph_gradient(b->g, loss, &x, 1, &d);
    ir_output(b->g, bench_name(b, "d"), d);
    Graph *g = graph_simplify(b->g, b->ctx->program);
    check(t, !strstr(bench_dump(b, g), "stop_gradient"), "a stop_gradient stays after gradients");
    Tensor **r = bench_run(b, g);
    check(t, r && r[0]->real[1] == bench_tensor(b, x)->real[1], "stop_gradient passes a gradient");
    bench_free(b);
}

/* A stored tensor that is also read keeps its old value for every reader. */
static void stores(Tally *t)
{
    Bench *b = bench_new();
    Shape s = bench_shape(1, DIM(3));
    Val x = bench_param(b, &s, 0.5, 2);
    Name name = b->g->ext.v[0].name;
    double old = bench_tensor(b, x)->real[1];
    ir_output(b->g, bench_name(b, "after"), ir_scale(b->g, x, 5));
    ir_store(b->g, ir_scale(b->g, x, 3), EXT_PARAM, name);
    Graph *g = graph_simplify(b->g, b->ctx->program);
    const char *text = bench_dump(b, g);
    check(t, !strcmp(text, bench_dump(b, bench_read(b, text))), "stores do not read back");
    Tensor **r = bench_run(b, g);
    check(t, r && r[0]->real[1] == 5 * old, "a reader sees the stored value");
    check(t, bench_tensor(b, x)->real[1] == 3 * old, "the value is not stored");
    bench_free(b);
}

int main(int argc, char **argv)
{
    Tally t = {0};
    check_identities(&t);
    stop_goes(&t);
    stores(&t);
    weight_gradients(&t);
    decoder(&t);
    random_graphs(&t, argc > 1 ? atoi(argv[1]) : 600);
    return tally_end(&t, "passes");
}
