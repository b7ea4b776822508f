/* step.c - whole training steps with emulated CUDA kernels, against the same steps with the CPU's.
 *
 * In:  models of models.h with randomised parameters and moments: plain, wide streams, experts, widths that differ
 *      between layers, maps of growing models.     Out: `N passed, N failed`; 77 without a C++ compiler.
 * Three steps: gradients, then the update (clipping, AdamW) of every parameter in place; a step works on what the
 * one before has left. Losses, weights and moments agree: within float32 where all is, and where the emulator
 * computes in bf16 or fp16, within its rounding of the CPU's float32, where a gradient that is off by a third is
 * seen (bf16.c looks closer). Weights are smaller there, so that no layer makes the rounding of those before it
 * larger. Nothing but large products is the host's.
 * When: first.
 */
#include "runtime/cpu/backend_cpu.h"
#include "emulated.h"

enum { STEPS = 3 };

typedef struct Case {
    const Variant v;
    Half half;
    int B, T;
    const char *sgd; /* NULL: AdamW; SGD with Nesterov's momentum and this kind of decay */
    double worst;    /* relative to the largest entry of the tensor */
    const char *name;
    size_t compared, moved;
    double loss[STEPS]; /* the largest difference, relative */
} Case;

#define SMALL "D=64", "model.init=normal(std = 0.1)", "model.out_init=normal(std = 0.1)"
#define FFN   "sub=ffn(hidden = 64, activation = silu, gated = true)"

/* One of three has each type, and rows of all kinds. Rows of a thread (12 numbers), of a warp (36); matrices of rows; wide enough for bf16. */
static Case cases[] = {
    {{"gpt", {"widths=[D]", NULL}}, .B = 2, .T = 7},
    {{"gpt, sgd", {"widths=[D]", NULL}}, .B = 1, .T = 7, .sgd = "decoupled"},
    {{"gpt, sgd coupled", {"widths=[D]", NULL}}, .B = 1, .T = 7, .sgd = "coupled"},
    {{"ghc (2,3)",
      {"D=36", "widths=[D]", "conn=ghc(m = 2, n = 3, dynamic = true, reduce = linear(out = D))", "wide=54", NULL}},
     .B = 1,
     .T = 7},
    {{"ghc (8,64)",
      {"D=16", "widths=[D]", "conn=ghc(m = 8, n = 64, dynamic = true, reduce = linear(out = D))", "wide=128", NULL}},
     .B = 1,
     .T = 3},
    {{"mhc 3", {"widths=[D]", "conn=mhc(n = 3, iterations = 4)", NULL}}, .B = 2, .T = 7},
    {{"moe",
      {"widths=[D]",
       "sub=moe(experts = 5, active = 2, hidden = 7, activation = silu, scores = softmax, normalize = true, "
       "balance = 0.01, z_loss = 0.001, shared = 1)",
       NULL}},
     .B = 2,
     .T = 7},
    {{"carried", {"widths=[8, 16]", "conn=carried(widths = widths, head = D, norm = norm)", "head.lm.norm=none", NULL}},
     .B = 2,
     .T = 7},
    {{"nexus", {"widths=[D]", "map=nexus_rank(M = 13, A = 14)", NULL}}, .B = 2, .T = 7},
    {{"gpt, bf16", {SMALL, FFN, "widths=[D]", NULL}}, HALF_BF16, .B = 2, .T = 32},
    {{"gpt, fp16", {SMALL, FFN, "widths=[D]", "train.precision=mixed(compute = fp16, master = fp32)", NULL}},
     HALF_FP16,
     .B = 2,
     .T = 32},
    {{"moe, bf16",
      {SMALL, "widths=[D]",
       "sub=moe(experts = 3, active = 2, hidden = 64, activation = silu, scores = softmax, "
       "normalize = true, balance = 0.01, shared = 1)",
       NULL}},
     HALF_BF16,
     .B = 2,
     .T = 32},
    {{"mhc 3, bf16", {SMALL, FFN, "widths=[D]", "conn=mhc(n = 3, iterations = 4)", NULL}}, HALF_BF16, .B = 2, .T = 32},
    {{"ghc (8,64), bf16",
      {SMALL, "widths=[D]", "conn=ghc(m = 8, n = 64, dynamic = true, reduce = group_reduce(size = D, out = D))",
       "wide=512", NULL}},
     HALF_BF16,
     .B = 1,
     .T = 64},
    {{"ghc (2,3), bf16",
      {SMALL, FFN, "widths=[D]", "conn=ghc(m = 2, n = 3, dynamic = true, reduce = linear(out = D))", "wide=96", NULL}},
     HALF_BF16,
     .B = 2,
     .T = 32},
    {{"nexus, bf16", {SMALL, FFN, "widths=[D]", "map=nexus_rank(M = 64, A = 64)", NULL}}, HALF_BF16, .B = 2, .T = 32},
    {{"carried, bf16",
      {SMALL, FFN, "widths=[64, 128]", "conn=carried(widths = widths, head = D, norm = norm)", "head.lm.norm=none",
       NULL}},
     HALF_BF16,
     .B = 2,
     .T = 32},
};

