/* exec.c - programs on the CPU backend against the reference evaluator.
 *
 * In:  nothing (a C compiler must be there).
 * Out: `N passed, N failed`. One small model with everything a launch can be (kernels,
 * products, products by expert, random numbers, host scalars, stored weights) takes three
 * training steps in each way of running it.
 * When: quick, checked, optimised.
 */
#define _GNU_SOURCE
#include "runtime/base/machine.h"
#include "runtime/cpu/backend_cpu.h"
#include "runtime/exec/exec.h"
#include "support/harness.h"
#include "plans.h"

#include <math.h>
#include <stdlib.h>

enum { VOCAB = 19, WIDTH = 24, HIDDEN = 40, EXPERTS = 5, CHOICES = 2, B = 3, T = 7, STEPS = 3 };

/* ---- the model ---- */

static Name named(Graph *g, const char *s) { return name_str(g->ctx, s); }

static Val param(Graph *g, const char *name, int rank, const int64_t *d)
{
    Shape s = {.rank = (uint8_t)rank};
    for (int i = 0; i < rank; i++)
        s.d[i] = DIM(d[i]);
    return ir_ext(g, EXT_PARAM, named(g, name), DT_REAL, &s);
}

static const struct {
    const char *name;
    int rank;
    int64_t d[3];
} params[] = {{"embed", 2, {VOCAB, WIDTH}},    {"gain", 1, {WIDTH}},
              {"up", 2, {WIDTH, HIDDEN}},      {"down", 2, {HIDDEN, WIDTH}},
              {"router", 2, {WIDTH, EXPERTS}}, {"expert", 3, {EXPERTS, WIDTH, WIDTH}},
              {"head", 2, {WIDTH, VOCAB}}};
enum { PARAMS = COUNT_OF(params) };

/* x / sqrt(mean(x^2) + eps) * gain */
static Val norm(Graph *g, Val x, Val gain)
{
    Val square = ir_mean(g, ir_binary(g, OP_MUL, x, x), 1u << 2, true);
    Val size = ir_unary(g, OP_SQRT, ir_binary(g, OP_ADD, square, ir_fill(g, 1e-5)));
    return ir_binary(g, OP_MUL, ir_binary(g, OP_DIV, x, size), gain);
}

/* Logits of a small model with an expert layer and some noise. */
static Val forward(Graph *g, const Val *w, Val tokens)
{
    Shape tokens3 = {.rank = 3, .d = {DIM_B, DIM_T, DIM(WIDTH)}};
    Val x = ir_gather(g, w[0], tokens);
    Val noise = ir_random(g, OP_RANDN, &tokens3, named(g, "noise"));
    x = ir_binary(g, OP_ADD, x, ir_scale(g, noise, 0.05));
    g->name = named(g, "layer[0]");
    Val y = norm(g, x, w[1]);
    Val hidden = ir_unary(g, OP_SILU, ir_matmul(g, y, w[2]));
    x = ir_binary(g, OP_ADD, x, ir_matmul(g, hidden, w[3]));
    g->name = named(g, "layer[1]");
    y = norm(g, x, w[1]);
    Val score = ir_softmax(g, ir_matmul(g, y, w[4]), 2);
    Val index = ir_top_k(g, ir_stop(g, score, STOP_GRADIENT), CHOICES);
    Val chosen = ir_pick(g, score, index);         /* [B, T, k] */
    Val out = ir_expert_matmul(g, y, w[5], index); /* [B, T, k, W] */
    Shape weights = {.rank = 4, .d = {DIM_B, DIM_T, DIM(CHOICES), DIM(1)}};
    out = ir_binary(g, OP_MUL, out, ir_reshape(g, chosen, &weights));
    out = ir_reshape(g, ir_sum(g, out, 1u << 2, true), &tokens3);
    g->name = named(g, "head");
    return ir_matmul(g, ir_binary(g, OP_ADD, x, out), w[6]);
}

