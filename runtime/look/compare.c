/* compare.c - `vwn compare`: what runs have learned, side by side.
 *
 * In:  runs, alone or in groups that differ in their seeds.   Out: a table, a picture, or the points.
 * The one idea: curves are compared at the same step, number of tokens, FLOPs or seconds: at the last one that all have
 * reached; the mean of a group stands with its least and greatest run.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "compiler/report/report.h"
#include "runtime/draw/chart.h"
#include "runtime/checkpoint/history.h"
#include "runtime/checkpoint/run_dir.h"
#include "runtime/checkpoint/source.h"

enum { SHOWN = 500 }; /* points of a curve in a picture */

/* One run or several that are averaged. */
typedef struct RunGroup {
    const char *name;
    History *run;
    size_t n;
    double *x, *mean, *low, *high; /* the curve at the points of the first run that all have reached */
    size_t points;
} RunGroup;

typedef struct RunComparison {
    Session session;
    const vwn_compare_options *how;
    const vwn_writer *out;
    const char *metric;
    RunGroup *group;
    size_t n, runs;
} RunComparison;

/* ---- curves ---- */

/* The value at x between two points of a run; NaN outside. */
static double value_at(const History *h, HistoryAxis by, double x)
{
    size_t lo = 0, hi = h->point.n;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (h->point.v[mid].x[by] < x)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (lo == h->point.n)
        return NAN;
    const HistoryPoint *q = &h->point.v[lo], *p = lo ? q - 1 : q;
    if (q->x[by] == x || q->x[by] == p->x[by])
        return q->x[by] == x ? q->value : NAN;
    return p->value + (q->value - p->value) * (x - p->x[by]) / (q->x[by] - p->x[by]);
}

/* Means over `window` points around each, as many on both sides; 1 leaves a curve as it is. */
static void smooth(Session *s, History *h, int64_t window)
{
    size_t n = h->point.n, reach = window > 1 ? (size_t)(window - 1) / 2 : 0;
    double *sum = NEW_ARRAY(s->arena, double, n + 1);
    sum[0] = 0;
    for (size_t i = 0; i < n; i++)
        sum[i + 1] = sum[i] + h->point.v[i].value;
    for (size_t i = 0; i < n && reach; i++) {
        size_t r = i < reach ? i : reach;
        r = n - 1 - i < r ? n - 1 - i : r;
        h->point.v[i].value = (sum[i + r + 1] - sum[i - r]) / (double)(2 * r + 1);
    }
}

static void average(RunComparison *c, RunGroup *g)
{
    Arena *a = c->session.arena;
    HistoryAxis by = (HistoryAxis)c->how->by;
    size_t n = g->run[0].point.n;
    g->x = NEW_ARRAY(a, double, n + 1);
    g->mean = NEW_ARRAY(a, double, n + 1);
    g->low = NEW_ARRAY(a, double, n + 1);
    g->high = NEW_ARRAY(a, double, n + 1);
    for (size_t i = 0; i < n; i++) {
        double x = g->run[0].point.v[i].x[by], sum = 0, low = INFINITY, high = -INFINITY;
        for (size_t k = 0; k < g->n; k++) {
            double v = k ? value_at(&g->run[k], by, x) : g->run[0].point.v[i].value;
            sum += v;
            low = fmin(low, v);
            high = fmax(high, v);
        }
        if (!isfinite(sum))
            continue;
        g->x[g->points] = x;
        g->mean[g->points] = sum / (double)g->n;
        g->low[g->points] = low;
        g->high[g->points++] = high;
    }
}

/* ---- reading ---- */

/* "runs/a", or "name=runs/a,runs/b". */
static void open_group(RunComparison *c, RunGroup *g, const char *operand)
{
    Session *s = &c->session;
    bool alone = run_exists(s, operand);
    const char *equals = alone ? NULL : strchr(operand, '='), *list = equals ? equals + 1 : operand;
    size_t n = 1;
    for (const char *p = list; *p && !alone; p++)
        n += *p == ',';
    g->run = NEW_ARRAY(s->arena, History, n);
    for (const char *p = list; g->n < n; g->n++) {
        size_t length = alone ? strlen(p) : strcspn(p, ",");
        History h = history_read(s, arena_copy(s->arena, p, length), c->metric);
        g->run[g->n] = h;
        p += length + (p[length] == ',');
    }
    g->name = equals ? arena_copy(s->arena, operand, (size_t)(equals - operand)) : run_name(s->arena, list);
    c->runs += n;
}

