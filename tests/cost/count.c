/* count.c - weights, FLOPs, keys and values against formulas and published numbers.
 *
 * In:  hand-built decoders.   Out: claims about the counts of cost.c.
 * The one idea: each expected number is a formula in the extents or a number from a paper,
 * never something that was printed by the code under test.
 * When: quick.
 */
#include "build.h"
#include "harness.h"

static void equals(Tally *t, double got, double want, const char *what)
{
    CHECK(t, got == want, "%s: %.17g, not %.17g", what, got, want);
}

/* ---- a plain decoder ---- */

typedef struct Plain {
    int64_t d, layers, hidden, vocab, context;
    Heads heads;
    bool tied, gains;
} Plain;

static Val norm_of(Model *m, const Plain *p, Val x) { return p->gains ? gained(m, "norm.g", x) : unit(m, x); }

static Model *plain_model(Ctx *ctx, const Plain *p)
{
    Model *m = model_new(ctx, p->context);
    Graph *g = m->graph;
    module(m, "embed.tokens");
    Val e = matrix(m, "E", p->vocab, p->d), x = ir_gather(g, e, input_ids(m, "tokens"));
    for (int l = 1; l <= p->layers; l++) {
        module(m, "layer[%d].attention", l);
        x = ir_binary(g, OP_ADD, x, attend(m, norm_of(m, p, x), p->heads, p->d));
        module(m, "layer[%d].ffn", l);
        x = ir_binary(g, OP_ADD, x, feed(m, norm_of(m, p, x), p->hidden, p->d));
    }
    module(m, "head.lm");
    x = norm_of(m, p, x);
    Val w = p->tied ? ir_transpose(g, e) : matrix(m, "W", p->d, p->vocab);
    add_next_loss(m, ir_matmul(g, x, w));
    model_find_dead(m);
    return m;
}

/* 2 (matrix weights) + 4 s H h per token and block, 2 V d for the head; s^2 squares.
 * */
static void check_decoder(Tally *t, Ctx *ctx)
{
    for (int64_t window = 0; window <= 20; window += 10) {
        Plain p = {24, 3, 40, 50, 16, {4, 2, 6, window}, false, true};
        Model *m = plain_model(ctx, &p);
        Heads h = p.heads;
        double matrices = (double)(p.d * h.size * (2 * h.n + 2 * h.keys) + 3 * p.d * p.hidden);
        double head = (double)(p.vocab * p.d), s = (double)p.context;
        Work w = model_work(m);
        equals(t, w.products, 2 * (3 * matrices + head), "products");
        equals(t, w.attention, 3 * 4 * s * (double)(h.n * h.size), "attention");
        equals(t, model_flops_per_token(m), w.products + w.attention, "FLOPs");
        /* query t sees min(t, window) keys: 136 of 256 pairs, or 1 + .. + 10 + 6 x 10 = 115 */
        double hidden = window == 10 ? 256 - 115 : 256 - 136;
        equals(t, w.causal_saving, 3 * 4 * 24 * hidden / 16, "causal saving");
        ModelCount n = model_count(m);
        equals(t, (double)n.stored, 3 * matrices + 2 * head + 7 * 24, "stored");
        equals(t, (double)n.dead, 0, "dead");
        equals(t, (double)n.active, (double)n.stored, "active");
    }
}

/* A published count: OLMo-1B, tied head, norms without gains. */
static void check_olmo(Tally *t, Ctx *ctx)
{
    Plain p = {2048, 16, 8192, 50304, 2048, {16, 16, 128, 0}, true, false};
    Model *m = plain_model(ctx, &p);
    ModelCount n = model_count(m);
    equals(t, (double)n.live, 1176764416, "OLMo-1B");
    equals(t, model_flops_per_token(m), 2.0 * 1176764416 + 16 * 4.0 * 2048 * 2048, "its FLOPs");
    Plain half = p;
    half.context = 1024; /* only attention depends on the length */
    equals(t, model_work(plain_model(ctx, &half)).products, 2.0 * 1176764416, "products");
}

