/* reach.c - the machine code of every example's kernels, walked whole: what memory it reaches.
 *
 * In:  the examples, each made small; the compiler and the disassembler (skipped where one is missing).
 * Out: `N passed, N failed`. The oracle is the plan: each access lies in a buffer of its launch, a store in one that the launch
 *      writes; what the launches of a program write is written whole; no operation is unknown. A loop that is walked once too
 *      often, or not often enough, an address that is computed wrong, a branch that is taken wrong reaches something else.
 * When: slow, at most 1800 s. It compiles for three architectures.
 */
#include "support/examples.h"
#include "support/drawn.h"

#include "nvrtc/cuda_texts.h"
#include "support/harness.h"
#include "perf/tool/perf.h"
#include "compiler/pass/simplify.h"
#include "compiler/model/model.h"

typedef struct Reach {
    Harness *h;
    const Nvrtc *n;
    const char *tool;
    Cache *cache;
    const Source *source;
    const char *gpu;
    int64_t T;
    /* of a launch */
    const Plan *plan;
    PerfMemory *memory;
    const Launch *launch;
    uint8_t **read, **written; /* by buffer: a byte for each byte */
    bool *touched;             /* of the launch's buffers: by number of the plan's */
    bool *may_write;
    size_t outside;
    int launches;
    double stores;
} Reach;

static void touch(void *user, uint64_t address, unsigned bytes, bool writes)
{
    Reach *r = user;
    uint64_t buffer = (address >> PERF_BUFFER_BITS) - 1, at = address & ((1ull << PERF_BUFFER_BITS) - 1);
    if (buffer >= r->plan->n_buffer || !r->touched[buffer] || (writes && !r->may_write[buffer]) ||
        at + bytes > r->plan->buffer[buffer].bytes) {
        if (r->outside++ == 0)
            fprintf(stderr, "    %s of %u bytes at %llx of buffer %lld\n", writes ? "a store" : "a load", bytes,
                    (unsigned long long)at, (long long)buffer);
        return;
    }
    r->stores += writes ? bytes : 0;
    memset((writes ? r->written : r->read)[buffer] + at, 1, bytes);
}

static void walk(Reach *r, Ctx *ctx, const Gpu *gpu, const char *text, const CudaCode *code)
{
    const Launch *l = r->launch;
    const char *name = name_str(ctx, r->plan->kernel[l->kernel].name);
    SassKernel sass;
    GpuLaunch g;
    Perf perf;
    char why[256];
    r->outside = 0;
    memset(r->touched, 0, r->plan->n_buffer * sizeof *r->touched);
    memset(r->may_write, 0, r->plan->n_buffer * sizeof *r->may_write);
    for (uint32_t i = 0; i < l->n_touched; i++) {
        r->touched[l->buffer[i]] = true;
        r->may_write[l->buffer[i]] |= l->writes[i];
    }
    bool good =
        CHECK_CASE(r->h, sass_read(ctx->program, text, name, &sass, why), why) &&
        CHECK_CASE(r->h, perf_prepare(ctx->program, gpu, &sass, &code->facts, r->memory, l, &g, &perf, why), why);
    GpuCounts c = {0};
    g.touch = touch;
    g.toucher = r;
    for (uint32_t i = 0; i < g.blocks && good; i++)
        good = CHECK_CASE(r->h, gpu_run(ctx->program, &g, i, &c, NULL, why),
                          arena_printf(ctx->program, "%s: %s", name, why));
    CHECK_CASE(r->h, !r->outside,
               arena_printf(ctx->program, "%s of %s, %s: %zu accesses outside", name, r->source->v.name, gpu->name,
                            r->outside));
    CHECK_CASE(r->h, !c.unknown, c.guess ? c.guess : "");
    CHECK_CASE(r->h, !sass.unknown, sass.unknown ? sass.unknown : "");
    r->launches++;
}

/* Of a buffer that launches write, the bytes that none has written, and how many launches it is written by. */
static void whole(Reach *r, Ctx *ctx, const uint32_t *writers)
{
    for (size_t i = 0; i < r->plan->n_buffer; i++) {
        const PlanBuffer *b = &r->plan->buffer[i];
        size_t missing = 0;
        for (uint64_t k = 0; k < b->bytes && writers[i]; k++)
            missing += !r->written[i][k];
        CHECK_CASE(r->h, !missing,
                   arena_printf(ctx->program, "%s: %zu of %llu bytes of buffer %zu (%s) are not written",
                                r->source->v.name, missing, (unsigned long long)b->bytes, i,
                                b->name ? name_str(ctx, b->name) : ""));
    }
}

