/* sweep_table.c - what a sweep has found: a table, CSV, JSON, a picture.
 *
 * In:  the plan and the results of its points.   Out: text for the caller.
 * The one idea: points that differ in the seed alone are one row, with the mean of their losses and how far the greatest lies
 * from the least, and its interval: the lowest is the best where seeds do not explain its difference to any other. Rows stand in the order of the axes, whatever order they were run in; nothing here depends on time.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "compiler/report/report.h"
#include "runtime/base/interval.h"
#include "runtime/draw/chart.h"
#include "runtime/checkpoint/source.h"
#include "sweep.h"

typedef struct SeedSpread {
    size_t n; /* points that have the number */
    double sum, low, high;
} SeedSpread;
/* A configuration: its points, all seeds. */
typedef struct Row {
    const SweepPoint *point; /* the first of them */
    const PointResult *first;
    SeedSpread train, eval, step;
    size_t n, by_state[POINT_STATES];
} Row;

typedef struct Tables {
    SweepRun *s;
    Arena *arena;
    Row *row; /* by configuration */
    bool any_eval;
} Tables;

static void spread_add(SeedSpread *s, double x)
{
    if (!isfinite(x))
        return;
    s->low = s->n ? fmin(s->low, x) : x;
    s->high = s->n ? fmax(s->high, x) : x;
    s->sum += x;
    s->n++;
}

static double spread_mean(const SeedSpread *s) { return s->n ? s->sum / (double)s->n : NAN; }

static void gather(Tables *t, SweepRun *s)
{
    const SweepPlan *p = s->plan;
    *t = (Tables){.s = s, .arena = s->session.arena};
    t->row = NEW_ARRAY(t->arena, Row, p->configs + 1);
    for (size_t i = 0; i < p->n; i++) {
        const PointResult *r = &s->result[i];
        Row *row = &t->row[p->point[i].config];
        if (!row->point || (!row->first->cost.counted && r->cost.counted)) {
            row->point = &p->point[i];
            row->first = r;
        }
        row->n++;
        row->by_state[r->state]++;
        bool counts = r->state == POINT_DONE || r->state == POINT_PRUNED;
        spread_add(&row->train, counts ? r->train_loss : NAN);
        spread_add(&row->eval, counts ? r->eval_loss : NAN);
        spread_add(&row->step, r->step);
        t->any_eval |= counts && isfinite(r->eval_loss);
    }
}

/* The loss of a row that tables and pictures show. */
static const SeedSpread *judged(const Tables *t, const Row *r)
{
    return t->any_eval && !t->s->plan->table_train_loss ? &r->eval : &r->train;
}

static const char *row_name(const Tables *t, const Row *r)
{
    const char *name = r->point->name, *seed = strstr(name, "seed-");
    for (const char *next = seed; next; next = strstr(next + 1, "seed-"))
        seed = next;
    if (!t->s->plan->seeded || !seed)
        return name;
    return seed == name ? t->s->plan->name : arena_copy(t->arena, name, (size_t)(seed - name) - 1);
}

/* ---- the table ---- */

static void cell_count(Table *t, double x)
{
    if (isfinite(x))
        table_count(t, (int64_t)llround(x));
    else
        table_right(t, "-");
}

static void cell_number(Table *t, const char *form, double x)
{
    char text[64];
    snprintf(text, sizeof text, form[0] == 'l' ? "%.4f" : "%.1f", x);
    table_right(t, isfinite(x) ? arena_copy(t->arena, text, strlen(text)) : "-");
}

static void cell_bytes(Table *t, double x) { table_right(t, isfinite(x) ? bytes_text(t->arena, x) : "-"); }

static const char *seconds_text(Arena *a, double s)
{
    return !isfinite(s) ? "-" : s < 10 ? arena_printf(a, "%.2f ms", 1e3 * s) : arena_printf(a, "%.1f s", s);
}

/* "2 done, 1 diverged"; one point: "diverged"; "" where all are done. Of a list, for which one of its points was counted: what that is. */
static const char *states_text(Arena *a, const Row *r, bool list)
{
    Buf b = buf_new(a);
    PointState is = POINT_DONE;
    for (int k = 0; list && k < POINT_STATES; k++)
        is = r->by_state[k] && k != POINT_WAITING ? (PointState)k : is;
    if (list || r->by_state[POINT_DONE] == r->n)
        return is == POINT_DONE ? "" : point_state[is];
    for (int k = 0; k < POINT_STATES; k++)
        if (r->by_state[k])
            r->n == 1 ? buf_puts(&b, point_state[k])
                      : buf_printf(&b, "%s%zu %s", b.n ? ", " : "", r->by_state[k], point_state[k]);
    return b.s;
}

