/* plot.c - `vwn plot`: any schedule of a file before anything is trained, any number of a run afterwards.
 *
 * In:  a checked file or a run, and paths.   Out: characters, a picture, JSON or CSV.
 * The one idea: a curve is points over an axis; what is over the steps of a run is evaluated as training will, stage by stage
 * where the model grows.
 */
#include <math.h>
#include <stdlib.h>

#include "compiler/file/curve.h"
#include "compiler/report/report.h"
#include "runtime/draw/chart.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/data/data.h"
#include "runtime/train/forecast.h"
#include "runtime/checkpoint/history.h"
#include "runtime/checkpoint/run_list.h"
#include "runtime/checkpoint/source.h"
#include "look.h"

enum { EVALUATIONS = 4000000, STAGES = 1000 };

enum { CURVES_MOST = 24 }; /* of several runs in a picture */

typedef struct Series {
    const char *name;
    double *x, *y;
    size_t n;
} Series;

typedef struct Plot {
    Session session;
    const vwn_plot_options *how;
    const vwn_writer *out;
    Unit *unit;    /* NULL: of a run */
    RunPaths runs; /* that one, or the points of a sweep */
    Series *series;
    size_t n;
    const char *over; /* the axis of all */
    VEC(ChartMark) mark;
    double per_epoch; /* tokens */
} Plot;

/* ---- the steps of a run that has not begun ---- */

typedef struct Period {
    const Train *train;
    Progress from;             /* when it begins; schedules count from from_step */
    int64_t begin, end, steps; /* steps begin .. end - 1; of the whole run, as the stage has it */
} Period;
typedef struct PlotWalk {
    const Plot *plot;
    const Period *stage;
} PlotWalk;

static void vars_at(void *user, int64_t step, double vars[HV_COUNT])
{
    const PlotWalk *w = user;
    Progress p = w->stage->from;
    const Train *t = w->stage->train;
    p.tokens += (step - p.step) * t->batch_seqs * t->context;
    p.step = step;
    progress_vars(&p, (double)(w->stage->steps - p.from_step), w->plot->per_epoch, vars);
}

static int64_t length_of(Plot *p, const Train *t)
{
    Session *s = &p->session;
    if (t->length_steps >= 0)
        return t->length_steps;
    double windows = p->per_epoch / (double)t->context;
    if (!(windows > 0))
        ctx_raise(s->ctx, ST_ENVIRONMENT, "the length of the run is given in epochs, and its data cannot be counted");
    return (int64_t)ceil(t->length_epochs * windows / (double)t->batch_seqs);
}

static bool reads_epoch(const HostExpr *e)
{
    return e &&
           ((e->op == HO_VAR && e->var == HV_EPOCH) || reads_epoch(e->a) || reads_epoch(e->b) || reads_epoch(e->c));
}

/* Only where something asks for it: the data may not be there yet. */
static void count_data(Plot *p, const Curve *c, size_t n)
{
    const Train *t = p->unit->train;
    bool wanted = t->length_steps < 0;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; c[i].stage && k <= p->unit->grow.n; k++)
            wanted |= reads_epoch(c[i].stage[k]);
    for (size_t k = 0; k < p->unit->grow.n; k++)
        wanted |= p->unit->grow.v[k].when && reads_epoch(p->unit->grow.v[k].when);
    if (!wanted || p->per_epoch)
        return;
    DataOptions how = {.spec = &t->data, .tokenizer = &t->tokenizer, .context = t->context, .model = p->unit->model};
    p->per_epoch = (double)data_open(&p->session, &how)->train.order.windows * (double)t->context;
}

/* The first step of the stage at which the growth step begins; -1: that is not known before the run. */
static int64_t growth_at(Plot *p, const Period *stage, const GrowStep *g)
{
    PlotWalk w = {p, stage};
    if (g->plateau || (g->when && reads_losses(g->when)))
        return -1;
    if (!g->when)
        return stage->begin;
    Forecast f = {.e = g->when, .vars_at = vars_at, .user = &w, .left = EVALUATIONS};
    return forecast_outside(&f, stage->begin, stage->steps + 1); /* it is tested at the end, too */
}