/* Held-out losses where every run has some, else those of training. */
static const char *choose_metric(RunComparison *c)
{
    bool all = true;
    for (size_t i = 0; i < c->n; i++)
        for (size_t k = 0; k < c->group[i].n; k++)
            all = all && c->group[i].run[k].point.n > 1;
    return all ? "eval_loss" : "loss";
}

static void open_groups(RunComparison *c)
{
    c->runs = 0;
    for (size_t i = 0; i < c->n; i++) {
        c->group[i] = (RunGroup){0};
        open_group(c, &c->group[i], c->how->run[i]);
    }
}

static void check_points(RunComparison *c, RunGroup *g, const char *operand)
{
    Ctx *ctx = c->session.ctx;
    for (size_t i = 0; i < g->n; i++)
        events_warn(&c->session, g->run[i].path, &g->run[i].events);
    for (size_t k = 0; k < g->n; k++) {
        if (!g->run[k].point.n)
            ctx_raise(ctx, ST_USAGE, "the run %.250s has written no `%.80s`", g->run[k].path, c->metric);
        history_need(&c->session, &g->run[k], (HistoryAxis)c->how->by);
        int64_t window = c->how->smooth ? c->how->smooth : strcmp(c->metric, "loss") ? 1 : (int64_t)(g->run[k].point.n / 50);
        smooth(&c->session, &g->run[k], window);
    }
    average(c, g);
    if (!g->points)
        ctx_raise(ctx, ST_USAGE, "the runs of %.250s have no point in common", operand);
}

/* ---- what is printed ---- */

/* The last x that all have reached. */
static double common_end(const RunComparison *c)
{
    double x = INFINITY;
    for (size_t i = 0; i < c->n; i++)
        x = fmin(x, c->group[i].x[c->group[i].points - 1]);
    return x;
}

static double group_at(const RunGroup *g, double x)
{
    for (size_t i = 0; i < g->points; i++)
        if (g->x[i] >= x)
            return g->x[i] == x || !i ? g->mean[i]
                                      : g->mean[i - 1] + (g->mean[i] - g->mean[i - 1]) * (x - g->x[i - 1]) / (g->x[i] - g->x[i - 1]);
    return NAN;
}

static double best_of(const RunGroup *g)
{
    double best = INFINITY;
    for (size_t i = 0; i < g->points; i++)
        best = fmin(best, g->mean[i]);
    return best;
}

typedef struct Ends {
    double low, high, mean;
} Ends;

static Ends ends_of(const RunGroup *g, HistoryAxis by)
{
    Ends e = {INFINITY, -INFINITY, 0};
    for (size_t k = 0; k < g->n; k++) {
        double x = g->run[k].end.x[by];
        e = (Ends){fmin(e.low, x), fmax(e.high, x), e.mean + x / (double)g->n};
    }
    return e;
}

static const char *quantity(Arena *a, double v)
{
    static const char *const unit[] = {"", "k", "M", "G", "T", "P", "E"};
    int k = 0;
    if (!isfinite(v))
        return "-";
    for (; fabs(v) >= 9999.5 && k < 6; k++)
        v /= 1000;
    return arena_printf(a, k || v == floor(v) ? "%.4g%s" : "%.1f%s", v, unit[k]);
}

/* How far a group went: what its runs differ in is said, but for the seconds, which always differ. */
static const char *reached(Arena *a, const RunGroup *g, HistoryAxis by)
{
    Ends e = ends_of(g, by);
    if (by == BY_SECONDS || !(e.low < e.high))
        return quantity(a, e.mean);
    return arena_printf(a, "%s to %s", quantity(a, e.low), quantity(a, e.high));
}

