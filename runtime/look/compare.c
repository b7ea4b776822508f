/* compare.c - `vwn compare`: what runs have learned, side by side.
 *
 * In:  runs, alone or in groups that differ in their seeds.   Out: a table, a picture, or the points.
 * The one idea: curves are compared at the same step, number of tokens, FLOPs or seconds: at the last one that all have
 * reached. A mean of seeds stands with its interval, and what an interval hides is no difference. compare_facts.c tells what
 * else the runs do not share.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "compare.h"
#include "compiler/report/report.h"
#include "runtime/draw/chart.h"
#include "runtime/checkpoint/run_list.h"
#include "runtime/checkpoint/source.h"
#include "look.h"

enum { SHOWN = 500 }; /* points of a curve in a picture */

/* ---- curves ---- */

/* The value at x between two points of a run; NaN outside. */
double compare_value(const History *h, HistoryAxis by, double x)
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
            double v = k ? compare_value(&g->run[k], by, x) : g->run[0].point.v[i].value;
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
static void ask_group(RunComparison *c, const char *operand)
{
    Session *s = &c->session;
    bool alone = run_exists(s, operand);
    const char *equals = alone ? NULL : strchr(operand, '='), *list = equals ? equals + 1 : operand;
    RunGroup g = {.name = equals ? arena_copy(s->arena, operand, (size_t)(equals - operand)) : run_name(s->arena, list),
                  .operand = operand};
    for (const char *p = list;; p++) {
        size_t length = alone ? strlen(p) : strcspn(p, ",");
        vec_push(s->arena, &g.path, arena_copy(s->arena, p, length));
        p += length;
        if (!*p)
            break;
    }
    g.alone = !equals && g.path.n == 1;
    vec_push(s->arena, &c->groups, g);
}

/* A group for each setting of a sweep that has begun. */
static void ask_sweep(RunComparison *c, const char *operand)
{
    Session *s = &c->session;
    ListedSweep sweep = sweep_list(s, operand);
    size_t before = c->groups.n;
    for (size_t i = 0; i < sweep.point.n; i++) {
        const ListedPoint *p = &sweep.point.v[i];
        size_t at = before;
        const char *name = *p->config ? p->config : sweep.name;
        if (c->how->n_runs > 1)
            name = arena_printf(s->arena, "%s/%s", run_name(s->arena, operand), name);
        while (at < c->groups.n && strcmp(c->groups.v[at].name, name))
            at++;
        if (!p->there)
            continue;
        if (at == c->groups.n)
            vec_push(s->arena, &c->groups, ((RunGroup){.name = name, .operand = operand}));
        vec_push(s->arena, &c->groups.v[at].path, p->path);
    }
    if (c->groups.n == before)
        ctx_raise(s->ctx, ST_USAGE, "no point of the sweep in `%.300s` has begun", operand);
}

/* Each run by itself of a folder that holds some; else what `operand` says. */
static void ask_folder(RunComparison *c, const char *operand)
{
    RunPaths all = run_paths(&c->session, &operand, 1);
    for (size_t i = 0; i < all.n; i++)
        ask_group(c, all.v[i]);
}

static void ask_groups(RunComparison *c)
{
    for (size_t i = 0; i < c->how->n_runs; i++) {
        const char *operand = c->how->run[i];
        bool sweep = !run_exists(&c->session, operand) && run_is_sweep(&c->session, operand);
        sweep ? ask_sweep(c, operand) : ask_folder(c, operand);
    }
    compare_read_facts(c);
    c->group = c->groups.v;
    c->n = c->groups.n;
    c->runs = 0;
    for (size_t i = 0; i < c->n; i++)
        c->runs += c->group[i].path.n;
}

static void open_groups(RunComparison *c)
{
    for (size_t i = 0; i < c->n; i++) {
        RunGroup *g = &c->group[i];
        g->n = g->path.n;
        g->run = NEW_ARRAY(c->session.arena, History, g->n);
        for (size_t k = 0; k < g->n; k++)
            g->run[k] = history_read(&c->session, g->path.v[k], c->metric);
    }
}