/* The step: loss, gradients, w -= rate dw. The evaluation: loss and logits. */
static Graph *make_graph(Ctx *ctx, Arena *arena, bool train)
{
    Graph *g = graph_new(ctx, arena);
    Shape bt = {.rank = 2, .d = {DIM_B, DIM_T}};
    Val w[PARAMS], dw[PARAMS];
    g->name = named(g, "model");
    Val tokens = ir_ext(g, EXT_INPUT, named(g, "tokens"), DT_INT, &bt);
    Val labels = ir_ext(g, EXT_INPUT, named(g, "labels"), DT_INT, &bt);
    for (size_t i = 0; i < PARAMS; i++)
        w[i] = param(g, params[i].name, params[i].rank, params[i].d);
    Val logits = forward(g, w, tokens);
    Val loss = ir_mean(g, ir_cross_entropy(g, logits, labels, -1, 0.1), 3, false);
    ir_output(g, named(g, "loss"), loss);
    if (!train) {
        ir_output(g, named(g, "logits"), logits);
        return g;
    }
    graph_gradient(g, loss, w, PARAMS, dw);
    Val rate = ir_host(g, host_op(arena, HO_DIV, host_const(arena, 0.5),
                                  host_op(arena, HO_ADD, host_var(arena, HV_STEP), host_const(arena, 1), NULL), NULL));
    for (size_t i = 0; i < PARAMS; i++)
        if (dw[i])
            ir_store(g, ir_binary(g, OP_SUB, w[i], ir_binary(g, OP_MUL, dw[i], rate)), EXT_PARAM,
                     named(g, params[i].name));
    return g;
}

/* ---- a machine to run it on ---- */

typedef struct Bench {
    Ctx *ctx;
    Backend *backend;
    Store *store;
    Arena *arena; /* of the graphs */
    Program *train, *eval;
    BuildReport report;
    double loss[STEPS], eval_loss;
    double logits[B * T * VOCAB];
    double w[PARAMS][HIDDEN * WIDTH + EXPERTS * WIDTH * WIDTH];
} Bench;

typedef struct Way {
    bool reference, no_fusion, share;
    int threads;
    const char *products;
} Way;

static Status open_bench(Bench *m, Ctx *ctx, const Way *way)
{
    char why[512];
    memset(m, 0, sizeof *m);
    m->ctx = ctx;
    BackendOptions how = {.threads = way->threads, .products = way->products, .cache_dir = "exec-cache"};
    if (!way->reference) {
        Status status = backend_cpu_open(ctx, &how, &m->backend, why);
        if (status != ST_OK)
            return status;
    }
    m->store = store_new(ctx, m->backend);
    Arena *arena = m->arena = arena_new(ctx);
    ProgramOptions o = {.name = "train", .B = B, .T = T, .no_fusion = way->no_fusion, .share_arena = way->share};
    Status status = program_build(m->store, make_graph(ctx, arena, true), &o, &m->train, &m->report);
    o.name = "eval";
    if (status == ST_OK)
        status = program_build(m->store, make_graph(ctx, arena, false), &o, &m->eval, &m->report);
    return status;
}

static void close_bench(Bench *m)
{
    program_free(m->train);
    program_free(m->eval);
    store_free(m->store);
    arena_free(m->arena);
    if (m->backend)
        m->backend->ops->close(m->backend);
}

static StoreEntry *entry(Bench *m, ExtKind kind, const char *name)
{
    return store_find(m->store, kind, name_str(m->ctx, name));
}

