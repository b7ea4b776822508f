/* cuda_kernels.c - kernels of a plan as functions of a GPU.
 *
 * In:  a plan made for a device.   Out: its kernels loaded; launches queued.
 * The one idea: a kernel's name is a hash of its text, so a program takes those that an earlier one has loaded. What
 * a launch would be refused for is known before the first one: sizes of arguments and of shared memory are data.
 */
#include "compiler/plan/plan.h"
#include "cuda_backend.h"

#include <stdio.h>

#include "compiler/portable/device_call.h"

/* ---- loading ---- */

/* What the compiler is given of the kernels that are not loaded. */
typedef struct Wanted {
    CudaText *text;
    CudaCode *code;
    size_t n;
} Wanted;

/* The first line of the comment that says what a kernel was printed for: "layers.1.ffn gpt.vwn:12:5". */
static const char *place_of(Arena *arena, const PlanKernel *k)
{
    const char *from = k->where ? k->where + strspn(k->where, "/* ") : "";
    return arena_printf(arena, "%.*s", (int)strcspn(from, "\n*"), from);
}

/* Names of a plan are those of its context, which may be another one than the backend's. */
static Wanted gather(CudaBackend *c, const Plan *p, Arena *arena)
{
    Wanted w = {NEW_ARRAY(arena, CudaText, p->n_kernel + 1), NEW_ARRAY(arena, CudaCode, p->n_kernel + 1), 0};
    for (size_t i = 0; i < p->n_kernel; i++) {
        const PlanKernel *k = &p->kernel[i];
        if (!map_get(&c->by_name, (uintptr_t)name_str(c->base.ctx, k->name)))
            w.text[w.n++] = (CudaText){k->name, k->text, k->length, place_of(arena, k)};
    }
    return w;
}

/* Kernels that were compiled together lie in one cubin, which is loaded once. */
static Status load_module(CudaBackend *c, const Wanted *w, size_t i, CudaModule *module)
{
    for (size_t j = 0; j < i; j++)
        if (w->code[j].cubin == w->code[i].cubin) {
            module[i] = module[j];
            return ST_OK;
        }
    vec_push(c->arena, &c->module, NULL); /* entered before it is there: then nothing can be lost */
    Status st = cuda_must(c, c->api.load(&module[i], w->code[i].cubin), "loading kernels");
    c->module.v[c->module.n - 1] = st == ST_OK ? module[i] : NULL;
    return st;
}

static Status load(CudaBackend *c, const Wanted *w, Arena *arena)
{
    CudaModule *module = NEW_ARRAY(arena, CudaModule, w->n + 1);
    for (size_t i = 0; i < w->n; i++) {
        CudaLoaded *k = NEW(c->arena, CudaLoaded);
        Status st = load_module(c, w, i, module);
        if (st == ST_OK)
            st = cuda_must(c, c->api.function(&k->function, module[i], w->text[i].name), "finding a kernel");
        if (st != ST_OK)
            return st;
        k->name = name_str(c->base.ctx, w->text[i].name);
        k->facts = w->code[i].facts;
        k->facts.name = k->name;
        *map_at(&c->by_name, (uintptr_t)k->name) = k;
    }
    return ST_OK;
}

static Status compile(CudaBackend *c, const Plan *p, Wanted *w, Arena *arena, BuildReport *report)
{
    CudaBuild build = {.arch = c->found.arch,
                       .prelude = p->device_prelude,
                       .prelude_length = p->device_prelude_length,
                       .kernel = w->text,
                       .n = w->n,
                       .jobs = c->threads,
                       .compiling = c->base.user.compiling,
                       .user = c->base.user.user,
                       .stop = c->base.user.stop,
                       .cache = c->cache.readable ? &c->cache : NULL,
                       .arena = arena,
                       .code = w->code};
    Status st = w->n ? nvrtc_build(&c->found.nvrtc, &build) : ST_OK;
    report->kernels = (int)p->n_kernel;
    report->compiled = (int)build.compiled;
    report->cached = report->kernels - report->compiled;
    report->seconds = build.seconds;
    if (st != ST_OK)
        return cuda_fail(c, st, "%.500s", build.why);
    if (c->cache.note[0] && !c->noted)
        snprintf(report->note, sizeof report->note, "%s", c->cache.note);
    c->noted = c->noted || c->cache.note[0];
    return ST_OK;
}

