/* bench_compare.c - a measurement beside an earlier one of the same model.
 *
 * In:  the JSON object of an earlier `vwn bench`, which may be anything; a Bench.
 * Out: ratios of best times, and which of them are more than noise.
 * The one idea: the fastest of many steps is what noise disturbs least, and how far the next
 * ones lie above it says how much it does; a change counts when it is larger than that on both
 * sides.
 */
#include "bench.h"

#include <math.h>
#include <stdio.h>

static _Noreturn void refuse(Bench *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static _Noreturn void refuse(Bench *b, const char *fmt, ...)
{
    char text[400];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    ctx_raise(b->tr->ctx, ST_USAGE, "%.100s cannot be compared with: %s", b->how->against_name, text);
}

/* A number of the object; NaN when there is none. */
static double number(const Json *object, const char *key)
{
    const Json *j = json_get(object, key);
    return j && j->kind == JSON_NUMBER ? j->number : NAN;
}

/* One that a measurement has. */
static double needed(Bench *b, const Json *object, const char *key)
{
    double x = number(object, key);
    if (!(x >= 0) || isinf(x))
        refuse(b, "its `%s` is missing or no number", key);
    return x;
}

static void same_number(Bench *b, const Json *then, const char *key, const char *what, int64_t now)
{
    double was = needed(b, then, key);
    if (was != (double)now)
        refuse(b, "it has %.0f %s, this file has %lld", was, what, (long long)now);
}

const Json *bench_earlier(Bench *b)
{
    const Unit *u = b->tr->unit;
    const Train *t = u->train;
    JsonError e;
    const Json *then = json_read(b->tr->session.arena, b->how->against, b->how->against_length, &e);
    if (!then)
        refuse(b, "it is not JSON: byte %zu: %s", e.offset, e.what);
    const char *schema = then->kind == JSON_OBJECT ? json_string(then, "schema") : NULL;
    if (!schema || strcmp(schema, "vwn.bench"))
        refuse(b, "it was not written by `vwn bench --json`");
    if (number(then, "v") != BENCH_VERSION)
        refuse(b, "its schema is version %g, this vwn writes version %d", number(then, "v"), BENCH_VERSION);
    const char *model = json_string(then, "model");
    if (!model || strcmp(model, u->model->name))
        refuse(b, "it measured the model `%.80s`, this file has `%.80s`", model ? model : "?", u->model->name);
    same_number(b, then, "weights", "weights", b->weights);
    same_number(b, then, "batch", "sequences a step", t->batch_seqs);
    same_number(b, then, "micro_batch", "sequences a micro-batch", t->micro_seqs > 0 ? t->micro_seqs : t->batch_seqs);
    same_number(b, then, "context", "positions a sequence", t->context);
    const Json *step = json_get(then, "step"), *kernels = json_get(then, "kernels");
    const Json *machine = json_get(then, "machine");
    needed(b, step, "best_ms");
    needed(b, step, "spread");
    needed(b, machine, "copy_gb_s");
    needed(b, machine, "fma_gflop_s");
    if (b->how->kernels && (!kernels || kernels->kind != JSON_ARRAY))
        refuse(b, "it has no kernels: it was written without `--kernels`");
    return then;
}

/* ---- one time beside another ---- */

/* `drift`: how much the machine itself has changed. What is next to nothing of a step never
 * counts. */
static Change change(Bench *b, const char *name, const Json *then, const Samples *now, double drift)
{
    const double least = 0.03, part = 0.001, whole = b->step.best;
    Change c = {.name = name, .was = 1e-3 * needed(b, then, "best_ms"), .now = now->best};
    c.spread_then = needed(b, then, "spread");
    c.spread_now = now->spread;
    c.drift = drift;
    double noise = least + drift + now->spread + c.spread_then;
    c.ratio = c.was > 0 ? c.now / c.was : 1;
    bool counts = fabs(c.now - c.was) > part * whole;
    c.noise = noise;
    c.word = counts && c.ratio > 1 + noise ? "slower" : counts && c.ratio < 1 / (1 + noise) ? "faster" : "same";
    return c;
}

static bool same_text(const Json *object, const char *key, const char *text)
{
    const char *s = json_string(object, key);
    return s && !strcmp(s, text);
}

/* By its name; a kernel that is printed differently now, by what it computes for whom. */
static const Json *find_kernel(const Json *kernels, const BenchKernel *k, const bool *taken, bool by_name, size_t *at)
{
    *at = 0;
    for (const Json *j = kernels->first; j; j = j->next, ++*at)
        if (!taken[*at] && same_text(j, "kind", k->kind) &&
            (by_name ? same_text(j, "name", k->name) : same_text(j, "what", k->what) && same_text(j, "path", k->path)))
            return j;
    return NULL;
}

static void compare_kernels(Bench *b, const Json *kernels, double drift, Comparison *c)
{
    Arena *a = b->tr->session.arena;
    bool *taken = NEW_ARRAY(a, bool, kernels->n + 1);
    size_t at = 0;
    c->kernel = NEW_ARRAY(a, Change, b->kernel.n + 1);
    for (int round = 0; round < 2; round++)
        for (size_t i = 0; i < b->kernel.n; i++) {
            const BenchKernel *k = &b->kernel.v[i];
            const Json *then = c->kernel[i].word || (round && strcmp(k->kind, "kernel"))
                                   ? NULL
                                   : find_kernel(kernels, k, taken, round == 0, &at);
            if (!then)
                continue;
            taken[at] = true;
            c->kernel[i] = change(b, k->name, then, &k->time, drift);
        }
    for (size_t i = 0; i < b->kernel.n; i++)
        if (!c->kernel[i].word)
            c->kernel[i] =
                (Change){.name = b->kernel.v[i].name, .was = -1, .now = b->kernel.v[i].time.best, .word = "new"};
    at = 0;
    for (const Json *j = kernels->first; j; j = j->next) {
        const char *name = json_string(j, "name");
        Change gone = {.name = name ? name : "?", .now = -1, .word = "gone"};
        if (taken[at++])
            continue;
        gone.was = 1e-3 * needed(b, j, "best_ms");
        vec_push(a, &c->gone, gone);
    }
}

/* How much faster or slower the yardsticks were then, as a share; said when it is much. */
static double machine_drift(Bench *b, const Json *then, Comparison *c)
{
    Arena *a = b->tr->session.arena;
    const Json *machine = json_get(then, "machine");
    double copy = needed(b, machine, "copy_gb_s"), fma = needed(b, machine, "fma_gflop_s");
    double now_copy = 1e-9 * b->peak.copy, now_fma = 1e-9 * b->peak.fma;
    double drift = fmax(fmax(copy / now_copy, now_copy / copy), fmax(fma / now_fma, now_fma / fma));
    if (!(drift < 1.05))
        vec_push(a, &c->note,
                 arena_printf(a,
                              "the machine did %.1f GB/s and %.1f GFLOP/s and does %.1f and %.1f: "
                              "as much of a ratio may be its doing",
                              copy, fma, now_copy, now_fma));
    return drift - 1;
}

static void note_text(Bench *b, Comparison *c, const Json *then, const char *key, const char *now)
{
    const char *was = json_string(then, key);
    if (was && !strcmp(was, now))
        return;
    vec_push(b->tr->session.arena, &c->note,
             arena_printf(b->tr->session.arena, "%s was %s and is %s", key, was ? was : "?", now));
}

Comparison *bench_compare(Bench *b, const Json *then)
{
    Arena *a = b->tr->session.arena;
    Comparison *c = NEW(a, Comparison);
    const Json *kernels = b->how->kernels ? json_get(then, "kernels") : NULL;
    double drift = machine_drift(b, then, c);
    c->step = change(b, "step", json_get(then, "step"), &b->step, drift);
    if (kernels)
        compare_kernels(b, kernels, drift, c);
    note_text(b, c, then, "cpu", b->cpu);
    note_text(b, c, then, "backend", b->tr->session.backend->ops->name);
    if (b->device)
        note_text(b, c, then, "device", b->device);
    note_text(b, c, then, "precision", b->tr->train->precision);
    double threads = number(then, "threads");
    if (threads != b->tr->session.backend->threads)
        vec_push(a, &c->note, arena_printf(a, "threads were %g and are %d", threads, b->tr->session.backend->threads));
    return c;
}
