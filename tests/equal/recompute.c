/* recompute.c - modules that are computed again in the backward pass.
 *
 * In:  small models with dropout, with and without `recompute`.   Out: `N passed, N failed`.
 * In float64 losses and gradients are the same to the bit: copies do the same operations and draw the same
 * numbers. Of the memory of a model whose layers are recomputed, one more layer takes what it reads and no more.
 */
#include "models.h"

#include "compiler/plan.h"

static const char *const dropping = "sub=ffn(hidden = 10, activation = silu, gated = true, dropout = 0.3)";

static int copies(const Graph *g)
{
    int n = 0;
    for (Val v = 1; v < g->node.n; v++)
        n += node_at(g, v)->name && strstr(node_at(g, v)->name, " again") != NULL;
    return n;
}

typedef struct Case {
    const char *word, *conn;
    int copies;
    bool same;
} Case;

static void compare(Ctx *ctx, void *arg)
{
    enum { B = 2, T = 5 };
    Case *c = arg;
    const char *set[5] = {dropping, c->conn, NULL};
    Tensor **r[2];
    RefBinding *bind[2];
    Graph *g[2];
    for (int k = 0; k < 2; k++) {
        set[2] = k ? arena_printf(ctx->program, "train.recompute=[%s]", c->word) : NULL;
        Unit *u = load_text(ctx, model_text, set);
        PlanOptions how = {.B = B, .T = T};
        g[k] = plan_graph(step_gradient(u->model, u->train, true, ctx->program), ctx->program, &how);
        graph_verify(g[k]);
        bind[k] = bind_all(ctx->program, g[k], u->model, B, T, 0.3);
        double vars[HV_COUNT] = {0};
        RefRun run = {.B = B, .T = T, .seed = 1, .bind = bind[k], .n_bind = g[k]->ext.n, .host_vars = vars};
        r[k] = NEW_ARRAY(ctx->program, Tensor *, g[k]->out.n + 1);
        ref_evaluate(g[k], ctx->program, &run, r[k]);
    }
    c->copies = copies(g[0]) ? -1 : copies(g[1]);
    c->same = g[0]->out.n == g[1]->out.n && r[0][0]->real[0] == r[1][0]->real[0];
    for (size_t i = 0; i < g[0]->ext.n && c->same; i++) {
        const Ext *e = &g[0]->ext.v[i];
        if (e->kind != EXT_GRAD)
            continue;
        const Tensor *a = bound(bind[0], g[0], e->kind, e->name), *b = bound(bind[1], g[1], e->kind, e->name);
        c->same = !memcmp(a->real, b->real, (size_t)a->size * sizeof(double));
    }
}

static uint64_t arena_bytes(Ctx *ctx, const char *layers, const char *recompute, int64_t B, int64_t T)
{
    const char *set[3] = {layers, recompute, NULL};
    Unit *u = load_text(ctx, model_text, set);
    PlanOptions how = {.B = B, .T = T};
    Graph *g = plan_graph(step_gradient(u->model, u->train, true, ctx->program), ctx->program, &how);
    return plan_build(ctx, ctx->program, g, &how)->arena_bytes;
}

typedef struct Memory {
    uint64_t four, eight, kept_four, kept_eight;
} Memory;
enum { MB = 4, MT = 512, WIDTH = 12 };

static void measure(Ctx *ctx, void *arg)
{
    Memory *m = arg;
    const char *four = "widths=[D, D, D, D]", *eight = "widths=[D, D, D, D, D, D, D, D]";
    m->four = arena_bytes(ctx, four, "train.recompute=[layer]", MB, MT);
    m->eight = arena_bytes(ctx, eight, "train.recompute=[layer]", MB, MT);
    m->kept_four = arena_bytes(ctx, four, NULL, MB, MT);
    m->kept_eight = arena_bytes(ctx, eight, NULL, MB, MT);
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
    printf("%d passed, %d failed\n", passed, failed);
    return failed > 0;
}
