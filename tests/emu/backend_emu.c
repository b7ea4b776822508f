/* backend_emu.c - see backend_emu.h. */
#include "backend_emu.h"

#include "compiler/plan/plan.h"
#include "compiler/portable/device_call.h"
#include "runtime/cpu/backend_cpu.h"
#include "support/half.h"

#include <stdio.h>
#include <stdlib.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(at, bytes)   ((void)(at), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(at, bytes) ((void)(at), (void)(bytes))
#endif

enum { GUARD = 64, MAPS_MAX = 4 };

/* Memory that was given out, and what it was before a launch and after. */
typedef struct Given {
    char *at;
    uint64_t bytes;
    char *before, *after;
} Given;

typedef struct EmuBackend {
    Backend base;
    Backend *cpu;
    EmuOptions how;
    Given *given;
    size_t n_given;
    void *arena; /* of the program that was built last, or NULL */
    uint64_t arena_bytes;
} EmuBackend;

struct Module {
    const Plan *plan;
    EmuKernel *kernel;
    bool *copies; /* of each kernel: some go on while it does other things */
};

static EmuBackend *emu_of(Backend *b) { return (EmuBackend *)b; }

static Status failed(Backend *b, Status status, const char *what)
{
    if (status != ST_OK && !b->why[0])
        snprintf(b->why, sizeof b->why, "%.500s", what);
    return status;
}

/* ---- memory, with marks around it that are no numbers, and that nothing may read under a sanitizer ---- */

static uint64_t whole(uint64_t bytes) { return (bytes + 63) / 64 * 64; }

static Status emu_alloc(Backend *b, uint64_t bytes, void **memory)
{
    char *m = aligned_alloc(64, whole(bytes) + 2 * GUARD);
    if (!m)
        return failed(b, ST_ENVIRONMENT, "out of memory");
    memset(m, 0xff, whole(bytes) + 2 * GUARD);
    memset(m + GUARD, 0, bytes);
    *memory = m + GUARD;
    ASAN_POISON_MEMORY_REGION(m, GUARD);
    ASAN_POISON_MEMORY_REGION(m + GUARD + bytes, whole(bytes) - bytes + GUARD);
    EmuBackend *e = emu_of(b);
    e->given = realloc(e->given, (e->n_given + 1) * sizeof *e->given);
    e->given[e->n_given++] = (Given){m + GUARD, bytes, malloc(bytes + 1), malloc(bytes + 1)};
    return ST_OK;
}

static void emu_free(Backend *b, void *memory, uint64_t bytes)
{
    const unsigned char *m = memory;
    if (!memory)
        return;
    EmuBackend *e = emu_of(b);
    if (memory == e->arena)
        e->arena = NULL;
    size_t at = 0;
    while (e->given[at].at != memory)
        at++;
    free(e->given[at].before);
    free(e->given[at].after);
    e->given[at] = e->given[--e->n_given];
    ASAN_UNPOISON_MEMORY_REGION(m - GUARD, whole(bytes) + 2 * GUARD);
    for (uint64_t i = 0; i < GUARD; i++)
        if (m[-1 - (int64_t)i] != 0xff || m[whole(bytes) + i] != 0xff)
            vwn_bug(b->ctx, "a kernel wrote outside of a buffer of %llu bytes", (unsigned long long)bytes);
    free((char *)memory - GUARD);
}

static Status emu_copy(Backend *b, void *to, const void *from, uint64_t bytes)
{
    (void)b;
    if (bytes)
        memcpy(to, from, bytes);
    return ST_OK;
}

/* ---- kernels ---- */

void backend_emu_again(Backend *b, const EmuOptions *how)
{
    EmuBackend *e = emu_of(b);
    e->how = *how;
    if (e->arena) /* what no kernel has written is no number */
        memset(e->arena, 0xff, e->arena_bytes);
}

void backend_emu_way(Backend *b, int run)
{
    EmuOptions how = {.descending = run == 1, .blocks_max = run == 1 ? 3 : 0};
    backend_emu_again(b, &how);
}

