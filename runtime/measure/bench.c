/* bench.c - measures training steps and what they are made of.
 *
 * In:  a checked file.   Out: times of the step and of every kernel, against what the machine
 * can do. The one idea: it is a training run like any other, opened as a dry run, so it
 * measures the programs that training runs; it only never writes anything, and looks at the
 * clock between launches. A device notes the times itself; there steps are timed first without that, as training
 * takes them.
 */
#include "bench.h"

#include "rates.h"
#include "runtime/base/machine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

enum { STEPS = 10, WARMUP = 2 };

/* ---- samples ---- */

static int ascending(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

static void summarise(Samples *s, int64_t n, Arena *arena)
{
    ArenaMark mark = arena_mark(arena);
    double *sorted = NEW_ARRAY(arena, double, (size_t)n);
    memcpy(sorted, s->step, (size_t)n * sizeof *sorted);
    qsort(sorted, (size_t)n, sizeof *sorted, ascending);
    s->best = sorted[0];
    s->median = 0.5 * (sorted[(n - 1) / 2] + sorted[n / 2]);
    int64_t quarter = (n + 3) / 4 < n ? (n + 3) / 4 : n - 1;
    s->spread = s->best > 0 ? sorted[quarter] / s->best - 1 : 0;
    s->mean = 0;
    for (int64_t i = 0; i < n; i++)
        s->mean += sorted[i] / (double)n;
    arena_reset(arena, mark);
}

/* ---- launches and what they belong to ---- */

/* A program, how often a step runs it, and the seconds that its launches took. */
typedef struct Watched {
    Program *program;
    int64_t runs;
    double *seconds, *best; /* best: a run of each launch */
    size_t *kernel;         /* of each launch: its place in Bench.kernel */
} Watched;

/* The comment that a kernel's text begins with, on one line. */
static const char *about(Arena *a, const PlanKernel *k)
{
    const char *s = strncmp(k->text, "/*", 2) ? "" : k->text + 2, *end = strstr(s, "*/");
    Buf b = buf_new(a);
    bool space = false;
    for (; end && s < end; s++) {
        bool blank = *s == ' ' || *s == '\n';
        if (!blank && space && b.n)
            buf_putc(&b, ' ');
        if (!blank)
            buf_putc(&b, *s);
        space = blank;
    }
    return b.s;
}

/* Kernels of a kind and a name are one line of the table. */
static void describe_kernel(Arena *a, const Plan *plan, const Launch *l, BenchKernel *k)
{
    k->kind = "kernel";
    k->name = plan->kernel[l->kernel].name;
    k->what = about(a, &plan->kernel[l->kernel]);
}

static void describe_matmul(Arena *a, const Plan *plan, const Launch *l, BenchKernel *k)
{
    const PlanMatmul *m = &l->matmul;
    Buf b = buf_new(a);
    (void)plan;
    if (m->batch != 1)
        buf_printf(&b, "%lld times ", (long long)m->batch);
    buf_printf(&b, "%lld x %lld x %lld", (long long)m->m, (long long)m->n, (long long)m->k);
    if (m->transpose_a || m->transpose_b)
        buf_printf(&b, ", %s transposed", !m->transpose_b ? "left" : !m->transpose_a ? "right" : "both");
    if (m->accumulate)
        buf_puts(&b, ", added");
    if (m->half)
        buf_printf(&b, ", %s", half_word(m->half));
    k->kind = "product";
    k->name = b.s;
    k->what = "matrix product";
}

static void describe_expert(Arena *a, const Plan *plan, const Launch *l, BenchKernel *k)
{
    const PlanExpert *e = &l->expert;
    (void)plan;
    k->kind = "expert";
    k->name = arena_printf(a, "%lld experts, %lld x %lld x %lld%s%s%s", (long long)e->experts,
                           (long long)(e->tokens * e->choices), (long long)e->out, (long long)e->in,
                           e->what == EXPERT_DW ? ", dw"
                           : e->transpose_w     ? ", w transposed"
                                                : "",
                           e->half ? ", " : "", e->half ? half_word(e->half) : "");
    k->what = "matrix products by expert";
}

static void describe_copy(Arena *a, const Plan *plan, const Launch *l, BenchKernel *k)
{
    (void)plan;
    k->kind = "copy";
    k->name = arena_printf(a, "%lld x %lld bytes", (long long)l->rows, (long long)l->copy.bytes);
    k->what = "rows of a part, copied";
}

static const char *place(Bench *b, Span at)
{
    Ctx *ctx = b->tr->ctx;
    if (!at.file)
        return "";
    LineCol p = source_position(ctx, at.file, at.lo);
    return arena_printf(b->tr->session.arena, "%s:%u:%u", source_path(ctx, at.file), p.line, p.column);
}

static size_t kernel_of(Bench *b, const Plan *plan, const Launch *l)
{
    static void (*const of_kind[LAUNCH_KINDS])(Arena *, const Plan *, const Launch *, BenchKernel *) = {
#define LAUNCH(ID, name, ...) [LAUNCH_##ID] = describe_##name,
#include "compiler/plan/launches.def"
#undef LAUNCH
    };
    Arena *a = b->tr->session.arena;
    BenchKernel k = {0};
    of_kind[l->kind](a, plan, l, &k);
    for (size_t i = 0; i < b->kernel.n; i++)
        if (b->kernel.v[i].kind == k.kind && !strcmp(b->kernel.v[i].name, k.name))
            return i;
    if (l->kind == LAUNCH_MATMUL && target_multiplies(b->tr->session.backend->target, l->matmul.half))
        k.half = l->matmul.half;
    if (l->kind == LAUNCH_EXPERT)
        k.half = l->expert.half;
    k.path = l->name ? l->name : "";
    k.source = place(b, l->span);
    k.time.step = NEW_ARRAY(a, double, (size_t)b->steps);
    vec_push(a, &b->kernel, k);
    return b->kernel.n - 1;
}

/* Launches that make copies of weights are none of a step. */
static void watch(Bench *b, Watched *w)
{
    Arena *a = b->tr->session.arena;
    const Plan *plan = program_plan(w->program);
    w->seconds = NEW_ARRAY(a, double, plan->n_launch + 1);
    w->best = NEW_ARRAY(a, double, plan->n_launch + 1);
    w->kernel = NEW_ARRAY(a, size_t, plan->n_launch + 1);
    for (size_t i = plan->n_cast; i < plan->n_launch; i++) {
        const Launch *l = &plan->launch[i];
        w->kernel[i] = kernel_of(b, plan, l);
        BenchKernel *k = &b->kernel.v[w->kernel[i]];
        k->launches += w->runs;
        k->bytes += (double)w->runs * l->bytes;
        k->flops += (double)w->runs * l->flops;
        LaunchShape shape;
        if (b->device && program_shape(w->program, i, &shape) && shape.blocks > k->shape.blocks)
            k->shape = shape;
    }
    program_watch(w->program, w->seconds);
}

/* What the launches need at the speed of the yardsticks. */
static void find_bounds(Bench *b, const Watched *w)
{
    const Plan *plan = program_plan(w->program);
    for (size_t i = plan->n_cast; i < plan->n_launch; i++) {
        const Launch *l = &plan->launch[i];
        BenchKernel *k = &b->kernel.v[w->kernel[i]];
        double bound = fmax(l->bytes / b->peak.copy, l->flops / bench_peak(b, k->half));
        k->bound += (double)w->runs * bound;
        b->bound += (double)w->runs * bound;
    }
}

/* What a step takes when each launch is at its best, and what it should take. */
static void find_estimate(Bench *b, const Watched *w, size_t n)
{
    Estimate sum = {0};
    Rates rates;
    char why[512];
    b->estimated = rates_find(b->tr->session.owner, &rates, why);
    if (!rates.device[0] != !b->device) /* a run that was too large for the GPU is on the CPU */
        b->estimated = false;
    for (size_t i = 0; i < n; i++) {
        const Plan *plan = program_plan(w[i].program);
        for (size_t k = plan->n_cast; k < plan->n_launch; k++)
            b->kernel.v[w[i].kernel[k]].floor += (double)w[i].runs * w[i].best[k];
        for (size_t k = plan->n_cast; b->estimated && k < plan->n_launch; k++)
            b->kernel.v[w[i].kernel[k]].estimate +=
                (double)w[i].runs * estimate_launch(&rates, &plan->launch[k], estimate_plan_bytes(plan));
        if (b->estimated)
            estimate_add(&sum, &rates, plan, w[i].runs);
    }
    for (size_t i = 0; i < b->kernel.n; i++)
        b->launches += b->kernel.v[i].floor;
    b->estimate = estimate_seconds(&sum);
}

/* ---- the steps ---- */

/* Not further than the file trains: rates and weights are those of its steps. */
static void take_step(Trainer *tr)
{
    if (tr->now.step >= tr->steps)
        tr->now.step = 0;
    train_step(tr, tr->queue.decides && tr->now.step + 1 < tr->steps);
}

static void timed_step(Bench *b, int64_t at)
{
    const Backend *device = b->tr->session.backend;
    double began = clock_seconds(), waited = device->waited;
    take_step(b->tr);
    b->step.step[at] = b->outside.step[at] = clock_seconds() - began;
    b->waited.step[at] = device->waited - waited;
}

static void watched_step(Bench *b, Watched *w, size_t n, int64_t at)
{
    for (size_t i = 0; i < n; i++)
        memset(w[i].seconds, 0, program_plan(w[i].program)->n_launch * sizeof *w[i].seconds);
    if (b->device)
        take_step(b->tr);
    else
        timed_step(b, at);
    for (size_t i = 0; i < n; i++)
        for (size_t k = program_plan(w[i].program)->n_cast; k < program_plan(w[i].program)->n_launch; k++) {
            double each = w[i].seconds[k] / (double)w[i].runs;
            w[i].best[k] = at && w[i].best[k] < each ? w[i].best[k] : each;
            b->kernel.v[w[i].kernel[k]].time.step[at] += w[i].seconds[k];
            b->outside.step[at] -= w[i].seconds[k];
        }
}

static int costlier(const void *x, const void *y)
{
    const BenchKernel *a = x, *b = y;
    if (a->time.mean != b->time.mean)
        return a->time.mean < b->time.mean ? 1 : -1;
    return strcmp(a->name, b->name);
}

static void measure(Bench *b)
{
    Trainer *tr = b->tr;
    Arena *a = tr->session.arena;
    Watched w[3 + 2 * LOOP_LANES_LEVELS];
    size_t n = 0;
    b->step.step = NEW_ARRAY(a, double, (size_t)b->steps);
    b->outside.step = NEW_ARRAY(a, double, (size_t)b->steps);
    b->waited.step = NEW_ARRAY(a, double, (size_t)b->steps);
    for (int64_t i = 0; b->device && i < b->warmup + b->steps; i++)
        timed_step(b, i < b->warmup ? 0 : i - b->warmup);
    w[n++] = (Watched){.program = tr->program.fresh, .runs = tr->lanes.here};
    if (tr->program.more)
        w[n++] = (Watched){.program = tr->program.more, .runs = tr->parts - tr->lanes.all};
    for (int i = 0; i < lanes_levels(&tr->lanes);
         i++) { /* half as many as on the level below, and the last sum is not kept */
        w[n++] = (Watched){.program = tr->program.keep[i], .runs = tr->lanes.here >> (i + 1)};
        w[n++] = (Watched){.program = tr->program.join[i], .runs = tr->lanes.here >> (i + 1)};
    }
    w[n++] = (Watched){.program = tr->program.update, .runs = 1};
    for (size_t i = 0; i < n; i++)
        watch(b, &w[i]);
    for (int64_t i = 0; i < b->warmup; i++)
        take_step(tr);
    for (int64_t i = 0; i < b->steps; i++)
        watched_step(b, w, n, i);
    struct rusage use;
    getrusage(RUSAGE_SELF, &use); /* before the yardsticks take memory of their own */
    b->resident_peak = (uint64_t)use.ru_maxrss << 10;
    char why[512];
    Half half = HALF_NONE;
    for (size_t i = 0; i < b->kernel.n; i++)
        half = b->kernel.v[i].half ? b->kernel.v[i].half : half;
    if (!peak_measure(tr->session.backend, a, half, &b->peak, why))
        ctx_raise(tr->ctx, ST_ENVIRONMENT, "the machine could not be measured: %s", why);
    for (size_t i = 0; i < n; i++)
        find_bounds(b, &w[i]);
    find_estimate(b, w, n);
    summarise(&b->step, b->steps, a);
    summarise(&b->outside, b->steps, a);
    summarise(&b->waited, b->steps, a);
    for (size_t i = 0; i < b->kernel.n; i++)
        summarise(&b->kernel.v[i].time, b->steps, a);
    qsort(b->kernel.v, b->kernel.n, sizeof *b->kernel.v, costlier);
}

/* ---- opening ---- */

static void open_data(Bench *b)
{
    Trainer *tr = b->tr;
    const Train *t = tr->unit->train;
    const Model *m = tr->unit->model;
    if (!m || !t || data_is_there(&tr->session, &t->data))
        return; /* train_open says what is missing, or opens the data */
    DataOptions how = {.spec = &t->data, .tokenizer = &t->tokenizer, .context = t->context, .model = m};
    tr->data = data_synthetic(&tr->session, &how);
    b->synthetic = true;
}

static uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }

