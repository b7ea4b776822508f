/* connection_run.c - see connections.h: what must hold of a connection. */
#include "compiler/pass/simplify.h"
#include "connections.h"

#include "support/models.h"

#include "boundary.h"

typedef struct Case {
    int seed;
    const char *text;
    Unit *unit;
    const Graph *g;
    Plan *plan;
} Case;

typedef struct Run {
    Connections how;
    int bad, now;
    Case *of;
    Host *host;
    double worst;       /* difference from the reference, of what is allowed */
    size_t backward[8]; /* boundaries by their number of backward kernels */
} Run;

static const BoundaryWeights between[] = {
    {"attention.o_proj.W", {"ffn.one.up.W", "ffn.one.gate.W"}},
    {"ffn.one.down.W", {"ffn.two.up.W", "ffn.two.gate.W"}},
    {"ffn.two.down.W", {"head.lm.W"}},
};

static void failed(Run *run, const Case *c, const char *what)
{
    if (run->bad++ < 5)
        printf("%s", c->text);
    printf("FAIL connection %d: %s\n", c->seed, what);
}

static void check_forward(Run *run, Ctx *ctx, const Case *c, const Plan *p, const char *program)
{
    for (size_t i = 0; i < COUNT_OF(between); i++) {
        Boundary b = boundary_forward(ctx->program, p, &between[i]);
        if (b.rows == 1 && b.n == 1)
            continue;
        char what[160];
        snprintf(what, sizeof what, "%zu kernels and %zu of a library behind %s in the %s program", b.rows, b.library,
                 between[i].end, program);
        failed(run, c, what);
        boundary_print(p, &b);
    }
}

static void prepare(Ctx *ctx, Run *run, Case *c, int seed)
{
    *c = (Case){.seed = seed, .text = connection_text(ctx->program, seed, run->how.device ? &target_gpu : &target_cpu)};
    c->unit = load_text(ctx, c->text, NULL);
    PlanOptions how = {.B = run->how.B, .T = run->how.T, .target = run->how.device ? &target_gpu : NULL};
    Graph *g = step_gradient(c->unit->model, c->unit->train, true, ctx->program);
    c->g = g;
    c->plan = plan_build(ctx, ctx->program, graph_simplify(g, ctx->program), &how);
    plan_verify(ctx, c->plan);
    check_forward(run, ctx, c, c->plan, "training");
    for (size_t i = 0; i + 1 < COUNT_OF(between); i++) {
        Boundary b = boundary_backward(ctx->program, c->plan, &between[i]);
        run->backward[b.rows < COUNT_OF(run->backward) ? b.rows : COUNT_OF(run->backward) - 1]++;
    }
    Graph *predict = graph_simplify(step_predict(c->unit->model, ctx->program), ctx->program);
    Plan *p = plan_build(ctx, ctx->program, predict, &how);
    plan_verify(ctx, p);
    check_forward(run, ctx, c, p, "prediction");
    host_add(run->host, c->plan);
}

static double largest(const Tensor *t)
{
    double most = 0;
    for (int64_t i = 0; i < t->size; i++)
        most = fmax(most, fabs(t->real[i]));
    return most;
}

/* The worst difference relative to the largest number of the tensor, or to a tenth of `scale`.
 */
static double distance(const Tensor *got, const Tensor *want, double scale)
{
    double size = fmax(largest(want), scale / 10), worst = 0;
    for (int64_t i = 0; i < want->size; i++) {
        double e = fabs(got->real[i] - want->real[i]);
        worst = isfinite(e) ? fmax(worst, e) : INFINITY;
    }
    return size > 0 ? worst / size : worst;
}

/* Rounding the parameters alone moves results: FACTOR times the most that it moves any of them,
 * for the many roundings in between, and FLOOR is how far one may be off. What large numbers leave when they cancel one draw may
 * hardly move, so there are several. */
static const double FLOOR = 3e-5, FACTOR = 10, ROUNDING = 6e-8;
enum { DRAWS = 4 };

typedef struct Reference {
    RefBinding *bind;
    Tensor **result;
} Reference;

/* draw: of how the parameters are rounded; 0: not at all. */
static Reference reference(Arena *arena, const Run *run, const Case *c, int draw)
{
    const Graph *g = c->g;
    double vars[HV_COUNT] = {0};
    Reference r = {bind_all(arena, g, c->unit->model, run->how.B, run->how.T, 0.3),
                   NEW_ARRAY(arena, Tensor *, g->out.n + 1)};
    uint64_t state = (uint64_t)draw;
    for (size_t i = 0; i < g->ext.n && draw; i++)
        for (int64_t k = 0; r.bind[i].kind == EXT_PARAM && k < r.bind[i].tensor->size; k++)
            r.bind[i].tensor->real[k] *= 1 + ROUNDING * noise(&state);
    RefRun how = {.B = run->how.B, .T = run->how.T, .seed = 1, .host_vars = vars, .bind = r.bind, .n_bind = g->ext.n};
    ref_evaluate(g, arena, &how, r.result);
    return r;
}

typedef struct Worst {
    double off, moved;
    const char *name;
    size_t compared;
} Worst;