static bool compile(Module *m, Arena *arena, char why[512])
{
    const Plan *p = m->plan;
    EmuText *text = NEW_ARRAY(arena, EmuText, p->n_kernel + 1);
    m->kernel = NEW_ARRAY(arena, EmuKernel, p->n_kernel + 1);
    m->copies = NEW_ARRAY(arena, bool, p->n_kernel + 1);
    for (size_t i = 0; i < p->n_kernel; i++) {
        const PlanKernel *k = &p->kernel[i];
        text[i] = (EmuText){k->name, k->text, k->length};
        m->copies[i] = strstr(k->text, "vwn_copies_") || strstr(k->text, "vwn_map_");
        if (!k->grid.threads) {
            snprintf(why, 512, "%s has no text for a device", k->name);
            return false;
        }
    }
    return emu_compile_watched(p->device_prelude, p->device_prelude_length, text, p->n_kernel, m->kernel, why);
}

static Status emu_build(Backend *b, const Plan *plan, Module **module, BuildReport *report)
{
    EmuBackend *e = emu_of(b);
    Arena *arena = b->ctx->program;
    Module *m = NEW(arena, Module);
    m->plan = plan;
    const Given *last = e->n_given ? &e->given[e->n_given - 1] : NULL;
    e->arena = last && last->bytes == plan->arena_bytes ? last->at : NULL;
    e->arena_bytes = plan->arena_bytes;
    backend_emu_again(b, &e->how);
    report->kernels = (int)plan->n_kernel;
    Status status = compile(m, arena, report->why) ? ST_OK : ST_BUG;
    *module = m;
    return failed(b, status, report->why);
}

static void emu_drop(Backend *b, Module *m) { (void)b, (void)m; /* texts are kept for other plans */ }

typedef struct Start {
    const EmuKernel *kernel;
    void **argument;
    uint32_t blocks, threads;
    uint64_t shared;
} Start;

static const char *start(const Start *s, const EmuOptions *how)
{
    return emu_launch(s->kernel, s->argument, how, s->blocks, s->threads, s->shared);
}

/* Copies arrive at once, and then, in a launch with the same memory, late. */
static const char *start_twice(EmuBackend *e, const Start *s, EmuOptions *how)
{
    for (size_t i = 0; i < e->n_given; i++)
        memcpy(e->given[i].before, e->given[i].at, e->given[i].bytes);
    how->lazy = false;
    const char *trouble = start(s, how);
    for (size_t i = 0; i < e->n_given; i++) {
        memcpy(e->given[i].after, e->given[i].at, e->given[i].bytes);
        memcpy(e->given[i].at, e->given[i].before, e->given[i].bytes);
    }
    how->lazy = true;
    if (!trouble)
        trouble = start(s, how);
    for (size_t i = 0; i < e->n_given && !trouble; i++)
        if (memcmp(e->given[i].after, e->given[i].at, e->given[i].bytes) != 0)
            trouble = "copies that arrive late change what it computes";
    return trouble;
}

static Status emu_launch_rows(Backend *b, Module *m, uint32_t kernel, void *const *p, const int64_t *n, const double *s,
                              const LaunchMap *map, int64_t rows, int64_t grain)
{
    EmuBackend *e = emu_of(b);
    const PlanKernel *k = &m->plan->kernel[kernel];
    EmuOptions how = e->how;
    (void)grain;
    for (uint32_t i = 0; k->size && i < k->n_int; i++)
        if (!plan_size_fits(k->size[i], n[i]))
            return failed(b, ST_BUG, "a size that a kernel was not printed for");
    CallArguments arguments;
    emu_map made[MAPS_MAX];
    size_t count = call_arguments(&arguments, p, k->n_buffer, n, k->n_int, s, k->n_scalar, &rows);
    if (!count || count + k->n_map > CALL_ARGUMENTS || k->n_map > MAPS_MAX)
        return failed(b, ST_BUG, "too many arguments");
    if (rows == 0)
        return ST_OK;
    for (uint32_t i = 0; i < k->n_map; i++) {
        const char *wrong = emu_map_make(&made[i], &map[i], p[map[i].buffer]);
        if (wrong)
            return failed(b, ST_BUG, wrong);
        arguments.at[count++] = &made[i];
    }
    uint32_t blocks = (uint32_t)plan_blocks(&k->grid, rows);
    if (k->grid.whole)
        how.blocks_max = 0;
    Start with = {&m->kernel[kernel], arguments.at, blocks, k->grid.threads, plan_shared_bytes(&k->grid, n)};
    how.no_copies = !m->copies[kernel];
    const char *trouble = how.no_copies ? start(&with, &how) : start_twice(e, &with, &how);
    if (!trouble)
        return ST_OK;
    char text[512];
    snprintf(text, sizeof text, "%s: %s", k->name, trouble);
    return failed(b, ST_BUG, text);
}

