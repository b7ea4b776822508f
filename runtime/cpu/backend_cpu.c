/* backend_cpu.c - the CPU behind the table of backend.h: memory, running, opening and
 * closing.
 *
 * In:  modules made by cpu_kernels.c, addresses, sizes.
 * Out: computed rows.
 * The one idea: the loop over rows is here, the kernels are only bodies; see threads.h for
 * why the results do not depend on threads.
 */
#define _GNU_SOURCE
#include "runtime/base/machine.h"
#include "cpu_backend.h"
#include "backend_cpu.h"

#include <dlfcn.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

Status cpu_fail(Backend *b, Status status, const char *fmt, ...)
{
    if (b->why[0])
        return status; /* the first failure wins */
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(b->why, sizeof b->why, fmt, ap);
    va_end(ap);
    return status;
}

/* ---- memory ---- */

enum { THREADS_MOST = 1024 };
enum { PAGE_HUGE = 2 << 20, LARGE_BLOCK = 2 << 20, ALIGNMENT = 64 };

static uint64_t round_huge(uint64_t bytes) { return (bytes + PAGE_HUGE - 1) / PAGE_HUGE * PAGE_HUGE; }

/* By the system, since whoever has the memory may be writing already. Where it cannot (Linux before
 * 5.14), pages come when they are written. */
static void touch_pages(void *user, int64_t lo, int64_t hi, int worker)
{
    char *memory = user;
    (void)worker;
#ifdef MADV_POPULATE_WRITE
    madvise(memory + lo * PAGE_HUGE, (size_t)(hi - lo) * PAGE_HUGE, MADV_POPULATE_WRITE);
#else
    (void)memory;
    (void)lo;
    (void)hi;
#endif
}

/* What was begun ahead is done: before the first launch, and before memory goes. */
static void settle(Backend *b)
{
    ahead_drain(b->ahead);
    cpu_of(b)->untouched = 0;
}

/* What a kept backend was given back stays its own, so that the next run need not ask for pages: up to SPARES pieces. */
static bool keep_spare(CpuBackend *cpu, char *at, uint64_t bytes)
{
    Spare *s = cpu->spare;
    int n = cpu->n_spare, i = 0;
    cpu->base.spare += bytes;
    while (i < n && s[i].at < at)
        i++;
    bool before = i > 0 && s[i - 1].at + s[i - 1].bytes == at, behind = i < n && at + bytes == s[i].at;
    if (!before && !behind) {
        if (!cpu->base.kept || n == SPARES) {
            cpu->base.spare -= bytes;
            return false;
        }
        memmove(s + i + 1, s + i, (size_t)(n - i) * sizeof *s);
        s[i] = (Spare){at, bytes};
        cpu->n_spare++;
        return true;
    }
    Spare *to = before ? &s[i - 1] : &s[i];
    to->at = before ? to->at : at;
    to->bytes += bytes;
    if (before && behind) {
        to->bytes += s[i].bytes;
        memmove(s + i, s + i + 1, (size_t)(n - i - 1) * sizeof *s);
        cpu->n_spare--;
    }
    return true;
}

/* Of the smallest piece that has room; zeroed. */
static char *take_spare(CpuBackend *cpu, uint64_t size)
{
    Spare *s = cpu->spare;
    int best = -1;
    for (int i = 0; i < cpu->n_spare; i++)
        if (s[i].bytes >= size && (best < 0 || s[i].bytes < s[best].bytes))
            best = i;
    if (best < 0)
        return NULL;
    char *at = s[best].at;
    s[best].at += size;
    s[best].bytes -= size;
    cpu->base.spare -= size;
    if (!s[best].bytes)
        memmove(s + best, s + best + 1, (size_t)(--cpu->n_spare - best) * sizeof *s);
    memset(at, 0, size);
    return at;
}

static void give_spares(CpuBackend *cpu)
{
    for (int i = 0; i < cpu->n_spare; i++)
        munmap(cpu->spare[i].at, cpu->spare[i].bytes);
    cpu->n_spare = 0;
    cpu->base.spare = 0;
}

