/* whole.c - kernel programs of whole models, interpreted in float64, against the reference evaluator.
 *
 * In:  the models of models.h and of examples/, made small; every parameter, gradient and moment at
 *      random; forward, backward and update graphs; fused and unfused; rows 1, 31, 33 and a prime.
 * Out: `N passed, N failed`. Every tensor that a program stores or returns agrees to 1e-9 of its size;
 *      every kernel reads back from its lines and prints the same C; a plan made twice is the same.
 * The one idea: without rounding and without a compiler between them nothing is left that a tolerance
 * could hide.
 * When: slow. kernel.ops, kernel.random and equal.models go the same ways.
 */
#include "compiler/pass/simplify.h"
#include "support/examples.h"

#include "interpret.h"

typedef struct Sizes {
    int64_t B, T;
} Sizes;
static const Sizes sizes[] = {{1, 1}, {1, 31}, {3, 11}, {37, 1}};

typedef struct Case {
    const Source *source;
    const char *program;
    Sizes at;
    bool no_fusion, skipped;
    double worst; /* relative to the size of the tensor */
    const char *name;
    size_t compared;
} Case;

static Graph *program_of(Ctx *ctx, const Unit *u, const char *program)
{
    if (strcmp(program, "eval") == 0)
        return step_evaluate(u->model, ctx->program);
    if (!u->train)
        return NULL;
    return strcmp(program, "train") == 0 ? step_gradient(u->model, u->train, true, ctx->program)
                                         : step_update(u->model, u->train, ctx->program);
}

static RefBinding *bindings(Ctx *ctx, const Graph *g, const Unit *u, Sizes at)
{
    RefBinding *bind = bind_all(ctx->program, g, u->model, at.B, at.T, 0.3);
    uint64_t state = 5;
    for (size_t i = 0; i < g->ext.n; i++) {
        ExtKind kind = bind[i].kind;
        for (int64_t k = 0; (kind == EXT_GRAD || kind == EXT_STATE) && k < bind[i].tensor->size; k++) {
            double x = noise(&state); /* moments: some must not be negative */
            if (bind[i].tensor->dtype == DT_REAL)
                bind[i].tensor->real[k] = kind == EXT_STATE ? fabs(x) : x;
        }
    }
    return bind;
}

static RefBinding *copies(Ctx *ctx, const RefBinding *from, size_t n)
{
    RefBinding *to = NEW_ARRAY(ctx->program, RefBinding, n + 1);
    for (size_t i = 0; i < n; i++) {
        const Tensor *t = from[i].tensor;
        to[i] = from[i];
        to[i].tensor = tensor_new(ctx->program, t->dtype, t->rank, t->d);
        memcpy(t->dtype == DT_INT ? (void *)to[i].tensor->integer : (void *)to[i].tensor->real,
               t->dtype == DT_INT ? (void *)t->integer : (void *)t->real, (size_t)t->size * 8);
    }
    return to;
}

static double largest_of(const Tensor *t)
{
    double most = 0;
    for (int64_t k = 0; t->dtype == DT_REAL && k < t->size; k++)
        most = fmax(most, fabs(t->real[k]));
    return most;
}

static void compare(Case *c, const Tensor *got, const Tensor *want, double scale, const char *name)
{
    double size = fmax(largest_of(want), scale), worst = 0;
    c->compared++;
    for (int64_t k = 0; k < want->size; k++) {
        double e;
        if (want->dtype == DT_INT)
            e = got->integer[k] == want->integer[k] ? 0 : INFINITY;
        else
            e = got->real[k] == want->real[k] ? 0 : fabs(got->real[k] - want->real[k]) / size;
        worst = e >= 0 ? fmax(worst, e) : INFINITY;
    }
    if (worst > c->worst) {
        c->worst = worst;
        c->name = name;
    }
}

static bool same_texts(Ctx *ctx, const Plan *a, const Plan *b)
{
    Buf x = buf_new(ctx->program), y = buf_new(ctx->program);
    plan_dump_programs(&x, a);
    plan_dump_kernels(&x, a);
    plan_dump_programs(&y, b);
    plan_dump_kernels(&y, b);
    return x.n == y.n && memcmp(x.s, y.s, x.n) == 0;
}

