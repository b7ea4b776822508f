/* page_data.c - what the page's scripts read: settings, numbers and curves of every run, as one JSON object.
 *
 * In:  runs that were read.   Out: <script type="application/json" id="data">, of at most about DATA_MOST bytes.
 * The one idea: a curve with more points than there is room for is handed over in bins of as many neighbours each, with their
 * mean, least and greatest: a picture hides nothing that way, and means over a window are right. How many are in a bin is told.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "page.h"
#include "runtime/base/interval.h"

enum { BINS_MOST = 1500, BINS_LEAST = 16, DATA_MOST = 2200000, SEEDS_MOST = 30 };

/* A curve as it is handed over; where it was no number it has NaN. */
typedef struct Drawn {
    Name name;
    HistoryPoint *point;
    size_t n, axis; /* axis: which list of places it shares */
} Drawn;

typedef struct RunData {
    Drawn *curve;
    size_t n, axes; /* axes: lists of places, each of which is that of the first curve with its number */
} RunData;

typedef struct DataText {
    RunsPage *page;
    Buf b;
    RunData *run;
    size_t bins;
} DataText;

/* ---- curves ---- */

/* Points and what was no number, in the order of steps; what a run has done again after a stop counts as it was then. */
static void join(Arena *a, const RunCurve *c, Drawn *d)
{
    size_t i = 0, k = 0;
    d->point = NEW_ARRAY(a, HistoryPoint, c->point.n + c->odd.n + 1);
    while (i < c->point.n || k < c->odd.n) {
        bool odd = i == c->point.n || (k < c->odd.n && c->odd.v[k].x[BY_SECONDS] < c->point.v[i].x[BY_SECONDS]);
        HistoryPoint p = odd ? c->odd.v[k++] : c->point.v[i++];
        while (d->n && d->point[d->n - 1].x[BY_STEP] >= p.x[BY_STEP])
            d->n--;
        d->point[d->n++] = p;
    }
}

static bool same_places(const Drawn *x, const Drawn *y)
{
    if (x->n != y->n)
        return false;
    for (size_t i = 0; i < x->n; i++)
        if (x->point[i].x[BY_STEP] != y->point[i].x[BY_STEP])
            return false;
    return true;
}

/* One of several losses alone is the loss itself. */
static RunData read_curves(Arena *a, const RunState *r)
{
    RunData out = {.curve = NEW_ARRAY(a, Drawn, r->curve.n + 1)};
    size_t losses = 0;
    for (size_t i = 0; i < r->curve.n; i++)
        losses += !strncmp(r->curve.v[i].name, "loss.", 5);
    for (size_t i = 0; i < r->curve.n; i++) {
        const RunCurve *c = &r->curve.v[i];
        Drawn d = {.name = c->name, .axis = out.axes};
        if (!c->point.n || (losses < 2 && strstr(c->name, "loss.")))
            continue;
        join(a, c, &d);
        for (size_t k = 0; k < out.n && d.axis == out.axes; k++)
            if (same_places(&out.curve[k], &d))
                d.axis = out.curve[k].axis;
        out.axes += d.axis == out.axes;
        out.curve[out.n++] = d;
    }
    return out;
}

/* ---- numbers ---- */

static void comma(Buf *b)
{
    if (b->n && b->s[b->n - 1] != '[' && b->s[b->n - 1] != '{')
        buf_putc(b, ',');
}

static void key(Buf *b, const char *name)
{
    comma(b);
    buf_printf(b, "\"%s\":", name);
}

/* With so many digits as are looked at. */
static void put_digits(Buf *b, double v, int digits)
{
    comma(b);
    if (isfinite(v))
        buf_printf(b, "%.*g", digits, v);
    else
        buf_puts(b, "null");
}

static void put_exact(Buf *b, const char *name, double v)
{
    key(b, name);
    buf_json_number(b, v);
}

static void put_text(Buf *b, const char *name, const char *text)
{
    if (name)
        key(b, name);
    else
        comma(b);
    buf_json_string(b, text, strlen(text));
}

/* How many neighbours are one bin. */
static size_t bin_of(const DataText *t, size_t n) { return t->bins && n > t->bins ? (n + t->bins - 1) / t->bins : 1; }