/* The judged losses of a row's points. */
static SeedMean interval_of_row(const Tables *t, size_t config)
{
    const SweepPlan *p = t->s->plan;
    double *v = NEW_ARRAY(t->arena, double, p->n + 1);
    bool eval = judged(t, &t->row[config]) == &t->row[config].eval;
    size_t n = 0;
    for (size_t i = 0; i < p->n; i++)
        if (p->point[i].config == config &&
            (t->s->result[i].state == POINT_DONE || t->s->result[i].state == POINT_PRUNED))
            v[n++] = eval ? t->s->result[i].eval_loss : t->s->result[i].train_loss;
    return interval_of(v, n);
}

/* "  each with the seeds 1, 2, 3: 6 runs" */
static void put_seeds(Buf *b, const SweepPlan *p)
{
    size_t each = p->configs ? p->n / p->configs : 0, named = 0;
    buf_puts(b, each == 1 ? "  each with the seed " : "  each with the seeds ");
    for (size_t i = 0; i < p->n; i++)
        if (p->point[i].config == p->point[0].config)
            buf_printf(b, "%s%lld", named++ ? ", " : "", (long long)p->point[i].seed);
    buf_printf(b, ": %zu runs\n", p->n);
}

static void put_table(Buf *b, const Tables *t)
{
    const SweepPlan *p = t->s->plan;
    bool list = t->s->listing, times = false;
    for (size_t c = 0; c < p->configs; c++)
        times |= isfinite(t->row[c].first->cost.step_seconds);
    Table out = {.arena = t->arena};
    const char *head[16] = {"weights", "stored", "FLOP/token", "width", "KV"};
    size_t n = 5;
    if (list) {
        head[n++] = "memory";
        head[n++] = "step";
    } else {
        head[n++] = "steps";
        head[n++] = "train";
        head[n++] = "eval";
        if (p->seeded)
            head[n++] = "spread", head[n++] = "+-95%";
    }
    out.columns = n + 2;
    table_text(&out, "point");
    for (size_t i = 0; i < n; i++)
        table_right(&out, head[i]);
    table_text(&out, "");
    for (size_t c = 0; c < p->configs; c++) {
        const Row *r = &t->row[c];
        const PointCost *k = &r->first->cost;
        const SeedSpread *loss = judged(t, r);
        table_text(&out, row_name(t, r));
        cell_count(&out, k->counted ? k->live : NAN);
        cell_count(&out, k->counted ? k->stored : NAN);
        cell_count(&out, k->counted ? k->flops : NAN);
        cell_number(&out, "width", k->counted ? k->width : NAN);
        cell_bytes(&out, k->counted ? k->kv : NAN);
        if (list) {
            cell_bytes(&out, k->counted ? k->memory : NAN);
            table_right(&out, seconds_text(t->arena, k->counted ? k->step_seconds : NAN));
        } else {
            cell_count(&out, spread_mean(&r->step));
            cell_number(&out, "loss", spread_mean(&r->train));
            cell_number(&out, "loss", spread_mean(&r->eval));
            if (p->seeded) {
                cell_number(&out, "loss", loss->n > 1 ? loss->high - loss->low : NAN);
                cell_number(&out, "loss", interval_of_row(t, c).half);
            }
        }
        table_text(&out, list && r->first->state == POINT_DONE ? "" : states_text(t->arena, r, t->s->listing));
    }
    table_print(b, &out);
    if (list && p->seeded)
        put_seeds(b, p);
    if (list && !times)
        buf_puts(b, "  no time of a step: `vwn doctor --measure` has not measured this machine\n");
}

