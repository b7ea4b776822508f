/* step.c - whole training steps with emulated CUDA kernels, against the same steps with the CPU's.
 *
 * In:  models of models.h with randomised parameters and moments: plain, wide streams, experts, widths that differ
 *      between layers.     Out: `N passed, N failed`; 77 without a C++ compiler.
 * Two steps: gradients, then the update (clipping, AdamW) of every parameter in place, and again. Weights and moments
 * agree within float32; the second step works on what the first has left.
 */
#include "gradients.h"

#include "backend_emu.h"

enum { B = 2, T = 7, STEPS = 2 };
static const char *const names[] = {"gpt", "ghc (2,3)", "mhc 3", "moe", "carried"};
static const double WORST = 2e-5;

typedef struct Case {
    const Variant *v;
    double worst; /* relative to the largest entry of the tensor */
    const char *name;
    size_t compared, moved;
} Case;

/* Moments: random, those of squares not negative; at zero a step would be the sign of noise. */
static void fill_moments(RefBinding *bind, const Graph *g)
{
    uint64_t state = 5;
    for (size_t i = 0; i < g->ext.n; i++)
        for (int64_t k = 0; bind[i].kind == EXT_STATE && k < bind[i].tensor->size; k++) {
            double x = fabs(noise(&state));
            if (bind[i].tensor->dtype == DT_REAL)
                bind[i].tensor->real[k] = 0.1 + x;
        }
}

static Program *build(Ctx *ctx, Store *s, const Graph *g, const char *name)
{
    Program *p;
    BuildReport report;
    ProgramOptions how = {.name = name, .B = B, .T = T};
    if (program_build(s, g, &how, &p, &report) != ST_OK)
        vwn_bug(ctx, "build of %s: %s", name, report.why);
    return p;
}

static void run_steps(Ctx *ctx, Backend *b, const Graph *const g[2], RefBinding *const bind[2], double **out)
{
    Store *s = store_new(ctx, b);
    Program *p[2] = {build(ctx, s, g[0], "train"), build(ctx, s, g[1], "update")};
    fill_store(ctx, s, g[0], bind[0]);
    fill_store(ctx, s, g[1], bind[1]);
    for (int step = 0; step < STEPS; step++) {
        double vars[HV_COUNT] = {0};
        vars[HV_STEP] = step;
        vars[HV_LENGTH] = 10;
        for (int k = 0; k < 2; k++)
            if (program_run(p[k], &(RunArgs){.host_vars = vars, .seed = 1, .step = (uint64_t)step}) != ST_OK)
                vwn_bug(ctx, "run: %s", program_why(p[k]));
    }
    for (size_t i = 0; i < g[1]->ext.n; i++) {
        StoreEntry *e = store_find(s, g[1]->ext.v[i].kind, g[1]->ext.v[i].name);
        out[i] = NEW_ARRAY(ctx->program, double, e->elements + 1);
        if (e->dtype == DT_REAL)
            store_get_f64(s, e, 0, e->elements, out[i]);
    }
    program_free(p[0]);
    program_free(p[1]);
    store_free(s);
    b->ops->close(b);
}

static void compare_tensor(Case *c, const RefBinding *was, const double *got, const double *want)
{
    double size = 0, worst = 0, moved = 0;
    for (int64_t k = 0; k < was->tensor->size; k++) {
        size = fmax(size, fabs(want[k]));
        worst = fmax(worst, isnan(got[k]) ? INFINITY : fabs(got[k] - want[k]));
        moved = fmax(moved, fabs(want[k] - was->tensor->real[k]));
    }
    c->compared++;
    c->moved += moved > 0;
    if (size > 0 && worst / size > c->worst) {
        c->worst = worst / size;
        c->name = was->name;
    }
}

static void run(Ctx *ctx, void *arg)
{
    Case *c = arg;
    Unit *u = load_text(ctx, model_text, c->v->set);
    const Graph *g[2] = {step_gradient(u->model, u->train, true, ctx->program),
                         step_update(u->model, u->train, ctx->program)};
    RefBinding *bind[2];
    double **out[2];
    for (int k = 0; k < 2; k++)
        bind[k] = bind_all(ctx->program, g[k], u->model, B, T, 0.3);
    fill_moments(bind[1], g[1]);
    for (int k = 0; k < 2; k++) {
        char why[512];
        Backend *b;
        EmuOptions how = {.descending = true};
        Status st = k ? backend_cpu_open(ctx, &(CpuOptions){.threads = 1}, &b, why)
                      : backend_emu_open(ctx, &how, &b, why);
        if (st != ST_OK)
            vwn_bug(ctx, "no backend: %s", why);
        out[k] = NEW_ARRAY(ctx->program, double *, g[1]->ext.n + 1);
        run_steps(ctx, b, g, bind, out[k]);
    }
    for (size_t i = 0; i < g[1]->ext.n; i++)
        if (bind[1][i].kind == EXT_PARAM || bind[1][i].kind == EXT_STATE)
            compare_tensor(c, &bind[1][i], out[0][i], out[1][i]);
}

static const Variant *variant(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(variants); i++)
        if (strcmp(variants[i].name, name) == 0)
            return &variants[i];
    return NULL;
}

int main(void)
{
    char why[512];
    int passed = 0, failed = 0;
    if (!emu_possible(why)) {
        printf("skipped: %s\n", why);
        return 77;
    }
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        Ctx *ctx = ctx_new(NULL);
        Case c = {.v = variant(names[i]), .name = ""};
        bool ok = c.v && guarded(ctx, run, &c) && c.worst < WORST && c.compared > 20 && c.moved == c.compared;
        printf("%-10s %zu tensors, %zu moved, worst %.1e at %s%s\n", names[i], c.compared, c.moved, c.worst,
               c.name, ok ? "" : "  FAILED");
        fflush(stdout);
        ok ? passed++ : failed++;
        ctx_free(ctx);
    }
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
