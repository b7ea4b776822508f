/* gradients.h - the compiled gradient program of a model against the float64 reference evaluator.
 *
 * In:  a checked unit with `train`, sizes B and T.   Out: the largest difference of a loss or a gradient tensor.
 * Parameters are randomised (bind_all), gradients begin as NaN. The program runs three times, with 1, 2 and 4 threads,
 * or as often as another backend has ways to run it; all must give the same bits.
 */
#ifndef TEST_GRADIENTS_H
#define TEST_GRADIENTS_H

#include "runtime/cpu/backend_cpu.h"
#include "models.h"

#include "runtime/exec/exec.h"
#include "compiler/portable/loss_scale.h"

enum { CPU_RUNS = 3, RUNS_MAX = 4 };

typedef struct Agreement {
    int64_t B, T;
    bool no_fusion;
    Half half;            /* the program rounds */
    Half half_wanted;     /* the evaluator does */
    const Target *target; /* what its plan rounds; NULL: the CPU's */
    int64_t shared;       /* PlanOptions.shared */
    size_t aside;         /* kernels whose arrays lie in memory */
    double noise;         /* of parameters; 0: 0.3 */
    Backend *on;          /* NULL: CPUs with 1, 2 and 4 threads */
    int runs;             /* of `on`, and what is to be done before each */
    void (*before)(Backend *on, int run);
    double worst;     /* of all results, relative to the largest entry of the tensor */
    const char *name; /* where */
    size_t compared;  /* gradient tensors */
    bool same_bits;   /* for every number of threads */
    const char *dead; /* a gradient tensor that is zero everywhere, or NULL */
} Agreement;

static inline void fill_store(Ctx *ctx, Store *s, const Graph *g, RefBinding *bind)
{
    for (size_t i = 0; i < g->ext.n; i++) {
        StoreEntry *e = store_find(s, bind[i].kind, bind[i].name);
        Status st = !e                   ? ST_BUG
                    : e->dtype == DT_INT ? store_put_i64(s, e, 0, e->elements, bind[i].tensor->integer)
                                         : store_put_f64(s, e, 0, e->elements, bind[i].tensor->real);
        if (st != ST_OK)
            vwn_bug(ctx, "store of %s: %s", bind[i].name, store_why(s));
    }
}

/* What a gradient was before is no number: what nothing writes is seen. */
static inline void spoil_gradients(Ctx *ctx, Store *s, const Graph *g)
{
    for (size_t i = 0; i < g->ext.n; i++) {
        StoreEntry *e = store_find(s, g->ext.v[i].kind, g->ext.v[i].name);
        if (g->ext.v[i].kind != EXT_GRAD)
            continue;
        double *none = NEW_ARRAY(ctx->program, double, e->elements + 1);
        for (int64_t k = 0; k < e->elements; k++)
            none[k] = NAN;
        store_put_f64(s, e, 0, e->elements, none);
    }
}

/* Runs the gradient program; out[i] is what ends in ext tensor i, for those of kind EXT_GRAD. */
static inline void run_once(Ctx *ctx, Store *s, Program *p, const Graph *g, RefBinding *bind, double **out,
                            double *loss)
{
    fill_store(ctx, s, g, bind);
    spoil_gradients(ctx, s, g);
    double vars[HV_COUNT] = {[HV_LOSS_SCALE] = LOSS_SCALE_FIRST};
    if (program_run(p, &(RunArgs){.host_vars = vars, .seed = 1}) != ST_OK ||
        program_scalar(p, name_str(ctx, "loss"), loss) != ST_OK)
        vwn_bug(ctx, "run: %s", program_why(p));
    for (size_t i = 0; i < g->ext.n; i++) {
        StoreEntry *e = store_find(s, g->ext.v[i].kind, g->ext.v[i].name);
        out[i] = NEW_ARRAY(ctx->program, double, e->elements + 1);
        if (g->ext.v[i].kind == EXT_GRAD)
            store_get_f64(s, e, 0, e->elements, out[i]);
    }
}