/* The lowest of those that are done; it is the best where seeds do not explain its difference to any other. */
static void put_best(Buf *b, const Tables *t)
{
    const SweepPlan *p = t->s->plan;
    SeedMean *of = NEW_ARRAY(t->arena, SeedMean, p->configs + 1);
    bool *whole = NEW_ARRAY(t->arena, bool, p->configs + 1), known = true;
    size_t best = p->configs, n = 0, tied = 0;
    for (size_t c = 0; c < p->configs; c++) {
        const Row *r = &t->row[c];
        whole[c] = judged(t, r)->n == r->n && r->by_state[POINT_DONE] == r->n;
        of[c] = interval_of_row(t, c);
        if (!whole[c])
            continue;
        n++;
        known &= of[c].n > 1;
        if (best == p->configs || of[c].mean < of[best].mean)
            best = c;
    }
    if (!n)
        return;
    Buf others = buf_new(t->arena);
    for (size_t c = 0; c < p->configs; c++) {
        SeedGap gap = interval_gap(&of[best], &of[c]);
        if (c != best && whole[c] && !gap.differ && (isfinite(gap.half) || gap.by == 0) && ++tied <= 8)
            buf_printf(&others, "%s%s", others.n ? ", " : "", row_name(t, &t->row[c]));
    }
    buf_printf(b, "\n%s: %s, %s %.4f", known && !tied && n > 1 ? "best" : "lowest", row_name(t, &t->row[best]),
               judged(t, &t->row[best]) == &t->row[best].eval ? "eval" : "train", of[best].mean);
    if (isfinite(of[best].half))
        buf_printf(b, " +-%.4f", of[best].half);
    if (tied)
        buf_printf(b, ", tied with %s%s", others.s, tied > 8 ? arena_printf(t->arena, " and %zu more", tied - 8) : "");
    if (known && n > 1)
        buf_puts(b, tied ? ": differences that seeds explain (95 %)"
                         : ": its difference to each other is more than seeds explain (95 %)");
    else if (n > 1)
        buf_puts(b, "; one seed tells nothing of chance: --seeds 1,2,3");
    buf_putc(b, '\n');
}

/* ---- `report`: one axis down, one across ---- */

/* Whether two configurations differ in the rows and columns alone. */
static bool same_sheet(const SweepPlan *p, const size_t *a, const size_t *b)
{
    for (size_t i = 0; i < p->n_axis; i++) {
        bool moves = (int)i == p->rows || (int)i == p->columns || p->axis[i].dim == p->axis[p->rows].dim ||
                     p->axis[i].dim == p->axis[p->columns].dim;
        if (!moves && a[i] != b[i])
            return false;
    }
    return true;
}

static const char *cell_at(const Tables *t, const size_t *sheet, size_t row, size_t column)
{
    const SweepPlan *p = t->s->plan;
    for (size_t c = 0; c < p->configs; c++) {
        const size_t *at = t->row[c].point->at;
        const SeedSpread *loss = judged(t, &t->row[c]);
        if (!same_sheet(p, at, sheet) || at[p->rows] != row || at[p->columns] != column)
            continue;
        if (!loss->n)
            return states_text(t->arena, &t->row[c], t->s->listing);
        return loss->n > 1 ? arena_printf(t->arena, "%.4f (%.4f)", spread_mean(loss), loss->high - loss->low)
                           : arena_printf(t->arena, "%.4f", spread_mean(loss));
    }
    return "";
}

static void put_sheet(Buf *b, const Tables *t, const size_t *sheet)
{
    const SweepPlan *p = t->s->plan;
    const SweepAxis *rows = &p->axis[p->rows], *columns = &p->axis[p->columns];
    Table out = {.arena = t->arena, .columns = columns->n + 1};
    buf_printf(b, "\n%s: %s down, %s across", p->table_train_loss ? "train.loss" : "eval.loss", rows->path,
               columns->path);
    for (size_t i = 0; i < p->n_axis; i++)
        if (p->axis[i].dim != rows->dim && p->axis[i].dim != columns->dim)
            buf_printf(b, "; %s = %s", p->axis[i].path, p->axis[i].text[sheet[i]]);
    buf_puts(b, p->seeded ? "; spread in brackets\n" : "\n");
    table_text(&out, "");
    for (size_t k = 0; k < columns->n; k++)
        table_right(&out, columns->text[k]);
    for (size_t i = 0; i < rows->n; i++) {
        table_text(&out, rows->text[i]);
        for (size_t k = 0; k < columns->n; k++)
            table_right(&out, cell_at(t, sheet, i, k));
    }
    table_print(b, &out);
}