static Status fill_store(Bench *m)
{
    uint64_t seed = 11;
    Status status = ST_OK;
    for (size_t i = 0; i < PARAMS && status == ST_OK; i++) {
        StoreEntry *e = entry(m, EXT_PARAM, params[i].name);
        double v[EXPERTS * WIDTH * WIDTH];
        for (int64_t k = 0; k < e->elements; k++)
            v[k] = (float)(harness_random(&seed) * 0.4 + (i == 1));
        status = store_put_f64(m->store, e, 0, e->elements, v);
    }
    int64_t tokens[B * T], labels[B * T];
    for (int i = 0; i < B * T; i++) {
        tokens[i] = (int64_t)((harness_random(&seed) + 1) / 2 * VOCAB);
        labels[i] = i % 6 == 5 ? -1 : (tokens[i] * 7 + i) % VOCAB;
    }
    if (status == ST_OK)
        status = store_put_i64(m->store, entry(m, EXT_INPUT, "tokens"), 0, B * T, tokens);
    if (status == ST_OK)
        status = store_put_i64(m->store, entry(m, EXT_INPUT, "labels"), 0, B * T, labels);
    return status;
}

/* Three steps, each followed by an evaluation; then everything is read. */
static Status run_bench(Bench *m)
{
    Status status = fill_store(m);
    Name loss = name_str(m->ctx, "loss"), logits = name_str(m->ctx, "logits");
    for (int i = 0; i < STEPS && status == ST_OK; i++) {
        double vars[HV_COUNT] = {[HV_STEP] = i};
        RunArgs args = {vars, 5, (uint64_t)i, 0};
        status = program_run(m->train, &args);
        if (status == ST_OK)
            status = program_scalar(m->train, loss, &m->loss[i]);
        if (status == ST_OK)
            status = program_run(m->eval, &args);
        if (status == ST_OK)
            status = program_scalar(m->eval, loss, &m->eval_loss);
    }
    uint8_t rank;
    int64_t d[MAX_RANK];
    if (status == ST_OK)
        status = program_tensor(m->eval, logits, &rank, d, m->logits, B * T * VOCAB);
    if (status == ST_OK && (rank != 3 || d[0] != B || d[1] != T || d[2] != VOCAB))
        status = ST_BUG;
    for (size_t i = 0; i < PARAMS && status == ST_OK; i++) {
        StoreEntry *e = entry(m, EXT_PARAM, params[i].name);
        status = store_get_f64(m->store, e, 0, e->elements, m->w[i]);
    }
    return status;
}

static Bench *run_way(Harness *h, const Way *way)
{
    Bench *m = malloc(sizeof *m);
    Ctx *ctx = ctx_new(NULL);
    Status status = open_bench(m, ctx, way);
    if (!CHECK(h, status == ST_OK))
        fprintf(stderr, "    %s\n", m->report.why);
    if (status == ST_OK && !CHECK(h, run_bench(m) == ST_OK))
        fprintf(stderr, "    %s\n", program_why(m->train));
    close_bench(m);
    ctx_free(ctx);
    return m;
}

static bool same_bits(const Bench *a, const Bench *b)
{
    return !memcmp(a->loss, b->loss, sizeof a->loss) && a->eval_loss == b->eval_loss &&
           !memcmp(a->logits, b->logits, sizeof a->logits) && !memcmp(a->w, b->w, sizeof a->w);
}

static double distance(const Bench *a, const Bench *b)
{
    double worst = fabs(a->eval_loss - b->eval_loss);
    for (int i = 0; i < STEPS; i++)
        worst = fmax(worst, fabs(a->loss[i] - b->loss[i]));
    for (int i = 0; i < B * T * VOCAB; i++)
        worst = fmax(worst, fabs(a->logits[i] - b->logits[i]));
    for (size_t p = 0; p < PARAMS; p++)
        for (size_t i = 0; i < COUNT_OF(a->w[p]); i++)
            worst = fmax(worst, fabs(a->w[p][i] - b->w[p][i]));
    return worst;
}