static void walk_plan(Reach *r, Ctx *ctx, const Gpu *gpu)
{
    const Plan *p = r->plan;
    Arena *arena = ctx->program;
    CudaText *text = NEW_ARRAY(arena, CudaText, p->n_kernel + 1);
    CudaCode *code = NEW_ARRAY(arena, CudaCode, p->n_kernel + 1);
    const char **sass = NEW_ARRAY(arena, const char *, p->n_kernel + 1), *why_not;
    uint32_t *writers = NEW_ARRAY(arena, uint32_t, p->n_buffer + 1);
    char why[512];
    for (size_t i = 0; i < p->n_kernel; i++)
        text[i] = (CudaText){name_str(ctx, p->kernel[i].name), p->kernel[i].text, p->kernel[i].length, ""};
    CudaBuild b = {.arch = gpu->arch,
                   .prelude = p->device_prelude,
                   .prelude_length = p->device_prelude_length,
                   .kernel = text,
                   .n = p->n_kernel,
                   .jobs = 2,
                   .cache = r->cache,
                   .arena = arena,
                   .code = code};
    if (!CHECK_CASE(r->h, nvrtc_build(r->n, &b) == ST_OK, b.why))
        return;
    for (size_t i = 0; i < p->n_kernel; i++) {
        for (size_t j = 0; j < i && !sass[i]; j++)
            sass[i] = code[j].cubin == code[i].cubin ? sass[j] : NULL;
        if (!sass[i])
            sass[i] = disassemble(arena, r->tool, code[i].cubin, code[i].size, why);
        why_not = sass[i] ? "" : why;
        if (!CHECK_CASE(r->h, sass[i], why_not))
            return;
    }
    r->read = NEW_ARRAY(arena, uint8_t *, p->n_buffer);
    r->written = NEW_ARRAY(arena, uint8_t *, p->n_buffer);
    r->touched = NEW_ARRAY(arena, bool, p->n_buffer);
    r->may_write = NEW_ARRAY(arena, bool, p->n_buffer);
    for (size_t i = 0; i < p->n_buffer; i++) {
        r->read[i] = NEW_ARRAY(arena, uint8_t, p->buffer[i].bytes + 1);
        r->written[i] = NEW_ARRAY(arena, uint8_t, p->buffer[i].bytes + 1);
    }
    for (size_t i = p->n_cast; i < p->n_launch; i++) {
        r->launch = &p->launch[i];
        for (uint32_t k = 0; k < r->launch->n_touched; k++)
            writers[r->launch->buffer[k]] +=
                r->launch->kind == LAUNCH_KERNEL && r->launch->writes[k] && r->launch->rows;
        if (r->launch->kind == LAUNCH_KERNEL)
            walk(r, ctx, gpu, sass[r->launch->kernel], &code[r->launch->kernel]);
    }
    /* the library writes the rest */
    for (size_t i = p->n_cast; i < p->n_launch; i++)
        for (uint32_t k = 0; k < p->launch[i].n_touched; k++)
            if (p->launch[i].kind != LAUNCH_KERNEL && p->launch[i].writes[k])
                writers[p->launch[i].buffer[k]] = 0;
    whole(r, ctx, writers);
}

static void reach(Ctx *ctx, void *arg)
{
    Reach *r = arg;
    Unit *u = load_text(ctx, example_text(ctx, r->source), r->source->v.set);
    PlanOptions how = {
        .B = 1, .T = r->T, .half = train_half(u->train), .target = target_of_arch(gpu_named(r->gpu)->arch)};
    Graph *g = step_gradient(u->model, u->train, true, ctx->program);
    r->plan = plan_build(ctx, ctx->program, plan_graph(g, ctx->program, &how), &how);
    r->memory = perf_memory(ctx->program, r->plan, u->model);
    walk_plan(r, ctx, gpu_named(r->gpu));
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"h100", "a100", "b200"};
    static const int64_t positions[] = {33, 7, 16, 37};
    Harness h = {0};
    Ctx *ctx = ctx_new(NULL);
    Nvrtc n;
    Cache cache;
    char why[512];
    const char *tool;
    if (!open_or_skip(ctx, &n) || !disassembler_find(ctx->program, &tool, why)) {
        if (n.call)
            printf("skipped: %s\n", why);
        ctx_free(ctx);
        return SKIPPED;
    }
    cache_open(&cache, CACHE_CUBINS, NULL);
    /* what warpgroups compute on an H100, whose tiles come by tensor maps */
    static const Source heads = {
        NULL,
        {"heads of 64", {"D=128", "model.context=150", "train.precision=mixed(compute = bf16, master = fp32)", NULL}}};
    for (size_t i = 0; i <= COUNT_OF(sources); i++) {
        Reach r = {.h = &h, .n = &n, .tool = tool, .cache = &cache, .source = &heads, .gpu = "h100", .T = 150};
        if (i < COUNT_OF(sources)) {
            r.source = &sources[i];
            r.gpu = names[i % 3];
            r.T = positions[i % 4];
        }
        bool named = argc > 1 && !strcmp(argv[1], r.source->v.name);
        if (argc > 1 ? !named && strcmp(argv[1], "all") : i % 5 != 1 && r.source != &heads)
            continue;
        Ctx *own = ctx_new(NULL);
        CHECK_CASE(&h, guarded(own, reach, &r), r.source->v.name);
        printf("%-18s %s: %d launches, %.0f bytes stored\n", r.source->v.name, r.gpu, r.launches, r.stores);
        fflush(stdout);
        ctx_free(own);
    }
    cache_close(&cache);
    ctx_free(ctx);
    return harness_end(&h);
}