static void check_elementwise(Tally *t, Ctx *ctx)
{
    Model *m = model_new(ctx, 5);
    module(m, "m");
    Val x = ir_gather(m->graph, matrix(m, "E", 3, 16), input_ids(m, "tokens"));
    Val stopped = ir_stop(m->graph, gained(m, "g", x), STOP_GRADIENT);
    Val out = ir_reshape(m->graph, stopped, &(Shape){.rank = 2, .d = {{1, 1, 1}, DIM(16)}});
    add_output(m, "y", out);
    ir_unary(m->graph, OP_EXP, out); /* nothing reads it */
    product(m, x, "W", 8);
    model_find_dead(m);
    Work w = model_work(m);
    equals(t, w.elementwise, 4 * 16 + 3, "a norm with gain: 4 n, and 3 of its root");
    equals(t, w.products + w.attention, 0, "no product is needed");
    equals(t, (double)find_param(m, "m.W")->dead, 128, "an unread matrix");
}

/* Streams mixed by static matrices: width 2 n (n + 1) d and depth 2 n d: small products
 * per token count too. */
static void check_small_products(Tally *t, Ctx *ctx)
{
    int64_t n = 4, d = 32;
    Model *m = model_new(ctx, 9);
    Graph *g = m->graph;
    module(m, "m");
    Val e = ir_gather(g, matrix(m, "E", 7, n * d), input_ids(m, "tokens")), h = split(m, e, n);
    Val a = ir_transpose(g, matrix(m, "A", n, n + 1)), b = matrix(m, "B", n, 1);
    Shape la = {.rank = 4, .d = {DIM_B, DIM_T, DIM(n + 1), DIM(n)}}, lb = la;
    lb.d[2] = DIM(n), lb.d[3] = DIM(1);
    Val mixed = ir_matmul(g, ir_broadcast(g, a, &la), h);
    Val z = ir_slice(g, mixed, 2, 0, 1);
    Val y = ir_matmul(g, ir_broadcast(g, b, &lb), z);
    add_output(m, "y", ir_binary(g, OP_ADD, y, ir_slice(g, mixed, 2, 1, n)));
    model_find_dead(m);
    equals(t, model_flops_per_token(m), (double)(2 * n * (n + 1) * d + 2 * n * d), "FLOPs");
    /* a product of weights alone is done once per sequence: shared by its 9 tokens */
    add_output(m, "w", ir_matmul(g, matrix(m, "L", 6, 9), matrix(m, "R", 9, 5)));
    equals(t, model_flops_per_token(m), (double)(2 * n * (n + 1) * d + 2 * n * d) + 2 * 6 * 5,
           "2 x 6 x 9 x 5 by 9 tokens");
}

/* ---- experts ---- */

static Val experts(Model *m, Val x, Val index, int64_t n, int64_t hidden)
{
    Graph *g = m->graph;
    int64_t d = width_of(m, x), last = shape_of(g, index)->rank;
    Val up = param(m, "gate_up", 3, (int64_t[]){n, d, 2 * hidden});
    Val down = param(m, "down", 3, (int64_t[]){n, hidden, d});
    Val gate = ir_expert_matmul(g, x, ir_slice(g, up, 2, 0, hidden), index);
    Val lift = ir_expert_matmul(g, x, ir_slice(g, up, 2, hidden, hidden), index);
    Val mid = ir_binary(g, OP_MUL, ir_unary(g, OP_SILU, gate), lift);
    return ir_sum(g, ir_expert_matmul(g, mid, down, index), 1u << (last - 1), false);
}

