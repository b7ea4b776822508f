/* cubins.c - `vwn_cubins`: what the kernels of a file use of a GPU, as machine code.
 *
 * In:  a checked file, an architecture.   Out: a line for each kernel: registers, stack, spills, shared
 *      memory, as its cubin says.
 * The one idea: the kernels are those of the plans that a run makes, compiled and kept as a run would,
 * but no GPU is asked for anything.
 */
#include "cubins.h"

#include <stdio.h>

#include "compiler/model/programs.h"
#include "compiler/plan/plan.h"
#include "compiler/report/report.h"
#include "use.h"

typedef struct DeviceKernel {
    const PlanKernel *kernel;
    Name name;       /* of the module it was printed for first */
    uint64_t shared; /* bytes that a launch adds, at most */
} DeviceKernel;
typedef struct Cubins {
    Session session;
    Unit *unit;
    const vwn_cubin_options *how;
    const vwn_writer *out;
    const CubinsUse *use; /* NULL: a report is written */
    Cache cache;
    Nvrtc nvrtc;
    VEC(DeviceKernel) kernel;
    VEC(CubinsProgram) program;
    PlanLayout layout;
    const char *prelude;
    size_t prelude_length;
    CudaBuild build;
} Cubins;

/* ---- which kernels ---- */

static DeviceKernel *find(Cubins *c, const PlanKernel *k)
{
    for (size_t i = 0; i < c->kernel.n; i++)
        if (c->kernel.v[i].kernel->name == k->name)
            return &c->kernel.v[i];
    vec_push(c->session.arena, &c->kernel, (DeviceKernel){.kernel = k});
    return &c->kernel.v[c->kernel.n - 1];
}

static uint64_t shared_bytes(const Cubins *c, const Plan *p, const Launch *l)
{
    int64_t *n = NEW_ARRAY(c->session.arena, int64_t, l->n_int + 1);
    for (uint32_t i = 0; i < l->n_int; i++)
        n[i] = l->ints[i].value;
    return plan_shared_bytes(&p->kernel[l->kernel].grid, n);
}

/* runs: of a training step */
static void add_program(Cubins *c, const char *program, int64_t runs)
{
    const Plan *p = report_device_plan(c->unit, program, c->how->batch_seqs, target_of_arch(c->build.arch), &c->layout);
    if (!p)
        return;
    vec_push(c->session.arena, &c->program, (CubinsProgram){program, p, runs});
    for (size_t i = 0; i < p->n_launch; i++) {
        const Launch *l = &p->launch[i];
        if (l->kind != LAUNCH_KERNEL || !p->kernel[l->kernel].grid.threads)
            continue;
        DeviceKernel *k = find(c, &p->kernel[l->kernel]);
        uint64_t shared = shared_bytes(c, p, l);
        k->name = k->name && *k->name ? k->name : l->name ? l->name : ""; /* of no module */
        k->shared = shared > k->shared ? shared : k->shared;
    }
    if (p->device_prelude) { /* of all programs the same */
        c->prelude = p->device_prelude;
        c->prelude_length = p->device_prelude_length;
    }
}

/* All programs of a run, or that of a file which does not train. */
static void gather(Cubins *c)
{
    const Train *t = c->unit->train;
    if (c->how->program || !t) {
        add_program(c, c->how->program ? c->how->program : "predict", 0);
        return;
    }
    for (ProgramKind kind = 0; kind < PROGRAM_PREDICT; kind++) {
        const ProgramRow *row = program_row(kind);
        const int64_t runs = program_runs(kind, t, t->micro_seqs);
        if (runs || (row->held_out && !(c->use && c->use->step)))
            add_program(c, row->name, runs);
    }
}

/* ---- compiling ---- */

/* That of the first GPU here, else the oldest that the texts are for. */
static const char *architecture(Cubins *c)
{
    CudaDriver d;
    CudaDevice device;
    char why[512];
    if (c->how->arch)
        return c->how->arch;
    if (cuda_driver_open(&d, why) && !d.state && d.devices && cuda_device(&d, 0, &device) &&
        device.capability >= LEAST_CAPABILITY)
        return nvrtc_arch(NEW_ARRAY(c->session.arena, char, NVRTC_ARCH_NAME), device.capability);
    return "sm_80";
}

static void compile(Cubins *c)
{
    CudaBuild *b = &c->build;
    Arena *arena = c->session.arena;
    CudaText *text = NEW_ARRAY(arena, CudaText, c->kernel.n + 1);
    for (size_t i = 0; i < c->kernel.n; i++) {
        const PlanKernel *k = c->kernel.v[i].kernel;
        text[i] = (CudaText){k->name, k->text, k->length, c->kernel.v[i].name};
    }
    *b = (CudaBuild){.arch = b->arch,
                     .prelude = c->prelude,
                     .prelude_length = c->prelude_length,
                     .kernel = text,
                     .n = c->kernel.n,
                     .jobs = c->session.owner->options.threads,
                     .compiling = c->session.owner->options.compiling,
                     .user = c->session.owner->options.compiling_user,
                     .stop = &c->session.owner->interrupted,
                     .cache = &c->cache,
                     .arena = arena,
                     .code = NEW_ARRAY(arena, CudaCode, c->kernel.n + 1)};
    Status st = nvrtc_build(&c->nvrtc, b);
    if (st != ST_OK)
        ctx_raise(c->session.ctx, st, "%s", b->why);
}

static void say(const Cubins *c, vwn_event_kind kind, const char *text)
{
    vwn_event e = {.kind = kind, .text = text};
    if (c->how->event && *text)
        c->how->event(c->how->user, &e);
}