/* ---- what launches ask for ---- */

/* Of the launches of a plan the most that each kernel has, which a function must be given leave for. */
static Status ask_for_shared(CudaBackend *c, const PlanKernel *k, CudaLoaded *to, uint64_t bytes, Arena *arena)
{
    uint64_t all = bytes + (uint64_t)to->facts.shared;
    if (all > (uint64_t)c->found.shared_most)
        return cuda_fail(
            c, ST_ENVIRONMENT,
            "the kernel %s of %.200s takes %.1f KiB of shared memory, and cuda:%d (%s) has %.1f KiB for a block",
            k->name, place_of(arena, k), (double)all / 1024, c->found.ordinal, c->found.device.name,
            (double)c->found.shared_most / 1024);
    if (bytes <= CALL_SHARED_UNASKED || bytes <= to->asked)
        return ST_OK;
    Status st =
        cuda_must(c, c->api.set_attribute(to->function, CUDA_SHARED_DYNAMIC, (int)bytes), "asking for shared memory");
    to->asked = st == ST_OK ? bytes : to->asked;
    return st;
}

static Status check_launches(CudaBackend *c, const Module *m, Arena *arena)
{
    const Plan *p = m->plan;
    for (size_t i = 0; i < p->n_launch; i++) {
        const Launch *l = &p->launch[i];
        if (l->kind != LAUNCH_KERNEL)
            continue;
        const PlanKernel *k = &p->kernel[l->kernel];
        int64_t *n = NEW_ARRAY(arena, int64_t, l->n_int + 1);
        for (uint32_t j = 0; j < l->n_int; j++)
            n[j] = l->ints[j].value; /* shared memory is of sizes, which are constants */
        if (k->grid.whole && plan_blocks(&k->grid, l->rows) > INT32_MAX)
            return cuda_fail(c, ST_ENVIRONMENT,
                             "the kernel %s has %lld rows, more than a grid has blocks: a smaller "
                             "micro_batch has fewer",
                             k->name, (long long)l->rows);
        Status st = ask_for_shared(c, k, m->kernel[l->kernel], plan_shared_bytes(&k->grid, n), arena);
        if (st != ST_OK)
            return st;
    }
    return ST_OK;
}

/* ---- building ---- */

/* Tensor maps lie at multiples of 64 bytes. */
static Status check_arguments(CudaBackend *c, const PlanKernel *k, Arena *arena)
{
    const size_t most = call_argument_bytes(c->found.device.capability, c->found.driver_version);
    size_t bytes = 8 * ((size_t)k->n_buffer + k->n_int + k->n_scalar + 1);
    if (k->n_map)
        bytes = (bytes + 63) / 64 * 64 + k->n_map * sizeof(CudaMap);
    if (bytes <= most)
        return ST_OK;
    return cuda_fail(c, ST_ENVIRONMENT,
                     "the kernel %s of %.200s has %zu bytes of arguments, and a kernel of cuda:%d (%s) may have %zu "
                     "with a driver for CUDA %d.%d",
                     k->name, place_of(arena, k), bytes, c->found.ordinal, c->found.device.name, most,
                     c->found.driver_version / 1000, c->found.driver_version % 1000 / 10);
}

static Status build_in(CudaBackend *c, const Plan *plan, Arena *arena, Module **module, BuildReport *report)
{
    for (size_t i = 0; i < plan->n_kernel; i++) {
        if (!plan->kernel[i].grid.threads)
            return cuda_fail(c, ST_BUG, "%s has no text for a device", plan->kernel[i].name);
        Status st = check_arguments(c, &plan->kernel[i], arena);
        if (st != ST_OK)
            return st;
    }
    Wanted w = gather(c, plan, arena);
    Status st = compile(c, plan, &w, arena, report);
    if (st == ST_OK)
        st = load(c, &w, arena);
    if (st != ST_OK)
        return st;
    Module *m = NEW(c->arena, Module);
    m->plan = plan;
    m->kernel = NEW_ARRAY(c->arena, CudaLoaded *, plan->n_kernel + 1);
    for (size_t i = 0; i < plan->n_kernel; i++)
        m->kernel[i] = map_get(&c->by_name, (uintptr_t)name_str(c->base.ctx, plan->kernel[i].name));
    *module = m;
    return check_launches(c, m, arena);
}