/* Whether every run has more than one of c->metric. */
static bool all_have(RunComparison *c)
{
    bool all = true;
    open_groups(c);
    for (size_t i = 0; i < c->n; i++)
        for (size_t k = 0; k < c->group[i].n; k++)
            all = all && c->group[i].run[k].point.n > 1;
    return all;
}

/* What was asked for; else bits per byte where tokenizers differ, held-out losses, those of training: the first that every run has. */
static void choose_metric(RunComparison *c)
{
    static const char *const names[] = {"bits_per_byte", "eval_loss"};
    for (size_t i = !c->mixed; !c->how->metric && i < COUNT_OF(names); i++) {
        c->metric = names[i];
        if (all_have(c))
            return;
    }
    c->metric = c->how->metric ? c->how->metric : "loss";
    open_groups(c);
}

static void check_points(RunComparison *c, RunGroup *g)
{
    Ctx *ctx = c->session.ctx;
    for (size_t i = 0; i < g->n; i++)
        events_warn(&c->session, g->run[i].path, &g->run[i].events);
    for (size_t k = 0; k < g->n; k++) {
        if (!g->run[k].point.n)
            events_lack(&c->session, g->run[k].path, c->metric);
        history_need(&c->session, &g->run[k], (HistoryAxis)c->how->by);
        int64_t window = c->how->smooth              ? c->how->smooth
                         : strcmp(c->metric, "loss") ? 1
                                                     : (int64_t)(g->run[k].point.n / 50);
        smooth(&c->session, &g->run[k], window);
    }
    average(c, g);
    if (!g->points)
        ctx_raise(ctx, ST_USAGE, "the runs of %.250s have no point in common", g->operand);
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

/* The same of any axis, for the runs themselves. */
static double last_of_all(const RunComparison *c, HistoryAxis by)
{
    double x = INFINITY;
    for (size_t i = 0; i < c->n; i++)
        for (size_t k = 0; k < c->group[i].n; k++)
            x = fmin(x, c->group[i].run[k].point.v[c->group[i].run[k].point.n - 1].x[by]);
    return x;
}

static SeedMean group_at(const RunComparison *c, const RunGroup *g, HistoryAxis by, double x)
{
    double *v = NEW_ARRAY(c->session.arena, double, g->n + 1);
    for (size_t k = 0; k < g->n; k++)
        v[k] = compare_value(&g->run[k], by, x);
    return interval_of(v, g->n);
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

static void report_lengths(Arena *a, Buf *b, const RunGroup *g)
{
    Ends e = ends_of(g, BY_STEP);
    if (e.low < e.high)
        buf_printf(b, "\nthe runs of %s end after %s steps; its means go as far as all of them\n", g->name,
                   reached(a, g, BY_STEP));
}

/* "+0.0123", of seeds "+0.0123 ± 0.0200 =": hidden by its interval. */
static const char *gap_text(Arena *a, const SeedMean *first, const SeedMean *now)
{
    SeedGap gap = interval_gap(first, now);
    if (!isfinite(gap.by))
        return "-";
    if (!isfinite(gap.half))
        return arena_printf(a, gap.by == 0 ? "%.4f =" : "%+.4f", gap.by);
    return arena_printf(a, "%+.4f +-%.4f%s", gap.by, gap.half, gap.differ ? "" : " =");
}

static const char *mean_text(Arena *a, const SeedMean *v)
{
    if (!v->n)
        return "-";
    return v->n > 1 ? arena_printf(a, "%.4f +-%.4f", v->mean, v->half) : arena_printf(a, "%.4f", v->mean);
}

static void print_groups(RunComparison *c, Buf *b, double x)
{
    Arena *a = c->session.arena;
    HistoryAxis by = (HistoryAxis)c->how->by;
    SeedMean first = group_at(c, &c->group[0], by, x);
    bool several = c->runs > c->n;
    const char *const head[] = {"run",          "steps", "tokens", "FLOPs",
                                "seconds",      "best",  "last",   arena_printf(a, "at %s", quantity(a, x)),
                                "to the first", "spread"};
    Table t = {.arena = a, .columns = COUNT_OF(head) - !several};
    for (size_t i = 0; i < t.columns; i++)
        i ? table_right(&t, head[i]) : table_text(&t, "run");
    for (size_t i = 0; i < c->n; i++) {
        const RunGroup *g = &c->group[i];
        SeedMean now = group_at(c, g, by, x);
        table_text(&t, g->n > 1 ? arena_printf(a, "%s (%zu)", g->name, g->n) : g->name);
        for (int k = 0; k < HISTORY_AXES; k++)
            table_right(&t, reached(a, g, (HistoryAxis)k));
        table_right(&t, arena_printf(a, "%.4f", best_of(g)));
        table_right(&t, arena_printf(a, "%.4f", g->mean[g->points - 1]));
        table_right(&t, mean_text(a, &now));
        table_right(&t, i ? gap_text(a, &first, &now) : "");
        if (several)
            table_right(&t, g->n > 1 ? arena_printf(a, "%.4f", now.high - now.low) : "");
    }
    table_print(b, &t);
}

/* ---- which is the lowest ---- */

typedef struct Verdict {
    size_t lowest, *tied, n_tied; /* groups */
    bool known;                   /* every group has several runs: chance was looked at */
    bool some;                    /* there are two groups with a value */
} Verdict;

/* Of one run nothing tells how far chance goes; then only what is equal is tied. */
static Verdict judge(const RunComparison *c, HistoryAxis by, double x)
{
    SeedMean *v = NEW_ARRAY(c->session.arena, SeedMean, c->n + 1);
    Verdict out = {.lowest = c->n, .known = true, .tied = NEW_ARRAY(c->session.arena, size_t, c->n + 1)};
    size_t valued = 0;
    for (size_t i = 0; i < c->n; i++) {
        v[i] = group_at(c, &c->group[i], by, x);
        valued += v[i].n > 0;
        out.known &= v[i].n > 1;
        if (v[i].n && (out.lowest == c->n || v[i].mean < v[out.lowest].mean))
            out.lowest = i;
    }
    out.some = valued > 1;
    for (size_t i = 0; i < c->n && out.some; i++) {
        SeedGap gap = interval_gap(&v[out.lowest], &v[i]);
        if (i != out.lowest && v[i].n && !gap.differ && (isfinite(gap.half) || gap.by == 0))
            out.tied[out.n_tied++] = i;
    }
    return out;
}

static void report_verdict(RunComparison *c, Buf *b, double x)
{
    Verdict v = judge(c, (HistoryAxis)c->how->by, x);
    if (!v.some)
        return;
    buf_printf(b, "\nlowest at %s: %s", quantity(c->session.arena, x), c->group[v.lowest].name);
    for (size_t i = 0; i < v.n_tied; i++)
        buf_printf(b, "%s%s", i ? ", " : ", tied with ", c->group[v.tied[i]].name);
    if (v.n_tied)
        buf_puts(b, v.known ? ": differences that seeds explain (95 %)" : "");
    else if (v.known)
        buf_puts(b, ", the best: its difference to each other is more than seeds explain (95 %)");
    if (!v.known)
        buf_puts(b, "; of a single run nobody knows how much is chance: train it with several seeds");
    buf_putc(b, '\n');
}

/* ---- at equal amounts ---- */

static void print_equal(RunComparison *c, Buf *b)
{
    Arena *a = c->session.arena;
    static const HistoryAxis axis[] = {BY_TOKENS, BY_FLOPS, BY_SECONDS};
    double at[COUNT_OF(axis)];
    Table t = {.arena = a, .columns = 1 + 2 * COUNT_OF(axis)};
    buf_puts(b, "\nas far as all have gone\n\n");
    table_text(&t, "run");
    for (size_t k = 0; k < COUNT_OF(axis); k++) {
        at[k] = last_of_all(c, axis[k]);
        const char *name = history_axis_name[axis[k]];
        table_right(&t, isfinite(at[k]) ? arena_printf(a, "at %s %s", quantity(a, at[k]), name) : name);
        table_right(&t, "to the first");
    }
    for (size_t i = 0; i < c->n; i++) {
        table_text(&t, c->group[i].name);
        for (size_t k = 0; k < COUNT_OF(axis); k++) {
            SeedMean first = group_at(c, &c->group[0], axis[k], at[k]), now = group_at(c, &c->group[i], axis[k], at[k]);
            table_right(&t, isfinite(at[k]) ? mean_text(a, &now) : "-");
            table_right(&t, i && isfinite(at[k]) ? gap_text(a, &first, &now) : "");
        }
    }
    table_print(b, &t);
}

static void take_notes(RunComparison *c, double x)
{
    double at[HISTORY_AXES];
    for (int k = 0; k < HISTORY_AXES; k++)
        at[k] = k == (int)c->how->by ? x : c->n > 1 && k != BY_STEP ? last_of_all(c, (HistoryAxis)k) : NAN;
    compare_note(c, at);
    if (c->mixed && strcmp(c->metric, "bits_per_byte") != 0)
        vec_push(c->session.arena, &c->note,
                 arena_printf(c->session.arena,
                              "tokenizers differ: `%.80s` is of different tokens, `--metric bits_per_byte` compares",
                              c->metric));
}

static void print_table(RunComparison *c)
{
    Arena *a = c->session.arena;
    double x = common_end(c);
    Buf b = buf_new(a);
    buf_printf(&b, "%s by %s; FLOPs are of training, forward and backward\n\n", c->metric,
               history_axis_name[c->how->by]);
    print_groups(c, &b, x);
    report_verdict(c, &b, x);
    if (c->n > 1)
        print_equal(c, &b);
    buf_printf(&b,
               "\nbest: the lowest of the curve; last: its end; at %s: where all have been, curves are straight "
               "between points\n",
               quantity(a, x));
    if (c->runs > c->n)
        buf_puts(&b, "+-: 95 % interval of a mean over seeds, and of a difference of two (Student's and Welch's t); =: "
                     "it hides the\n"
                     "difference; spread: the greatest less the least\n");
    for (size_t i = 0; i < c->n; i++)
        report_lengths(a, &b, &c->group[i]);
    take_notes(c, x);
    for (size_t i = 0; i < c->note.n; i++)
        buf_printf(&b, "%s%s\n", i ? "" : "\n", c->note.v[i]);
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

/* Seeds, and the value at equal amounts with its gap to the first. */
static void json_equal(RunComparison *c, Buf *b, const RunGroup *g)
{
    static const struct {
        const char *key;
        HistoryAxis axis;
    } of[] = {{"tokens", BY_TOKENS}, {"flops", BY_FLOPS}, {"seconds", BY_SECONDS}};
    buf_puts(b, ",\"seeds\":[");
    for (size_t k = 0; k < g->n; k++) {
        buf_puts(b, k ? "," : "");
        buf_json_string(b, g->fact[k].seed, strlen(g->fact[k].seed));
    }
    buf_puts(b, "],\"equal\":[");
    for (size_t k = 0; k < COUNT_OF(of); k++) {
        double x = last_of_all(c, of[k].axis);
        SeedMean first = {0}, now = {.mean = NAN, .half = NAN};
        SeedGap gap = {NAN, NAN, false};
        if (isfinite(x)) {
            first = group_at(c, &c->group[0], of[k].axis, x);
            now = group_at(c, g, of[k].axis, x);
            gap = interval_gap(&first, &now);
        }
        buf_printf(b, "%s{\"axis\":\"%s\"", k ? "," : "", of[k].key);
        json_number(b, ",\"x\":", x);
        json_number(b, ",\"mean\":", now.mean);
        json_number(b, ",\"interval\":", now.half);
        json_number(b, ",\"gap\":", gap.by);
        json_number(b, ",\"gap_interval\":", gap.half);
        buf_puts(b, gap.differ ? ",\"differ\":true}" : ",\"differ\":false}");
    }
    buf_putc(b, ']');
}

static void json_verdict(RunComparison *c, Buf *b, double x)
{
    Verdict v = judge(c, (HistoryAxis)c->how->by, x);
    const char *lowest = v.some ? c->group[v.lowest].name : NULL;
    buf_puts(b, ",\"lowest\":");
    lowest ? buf_json_string(b, lowest, strlen(lowest)) : buf_puts(b, "null");
    buf_printf(b, ",\"best\":%s,\"tied\":[", v.some && v.known && !v.n_tied ? "true" : "false");
    for (size_t i = 0; i < v.n_tied; i++) {
        const char *name = c->group[v.tied[i]].name;
        buf_puts(b, i ? "," : "");
        buf_json_string(b, name, strlen(name));
    }
    buf_puts(b, "],\"notes\":[");
    take_notes(c, x);
    for (size_t i = 0; i < c->note.n; i++) {
        buf_puts(b, i ? "," : "");
        buf_json_string(b, c->note.v[i], strlen(c->note.v[i]));
    }
    buf_putc(b, ']');
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
        SeedMean now = group_at(c, g, (HistoryAxis)c->how->by, x);
        json_number(&b, ",\"value\":", now.mean);
        json_number(&b, ",\"interval\":", now.half);
        json_number(&b, ",\"low\":", g->low[g->points - 1]);
        json_number(&b, ",\"high\":", g->high[g->points - 1]);
        json_equal(c, &b, g);
        buf_puts(&b, ",\"points\":[");
        for (size_t k = 0; k < g->points; k++) {
            json_number(&b, k ? ",[" : "[", g->x[k]);
            json_number(&b, ",", g->mean[k]);
            buf_putc(&b, ']');
        }
        buf_puts(&b, "]}");
    }
    buf_putc(&b, ']');
    json_verdict(c, &b, x);
    buf_puts(&b, "}\n");
    write_text(c->out, b.s, b.n);
}

/* Of many points the least and the greatest of each so many, and the last: no extreme is lost. */
static ChartSeries series_of(Arena *a, const RunGroup *g)
{
    size_t each = g->points > SHOWN ? (2 * g->points + SHOWN - 1) / SHOWN : 1, n = 0;
    double *v[4];
    const double *from[4] = {g->x, g->mean, g->low, g->high};
    for (int j = 0; j < 4; j++)
        v[j] = NEW_ARRAY(a, double, 2 * (g->points / each) + 4);
    for (size_t i = 0; i < g->points; i += each) {
        size_t least = i, most = i, end = i + each < g->points ? i + each : g->points;
        for (size_t k = i; k < end; k++) {
            least = g->mean[k] < g->mean[least] ? k : least;
            most = g->mean[k] > g->mean[most] ? k : most;
        }
        size_t take[3] = {least < most ? least : most, least < most ? most : least, end - 1};
        for (int t = 0; t < 3; t++)
            if ((t < 2 || end == g->points) && (!t || take[t] > take[t - 1])) {
                for (int j = 0; j < 4; j++)
                    v[j][n] = from[j][take[t]];
                n++;
            }
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
    ask_groups(c);
    choose_metric(c);
    for (size_t i = 0; i < c->n; i++)
        check_points(c, &c->group[i]);
    print[c->how->form](c);
    return ST_OK;
}

Status compare_runs(vwn_context *owner, const vwn_compare_options *how, const vwn_writer *out)
{
    RunComparison c = {.session.owner = owner, .how = how, .out = out};
    Status st = guarded(owner->ctx, compare_body, &c);
    return session_end(&c.session, st);
}
