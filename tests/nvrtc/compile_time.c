/* compile_time.c - how long NVRTC takes over a long kernel, beside one that it always takes long over; and how much
 * machine code it makes for one example.
 *
 * In:  the kernels that train examples/19_over_encoding.vwn, and all of examples/20_mtp_chain.vwn (skipped where
 *      there is no NVRTC).
 * Out: `N passed, N failed`. The one idea: processor time of this process, and a ratio of two such, is
 * nearly the same on a busy machine. Attention has few operations on neighbours and the longest kernel over rows
 * has thousands: with a loop for each of them it takes more than six times as long, without two and a half. Bytes of
 * machine code are the same every time, and a megabyte takes some ten seconds: what would be more than eight
 * seconds of two cores is too much.
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

/* ---- all kernels of a run ---- */

typedef VEC(CudaText) Texts;

static void add_texts(Ctx *ctx, Texts *to, const Plan *p)
{
    for (size_t i = 0; i < p->n_kernel; i++) {
        const PlanKernel *k = &p->kernel[i];
        bool is_new = k->grid.threads > 0;
        for (size_t j = 0; j < to->n; j++)
            is_new = is_new && strcmp(to->v[j].name, k->name) != 0;
        if (is_new)
            vec_push(ctx->program, to, ((CudaText){k->name, k->text, k->length, ""}));
    }
}

static void hold_code(Harness *h, Ctx *ctx, const Nvrtc *n)
{
    static const char *const programs[] = {"train", "update", "eval"};
    enum { MOST = 1500000 };
    CheckOptions how = {.path = VWN_SOURCE_DIR "/examples/20_mtp_chain.vwn"};
    Unit *u = check_file(ctx, &how);
    if (!CHECK(h, u->model && u->train))
        return;
    Texts texts = {0};
    CudaBuild b = {0};
    for (size_t i = 0; i < COUNT_OF(programs); i++) {
        const Plan *p = report_device_plan(u, programs[i], 0);
        b.prelude = p->device_prelude ? p->device_prelude : b.prelude;
        add_texts(ctx, &texts, p);
    }
    CudaCode *code = NEW_ARRAY(ctx->program, CudaCode, texts.n);
    int64_t bytes = 0;
    if (!CHECK(h, texts.n > 30) ||
        !CHECK(h, build_texts(ctx, n, &b, "sm_90a", texts.v, texts.n, code) == ST_OK))
        return;
    for (size_t i = 0; i < texts.n; i++)
        bytes += code[i].facts.code;
    printf("%zu kernels: %lld bytes of machine code, at most %d\n", texts.n, (long long)bytes, MOST);
    CHECK(h, bytes > 100000 && bytes <= MOST);
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
        CHECK(&h, seconds_of(&h, ctx, &n, p, rows) < 4.5 * beside);
    }
    hold_code(&h, ctx, &n);
    ctx_free(ctx);
    return harness_end(&h);
}