static void test_ways(Harness *h)
{
    Bench *exact = run_way(h, &(Way){.reference = true});
    Bench *plain = run_way(h, &(Way){.threads = 1});
    CHECK(h, exact->loss[0] > 1 && exact->loss[STEPS - 1] < exact->loss[0]);
    double far = distance(exact, plain);
    if (!CHECK(h, far > 0 && far < 2e-4))
        fprintf(stderr, "    distance %g\n", far);
    static const Way same[] = {{.threads = 2},
                               {.threads = 4},
                               {.threads = 0},
                               {.threads = 2, .share = true},
                               {.reference = true, .share = true}};
    for (size_t i = 0; i < COUNT_OF(same); i++) {
        Bench *m = run_way(h, &same[i]);
        CHECK(h, same_bits(m, same[i].reference ? exact : plain));
        free(m);
    }
    static const Way near[] = {
        {.threads = 2, .no_fusion = true}, {.threads = 2, .products = "plain"}, {.threads = 1, .products = "openblas"}};
    for (size_t i = 0; i < COUNT_OF(near); i++) {
        if (near[i].products && !strcmp(near[i].products, "openblas")) {
            char why[512]; /* may not be on this machine */
            Ctx *ctx = ctx_new(NULL);
            Backend *b;
            Status status = backend_cpu_open(ctx, &(BackendOptions){.products = "openblas", .cache_dir = ""}, &b, why);
            if (b)
                b->ops->close(b);
            ctx_free(ctx);
            if (status != ST_OK)
                continue;
        }
        Bench *m = run_way(h, &near[i]);
        CHECK(h, distance(m, exact) < 2e-4);
        free(m);
    }
    free(exact);
    free(plain);
}

/* ---- memory ---- */

typedef struct Counter {
    long calls, left; /* left < 0: no limit */
} Counter;

static void *counted_resize(void *user, void *p, size_t old_size, size_t new_size)
{
    Counter *c = user;
    (void)old_size;
    if (!new_size) {
        free(p);
        return NULL;
    }
    c->calls++;
    if (c->left == 0)
        return NULL;
    if (c->left > 0)
        c->left--;
    return realloc(p, new_size);
}

static void test_memory(Harness *h)
{
    Counter counter = {.left = -1};
    Ctx *ctx = ctx_new(&(Allocator){counted_resize, &counter});
    Bench *m = malloc(sizeof *m);
    CHECK(h, open_bench(m, ctx, &(Way){.threads = 2, .share = true}) == ST_OK);
    CHECK(h, run_bench(m) == ST_OK);
    long calls = counter.calls;
    size_t bytes = ctx->bytes;
    CHECK(h, run_bench(m) == ST_OK); /* nothing is allocated while it runs */
    CHECK(h, counter.calls == calls && ctx->bytes == bytes);
    uint64_t a = program_arena_bytes(m->train), b = program_arena_bytes(m->eval);
    CHECK(h, a && b && a == program_plan(m->train)->arena_bytes);
    int64_t weights = 0;
    for (size_t i = 0; i < PARAMS; i++)
        weights += entry(m, EXT_PARAM, params[i].name)->elements;
    CHECK(h, store_bytes(m->store) == (uint64_t)weights * 4 + 2 * B * T * 8);
    size_t left = ctx->bytes;
    uint64_t stored = store_bytes(m->store);
    close_bench(m);
    CHECK(h, ctx->bytes + stored < left);
    free(m);
    ctx_free(ctx);
}

/* All of it with what the counter allows; ST_OK when it sufficed. */
static Status run_rationed(Harness *h, Ctx *ctx, const Counter *counter, Bench *m, bool reference)
{
    CtxGuard guard;
    if (!CTX_TRY(ctx, &guard))
        return ctx->raised;
    Status status = open_bench(m, ctx, &(Way){.reference = reference, .threads = 1});
    CHECK(h, status == ST_OK || m->report.why[0] || !m->store);
    if (status == ST_OK)
        status = run_bench(m);
    CHECK(h, status == ST_OK || counter->left == 0);
    ctx_leave(ctx, &guard);
    return status;
}

/* Every allocation fails once: a status, never a crash, and nothing is left (see the leak
 * checker). */
