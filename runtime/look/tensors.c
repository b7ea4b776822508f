/* tensors.c - `vwn inspect --stats`: numbers of every tensor of a checkpoint; and `vwn diff` of two checkpoints.
 *
 * In:  a run, a checkpoint of it, or any safetensors file.   Out: a row for each tensor.
 * The one idea: tensors are streamed in blocks, so memory does not depend on them; means and squares of blocks are put together
 * so that no large sum loses small numbers.
 */
#include <math.h>
#include <stdlib.h>

#include "compiler/growth/growth.h"
#include "compiler/report/report.h"
#include "difference.h"
#include "runtime/checkpoint/source.h"
#include "look.h"

enum { BLOCK = 1 << 14 };

static void read_block(Session *s, const SafeFile *f, const SafeTensor *t, int64_t at, int64_t n, double *v)
{
    char why[WHY];
    if (!safe_read(f, t, at, n, v, why))
        ctx_raise(s->ctx, ST_ENVIRONMENT, "%s", why);
}

static const char *shape_text(Arena *a, const SafeTensor *t)
{
    Buf b = buf_new(a);
    for (int k = 0; k < t->rank; k++)
        buf_printf(&b, "%s%lld", k ? ", " : "[", (long long)t->d[k]);
    buf_puts(&b, t->rank ? "]" : "[]");
    return b.s;
}

static bool is_wanted(const SafeTensor *t, const char *selector, bool states)
{
    return (states || !checkpoint_is_state(t->name)) && (!selector || growth_selects(selector, t->name));
}

/* ---- statistics ---- */

typedef struct Stats {
    double n, mean, squares; /* of the finite numbers: how many, their mean, the sum of squares around it */
    double lo, hi, sum2, sum1;
    int64_t zeros, odd; /* odd: not finite */
} Stats;

static void add_block(Stats *s, const double *v, int64_t n)
{
    double sum = 0, squares = 0, count = 0;
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(v[i])) {
            s->odd++;
            continue;
        }
        count++;
        sum += v[i];
        s->lo = fmin(s->lo, v[i]);
        s->hi = fmax(s->hi, v[i]);
        s->zeros += v[i] == 0;
        s->sum2 += v[i] * v[i];
        s->sum1 += fabs(v[i]);
    }
    if (!(count > 0))
        return;
    double mean = sum / count, all = s->n + count, apart = mean - s->mean;
    for (int64_t i = 0; i < n; i++)
        if (isfinite(v[i]))
            squares += (v[i] - mean) * (v[i] - mean);
    s->squares += squares + apart * apart * s->n * count / all;
    s->mean += apart * count / all;
    s->n = all;
}

typedef struct Column {
    const char *name, *json;
} Column;
static const Column columns[] = {
    {"mean", "mean"},         {"std", "std"},   {"min", "min"},     {"max", "max"},
    {"mean |x|", "mean_abs"}, {"norm", "norm"}, {"zeros", "zeros"}, {"not finite", "not_finite"}};

static void values_of(const Stats *s, int64_t elements, double x[COUNT_OF(columns)])
{
    bool some = s->n > 0;
    const double v[] = {some ? s->mean : NAN,
                        some ? sqrt(s->squares / s->n) : NAN,
                        some ? s->lo : NAN,
                        some ? s->hi : NAN,
                        some ? s->sum1 / s->n : NAN,
                        sqrt(s->sum2),
                        elements ? (double)s->zeros / (double)elements : NAN,
                        (double)s->odd};
    memcpy(x, v, sizeof v);
}

static void stats_head(const vwn_stats_options *how, Buf *b, Table *t)
{
    if (how->form == VWN_STATS_CSV)
        buf_puts(b, "tensor,shape,elements");
    if (how->form == VWN_STATS_TABLE) {
        table_text(t, "tensor");
        table_text(t, "shape");
    }
    for (size_t i = 0; i < COUNT_OF(columns); i++)
        if (how->form == VWN_STATS_TABLE)
            table_right(t, columns[i].name);
        else if (how->form == VWN_STATS_CSV)
            buf_printf(b, ",%s", columns[i].json);
    if (how->form == VWN_STATS_CSV)
        buf_putc(b, '\n');
}

static void stats_row(const vwn_stats_options *how, Buf *b, Table *table, const SafeTensor *t, const Stats *s)
{
    double x[COUNT_OF(columns)];
    const char *shape = shape_text(table->arena, t);
    values_of(s, t->elements, x);
    if (how->form == VWN_STATS_TABLE) {
        table_text(table, t->name);
        table_text(table, shape);
        for (size_t i = 0; i < COUNT_OF(columns); i++)
            table_right(table, i == 6           ? arena_printf(table->arena, "%.2f %%", 100 * x[i])
                               : i == 7         ? arena_printf(table->arena, "%lld", (long long)s->odd)
                               : isfinite(x[i]) ? arena_printf(table->arena, "%.4g", x[i])
                                                : "-");
        return;
    }
    bool csv = how->form == VWN_STATS_CSV;
    buf_puts(b, csv ? "" : "{\"v\":1,\"event\":\"tensor_stats\",\"tensor\":");
    if (csv)
        buf_csv_string(b, t->name);
    else
        buf_json_string(b, t->name, strlen(t->name));
    buf_printf(b, csv ? ",\"%s\",%lld" : ",\"shape\":%s,\"elements\":%lld", shape, (long long)t->elements);
    for (size_t i = 0; i < COUNT_OF(columns); i++) {
        buf_printf(b, csv ? "," : ",\"%s\":", columns[i].json);
        if (!csv || isfinite(x[i]))
            buf_json_number(b, x[i]);
    }
    buf_puts(b, csv ? "\n" : "}\n");
}

