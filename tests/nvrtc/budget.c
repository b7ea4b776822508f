/* budget.c - what CUDA kernels use of a multiprocessor, against tests/nvrtc/budget.txt.
 *
 * In:  the classes of attention, and all other kernels of the library (skipped where there is no NVRTC;
 * kernels over rows are in examples.c). Out: a line per kind of kernel with the most
 * that one of them uses; `N passed, N failed`. Cubins are kept in the kernel cache, so only the
 * first run takes long.
 * When: first, released.
 */
#include "budget.h"

#include "compiler/library/cuda_attention.h"
#include "compiler/library/cuda_expert.h"
#include "compiler/library/cuda_scatter.h"
#include "compiler/print/emit.h"
#include "compiler/library/library_cuda.h"

/* Where one text has neighbours that differ little, architectures take turns: of two neighbours one is compiled, for one of them. */
static const CaseDraw by_turns = {.one_in = 24, .sanitized = 24};

static bool compile(Harness *h, Ctx *ctx, const Nvrtc *n, const char *arch, const char *prelude, const CudaText *text,
                    size_t count, Cache *cache, Use *use)
{
    CudaCode *code = NEW_ARRAY(ctx->program, CudaCode, count + 1);
    CudaBuild b = {.prelude = prelude, .cache = cache};
    bool good = build_texts(ctx, n, &b, arch, text, count, code) == ST_OK;
    if (!CHECK(h, good))
        fprintf(stderr, "    %s\n", b.why);
    for (size_t i = 0; i < count && good; i++) {
        add_use(use, &code[i].facts);
        CHECK_CASE(h, !code[i].log[0] || code[i].log[0] == '\n', code[i].log);
    }
    return good;
}

/* ---- attention ---- */

static const struct {
    CudaAttentionClass class;
    bool everywhere;
} classes[] = {
    {{64, 64, HALF_BF16, false, false, false, 8, false}, true},
    {{64, 64, HALF_BF16, true, true, true, 8, false}, false},
    {{64, 64, HALF_BF16, false, false, true, 8, false}, true},
    {{128, 128, HALF_BF16, false, false, false, 8, false}, true},
    {{128, 128, HALF_BF16, false, false, true, 8, false}, true},
    {{128, 128, HALF_BF16, true, false, true, 8, false}, true},
    {{128, 128, HALF_BF16, true, true, true, 8, false}, false},
    {{128, 128, HALF_BF16, false, false, false, 2, false}, false},
    {{96, 96, HALF_BF16, false, false, true, 8, false}, true},
    {{256, 256, HALF_BF16, false, false, false, 8, false}, false},
    {{64, 64, HALF_FP16, false, false, false, 8, false}, true},
    {{128, 128, HALF_FP16, false, false, false, 8, false}, false},
    {{32, 32, HALF_BF16, false, false, false, CUDA_ACCESS_ANY, false}, true},
    {{64, 64, HALF_BF16, false, false, false, CUDA_ACCESS_ANY, false}, true},
    {{96, 96, HALF_BF16, false, false, false, CUDA_ACCESS_ANY, false}, true},
    {{128, 128, HALF_FP16, false, false, false, CUDA_ACCESS_ANY, false}, true},
    {{64, 64, HALF_NONE, false, false, false, 4, false}, false},
    {{256, 256, HALF_NONE, false, false, false, 4, false}, false},
};

static const char *const attention_names[] = {"attention", "attention_q", "attention_kv"};

