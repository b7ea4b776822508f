/* dead.c - weights that can never learn: known counts, and gradients that are zero.
 *
 * In:  hand-built graphs.   Out: claims about model_find_dead.
 * The one idea: shapes alone decide, so the published 500M variable-width model is checked at
 * its full size; and on small graphs with random weights the number of exactly zero gradients
 * of the reference evaluator must be the number of dead weights.
 * When: quick.
 */
#include "build.h"
#include "harness.h"

static void dead_is(Tally *t, const Model *m, const char *path, int64_t dead)
{
    const Param *p = find_param(m, path);
    CHECK(t, p->dead == dead, "%s: %lld, not %lld", path, (long long)p->dead, (long long)dead);
}

/* Variable-Width Transformers, appendix A: rows d..d_1 of q, k, v of block 1 multiply exact
 * zeros; columns of the last projection beyond d are read only by a norm that stands before the
 * slice. */
static void check_500m(Tally *t, Ctx *ctx)
{
    for (int before = 0; before < 2; before++) {
        Carried c = {960, 100263, 16, 4, widths_500m, 24, before};
        Model *m = carried_model(ctx, &c, 4096);
        model_find_dead(m);
        dead_is(t, m, "layer[1].attention.q.W", 1760 * 800);
        dead_is(t, m, "layer[1].attention.k.W", 1760 * 800);
        dead_is(t, m, "layer[1].attention.v.W", 1760 * 800);
        dead_is(t, m, "layer[1].attention.norm.g", 800); /* gains of the padding */
        dead_is(t, m, "layer[1].attention.o.W", 0);
        dead_is(t, m, "layer[1].ffn.norm.g", 0); /* live after the attention's write */
        dead_is(t, m, "layer[1].ffn.gate.W", 0);
        dead_is(t, m, "layer[24].attention.o.W", 0);
        dead_is(t, m, "layer[24].ffn.down.W", before ? 0 : 4 * 1760 * 800);
        dead_is(t, m, "head.norm.g", before ? 800 : 0); /* read by nothing after the slice */
        /* 9,856,000 weights of matrices, as the paper counts them, and gains */
        int64_t sum = before ? 4224000 + 800 + 800 : 9856000 + 800;
        int64_t squares = 0, lengths = 0;
        for (int l = 0; l < 24; l++) {
            squares += widths_500m[l] * widths_500m[l];
            lengths += widths_500m[l];
        }
        int64_t stored = 2 * 100263LL * 960 + 16 * squares + 2 * lengths;
        stored += before ? 1760 : 960;
        ModelCount n = model_count(m);
        CHECK(t, n.dead == sum, "%lld, not %lld", (long long)n.dead, (long long)sum);
        CHECK(t, n.stored == stored, "%lld, not %lld", (long long)n.stored, (long long)stored);
        CHECK(t, n.live == n.stored - n.dead && n.active == n.live, "%lld", (long long)n.live);
    }
}

/* A width that narrows: nothing is padded, nothing is cut. */
static void check_narrow(Tally *t, Ctx *ctx)
{
    static const int64_t width[] = {8, 4, 6};
    Carried c = {8, 11, 2, 2, width, 3, false};
    Model *m = carried_model(ctx, &c, 5);
    model_find_dead(m);
    CHECK(t, model_count(m).dead == 0, "%lld", (long long)model_count(m).dead);
}

/* ---- single rules ---- */

/* An embedding of width 4 padded to 6, in module "m". */
static Model *padded(Ctx *ctx, Val *x)
{
    Model *m = model_new(ctx, 3);
    module(m, "m");
    *x = pad_to(m, ir_gather(m->graph, matrix(m, "E", 5, 4), input_ids(m, "tokens")), 6);
    return m;
}

static void finish_model(Model *m, Val y)
{
    add_loss(m, "sum", ir_sum(m->graph, ir_unary(m->graph, OP_TANH, y), (1u << shape_of(m->graph, y)->rank) - 1, false),
             true);
    model_find_dead(m);
}

/* Dead weights of W [6, 3] in f(pad(x)) @ W. */
static int64_t dead_rows_after(Ctx *ctx, Op op)
{
    Val x;
    Model *m = padded(ctx, &x);
    finish_model(m, product(m, ir_unary(m->graph, op, x), "W", 3));
    return find_param(m, "m.W")->dead;
}