typedef struct StatsCall {
    Session session;
    const vwn_stats_options *how;
    const vwn_writer *out;
} StatsCall;

static Status stats_body(void *user)
{
    StatsCall *c = user;
    Session *s = &c->session;
    session_open(s, s->owner);
    const SafeFile *f = source_tensors(s, c->how->source);
    Buf b = buf_new(s->arena);
    Table table = {.arena = s->arena, .columns = 2 + COUNT_OF(columns)};
    double *v = NEW_ARRAY(s->arena, double, BLOCK);
    size_t shown = 0;
    stats_head(c->how, &b, &table);
    for (size_t i = 0; i < f->n; i++) {
        const SafeTensor *t = &f->tensor[i];
        Stats sum = {.lo = INFINITY, .hi = -INFINITY};
        if (!is_wanted(t, c->how->tensors, c->how->states))
            continue;
        for (int64_t at = 0; at < t->elements; at += BLOCK) {
            int64_t n = t->elements - at < BLOCK ? t->elements - at : BLOCK;
            read_block(s, f, t, at, n, v);
            add_block(&sum, v, n);
        }
        stats_row(c->how, &b, &table, t, &sum);
        shown++;
    }
    if (!shown)
        ctx_raise(s->ctx, ST_USAGE,
                  c->how->tensors ? "`%.200s` selects no tensor of %.200s" : "no tensor `%.0s`is in %.200s",
                  c->how->tensors ? c->how->tensors : "", f->path);
    if (c->how->form == VWN_STATS_TABLE) {
        buf_printf(&b, "%s: norm is the root of the sum of squares, std that of the mean square around the mean\n\n",
                   f->path);
        table_print(&b, &table);
    }
    write_text(c->out, b.s, b.n);
    return ST_OK;
}

Status tensor_stats(vwn_context *owner, const vwn_stats_options *how, const vwn_writer *out)
{
    StatsCall c = {.session.owner = owner, .how = how, .out = out};
    Status st = guarded(owner->ctx, stats_body, &c);
    return session_end(&c.session, st);
}

/* ---- two checkpoints ---- */

typedef struct Pair {
    double apart, a2, b2, ab, d2; /* max |a - b|; sums of squares, of products, of squares of differences */
    bool same;                    /* number for number; two that are none are equal */
} Pair;

static Pair compare(Session *s, const SafeFile *fa, const SafeTensor *a, const SafeFile *fb, const SafeTensor *b,
                    double *v, double *w)
{
    Pair p = {.same = true};
    for (int64_t at = 0; at < a->elements; at += BLOCK) {
        int64_t n = a->elements - at < BLOCK ? a->elements - at : BLOCK;
        read_block(s, fa, a, at, n, v);
        read_block(s, fb, b, at, n, w);
        for (int64_t i = 0; i < n; i++) {
            double d = w[i] - v[i];
            bool equal = v[i] == w[i] || (isnan(v[i]) && isnan(w[i]));
            p.same &= equal;
            p.apart = equal ? p.apart : isnan(d) ? INFINITY : fmax(p.apart, fabs(d));
            p.a2 += v[i] * v[i];
            p.b2 += w[i] * w[i];
            p.ab += v[i] * w[i];
            p.d2 += equal ? 0 : d * d;
        }
    }
    return p;
}

static bool same_shape(const SafeTensor *a, const SafeTensor *b)
{
    bool same = a->rank == b->rank;
    for (int k = 0; same && k < a->rank; k++)
        same = a->d[k] == b->d[k];
    return same;
}

void difference_of_tensors(Difference *d, const char *a, const char *b, const char *selector, bool states)
{
    Session *s = d->session;
    const SafeFile *fa = source_tensors(s, a), *fb = source_tensors(s, b);
    double *v = NEW_ARRAY(s->arena, double, BLOCK), *w = NEW_ARRAY(s->arena, double, BLOCK);
    int64_t same = 0, wanted = 0;
    for (size_t i = 0; i < fa->n; i++) {
        const SafeTensor *t = &fa->tensor[i], *u = safe_find(fb, t->name);
        if (!is_wanted(t, selector, states))
            continue;
        wanted++;
        if (!u || !same_shape(t, u)) {
            difference_put(d, "tensor", t->name, shape_text(s->arena, t), u ? shape_text(s->arena, u) : NULL);
            continue;
        }
        Pair p = compare(s, fa, t, fb, u, v, w);
        same += p.same;
        double size = sqrt(p.a2) * sqrt(p.b2);
        if (!p.same)
            difference_put_numbers(d, t->name, shape_text(s->arena, t), p.apart, p.a2 > 0 ? sqrt(p.d2 / p.a2) : NAN,
                                   size > 0 ? p.ab / size : NAN);
    }
    for (size_t i = 0; i < fb->n; i++)
        if (is_wanted(&fb->tensor[i], selector, states) && !safe_find(fa, fb->tensor[i].name)) {
            difference_put(d, "tensor", fb->tensor[i].name, NULL, shape_text(s->arena, &fb->tensor[i]));
            wanted++;
        }
    if (!wanted && selector)
        ctx_raise(s->ctx, ST_USAGE, "`%.200s` selects no tensor of %.200s or %.200s", selector, a, b);
    difference_same(d, "tensor", same);
}