static void test_attention(Harness *h, Ctx *ctx, const Nvrtc *n, Cache *cache, Budget *budget)
{
    enum { TEXTS = sizeof classes / sizeof classes[0] * CUDA_SDPA_COUNT };
    size_t length;
    const char *prelude = prelude_cuda(ctx->program, &length);
    CaseDraw drawn = by_turns;
    for (int a = 0; a < ARCH_COUNT; a++) {
        CudaText text[TEXTS];
        size_t count = 0, which[TEXTS];
        for (size_t i = 0; i < TEXTS; i++) {
            const CudaAttentionClass *c = &classes[i / CUDA_SDPA_COUNT].class;
            if (classes[i / CUDA_SDPA_COUNT].everywhere ? !case_drawn(&drawn, i + (size_t)a) : a != 1)
                continue;
            CudaText *t = &text[count];
            *t = (CudaText){.place = ""};
            t->text = cuda_attention(ctx->program, (CudaAttentionKernel)(i % CUDA_SDPA_COUNT), c, &t->length);
            t->name = emit_name(ctx, ctx->program, &t->text, &t->length);
            which[count++] = i;
        }
        CudaCode code[TEXTS];
        CudaBuild b = {.prelude = prelude, .cache = cache};
        if (!CHECK(h, build_texts(ctx, n, &b, ARCHS[a], text, count, code) == ST_OK))
            fprintf(stderr, "    %s\n", b.why);
        for (size_t i = 0; i < count && !b.why[0]; i++) {
            const CudaAttentionClass *c = &classes[which[i] / CUDA_SDPA_COUNT].class;
            CudaAttentionKernel k = (CudaAttentionKernel)(which[i] % CUDA_SDPA_COUNT);
            CudaAttentionLaunch l = cuda_attention_launch(k, c);
            Use use = {0};
            add_use(&use, &code[i].facts);
            CHECK(h, code[i].facts.max_threads == l.threads && l.shared <= 163 * 1024);
            CHECK(h, c->d > 128 || !c->half || l.shared <= 99 * 1024);
            budget_check(h, budget,
                         arena_printf(ctx->program, "%s.%s.%d%s", attention_names[k],
                                      c->half ? half_word(c->half) : "f32", c->d,
                                      c->dropped                    ? ".all"
                                      : c->capped                   ? ".cap"
                                      : c->oldest                   ? ".oldest"
                                      : c->width == CUDA_ACCESS_ANY ? ".any"
                                      : c->width == 2               ? ".pairs"
                                                                    : ""),
                         ARCHS[a], &use, l.shared);
        }
    }
}

static void test_scatter(Harness *h, Ctx *ctx, const Nvrtc *n, Cache *cache, Budget *budget)
{
    size_t length;
    const char *prelude = prelude_cuda(ctx->program, &length);
    CudaText text = {.place = ""};
    text.text = cuda_scatter(ctx->program, CUDA_SCATTER, HALF_NONE, &text.length);
    text.name = emit_name(ctx, ctx->program, &text.text, &text.length);
    for (int a = 0; a < ARCH_COUNT; a++) {
        Use use = {0};
        compile(h, ctx, n, ARCHS[a], prelude, &text, 1, cache, &use);
        budget_check(h, budget, "scatter_add", ARCHS[a], &use, CUDA_SCATTER_SHARED);
    }
}