static void check_elementwise(Tally *t, Ctx *ctx)
{
    static const Op keeps[] = {OP_NEG, OP_TANH, OP_GELU, OP_SILU, OP_RELU, OP_ABS, OP_STOP};
    static const Op fills[] = {OP_EXP, OP_COS, OP_SIGMOID, OP_SOFTPLUS};
    for (size_t k = 0; k < COUNT_OF(keeps); k++)
        CHECK(t, dead_rows_after(ctx, keeps[k]) == 6, "%s", op_info(keeps[k])->name);
    for (size_t k = 0; k < COUNT_OF(fills); k++)
        CHECK(t, dead_rows_after(ctx, fills[k]) == 0, "%s", op_info(fills[k])->name);
    Val x;
    Model *m = padded(ctx, &x);
    finish_model(m, product(m, unit(m, x), "W", 3));
    dead_is(t, m, "m.W", 6);
    m = padded(ctx, &x); /* centred: the mean is subtracted from the padding too */
    Val mean = ir_mean(m->graph, x, 1u << 2, true);
    finish_model(m, product(m, ir_binary(m->graph, OP_SUB, x, mean), "W", 3));
    dead_is(t, m, "m.W", 0);
    m = padded(ctx, &x); /* a bias brings the padding to life, a gain does not */
    Val biased = ir_binary(m->graph, OP_ADD, x, vector(m, "b", 6));
    finish_model(m, product(m, ir_binary(m->graph, OP_MUL, biased, vector(m, "g", 6)), "W", 3));
    dead_is(t, m, "m.W", 0);
    dead_is(t, m, "m.b", 0);
    dead_is(t, m, "m.g", 0);
    m = padded(ctx, &x);
    finish_model(m, product(m, ir_binary(m->graph, OP_MUL, x, vector(m, "g", 6)), "W", 3));
    dead_is(t, m, "m.W", 6);
    dead_is(t, m, "m.g", 2);
    m = padded(ctx, &x); /* the same with the operands exchanged; a divisor */
    Val scaled = ir_binary(m->graph, OP_MUL, vector(m, "g", 6), x);
    finish_model(m, product(m, ir_binary(m->graph, OP_DIV, scaled, vector(m, "c", 6)), "W", 3));
    dead_is(t, m, "m.W", 6);
    dead_is(t, m, "m.g", 2);
    dead_is(t, m, "m.c", 2);
}

static void check_reading(Tally *t, Ctx *ctx)
{
    Val x;
    Model *m = padded(ctx, &x); /* columns that nothing reads, and their bias */
    Val y = ir_binary(m->graph, OP_ADD, product(m, x, "W", 7), vector(m, "b", 7));
    finish_model(m, ir_slice(m->graph, y, 2, 1, 4));
    dead_is(t, m, "m.W", 7 * 6 - 4 * 4);
    dead_is(t, m, "m.b", 3);
    m = padded(ctx, &x); /* a reduction over the axis reads all of it */
    y = product(m, x, "W", 7);
    Val all = ir_sum(m->graph, y, 1u << 2, true);
    finish_model(m, ir_binary(m->graph, OP_MUL, all, ir_slice(m->graph, y, 2, 0, 1)));
    dead_is(t, m, "m.W", 7 * 2);
    m = padded(ctx, &x); /* read by nothing; read by a metric; read by a loss */
    Val lost = product(m, x, "lost", 2), shown = product(m, x, "shown", 2);
    add_loss(m, "metric", ir_sum(m->graph, shown, 7, false), false);
    (void)lost;
    finish_model(m, product(m, x, "W", 2));
    dead_is(t, m, "m.lost", 12);
    dead_is(t, m, "m.shown", 12);
    dead_is(t, m, "m.W", 4);
    for (int reverse = 0; reverse < 2; reverse++) { /* a running sum reads what comes before */
        m = padded(ctx, &x);
        y = ir_cumsum(m->graph, product(m, x, "W", 7), 2, reverse);
        finish_model(m, ir_slice(m->graph, y, 2, 2, 2));
        dead_is(t, m, "m.W", 7 * 6 - 4 * (reverse ? 5 : 4));
    }
    m = model_new(ctx, 3); /* rows of a table that are zero at their end */
    module(m, "m");
    Val table = ir_pad(m->graph, matrix(m, "E", 5, 4), 1, 0, 2);
    finish_model(m, product(m, ir_gather(m->graph, table, input_ids(m, "tokens")), "W", 3));
    dead_is(t, m, "m.W", 6);
    dead_is(t, m, "m.E", 0);
    m = padded(ctx, &x); /* an output alone keeps weights alive */
    add_output(m, "logits", product(m, x, "W", 2));
    model_find_dead(m);
    dead_is(t, m, "m.W", 4);
}