/* The stages of the run: the file as it is, then one behind each growth step that comes. Returns how many. */
static size_t stages_of(Plot *p, Period *stage)
{
    Unit *u = p->unit;
    size_t n = 0;
    stage[0] = (Period){.train = u->train, .from = progress_none, .steps = length_of(p, u->train)};
    for (size_t i = 0; i < u->grow.n && i < STAGES && u->grow.v[i].train; i++) {
        const GrowStep *g = &u->grow.v[i];
        Period *now = &stage[n];
        int64_t at = growth_at(p, now, g);
        if (at < 0)
            session_warn(&p->session, arena_printf(p->session.arena,
                                                   "when the growth step `%.100s` begins is decided in the run: "
                                                   "what is shown is without it%s",
                                                   g->name, i + 1 < u->grow.n ? " and those behind it" : ""));
        if (at < 0 || at > now->steps)
            break;
        now->end = at;
        Period next = {.train = g->train, .from = now->from, .begin = at};
        next.from.tokens += (at - now->from.step) * now->train->batch_seqs * now->train->context;
        next.from.step = at;
        if (g->restarts) {
            next.from.from_step = at;
            next.from.from_tokens = next.from.tokens;
        }
        next.steps = length_of(p, g->train) + next.from.from_step;
        vec_push(p->session.arena, &p->mark, ((ChartMark){(double)at, g->name, 0}));
        stage[++n] = next;
    }
    stage[n].end = stage[n].steps;
    return n + 1;
}

static void draw_steps(Plot *p, Series *out, const Curve *c, const Period *stage, size_t n)
{
    Arena *a = p->session.arena;
    int64_t end = stage[n - 1].end, points = p->how->points, stride = (end + points - 1) / (points > 0 ? points : 1);
    size_t room = 2 * n + 2;
    double *updates = NEW_ARRAY(a, double, n + 1); /* nothing is skipped, as far as is known */
    for (size_t i = 1; i < n; i++)
        updates[i - 1] = (double)stage[i].begin;
    stride = stride < 1 ? 1 : stride;
    for (size_t i = 0; i < n; i++)
        room += (size_t)((stage[i].end - stage[i].begin) / stride) + 2;
    out->x = NEW_ARRAY(a, double, room);
    out->y = NEW_ARRAY(a, double, room);
    for (size_t i = 0; i < n; i++) {
        PlotWalk w = {p, &stage[i]};
        double vars[HV_COUNT];
        const HostExpr *e = curve_in_stage(p->unit, c, i, updates);
        if (reads_losses(e))
            ctx_raise(p->session.ctx, ST_USAGE,
                      "`%.200s` depends on what the run measures: plot it of the run, as `vwn plot RUN lr`", out->name);
        for (int64_t at = stage[i].begin; at < stage[i].end + stride - 1 && e; at += stride) {
            int64_t s = at < stage[i].end ? at : stage[i].end - 1; /* the last one, too */
            vars_at(&w, s, vars);
            out->x[out->n] = (double)s + 1; /* steps count from 1, as in a run's events */
            out->y[out->n++] = host_eval(e, vars);
        }
    }
}

static void one_axis(Plot *p, const char *over, const char *path)
{
    if (p->over && strcmp(p->over, over))
        ctx_raise(p->session.ctx, ST_USAGE, "`%.150s` is over %.60s, and `%.150s` over %.60s: draw them apart",
                  p->how->path[0], p->over, path, over);
    p->over = over;
}

static void open_file(Plot *p)
{
    Unit *u = p->unit;
    Arena *a = p->session.arena;
    Curve *c = NEW_ARRAY(a, Curve, p->n + 1);
    Period *stage = NEW_ARRAY(a, Period, u->grow.n + 2);
    for (size_t i = 0; i < p->n; i++) {
        c[i] = curve_of(u, p->how->path[i]);
        one_axis(p, c[i].over, p->how->path[i]);
    }
    bool steps = !strcmp(p->over, "step") && c[0].stage;
    size_t n_stages = 0;
    if (steps) {
        count_data(p, c, p->n);
        n_stages = stages_of(p, stage);
    }
    for (size_t i = 0; i < p->n; i++) {
        p->series[i] = (Series){.name = p->how->path[i], .x = c[i].x, .y = c[i].y, .n = c[i].n};
        if (steps)
            draw_steps(p, &p->series[i], &c[i], stage, n_stages);
    }
}

/* ---- a run ---- */

/* One number of one run. */
static void open_number(Plot *p, Series *s, const char *run, const char *path, bool first)
{
    Arena *a = p->session.arena;
    HistoryAxis by = (HistoryAxis)p->how->by;
    History h = history_read(&p->session, run, path);
    if (first)
        events_warn(&p->session, run, &h.events);
    if (!h.point.n && p->runs.n == 1)
        events_lack(&p->session, p->runs.v[0], path);
    if (h.point.n)
        history_need(&p->session, &h, by);
    *s = (Series){path, NEW_ARRAY(a, double, h.point.n + 1), NEW_ARRAY(a, double, h.point.n + 1), h.point.n};
    if (p->runs.n > 1)
        s->name = p->how->n_paths == 1 ? run_name(a, run) : arena_printf(a, "%s %s", run_name(a, run), path);
    for (size_t k = 0; k < s->n; k++) {
        s->x[k] = h.point.v[k].x[by];
        s->y[k] = h.point.v[k].value;
    }
    for (size_t k = 0; k < h.growth.n && first && p->runs.n == 1; k++)
        vec_push(a, &p->mark, ((ChartMark){h.growth.v[k].x[by], h.growth.v[k].name, 0}));
}

