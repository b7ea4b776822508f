/* bench_boundary.c - the kernels between two sublayers of a wide state, on all threads.
 *
 * In:  optional: how many repetitions (default 5), the most tokens (default 8192).
 * Out: JSON: for each (m, n), width and number of tokens the best wall time of the forward and
 * of the backward launches between two sublayers in the middle of a model; the bytes that they
 *      must move, as a share of the copy bandwidth; the operations of the connection's
 * products, as a share of the multiply-add peak. Both yardsticks are measured in the same run,
 * before and after; the better counts. The one idea: the whole training step runs, so every
 * kernel finds the caches as it would.
 */
#include "runtime/cpu/backend_cpu.h"
#include "support/models.h"

#include "boundary.h"

#include "runtime/exec/exec.h"
#include "runtime/measure/peak.h"

static const char text[] = "edition = 1\n"
                           "import \"std/transformer\"\n"
                           "import \"std/connections\"\n"
                           "let D = 768\n"
                           "let m = 2\n"
                           "let n = 3\n"
                           "model small {\n"
                           "  context = 128, width = D, mask = causal\n"
                           "  connection = ghc(m = m, n = n, dynamic = true, reduce = linear(out = D))\n"
                           "  pre_norm = rms_norm(eps = 1e-6), init = normal(std = 0.02), out_init = normal(std = "
                           "0.02)\n"
                           "  embed tokens { vocab = 64, width = D * n / m }\n"
                           "  for layer in 1..4 { ffn { hidden = 64, activation = gelu } }\n"
                           "  head lm { norm = rms_norm(eps = 1e-6) }\n"
                           "}\n"
                           "train {\n"
                           "  data = text_file(\"none.txt\"), tokenizer = chars(), batch = 4 seqs, length = 10 steps, "
                           "seed = 1\n"
                           "  precision = fp32\n"
                           "  optimizer sgd { lr = 1e-2, momentum = 0, weight_decay = 0 }\n"
                           "}\n";

static const BoundaryWeights middle = {"layer[2].ffn.down.W", {"layer[3].ffn.up.W"}};

typedef struct Size {
    int m, n, D;
} Size;
static const Size sizes[] = {{2, 3, 768}, {4, 8, 512}, {8, 64, 1024}};

typedef struct Bench {
    int repeat;
    int64_t most_tokens;
    Backend *b;
    Peak peak;
} Bench;

static void must(Ctx *ctx, Status st, const char *what, const char *why)
{
    if (st != ST_OK)
        ctx_raise(ctx, st, "%s: %s", what, why);
}

static void measure_peak(Ctx *ctx, Bench *bench)
{
    char why[512];
    Peak p;
    if (!peak_measure(bench->b, ctx->program, HALF_NONE, &p, why))
        ctx_raise(ctx, ST_ENVIRONMENT, "yardsticks: %s", why);
    if (p.copy > bench->peak.copy)
        bench->peak.copy = p.copy;
    if (p.fma > bench->peak.fma)
        bench->peak.fma = p.fma;
}

/* Random weights and tokens: parameters as they are born would leave out nothing, but zeros
 * would. */
static void fill(Ctx *ctx, Store *s, const Graph *g, const Model *m, int64_t B)
{
    RefBinding *bind = bind_all(ctx->program, g, m, B, 128, 0.02);
    for (size_t i = 0; i < g->ext.n; i++) {
        StoreEntry *e = store_find(s, bind[i].kind, bind[i].name);
        Tensor *t = bind[i].tensor;
        must(ctx,
             e->dtype == DT_INT ? store_put_i64(s, e, 0, e->elements, t->integer)
                                : store_put_f64(s, e, 0, e->elements, t->real),
             "store", store_why(s));
    }
}

typedef struct Time {
    double seconds, bytes;
    size_t rows, all;
} Time;

static Time best_of(const Plan *p, const Boundary *b, const double *best)
{
    Time t = {.rows = b->rows, .all = b->n};
    for (size_t i = 0; i < b->n; i++) {
        t.seconds += best[b->launch[i]];
        t.bytes += p->launch[b->launch[i]].bytes;
    }
    return t;
}