static void check_views(Tally *t, Ctx *ctx)
{
    Val x;
    Model *m = padded(ctx, &x); /* three slots of 2, the last one is padding */
    Val slot = split(m, x, 3);
    Val mix = matrix(m, "mix", 4, 3); /* mixes the slots: [4, 3] @ [3, 2] */
    Shape lead = {.rank = 4, .d = {DIM_B, DIM_T, DIM(4), DIM(3)}};
    Val mixed = ir_matmul(m->graph, ir_broadcast(m->graph, mix, &lead), slot);
    finish_model(m, product(m, merge(m, mixed), "W", 2));
    dead_is(t, m, "m.mix", 4);
    dead_is(t, m, "m.W", 0);
    m = padded(ctx, &x); /* slots 0 and 1 kept, flattened again: rows 4 and 5 are padding */
    finish_model(m, product(m, merge(m, split(m, x, 3)), "W", 2));
    dead_is(t, m, "m.W", 4);
    m = padded(ctx, &x); /* the other way round: [2, 3] has no whole slot of padding */
    finish_model(m, product(m, split(m, x, 2), "W", 2));
    dead_is(t, m, "m.W", 0);
    m = padded(ctx, &x);
    Val two[2] = {x, first(m, x, 4)}; /* live, zeros, live: one interval around both */
    finish_model(m, product(m, ir_concat(m->graph, two, 2, 2), "W", 2));
    dead_is(t, m, "m.W", 0);
    m = padded(ctx, &x);
    Val swap[2] = {first(m, x, 4), x};
    finish_model(m, product(m, ir_concat(m->graph, swap, 2, 2), "W", 2));
    dead_is(t, m, "m.W", 4);
    m = padded(ctx, &x); /* moved, rolled, summed to the end or to the start */
    finish_model(m, product(m, ir_shift(m->graph, x, 2, -3, 0), "W", 2));
    dead_is(t, m, "m.W", 10);
    dead_is(t, m, "m.E", 15);
    m = padded(ctx, &x);
    finish_model(m, product(m, ir_roll(m->graph, x, 2, 1), "W", 2));
    dead_is(t, m, "m.W", 0);
    m = padded(ctx, &x);
    finish_model(m, product(m, ir_cumsum(m->graph, x, 2, false), "W", 2));
    dead_is(t, m, "m.W", 0);
    m = padded(ctx, &x);
    finish_model(m, product(m, ir_cumsum(m->graph, x, 2, true), "W", 2));
    dead_is(t, m, "m.W", 4);
}

/* A weight is dead only if it is dead in all uses; the live part need not be a rectangle. */
static void check_shared(Tally *t, Ctx *ctx)
{
    Val x;
    Model *m = padded(ctx, &x);
    Graph *g = m->graph;
    Val w = matrix(m, "W", 6, 6), other = ir_pad(g, first(m, x, 1), 2, 4, 1);
    Val left = first(m, ir_matmul(g, x, w), 2);               /* rows 0..3, columns 0..1 */
    Val right = ir_slice(g, ir_matmul(g, other, w), 2, 1, 5); /* row 4, columns 1..5 */
    Val both[2] = {left, right};
    finish_model(m, ir_concat(g, both, 2, 2));
    dead_is(t, m, "m.W", 36 - 8 - 5);
    m = model_new(ctx, 3); /* a tied head through a view: all of it */
    module(m, "m");
    g = m->graph;
    Val e = matrix(m, "E", 5, 4), h = ir_gather(g, e, input_ids(m, "tokens"));
    add_next_loss(m, ir_matmul(g, h, ir_transpose(g, e)));
    model_find_dead(m);
    dead_is(t, m, "m.E", 0);
    m = model_new(ctx, 3); /* tied, but only 3 coordinates are read */
    module(m, "m");
    g = m->graph;
    e = matrix(m, "E", 5, 4);
    h = first(m, ir_gather(g, e, input_ids(m, "tokens")), 3);
    add_next_loss(m, ir_matmul(g, h, ir_transpose(g, first(m, e, 3))));
    model_find_dead(m);
    dead_is(t, m, "m.E", 5);
    m = padded(ctx, &x); /* one fused product of which the middle third is not used */
    Val y = product(m, x, "W", 9);
    Val upper = ir_slice(m->graph, y, 2, 6, 3);
    finish_model(m, ir_binary(m->graph, OP_MUL, first(m, y, 3), upper));
    dead_is(t, m, "m.W", 54 - 4 * 6);
    m = padded(ctx, &x); /* more uses than boxes are kept: never too many dead */
    y = product(m, x, "W", 40);
    Val part[20];
    for (int k = 0; k < 20; k++)
        part[k] = ir_slice(m->graph, y, 2, 2 * k, 1);
    finish_model(m, ir_concat(m->graph, part, 20, 2));
    int64_t dead = find_param(m, "m.W")->dead;
    CHECK(t, dead >= 2 * 40 && dead <= 240 - 4 * 20, "%lld", (long long)dead);
}