static void see(Worst *w, const char *name, const Tensor *got, const Tensor *want, double scale)
{
    double off = distance(got, want, scale);
    w->compared++;
    if (!(off <= w->off)) {
        w->off = off;
        w->name = name;
    }
}

static bool same_bits(const Tensor *a, const Tensor *b)
{
    return a->dtype == DT_INT || memcmp(a->real, b->real, (size_t)a->size * sizeof *a->real) == 0;
}

/* A device's threads come from the last to the first, with few blocks. */
static void run_again(Run *run, const Case *c, HostRun *how, Arena *arena, Tensor **results, Tensor **stored)
{
    size_t different = 0;
    Tensor **again[2] = {NEW_ARRAY(arena, Tensor *, c->plan->n_result + 1),
                         NEW_ARRAY(arena, Tensor *, how->n_bind + 1)};
    how->chunk = 3;
    host_run(run->host, c->plan, how, arena, again[0], again[1]);
    for (size_t i = 0; i < c->plan->n_result; i++)
        different += !same_bits(results[i], again[0][i]);
    for (size_t i = 0; i < how->n_bind; i++)
        different += stored[i] && !same_bits(stored[i], again[1][i]);
    if (different)
        failed(run, c, "another order of threads gives other bits");
}

static void compare(Ctx *ctx, Run *run, const Case *c)
{
    const Graph *g = c->g;
    Arena *arena = ctx->program;
    RefBinding *bind = bind_all(arena, g, c->unit->model, run->how.B, run->how.T, 0.3);
    double vars[HV_COUNT] = {0}, scale = 0;
    Tensor **results = NEW_ARRAY(arena, Tensor *, g->out.n + 1);
    Tensor **stored = NEW_ARRAY(arena, Tensor *, g->ext.n + 1);
    HostRun how = {.B = run->how.B,
                   .T = run->how.T,
                   .seed = 1,
                   .host_vars = vars,
                   .bind = bind,
                   .n_bind = g->ext.n,
                   .memory = HOST_ARENA};
    host_run(run->host, c->plan, &how, arena, results, stored);
    if (run->how.device)
        run_again(run, c, &how, arena, results, stored);
    Reference want = reference(arena, run, c, 0);
    Worst worst = {0};
    for (size_t i = 0; i < g->ext.n; i++)
        if (bind[i].kind == EXT_GRAD)
            scale = fmax(scale, largest(want.bind[i].tensor));
    for (size_t i = 0, k = 0; i < g->out.n; i++)
        if (g->out.v[i].ext < 0)
            see(&worst, g->out.v[i].name, results[k++], want.result[i], 0);
    for (size_t i = 0; i < g->ext.n; i++)
        if (bind[i].kind == EXT_GRAD && stored[i])
            see(&worst, bind[i].name, stored[i], want.bind[i].tensor, scale);
    for (int draw = 1; draw <= DRAWS; draw++) {
        Reference moved = reference(arena, run, c, draw);
        for (size_t i = 0; i < g->out.n; i++)
            if (g->out.v[i].ext < 0)
                worst.moved = fmax(worst.moved, distance(moved.result[i], want.result[i], 0));
        for (size_t i = 0; i < g->ext.n; i++)
            if (bind[i].kind == EXT_GRAD && stored[i])
                worst.moved = fmax(worst.moved, distance(moved.bind[i].tensor, want.bind[i].tensor, scale));
    }
    double share = worst.off / (FLOOR + FACTOR * worst.moved);
    run->worst = fmax(run->worst, share);
    if (share < 1 && worst.moved < 1e-4 && worst.compared > 15 && scale > 1e-6)
        return;
    char what[200];
    snprintf(what, sizeof what, "off by %.1e at %s, %.1f of the bound, %zu tensors, gradients up to %.1e", worst.off,
             worst.name ? worst.name : "nothing", share, worst.compared, scale);
    failed(run, c, what);
}

static void check_all(Ctx *ctx, void *arg)
{
    Run *run = arg;
    int n = run->how.count;
    run->of = NEW_ARRAY(ctx->program, Case, (size_t)n + 1);
    for (run->now = 0; run->now < n; run->now++)
        prepare(ctx, run, &run->of[run->now], run->how.from + run->now);
    host_compile(run->host);
    for (run->now = 0; run->now < n; run->now++)
        compare(ctx, run, &run->of[run->now]);
}

int connections_run(const Connections *of)
{
    Ctx *ctx = ctx_new(NULL);
    Run run = {.how = *of, .host = host_new(NULL)};
    host_on_device(run.host, of->device);
    if (!guarded(ctx, check_all, &run)) {
        if (run.of && run.of[run.now].text)
            printf("%s", run.of[run.now].text);
        printf("FAIL connection %d\n", of->from + run.now);
        run.bad++;
    }
    printf("%d connections, %d failures, %.2f of the bound; boundaries by backward kernels:", of->count, run.bad,
           run.worst);
    for (size_t i = 0; i < COUNT_OF(run.backward); i++)
        printf(" %zu", run.backward[i]);
    printf("\n");
    host_free(run.host);
    ctx_free(ctx);
    return run.bad;
}