/* The 3B mixture of Variable-Width Transformers, table 2: 22 experts of 512, 3 chosen. */
static void check_experts(Tally *t, Ctx *ctx)
{
    int64_t d = 1600, n = 22, k = 3, hidden = 512, vocab = 100263;
    Model *m = model_new(ctx, 4096);
    Graph *g = m->graph;
    module(m, "embed");
    Val x = ir_gather(g, matrix(m, "E", vocab, d), input_ids(m, "tokens"));
    for (int l = 1; l <= 40; l++) {
        module(m, "layer[%d].attention", l);
        x = ir_binary(g, OP_ADD, x, attend(m, unit(m, x), (Heads){16, 16, 100, 0}, d));
        module(m, "layer[%d].moe", l);
        Val index = ir_top_k(g, product(m, x, "router", n), k);
        x = ir_binary(g, OP_ADD, x, experts(m, unit(m, x), index, n, hidden));
    }
    module(m, "head");
    add_next_loss(m, product(m, x, "W", vocab));
    model_find_dead(m);
    ModelCount c = model_count(m);
    double each = 3.0 * (double)(d * hidden), router = (double)(d * n);
    double rest = 40.0 * 4 * (double)(d * d) + 2.0 * (double)(vocab * d);
    equals(t, (double)c.stored, 40 * (22 * each + router) + rest, "E 3 d F + d E");
    equals(t, (double)c.active, 40 * (3 * each + router) + rest, "k 3 d F + d E");
    CHECK(t, fabs((double)c.stored / 1e6 - 2894.5) < 0.05, "%.2fM", (double)c.stored / 1e6);
    CHECK(t, fabs((double)c.active / 1e6 - 1026.8) < 0.05, "%.2fM", (double)c.active / 1e6);
    equals(t, find_param(m, "layer[7].moe.gate_up")->active, 3.0 / 22, "share");
    equals(t, find_param(m, "layer[7].moe.router")->active, 1, "share of the router");
    equals(t, model_work(m).products, 2 * (40 * (3 * each + router) + 40 * 4.0 * 1600 * 1600 + (double)(vocab * d)),
           "FLOPs of chosen experts");
}

/* Experts read twice, by other choices, by something else, or by nothing. */
static void check_shares(Tally *t, Ctx *ctx)
{
    Model *m = model_new(ctx, 8);
    Graph *g = m->graph;
    module(m, "m");
    Val x = ir_gather(g, matrix(m, "E", 7, 4), input_ids(m, "tokens"));
    Val scores = product(m, x, "router", 8), a = ir_top_k(g, scores, 2);
    Val b = ir_top_k(g, ir_unary(g, OP_NEG, scores), 3);
    int64_t s[] = {8, 4, 4};
    Val once = param(m, "once", 3, s), twice = param(m, "twice", 3, s);
    Val seen = param(m, "seen", 3, s);
    Val lost = param(m, "lost", 3, s), many = param(m, "many", 3, s);
    Val y[] = {ir_expert_matmul(g, x, once, a),  ir_expert_matmul(g, x, once, a),
               ir_expert_matmul(g, x, twice, a), ir_expert_matmul(g, x, twice, b),
               ir_expert_matmul(g, x, seen, a),  ir_expert_matmul(g, x, many, a),
               ir_expert_matmul(g, x, many, b),  ir_expert_matmul(g, x, many, ir_top_k(g, x, 4))};
    ir_expert_matmul(g, x, lost, a);
    Val sum = ir_sum(g, ir_binary(g, OP_MUL, seen, seen), 7, false);
    for (size_t i = 0; i < COUNT_OF(y); i++)
        sum = ir_binary(g, OP_ADD, sum, ir_sum(g, y[i], 15, false));
    add_loss(m, "sum", sum, true);
    model_find_dead(m);
    equals(t, find_param(m, "m.once")->active, 2.0 / 8, "the same choice twice");
    equals(t, find_param(m, "m.twice")->active, 5.0 / 8, "two choices");
    equals(t, find_param(m, "m.many")->active, 1, "more choices than experts");
    equals(t, find_param(m, "m.seen")->active, 1, "read by a penalty too");
    equals(t, find_param(m, "m.lost")->active, 1, "read by nothing");
    equals(t, (double)find_param(m, "m.lost")->dead, 128, "and dead");
    ModelCount c = model_count(m);
    equals(t, (double)c.active, 28 + 32 + 128.0 * (2.0 / 8 + 5.0 / 8 + 1 + 1), "active");
}