static void check_attention(Tally *t, Ctx *ctx)
{
    Val x;
    Model *m = padded(ctx, &x); /* 4 query heads, 2 key heads, only head 3 is read */
    Graph *g = m->graph;
    Val q = split(m, product(m, x, "q", 8), 4), k = split(m, product(m, x, "k", 4), 2);
    Val v = split(m, product(m, x, "v", 4), 2);
    Val y = ir_sdpa(g, q, k, v, &(Sdpa){.causal = true, .scale = 1});
    finish_model(m, ir_slice(g, y, 2, 3, 1));
    dead_is(t, m, "m.q", 48 - 4 * 2);
    dead_is(t, m, "m.k", 24 - 4 * 2);
    dead_is(t, m, "m.v", 24 - 4 * 2);
    m = padded(ctx, &x); /* coordinate 2 of each key is zero, so that of queries is dead */
    g = m->graph;
    q = split(m, product(m, x, "q", 6), 2);
    k = ir_pad(g, split(m, product(m, x, "k", 4), 2), 3, 0, 1);
    v = split(m, product(m, x, "v", 6), 2);
    finish_model(m, ir_sdpa(g, q, k, v, &(Sdpa){.causal = true, .scale = 1}));
    dead_is(t, m, "m.q", 36 - 4 * 5); /* of columns 2 and 5 one interval leaves out the last */
    dead_is(t, m, "m.v", 36 - 4 * 6);
    m = padded(ctx, &x); /* experts: rows of padding, columns that are not read */
    g = m->graph;
    Val up = param(m, "up", 3, (int64_t[]){7, 6, 5}), down = param(m, "down", 3, (int64_t[]){7, 5, 6});
    Val index = ir_top_k(g, product(m, x, "router", 7), 2);
    Val mid = ir_unary(g, OP_GELU, ir_expert_matmul(g, x, up, index));
    y = ir_expert_matmul(g, mid, down, index);
    finish_model(m, ir_slice(g, ir_sum(g, y, 1u << 2, false), 2, 0, 4));
    dead_is(t, m, "m.up", 7 * 2 * 5);
    dead_is(t, m, "m.down", 7 * 5 * 2);
    dead_is(t, m, "m.router", 2 * 7);
}

/* ---- gradients ---- */

static double noise(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 11) / 9007199254740992.0 - 0.5;
}

static void fill_tensor(Tensor *x, uint64_t *state, int64_t vocab)
{
    for (int64_t i = 0; i < x->size; i++) {
        if (x->dtype == DT_INT)
            x->integer[i] = i % vocab; /* every word occurs */
        else
            x->real[i] = 3 * noise(state);
    }
}

/* The gradients of all parameters, as outputs of the graph; NULL: a parameter has none. */
static Val *gradients(Model *m)
{
    Graph *g = m->graph;
    size_t n = m->param.n;
    Val *wrt = NEW_ARRAY(g->arena, Val, n), *grad = NEW_ARRAY(g->arena, Val, n);
    for (size_t i = 0; i < n; i++)
        wrt[i] = m->param.v[i].value;
    graph_gradient(g, m->loss.v[0].value, wrt, n, grad);
    for (size_t i = 0; i < n; i++)
        if (grad[i])
            ir_output(g, m->param.v[i].path, grad[i]);
    return grad;
}

static RefRun random_inputs(Model *m, int64_t B, int64_t T, int64_t vocab, uint64_t seed)
{
    Graph *g = m->graph;
    size_t n_ext = g->ext.n;
    RefRun run = {.B = B, .T = T, .bind = NEW_ARRAY(g->arena, RefBinding, n_ext), .n_bind = n_ext};
    for (size_t i = 0; i < n_ext; i++) {
        int64_t d[MAX_RANK];
        for (int k = 0; k < g->ext.v[i].shape.rank; k++)
            d[k] = dim_at(g->ext.v[i].shape.d[k], B, T);
        Tensor *x = tensor_new(g->arena, g->ext.v[i].dtype, g->ext.v[i].shape.rank, d);
        fill_tensor(x, &seed, vocab);
        run.bind[i] = (RefBinding){g->ext.v[i].kind, g->ext.v[i].name, x};
    }
    return run;
}