/* What a launch would fail with there is said here already. */
static void report_limits(const Cubins *c)
{
    const int64_t most = nvrtc_shared(c->build.arch);
    const DeviceKernel *worst = NULL;
    int64_t asked = most, too_large = 0;
    for (size_t i = 0; i < c->kernel.n; i++) {
        int64_t bytes = c->build.code[i].facts.shared + (int64_t)c->kernel.v[i].shared;
        too_large += bytes > most;
        if (bytes > asked) {
            worst = &c->kernel.v[i];
            asked = bytes;
        }
    }
    if (worst)
        say(c, VWN_EVENT_WARNING,
            arena_printf(c->session.arena,
                         "this cannot run on %s: %s of %s asks for %lld bytes of shared memory and a block can have "
                         "%lld there; kernels that ask for too much: %lld",
                         c->build.arch, worst->kernel->name, worst->name, (long long)asked, (long long)most,
                         (long long)too_large));
}

/* ---- the report ---- */

static void put_text(Buf *out, const Cubins *c)
{
    static const char *const head[] = {"kernel", "registers", "frame", "spilled", "shared", "threads", "computes"};
    Table t = {.arena = c->session.arena, .columns = COUNT_OF(head)};
    table_texts(&t, head, COUNT_OF(head));
    for (size_t i = 0; i < c->kernel.n; i++) {
        const DeviceKernel *k = &c->kernel.v[i];
        const CubinKernel *f = &c->build.code[i].facts;
        table_text(&t, k->kernel->name);
        table_count(&t, f->registers);
        table_count(&t, f->frame);
        table_count(&t, f->spill_stores + f->spill_loads);
        table_count(&t, f->shared + (int64_t)k->shared);
        table_count(&t, k->kernel->grid.threads);
        table_text(&t, k->name);
    }
    buf_printf(out, "machine code for %s, made by NVRTC %d.%d; bytes of a thread, shared of a block\n", c->build.arch,
               c->nvrtc.major, c->nvrtc.minor);
    table_print(out, &t);
}

static void put_json(Buf *out, const Cubins *c)
{
    for (size_t i = 0; i < c->kernel.n; i++) {
        const DeviceKernel *k = &c->kernel.v[i];
        const CubinKernel *f = &c->build.code[i].facts;
        buf_printf(out, "{\"v\":1,\"event\":\"cubin\",\"arch\":\"%s\",\"kernel\":\"%s\",", c->build.arch,
                   k->kernel->name);
        buf_printf(out, "\"registers\":%d,\"frame\":%lld,\"spilled\":%lld,\"shared\":%lld,", f->registers,
                   (long long)f->frame, (long long)(f->spill_stores + f->spill_loads),
                   (long long)(f->shared + (int64_t)k->shared));
        buf_printf(out, "\"threads\":%u,\"code\":%lld,\"path\":", k->kernel->grid.threads, (long long)f->code);
        buf_json_string(out, k->name, strlen(k->name));
        buf_puts(out, "}\n");
    }
}

/* ---- the call ---- */

static void put_report(const Cubins *c)
{
    Buf b = buf_new(c->session.arena);
    (c->how->json ? put_json : put_text)(&b, c);
    c->out->put(c->out->user, b.s, b.n);
}

static void hand_over(const Cubins *c)
{
    Name *name = NEW_ARRAY(c->session.arena, Name, c->kernel.n + 1);
    for (size_t i = 0; i < c->kernel.n; i++)
        name[i] = c->kernel.v[i].kernel->name;
    const CubinsMade made = {.arena = c->session.arena,
                             .unit = c->unit,
                             .program = c->program.v,
                             .n_program = c->program.n,
                             .kernel = name,
                             .code = c->build.code,
                             .n_kernel = c->kernel.n};
    c->use->call(c->use->user, &made);
}

static void close_cache(void *cache) { cache_close(cache); }

static Status cubins_body(void *user)
{
    Cubins *c = user;
    char why[512];
    session_open(&c->session, c->session.owner);
    Arena *arena = c->session.arena;
    plan_layout_init(&c->layout, arena);
    if (!nvrtc_open(c->session.ctx, &c->nvrtc, why))
        ctx_raise(c->session.ctx, ST_ENVIRONMENT, "%s", why);
    c->build.arch = architecture(c);
    if (!nvrtc_can(&c->nvrtc, c->build.arch, why))
        ctx_raise(c->session.ctx, ST_USAGE, "%s", why);
    gather(c);
    cache_open(&c->cache, CACHE_CUBINS, c->session.owner->options.cache_dir);
    session_defer(&c->session, close_cache, &c->cache);
    compile(c);
    say(c, VWN_EVENT_WARNING, c->cache.note);
    report_limits(c);
    say(c, VWN_EVENT_COMPILE,
        arena_printf(arena, "%zu kernels: %zu cached, %zu compiled in %.1f s%s", c->kernel.n,
                     c->kernel.n - c->build.compiled, c->build.compiled, c->build.seconds,
                     c->build.again ? arena_printf(arena, "; again, as they spilled: %zu", c->build.again) : ""));
    (c->use ? hand_over : put_report)(c);
    return ST_OK;
}

static Status made(Cubins *c)
{
    Status st = guarded(c->session.owner->ctx, cubins_body, c);
    session_close(&c->session);
    return st;
}

Status cubins_unit(vwn_context *owner, Unit *unit, const vwn_cubin_options *how, const vwn_writer *out)
{
    return made(&(Cubins){.session.owner = owner, .unit = unit, .how = how, .out = out});
}

Status cubins_make(vwn_context *owner, Unit *unit, const vwn_cubin_options *how, const CubinsUse *use)
{
    return made(&(Cubins){.session.owner = owner, .unit = unit, .how = how, .use = use});
}