/* Builds the gradient program on b and runs it `runs` times. */
static inline void run_on(Ctx *ctx, Backend *b, const Graph *g, Agreement *c, RefBinding *bind, int runs, double ***out,
                          double *loss)
{
    Store *s = store_new(ctx, b);
    Program *p;
    BuildReport report;
    ProgramOptions how = {
        .name = "train", .B = c->B, .T = c->T, .no_fusion = c->no_fusion, .half = c->half, .shared = c->shared};
    if (program_build(s, g, &how, &p, &report) != ST_OK)
        vwn_bug(ctx, "build: %s", report.why);
    for (size_t i = 0; i < program_plan(p)->n_kernel; i++)
        c->aside += program_plan(p)->kernel[i].grid.blocks > 0;
    for (int k = 0; k < runs; k++) {
        if (c->before)
            c->before(b, k);
        run_once(ctx, s, p, g, bind, out[k], &loss[k]);
    }
    program_free(p);
    store_free(s);
}

static inline void run_on_cpus(Ctx *ctx, const Graph *g, Agreement *c, RefBinding *bind, double ***out, double *loss)
{
    for (int k = 0; k < CPU_RUNS; k++) {
        char why[512];
        Backend *b;
        if (backend_cpu_open(ctx, &(BackendOptions){.threads = 1 << k}, &b, why) != ST_OK)
            vwn_bug(ctx, "no backend: %s", why);
        run_on(ctx, b, g, c, bind, 1, out + k, loss + k);
        b->ops->close(b);
    }
}

/* Compares gradient tensor t (named `name`) with the results of all runs. */
static inline void gradient_compare(Agreement *c, const char *name, const Tensor *t, double largest, double *const *got,
                                    int runs)
{
    /* Behind a norm some gradients are what is left when large numbers cancel: they are measured against a
     * tenth of the largest gradient of the model. */
    double size = 0, worst = 0;
    for (int64_t k = 0; k < t->size; k++) {
        size = fmax(size, fabs(t->real[k]));
        worst = fmax(worst, isnan(got[0][k]) ? INFINITY : fabs(got[0][k] - t->real[k]));
    }
    if (size == 0)
        c->dead = name;
    worst /= fmax(size, largest / 10);
    for (int k = 1; k < runs; k++)
        c->same_bits &= !memcmp(got[0], got[k], (size_t)t->size * sizeof(double));
    c->compared++;
    if (worst > c->worst) {
        c->worst = worst;
        c->name = name;
    }
}

/* Fills what follows `before` in *c. */
static inline void gradients_compare(Ctx *ctx, const Unit *u, Agreement *c)
{
    Graph *g = step_gradient(u->model, u->train, true, ctx->program);
    RefBinding *bind = bind_all(ctx->program, g, u->model, c->B, c->T, c->noise > 0 ? c->noise : 0.3);
    double **got[RUNS_MAX], loss[RUNS_MAX];
    int runs = c->on ? c->runs : CPU_RUNS;
    for (int k = 0; k < runs; k++)
        got[k] = NEW_ARRAY(ctx->program, double *, g->ext.n + 1);
    if (c->on)
        run_on(ctx, c->on, g, c, bind, runs, got, loss);
    else
        run_on_cpus(ctx, g, c, bind, got, loss);
    double vars[HV_COUNT] = {[HV_LOSS_SCALE] = LOSS_SCALE_FIRST};
    RefRun run = {.B = c->B, .T = c->T, .seed = 1, .bind = bind, .n_bind = g->ext.n, .host_vars = vars};
    if (c->half_wanted)
        g = plan_graph(g, ctx->program,
                       &(PlanOptions){.B = c->B, .T = c->T, .half = c->half_wanted, .target = c->target});
    Tensor **r = NEW_ARRAY(ctx->program, Tensor *, g->out.n + 1);
    ref_evaluate(g, ctx->program, &run, r);
    double want = NAN, largest = 0;
    for (size_t i = 0; i < g->out.n; i++)
        if (!strcmp(g->out.v[i].name, "loss") && r[i])
            want = r[i]->real[0];
    for (size_t i = 0; i < g->ext.n; i++)
        for (int64_t k = 0; g->ext.v[i].kind == EXT_GRAD && k < bind[i].tensor->size; k++)
            largest = fmax(largest, fabs(bind[i].tensor->real[k]));
    c->worst = fabs(loss[0] - want) / fabs(want);
    c->name = "loss";
    c->same_bits = true;
    for (int k = 1; k < runs; k++)
        c->same_bits &= loss[0] == loss[k];
    for (size_t i = 0; i < g->ext.n; i++) {
        double *of[RUNS_MAX];
        for (int k = 0; k < runs; k++)
            of[k] = got[k][i];
        if (g->ext.v[i].kind == EXT_GRAD)
            gradient_compare(c, g->ext.v[i].name, bind[i].tensor, largest, of, runs);
    }
}

#endif
