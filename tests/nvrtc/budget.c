/* budget.c - what CUDA kernels use of a multiprocessor, against tests/nvrtc/budget.txt.
 *
 * In:  the kernels over rows of a few models, forward and backward, and the classes of
 * attention (skipped where there is no NVRTC). Out: a line per kind of kernel with the most
 * that one of them uses; `N passed, N failed`. Cubins are kept in the kernel cache, so only the
 * first run takes long.
 */
#include "cuda_texts.h"

#include "compiler/cuda_attention.h"
#include "compiler/cuda_scatter.h"
#include "compiler/emit.h"
#include "compiler/plan.h"
#include "models.h"

/* ---- the budget ---- */

typedef struct Limit {
    char what[64];
    int registers, frame, spilled;
    bool used;
} Limit;
enum { LIMITS = 256 };

static size_t read_limits(Limit *limit)
{
    FILE *f = fopen(VWN_SOURCE_DIR "/tests/nvrtc/budget.txt", "r");
    char line[256];
    size_t n = 0;
    while (f && n < LIMITS && fgets(line, sizeof line, f)) {
        Limit *l = &limit[n];
        *l = (Limit){0};
        n += line[0] != '#' &&
             sscanf(line, "%63s %d %d %d", l->what, &l->registers, &l->frame, &l->spilled) == 4;
    }
    if (f)
        fclose(f);
    return n;
}

/* What the kernels of one kind use at most. */
typedef struct Use {
    int kernels, registers;
    int64_t frame, spilled, shared;
} Use;

static void add_use(Use *u, const CubinKernel *k)
{
    u->kernels++;
    u->registers = k->registers > u->registers ? k->registers : u->registers;
    u->frame = k->frame > u->frame ? k->frame : u->frame;
    int64_t spilled = k->spill_stores + k->spill_loads;
    u->spilled = spilled > u->spilled ? spilled : u->spilled;
    u->shared = k->shared > u->shared ? k->shared : u->shared;
}

static void check_use(Harness *h, Limit *limit, size_t n, const char *what, const char *arch,
                      const Use *u, int64_t dynamic)
{
    printf("%-28s %-7s %3d kernels: %3d registers, %lld frame, %lld spilled, %lld shared\n",
           what, arch, u->kernels, u->registers, (long long)u->frame, (long long)u->spilled,
           (long long)(u->shared + dynamic));
    bool found = false;
    for (size_t i = 0; i < n; i++) {
        if (strcmp(limit[i].what, what) != 0)
            continue;
        found = limit[i].used = true;
        CHECK_CASE(h,
                   u->registers <= limit[i].registers && u->frame <= limit[i].frame &&
                       u->spilled <= limit[i].spilled,
                   what);
    }
    CHECK_CASE(h, found && u->kernels > 0, what);
}

static bool compile(Harness *h, Ctx *ctx, const Nvrtc *n, const char *arch, const char *prelude,
                    const CudaText *text, size_t count, Cache *cache, Use *use)
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

/* ---- kernels over rows ---- */

static const struct {
    Variant v;
    bool everywhere; /* for all architectures */
} models[] = {
    {{"rows.ghc.2.3",
      {"D=76", "conn=ghc(m = 2, n = 3, dynamic = true, reduce = linear(out = D))", "wide=114"}},
     true},
    {{"rows.layer_norm",
      {"D=36", "norm=layer_norm(eps = 1e-5)",
       "sub=ffn(hidden = 37, activation = gelu, bias = true)"}},
     false},
};

typedef struct Rows {
    Harness *h;
    const Nvrtc *n;
    Cache *cache;
    const char *const *set, *arch;
    Use *use;
} Rows;

static void compile_rows(Ctx *ctx, void *arg)
{
    Rows *r = arg;
    Unit *u = load_text(ctx, model_text, r->set);
    Graph *const graphs[] = {step_gradient(u->model, u->train, true, ctx->program),
                             step_update(u->model, u->train, ctx->program)};
    for (size_t k = 0; k < COUNT_OF(graphs); k++) {
        PlanOptions how = {.B = 2, .T = 8, .cuda = true};
        Plan *p = plan_build(ctx, ctx->program, graph_simplify(graphs[k], ctx->program), &how);
        CudaText *text = NEW_ARRAY(ctx->program, CudaText, p->n_kernel + 1);
        size_t n = 0;
        for (size_t i = 0; i < p->n_kernel; i++)
            if (p->kernel[i].grid.threads && !p->kernel[i].library)
                text[n++] =
                    (CudaText){p->kernel[i].name, p->kernel[i].text, p->kernel[i].length, ""};
        CHECK(r->h, n > 0);
        compile(r->h, ctx, r->n, r->arch, p->device_prelude, text, n, r->cache, r->use);
    }
}

