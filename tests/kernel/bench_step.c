/* bench_step.c - the kernels of one training step, one by one, on one thread.
 *
 * In:  a .vwn file (default examples/quickstart.vwn), the number of sequences.
 * Out: JSON: milliseconds, bytes and GB/s of each kernel, summed over its launches; milliseconds of
 *      planning; how many kernels and launches there are. Products are left to the backend's own bench.
 */
#include "compiler/file/check_unit.h"
#include "compiler/pass/simplify.h"
#include "support/models.h"

#include "plan_host.h"

#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static const char *about(const PlanKernel *k, char *out, size_t n)
{
    size_t i = 0;
    for (const char *s = k->text + 3; *s && *s != '*' && i + 1 < n; s++)
        out[i++] = *s == '\n' ? ' ' : *s;
    out[i] = 0;
    return out;
}

static double measure(Ctx *ctx, const Unit *u, const Graph *g, int64_t B, int64_t T, const char *what)
{
    double t0 = now();
    PlanOptions how = {.B = B, .T = T};
    Plan *p = plan_build(ctx, ctx->program, graph_simplify(g, ctx->program), &how);
    double planned = now() - t0;
    plan_verify(ctx, p);
    Host *h = host_new(NULL);
    host_add(h, p);
    t0 = now();
    host_compile(h);
    double compiled = now() - t0;
    RefBinding *bind = bind_all(ctx->program, g, u->model, B, T, 0.02);
    double vars[HV_COUNT] = {0}, *seconds = NEW_ARRAY(ctx->program, double, p->n_launch + 1);
    HostRun run = {.B = B,
                   .T = T,
                   .seed = 1,
                   .host_vars = vars,
                   .bind = bind,
                   .n_bind = g->ext.n,
                   .memory = HOST_ARENA,
                   .seconds = seconds,
                   .repeat = 5,
                   .skip_products = true};
    Tensor **r = NEW_ARRAY(ctx->program, Tensor *, p->n_result + 1);
    Tensor **s = NEW_ARRAY(ctx->program, Tensor *, g->ext.n + 1);
    host_run(h, p, &run, ctx->program, r, s);
    double total = 0, flops = 0;
    printf(" {\"program\": \"%s\", \"kernels\": %zu, \"launches\": %zu, \"plan_ms\": %.1f, \"compile_ms\": %.0f, "
           "\"arena_mb\": %.1f, \"each\": [\n",
           what, p->n_kernel, p->n_launch, planned * 1e3, compiled * 1e3, (double)p->arena_bytes / 1e6);
    for (size_t k = 0; k < p->n_kernel; k++) {
        double ms = 0, bytes = 0;
        int n = 0;
        char text[160];
        for (size_t i = 0; i < p->n_launch; i++)
            if (p->launch[i].kind == LAUNCH_KERNEL && p->launch[i].kernel == k) {
                ms += seconds[i] * 1e3;
                bytes += p->launch[i].bytes;
                n++;
            }
        total += ms;
        printf("  {\"kernel\": \"%s\", \"launches\": %d, \"ms\": %.3f, \"gb_per_s\": %.1f, \"text\": \"%s\"},\n",
               p->kernel[k].name, n, ms, ms > 0 ? bytes / ms / 1e6 : 0, about(&p->kernel[k], text, sizeof text));
    }
    for (size_t i = 0; i < p->n_launch; i++)
        if (p->launch[i].kind != LAUNCH_KERNEL)
            flops += p->launch[i].flops;
    printf("  {}], \"kernel_ms\": %.2f, \"product_gflop\": %.2f}", total, flops / 1e9);
    host_free(h);
    return total;
}

int main(int argc, char **argv)
{
    Ctx *ctx = ctx_new(NULL);
    CtxGuard guard;
    if (!CTX_TRY(ctx, &guard)) {
        show_diagnostics(ctx);
        fprintf(stderr, "%s\n", ctx->message);
        return 1;
    }
    CheckOptions how = {.path = argc > 1 ? argv[1] : VWN_SOURCE_DIR "/examples/quickstart.vwn"};
    Unit *u = check_file(ctx, &how);
    if (!u->model || diag_errors(ctx)) {
        show_diagnostics(ctx);
        return 1;
    }
    int64_t B = argc > 2 ? atoll(argv[2]) : 16, T = u->model->context;
    printf("{\"file\": \"%s\", \"B\": %d, \"T\": %d, \"programs\": [\n", how.path, (int)B, (int)T);
    measure(ctx, u, step_gradient(u->model, u->train, true, ctx->program), B, T, "train");
    printf(",\n");
    measure(ctx, u, step_update(u->model, u->train, ctx->program), B, T, "update");
    printf("]}\n");
    ctx_leave(ctx, &guard);
    ctx_free(ctx);
    return 0;
}
