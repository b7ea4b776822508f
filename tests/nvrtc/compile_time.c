/* compile_time.c - what NVRTC's time goes into: loops of a long kernel, and machine code of one example.
 *
 * In:  the kernels that train examples/19_over_encoding.vwn, and all of examples/20_mtp_chain.vwn (machine code is
 *      skipped where there is no NVRTC).
 * Out: `N passed, N failed`. The one idea: what takes the time is counted, since counts are the same every time. The
 * longest kernel over rows has a thousand statements: with a loop for each of them it took NVRTC more than six times
 * as long as attention, in few loops two and a half. A megabyte of machine code takes some ten seconds: what would be
 * more than eight seconds of two cores is too much.
 * When: slow, whole. It counts what plans take; all tests of kernels see what makes plans.
 */
#include "compiler/file/check_unit.h"
#include "cuda_texts.h"

#include "compiler/plan/plan.h"
#include "compiler/report/report.h"

static const PlanKernel *longest(const Plan *p, const char *beginning)
{
    const PlanKernel *found = NULL;
    for (size_t i = 0; i < p->n_kernel; i++)
        if (p->kernel[i].grid.threads && !strncmp(p->kernel[i].text, beginning, strlen(beginning)) &&
            (!found || p->kernel[i].length > found->length))
            found = &p->kernel[i];
    return found;
}

static int64_t count(const PlanKernel *k, const char *what)
{
    int64_t n = 0;
    for (const char *p = strstr(k->text, what); p; p = strstr(p + 1, what))
        n++;
    return n;
}

static void hold_loops(Harness *h, Ctx *ctx)
{
    CheckOptions how = {.path = VWN_SOURCE_DIR "/examples/19_over_encoding.vwn"};
    Unit *u = check_file(ctx, &how);
    const Plan *p = u->model && u->train ? report_device_plan(u, "train", 0, &target_gpu, NULL) : NULL;
    const PlanKernel *rows = p ? longest(p, "/* rows") : NULL;
    if (!CHECK(h, rows && rows->length > 30000))
        return;
    int64_t loops = count(rows, "for ("), statements = count(rows, ";");
    printf("%.40s: %lld statements in %lld loops\n", rows->name, (long long)statements, (long long)loops);
    CHECK(h, loops > 0 && statements > 500 && statements >= 25 * loops);
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
    enum { MOST = 1500000, AGAIN = 3 };
    CheckOptions how = {.path = VWN_SOURCE_DIR "/examples/20_mtp_chain.vwn"};
    Unit *u = check_file(ctx, &how);
    if (!CHECK(h, u->model && u->train))
        return;
    Texts texts = {0};
    CudaBuild b = {0};
    for (size_t i = 0; i < COUNT_OF(programs); i++) {
        const Plan *p = report_device_plan(u, programs[i], 0, &target_gpu, NULL);
        b.prelude = p->device_prelude ? p->device_prelude : b.prelude;
        add_texts(ctx, &texts, p);
    }
    CudaCode *code = NEW_ARRAY(ctx->program, CudaCode, texts.n);
    int64_t bytes = 0;
    if (!CHECK(h, texts.n > 30) || !CHECK(h, build_texts(ctx, n, &b, "sm_90a", texts.v, texts.n, code) == ST_OK))
        return;
    for (size_t i = 0; i < texts.n; i++)
        bytes += code[i].facts.code;
    printf("%zu kernels: %lld bytes of machine code, at most %d; %zu times one again that spilled, at most %d\n",
           texts.n, (long long)bytes, MOST, b.again, AGAIN);
    CHECK(h, bytes > 100000 && bytes <= MOST);
    CHECK(h, b.again <= AGAIN);
}

int main(void)
{
    Harness h = {0};
    Ctx *ctx = ctx_new(NULL);
    Nvrtc n;
    hold_loops(&h, ctx);
    bool there = open_or_skip(ctx, &n);
    if (there)
        hold_code(&h, ctx, &n);
    ctx_free(ctx);
    return there || h.failed ? harness_end(&h) : SKIPPED;
}
