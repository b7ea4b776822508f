/* recompute.c - what is computed again in the backward pass.
 *
 * In:  small models with dropout, with and without `recompute`; wider ones with operands of large products that
 *      are cheap to compute again.   Out: `N passed, N failed`.
 * In float64 losses and gradients are the same to the bit: copies do the same operations and draw the same
 * numbers. Of the memory of a model whose layers are recomputed, one more layer takes what it reads and no more.
 * Of what an activation function makes no layer keeps anything.
 * When: quick.
 */
#include "support/models.h"

#include "compiler/plan/plan.h"
#include "compiler/pass/recompute.h"

static const char *const dropping = "sub=ffn(hidden = 10, activation = silu, gated = true, dropout = 0.3)";

static int copies(const Graph *g)
{
    int n = 0;
    for (Val v = 1; v < g->node.n; v++)
        n += node_at(g, v)->recomputed;
    return n;
}

enum { B = 2, T = 5 };

/* What a graph gives in float64 at random parameters, the same for equal inputs. */
typedef struct Outcome {
    const Graph *g;
    RefBinding *bind;
    double loss;
} Outcome;

static Outcome evaluate(Ctx *ctx, const Unit *u, Graph *differentiated)
{
    PlanOptions how = {.B = B, .T = T};
    Graph *g = plan_graph(differentiated, ctx->program, &how);
    graph_verify(g);
    Outcome r = {g, bind_all(ctx->program, g, u->model, B, T, 0.3), 0};
    double vars[HV_COUNT] = {0};
    RefRun run = {.B = B, .T = T, .seed = 1, .bind = r.bind, .n_bind = g->ext.n, .host_vars = vars};
    Tensor **out = NEW_ARRAY(ctx->program, Tensor *, g->out.n + 1);
    ref_evaluate(g, ctx->program, &run, out);
    for (size_t i = 0; i < g->out.n; i++)
        if (!strcmp(g->out.v[i].name, "loss"))
            r.loss = out[i]->real[0];
    return r;
}

/* The loss, and every gradient. */
static bool same_bits(const Outcome *x, const Outcome *y)
{
    bool same = x->loss == y->loss && x->loss > 0;
    int gradients = 0;
    for (size_t i = 0; i < x->g->ext.n && same; i++) {
        const Ext *e = &x->g->ext.v[i];
        if (e->kind != EXT_GRAD)
            continue;
        const Tensor *a = bound(x->bind, x->g, e->kind, e->name), *b = bound(y->bind, y->g, e->kind, e->name);
        same = !memcmp(a->real, b->real, (size_t)a->size * sizeof(double));
        gradients++;
    }
    return same && gradients > 0;
}

typedef struct Case {
    const char *word, *conn;
    int copies;
    bool same;
} Case;

static void compare(Ctx *ctx, void *arg)
{
    Case *c = arg;
    const char *set[5] = {dropping, c->conn, NULL};
    Outcome r[2];
    for (int k = 0; k < 2; k++) {
        set[2] = k ? arena_printf(ctx->program, "train.recompute=[%s]", c->word) : NULL;
        Unit *u = load_text(ctx, model_text, set);
        r[k] = evaluate(ctx, u, step_gradient(u->model, u->train, true, ctx->program));
    }
    c->copies = copies(r[0].g) ? -1 : copies(r[1].g);
    c->same = same_bits(&r[0], &r[1]);
}

/* ---- maxima ---- */

static Val behind_views(const Graph *g, Val v)
{
    while (op_is_view((Op)node_at(g, v)->op))
        v = node_at(g, v)->in[0];
    return v;
}

/* The gradient of a maximum compares it with the numbers that it was chosen from: both computed again, or neither, for
 * the last bits of a copy may differ. */
static void count_maxima(Ctx *ctx, void *arg)
{
    static const char *const blocks =
        "\nblock top()(x: [.., D]) -> [.., 1] { return max(sigmoid(x) / (1 + x * x), over = -1, keep = true) }"
        "\nblock peak()(x: [.., D]) -> [.., D] {\n let t = top()\n return x * t(x)\n}\n";
    int *count = arg;
    const char *set[3] = {"sub=peak()", "train.recompute=[t]", NULL};
    Unit *u = load_text(ctx, arena_printf(ctx->program, "%s%s", model_text, blocks), set);
    PlanOptions how = {.B = B, .T = T};
    const Graph *g = plan_graph(step_gradient(u->model, u->train, true, ctx->program), ctx->program, &how);
    for (Val v = 1; v < g->node.n; v++) {
        const Node *n = node_at(g, v);
        Val most = n->op == OP_EQ ? behind_views(g, n->in[1]) : 0;
        if (most && node_at(g, most)->op == OP_AMAX)
            count[behind_views(g, n->in[0]) == behind_views(g, node_at(g, most)->in[0])]++;
    }
}