/* Those of warpgroups, of sm_90a alone. */
static void test_groups(Harness *h, Ctx *ctx, const Nvrtc *n, Cache *cache, Budget *budget)
{
    static const CudaAttentionClass attention[] = {
        {.d = 64, .dv = 64, .half = HALF_BF16, .width = 8, .warpgroups = true},
        {.d = 128, .dv = 128, .half = HALF_BF16, .width = 8, .warpgroups = true},
        {.d = 64, .dv = 128, .half = HALF_FP16, .width = 8, .warpgroups = true},
        {.d = 128, .dv = 64, .half = HALF_FP16, .width = 8, .warpgroups = true},
        {.d = 64, .dv = 64, .half = HALF_BF16, .width = 8, .warpgroups = true, .oldest = true},
        {.d = 128, .dv = 128, .half = HALF_BF16, .width = 8, .warpgroups = true, .oldest = true},
        {.d = 128, .dv = 128, .half = HALF_BF16, .width = 8, .warpgroups = true, .capped = true, .oldest = true},
    };
    enum {
        EXPERTS = 2 * 3 * 2,
        TEXTS = EXPERTS + sizeof attention / sizeof attention[0] * CUDA_SDPA_COUNT,
        SM_90A = 1
    };
    size_t length;
    const char *prelude = prelude_cuda(ctx->program, &length);
    CudaText text[TEXTS];
    int64_t shared[TEXTS];
    int threads[TEXTS];
    bool by_maps[TEXTS] = {false};
    const char *name[TEXTS];
    for (int i = EXPERTS; i < TEXTS; i++) {
        const CudaAttentionClass *c = &attention[(i - EXPERTS) / CUDA_SDPA_COUNT];
        CudaAttentionKernel which = (CudaAttentionKernel)((i - EXPERTS) % CUDA_SDPA_COUNT);
        CudaAttentionLaunch l = cuda_attention_launch(which, c);
        text[i] = (CudaText){.place = ""};
        text[i].text = cuda_attention(ctx->program, which, c, &text[i].length);
        text[i].name = emit_name(ctx, ctx->program, &text[i].text, &text[i].length);
        shared[i] = l.shared;
        threads[i] = l.threads;
        by_maps[i] = cuda_attention_maps(which, c) > 0;
        name[i] = arena_printf(ctx->program, "%s.%s.%d.%d%s%s.groups", attention_names[which], half_word(c->half), c->d,
                               c->dv, c->capped ? ".cap" : "", c->oldest ? ".oldest" : "");
    }
    for (int i = 0; i < EXPERTS; i++) {
        static const char *const kind[] = {"expert", "expert_t", "expert_dw"};
        int what = i % 3, half = i / 6;
        CudaExpertClass c = {.dw = what == 2,
                             .transposed = what == 1,
                             .half = half ? HALF_FP16 : HALF_BF16,
                             .warpgroups = true,
                             .tile = i / 3 % 2 ? CUDA_EXPERT_WIDE : CUDA_EXPERT_SQUARE};
        c.x_half = c.w_half = c.y_half = c.half;
        c.x_width = c.w_width = half ? 2 : 8;
        text[i] = (CudaText){.place = ""};
        text[i].text = cuda_expert(ctx->program, &c, &text[i].length);
        text[i].name = emit_name(ctx, ctx->program, &text[i].text, &text[i].length);
        CudaExpertLaunch l = cuda_expert_launch(&c);
        shared[i] = l.shared;
        threads[i] = l.threads;
        name[i] =
            arena_printf(ctx->program, "%s.%s.%s.groups", kind[what], half_word(c.half), i / 3 % 2 ? "wide" : "square");
    }
    CudaBuild b = {.prelude = prelude, .cache = cache};
    CudaText some[TEXTS];
    CudaCode made[TEXTS];
    CaseDraw draw = {.one_in = 9, .sanitized = 9};
    int which[TEXTS], count = 0;
    for (int i = 0; i < TEXTS; i++)
        if (case_drawn(&draw, (size_t)(i + i / 3))) { /* each kind of kernel is there */
            which[count] = i;
            some[count++] = text[i];
        }
    cases_end(&draw);
    if (!CHECK(h, build_texts(ctx, n, &b, ARCHS[SM_90A], some, (size_t)count, made) == ST_OK))
        fprintf(stderr, "    %s\n", b.why);
    for (int k = 0; k < count && !b.why[0]; k++) {
        const int i = which[k];
        const CudaCode *code = &made[k];
        Use use = {0};
        add_use(&use, &code->facts);
        CHECK(h, code->facts.max_threads == threads[i] && shared[i] <= 227 * 1024);
        /* groups that give and take registers begin with all there are, as the emulator has it (tests/emu/mbarrier.h) */
        CHECK(h, !by_maps[i] || code->facts.registers == 65536 / threads[i] / 8 * 8);
        CHECK_CASE(h, !code->log[0] || code->log[0] == '\n', code->log); /* products one after another are told there */
        budget_check(h, budget, name[i], ARCHS[SM_90A], &use, shared[i]);
    }
}