/* Where the bins end on an axis: the number of what there is for each step, where that is always the same; else a list. */
static void put_places(DataText *t, const Drawn *d, HistoryAxis by, const char *name)
{
    size_t each = bin_of(t, d->n);
    const HistoryPoint *last = &d->point[d->n - 1];
    double per = last->x[by] / last->x[BY_STEP];
    bool even = by != BY_STEP && by != BY_SECONDS && isfinite(per);
    key(&t->b, name);
    if (!isfinite(last->x[by])) {
        buf_puts(&t->b, "null");
        return;
    }
    for (size_t i = 0; i < d->n && even; i++)
        even = fabs(d->point[i].x[by] - per * d->point[i].x[BY_STEP]) <= 1e-9 * last->x[by];
    if (even) {
        buf_number(&t->b, per);
        return;
    }
    int digits = by == BY_STEP ? 15 : 6;
    buf_putc(&t->b, '[');
    for (size_t i = each - 1; i < d->n + each - 1; i += each)
        put_digits(&t->b, d->point[i < d->n ? i : d->n - 1].x[by], digits);
    buf_putc(&t->b, ']');
}

typedef enum BinValue { BIN_MEAN, BIN_LEAST, BIN_MOST } BinValue;

/* NaN where one of them is none. */
static double bin_value(const HistoryPoint *p, size_t n, BinValue what)
{
    double sum = 0, least = INFINITY, most = -INFINITY;
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(p[i].value))
            return NAN;
        sum += p[i].value / (double)n;
        least = fmin(least, p[i].value);
        most = fmax(most, p[i].value);
    }
    return what == BIN_MEAN ? sum : what == BIN_LEAST ? least : most;
}

static void put_values(DataText *t, const Drawn *d, BinValue what, const char *name)
{
    size_t each = bin_of(t, d->n);
    key(&t->b, name);
    buf_putc(&t->b, '[');
    for (size_t i = 0; i < d->n; i += each)
        put_digits(&t->b, bin_value(&d->point[i], i + each < d->n ? each : d->n - i, what), each > 1 ? 5 : 7);
    buf_putc(&t->b, ']');
}

static void put_curve(DataText *t, const Drawn *d)
{
    size_t odd = 0;
    double first = NAN;
    for (size_t i = 0; i < d->n; i++)
        if (!isfinite(d->point[i].value) && !odd++)
            first = d->point[i].x[BY_STEP];
    comma(&t->b);
    buf_putc(&t->b, '{');
    put_text(&t->b, "name", d->name);
    key(&t->b, "axis");
    buf_printf(&t->b, "%zu", d->axis);
    if (odd) {
        key(&t->b, "odd");
        buf_printf(&t->b, "%zu", odd);
        put_exact(&t->b, "oddFrom", first);
    }
    put_values(t, d, BIN_MEAN, "mean");
    if (bin_of(t, d->n) > 1) {
        put_values(t, d, BIN_LEAST, "least");
        put_values(t, d, BIN_MOST, "most");
    }
    buf_putc(&t->b, '}');
}

static void put_curves(DataText *t, const RunData *r)
{
    static const char *const name[HISTORY_AXES] = {"step", "tokens", "flops", "seconds"};
    key(&t->b, "axes");
    buf_putc(&t->b, '[');
    for (size_t axis = 0; axis < r->axes; axis++) {
        const Drawn *d = r->curve;
        while (d->axis != axis)
            d++;
        comma(&t->b);
        buf_putc(&t->b, '{');
        key(&t->b, "points");
        buf_printf(&t->b, "%zu", d->n);
        key(&t->b, "each");
        buf_printf(&t->b, "%zu", bin_of(t, d->n));
        for (int by = 0; by < HISTORY_AXES; by++)
            put_places(t, d, (HistoryAxis)by, name[by]);
        buf_putc(&t->b, '}');
    }
    buf_puts(&t->b, "]");
    key(&t->b, "curves");
    buf_putc(&t->b, '[');
    for (size_t i = 0; i < r->n; i++)
        put_curve(t, &r->curve[i]);
    buf_putc(&t->b, ']');
}