/* Weights with a gradient of exactly 0 at random values. */
static int64_t zero_gradients(Model *m, int64_t B, int64_t T, int64_t vocab, uint64_t seed)
{
    Graph *g = m->graph;
    size_t n = m->param.n;
    Val *grad = gradients(m);
    RefRun run = random_inputs(m, B, T, vocab, seed);
    Tensor **result = NEW_ARRAY(g->arena, Tensor *, g->out.n);
    ref_evaluate(g, g->arena, &run, result);
    int64_t zeros = 0;
    for (size_t i = 0, o = 0; i < n; i++) {
        if (!grad[i]) {
            zeros += m->param.v[i].elements;
            continue;
        }
        for (int64_t k = 0; k < result[o]->size; k++)
            zeros += result[o]->real[k] == 0;
        o++;
    }
    return zeros;
}

static void check_gradients(Tally *t, Ctx *ctx)
{
    static const int64_t width[3][3] = {{12, 4, 12}, {8, 16, 10}, {4, 8, 16}};
    for (int k = 0; k < 6; k++) {
        Carried c = {8, 7, 2, 2, width[k / 2], 3, k % 2};
        Model *m = carried_model(ctx, &c, 7);
        model_find_dead(m);
        int64_t dead = model_count(m).dead;
        int64_t zeros = zero_gradients(m, 2, 7, 7, 11 + (uint64_t)k);
        CHECK(t, dead == zeros, "case %d: %lld dead, %lld gradients are 0", k, (long long)dead, (long long)zeros);
    }
}

/* One random step; whatever is grown is a function of x [B, T, n]. */
static Val random_step(Model *m, Val x, uint64_t *state, int step)
{
    static const Op unary[] = {OP_TANH, OP_GELU, OP_SILU, OP_SIGMOID, OP_SIN};
    Graph *g = m->graph;
    int64_t n = width_of(m, x), k = 1 + (int64_t)((noise(state) + 0.5) * (double)n);
    module(m, "step[%d]", step);
    switch ((int)((noise(state) + 0.5) * 10)) {
    case 0: return ir_pad(g, x, 2, k % 3, k / 3);
    case 1: return n > 1 ? ir_slice(g, x, 2, (n - 1) / 3, n - (n - 1) / 2) : x;
    case 2: return product(m, x, "W", k + 1);
    case 3: return ir_binary(g, OP_ADD, x, vector(m, "b", n));
    case 4: return ir_binary(g, OP_MUL, x, vector(m, "g", n));
    case 5: return ir_unary(g, unary[k % 5], x);
    case 6: return unit(m, x);
    case 7: return ir_shift(g, x, 2, k % 3 - 1, 0);
    case 8: { /* a branch over a prefix, the rest carried past it */
        Val seen = first(m, x, k);
        Val part[2] = {ir_binary(g, OP_ADD, seen, product(m, seen, "W", k)), ir_slice(g, x, 2, k, n - k)};
        return ir_concat(g, part, 2, 2);
    }
    default: { /* two slots mixed by a matrix */
        Val even = n % 2 ? ir_pad(g, x, 2, 0, 1) : x, w = matrix(m, "W", 2, 2);
        Shape lead = {.rank = 4, .d = {DIM_B, DIM_T, DIM(2), DIM(2)}};
        return merge(m, ir_matmul(g, ir_broadcast(g, w, &lead), split(m, even, 2)));
    }
    }
}

/* Random compositions: never more dead than gradients that are zero, and mostly as many. */
static void check_random(Tally *t, Ctx *ctx)
{
    int equal = 0, with_dead = 0;
    enum { CASES = 300 };
    for (uint64_t k = 0; k < CASES; k++) {
        uint64_t state = 77 + 1000003 * k;
        noise(&state);
        Val x;
        Model *m = padded(ctx, &x);
        for (int step = 0; step < 8; step++)
            x = random_step(m, x, &state, step);
        finish_model(m, x);
        int64_t dead = model_count(m).dead, zeros = zero_gradients(m, 2, 3, 5, state);
        CHECK(t, dead <= zeros, "case %d: %lld dead, %lld zero", (int)k, (long long)dead, (long long)zeros);
        equal += dead == zeros;
        with_dead += dead > 0;
    }
    printf("%d of %d random graphs exact, %d with dead weights\n", equal, CASES, with_dead);
    CHECK(t, equal >= CASES * 9 / 10, "only %d of %d are exact", equal, CASES);
    CHECK(t, with_dead >= CASES / 5, "only %d of %d have dead weights", with_dead, CASES);
}