/* ---- operands ---- */

typedef struct Operands {
    const char *sub;
    int copies; /* of the layers' two sublayers */
    bool ok;
} Operands;

/* The gradients of a step without any copy. */
static Graph *plain_gradient(const Unit *u, Arena *arena)
{
    Graph *g = step_forward(u->model, u->train, arena);
    Val objective = 0;
    VEC(Ext) want = {0};
    for (size_t i = 0; i < g->out.n; i++)
        if (!strcmp(g->out.v[i].name, STEP_OBJECTIVE))
            objective = g->out.v[i].value;
    for (size_t i = 0; i < g->ext.n; i++)
        if (g->ext.v[i].kind == EXT_GRAD)
            vec_push(arena, &want, g->ext.v[i]);
    step_store_gradients(g, objective, want.v, want.n, true);
    return g;
}

static void compare_operands(Ctx *ctx, void *arg)
{
    Operands *c = arg;
    const char *set[3] = {"D=64", c->sub, NULL};
    Unit *u = load_text(ctx, model_text, set);
    Outcome x = evaluate(ctx, u, plain_gradient(u, ctx->program));
    Outcome y = evaluate(ctx, u, step_gradient(u->model, u->train, true, ctx->program));
    c->ok = copies(x.g) == 0 && copies(y.g) == c->copies && same_bits(&x, &y);
    if (!c->ok)
        printf("%d copies, loss %.17g and %.17g\n", copies(y.g), x.loss, y.loss);
}

/* Results of attention, which its gradient reads in float32, are rounded for each of the two products that read
 * them. */
static void count_rounded(Ctx *ctx, void *arg)
{
    int *count = arg;
    const char *set[2] = {"D=64", NULL};
    Unit *u = load_text(ctx, model_text, set);
    PlanOptions how = {.B = 16, .T = 8, .half = HALF_BF16};
    const Graph *g = plan_graph(step_gradient(u->model, u->train, true, ctx->program), ctx->program, &how);
    for (Val v = 1; v < g->node.n; v++) {
        Val x = v;
        while (x && (x == v || node_at(g, x)->op == OP_RESHAPE))
            x = node_at(g, x)->n_in ? node_at(g, x)->in[0] : 0;
        if (node_at(g, v)->op == OP_ROUND_TO && x && node_at(g, x)->op == OP_SDPA)
            count[node_at(g, v)->recomputed]++;
    }
}

/* ---- memory ---- */

enum { MB = 4, MT = 512, WIDTH = 12 };

static uint64_t arena_of(Ctx *ctx, const char *const *set, int64_t seqs, int64_t positions)
{
    Unit *u = load_text(ctx, model_text, set);
    PlanOptions how = {.B = seqs, .T = positions};
    Graph *g = plan_graph(step_gradient(u->model, u->train, true, ctx->program), ctx->program, &how);
    return plan_build(ctx, ctx->program, g, &how)->arena_bytes;
}

static uint64_t arena_bytes(Ctx *ctx, const char *layers, const char *recompute)
{
    const char *set[3] = {layers, recompute, NULL};
    return arena_of(ctx, set, MB, MT);
}

typedef struct Memory {
    uint64_t four, eight, kept_four, kept_eight;
} Memory;

static void measure(Ctx *ctx, void *arg)
{
    Memory *m = arg;
    const char *four = "widths=[D, D, D, D]", *eight = "widths=[D, D, D, D, D, D, D, D]";
    m->four = arena_bytes(ctx, four, "train.recompute=[layer]");
    m->eight = arena_bytes(ctx, eight, "train.recompute=[layer]");
    m->kept_four = arena_bytes(ctx, four, NULL);
    m->kept_eight = arena_bytes(ctx, eight, NULL);
}

/* Bytes that one more layer takes with so many hidden values. */
static void measure_hidden(Ctx *ctx, void *arg)
{
    int64_t *bytes = arg;
    const char *hidden[2] = {"sub=ffn(hidden = 128, activation = silu, gated = false)",
                             "sub=ffn(hidden = 256, activation = silu, gated = false)"};
    uint64_t layer[2];
    for (int k = 0; k < 2; k++) {
        uint64_t at[2];
        for (int l = 0; l < 2; l++) {
            const char *set[4] = {"D=64", hidden[k], l ? "widths=[D, D, D, D]" : "widths=[D, D]", NULL};
            at[l] = arena_of(ctx, set, MB, MT);
        }
        layer[k] = (at[1] - at[0]) / 2;
    }
    *bytes = (int64_t)(layer[1] - layer[0]);
}

