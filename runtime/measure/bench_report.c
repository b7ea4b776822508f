/* bench_report.c - a measurement as text for people, or as the object that vwn.h describes.
 *
 * In:  a Bench, and a Comparison or NULL.   Out: lines.
 * The one idea: shares are of the best time, for the best of many steps is the one the machine
 * disturbed least; medians stand beside it.
 */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>

#include "compiler/report/report.h"

/* ---- text ---- */

static void right(Table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void right(Table *t, const char *fmt, ...)
{
    char text[64];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    vec_push(t->arena, &t->cell, ((Cell){arena_copy(t->arena, text, strlen(text)), true}));
}

static double per_second(double amount, const Samples *s) { return s->best > 0 ? amount / s->best : 0; }

static int64_t tokens(const Bench *b) { return b->tr->train->batch_seqs * b->tr->train->context; }

static void step_lines(Buf *out, const Bench *b)
{
    const Trainer *tr = b->tr;
    Arena *a = tr->session.arena;
    double best = (double)tokens(b) / b->step.best, median = (double)tokens(b) / b->step.median;
    buf_printf(out, "%s: ", tr->model->name);
    buf_count(out, b->weights);
    buf_printf(out, " weights, %lld x %lld tokens a step", (long long)tr->train->batch_seqs,
               (long long)tr->train->context);
    if (tr->parts > 1)
        buf_printf(out, " in %lld parts", (long long)tr->parts);
    buf_printf(out, ", %s, ", tr->train->precision);
    if (b->device)
        buf_puts(out, b->device);
    else
        buf_printf(out, "%d threads", tr->session.backend->threads);
    buf_printf(out, "%s\n\n", b->synthetic ? ", random data" : "");
    buf_printf(out, "  step       best %.2f ms, median %.2f ms of %lld\n", 1e3 * b->step.best, 1e3 * b->step.median,
               (long long)b->steps);
    buf_printf(out, "  floor      %.2f ms, each kernel and product at its best", 1e3 * b->launches);
    if (b->estimated)
        buf_printf(out, "; estimated %.2f ms, %.2f of that", 1e3 * b->estimate, b->estimate / b->launches);
    buf_puts(out, "\n");
    buf_puts(out, "  tokens/s   best ");
    buf_count(out, (int64_t)best);
    buf_puts(out, ", median ");
    buf_count(out, (int64_t)median);
    buf_puts(out, "\n");
    if (b->device)
        buf_printf(out, "  host       queues a step in %.2f ms, then waits for the GPU for %.2f ms (medians)\n",
                   1e3 * (b->step.median - b->waited.median), 1e3 * b->waited.median);
    buf_printf(out,
               "  roofline   bound %.2f ms, %.0f %% of the best, %.0f %% of the median\n"
               "             copy %.1f GB/s over %s%s, ",
               1e3 * b->bound, 100 * b->bound / b->step.best, 100 * b->bound / b->step.median, 1e-9 * b->peak.copy,
               bytes_text(a, (double)b->peak.copy_bytes),
               !b->peak.cut ? ""
               : b->device  ? " (less than is usual, for want of memory)"
                            : " (less than four times the cache, for want of memory)");
    if (b->device)
        buf_printf(out, "product of random %lld x %lld ", (long long)b->peak.size, (long long)b->peak.size);
    else
        buf_puts(out, "multiply-add ");
    buf_printf(out, "%.1f GFLOP/s", 1e-9 * b->peak.fma);
    if (b->peak.of_half > 0)
        buf_printf(out, ", in %s %.1f", half_word(b->peak.half), 1e-9 * b->peak.of_half);
    buf_printf(out, "\n  memory     arena %s, with all tensors %s; resident at most %s\n",
               bytes_text(a, (double)b->arena_bytes), bytes_text(a, (double)tr->bytes),
               bytes_text(a, (double)b->resident_peak));
    buf_printf(out,
               "  start-up   check %.0f ms, plan %.0f ms, kernels %.0f ms (%d cached, %d "
               "compiled), open %.0f ms, first step %.0f ms\n",
               1e3 * b->check, 1e3 * b->plan, 1e3 * b->kernels, tr->build.cached, tr->build.compiled, 1e3 * b->open,
               1e3 * b->first);
}

static void kernel_header(Table *t, const Bench *b, const Comparison *c)
{
    static const char *const shape[] = {"blocks", "an SM", "waves", "registers"};
    static const char *const words[] = {"launches", "ms", "share", "GB/s", "of copy", "GFLOP/s", "of peak"};
    for (size_t i = 0; i < COUNT_OF(words); i++)
        right(t, "%s", words[i]);
    for (size_t i = 0; b->device && i < COUNT_OF(shape); i++)
        right(t, "%s", shape[i]);
    if (c) {
        right(t, "was");
        right(t, "ratio");
        table_text(t, "change");
    }
    table_text(t, "kernel");
    table_text(t, "for");
    table_text(t, "what it computes");
}

/* Of products only the library knows it. */
static void shape_cells(Table *t, const LaunchShape *s)
{
    if (!s->blocks) {
        for (int i = 0; i < 4; i++)
            right(t, "-");
        return;
    }
    right(t, "%lld", (long long)s->blocks);
    right(t, "%d", s->blocks_sm);
    right(t, "%.2f", s->waves);
    right(t, "%d%s", s->registers, s->spills ? " spilled" : "");
}

static void kernel_row(Table *t, const Bench *b, size_t i, const Comparison *c)
{
    const BenchKernel *k = &b->kernel.v[i];
    double bytes = per_second(k->bytes, &k->time), flops = per_second(k->flops, &k->time);
    right(t, "%lld", (long long)k->launches);
    right(t, "%.3f", 1e3 * k->time.best);
    right(t, "%.1f %%", 100 * k->time.mean / b->step.mean);
    right(t, "%.1f", 1e-9 * bytes);
    right(t, "%.0f %%", 100 * bytes / b->peak.copy);
    if (k->flops > 0) {
        right(t, "%.1f", 1e-9 * flops);
        right(t, "%.0f %%", 100 * flops / bench_peak(b, k->half));
    } else {
        right(t, "-");
        right(t, "-");
    }
    if (b->device)
        shape_cells(t, &k->shape);
    if (c && c->kernel[i].was >= 0) {
        right(t, "%.3f", 1e3 * c->kernel[i].was);
        right(t, "%.2f", c->kernel[i].ratio);
    } else if (c) {
        right(t, "-");
        right(t, "-");
    }
    if (c)
        table_text(t, c->kernel[i].word);
    table_text(t, k->name);
    table_text(t, *k->path ? k->path : "-");
    table_text(t, k->what);
}

static void kernel_lines(Buf *out, const Bench *b, const Comparison *c)
{
    Table t = {.arena = b->tr->session.arena, .columns = (c ? 13 : 10) + (b->device ? 4 : 0)};
    kernel_header(&t, b, c);
    for (size_t i = 0; i < b->kernel.n; i++)
        kernel_row(&t, b, i, c);
    buf_puts(out, "\n");
    table_print(out, &t);
    buf_printf(out,
               "\n  %.2f ms of a step (median) pass outside of kernels. Bytes are those that must "
               "move;\n  what stays in a cache can be faster than a copy.\n",
               1e3 * b->outside.median);
    if (b->device)
        buf_puts(out, "  Times of kernels are of the GPU's own clock, in steps behind those that were timed whole;\n"
                      "  waves are of the launch with the most blocks.\n");
}

static void comparison_lines(Buf *out, const Bench *b, const Comparison *c)
{
    buf_printf(out, "\n  against    %s: best step was %.2f ms, ratio %.3f: %s\n", b->how->against_name,
               1e3 * c->step.was, c->step.ratio, c->step.word);
    buf_printf(out,
               "             noise hides %s below %.1f %%: steps varied by %.1f %% then and %.1f %% now, the machine "
               "by %.1f %%, and 3 %% are\n"
               "             never counted%s\n",
               strcmp(c->step.word, "same") ? "changes" : "a change", 1e2 * c->step.noise, 1e2 * c->step.spread_then,
               1e2 * c->step.spread_now, 1e2 * c->step.drift,
               strcmp(c->step.word, "same") ? "" : "; more --steps on an idle machine may tell");
    for (size_t i = 0; i < c->note.n; i++)
        buf_printf(out, "             %s\n", c->note.v[i]);
    for (size_t i = 0; i < c->gone.n; i++)
        buf_printf(out, "             gone: %s, %.3f ms\n", c->gone.v[i].name, 1e3 * c->gone.v[i].was);
}

void bench_text(Buf *out, const Bench *b, const Comparison *c)
{
    step_lines(out, b);
    if (b->how->kernels)
        kernel_lines(out, b, c);
    if (c)
        comparison_lines(out, b, c);
}

/* ---- JSON ---- */

/* Six digits: what lies behind them is noise. */
static void put(JsonText *t, const char *key, double x)
{
    char text[32];
    snprintf(text, sizeof text, "%.6g", x);
    json_put_number(t, key, strtod(text, NULL));
}

static void put_model(JsonText *t, const Bench *b)
{
    const Trainer *tr = b->tr;
    json_put_string(t, "schema", "vwn.bench");
    json_put_integer(t, "v", BENCH_VERSION);
    json_put_string(t, "vwn", vwn_version());
    json_put_string(t, "build", vwn_build_id());
    json_put_string(t, "file", tr->unit->path);
    json_put_string(t, "model", tr->model->name);
    json_put_integer(t, "weights", b->weights);
    json_put_integer(t, "batch", tr->train->batch_seqs);
    json_put_integer(t, "micro_batch", tr->micro);
    json_put_integer(t, "context", tr->train->context);
    json_put_integer(t, "tokens_per_step", tokens(b));
    json_put_string(t, "precision", tr->train->precision);
    json_put_string(t, "data", b->synthetic ? "synthetic" : "file");
    json_put_integer(t, "threads", tr->session.backend->threads);
    json_put_string(t, "cpu", b->cpu);
    json_put_string(t, "backend", tr->session.backend->ops->name);
    if (b->device)
        json_put_string(t, "device", b->device);
}

static void put_step(JsonText *t, const Bench *b)
{
    json_open(t, "machine", '{');
    put(t, "copy_gb_s", 1e-9 * b->peak.copy);
    json_put_integer(t, "copy_bytes", (int64_t)b->peak.copy_bytes);
    put(t, "fma_gflop_s", 1e-9 * b->peak.fma);
    if (b->peak.of_half > 0)
        put(t, arena_printf(b->tr->session.arena, "%s_gflop_s", half_word(b->peak.half)), 1e-9 * b->peak.of_half);
    if (b->device)
        json_put_integer(t, "multiprocessors", b->tr->session.backend->multiprocessors);
    json_close(t, '}');
    json_open(t, "step", '{');
    json_put_integer(t, "timed", b->steps);
    json_put_integer(t, "warmup", b->warmup);
    put(t, "best_ms", 1e3 * b->step.best);
    put(t, "median_ms", 1e3 * b->step.median);
    put(t, "mean_ms", 1e3 * b->step.mean);
    put(t, "spread", b->step.spread);
    put(t, "outside_ms", 1e3 * b->outside.median);
    if (b->device) {
        put(t, "host_ms", 1e3 * (b->step.median - b->waited.median));
        put(t, "waited_ms", 1e3 * b->waited.median);
    }
    put(t, "launches_ms", 1e3 * b->launches);
    if (b->estimated)
        put(t, "estimate_ms", 1e3 * b->estimate);
    json_open(t, "times_ms", '[');
    for (int64_t i = 0; i < b->steps; i++)
        put(t, NULL, 1e3 * b->step.step[i]);
    json_close(t, ']');
    json_close(t, '}');
    json_open(t, "tokens_s", '{');
    put(t, "best", (double)tokens(b) / b->step.best);
    put(t, "median", (double)tokens(b) / b->step.median);
    json_close(t, '}');
    json_open(t, "roofline", '{');
    put(t, "bound_ms", 1e3 * b->bound);
    put(t, "share_best", b->bound / b->step.best);
    put(t, "share_median", b->bound / b->step.median);
    json_close(t, '}');
}

static void put_start(JsonText *t, const Bench *b)
{
    const Trainer *tr = b->tr;
    json_open(t, "memory", '{');
    json_put_integer(t, "arena_bytes", (int64_t)b->arena_bytes);
    json_put_integer(t, "tensor_bytes", (int64_t)(tr->bytes - b->arena_bytes));
    json_put_integer(t, "resident_peak_bytes", (int64_t)b->resident_peak);
    json_close(t, '}');
    json_open(t, "startup", '{');
    put(t, "check_ms", 1e3 * b->check);
    put(t, "plan_ms", 1e3 * b->plan);
    put(t, "kernels_ms", 1e3 * b->kernels);
    put(t, "open_ms", 1e3 * b->open);
    put(t, "first_step_ms", 1e3 * b->first);
    put(t, "total_ms", 1e3 * (b->check + b->plan + b->kernels + b->open + b->first));
    json_put_integer(t, "kernels", tr->build.kernels);
    json_put_integer(t, "cached", tr->build.cached);
    json_put_integer(t, "compiled", tr->build.compiled);
    json_close(t, '}');
}

static void put_shape(JsonText *t, const LaunchShape *s)
{
    json_put_integer(t, "blocks", s->blocks);
    json_put_integer(t, "threads", s->threads);
    json_put_integer(t, "blocks_sm", s->blocks_sm);
    put(t, "waves", s->waves);
    json_put_integer(t, "registers", s->registers);
    json_put_integer(t, "shared", s->shared);
    json_put_integer(t, "spills", s->spills);
}

static void put_kernels(JsonText *t, const Bench *b)
{
    json_open(t, "kernels", '[');
    for (size_t i = 0; i < b->kernel.n; i++) {
        const BenchKernel *k = &b->kernel.v[i];
        json_open(t, NULL, '{');
        json_put_string(t, "kind", k->kind);
        json_put_string(t, "name", k->name);
        json_put_string(t, "what", k->what);
        json_put_string(t, "path", k->path);
        json_put_string(t, "source", k->source);
        json_put_integer(t, "launches", k->launches);
        put(t, "best_ms", 1e3 * k->time.best);
        put(t, "median_ms", 1e3 * k->time.median);
        put(t, "spread", k->time.spread);
        put(t, "share", k->time.mean / b->step.mean);
        json_put_number(t, "bytes", k->bytes);
        json_put_number(t, "flops", k->flops);
        put(t, "bound_ms", 1e3 * k->bound);
        put(t, "launches_ms", 1e3 * k->floor);
        if (b->estimated)
            put(t, "estimate_ms", 1e3 * k->estimate);
        if (k->shape.blocks)
            put_shape(t, &k->shape);
        json_close(t, '}');
    }
    json_close(t, ']');
}

static void put_change(JsonText *t, const char *key, const Change *c)
{
    json_open(t, key, '{');
    json_put_string(t, "name", c->name);
    if (c->was >= 0)
        put(t, "was_ms", 1e3 * c->was);
    if (c->was >= 0 && c->now >= 0)
        put(t, "ratio", c->ratio);
    if (c->was >= 0 && c->now >= 0)
        put(t, "noise", c->noise);
    if (c->now >= 0)
        json_put_string(t, "change", c->word);
    json_close(t, '}');
}

static void put_comparison(JsonText *t, const Bench *b, const Comparison *c)
{
    json_open(t, "against", '{');
    json_put_string(t, "name", b->how->against_name);
    put_change(t, "step", &c->step);
    json_open(t, "kernels", '[');
    for (size_t i = 0; c->kernel && i < b->kernel.n; i++)
        put_change(t, NULL, &c->kernel[i]);
    json_close(t, ']');
    json_open(t, "gone", '[');
    for (size_t i = 0; i < c->gone.n; i++)
        put_change(t, NULL, &c->gone.v[i]);
    json_close(t, ']');
    json_open(t, "notes", '[');
    for (size_t i = 0; i < c->note.n; i++)
        json_put_string(t, NULL, c->note.v[i]);
    json_close(t, ']');
    json_close(t, '}');
}

void bench_json(Buf *out, const Bench *b, const Comparison *c)
{
    JsonText t = {.full = true};
    for (size_t cap = 1 << 14; t.full; cap *= 2) {
        json_begin(&t, arena_alloc(b->tr->session.arena, cap), cap);
        json_open(&t, NULL, '{');
        put_model(&t, b);
        put_step(&t, b);
        put_start(&t, b);
        if (b->how->kernels)
            put_kernels(&t, b);
        if (c)
            put_comparison(&t, b, c);
        json_close(&t, '}');
    }
    buf_put(out, t.s, t.n);
    buf_putc(out, '\n');
}