static void print_time(const char *name, Time t, double flops, const Peak *peak)
{
    printf("   \"%s\": {\"kernels\": %zu, \"launches\": %zu, \"ms\": %.3f, \"mb\": %.1f, "
           "\"gb_per_s\": %.2f, "
           "\"of_copy\": %.3f, \"gflop\": %.3f, \"gflop_per_s\": %.1f, \"of_fma\": %.3f}",
           name, t.rows, t.all, t.seconds * 1e3, t.bytes / 1e6, t.bytes / t.seconds / 1e9,
           t.bytes / t.seconds / peak->copy, flops / 1e9, flops / t.seconds / 1e9, flops / t.seconds / peak->fma);
}

static void measure(Ctx *ctx, Bench *bench, Size at, int64_t tokens, bool first)
{
    char m[16], n[16], D[16];
    snprintf(m, sizeof m, "m=%d", at.m);
    snprintf(n, sizeof n, "n=%d", at.n);
    snprintf(D, sizeof D, "D=%d", at.D);
    Unit *u = load_text(ctx, text, (const char *const[]){m, n, D, NULL});
    Graph *g = step_gradient(u->model, u->train, true, ctx->program);
    Store *s = store_new(ctx, bench->b);
    Program *p;
    BuildReport report;
    ProgramOptions how = {.name = "train", .B = tokens / 128, .T = 128};
    must(ctx, program_build(s, g, &how, &p, &report), "build", report.why);
    fill(ctx, s, g, u->model, how.B);
    const Plan *plan = program_plan(p);
    double vars[HV_COUNT] = {0}, *now = NEW_ARRAY(ctx->program, double, plan->n_launch + 1);
    double *best = NEW_ARRAY(ctx->program, double, plan->n_launch + 1);
    program_watch(p, now);
    for (int k = 0; k <= bench->repeat; k++) { /* the first warms up */
        memset(now, 0, plan->n_launch * sizeof *now);
        must(ctx, program_run(p, &(RunArgs){.host_vars = vars, .seed = 1}), "run", program_why(p));
        for (size_t i = 0; i < plan->n_launch; i++)
            if (k < 2 || now[i] < best[i])
                best[i] = now[i];
    }
    measure_peak(ctx, bench);
    Boundary f = boundary_forward(ctx->program, plan, &middle);
    Boundary b = boundary_backward(ctx->program, plan, &middle);
    Time forward = best_of(plan, &f, best), backward = best_of(plan, &b, best);
    /* coefficients, and their products with the segments: 2 for each multiply-add */
    double flops = 4.0 * at.n * (at.D / at.m) * (2 * at.m + at.n) * (double)tokens;
    printf("%s  {\"m\": %d, \"n\": %d, \"D\": %d, \"tokens\": %lld,\n", first ? "" : ",\n", at.m, at.n, at.D,
           (long long)tokens);
    print_time("forward", forward, flops, &bench->peak);
    printf(",\n");
    print_time("backward", backward, 2 * flops, &bench->peak);
    printf(",\n   \"backward_by_forward\": %.2f}", backward.seconds / forward.seconds);
    fflush(stdout);
    program_free(p);
    store_free(s);
}

static void measure_all(Ctx *ctx, void *arg)
{
    Bench *bench = arg;
    char why[512];
    must(ctx, backend_cpu_open(ctx, NULL, &bench->b, why), "backend", why);
    measure_peak(ctx, bench);
    printf("{\"threads\": %d, \"boundaries\": [\n", bench->b->threads);
    bool first = true;
    for (size_t i = 0; i < COUNT_OF(sizes); i++)
        for (int64_t tokens = 4096; tokens <= bench->most_tokens; tokens *= 2) {
            measure(ctx, bench, sizes[i], tokens, first);
            first = false;
        }
    printf("],\n \"copy_gb_per_s\": %.2f, \"fma_gflop_per_s\": %.1f}\n", bench->peak.copy / 1e9, bench->peak.fma / 1e9);
    bench->b->ops->close(bench->b);
}

int main(int argc, char **argv)
{
    Ctx *ctx = ctx_new(NULL);
    Bench bench = {.repeat = argc > 1 ? atoi(argv[1]) : 5, .most_tokens = argc > 2 ? atoll(argv[2]) : 8192};
    bool ok = guarded(ctx, measure_all, &bench);
    ctx_free(ctx);
    return !ok;
}