static void put_report(Buf *b, const Tables *t)
{
    const SweepPlan *p = t->s->plan;
    for (size_t c = 0; c < p->configs && p->rows >= 0; c++) {
        bool first = true;
        for (size_t k = 0; k < c && first; k++)
            first = !same_sheet(p, t->row[k].point->at, t->row[c].point->at);
        if (first)
            put_sheet(b, t, t->row[c].point->at);
    }
}

/* ---- CSV and JSON: a line, an object, for each point ---- */

typedef struct Figure {
    const char *key;
    double value;
} Figure;
enum { FIGURES = 12 };

static size_t figures(const SweepRun *s, size_t point, Figure out[FIGURES])
{
    const PointResult *r = &s->result[point];
    const PointCost *c = &r->cost;
    double none = c->counted ? 0 : NAN; /* added: nothing is known */
    size_t n = 0;
    out[n++] = (Figure){"params", c->live + none};
    out[n++] = (Figure){"stored", c->stored + none};
    out[n++] = (Figure){"flops_per_token", c->flops + none};
    out[n++] = (Figure){"mean_width", c->width + none};
    out[n++] = (Figure){"kv_bytes", c->kv + none};
    if (s->listing) {
        out[n++] = (Figure){"memory_bytes", c->memory + none};
        out[n++] = (Figure){"step_seconds", c->step_seconds + none};
        return n;
    }
    out[n++] = (Figure){"step", r->step};
    out[n++] = (Figure){"tokens", r->tokens};
    out[n++] = (Figure){"train_loss", r->train_loss};
    out[n++] = (Figure){"eval_loss", r->eval_loss};
    out[n++] = (Figure){"seconds", r->seconds};
    return n;
}

/* Points in the order of the table; of `--list` the first of each configuration. */
static size_t *in_order(const Tables *t, size_t *n)
{
    const SweepPlan *p = t->s->plan;
    size_t *out = NEW_ARRAY(t->arena, size_t, p->n + 1), *from = NEW_ARRAY(t->arena, size_t, p->configs + 2);
    *n = p->n;
    for (size_t i = 0; i < p->n; i++)
        from[p->point[i].config + 1]++;
    for (size_t c = 0; c < p->configs; c++)
        from[c + 1] += from[c];
    for (size_t i = 0; i < p->n; i++)
        out[from[p->point[i].config]++] = i;
    if (!t->s->listing)
        return out;
    *n = p->configs;
    for (size_t c = 0; c < p->configs; c++)
        out[c] = (size_t)(t->row[c].point - p->point);
    return out;
}

static void put_csv(Buf *b, const Tables *t)
{
    const SweepPlan *p = t->s->plan;
    size_t n, k = 0;
    const size_t *order = in_order(t, &n);
    Figure f[FIGURES];
    buf_puts(b, "point");
    for (size_t i = 0; i < p->n_axis; i++) {
        buf_putc(b, ',');
        buf_csv_string(b, p->axis[i].path);
    }
    buf_puts(b, p->seeded && !t->s->listing ? ",seed,state" : ",state");
    for (size_t m = figures(t->s, 0, f); k < m; k++)
        buf_printf(b, ",%s", f[k].key);
    buf_putc(b, '\n');
    for (size_t j = 0; j < n; j++) {
        const SweepPoint *q = &p->point[order[j]];
        buf_csv_string(b, t->s->listing ? row_name(t, &t->row[q->config]) : q->name);
        for (size_t i = 0; i < p->n_axis; i++) {
            buf_putc(b, ',');
            buf_csv_string(b, p->axis[i].text[q->at[i]]);
        }
        if (p->seeded && !t->s->listing)
            buf_printf(b, ",%lld", (long long)q->seed);
        buf_printf(b, ",%s",
                   t->s->listing && t->s->result[order[j]].state == POINT_DONE
                       ? "counted"
                       : point_state[t->s->result[order[j]].state]);
        size_t m = figures(t->s, order[j], f);
        for (k = 0; k < m; k++) {
            buf_putc(b, ',');
            if (isfinite(f[k].value))
                buf_number(b, f[k].value);
        }
        buf_putc(b, '\n');
    }
}

static void put_name(Buf *b, const char *before, const char *name)
{
    buf_printf(b, "%s\"name\":", before);
    buf_json_string(b, name, strlen(name));
}