static int test_operands(int *passed)
{
    static const Operands cases[] = {
        {"sub=ffn(hidden = 80, activation = silu, gated = true)", 2, false},
        {"sub=ffn(hidden = 80, activation = relu, gated = false)", 2, false},
        {"sub=ffn(hidden = 80, activation = silu, gated = false, dropout = 0.2)", 4, false},
        {"sub=ffn(hidden = 80, activation = gelu, gated = false)", 0, false}, /* its derivative is kept */
        {"sub=ffn(hidden = 32, activation = silu, gated = true)", 0, false},  /* small products are no library's */
    };
    int failed = 0;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        Ctx *ctx = ctx_new(NULL);
        Operands c = cases[i];
        bool ok = guarded(ctx, compare_operands, &c) && c.ok;
        printf("%-72s %d copies, same bits%s\n", c.sub, c.copies, ok ? "" : "  FAILED");
        ok ? ++*passed : failed++;
        ctx_free(ctx);
    }
    Ctx *ctx = ctx_new(NULL);
    int count[2] = {0};
    bool two = guarded(ctx, count_rounded, count) && count[0] == 2 && count[1] == 2;
    printf("bf16: results of attention are rounded %d times, and %d times again%s\n", count[0], count[1],
           two ? "" : "  FAILED");
    two ? ++*passed : failed++;
    ctx_free(ctx);
    ctx = ctx_new(NULL);
    int64_t bytes = 0, once = (int64_t)MB * MT * 128 * (int64_t)sizeof(float);
    bool ok = guarded(ctx, measure_hidden, &bytes) && bytes == once;
    printf("128 more hidden values: %lld bytes a layer, what the projection makes of them is %lld%s\n",
           (long long)bytes, (long long)once, ok ? "" : "  FAILED");
    ok ? ++*passed : failed++;
    ctx_free(ctx);
    return failed;
}

int main(void)
{
    static const char *const words[] = {"layer", "ffn", "attention", "attention, sub", "connection"};
    static const char *const conns[] = {"conn=residual()", "conn=hyper(n = 4, dynamic = true)"};
    int passed = 0, failed = 0;
    for (size_t k = 0; k < COUNT_OF(conns); k++)
        for (size_t i = 0; i < COUNT_OF(words); i++) {
            Ctx *ctx = ctx_new(NULL);
            Case c = {.word = strcmp(words[i], "ffn") ? words[i] : "sub", .conn = conns[k]};
            bool none = k == 0 && !strcmp(words[i], "connection"); /* its addition computes nothing to keep */
            bool ok = guarded(ctx, compare, &c) && c.same && (none ? c.copies == 0 : c.copies > 0);
            printf("%-36s [%s]: %d copies, %s%s\n", c.conn, c.word, c.copies, c.same ? "same bits" : "other bits",
                   ok ? "" : "  FAILED");
            ok ? passed++ : failed++;
            ctx_free(ctx);
        }
    Ctx *ctx = ctx_new(NULL);
    Memory m = {0};
    uint64_t read = (uint64_t)MB * MT * WIDTH * sizeof(float); /* the input of a layer */
    bool ok = guarded(ctx, measure, &m) && m.eight - m.four == 4 * read && m.kept_eight > 2 * m.eight;
    printf("4 more layers: %llu bytes, inputs are %llu; without %llu%s\n", (unsigned long long)(m.eight - m.four),
           (unsigned long long)(4 * read), (unsigned long long)(m.kept_eight - m.kept_four), ok ? "" : "  FAILED");
    ok ? passed++ : failed++;
    ctx_free(ctx);
    ctx = ctx_new(NULL);
    int maxima[2] = {0};
    ok = guarded(ctx, count_maxima, maxima) && maxima[0] == 0 && maxima[1] > 0;
    printf("maxima are compared with what they are of %d times, with other copies %d times%s\n", maxima[1], maxima[0],
           ok ? "" : "  FAILED");
    ok ? passed++ : failed++;
    ctx_free(ctx);
    failed += test_operands(&passed);
    printf("%d passed, %d failed\n", passed, failed);
    return failed > 0;
}