/* Tiles of each size, of bf16 with the widest access and of fp16 with the narrowest that they have; float32; the sort. */
static void test_experts(Harness *h, Ctx *ctx, const Nvrtc *n, Cache *cache, Budget *budget)
{
    static const char *const tile[] = {"small", "square", "wide"};
    enum { TEXTS = 3 * 3 * 2 + 3 + 1 };
    size_t length;
    const char *prelude = prelude_cuda(ctx->program, &length);
    CudaText text[TEXTS];
    const char *name[TEXTS];
    CudaExpertLaunch launch[TEXTS] = {{0}};
    for (int i = 0; i < TEXTS; i++) {
        CudaText *t = &text[i];
        int what = i % 3, half = i / 9; /* y, y of a transposed w, dw; bf16, fp16, float32 */
        CudaExpertClass c = {.dw = what == 2,
                             .transposed = what == 1,
                             .half = half == 0   ? HALF_BF16
                                     : half == 1 ? HALF_FP16
                                                 : HALF_NONE,
                             .tile = (CudaExpertTile)(i / 3 % 3)};
        c.x_half = c.w_half = c.y_half = c.half;
        c.x_width = c.w_width = half == 0 ? 8 : half == 2 ? 4 : c.tile ? 2 : 1;
        *t = (CudaText){.place = ""};
        t->text =
            i == TEXTS - 1 ? cuda_expert_sort(ctx->program, &t->length) : cuda_expert(ctx->program, &c, &t->length);
        t->name = emit_name(ctx, ctx->program, &t->text, &t->length);
        launch[i] = cuda_expert_launch(&c);
        name[i] = arena_printf(ctx->program, "%s.%s%s%s",
                               what == 2   ? "expert_dw"
                               : what == 1 ? "expert_t"
                                           : "expert",
                               c.half ? half_word(c.half) : "f32", c.half ? "." : "", c.half ? tile[c.tile] : "");
        name[i] = i == TEXTS - 1 ? "expert_sort" : name[i];
    }
    CaseDraw drawn = by_turns;
    for (int a = 0; a < ARCH_COUNT; a++) {
        CudaText of[TEXTS];
        CudaCode code[TEXTS];
        int count = 0, which[TEXTS];
        for (int i = 0; i < TEXTS; i++)
            if (case_drawn(&drawn, (size_t)(i + a))) {
                of[count] = text[i];
                which[count++] = i;
            }
        CudaBuild b = {.prelude = prelude, .cache = cache};
        if (!CHECK(h, build_texts(ctx, n, &b, ARCHS[a], of, (size_t)count, code) == ST_OK))
            fprintf(stderr, "    %s\n", b.why);
        for (int k = 0; k < count && !b.why[0]; k++) {
            int i = which[k];
            Use use = {0};
            add_use(&use, &code[k].facts);
            CHECK(h, code[k].facts.max_threads == (i < TEXTS - 1 ? launch[i].threads : CUDA_EXPERT_SORT_THREADS));
            CHECK(h, launch[i].shared <= 99 * 1024);
            budget_check(h, budget, name[i], ARCHS[a], &use, launch[i].shared);
        }
    }
}

/* Those that have one text each. */
static void test_plain(Harness *h, Ctx *ctx, const Nvrtc *n, Cache *cache, Budget *budget)
{
    static const struct {
        LibraryKernel which;
        const char *name;
    } of[] = {
        {LIB_COPY, "copy"},
        {LIB_TABLE, "table"},
        {LIB_SUM_PARTS, "sum_parts"},
        {LIB_MAX_PARTS, "max_parts"},
        {LIB_SUM_PARTS_AT, "sum_parts_at"},
        {LIB_MAX_PARTS_AT, "max_parts_at"},
        {LIB_CUMSUM, "cumsum"},
        {LIB_TOP_K, "top_k"},
        {LIB_DYNAMIC_UPDATE_SLICE, "dynamic_update_slice"},
        {LIB_DYNAMIC_SLICE, "dynamic_slice"},
    };
    size_t length;
    const char *prelude = prelude_cuda(ctx->program, &length);
    CaseDraw drawn = by_turns;
    for (size_t i = 0; i < COUNT_OF(of); i++) {
        CudaText text = {.place = ""};
        PlanGrid grid;
        text.text = library_cuda(ctx->program, of[i].which, NULL, HALF_NONE, &grid, &text.length);
        text.name = emit_name(ctx, ctx->program, &text.text, &text.length);
        for (size_t a = 0; a < ARCH_COUNT; a++) {
            Use use = {0};
            if (!case_drawn(&drawn, i + a))
                continue;
            compile(h, ctx, n, ARCHS[a], prelude, &text, 1, cache, &use);
            budget_check(h, budget, arena_printf(ctx->program, "library.%s", of[i].name), ARCHS[a], &use, 0);
        }
    }
}

int main(void)
{
    Harness h = {0};
    Ctx *ctx = ctx_new(NULL);
    Nvrtc n;
    Cache cache;
    static Budget budget;
    if (!open_or_skip(ctx, &n)) {
        ctx_free(ctx);
        return SKIPPED;
    }
    cache_open(&cache, CACHE_CUBINS, NULL);
    budget_read(&budget, "budget.txt");
    test_attention(&h, ctx, &n, &cache, &budget);
    test_scatter(&h, ctx, &n, &cache, &budget);
    test_experts(&h, ctx, &n, &cache, &budget);
    test_groups(&h, ctx, &n, &cache, &budget);
    test_plain(&h, ctx, &n, &cache, &budget);
    budget_end(&h, &budget);
    cache_close(&cache);
    ctx_free(ctx);
    return harness_end(&h);
}