/* ---- runs ---- */

static void put_growth(Buf *b, const RunState *r)
{
    key(b, "growth");
    buf_putc(b, '[');
    for (size_t i = 0; i < r->growth.n; i++) {
        comma(b);
        buf_putc(b, '{');
        put_text(b, "name", r->growth.v[i].name);
        put_exact(b, "step", r->growth.v[i].x[BY_STEP]);
        put_exact(b, "tokens", r->growth.v[i].x[BY_TOKENS]);
        put_exact(b, "flops", r->growth.v[i].x[BY_FLOPS]);
        put_exact(b, "seconds", r->growth.v[i].x[BY_SECONDS]);
        buf_putc(b, '}');
    }
    buf_putc(b, ']');
}

static void put_run(DataText *t, const PageRun *run, const RunData *data)
{
    const RunState *r = &run->state;
    Buf *b = &t->b;
    comma(b);
    buf_putc(b, '{');
    put_text(b, "name", r->name);
    put_text(b, "state", run_phase_names[r->phase]);
    key(b, "group");
    buf_printf(b, "%zu", run->group);
    key(b, "settings");
    buf_putc(b, '[');
    for (size_t i = 0; i < t->page->setting.n; i++) {
        const char *v = settings_get(&run->setting, t->page->setting.v[i]);
        put_text(b, NULL, v ? v : "");
    }
    buf_putc(b, ']');
    put_exact(b, "weights", r->weights);
    put_exact(b, "step", r->last.x[BY_STEP]);
    put_exact(b, "tokens", r->last.x[BY_TOKENS]);
    put_exact(b, "flops", r->last.x[BY_FLOPS]);
    put_exact(b, "seconds", r->last.x[BY_SECONDS]);
    put_exact(b, "loss", run_curve_odd(&r->curve.v[CURVE_LOSS]) ? NAN : run_curve_last(r, CURVE_LOSS));
    put_exact(b, "eval_loss", run_curve_odd(&r->curve.v[CURVE_EVAL]) ? NAN : run_curve_last(r, CURVE_EVAL));
    put_exact(b, "bits_per_byte", run_curve_last(r, CURVE_BITS));
    put_exact(b, "best", run->best);
    put_exact(b, "tok_s", run_curve_last(r, CURVE_RATE));
    put_growth(b, r);
    put_curves(t, data);
    buf_puts(b, "}\n");
}

static void put_all(DataText *t)
{
    Buf *b = &t->b;
    RunsPage *p = t->page;
    b->n = 0;
    buf_puts(b, "{");
    put_exact(b, "v", 1);
    key(b, "bins");
    buf_printf(b, "%zu", t->bins);
    key(b, "settings");
    buf_putc(b, '[');
    for (size_t i = 0; i < p->setting.n; i++)
        put_text(b, NULL, p->setting.v[i]);
    buf_puts(b, "]");
    key(b, "student"); /* by degrees of freedom, from 1; the last one is used beyond */
    buf_putc(b, '[');
    for (int i = 1; i <= SEEDS_MOST; i++)
        put_digits(b, student_95(i), 8);
    buf_puts(b, "]");
    key(b, "runs");
    buf_putc(b, '[');
    for (size_t i = 0; i < p->n; i++)
        put_run(t, &p->run[i], &t->run[i]);
    buf_puts(b, "]}");
}

void page_data(RunsPage *p)
{
    Arena *a = p->session.arena;
    DataText t = {.page = p, .b = buf_new(a), .run = NEW_ARRAY(a, RunData, p->n + 1), .bins = BINS_MOST};
    for (size_t i = 0; i < p->n; i++)
        t.run[i] = read_curves(a, &p->run[i].state);
    put_all(&t);
    while (t.b.n > DATA_MOST && t.bins > BINS_LEAST) {
        size_t fewer = (size_t)((double)t.bins * 0.95 * DATA_MOST / (double)t.b.n);
        t.bins = fewer < BINS_LEAST ? BINS_LEAST : fewer;
        put_all(&t);
    }
    html_json(&p->b, "data", &t.b);
}