static void test_nth_allocation(Harness *h, bool reference)
{
    Bench *m = malloc(sizeof *m);
    bool whole = false;
    long n = 1;
    for (; n < 100000 && !whole; n += n < 200 ? 1 : n / 8) {
        Counter counter = {.left = n};
        Ctx *ctx = ctx_new(&(Allocator){counted_resize, &counter});
        if (!ctx)
            continue;
        memset(m, 0, sizeof *m);
        Status status = run_rationed(h, ctx, &counter, m, reference);
        CHECK(h, status == ST_OK || status == ST_ENVIRONMENT);
        whole = status == ST_OK;
        if (m->store)
            close_bench(m);
        else if (m->backend)
            m->backend->ops->close(m->backend);
        ctx_free(ctx);
    }
    CHECK(h, whole && n > 20);
    free(m);
}

/* ---- the store ---- */

static void test_store(Harness *h, Ctx *ctx, Backend *backend)
{
    Store *s = store_new(ctx, backend);
    StoreEntry *e, *f;
    int64_t d[2] = {3, 700}, wide[2] = {4, 700}, none[2] = {0, 5}, wrong[2] = {-1, 2};
    int64_t huge[4] = {1 << 20, 1 << 20, 1 << 20, 1 << 20};
    Name w = name_str(ctx, "w"), x = name_str(ctx, "x");
    double v[2100], back[2100];
    float narrow[2100];
    CHECK(h, store_add(s, EXT_PARAM, w, DT_REAL, 2, d, &e) == ST_OK && e->elements == 2100);
    CHECK(h, store_add(s, EXT_PARAM, w, DT_REAL, 2, d, &f) == ST_OK && e == f);
    CHECK(h, store_add(s, EXT_PARAM, w, DT_REAL, 2, wide, &f) == ST_USAGE && !f);
    CHECK(h, strstr(store_why(s), "[3, 700]") && strstr(store_why(s), "[4, 700]"));
    CHECK(h, store_add(s, EXT_PARAM, w, DT_INT, 2, d, &f) == ST_USAGE);
    CHECK(h, store_add(s, EXT_STATE, w, DT_REAL, 2, none, &f) == ST_OK && f != e && !f->elements);
    CHECK(h, store_add(s, EXT_PARAM, x, DT_REAL, 2, wrong, &f) == ST_USAGE);
    CHECK(h, store_add(s, EXT_PARAM, x, DT_REAL, 4, huge, &f) != ST_OK);
    CHECK(h, store_find(s, EXT_PARAM, w) == e && !store_find(s, EXT_GRAD, w));
    CHECK(h, store_count(s) == 2 && store_at(s, 0) == e);
    for (int i = 0; i < 2100; i++)
        v[i] = i / 8.0;
    CHECK(h, store_get_f64(s, e, 0, 2100, back) == ST_OK && back[0] == 0 && back[2099] == 0);
    CHECK(h, store_put_f64(s, e, 0, 2100, v) == ST_OK);
    CHECK(h, store_get_f64(s, e, 0, 2100, back) == ST_OK && !memcmp(v, back, sizeof v));
    CHECK(h, store_get_f32(s, e, 5, 2000, narrow) == ST_OK && narrow[1999] == 2004 / 8.0f);
    CHECK(h, store_put_f32(s, e, 2099, 1, narrow) == ST_OK);
    CHECK(h, store_get_f64(s, e, 2098, 2, back) == ST_OK && back[0] == 2098 / 8.0 && back[1] == 5 / 8.0);
    CHECK(h, store_put_f64(s, e, 2099, 2, v) == ST_USAGE);
    CHECK(h, store_put_f64(s, e, -1, 1, v) == ST_USAGE);
    CHECK(h, store_get_f64(s, e, 2100, 0, back) == ST_OK);
    CHECK(h, store_get_f64(s, e, INT64_MAX, 1, back) == ST_USAGE);
    int64_t whole[3] = {7, -8, (int64_t)1 << 40}, three = 3, six = 6;
    Name tokens = name_str(ctx, "tokens");
    CHECK(h, store_add(s, EXT_INPUT, tokens, DT_INT, 1, &three, &f) == ST_OK);
    CHECK(h, store_put_i64(s, f, 0, 3, whole) == ST_OK);
    CHECK(h, store_put_f64(s, f, 0, 3, v) == ST_USAGE);
    CHECK(h, store_put_i64(s, e, 0, 3, whole) == ST_USAGE);
    CHECK(h, store_get_f64(s, f, 0, 3, back) == ST_OK && back[1] == -8 && back[2] == 0x1p40);
    CHECK(h, store_add(s, EXT_INPUT, tokens, DT_INT, 1, &six, &e) == ST_OK && e == f);
    CHECK(h, f->elements == 6); /* an input grows, and stays so */
    CHECK(h, store_add(s, EXT_INPUT, tokens, DT_INT, 1, &three, &e) == ST_OK && e->elements == 6);
    CHECK(h, store_bytes(s) == (uint64_t)(2100 * (backend ? 4 : 8) + 6 * 8));
    store_free(s);
    store_free(NULL);
}