Status cuda_build(Backend *b, const Plan *plan, Module **module, BuildReport *report)
{
    CudaBackend *c = cuda_of(b);
    Arena *volatile arena = NULL;
    CtxGuard guard;
    *module = NULL;
    Status st = cuda_enter(c);
    if (st == ST_OK && CTX_TRY(b->ctx, &guard)) {
        arena = arena_new(b->ctx); /* machine code is the driver's when it is loaded */
        st = build_in(c, plan, arena, module, report);
        ctx_leave(b->ctx, &guard);
    } else if (st == ST_OK) {
        st = cuda_fail(c, b->ctx->raised, "%s", b->ctx->message);
    }
    arena_free(arena);
    if (st != ST_OK)
        snprintf(report->why, sizeof report->why, "%s", b->why);
    return st;
}

/* Kernels stay for other programs; names of launches go with the plan. */
void cuda_drop(Backend *b, Module *m)
{
    CudaBackend *c = cuda_of(b);
    if (c->n_queued && cuda_enter(c) == ST_OK)
        cuda_wait(c, "computing");
    c->n_queued = 0;
    if (c->broken)
        cuda_drain(c);
    cuda_forget(c, m);
}

void cuda_unload(CudaBackend *c)
{
    for (size_t i = c->module.n; i-- > 0;)
        if (c->module.v[i])
            cuda_must(c, c->api.unload(c->module.v[i]), "unloading kernels");
    c->module.n = 0;
}

/* ---- running ---- */

/* The k-th map of a launch, of the buffer that begins at `memory`. */
static Status make_map(CudaBackend *c, const LaunchMap *m, void *memory, CudaMap *out)
{
    uint64_t extent[MAP_RANK], stride[MAP_RANK];
    uint32_t one[MAP_RANK];
    for (int i = 0; i < MAP_RANK; i++)
        one[i] = 1;
    call_map(MAP_RANK, half_bytes(m->half), m->extent, m->stride, extent, stride);
    return cuda_must(c,
                     c->api.make_map(out, half_info(m->half)->map, MAP_RANK, memory, extent, stride + 1, m->box, one,
                                     CUDA_MAP_PLAIN, CUDA_MAP_TURNED_128, CUDA_MAP_L2_128, CUDA_MAP_ZEROS),
                     "making a tensor map");
}

Status cuda_launch(Backend *b, Module *m, uint32_t kernel, void *const *p, const int64_t *n, const double *s,
                   const LaunchMap *map, int64_t rows, int64_t grain)
{
    CudaBackend *c = cuda_of(b);
    const PlanKernel *k = &m->plan->kernel[kernel];
    CallArguments arguments;
    CudaMap made[CUDA_MAPS];
    (void)grain;
    for (uint32_t i = 0; k->size && i < k->n_int; i++)
        if (!plan_size_fits(k->size[i], n[i]))
            return cuda_fail(c, ST_BUG, "%s was compiled for multiples of %lld up to %lld (0: any), not for %lld",
                             k->name, (long long)k->size[i].multiple, (long long)k->size[i].most, (long long)n[i]);
    size_t count = call_arguments(&arguments, p, k->n_buffer, n, k->n_int, s, k->n_scalar, &rows);
    if (!count || count + k->n_map > CALL_ARGUMENTS || k->n_map > CUDA_MAPS)
        return cuda_fail(c, ST_BUG, "%s has too many arguments", k->name);
    Status st = cuda_enter(c);
    for (uint32_t i = 0; i < k->n_map && st == ST_OK && rows > 0; i++) {
        st = make_map(c, &map[i], p[map[i].buffer], &made[i]);
        arguments.at[count + i] = &made[i];
    }
    if (st == ST_OK)
        st = cuda_flush(c);
    if (st != ST_OK || rows <= 0)
        return st;
    unsigned blocks = call_blocks(plan_blocks(&k->grid, rows));
    unsigned shared = (unsigned)plan_shared_bytes(&k->grid, n);
    int error = c->api.launch(m->kernel[kernel]->function, blocks, 1, 1, k->grid.threads, 1, 1, shared, c->stream,
                              arguments.at, NULL);
    return error ? cuda_must(c, error, k->name) : cuda_queued(c, k->name);
}
