/* fit_read.c - see fit.h: kernels that were predicted and measured, from JSON lines, and what a fit
 * says of them. */
#include "fit.h"

#include <math.h>
#include <stdio.h>

#include "compiler/report/report.h"
#include "runtime/base/json.h"

typedef struct Reading {
    Arena *arena;
    VEC(FitKernel) predicted, measured; /* seconds of what is predicted: 0 */
} Reading;

static double number(const Json *o, const char *key)
{
    const Json *x = o ? json_get(o, key) : NULL;
    return x && x->kind == JSON_NUMBER ? x->number : 0;
}

/* "product": [m, n, k, batch], "half" */
static void read_product(const Json *o, FitKernel *k)
{
    const Json *x = json_get(o, "product"), *half = json_get(o, "half");
    double *const at[] = {&k->m, &k->n, &k->k, &k->batch};
    const Json *item = x && x->kind == JSON_ARRAY ? x->first : NULL;
    for (size_t i = 0; i < COUNT_OF(at); i++, item = item ? item->next : NULL)
        *at[i] = item && item->kind == JSON_NUMBER ? item->number : i == 3 ? 1 : 0;
    k->half = half && half->kind == JSON_TRUE;
}

static FitKernel read_kernel(const Json *o)
{
    const Json *class = json_get(o, "classes"), *unit = json_get(o, "units");
    const char *program = json_string(o, "program"), *kernel = json_string(o, "kernel");
    FitKernel k = {.program = program ? program : "", .kernel = kernel ? kernel : ""};
    GpuCounts *c = &k.perf.counts;
    k.perf.blocks = (int64_t)number(o, "blocks");
    k.perf.resident = (int)number(o, "resident");
    k.perf.bytes = number(o, "bytes");
    c->slots = number(o, "instructions");
    c->wavefronts = number(o, "shared_cycles");
    c->operands = number(o, "operand_cycles");
    c->lines = number(o, "lines");
    c->sectors_missed = number(o, "sectors_missed");
    c->sectors_written = number(o, "sectors_written");
    c->tensor = number(o, "multiply_adds");
    c->grouped = number(o, "grouped");
    c->cycles = number(o, "block_cycles");
    for (int i = 0; i < SASS_CLASSES; i++)
        c->class[i] = number(class, sass_class_name[i]);
    for (int i = 0; i < UNIT_COUNT; i++)
        c->unit[i] = number(unit, sass_unit_name[i]);
    read_product(o, &k);
    return k;
}

static bool read_line(Reading *r, const char *text, size_t n, char why[256])
{
    JsonError error;
    const Json *o = json_read(r->arena, text, n, &error);
    if (!o || o->kind != JSON_OBJECT) {
        snprintf(why, 256, "a line is no object: %s", o ? "another value" : error.what);
        return false;
    }
    const char *event = json_string(o, "event");
    if (event && !strcmp(event, "predicted"))
        vec_push(r->arena, &r->predicted, read_kernel(o));
    if (!event || strcmp(event, "measured"))
        return true;
    FitKernel k = read_kernel(o);
    k.seconds = number(o, "seconds");
    if (!(k.seconds > 0) || !*k.kernel) {
        snprintf(why, 256, "a measured kernel has no name or takes no time");
        return false;
    }
    vec_push(r->arena, &r->measured, k);
    return true;
}

/* What was predicted of a measured kernel; NULL: nothing. */
static const FitKernel *find(const Reading *r, const FitKernel *k)
{
    for (size_t i = 0; i < r->predicted.n; i++) {
        const FitKernel *p = &r->predicted.v[i];
        if (!strcmp(p->kernel, k->kernel) && (!*k->program || !strcmp(p->program, k->program)) &&
            (!k->perf.blocks || k->perf.blocks == p->perf.blocks))
            return p;
    }
    return NULL;
}