static void say_lengths(Arena *a, Buf *b, const RunGroup *g)
{
    Ends e = ends_of(g, BY_STEP);
    if (e.low < e.high)
        buf_printf(b, "\nthe runs of %s end after %s steps; its means go as far as all of them\n", g->name, reached(a, g, BY_STEP));
}

static void print_table(RunComparison *c)
{
    Arena *a = c->session.arena;
    double x = common_end(c), first = group_at(&c->group[0], x);
    Buf b = buf_new(a);
    Table t = {.arena = a, .columns = 9 + (size_t)(c->runs > c->n)};
    const char *const head[] = {"", "steps", "tokens", "FLOPs", "seconds", "best", "last", arena_printf(a, "at %s", quantity(a, x)),
                                "to the first", "spread"};
    buf_printf(&b, "%s by %s; FLOPs are of training, forward and backward\n\n", c->metric, history_axis_name[c->how->by]);
    for (size_t i = 0; i < t.columns; i++)
        i ? table_right(&t, head[i]) : table_text(&t, "run");
    for (size_t i = 0; i < c->n; i++) {
        const RunGroup *g = &c->group[i];
        table_text(&t, g->n > 1 ? arena_printf(a, "%s (%zu)", g->name, g->n) : g->name);
        for (int k = 0; k < HISTORY_AXES; k++)
            table_right(&t, reached(a, g, (HistoryAxis)k));
        table_right(&t, arena_printf(a, "%.4f", best_of(g)));
        table_right(&t, arena_printf(a, "%.4f", g->mean[g->points - 1]));
        table_right(&t, arena_printf(a, "%.4f", group_at(g, x)));
        table_right(&t, i ? arena_printf(a, "%+.4f", group_at(g, x) - first) : "");
        if (c->runs > c->n)
            table_right(&t, g->n > 1 ? arena_printf(a, "%.4f", g->high[g->points - 1] - g->low[g->points - 1]) : "");
    }
    table_print(&b, &t);
    for (size_t i = 0; i < c->n; i++)
        say_lengths(a, &b, &c->group[i]);
    write_text(c->out, b.s, b.n);
}

static void print_csv(RunComparison *c)
{
    Buf b = buf_new(c->session.arena);
    buf_printf(&b, "run,directory,step,tokens,flops,seconds,%s\n", c->metric);
    for (size_t i = 0; i < c->n; i++)
        for (size_t k = 0; k < c->group[i].n; k++)
            for (size_t p = 0; p < c->group[i].run[k].point.n; p++) {
                const HistoryPoint *v = &c->group[i].run[k].point.v[p];
                const char *text[] = {c->group[i].name, c->group[i].run[k].path};
                for (int j = 0; j < 2; j++) {
                    buf_csv_string(&b, text[j]);
                    buf_putc(&b, ',');
                }
                for (int j = 0; j < HISTORY_AXES; j++) {
                    if (isfinite(v->x[j]))
                        buf_number(&b, v->x[j]);
                    buf_putc(&b, ',');
                }
                buf_number(&b, v->value);
                buf_putc(&b, '\n');
            }
    write_text(c->out, b.s, b.n);
}

static void json_number(Buf *b, const char *before, double v)
{
    buf_puts(b, before);
    buf_json_number(b, v);
}