static void open_run(Bench *b)
{
    Trainer *tr = b->tr;
    double began = clock_seconds();
    open_data(b);
    train_open(tr);
    if (b->synthetic)
        train_event(tr, VWN_EVENT_NOTE, "the data of the file is not there: measuring with random data");
    if (!tr->session.backend)
        ctx_raise(tr->ctx, ST_ENVIRONMENT, "there is nothing to measure without compiled kernels: %s",
                  tr->session.note[0] ? tr->session.note : "the reference evaluator was asked for");
    if (tr->session.backend->ops->say) {
        char name[256];
        tr->session.backend->ops->say(tr->session.backend, name);
        *strrchr(name, ',') = 0; /* how much is free is of this moment */
        b->device = arena_copy(tr->session.arena, name, strlen(name));
    }
    b->plan = tr->build.plan_seconds;
    b->kernels = tr->build.seconds;
    b->open = clock_seconds() - began - b->plan - b->kernels;
    began = clock_seconds();
    take_step(tr);
    b->first = clock_seconds() - began;
    const Program *all[] = {tr->program.fresh, tr->program.more, tr->program.update};
    for (size_t i = 0; i < COUNT_OF(all); i++)
        if (all[i])
            b->arena_bytes = larger(b->arena_bytes, program_arena_bytes(all[i]));
    Buf cpu = buf_new(tr->session.arena);
    machine_processor(&cpu);
    b->cpu = cpu.s;
}