static void json_values(Buf *b, const SweepPlan *p, const SweepPoint *q)
{
    buf_puts(b, ",\"values\":{");
    for (size_t i = 0; i < p->n_axis; i++) {
        buf_puts(b, i ? "," : "");
        buf_json_string(b, p->axis[i].path, strlen(p->axis[i].path));
        buf_putc(b, ':');
        buf_json_string(b, p->axis[i].text[q->at[i]], strlen(p->axis[i].text[q->at[i]]));
    }
    buf_putc(b, '}');
}

static void json_spread(Buf *b, const char *key, const SeedSpread *s)
{
    buf_printf(b, ",\"%s\":{\"points\":%zu", key, s->n);
    sweep_put_number(b, "mean", spread_mean(s));
    sweep_put_number(b, "low", s->n ? s->low : NAN);
    sweep_put_number(b, "high", s->n ? s->high : NAN);
    buf_putc(b, '}');
}

static void put_json(Buf *b, const Tables *t)
{
    const SweepPlan *p = t->s->plan;
    size_t n;
    const size_t *order = in_order(t, &n);
    Figure f[FIGURES];
    buf_puts(b, "{\"v\":1,\"event\":\"sweep\"");
    sweep_put_string(b, "name", p->name);
    sweep_put_string(b, "file", p->file);
    if (t->s->dir)
        sweep_put_string(b, "directory", t->s->dir->path);
    buf_puts(b, ",\"points\":[");
    for (size_t j = 0; j < n; j++) {
        const SweepPoint *q = &p->point[order[j]];
        put_name(b, j ? ",{" : "{", t->s->listing ? row_name(t, &t->row[q->config]) : q->name);
        json_values(b, p, q);
        if (p->seeded && !t->s->listing)
            sweep_put_number(b, "seed", (double)q->seed);
        if (!t->s->listing || t->s->result[order[j]].state != POINT_DONE)
            sweep_put_string(b, "state", point_state[t->s->result[order[j]].state]);
        for (size_t k = 0, m = figures(t->s, order[j], f); k < m; k++)
            sweep_put_number(b, f[k].key, f[k].value);
        if (t->s->result[order[j]].why[0])
            sweep_put_string(b, "why", t->s->result[order[j]].why);
        buf_puts(b, ",\"set\":[");
        for (size_t k = 0; k < q->n_set; k++) {
            buf_puts(b, k ? "," : "");
            buf_json_string(b, q->set[k], strlen(q->set[k]));
        }
        buf_puts(b, "]}");
    }
    buf_putc(b, ']');
    for (size_t c = 0; c < p->configs && !t->s->listing; c++) {
        put_name(b, c ? ",{" : ",\"means\":[{", row_name(t, &t->row[c]));
        json_values(b, p, t->row[c].point);
        json_spread(b, "train_loss", &t->row[c].train);
        json_spread(b, "eval_loss", &t->row[c].eval);
        sweep_put_number(b, "interval", interval_of_row(t, c).half);
        buf_puts(b, c + 1 < p->configs ? "}" : "}]");
    }
    buf_puts(b, "}\n");
}

void sweep_print(SweepRun *s)
{
    Tables t;
    Buf b = buf_new(s->session.arena);
    gather(&t, s);
    if (s->how->form == VWN_SWEEP_JSON) {
        put_json(&b, &t);
    } else if (s->how->form == VWN_SWEEP_CSV) {
        put_csv(&b, &t);
    } else {
        put_table(&b, &t);
        if (!s->listing) {
            put_report(&b, &t);
            put_best(&b, &t);
        }
    }
    write_text(s->out, b.s, b.n);
}

/* ---- the picture ---- */

typedef struct Dot {
    double x;
    const Row *row;
    const char *series;
} Dot;

static int by_series_and_x(const void *a, const void *b)
{
    const Dot *p = a, *q = b;
    int order = strcmp(p->series, q->series);
    return order ? order : (p->x > q->x) - (p->x < q->x);
}