static void print_json(RunComparison *c)
{
    Buf b = buf_new(c->session.arena);
    double x = common_end(c);
    buf_puts(&b, "{\"v\":1,\"event\":\"compare\",\"metric\":");
    buf_json_string(&b, c->metric, strlen(c->metric));
    buf_printf(&b, ",\"by\":\"%s\"", history_axis_name[c->how->by]);
    json_number(&b, ",\"at\":", x);
    buf_puts(&b, ",\"runs\":[");
    for (size_t i = 0; i < c->n; i++) {
        const RunGroup *g = &c->group[i];
        buf_puts(&b, i ? ",{\"name\":" : "{\"name\":");
        buf_json_string(&b, g->name, strlen(g->name));
        buf_printf(&b, ",\"runs\":%zu", g->n);
        json_number(&b, ",\"step\":", ends_of(g, BY_STEP).low); /* all of them went so far */
        json_number(&b, ",\"tokens\":", ends_of(g, BY_TOKENS).low);
        json_number(&b, ",\"flops\":", ends_of(g, BY_FLOPS).low);
        json_number(&b, ",\"seconds\":", ends_of(g, BY_SECONDS).mean);
        json_number(&b, ",\"step_most\":", ends_of(g, BY_STEP).high);
        json_number(&b, ",\"best\":", best_of(g));
        json_number(&b, ",\"last\":", g->mean[g->points - 1]);
        json_number(&b, ",\"value\":", group_at(g, x));
        json_number(&b, ",\"low\":", g->low[g->points - 1]);
        json_number(&b, ",\"high\":", g->high[g->points - 1]);
        buf_puts(&b, ",\"points\":[");
        for (size_t k = 0; k < g->points; k++) {
            json_number(&b, k ? ",[" : "[", g->x[k]);
            json_number(&b, ",", g->mean[k]);
            buf_putc(&b, ']');
        }
        buf_puts(&b, "]}");
    }
    buf_puts(&b, "]}\n");
    write_text(c->out, b.s, b.n);
}

/* Every so many points, and the last. */
static ChartSeries series_of(Arena *a, const RunGroup *g)
{
    size_t stride = (g->points + SHOWN - 1) / SHOWN, n = 0;
    double *v[4];
    const double *from[4] = {g->x, g->mean, g->low, g->high};
    for (int j = 0; j < 4; j++)
        v[j] = NEW_ARRAY(a, double, g->points / stride + 2);
    for (size_t i = 0; i < g->points; i++)
        if (i % stride == 0 || i + 1 == g->points) {
            for (int j = 0; j < 4; j++)
                v[j][n] = from[j][i];
            n++;
        }
    bool spread = g->n > 1;
    return (ChartSeries){g->name, v[0], v[1], spread ? v[2] : NULL, spread ? v[3] : NULL, n, n <= 40};
}

static void print_svg(RunComparison *c)
{
    Arena *a = c->session.arena;
    ChartSeries *s = NEW_ARRAY(a, ChartSeries, c->n);
    VEC(ChartMark) marks = {0};
    Buf b = buf_new(a);
    for (size_t i = 0; i < c->n; i++) {
        s[i] = series_of(a, &c->group[i]);
        for (size_t k = 0; k < c->group[i].run[0].growth.n; k++) {
            const HistoryGrowth *g = &c->group[i].run[0].growth.v[k];
            vec_push(a, &marks, ((ChartMark){g->x[c->how->by], g->name, i}));
        }
    }
    Chart chart = {.title = arena_printf(a, "%s by %s", c->metric, history_axis_name[c->how->by]),
                   .x_label = history_axis_name[c->how->by],
                   .y_label = c->metric,
                   .series = s,
                   .n = c->n,
                   .mark = marks.v,
                   .n_marks = marks.n,
                   .falls = true};
    chart_svg(&b, &chart, 1);
    write_text(c->out, b.s, b.n);
}

static Status compare_body(void *user)
{
    static void (*const print[])(RunComparison *) = {[VWN_COMPARE_TABLE] = print_table,
                                                  [VWN_COMPARE_JSON] = print_json,
                                                  [VWN_COMPARE_CSV] = print_csv,
                                                  [VWN_COMPARE_SVG] = print_svg};
    RunComparison *c = user;
    session_open(&c->session, c->session.owner);
    c->n = c->how->n_runs;
    c->group = NEW_ARRAY(c->session.arena, RunGroup, c->n + 1);
    c->metric = c->how->metric ? c->how->metric : "eval_loss";
    open_groups(c);
    if (!c->how->metric && strcmp(choose_metric(c), c->metric)) {
        c->metric = choose_metric(c);
        open_groups(c);
    }
    for (size_t i = 0; i < c->n; i++)
        check_points(c, &c->group[i], c->how->run[i]);
    print[c->how->form](c);
    return ST_OK;
}

Status compare_runs(vwn_context *owner, const vwn_compare_options *how, const vwn_writer *out)
{
    RunComparison c = {.session.owner = owner, .how = how, .out = out};
    Status st = guarded(owner->ctx, compare_body, &c);
    return session_end(&c.session, st);
}