/* ---- weights that begin at zero ---- */

/* A sum of products of two or three factors, some of which begin at zero; a factor may stand in two of them. */
static Model *sum_of_products(Ctx *ctx, uint64_t *state)
{
    static const Op between[] = {OP_SILU, OP_TANH, OP_NEG, OP_SIGMOID};
    Val x, y = 0, factor[3] = {0};
    Model *m = padded(ctx, &x);
    m->param.v[0].init.a = 1;
    for (int k = 0; k < 3; k++) {
        Val h = x;
        for (int f = 0; f < (noise(state) < 0 ? 2 : 3); f++) {
            char name[16];
            snprintf(name, sizeof name, "w%d%d", k, f);
            Val w = factor[f] && noise(state) < -0.1 ? factor[f] : (factor[f] = matrix(m, name, 6, 6));
            h = ir_matmul(m->graph, h, w);
            if (noise(state) < 0)
                h = ir_unary(m->graph, between[(int)(4 * (noise(state) + 0.5))], h);
        }
        y = y ? ir_binary(m->graph, noise(state) < 0.2 ? OP_ADD : OP_MUL, y, h) : h;
    }
    for (size_t i = 1; i < m->param.n; i++)
        m->param.v[i].init.a = noise(state) < 0 ? 0 : 1;
    finish_model(m, y);
    return m;
}

/* Some steps downhill in float64, from the declared values: what is zero then is what is said to stay so. */
static void check_zeros(Tally *t, Ctx *ctx)
{
    uint64_t state = 7;
    int stay = 0, leave = 0;
    for (int k = 0; k < 60; k++) {
        Model *m = sum_of_products(ctx, &state);
        const bool *stays = model_stays_zero(m, m->graph->arena);
        Val *grad = gradients(m);
        RefRun run = random_inputs(m, 2, 3, 5, (uint64_t)k);
        Tensor **result = NEW_ARRAY(m->graph->arena, Tensor *, m->graph->out.n),
               **weight = NEW_ARRAY(m->graph->arena, Tensor *, m->param.n);
        for (size_t i = 0; i < m->param.n; i++)
            for (size_t e = 0; e < run.n_bind; e++)
                if (run.bind[e].name == m->param.v[i].path)
                    weight[i] = run.bind[e].tensor;
        for (size_t i = 0; i < m->param.n; i++)
            for (int64_t j = 0; j < weight[i]->size; j++)
                weight[i]->real[j] *= m->param.v[i].init.a;
        for (int step = 0; step < 6; step++) {
            ref_evaluate(m->graph, m->graph->arena, &run, result);
            for (size_t i = 0, o = 0; i < m->param.n; o += grad[i++] != 0)
                for (int64_t j = 0; grad[i] && j < weight[i]->size; j++)
                    weight[i]->real[j] -= 0.1 * result[o]->real[j];
        }
        for (size_t i = 0; i < m->param.n; i++) {
            bool zero = true;
            for (int64_t j = 0; j < weight[i]->size; j++)
                zero &= weight[i]->real[j] == 0;
            CHECK(t, zero == stays[i], "model %d, %s", k, m->param.v[i].path);
            stay += zero;
            leave += !zero && m->param.v[i].init.a == 0;
        }
    }
    CHECK(t, stay > 20 && leave > 20, "%d stay, %d leave", stay, leave);
}

int main(void)
{
    Tally t = {0};
    Ctx *ctx = ctx_new(NULL);
    CtxGuard guard;
    if (!ctx)
        return 1;
    if (CTX_TRY(ctx, &guard)) {
        check_500m(&t, ctx);
        check_narrow(&t, ctx);
        check_elementwise(&t, ctx);
        check_reading(&t, ctx);
        check_views(&t, ctx);
        check_shared(&t, ctx);
        check_attention(&t, ctx);
        check_gradients(&t, ctx);
        check_random(&t, ctx);
        check_zeros(&t, ctx);
        ctx_leave(ctx, &guard);
    } else {
        CHECK(&t, false, "raised %d: %s", (int)ctx->raised, ctx->message);
    }
    ctx_free(ctx);
    return finish(&t);
}