static void test_rows(Harness *h, const Nvrtc *n, Cache *cache, Limit *limit, size_t n_limit)
{
    for (int a = 0; a < ARCH_COUNT; a++) {
        for (size_t i = 0; i < COUNT_OF(models); i++) {
            Use use = {0};
            Rows r = {h, n, cache, models[i].v.set, ARCHS[a], &use};
            if (a != 1 && !models[i].everywhere)
                continue;
            Ctx *ctx = ctx_new(NULL);
            CHECK_CASE(h, guarded(ctx, compile_rows, &r), models[i].v.name);
            ctx_free(ctx);
            check_use(h, limit, n_limit, models[i].v.name, ARCHS[a], &use, 0);
        }
    }
}

/* ---- attention ---- */

static const struct {
    CudaAttentionClass class;
    bool everywhere;
} classes[] = {
    {{64, 64, true, false, false, false, 8}, true},
    {{64, 64, true, true, true, true, 8}, false},
    {{128, 128, true, false, false, false, 8}, true},
    {{256, 256, true, false, false, false, 8}, false},
    {{64, 64, false, false, false, false, 4}, false},
    {{256, 256, false, false, false, false, 4}, false},
};

static void test_attention(Harness *h, Ctx *ctx, const Nvrtc *n, Cache *cache, Limit *limit,
                           size_t n_limit)
{
    static const char *const names[] = {"attention", "attention_q", "attention_kv"};
    enum { TEXTS = sizeof classes / sizeof classes[0] * CUDA_SDPA_COUNT };
    size_t length;
    const char *prelude = prelude_cuda(ctx->program, &length);
    for (int a = 0; a < ARCH_COUNT; a++) {
        CudaText text[TEXTS];
        size_t count = 0, which[TEXTS];
        for (size_t i = 0; i < TEXTS; i++) {
            const CudaAttentionClass *c = &classes[i / CUDA_SDPA_COUNT].class;
            if (a != 1 && !classes[i / CUDA_SDPA_COUNT].everywhere)
                continue;
            CudaText *t = &text[count];
            *t = (CudaText){.place = ""};
            t->text = cuda_attention(ctx->program, (CudaAttentionKernel)(i % CUDA_SDPA_COUNT),
                                     c, &t->length);
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
            CHECK(h, c->d > 128 || c->bf16 == false || l.shared <= 99 * 1024);
            check_use(h, limit, n_limit,
                      arena_printf(ctx->program, "%s.%s.%d%s", names[k],
                                   c->bf16 ? "bf16" : "f32", c->d, c->capped ? ".all" : ""),
                      ARCHS[a], &use, l.shared);
        }
    }
}

static void test_scatter(Harness *h, Ctx *ctx, const Nvrtc *n, Cache *cache, Limit *limit,
                         size_t n_limit)
{
    size_t length;
    const char *prelude = prelude_cuda(ctx->program, &length);
    CudaText text = {.place = ""};
    text.text = cuda_scatter(ctx->program, false, &text.length);
    text.name = emit_name(ctx, ctx->program, &text.text, &text.length);
    for (int a = 0; a < ARCH_COUNT; a++) {
        Use use = {0};
        compile(h, ctx, n, ARCHS[a], prelude, &text, 1, cache, &use);
        check_use(h, limit, n_limit, "scatter_add", ARCHS[a], &use, CUDA_SCATTER_SHARED);
    }
}

int main(void)
{
    Harness h = {0};
    Ctx *ctx = ctx_new(NULL);
    Nvrtc n;
    Cache cache;
    static Limit limit[LIMITS];
    if (!open_or_skip(ctx, &n)) {
        ctx_free(ctx);
        return SKIPPED;
    }
    cache_open(&cache, CACHE_CUBINS, NULL);
    size_t n_limit = read_limits(limit);
    test_rows(&h, &n, &cache, limit, n_limit);
    test_attention(&h, ctx, &n, &cache, limit, n_limit);
    test_scatter(&h, ctx, &n, &cache, limit, n_limit);
    for (size_t i = 0; i < n_limit; i++)
        CHECK_CASE(&h, limit[i].used, limit[i].what); /* a line that limits nothing */
    cache_close(&cache);
    ctx_free(ctx);
    return harness_end(&h);
}
