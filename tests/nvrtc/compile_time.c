/* compile_time.c - how long NVRTC takes over a long kernel, beside one that it always takes long over.
 *
 * In:  the kernels that train examples/19_over_encoding.vwn (skipped where there is no NVRTC).
 * Out: `N passed, N failed`. The one idea: processor time of this process, and a ratio of two such, is
 * the same on a busy machine. Attention has few operations on neighbours and the longest kernel over rows
 * has thousands: with a loop for each of them it took six times as long, without twice.
 */
#define _GNU_SOURCE
#include "cuda_texts.h"

#include "compiler/plan.h"
#include "compiler/report.h"

#include <time.h>

static double processor_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static const PlanKernel *longest(const Plan *p, const char *beginning)
{
    const PlanKernel *found = NULL;
    for (size_t i = 0; i < p->n_kernel; i++)
        if (p->kernel[i].grid.threads && !strncmp(p->kernel[i].text, beginning, strlen(beginning)) &&
            (!found || p->kernel[i].length > found->length))
            found = &p->kernel[i];
    return found;
}

static double seconds_of(Harness *h, Ctx *ctx, const Nvrtc *n, const Plan *p, const PlanKernel *k)
{
    CudaText text = {k->name, k->text, k->length, ""};
    CudaCode code;
    CudaBuild b = {.prelude = p->device_prelude, .jobs = 1};
    double start = processor_seconds();
    CHECK(h, build_texts(ctx, n, &b, "sm_90a", &text, 1, &code) == ST_OK && b.compiled == 1);
    double seconds = processor_seconds() - start;
    printf("%.40s: %zu bytes, %.2f s of the processor\n", k->name, k->length, seconds);
    return seconds;
}

int main(void)
{
    Harness h = {0};
    Ctx *ctx = ctx_new(NULL);
    Nvrtc n;
    if (!open_or_skip(ctx, &n)) {
        ctx_free(ctx);
        return SKIPPED;
    }
    CheckOptions how = {.path = VWN_SOURCE_DIR "/examples/19_over_encoding.vwn"};
    Unit *u = check_file(ctx, &how);
    const Plan *p = u->model && u->train ? report_device_plan(u, "train", 0) : NULL;
    const PlanKernel *rows = p ? longest(p, "/* rows") : NULL;
    const PlanKernel *attention = p ? longest(p, "/* attention: ") : NULL;
    if (CHECK(&h, rows && attention)) {
        CHECK(&h, rows->length > 30000);
        double beside = seconds_of(&h, ctx, &n, p, attention);
        CHECK(&h, seconds_of(&h, ctx, &n, p, rows) < 3 * beside);
    }
    ctx_free(ctx);
    return harness_end(&h);
}