/* Of a sweep one curve for each of its points that has the number. */
static void open_runs(Plot *p)
{
    size_t n = 0;
    p->over = history_axis_name[p->how->by];
    if (p->n > CURVES_MOST && p->runs.n > 1 && (p->how->form == VWN_PLOT_TEXT || p->how->form == VWN_PLOT_SVG))
        ctx_raise(
            p->session.ctx, ST_USAGE,
            "a picture of %zu curves cannot be read: `vwn compare %.200s` shows means, and `vwn plot --csv` all points",
            p->n, p->how->run);
    for (size_t i = 0; i < p->how->n_paths; i++)
        for (size_t k = 0; k < p->runs.n; k++) {
            open_number(p, &p->series[n], p->runs.v[k], p->how->path[i], !i);
            n += p->series[n].n > 0;
        }
    if (!n)
        events_lack(&p->session, p->runs.v[0], p->how->path[0]);
    p->n = n;
}

/* ---- what is printed ---- */

static double largest(const Series *s)
{
    double most = 0;
    for (size_t i = 0; i < s->n; i++)
        if (isfinite(s->y[i]))
            most = fmax(most, fabs(s->y[i]));
    return most;
}

/* Curves of about the same size share a chart. A picture has at most so many points of each as it can show. */
static size_t charts_of(Plot *p, Chart **out)
{
    enum { SHOWN = 2000, APART = 8, DOTS = 60 };
    Arena *a = p->session.arena;
    Chart *c = *out = NEW_ARRAY(a, Chart, p->n + 1);
    double *most = NEW_ARRAY(a, double, p->n + 1);
    const char *of = p->unit ? p->unit->path : p->how->run;
    size_t n = 0;
    for (size_t i = 0; i < p->n; i++) {
        const Series *s = &p->series[i];
        double size = largest(s);
        size_t at = 0;
        while (at < n && !(size <= APART * most[at] && most[at] <= APART * size))
            at++;
        if (at == n) {
            most[n] = size;
            c[n++] = (Chart){.x_label = p->over,
                             .y_label = "", /* the title and the names beside curves say it */
                             .mark = p->mark.v,
                             .n_marks = p->mark.n,
                             .series = NEW_ARRAY(a, ChartSeries, p->n),
                             .whole = strcmp(p->over, "seconds") != 0};
        }
        size_t stride = (s->n + SHOWN - 1) / SHOWN, k = 0;
        ChartSeries *to = (ChartSeries *)&c[at].series[c[at].n++];
        double *x = NEW_ARRAY(a, double, s->n + 1), *y = NEW_ARRAY(a, double, s->n + 1);
        for (size_t j = 0; j < s->n; j++)
            if (j % stride == 0 || j + 1 == s->n) {
                x[k] = s->x[j];
                y[k++] = s->y[j];
            }
        *to =
            (ChartSeries){.name = s->name, .x = x, .y = y, .n = k, .points = k <= DOTS && p->how->form == VWN_PLOT_SVG};
        c[at].title = c[at].n == 1 ? arena_printf(a, "%s of %s", s->name, of) : of;
    }
    return n;
}

static void print_json(Plot *p, Buf *b)
{
    const char *of = p->unit ? p->unit->path : p->how->run;
    buf_puts(b, "{\"v\":1,\"event\":\"plot\",\"of\":");
    buf_json_string(b, of, strlen(of));
    buf_puts(b, ",\"over\":");
    buf_json_string(b, p->over, strlen(p->over));
    buf_puts(b, ",\"series\":[");
    for (size_t i = 0; i < p->n; i++) {
        const Series *s = &p->series[i];
        buf_puts(b, i ? ",{\"name\":" : "{\"name\":");
        buf_json_string(b, s->name, strlen(s->name));
        buf_puts(b, ",\"points\":[");
        for (size_t k = 0; k < s->n; k++) {
            buf_puts(b, k ? ",[" : "[");
            buf_json_number(b, s->x[k]);
            buf_putc(b, ',');
            buf_json_number(b, s->y[k]);
            buf_putc(b, ']');
        }
        buf_puts(b, "]}");
    }
    buf_puts(b, "],\"growth\":[");
    for (size_t i = 0; i < p->mark.n; i++) {
        buf_puts(b, i ? ",{\"name\":" : "{\"name\":");
        buf_json_string(b, p->mark.v[i].text, strlen(p->mark.v[i].text));
        buf_puts(b, ",\"at\":");
        buf_json_number(b, p->mark.v[i].x);
        buf_putc(b, '}');
    }
    buf_puts(b, "]}\n");
}