static double allowed(const Case *c) { return c->half == HALF_BF16 ? 1e-3 : c->half ? 1e-4 : 2e-5; }
static double loss_allowed(const Case *c) { return c->half == HALF_BF16 ? 2e-3 : c->half ? 3e-4 : 1e-5; }

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

static Program *build(Ctx *ctx, Store *s, const Graph *g, const Case *c, Half half, const char *name)
{
    Program *p;
    BuildReport report;
    ProgramOptions how = {.name = name, .B = c->B, .T = c->T, .half = half};
    if (program_build(s, g, &how, &p, &report) != ST_OK)
        vwn_bug(ctx, "build of %s: %s", name, report.why);
    return p;
}

static void run_steps(Ctx *ctx, Backend *b, const Case *c, const Graph *const g[2], RefBinding *const bind[2],
                      double **out, double loss[STEPS])
{
    Half half = b->target->half_kernels ? c->half : HALF_NONE;
    Store *s = store_new(ctx, b);
    Program *p[2] = {build(ctx, s, g[0], c, half, "train"), build(ctx, s, g[1], c, half, "update")};
    fill_store(ctx, s, g[0], bind[0]);
    fill_store(ctx, s, g[1], bind[1]);
    for (int step = 0; step < STEPS; step++) {
        double vars[HV_COUNT] = {[HV_LOSS_SCALE] = LOSS_SCALE_FIRST};
        vars[HV_STEP] = vars[HV_UPDATES] = step;
        vars[HV_LENGTH] = 10;
        for (int k = 0; k < 2; k++)
            if (program_run(p[k], &(RunArgs){.host_vars = vars, .seed = 1, .step = (uint64_t)step}) != ST_OK)
                vwn_bug(ctx, "run: %s", program_why(p[k]));
        if (program_scalar(p[0], name_str(ctx, "loss"), &loss[step]) != ST_OK)
            vwn_bug(ctx, "no loss: %s", program_why(p[0]));
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

static void use_sgd(Ctx *ctx, Optimizer *o, const char *decay)
{
    const OptimizerConstant of[] = {{"momentum", 0.9}, {"nesterov", 1}, {"coupled", !strcmp(decay, "coupled")}};
    o->kind = name_str(ctx, "sgd");
    o->constant.n = 0;
    for (size_t i = 0; i < COUNT_OF(of); i++)
        vec_push(ctx->program, &o->constant, of[i]);
}

static void run(Ctx *ctx, void *arg)
{
    Case *c = arg;
    Unit *u = load_text(ctx, model_text, c->v.set);
    if (c->sgd)
        use_sgd(ctx, &u->train->optimizer, c->sgd);
    const Graph *g[2] = {step_gradient(u->model, u->train, true, ctx->program),
                         step_update(u->model, u->train, ctx->program)};
    RefBinding *bind[2];
    double **out[2], loss[2][STEPS];
    for (int k = 0; k < 2; k++)
        bind[k] = bind_all(ctx->program, g[k], u->model, c->B, c->T, c->half ? 0.1 : 0.3);
    fill_moments(bind[1], g[1]);
    for (int k = 0; k < 2; k++) {
        char why[512];
        Backend *b;
        EmuOptions how = {.descending = true};
        Status st =
            k ? backend_cpu_open(ctx, &(BackendOptions){.threads = 1}, &b, why) : backend_emu_open(ctx, &how, &b, why);
        if (st != ST_OK)
            vwn_bug(ctx, "no backend: %s", why);
        out[k] = NEW_ARRAY(ctx->program, double *, g[1]->ext.n + 1);
        run_steps(ctx, b, c, g, bind, out[k], loss[k]);
    }
    for (size_t i = 0; i < g[1]->ext.n; i++)
        if (bind[1][i].kind == EXT_PARAM || bind[1][i].kind == EXT_STATE)
            compare_tensor(c, &bind[1][i], out[0][i], out[1][i]);
    for (int i = 0; i < STEPS; i++)
        c->loss[i] = fabs(loss[0][i] - loss[1][i]) / fabs(loss[1][i]);
}

static bool run_case(Case *c)
{
    Ctx *ctx = ctx_new(NULL);
    c->name = "";
    bool ok = guarded(ctx, run, c) && c->worst < allowed(c) && c->compared > 20 && c->moved == c->compared;
    double worst = 0;
    for (int i = 0; i < STEPS; i++)
        worst = c->loss[i] > worst || isnan(c->loss[i]) ? c->loss[i] : worst;
    ok = ok && worst < loss_allowed(c);
    ok = ok && (!c->half || c->worst > 5e-6); /* else nothing was rounded */
    printf("%-16s %zu tensors, %zu moved, worst %.1e at %s, losses %.1e%s\n", c->v.name, c->compared, c->moved,
           c->worst, c->name, worst, ok ? "" : "  FAILED");
    fflush(stdout);
    ctx_free(ctx);
    return ok;
}

static const char *case_name(size_t i) { return cases[i].v.name; }

static bool run_one(size_t i) { return run_case(&cases[i]); }

int main(int argc, char **argv)
{
    return emulated_drawn(argc, argv, &(CaseDraw){.one_in = 6, .sanitized = 6, .first = 1}, COUNT_OF(cases), case_name,
                          run_one);
}
