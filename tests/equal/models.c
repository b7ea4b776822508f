/* models.c - compiled kernels against the float64 reference evaluator, on whole models.
 *
 * In:  the small models of models.h with randomised parameters, forward and backward, fused and not,
 *      at sizes 1, a prime and more.   Out: `N passed, N failed`.
 * Every loss and every gradient tensor must agree to float32 bounds; 1, 2 and 4 threads give the same bits.
 */
#include "models.h"

#include "runtime/exec.h"

typedef struct Sizes {
    int64_t B, T;
} Sizes;
static const Sizes sizes[] = {{1, 1}, {2, 7}};
static const char *const unfused[] = {"ghc (2,3)"}; /* many kernels to compile: one suffices */

typedef struct Case {
    const Variant *v;
    Sizes at;
    bool no_fusion;
    double worst; /* of all results, relative to the largest entry of the tensor */
    const char *name;
    size_t compared;
    bool same_bits;
} Case;

static void fill_store(Ctx *ctx, Store *s, const Graph *g, RefBinding *bind)
{
    for (size_t i = 0; i < g->ext.n; i++) {
        StoreEntry *e = store_find(s, bind[i].kind, bind[i].name);
        Status st = !e ? ST_BUG
                    : e->dtype == DT_INT ? store_put_i64(s, e, 0, e->elements, bind[i].tensor->integer)
                                         : store_put_f64(s, e, 0, e->elements, bind[i].tensor->real);
        if (st != ST_OK)
            vwn_bug(ctx, "store of %s: %s", bind[i].name, store_why(s));
    }
}

/* Runs the gradient program with `threads`; out[i] is what ends in ext tensor i, for those of kind EXT_GRAD. */
static void run_cpu(Ctx *ctx, const Graph *g, const Case *c, RefBinding *bind, int threads, double **out, double *loss)
{
    char why[512];
    Backend *b;
    if (backend_cpu_open(ctx, &(CpuOptions){.threads = threads}, &b, why) != ST_OK)
        vwn_bug(ctx, "no backend: %s", why);
    Store *s = store_new(ctx, b);
    Program *p;
    BuildReport report;
    ProgramOptions how = {.name = "train", .B = c->at.B, .T = c->at.T, .no_fusion = c->no_fusion};
    if (program_build(s, g, &how, &p, &report) != ST_OK)
        vwn_bug(ctx, "build: %s", report.why);
    fill_store(ctx, s, g, bind);
    double vars[HV_COUNT] = {0};
    if (program_run(p, &(RunArgs){.host_vars = vars, .seed = 1}) != ST_OK || program_scalar(p, name_str(ctx, "loss"), loss) != ST_OK)
        vwn_bug(ctx, "run: %s", program_why(p));
    for (size_t i = 0; i < g->ext.n; i++) {
        StoreEntry *e = store_find(s, g->ext.v[i].kind, g->ext.v[i].name);
        out[i] = NEW_ARRAY(ctx->program, double, e->elements + 1);
        if (g->ext.v[i].kind == EXT_GRAD)
            store_get_f64(s, e, 0, e->elements, out[i]);
    }
    program_free(p);
    store_free(s);
    b->ops->close(b);
}

static void compare(Ctx *ctx, void *arg)
{
    Case *c = arg;
    Unit *u = load_text(ctx, model_text, c->v->set);
    Graph *g = step_gradient(u->model, u->train, true, ctx->program);
    RefBinding *bind = bind_all(ctx->program, g, u->model, c->at.B, c->at.T, 0.3);
    double **one = NEW_ARRAY(ctx->program, double *, g->ext.n + 1), **two = NEW_ARRAY(ctx->program, double *, g->ext.n + 1);
    double loss, again, twice, **half = NEW_ARRAY(ctx->program, double *, g->ext.n + 1);
    run_cpu(ctx, g, c, bind, 1, one, &loss);
    run_cpu(ctx, g, c, bind, 2, half, &twice);
    run_cpu(ctx, g, c, bind, 4, two, &again);
    double vars[HV_COUNT] = {0};
    RefRun run = {.B = c->at.B, .T = c->at.T, .seed = 1, .bind = bind, .n_bind = g->ext.n, .host_vars = vars};
    Tensor **r = NEW_ARRAY(ctx->program, Tensor *, g->out.n + 1);
    ref_evaluate(g, ctx->program, &run, r);
    double want = NAN;
    for (size_t i = 0; i < g->out.n; i++)
        if (!strcmp(g->out.v[i].name, "loss") && r[i])
            want = r[i]->real[0];
    c->worst = fabs(loss - want) / fabs(want);
    c->name = "loss";
    c->same_bits = loss == again && loss == twice;
    /* Behind a norm some gradients are what is left when large numbers cancel: they are measured against a
     * tenth of the largest gradient of the model. */
    double largest = 0;
    for (size_t i = 0; i < g->ext.n; i++)
        for (int64_t k = 0; g->ext.v[i].kind == EXT_GRAD && k < bind[i].tensor->size; k++)
            largest = fmax(largest, fabs(bind[i].tensor->real[k]));
    for (size_t i = 0; i < g->ext.n; i++) {
        if (g->ext.v[i].kind != EXT_GRAD)
            continue;
        const Tensor *t = bind[i].tensor;
        double size = largest / 10, worst = 0;
        for (int64_t k = 0; k < t->size; k++) {
            size = fmax(size, fabs(t->real[k]));
            worst = fmax(worst, fabs(one[i][k] - t->real[k]));
            worst = isnan(one[i][k]) ? INFINITY : worst;
        }
        c->same_bits &= !memcmp(one[i], two[i], (size_t)t->size * sizeof(double)) &&
                        !memcmp(one[i], half[i], (size_t)t->size * sizeof(double));
        c->compared++;
        if (worst / size > c->worst) {
            c->worst = worst / size;
            c->name = g->ext.v[i].name;
        }
    }
}

static bool listed(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(unfused); i++)
        if (!strcmp(unfused[i], name))
            return true;
    return false;
}

static bool run_case(const Variant *v, Sizes at, bool no_fusion)
{
    Ctx *ctx = ctx_new(NULL);
    Case c = {.v = v, .at = at, .no_fusion = no_fusion, .worst = INFINITY, .name = ""};
    guarded(ctx, compare, &c);
    bool ok = c.worst < 2e-5 && c.compared > 20 && c.same_bits;
    printf("%-18s B %lld T %lld %-8s worst %.1e at %s%s%s\n", v->name, (long long)at.B, (long long)at.T,
           no_fusion ? "unfused" : "fused", c.worst, c.name, c.same_bits ? "" : ", threads differ", ok ? "" : "  FAILED");
    fflush(stdout);
    ctx_free(ctx);
    return ok;
}

int main(int argc, char **argv)
{
    int passed = 0, failed = 0;
    for (size_t i = 0; i < COUNT_OF(variants); i++) {
        if (argc > 1 && strcmp(argv[1], variants[i].name)) /* an argument names the only one */
            continue;
        for (size_t k = 0; k < COUNT_OF(sizes); k++)
            run_case(&variants[i], sizes[k], false) ? passed++ : failed++;
        if (listed(variants[i].name))
            run_case(&variants[i], sizes[1], true) ? passed++ : failed++;
    }
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