/* A row for each x that any curve has; curves have theirs in rising order. */
static void print_csv(Plot *p, Buf *b)
{
    size_t *at = NEW_ARRAY(p->session.arena, size_t, p->n + 1);
    buf_puts(b, p->over);
    for (size_t i = 0; i < p->n; i++) {
        buf_putc(b, ',');
        buf_csv_string(b, p->series[i].name);
    }
    buf_putc(b, '\n');
    for (;;) {
        double x = INFINITY;
        for (size_t i = 0; i < p->n; i++)
            if (at[i] < p->series[i].n)
                x = fmin(x, p->series[i].x[at[i]]);
        if (isinf(x))
            return;
        buf_number(b, x);
        for (size_t i = 0; i < p->n; i++) {
            const Series *s = &p->series[i];
            buf_putc(b, ',');
            if (at[i] < s->n && s->x[at[i]] == x && isfinite(s->y[at[i]]))
                buf_number(b, s->y[at[i]]);
            at[i] += at[i] < s->n && s->x[at[i]] == x;
        }
        buf_putc(b, '\n');
    }
}

static void print_list(Plot *p, Buf *b)
{
    Arena *a = p->session.arena;
    Table t = {.arena = a, .columns = 4};
    CurvePaths paths = {0};
    NameVec names = {0};
    if (p->unit)
        paths = curve_paths(p->unit);
    else
        events_names(&p->session, p->runs.v[0], &names);
    if (p->how->form == VWN_PLOT_JSON) {
        buf_puts(b, "{\"v\":1,\"event\":\"plot\",\"paths\":[");
        for (size_t i = 0; i < paths.n + names.n; i++) {
            Name path = i < paths.n ? paths.v[i] : names.v[i - paths.n];
            buf_puts(b, i ? "," : "");
            buf_json_string(b, path, strlen(path));
        }
        buf_puts(b, "]}\n");
        return;
    }
    if (!paths.n && !names.n)
        buf_printf(b, "  nothing: %s\n",
                   p->unit ? "no number of the file varies over depth or steps" : "the run has written no numbers");
    for (size_t i = 0; i < names.n; i++)
        buf_printf(b, "  %s\n", names.v[i]);
    for (size_t i = 0; i < paths.n; i++) {
        Curve c = curve_of(p->unit, paths.v[i]);
        double lo = INFINITY, hi = -INFINITY;
        for (size_t k = 0; k < c.n; k++) {
            lo = fmin(lo, c.y[k]);
            hi = fmax(hi, c.y[k]);
        }
        table_text(&t, paths.v[i]);
        table_text(&t, arena_printf(a, "over %s", c.over));
        table_right(&t, c.n ? arena_printf(a, "%.6g", lo) : "");
        table_right(&t, c.n ? arena_printf(a, "%.6g", hi) : "");
    }
    table_print(b, &t);
}

static Status plot_body(void *user)
{
    Plot *p = user;
    enum { ROWS = 20 };
    Chart *charts;
    const vwn_plot_options *how = p->how;
    session_open(&p->session, p->session.owner);
    Buf b = buf_new(p->session.arena);
    p->n = how->n_paths;
    if (!p->unit)
        p->runs = run_paths(&p->session, &how->run, 1);
    p->n *= p->unit ? 1 : p->runs.n;
    p->series = NEW_ARRAY(p->session.arena, Series, p->n + 1);
    if (p->n && p->unit)
        open_file(p);
    else if (p->n)
        open_runs(p);
    size_t n = p->n && how->form != VWN_PLOT_JSON && how->form != VWN_PLOT_CSV ? charts_of(p, &charts) : 0;
    if (!p->n)
        print_list(p, &b);
    else if (how->form == VWN_PLOT_JSON)
        print_json(p, &b);
    else if (how->form == VWN_PLOT_CSV)
        print_csv(p, &b);
    else if (how->form == VWN_PLOT_SVG)
        chart_svg(&b, charts, n);
    for (size_t i = 0; i < n && how->form == VWN_PLOT_TEXT; i++)
        chart_text(&b, &charts[i], how->columns, ROWS, how->unicode);
    write_text(p->out, b.s, b.n);
    return ST_OK;
}

Status plot_curves(vwn_context *owner, Unit *unit, const vwn_plot_options *how, const vwn_writer *out)
{
    Plot p = {.session.owner = owner, .how = how, .out = out, .unit = unit};
    Status st = guarded(owner->ctx, plot_body, &p);
    return session_end(&p.session, st);
}
