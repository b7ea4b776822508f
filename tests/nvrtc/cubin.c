/* cubin.c - registers, frames, spills and shared memory out of cubins, whole and damaged.
 *
 * In:  nothing (skipped where there is no NVRTC).
 * Out: `N passed, N failed`. What the reader says is compared with what ptxas says of itself.
 * When: quick, released.
 */
#include "cuda_texts.h"

#include <stdlib.h>

/* What ptxas says of one kernel: several may be in a program. */
static const char *report_of(Arena *arena, const char *log, const char *name)
{
    const char *from = strstr(log, arena_printf(arena, "entry function '%s'", name));
    const char *to = from ? strstr(from + 1, "entry function") : NULL;
    return from ? arena_printf(arena, "%.*s", (int)(to ? to - from : (long)strlen(from)), from) : "";
}

/* The number before `unit` in such a report; 0 where it says nothing of it. */
static long reported(const char *log, const char *unit)
{
    const char *p = strstr(log, unit);
    if (!p)
        return 0;
    while (p > log && p[-1] == ' ')
        p--;
    while (p > log && p[-1] >= '0' && p[-1] <= '9')
        p--;
    return strtol(p, NULL, 10);
}

static void test_facts(Harness *h, Ctx *ctx, const Nvrtc *n)
{
    static const char *const option[] = {"-Xptxas=-v"};
    const CudaText text[] = {cuda_text("k_one", CUDA_TWICE("k_one", "1")), cuda_text("k_shared", CUDA_SHARED),
                             cuda_text("k_spill", CUDA_SPILL), cuda_text("k_frame", CUDA_FRAME)};
    static const int threads[] = {128, 256, 1024, 0};
    for (int a = 0; a < ARCH_COUNT; a++) {
        CudaCode code[COUNT_OF(text)];
        CudaBuild b = {.option = option, .n_option = 1, .jobs = 2};
        if (!CHECK_CASE(h, build_texts(ctx, n, &b, ARCHS[a], text, COUNT_OF(text), code) == ST_OK, b.why))
            continue;
        for (size_t i = 0; i < COUNT_OF(text); i++) {
            const CubinKernel *k = &code[i].facts;
            const char *log = report_of(ctx->scratch, code[i].log, k->name);
            printf("%s %s: %d registers, %lld frame, %lld + %lld spilled, %lld shared\n", ARCHS[a], k->name,
                   k->registers, (long long)k->frame, (long long)k->spill_stores, (long long)k->spill_loads,
                   (long long)k->shared);
            CHECK(h, k->registers > 0 && k->registers == reported(log, "registers"));
            CHECK(h, k->frame == reported(log, "bytes stack frame"));
            CHECK(h, k->spill_stores == reported(log, "bytes spill stores"));
            CHECK(h, k->spill_loads == reported(log, "bytes spill loads"));
            CHECK(h, k->shared == reported(log, "bytes smem"));
            CHECK(h, k->max_threads == threads[i] && k->code > 0);
        }
        CHECK(h, code[2].facts.spill_stores > 0 && code[2].facts.spill_loads > 0);
        CHECK(h, code[3].facts.frame >= 200 && !code[3].facts.spill_stores);
        CHECK(h, code[1].facts.shared >= 1200 && code[1].facts.shared < 3000);
    }
}

/* Damaged bytes are read in a block of their own size, so that a sanitizer sees every step
 * outside; what is said must be plausible or refused. */
static void test_damage(Harness *h, Ctx *ctx, const Nvrtc *n)
{
    const CudaText text = cuda_text("k_spill", CUDA_SPILL);
    CudaCode code;
    CudaBuild b = {0};
    uint64_t random = 1;
    char why[256];
    Cubin facts;
    if (!CHECK(h, build_texts(ctx, n, &b, "sm_90a", &text, 1, &code) == ST_OK))
        return;
    int refused = 0, read = 0;
    for (int round = 0; round < 3000; round++) {
        size_t size = code.size;
        ArenaMark mark = arena_mark(ctx->scratch);
        if (round % 3 == 0) /* cut */
            size = (size_t)((harness_random(&random) + 1) / 2 * (double)code.size);
        unsigned char *bytes = malloc(size ? size : 1);
        memcpy(bytes, code.cubin, size);
        for (int i = 0; size && round % 3 && i < 1 + round % 40; i++) {
            double where = (harness_random(&random) + 1) / 2;
            /* the header and the tables at the end decide most */
            size_t at = i % 2 ? (size_t)(where * 64) : (size_t)(where * (double)size);
            if (i % 4 == 2)
                at = size - 1 - (size_t)(where * (double)(size < 4000 ? size : 4000) * 0.99);
            bytes[at < size ? at : size - 1] = (unsigned char)(harness_random(&random) * 128);
        }
        bool good = cubin_read(ctx->scratch, bytes, size, &facts, why);
        read += good;
        refused += !good;
        if (!good)
            CHECK(h, strstr(why, "this is no cubin") == why);
        for (size_t i = 0; good && i < facts.n; i++)
            CHECK(h, facts.kernel[i].registers > 0 && facts.kernel[i].frame >= 0 && facts.kernel[i].shared >= 0 &&
                         facts.kernel[i].spill_loads >= 0);
        free(bytes);
        arena_reset(ctx->scratch, mark);
    }
    printf("damaged: %d refused, %d read\n", refused, read);
    CHECK(h, refused > 500 && read > 100);
    CHECK(h, !cubin_read(ctx->scratch, "", 0, &facts, why));
    CHECK(h, cubin_read(ctx->scratch, code.cubin, code.size, &facts, why) && facts.arch == 90);
    CHECK(h, cubin_find(&facts, "k_spill") && !cubin_find(&facts, "k_spil"));
}

int main(void)
{
    Harness h = {0};
    Ctx *ctx = ctx_new(NULL);
    Nvrtc n;
    bool there = open_or_skip(ctx, &n);
    if (there) {
        test_facts(&h, ctx, &n);
        test_damage(&h, ctx, &n);
    }
    ctx_free(ctx);
    return there ? harness_end(&h) : SKIPPED;
}