/* ---- where a bad number began ---- */

static void test_first_bad(Harness *h, const Way *way)
{
    Bench *m = malloc(sizeof *m);
    Ctx *ctx = ctx_new(NULL);
    CHECK(h, open_bench(m, ctx, way) == ST_OK && fill_store(m) == ST_OK);
    double vars[HV_COUNT] = {0}, bad = NAN, big = 1e38, before[4], after[4];
    RunArgs args = {vars, 5, 0, 0};
    Name path = NULL;
    Span span;
    StoreEntry *up = entry(m, EXT_PARAM, "up"), *router = entry(m, EXT_PARAM, "router");
    CHECK(h, store_get_f64(m->store, up, 0, 4, before) == ST_OK);
    CHECK(h, !program_first_bad(m->train, &args, &path, &span));
    CHECK(h, store_get_f64(m->store, up, 0, 4, after) == ST_OK);
    CHECK(h, !memcmp(before, after, sizeof before)); /* a replay stores nothing */
    CHECK(h, store_put_f64(m->store, router, 3, 1, &bad) == ST_OK);
    CHECK(h, program_first_bad(m->train, &args, &path, &span) && path == router->name);
    CHECK(h, store_put_f64(m->store, router, 3, 1, before) == ST_OK);
    CHECK(h, !program_first_bad(m->train, &args, &path, &span));
    if (!way->reference) { /* within the range of float64, beyond that of float32 */
        for (int i = 0; i < 4; i++)
            CHECK(h, store_put_f64(m->store, up, i, 1, &big) == ST_OK);
        CHECK(h, store_put_f64(m->store, entry(m, EXT_PARAM, "down"), 1, 1, &big) == ST_OK);
        CHECK(h, program_first_bad(m->train, &args, &path, &span) && path != up->name);
        CHECK(h, path && strstr(path, "layer[0]"));
    }
    close_bench(m);
    free(m);
    ctx_free(ctx);
}

/* Seconds are added up while somebody asks for them, and cost no bit of the result. */
static void test_watch(Harness *h)
{
    Ctx *ctx = ctx_new(NULL);
    Bench *m = malloc(sizeof *m);
    Name loss = name_str(ctx, "loss");
    double seconds[512] = {0}, plain = 0, watched = 0, once = 0, twice = 0;
    CHECK(h, open_bench(m, ctx, &(Way){.threads = 2}) == ST_OK && fill_store(m) == ST_OK);
    size_t n = program_plan(m->eval)->n_launch;
    CHECK(h, n > 1 && n < COUNT_OF(seconds));
    CHECK(h, program_run(m->eval, NULL) == ST_OK);
    CHECK(h, program_scalar(m->eval, loss, &plain) == ST_OK);
    program_watch(m->eval, seconds);
    double began = clock_seconds();
    CHECK(h, program_run(m->eval, NULL) == ST_OK);
    double took = clock_seconds() - began;
    CHECK(h, program_scalar(m->eval, loss, &watched) == ST_OK && watched == plain);
    for (size_t i = 0; i < n; i++)
        once += seconds[i];
    CHECK(h, once > 0 && once <= took && seconds[n] == 0);
    CHECK(h, program_run(m->eval, NULL) == ST_OK);
    program_watch(m->eval, NULL);
    for (size_t i = 0; i < n; i++)
        twice += seconds[i];
    CHECK(h, twice > once);
    CHECK(h, program_run(m->eval, NULL) == ST_OK);
    for (size_t i = 0; i < n; i++)
        twice -= seconds[i];
    CHECK(h, fabs(twice) < 1e-12);
    close_bench(m);
    ctx_free(ctx);
    free(m);
}