static void run(Ctx *ctx, void *arg)
{
    Case *c = arg;
    Unit *u = load_text(ctx, example_text(ctx, c->source), c->source->v.set);
    Graph *g = program_of(ctx, u, c->program);
    c->skipped = !g;
    if (!g)
        return;
    g = graph_simplify(g, ctx->program);
    RefBinding *bind = bindings(ctx, g, u, c->at), *after = copies(ctx, bind, g->ext.n);
    double vars[HV_COUNT];
    for (int i = 0; i < HV_COUNT; i++)
        vars[i] = i + 1;
    PlanOptions how = {.B = c->at.B, .T = c->at.T, .no_fusion = c->no_fusion, .programs = true};
    Plan *p = plan_build(ctx, ctx->program, g, &how);
    plan_verify(ctx, p);
    if (!same_texts(ctx, p, plan_build(ctx, ctx->program, g, &how)))
        vwn_bug(ctx, "a plan made twice is not the same");
    HostRun run = {
        .B = c->at.B, .T = c->at.T, .seed = 7, .step = 3, .host_vars = vars, .bind = bind, .n_bind = g->ext.n};
    Tensor **result = NEW_ARRAY(ctx->program, Tensor *, p->n_result + 1);
    Tensor **stored = NEW_ARRAY(ctx->program, Tensor *, g->ext.n + 1);
    interpret_plan(ctx, p, &run, false, result, stored);
    Tensor **want = NEW_ARRAY(ctx->program, Tensor *, g->out.n + 1);
    RefRun reference = {
        .B = c->at.B, .T = c->at.T, .seed = 7, .step = 3, .host_vars = vars, .bind = after, .n_bind = g->ext.n};
    ref_evaluate(g, ctx->program, &reference, want);
    double scale = 1e-30;
    for (size_t i = 0; i < g->ext.n; i++)
        if (stored[i])
            scale = fmax(scale, largest_of(after[i].tensor) / 10);
    for (size_t i = 0, k = 0; i < g->out.n; i++)
        if (g->out.v[i].ext < 0)
            compare(c, result[k++], want[i], 1e-30, g->out.v[i].name);
    for (size_t i = 0; i < g->ext.n; i++)
        if (stored[i])
            compare(c, stored[i], after[i].tensor, scale, after[i].name);
}

static void print_bug(Ctx *ctx, const char *text)
{
    (void)ctx;
    printf("%.20000s\n", text);
}

static bool run_case(const Source *s, const char *program, Sizes at, bool no_fusion)
{
    Ctx *ctx = ctx_new(NULL);
    Case c = {.source = s, .program = program, .at = at, .no_fusion = no_fusion, .name = ""};
    ctx->on_bug = print_bug;
    bool ok = guarded(ctx, run, &c) && (c.skipped || (c.worst < 1e-9 && c.compared > 0));
    if (!c.skipped || !ok)
        printf("%-18s %-7s B %lld T %lld %-8s %zu tensors, worst %.1e at %s%s\n", s->v.name, program, (long long)at.B,
               (long long)at.T, no_fusion ? "unfused" : "fused", c.compared, c.worst, c.name, ok ? "" : "  FAILED");
    fflush(stdout);
    ctx_free(ctx);
    return ok;
}

int main(int argc, char **argv)
{
    static const char *const programs[] = {"train", "update", "eval"};
    int passed = 0, failed = 0;
    CaseDraw draw = {.one_in = 16, .sanitized = 16}; /* every other program of each model in one of three ways */
    for (size_t i = 0; i < COUNT_OF(sources) + MODELS; i++) {
        Source own = i < COUNT_OF(sources) ? sources[i] : (Source){NULL, *model_variant(i - COUNT_OF(sources))};
        if (argc > 1 && strcmp(argv[1], own.v.name) != 0)
            continue;
        Sizes other = sizes[1 + i % 3], third = sizes[1 + (i + 1) % 3];
        for (int k = 0; k < 3; k++) {
            const struct {
                Sizes at;
                bool no_fusion;
            } way[] = {{sizes[0], k == 2}, {other, false}, {third, true}};
            for (size_t w = 0; w < COUNT_OF(way); w++)
                if (argc > 1 || case_drawn(&draw, i + (size_t)k + w))
                    run_case(&own, programs[k], way[w].at, way[w].no_fusion) ? passed++ : failed++;
        }
    }
    cases_end(&draw);
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