/* ---- what the host does ---- */

/* Numbers of 16 bits in four bytes each. */
static float *widened(const void *from, int64_t n, Half type)
{
    float *to = calloc((size_t)n + 1, sizeof *to);
    for (int64_t i = 0; to && i < n; i++)
        to[i] = (float)of_half(((const uint16_t *)from)[i], type);
    return to;
}

static void narrow(uint16_t *to, const float *from, int64_t n, Half type)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = to_half((double)from[i], type);
}

/* Products of 16 bits are exact in float32, and their sums are its. */
static Status emu_matmul(Backend *b, const PlanMatmul *how, const void *x, const void *y, void *z)
{
    Backend *cpu = emu_of(b)->cpu;
    if (!how->half)
        return failed(b, cpu->ops->matmul(cpu, how, x, y, z), cpu->why);
    PlanMatmul wide = *how;
    int64_t rows[2] = {how->transpose_a ? how->k : how->m, how->transpose_b ? how->n : how->k};
    int64_t columns[2] = {how->transpose_a ? how->m : how->k, how->transpose_b ? how->k : how->n};
    float *a = widened(x, how->step_a * (how->batch - 1) + how->lda * (rows[0] - 1) + columns[0], how->half);
    float *c = widened(y, how->step_b * (how->batch - 1) + how->ldb * (rows[1] - 1) + columns[1], how->half);
    wide.half = HALF_NONE;
    wide.rounded = false;
    int64_t n = how->step_c * (how->batch - 1) + how->ldc * (how->m - 1) + how->n;
    float *sum = how->rounded ? calloc((size_t)n + 1, sizeof *sum) : z;
    Status status = a && c && sum ? cpu->ops->matmul(cpu, &wide, a, c, sum) : ST_ENVIRONMENT;
    if (how->rounded && status == ST_OK)
        narrow((uint16_t *)(void *)z, sum, n, how->half);
    if (how->rounded)
        free(sum);
    free(a);
    free(c);
    return failed(b, status, cpu->why);
}

static Status emu_expert(Backend *b, const PlanExpert *how, const void *x, const void *w_or_dy, const int64_t *index,
                         float *out)
{
    (void)how, (void)x, (void)w_or_dy, (void)index, (void)out;
    return failed(b, ST_BUG, "a device has kernels for products by expert");
}

static Status emu_copy_parts(Backend *b, const PlanCopy *how, int64_t rows, const void *x, void *out)
{
    Backend *cpu = emu_of(b)->cpu;
    return failed(b, cpu->ops->copy(cpu, how, rows, x, out), cpu->why);
}

static Status emu_sync(Backend *b)
{
    b->why[0] = 0;
    return emu_of(b)->cpu->ops->sync(emu_of(b)->cpu);
}

static void emu_close(Backend *b)
{
    emu_of(b)->cpu->ops->close(emu_of(b)->cpu);
    free(emu_of(b)->given);
    free(b);
}

static const BackendOps emu_ops = {
    .name = "emu",
    .alloc = emu_alloc,
    .free = emu_free,
    .upload = emu_copy,
    .download = emu_copy,
    .build = emu_build,
    .drop = emu_drop,
    .launch = emu_launch_rows,
    .matmul = emu_matmul,
    .expert = emu_expert,
    .copy = emu_copy_parts,
    .sync = emu_sync,
    .close = emu_close,
};

Status backend_emu_open(Ctx *ctx, const EmuOptions *how, Backend **out, char why[512])
{
    if (!emu_possible(why))
        return ST_ENVIRONMENT;
    EmuBackend *e = calloc(1, sizeof *e);
    Status status = backend_cpu_open(ctx, &(BackendOptions){.threads = 1}, &e->cpu, why);
    if (status != ST_OK) {
        free(e);
        return status;
    }
    e->base = (Backend){.ops = &emu_ops,
                        .kind = &backend_kinds[BACKEND_cuda],
                        .ctx = ctx,
                        .threads = 1,
                        .target = how->target ? how->target : &target_gpu,
                        .bf16 = true};
    e->how = *how;
    *out = &e->base;
    return ST_OK;
}