/* ---- variable width, keys and values ---- */

/* Variable-Width Transformers, section 2, without the correction for weights that cannot learn:
 * their products are computed. */
static void check_variable_width(Tally *t, Ctx *ctx)
{
    Carried c = {960, 100263, 16, 4, widths_500m, 24, false};
    Model *m = carried_model(ctx, &c, 4096);
    double s = 4096, lengths = 0, squares = 0;
    for (int l = 0; l < 24; l++) {
        lengths += (double)widths_500m[l];
        squares += (double)(widths_500m[l] * widths_500m[l]);
    }
    equals(t, s * model_flops_per_token(m), 2 * s * 100263 * 960 + s * (8 + 2 * 3 * 4) * squares + 4 * s * s * lengths,
           "FLOPs");
    KvCache kv = model_kv_cache(m, 2);
    equals(t, kv.per_token, 4 * lengths, "bf16 bytes per token");
    equals(t, kv.at_context, 4 * lengths * s, "bf16 bytes at 4096 tokens");
}

static void check_cache(Tally *t, Ctx *ctx)
{
    Plain p = {24, 3, 40, 50, 16, {4, 2, 6, 10}, false, true};
    KvCache kv = model_kv_cache(plain_model(ctx, &p), 4);
    equals(t, kv.per_token, 3 * 2 * 2 * 6 * 4, "windows that are not full");
    equals(t, kv.at_context, 3 * 2 * 2 * 6 * 4 * 10, "full windows");
    Model *m = model_new(ctx, 16);
    Graph *g = m->graph;
    module(m, "m");
    Val x = split(m, ir_gather(g, matrix(m, "E", 9, 12), input_ids(m, "tokens")), 2);
    Val own = ir_unary(g, OP_TANH, x);
    Val one = ir_sdpa(g, x, own, own, &(Sdpa){.causal = true, .scale = 1, .window = 3});
    Val two = ir_sdpa(g, one, own, own, &(Sdpa){.causal = true, .scale = 1});
    Val all = ir_sdpa(g, x, x, x, &(Sdpa){.scale = 1, .window = 3});
    Val loss_only = ir_sdpa(g, x, one, one, &(Sdpa){.causal = true, .scale = 1});
    add_output(m, "y", ir_binary(g, OP_ADD, two, all));
    add_loss(m, "l", ir_sum(g, loss_only, 15, false), true);
    kv = model_kv_cache(m, 1);
    equals(t, kv.per_token, 12, "one tensor, used as keys and values of two attentions");
    equals(t, kv.at_context, 12 * 16, "the longer of both");
    Work w = model_work(m);
    equals(t, w.attention, 4 * 4.0 * 16 * 12, "four squares");
    double hidden = 2 * (256 - 136) + (256 - 45) + (256 - 74); /* 3 + 14 x 3; 14 x 5 + 2 x 2 */
    equals(t, w.causal_saving, 4 * 12 * hidden / 16, "masks and windows");
    m->output.n = 0; /* without outputs all losses count */
    equals(t, model_kv_cache(m, 1).per_token, 12 + 12, "of a model without outputs");
}

/* ---- by module ---- */

