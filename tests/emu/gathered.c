/* gathered.c - launches that are made as one leave the bits that they leave one by one.
 *
 * In:  models of models.h with randomised parameters, gradients and moments, two optimizers that are not AdamW,
 *      which whole runs take (step.c).
 * Out: `N passed, N failed`; 77 without a C++ compiler.
 * The one idea: the same graphs, planned with and without (PlanOptions.single), on the same numbers. Blocks run from the last to
 * the first, so launches that wait for each other would be seen.
 * When: slow. It runs hundreds of kernels, of which emu.examples has a part.
 */
#include "emulated.h"

enum { PROGRAMS = 2 };

typedef struct Case {
    const Variant v;
    const char *optimizer;
    Half half;
    size_t launches[2], compared; /* one by one, gathered */
    bool same;
} Case;

static const char muon[] = "  optimizer muon { lr = 1e-2, momentum = 0.9, weight_decay = 0.1\n"
                           "    adamw { lr = 1e-3, betas = [0.9, 0.95], eps = 1e-8 } }\n";
static const char lion[] = "  optimizer lion { lr = 1e-3, betas = [0.9, 0.99], weight_decay = 0.1 }\n";

static Case cases[] = {
    {.v = {"gpt, muon", {"sub=ffn(hidden = 10, activation = silu, dropout = 0.3)", NULL}}, .optimizer = muon},
    {.v = {"ghc (2,3), lion",
           {"D=64", "widths=[D]", "sub=ffn(hidden = 64, activation = silu, gated = true)",
            "conn=ghc(m = 2, n = 3, dynamic = true, reduce = linear(out = D))", "wide=96", NULL}},
     .optimizer = lion,
     .half = HALF_BF16},
};

static const char *text_of(Ctx *ctx, const Case *c)
{
    const char *line = strstr(model_text, "  optimizer"), *end = strchr(line, '\n') + 1;
    return arena_printf(ctx->program, "%.*s%s%s", (int)(line - model_text), model_text, c->optimizer, end);
}

/* All tensors of the graph after a run on numbers at random, moments not negative. */
static void run_program(Ctx *ctx, Backend *b, const Unit *u, const Graph *g, Case *c, bool single, double **out)
{
    Program *p;
    BuildReport report;
    ProgramOptions how = {.name = "one", .B = 2, .T = 32, .half = c->half, .single = single};
    RefBinding *bind = bind_all(ctx->program, g, u->model, how.B, how.T, 0.3);
    double vars[HV_COUNT] = {[HV_LOSS_SCALE] = 1, [HV_UPDATES] = 2, [HV_LENGTH] = 10};
    uint64_t state = 5;
    Store *s = store_new(ctx, b);
    for (size_t i = 0; i < g->ext.n; i++)
        for (int64_t k = 0; k < bind[i].tensor->size; k++)
            if (bind[i].kind == EXT_STATE || bind[i].kind == EXT_GRAD)
                bind[i].tensor->real[k] = bind[i].kind == EXT_STATE ? 1 + noise(&state) : noise(&state);
    if (program_build(s, g, &how, &p, &report) != ST_OK)
        vwn_bug(ctx, "build: %s", report.why);
    fill_store(ctx, s, g, bind);
    for (int k = 0; k < 2; k++) /* addresses and numbers stay good */
        if (program_run(p, &(RunArgs){.host_vars = vars, .seed = 1, .step = 3}) != ST_OK)
            vwn_bug(ctx, "run: %s", program_why(p));
    c->launches[!single] += program_plan(p)->n_launch;
    for (size_t i = 0; i < g->ext.n; i++) {
        StoreEntry *e = store_find(s, g->ext.v[i].kind, g->ext.v[i].name);
        out[i] = NEW_ARRAY(ctx->program, double, e->elements + 1);
        if (e->dtype == DT_REAL)
            store_get_f64(s, e, 0, e->elements, out[i]);
    }
    program_free(p);
    store_free(s);
}

static void run(Ctx *ctx, void *arg)
{
    Case *c = arg;
    char why[512];
    Backend *b;
    Unit *u = load_text(ctx, text_of(ctx, c), c->v.set);
    const Graph *g[PROGRAMS] = {step_gradient(u->model, u->train, false, ctx->program),
                                step_update(u->model, u->train, ctx->program)};
    if (backend_emu_open(ctx, &(EmuOptions){.descending = true}, &b, why) != ST_OK)
        vwn_bug(ctx, "no backend: %s", why);
    c->same = true;
    for (int i = 0; i < PROGRAMS; i++) {
        double **out[2];
        for (int k = 0; k < 2; k++) {
            out[k] = NEW_ARRAY(ctx->program, double *, g[i]->ext.n + 1);
            run_program(ctx, b, u, g[i], c, k == 0, out[k]);
        }
        for (size_t x = 0; x < g[i]->ext.n; x++, c->compared++) {
            Dim n;
            shape_size(&g[i]->ext.v[x].shape, &n);
            if (memcmp(out[0][x], out[1][x], (size_t)dim_at(n, 2, 32) * sizeof(double)) == 0)
                continue;
            printf("%s differs\n", g[i]->ext.v[x].name);
            c->same = false;
        }
    }
    b->ops->close(b);
}

static bool run_case(size_t i)
{
    Ctx *ctx = ctx_new(NULL);
    Case *c = &cases[i];
    bool ok = guarded(ctx, run, c) && c->same && c->compared > 60 && c->launches[1] < c->launches[0];
    printf("%-18s %zu launches instead of %zu, %zu tensors%s\n", c->v.name, c->launches[1], c->launches[0], c->compared,
           ok ? "" : "  FAILED");
    fflush(stdout);
    ctx_free(ctx);
    return ok;
}

static const char *case_name(size_t i) { return cases[i].v.name; }

int main(int argc, char **argv) { return emulated_cases(argc, argv, COUNT_OF(cases), case_name, run_case); }