static void test_usage(Harness *h)
{
    Bench *m = malloc(sizeof *m);
    Ctx *ctx = ctx_new(NULL);
    double v;
    uint8_t rank;
    int64_t d[MAX_RANK];
    Name logits = name_str(ctx, "logits"), loss = name_str(ctx, "loss");
    CHECK(h, open_bench(m, ctx, &(Way){.threads = 1}) == ST_OK && fill_store(m) == ST_OK);
    CHECK(h, program_results(m->train) == 1 && program_results(m->eval) == 2);
    CHECK(h, program_result_name(m->eval, 1) == logits);
    CHECK(h, program_scalar(m->eval, loss, &v) == ST_USAGE); /* has not run */
    CHECK(h, program_run(m->eval, NULL) == ST_OK);
    CHECK(h, program_scalar(m->eval, loss, &v) == ST_OK && v > 0);
    CHECK(h, program_scalar(m->eval, logits, &v) == ST_USAGE);
    CHECK(h, program_scalar(m->eval, name_str(ctx, "other"), &v) == ST_USAGE);
    CHECK(h, strstr(program_why(m->eval), "other"));
    CHECK(h, program_tensor(m->eval, logits, &rank, d, m->logits, 5) == ST_USAGE);
    /* Another weight of this name and another shape is in the store. */
    Store *s = store_new(ctx, m->backend);
    StoreEntry *e;
    int64_t other[2] = {WIDTH, HIDDEN + 1};
    Program *p;
    BuildReport r;
    CHECK(h, store_add(s, EXT_PARAM, name_str(ctx, "up"), DT_REAL, 2, other, &e) == ST_OK);
    Arena *arena = arena_new(ctx);
    CHECK(h, program_build(s, make_graph(ctx, arena, true), &(ProgramOptions){.name = "train", .B = B, .T = T}, &p,
                           &r) == ST_USAGE &&
                 !p);
    CHECK(h, strstr(r.why, "up"));
    /* A batch for which there is no memory. */
    ctx->byte_limit = ctx->bytes + (64 << 20);
    CHECK(h, program_build(m->store, make_graph(ctx, arena, true),
                           &(ProgramOptions){.name = "train", .B = 1 << 20, .T = 1 << 10}, &p, &r) == ST_ENVIRONMENT &&
                 !p);
    CHECK(h, strstr(r.why, "memory"));
    ctx->byte_limit = 0;
    store_free(s);
    close_bench(m);
    free(m);
    ctx_free(ctx);
}

int main(void)
{
    Harness h = {0};
    char why[512];
    Ctx *ctx = ctx_new(NULL);
    Backend *b;
    test_store(&h, ctx, NULL);
    if (CHECK(&h, backend_cpu_open(ctx, &(BackendOptions){.cache_dir = ""}, &b, why) == ST_OK)) {
        test_store(&h, ctx, b);
        b->ops->close(b);
    }
    ctx_free(ctx);
    test_ways(&h);
    test_memory(&h);
    test_first_bad(&h, &(Way){.reference = true});
    test_first_bad(&h, &(Way){.threads = 2});
    test_watch(&h);
    test_usage(&h);
    test_nth_allocation(&h, true);
    test_nth_allocation(&h, false);
    remove_folder("exec-cache");
    return harness_end(&h);
}