/* ---- the call ---- */

typedef struct BenchCall {
    Bench *b;
    const vwn_writer *out;
} BenchCall;

static Status open_body(void *user)
{
    Trainer *tr = user;
    session_open(&tr->session, tr->session.owner);
    return ST_OK;
}

static Status bench_body(void *user)
{
    BenchCall *c = user;
    Bench *b = c->b;
    const Model *m = b->tr->file->model;
    for (size_t i = 0; m && i < m->param.n; i++)
        b->weights += m->param.v[i].buffer ? 0 : m->param.v[i].elements;
    bool whole = m && b->tr->file->train; /* else train_open says what is missing */
    const Json *then = whole && b->how->against ? bench_earlier(b) : NULL;
    open_run(b);
    measure(b);
    const Comparison *compared = then ? bench_compare(b, then) : NULL;
    Buf text = buf_new(b->tr->session.arena);
    (b->how->json ? bench_json : bench_text)(&text, b, compared);
    c->out->put(c->out->user, text.s, text.n);
    return ST_OK;
}

/* A run keeps its file; here is none to keep. */
static char *no_text(Unit *unit, Arena *arena)
{
    (void)unit;
    return arena_copy(arena, "", 0);
}

Status bench_unit(vwn_context *owner, Unit *unit, double check_seconds, const vwn_bench_options *how,
                  const vwn_writer *out, const Hooks *hooks)
{
    /* the steps alone: nothing of what stands between them, and the model before it grows */
    Unit alone = *unit;
    Train train = unit->train ? *unit->train : (Train){0};
    train.eval_every = 0;
    alone.train = unit->train ? &train : NULL;
    alone.grow.n = 0;
    Hooks plain = *hooks;
    plain.resolved_text = no_text;
    vwn_train_options dry = {.dry_run = true, .event = how->event, .user = how->user};
    Trainer tr = {.ctx = owner->ctx,
                  .file = &alone,
                  .unit = &alone,
                  .how = &dry,
                  .hooks = &plain,
                  .now = progress_none,
                  .saved_at = -1,
                  .evaluated_at = -1,
                  .session = {.owner = owner}};
    Bench b = {
        .tr = &tr, .how = how, .steps = how->steps > 0 ? how->steps : STEPS, .warmup = WARMUP, .check = check_seconds};
    BenchCall call = {&b, out};
    tr.report.began = clock_seconds();
    Status st = guarded(tr.ctx, open_body, &tr);
    if (st == ST_OK)
        st = guarded(tr.ctx, bench_body, &call);
    session_close(&tr.session);
    return st;
}