/* Which axis the picture is over: its number; -1 to -3: live and stored weights, FLOPs. */
static int picture_axis(const Tables *t)
{
    static const char *const other[] = {"params", "stored", "flops"};
    const SweepPlan *p = t->s->plan;
    const char *by = t->s->how->by;
    for (int k = 0; by && k < 3; k++)
        if (!strcmp(by, other[k]))
            return -1 - k;
    for (size_t i = 0; i < p->n_axis; i++) {
        bool numbers = true;
        for (size_t k = 0; k < p->axis[i].n; k++)
            numbers = numbers && isfinite(p->axis[i].number[k]);
        if (by && !strcmp(by, p->axis[i].path) && !numbers)
            ctx_raise(t->s->session.ctx, ST_USAGE, "the axis `%.80s` has values that are no numbers", by);
        if (by ? !strcmp(by, p->axis[i].path) : numbers && (p->columns < 0 || p->columns == (int)i))
            return (int)i;
    }
    if (by)
        ctx_raise(t->s->session.ctx, ST_USAGE, "`--by %.80s`: an axis of the sweep, params, stored or flops is needed",
                  by);
    return -1;
}

void sweep_want_axis(SweepRun *s) { picture_axis(&(Tables){.s = s}); }

static double picture_x(const Tables *t, int axis, const Row *r)
{
    const PointCost *c = &r->first->cost;
    if (axis >= 0)
        return t->s->plan->axis[axis].number[r->point->at[axis]];
    return !c->counted ? NAN : axis == -1 ? c->live : axis == -2 ? c->stored : c->flops;
}

/* "d = 640, L = 16": the values of what does not move along the picture. */
static const char *series_name(const Tables *t, int axis, const Row *r)
{
    const SweepPlan *p = t->s->plan;
    Buf b = buf_new(t->arena);
    for (size_t i = 0; i < p->n_axis && axis >= 0; i++)
        if (!p->axis[i].drawn && p->axis[i].dim != p->axis[axis].dim)
            buf_printf(&b, "%s%s = %s", b.n ? ", " : "", p->axis[i].path, p->axis[i].text[r->point->at[i]]);
    return b.s;
}

void sweep_svg(SweepRun *s)
{
    enum { SERIES_MOST = 12 };
    Tables t;
    gather(&t, s);
    Arena *a = t.arena;
    int axis = picture_axis(&t);
    size_t n = 0, m = 0;
    Dot *dot = NEW_ARRAY(a, Dot, s->plan->configs + 1);
    for (size_t c = 0; c < s->plan->configs; c++)
        if (judged(&t, &t.row[c])->n && isfinite(picture_x(&t, axis, &t.row[c])))
            dot[n++] = (Dot){picture_x(&t, axis, &t.row[c]), &t.row[c], series_name(&t, axis, &t.row[c])};
    if (!n)
        ctx_raise(s->session.ctx, ST_USAGE, "no point has a loss that could be drawn");
    qsort(dot, n, sizeof *dot, by_series_and_x);
    ChartSeries *series = NEW_ARRAY(a, ChartSeries, n + 1);
    double *v[4];
    for (int j = 0; j < 4; j++)
        v[j] = NEW_ARRAY(a, double, n);
    for (size_t i = 0; i < n; i++) {
        const SeedSpread *loss = judged(&t, dot[i].row);
        v[0][i] = dot[i].x;
        v[1][i] = spread_mean(loss);
        v[2][i] = loss->low;
        v[3][i] = loss->high;
        if (!i || strcmp(dot[i].series, dot[i - 1].series))
            series[m++] = (ChartSeries){dot[i].series,
                                        v[0] + i,
                                        v[1] + i,
                                        s->plan->seeded ? v[2] + i : NULL,
                                        s->plan->seeded ? v[3] + i : NULL,
                                        0,
                                        true};
        series[m - 1].n++;
    }
    if (m > SERIES_MOST)
        ctx_raise(s->session.ctx, ST_USAGE,
                  "a picture over `%.80s` has %zu curves; choose another axis, or `--by params`",
                  s->plan->axis[axis].path, m);
    static const char *const label[] = {"weights", "stored weights", "FLOPs per token, forward"};
    const char *x = axis >= 0 ? s->plan->axis[axis].path : label[-1 - axis];
    const char *y = t.any_eval && !s->plan->table_train_loss ? "eval loss" : "train loss";
    Chart chart = {.title = arena_printf(a, "%s: %s by %s", s->plan->name, y, x),
                   .x_label = x,
                   .y_label = y,
                   .series = series,
                   .n = m};
    Buf b = buf_new(a);
    chart_svg(&b, &chart, 1);
    write_text(s->how->svg, b.s, b.n);
}