bool fit_read(Arena *arena, const char *text, size_t n, FitKernel **kernel, size_t *n_kernel, size_t *lost,
              char why[256])
{
    Reading r = {.arena = arena};
    size_t length;
    for (size_t at = 0; at < n; at += length + 1) {
        const char *end = memchr(text + at, '\n', n - at);
        length = end ? (size_t)(end - text) - at : n - at;
        if (length && !read_line(&r, text + at, length, why))
            return false;
    }
    *kernel = NEW_ARRAY(arena, FitKernel, r.measured.n + 1);
    *n_kernel = *lost = 0;
    for (size_t i = 0; i < r.measured.n; i++) {
        FitKernel k = r.measured.v[i];
        const FitKernel *p = k.m > 0 ? &k : find(&r, &k);
        if (!p) {
            ++*lost;
            continue;
        }
        FitKernel *to = &(*kernel)[(*n_kernel)++];
        *to = *p;
        to->seconds = k.seconds;
    }
    if (!*n_kernel)
        snprintf(why, 256, "no kernel is both measured and predicted");
    return *n_kernel > 0;
}

/* ---- what is said ---- */

static void put_json(const Fit *f, const FitKernel *k, size_t n, Buf *out)
{
    buf_printf(out, "{\"v\":1,\"event\":\"fitted\",\"gpu\":\"%s\",\"kernels\":%zu,\"rms_before\":", f->gpu.name, n);
    buf_json_number(out, f->rms_before);
    buf_puts(out, ",\"rms\":");
    buf_json_number(out, f->rms);
    buf_puts(out, ",\"constants\":{");
    for (int i = 0; i < FIT_CONSTANTS; i++) {
        const FitConstant *c = &f->constant[i];
        const double of[] = {c->before, c->value, c->error};
        static const char *const names[] = {"before", "value", "error"};
        buf_printf(out, "%s\"%s\":{", i ? "," : "", c->name);
        for (size_t j = 0; j < COUNT_OF(of); j++) {
            buf_printf(out, "%s\"%s\":", j ? "," : "", names[j]);
            buf_json_number(out, of[j]);
        }
        buf_puts(out, "}");
    }
    buf_puts(out, "}}\n");
    for (size_t i = 0; i < n; i++) {
        const double of[] = {k[i].seconds, k[i].before, k[i].after};
        static const char *const names[] = {"measured", "before", "predicted"};
        buf_puts(out, "{\"v\":1,\"event\":\"residual\",\"program\":");
        buf_json_string(out, k[i].program, strlen(k[i].program));
        buf_puts(out, ",\"kernel\":");
        buf_json_string(out, k[i].kernel, strlen(k[i].kernel));
        for (size_t j = 0; j < COUNT_OF(of); j++) {
            buf_printf(out, ",\"%s\":", names[j]);
            buf_json_number(out, of[j]);
        }
        buf_puts(out, "}\n");
    }
}

static void head(Table *t, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        table_text(t, names[i]);
}

static void put_text(const Fit *f, const FitKernel *k, size_t n, Buf *out)
{
    static const char *const of_constants[] = {"constant", "before", "fitted", "error"};
    static const char *const of_kernels[] = {"kernel", "program", "measured us", "before", "fitted", "off"};
    Arena *a = out->arena;
    Table t = {.arena = a, .columns = COUNT_OF(of_constants)}, u = {.arena = a, .columns = COUNT_OF(of_kernels)};
    buf_printf(out,
               "%s: %zu kernels, %.1f %% off in the mean with the constants of the table, %.1f %% "
               "with those that were fitted\n",
               f->gpu.people, n, 100 * f->rms_before, 100 * f->rms);
    head(&t, of_constants, COUNT_OF(of_constants));
    for (int i = 0; i < FIT_CONSTANTS; i++) {
        const FitConstant *c = &f->constant[i];
        table_text(&t, c->name);
        table_right(&t, arena_printf(a, "%.4g", c->before));
        table_right(&t, arena_printf(a, "%.4g", c->value));
        table_right(&t, arena_printf(a, "%.1f %%", 100 * c->error));
    }
    table_print(out, &t);
    head(&u, of_kernels, COUNT_OF(of_kernels));
    for (size_t i = 0; i < n; i++) {
        table_text(&u, k[i].kernel);
        table_text(&u, k[i].program);
        table_right(&u, arena_printf(a, "%.2f", 1e6 * k[i].seconds));
        table_right(&u, arena_printf(a, "%.2f", 1e6 * k[i].before));
        table_right(&u, arena_printf(a, "%.2f", 1e6 * k[i].after));
        table_right(&u, arena_printf(a, "%+.0f %%", 100 * (k[i].after / k[i].seconds - 1)));
    }
    table_print(out, &u);
}

void fit_report(const Fit *f, const FitKernel *k, size_t n, Buf *out, bool json)
{
    (json ? put_json : put_text)(f, k, n, out);
}