static void check_groups(Tally *t, Ctx *ctx)
{
    Plain p = {24, 3, 40, 50, 16, {4, 2, 6, 0}, false, true};
    Model *m = plain_model(ctx, &p);
    Arena *arena = ctx->program;
    CostGroups all = model_cost_groups(m, 2, arena);
    static const char *const path[] = {"embed.tokens", "layer[*].attention", "layer[*].ffn", "head.lm"};
    static const int64_t instances[] = {1, 3, 3, 1};
    int64_t attention = 24 * 6 * (2 * 4 + 2 * 2) + 24;
    int64_t stored[] = {50 * 24, 3 * attention, 3 * (3 * 24 * 40 + 24), 24 * 50 + 24};
    CHECK(t, all.n == 4, "%zu groups", all.n);
    double flops = 0, elementwise = 0;
    for (size_t i = 0; i < all.n && i < 4; i++) {
        const CostGroup *c = &all.v[i];
        CHECK(t, !strcmp(c->path, path[i]), "%s, not %s", c->path, path[i]);
        equals(t, (double)c->instances, (double)instances[i], path[i]);
        equals(t, (double)c->count.stored, (double)stored[i], path[i]);
        flops += c->work.products + c->work.attention;
        elementwise += c->work.elementwise;
    }
    equals(t, flops, model_flops_per_token(m), "the groups' FLOPs together");
    equals(t, elementwise, model_work(m).elementwise, "the groups' other work together");
    equals(t, all.v[1].work.attention, model_work(m).attention, "attention is in one group");
    CostGroups most = cost_largest(all, 2, arena);
    CHECK(t, most.n == 2 && most.v[0].path == all.v[1].path && most.v[1].path == all.v[2].path,
          "%zu: the two largest in their order", most.n);
    Buf b = buf_new(arena);
    cost_shapes(&b, m, &all.v[1], 2, 2);
    CHECK(t, !strcmp(b.s, "6 x [24, 24], 6 x [24, 12], 1 more"), "%s", b.s);
    b = buf_new(arena);
    cost_shapes(&b, m, &all.v[0], 2, 3);
    CHECK(t, !strcmp(b.s, "[50, 24]"), "%s", b.s);
    CostGroups layers = model_cost_groups(m, 1, arena);
    const CostGroup *layer = &layers.v[1];
    CHECK(t, layers.n == 3 && !strcmp(layer->path, "layer[*]") && layer->instances == 3, "%zu groups of depth 1",
          layers.n);
    static const char *const cut[][2] = {
        {"layer[3].attention.q_proj.W", "layer[*].attention"},
        {"stage[2].layer[10].ffn.W", "stage[*].layer[*]"},
        {"embed", "embed"},
        {"", ""},
    };
    for (size_t i = 0; i < COUNT_OF(cut); i++)
        CHECK(t, !strcmp(cost_path(ctx, cut[i][0], 2), cut[i][1]), "%s", cost_path(ctx, cut[i][0], 2));
    CHECK(t, !strcmp(cost_path(ctx, "a[1].b[2].c.d", 0), "a[*].b[*].c.d"), "depth 0");
}

static void check_buffers(Tally *t, Ctx *ctx)
{
    Model *m = model_new(ctx, 4);
    module(m, "m");
    Val x = ir_gather(m->graph, matrix(m, "E", 3, 5), input_ids(m, "tokens"));
    m->param.v[0].buffer = true;
    add_output(m, "y", product(m, first(m, x, 2), "W", 3));
    model_find_dead(m);
    ModelCount c = model_count(m);
    equals(t, (double)c.buffers, 15, "buffers");
    equals(t, (double)c.stored, 6, "stored");
    equals(t, (double)c.dead + (double)find_param(m, "m.E")->dead, 0, "buffers are not dead");
}

int main(void)
{
    Tally t = {0};
    Ctx *ctx = ctx_new(NULL);
    CtxGuard guard;
    if (!ctx)
        return 1;
    if (CTX_TRY(ctx, &guard)) {
        check_decoder(&t, ctx);
        check_olmo(&t, ctx);
        check_elementwise(&t, ctx);
        check_small_products(&t, ctx);
        check_experts(&t, ctx);
        check_shares(&t, ctx);
        check_variable_width(&t, ctx);
        check_cache(&t, ctx);
        check_groups(&t, ctx);
        check_buffers(&t, ctx);
        ctx_leave(ctx, &guard);
    } else {
        CHECK(&t, false, "raised %d: %s", (int)ctx->raised, ctx->message);
    }
    ctx_free(ctx);
    return finish(&t);
}