static void count_bytes(Ctx *ctx, uint64_t size)
{
    ctx->bytes += size;
    if (ctx->bytes > ctx->peak_bytes)
        ctx->peak_bytes = ctx->bytes;
}

/* Anonymous pages, aligned for huge ones, touched once by helpers. */
static void *map_large(Backend *b, uint64_t bytes)
{
    Ctx *ctx = b->ctx;
    uint64_t size = round_huge(bytes);
    if (ctx->byte_limit && (size > ctx->byte_limit || ctx->bytes > ctx->byte_limit - size))
        return NULL;
    char *spare = take_spare(cpu_of(b), size);
    if (spare) {
        count_bytes(ctx, size);
        return spare;
    }
    char *raw =
        mmap(NULL, size + PAGE_HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (raw == MAP_FAILED)
        return NULL;
    uint64_t before = (PAGE_HUGE - (uintptr_t)raw % PAGE_HUGE) % PAGE_HUGE;
    if (before)
        munmap(raw, before);
    munmap(raw + before + size, PAGE_HUGE - before);
    madvise(raw + before, size, MADV_HUGEPAGE);
    ahead_begin(b->ahead, (int64_t)(size / PAGE_HUGE), 1, touch_pages, raw + before);
    cpu_of(b)->untouched += size;
    count_bytes(ctx, size);
    return raw + before;
}

static Status no_memory(Backend *b, uint64_t bytes)
{
    int64_t total, left = memory_available(&total);
    return cpu_fail(b, ST_ENVIRONMENT, "out of memory: %.1f MiB asked for, %.1f MiB available", (double)bytes / 1048576,
                    (double)(left < 0 ? 0 : left) / 1048576);
}

/* ctx_alloc, but NULL instead of leaving. */
void *cpu_small_block(Ctx *ctx, size_t bytes)
{
    CtxGuard guard;
    if (!CTX_TRY(ctx, &guard))
        return NULL;
    void *p = ctx_alloc(ctx, bytes);
    ctx_leave(ctx, &guard);
    return p;
}

Status cpu_alloc(Backend *b, uint64_t bytes, void **memory)
{
    *memory = NULL;
    if (bytes > (uint64_t)1 << 56)
        return no_memory(b, bytes);
    if (bytes >= LARGE_BLOCK) {
        int64_t total, left = memory_available(&total);
        if (left >= 0 && bytes > (uint64_t)left)
            give_spares(cpu_of(b)); /* pieces are too small, and their pages are wanted */
        if (left >= 0 && bytes + cpu_of(b)->untouched > (uint64_t)left) {
            settle(b); /* so that what is left is known */
            left = memory_available(&total);
        }
        if (left < 0 || bytes <= (uint64_t)left)
            *memory = map_large(b, bytes);
        return *memory ? ST_OK : no_memory(b, bytes);
    }
    char *raw = cpu_small_block(b->ctx, bytes + 2 * ALIGNMENT);
    if (!raw)
        return no_memory(b, bytes);
    char *p = raw + 2 * ALIGNMENT - (uintptr_t)raw % ALIGNMENT;
    memcpy(p - sizeof raw, &raw, sizeof raw);
    *memory = p;
    return ST_OK;
}

void cpu_free(Backend *b, void *memory, uint64_t bytes)
{
    if (!memory)
        return;
    if (bytes >= LARGE_BLOCK) {
        settle(b);
        if (!keep_spare(cpu_of(b), memory, round_huge(bytes)))
            munmap(memory, round_huge(bytes));
        b->ctx->bytes -= round_huge(bytes);
        return;
    }
    void *raw;
    memcpy(&raw, (char *)memory - sizeof raw, sizeof raw);
    ctx_release(b->ctx, raw);
}

static Status cpu_copy(Backend *b, void *to, const void *from, uint64_t bytes)
{
    (void)b;
    if (bytes)
        memcpy(to, from, bytes);
    return ST_OK;
}

/* ---- running ---- */

typedef struct RowLoop {
    KernelFn fn;
    void *const *p;
    const int64_t *n;
    const double *s;
} RowLoop;

static void run_rows(void *user, int64_t lo, int64_t hi, int worker)
{
    const RowLoop *loop = user;
    (void)worker;
    loop->fn(loop->p, loop->n, loop->s, lo, hi);
}

static Status cpu_launch(Backend *b, Module *m, uint32_t kernel, void *const *p, const int64_t *n, const double *s,
                         const LaunchMap *map, int64_t rows, int64_t grain)
{
    (void)map;
    if (kernel >= m->n || !m->kernel[kernel])
        return cpu_fail(b, ST_BUG, "launch of kernel %u of %zu", kernel, m->n);
    const PlanKernel *facts = &m->plan[kernel];
    for (uint32_t i = 0; facts->size && i < facts->n_int; i++)
        if (!plan_size_fits(facts->size[i], n[i]))
            return cpu_fail(b, ST_BUG, "%s was compiled for multiples of %lld up to %lld (0: any), not for %lld",
                            facts->name, (long long)facts->size[i].multiple, (long long)facts->size[i].most,
                            (long long)n[i]);
    if (ahead_pending(b->ahead))
        settle(b);
    RowLoop loop = {m->kernel[kernel], p, n, s};
    parallel_for(cpu_of(b)->pool, rows, grain, run_rows, &loop);
    return ST_OK;
}

static Status cpu_matmul(Backend *b, const PlanMatmul *how, const void *x, const void *y, void *z)
{
    CpuBackend *cpu = cpu_of(b);
    if (ahead_pending(b->ahead))
        settle(b);
    if (blas_matmul(&cpu->blas, cpu->pool, how, x, y, z))
        return ST_OK;
    return cpu_fail(b, ST_BUG, "a product of bf16 operands failed or no build prepared it");
}

static Status cpu_expert(Backend *b, const PlanExpert *how, const void *x, const void *w_or_dy, const int64_t *index,
                         float *out)
{
    CpuBackend *cpu = cpu_of(b);
    int64_t bytes = expert_scratch(how, b->threads);
    if (bytes < 0 || (uint64_t)bytes > cpu->expert_bytes)
        return cpu_fail(b, ST_BUG, "a product by expert that no build prepared");
    if (ahead_pending(b->ahead))
        settle(b);
    if (expert_run(&cpu->blas, cpu->pool, how, x, w_or_dy, index, out, cpu->expert_memory))
        return ST_OK;
    return cpu_fail(b, ST_BUG, "a product by expert of bf16 operands failed or no build prepared it");
}

static Status cpu_sync(Backend *b)
{
    b->why[0] = 0;
    return ST_OK;
}

/* ---- opening and closing ---- */

static void cpu_close(Backend *b)
{
    if (!b)
        return;
    CpuBackend *cpu = cpu_of(b);
    Ctx *ctx = b->ctx;
    ahead_close(b->ahead);
    b->ahead = NULL;
    b->kept = false;
    give_spares(cpu);
    for (size_t i = 0; i < cpu->n_object; i++) {
        dlclose(cpu->object[i].handle);
        if (cpu->object[i].fd >= 0)
            close(cpu->object[i].fd);
    }
    ctx_release(ctx, cpu->object);
    ctx_release(ctx, cpu->prelude);
    ctx_release(ctx, cpu->loaded);
    arena_free(cpu->arena);
    cpu_free(b, cpu->expert_memory, cpu->expert_bytes);
    cpu_free(b, cpu->blas.scratch, BLAS_SCRATCH * sizeof(float));
    ctx_release(ctx, (void *)cpu->identity);
    pool_close(cpu->pool);
    bf16_close(cpu->blas.bf16);
    blas_close(&cpu->blas);
    cache_close(&cpu->cache);
    ctx_release(ctx, cpu);
}

/* No plan of a CPU asks for it, but what runs a device's on a CPU does. */
static Status cpu_copy_parts(Backend *b, const PlanCopy *how, int64_t rows, const void *x, void *out)
{
    (void)b;
    for (int64_t i = 0; i < rows; i++)
        memcpy((char *)out + i * how->to, (const char *)x + i * how->from, (size_t)how->bytes);
    return ST_OK;
}

static const char *cpu_cache_trouble(const Backend *b)
{
    const Cache *c = &((const CpuBackend *)b)->cache;
    return c->readable ? NULL : c->note;
}

static const BackendOps cpu_ops = {
    .name = "cpu",
    .alloc = cpu_alloc,
    .free = cpu_free,
    .upload = cpu_copy,
    .download = cpu_copy,
    .build = cpu_build,
    .drop = cpu_drop,
    .launch = cpu_launch,
    .matmul = cpu_matmul,
    .expert = cpu_expert,
    .copy = cpu_copy_parts,
    .sync = cpu_sync,
    .cache_trouble = cpu_cache_trouble,
    .close = cpu_close,
};

/* The processor's facts as a block of their own, or NULL. */
static char *copy_identity(Ctx *ctx)
{
    CtxGuard guard;
    if (!CTX_TRY(ctx, &guard))
        return NULL;
    ArenaMark mark = arena_mark(ctx->scratch);
    Buf text = buf_new(ctx->scratch);
    cpu_identity(&text);
    char *copy = ctx_alloc(ctx, text.n + 1);
    memcpy(copy, text.s, text.n);
    arena_reset(ctx->scratch, mark);
    ctx_leave(ctx, &guard);
    return copy;
}

BackendAbsence backend_cpu_absence(void) { return ABSENT_UNUSABLE; }

Status backend_cpu_open(Ctx *ctx, const BackendOptions *how, Backend **out, char why[512])
{
    static const BackendOptions defaults;
    if (!how)
        how = &defaults;
    *out = NULL;
    why[0] = 0;
    CpuBackend *cpu = ctx_alloc(ctx, sizeof *cpu);
    cpu->arena = arena_new(ctx);
    map_init(&cpu->by_key, cpu->arena);
    cpu->base = (Backend){.ops = &cpu_ops,
                          .kind = &backend_kinds[BACKEND_cpu],
                          .target = &target_cpu,
                          .ctx = ctx,
                          .threads = how->threads};
    cpu->base.user = how->user;
    cpu->cache.fd = -1;
    if (cpu->base.threads < 1)
        cpu->base.threads = threads_available();
    if (cpu->base.threads > THREADS_MOST)
        cpu->base.threads = THREADS_MOST;
    Status status = ST_ENVIRONMENT;
    void *scratch = NULL;
    bool compiler = false;
    if (!blas_open(&cpu->blas, how->products, why))
        status = ST_USAGE;
    else if (!(compiler = compiler_find(&cpu->compiler, how->compiler, how->compile_seconds, why)))
        status = ST_ENVIRONMENT;
    else if (!(cpu->pool = pool_open(cpu->base.threads)) || !(cpu->base.ahead = ahead_open(cpu->base.threads)))
        snprintf(why, 512, "out of memory: no room for threads");
    else if (!(cpu->identity = copy_identity(ctx)))
        snprintf(why, 512, "%s", ctx->message);
    else if (cpu_alloc(&cpu->base, BLAS_SCRATCH * sizeof(float), &scratch) != ST_OK)
        snprintf(why, 512, "%s", cpu->base.why);
    else
        status = ST_OK;
    cpu->blas.scratch = scratch;
    if (status != ST_OK) {
        cpu_close(&cpu->base);
        if (compiler) /* then it is memory that is missing, for any other backend, too */
            ctx_raise(ctx, status, "%s", why);
        return status;
    }
    if (cpu->blas.kind == BLAS_PLAIN && !how->products)
        cpu->base.slow = "neither oneDNN nor OpenBLAS is here: products of matrices are computed in "
                         "plain loops, several times as slowly; install the Debian package libdnnl2";
    cpu->base.bf16 = bf16_open(&cpu->blas, ctx, cpu->base.threads, cpu->base.no_bf16);
    cache_open(&cpu->cache, CACHE_SHARED_OBJECTS, how->cache_dir);
    *out = &cpu->base;
    return ST_OK;
}
