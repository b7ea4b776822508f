/* report_page.c - `vwn report`: runs as one HTML page that needs nothing else.
 *
 * In:  run directories.   Out: a text that is HTML and XML: what was run, curves, what the models are, how they grew.
 * The one idea: the page has no script. Pictures are SVG in it; which axis the curves are over is chosen by radio buttons
 * and rules of CSS, and a reader without CSS sees all of them, one after the other.
 */
#include <math.h>
#include <stdio.h>

#include "compiler/file/check_unit.h"
#include "compiler/report/report.h"
#include "runtime/draw/chart.h"
#include "runtime/draw/heat.h"
#include "inside.h"
#include "runtime/checkpoint/run_list.h"
#include "run_state.h"
#include "runtime/checkpoint/source.h"
#include "look.h"

enum { SHOWN = 400, PICTURE_WIDE = 400, PICTURE_HIGH = 260 };

typedef struct PageRun {
    RunState state;
    const char *text, *origin; /* of resolved.vwn, NULL where it cannot be read; the file that it was made of */
    Settings set;
    size_t model; /* of Page.model */
    size_t number;
} PageRun;

/* What several runs have in common: the same resolved text. */
typedef struct PageModel {
    const char *text, *why; /* why it cannot be shown, or NULL */
    Unit *unit;
} PageModel;

typedef struct Page {
    Session session;
    const vwn_page_options *how;
    const vwn_writer *out;
    const Hooks *hooks;
    PageRun *run;
    size_t n;
    VEC(PageModel) model;
    Buf b;
    int pictures;
} Page;

/* ---- reading ---- */

/* The text behind "# Resolved from ", or "". */
static const char *origin_of(Arena *a, const char *text)
{
    static const char head[] = "# Resolved from ";
    if (!text || strncmp(text, head, sizeof head - 1))
        return "";
    size_t n = strcspn(text + sizeof head - 1, "\n");
    while (n && text[sizeof head - 1 + n - 1] == '.')
        n--;
    return arena_copy(a, text + sizeof head - 1, n);
}

typedef struct Checking {
    Page *page;
    PageModel *model;
    const char *path;
} Checking;

static Status check_text(void *user)
{
    Checking *c = user;
    CheckOptions how = {.path = c->path, .text = c->model->text, .text_length = strlen(c->model->text)};
    c->model->unit = c->page->hooks->check(c->page->session.ctx, &how);
    return ST_OK;
}

/* A file that does not check, or that checking gives up, leaves the rest of the page as it is. */
static void check_model(Page *p, PageModel *m, const char *path)
{
    Ctx *ctx = p->session.ctx;
    Checking c = {p, m, path};
    size_t before = diag_count(ctx);
    Status st = guarded(ctx, check_text, &c);
    if (st != ST_OK && st != ST_INPUT)
        ctx_raise(ctx, st, "%s", arena_printf(p->session.arena, "%s", ctx->message));
    if (st == ST_OK && diag_only_checks(ctx, before)) {
        m->why = m->unit->model ? NULL : "its file has no model";
    } else {
        m->why = "its file does not check with this version of vwn";
        session_warn(&p->session, arena_printf(p->session.arena, "%.300s does not check with this version of vwn: the report leaves its model out", path));
    }
    diag_truncate(ctx, before);
}

/* The model of that text, which is checked once. */
static size_t model_of(Page *p, const char *text, const char *path)
{
    for (size_t i = 0; i < p->model.n; i++)
        if (!strcmp(p->model.v[i].text, text))
            return i;
    vec_push(p->session.arena, &p->model, ((PageModel){.text = text}));
    check_model(p, &p->model.v[p->model.n - 1], path);
    return p->model.n - 1;
}

static void read_run(Page *p, PageRun *r, const char *where)
{
    Session *s = &p->session;
    char *text;
    size_t n;
    r->state = run_state_read(s, where);
    events_warn(s, where, &r->state.events);
    const char *path = arena_printf(s->arena, "%s/resolved.vwn", where);
    r->model = SIZE_MAX;
    r->set = run_settings(s->ctx, s->arena, where);
    text = run_read_file(s->arena, path, &n);
    if (!text) {
        session_warn(s, arena_printf(s->arena, "%.300s cannot be read: the report leaves its model out", path));
        return;
    }
    r->text = text;
    r->origin = origin_of(s->arena, text);
    r->model = model_of(p, text, path);
}

/* ---- pieces of text ---- */

static void put(Page *p, const char *html)
{
    buf_puts(&p->b, html);
}

/* <tag>text</tag>, the text escaped. */
static void element(Page *p, const char *tag, const char *text)
{
    buf_printf(&p->b, "<%s>", tag);
    xml_text(&p->b, text);
    buf_printf(&p->b, "</%.*s>", (int)strcspn(tag, " "), tag);
}

static void number_cell(Page *p, const char *text)
{
    element(p, "td class=\"n\"", text);
}

static const char *quantity(Arena *a, double v)
{
    Buf text = buf_new(a);
    if (!isfinite(v))
        return "\u2013";
    chart_tick(&text, v, fabs(v) >= 9999.5 ? pow(10, floor(log10(fabs(v))) - 2) : v == floor(v) ? 1 : 0.1);
    return text.s;
}

static const char *real(Arena *a, double v, const char *none)
{
    return isfinite(v) ? arena_printf(a, "%.4f", v) : none;
}

static const char *counted(Arena *a, int64_t n)
{
    Buf b = buf_new(a);
    buf_count(&b, n);
    return b.s;
}

/* Heads of columns of numbers begin with a >. */
static void table_open(Page *p, const char *const *head)
{
    put(p, "<div class=\"box\" tabindex=\"0\"><table><thead><tr>");
    for (; *head; head++)
        element(p, **head == '>' ? "th class=\"n\"" : "th", *head + (**head == '>'));
    put(p, "</tr></thead><tbody>\n");
}

static void table_close(Page *p)
{
    put(p, "</tbody></table></div>\n");
}

static void head_row(Page *p, const char *name, const char *text)
{
    if (!*text)
        return;
    element(p, "dt", name);
    element(p, "dd", text);
}

/* The mark of a run: its number and its colour. */
static void mark_of(Page *p, const PageRun *r)
{
    buf_printf(&p->b, "<svg class=\"k\" viewBox=\"0 0 14 4\" aria-hidden=\"true\"><path class=\"s%zu\" stroke-width=\"4\" d=\"M0 2h14\"/></svg> ",
               r->number % 8);
    if (p->n > 1)
        buf_printf(&p->b, "%zu ", r->number + 1);
}

/* ---- what was run ---- */

static double best_eval(const RunState *r)
{
    double best = NAN;
    const RunCurve *c = &r->curve.v[CURVE_EVAL];
    for (size_t i = 0; i < c->point.n; i++)
        best = fmin(best, c->point.v[i].value); /* of a NaN and a number: the number */
    return best;
}

static void runs_table(Page *p)
{
    static const char *const head[] = {"run", "state", ">steps", ">tokens", ">FLOPs", ">time", ">loss", ">held out", ">best", ">tokens/s", NULL};
    Arena *a = p->session.arena;
    table_open(p, head);
    for (size_t i = 0; i < p->n; i++) {
        const RunState *r = &p->run[i].state;
        put(p, "<tr><td>");
        mark_of(p, &p->run[i]);
        xml_text(&p->b, r->name);
        put(p, "</td>");
        element(p, "td", run_phase_names[r->phase]);
        number_cell(p, isfinite(r->steps) ? arena_printf(a, "%.0f / %.0f", r->last.x[BY_STEP], r->steps) : quantity(a, r->last.x[BY_STEP]));
        number_cell(p, quantity(a, r->last.x[BY_TOKENS]));
        number_cell(p, quantity(a, r->last.x[BY_FLOPS]));
        number_cell(p, duration_text(a, r->last.x[BY_SECONDS]));
        number_cell(p, real(a, run_curve_last(r, CURVE_LOSS), "\u2013"));
        number_cell(p, real(a, run_curve_last(r, CURVE_EVAL), "\u2013"));
        number_cell(p, real(a, best_eval(r), "\u2013"));
        number_cell(p, quantity(a, run_curve_last(r, CURVE_RATE)));
        put(p, "</tr>\n");
    }
    table_close(p);
}

/* What stands in the last brackets: "nano: 80,112 weights, ... (cpu)". */
static const char *device_of(Arena *a, const char *start)
{
    const char *open = strrchr(start, '(');
    return open ? arena_copy(a, open + 1, strcspn(open + 1, ")")) : "";
}

static void run_details(Page *p, const PageRun *r)
{
    Arena *a = p->session.arena;
    const RunState *s = &r->state;
    const PageModel *m = r->model < p->model.n ? &p->model.v[r->model] : NULL;
    const Train *t = m && !m->why ? m->unit->train : NULL;
    Buf set = buf_new(a);
    for (size_t i = 0; i < r->set.n; i++)
        buf_printf(&set, "%s%s", i ? "\n" : "", r->set.v[i]);
    buf_printf(&p->b, "<details%s><summary>", p->n == 1 ? " open=\"open\"" : "");
    mark_of(p, r);
    xml_text(&p->b, s->name);
    put(p, "</summary><dl>\n");
    head_row(p, "directory", s->path);
    head_row(p, "file", r->origin ? r->origin : "");
    head_row(p, "settings", set.n ? set.s : "none: as the file says");
    head_row(p, "device", device_of(a, s->start));
    head_row(p, "began as", s->start);
    if (s->starts > 1)
        head_row(p, "", arena_printf(a, "it went on %lld time%s", (long long)s->starts - 1, s->starts == 2 ? "" : "s"));
    if (t) {
        head_row(p, "seed", arena_printf(a, "%llu", (unsigned long long)t->seed));
        head_row(p, "precision", t->precision ? t->precision : "");
        head_row(p, "optimizer", t->optimizer.kind ? t->optimizer.kind : "");
        head_row(p, "a step", arena_printf(a, "%lld sequences of %lld positions", (long long)t->batch_seqs, (long long)t->context));
    }
    head_row(p, "kernels", s->compile);
    if (isfinite(s->memory) && s->memory > 0)
        head_row(p, "memory", bytes_text(a, s->memory));
    head_row(p, "ended as", *s->end ? s->end : run_phase_names[s->phase]);
    if (s->events.damaged)
        head_row(p, "damaged", arena_printf(a, "%lld lines of events.jsonl, the first is line %lld", (long long)s->events.damaged,
                                            (long long)s->events.first_damaged));
    put(p, "</dl></details>\n");
}

/* ---- curves ---- */

static const RunCurve *curve_of(const PageRun *r, Name name)
{
    for (size_t i = 0; i < r->state.curve.n; i++)
        if (r->state.curve.v[i].name == name && r->state.curve.v[i].point.n)
            return &r->state.curve.v[i];
    return NULL;
}

/* Curves with more points than a picture can show: means of neighbours. */
static ChartSeries thinned(Arena *a, const char *name, const RunCurve *c, HistoryAxis by)
{
    size_t n = c ? c->point.n : 0, each = (n + SHOWN - 1) / SHOWN, k = 0;
    double *x = NEW_ARRAY(a, double, n + 1), *y = NEW_ARRAY(a, double, n + 1);
    for (size_t i = 0; i < n; i += each, k++) {
        size_t end = i + each < n ? i + each : n;
        x[k] = y[k] = 0;
        for (size_t j = i; j < end; j++) {
            x[k] += c->point.v[j].x[by] / (double)(end - i);
            y[k] += c->point.v[j].value / (double)(end - i);
        }
    }
    return (ChartSeries){.name = name, .x = x, .y = y, .n = k, .points = k <= 40};
}

static void curve_picture(Page *p, Name name, HistoryAxis by)
{
    Arena *a = p->session.arena;
    ChartSeries *s = NEW_ARRAY(a, ChartSeries, p->n);
    VEC(ChartMark) marks = {0};
    bool falls = strstr(name, "loss") != NULL, any = false;
    for (size_t i = 0; i < p->n; i++) {
        const PageRun *r = &p->run[i];
        s[i] = thinned(a, arena_printf(a, "%zu", i + 1), curve_of(r, name), by);
        any |= s[i].n > 1;
        falls &= !s[i].points || !s[i].n; /* few points are all shown */
        for (size_t k = 0; k < r->state.growth.n; k++)
            vec_push(a, &marks, ((ChartMark){r->state.growth.v[k].x[by], r->state.growth.v[k].name, i}));
    }
    if (!any)
        return;
    Chart c = {.title = name, .x_label = history_axis_name[by], .y_label = "", .series = s, .n = p->n, .mark = marks.v, .n_marks = marks.n,
               .wide = PICTURE_WIDE, .high = PICTURE_HIGH, .id = arena_printf(a, "p%d", p->pictures++), .falls = falls, .whole = by != BY_SECONDS};
    put(p, "<figure>");
    chart_svg(&p->b, &c, 1);
    put(p, "</figure>\n");
}

/* The names of all curves, in the order of the runs; one of several losses alone is the loss itself. */
typedef VEC(Name) Names;

static Names curve_names(Page *p)
{
    Names all = {0};
    for (size_t i = 0; i < p->n; i++) {
        const RunState *r = &p->run[i].state;
        size_t losses = 0;
        for (size_t k = 0; k < r->curve.n; k++)
            losses += !strncmp(r->curve.v[k].name, "loss.", 5);
        for (size_t k = 0; k < r->curve.n; k++) {
            bool seen = losses < 2 && strstr(r->curve.v[k].name, "loss.");
            for (size_t j = 0; j < all.n; j++)
                seen |= all.v[j] == r->curve.v[k].name;
            if (!seen)
                vec_push(p->session.arena, &all, r->curve.v[k].name);
        }
    }
    return all;
}

static bool axis_is_known(const Page *p, HistoryAxis by)
{
    for (size_t i = 0; i < p->n; i++)
        if (!isfinite(p->run[i].state.last.x[by]))
            return false;
    return true;
}

static void curves(Page *p)
{
    Names names = curve_names(p);
    put(p, "<section><h2>Curves</h2>\n<div class=\"by\">");
    for (int by = 0; by < HISTORY_AXES; by++)
        if (axis_is_known(p, (HistoryAxis)by))
            buf_printf(&p->b, "<input type=\"radio\" name=\"by\" id=\"by%d\"%s/><label for=\"by%d\">by %s</label>\n", by,
                       by ? "" : " checked=\"checked\"", by, history_axis_name[by]);
    for (int by = 0; by < HISTORY_AXES; by++) {
        if (!axis_is_known(p, (HistoryAxis)by))
            continue;
        buf_printf(&p->b, "<div class=\"plots by%d\">\n", by);
        for (size_t i = 0; i < names.n; i++)
            curve_picture(p, names.v[i], (HistoryAxis)by);
        put(p, "</div>\n");
    }
    put(p, "</div>\n<p class=\"small\">FLOPs are of training, forward and backward. Of a curve with more than 400 points, means of neighbours are "
           "shown. The numbers at the curves are those of the runs; a dashed line is a growth step.</p></section>\n");
}

/* ---- models ---- */

static void widths(Page *p, const Model *m)
{
    Arena *a = p->session.arena;
    size_t n = m->step.n;
    double *x = NEW_ARRAY(a, double, n + 1), *reads = NEW_ARRAY(a, double, n + 1), *state = NEW_ARRAY(a, double, n + 1);
    for (size_t i = 0; i < n; i++) {
        x[i] = (double)(i + 1);
        reads[i] = (double)m->step.v[i].reads;
        state[i] = (double)m->step.v[i].state;
    }
    ChartSeries s[2] = {{.name = "R", .x = x, .y = reads, .n = n, .points = n <= 80}, {.name = "S", .x = x, .y = state, .n = n, .points = n <= 80}};
    bool same = true;
    for (size_t i = 0; i < n; i++)
        same &= reads[i] == state[i];
    Chart c = {.title = "widths over depth", .x_label = "sublayer", .y_label = "coordinates", .series = s, .n = same ? 1 : 2, .wide = PICTURE_WIDE,
               .high = PICTURE_HIGH, .id = arena_printf(a, "p%d", p->pictures++), .whole = true};
    if (n < 2)
        return;
    put(p, "<figure>");
    chart_svg(&p->b, &c, 1);
    put(p, same ? "<figcaption>Coordinates of a position that a sublayer reads, as many as the state has.</figcaption></figure>\n"
                : "<figcaption>R: coordinates of a position that a sublayer reads. S: those of the state that goes past it.</figcaption></figure>\n");
}

static void connections(Page *p, const Model *m)
{
    static const char *const head[] = {"connection", ">sublayers", ">read", ">state", ">weights", NULL};
    Arena *a = p->session.arena;
    table_open(p, head);
    for (size_t i = 0; i < m->step.n; i++) {
        const ModelStep *s = &m->step.v[i];
        int64_t count = 0, low = s->reads, high = s->reads, widest = s->state, weights = 0;
        bool seen = false;
        for (size_t k = 0; k < m->step.n; k++) {
            const ModelStep *o = &m->step.v[k];
            if (o->connection != s->connection)
                continue;
            seen |= k < i;
            count++;
            low = o->reads < low ? o->reads : low;
            high = o->reads > high ? o->reads : high;
            widest = o->state > widest ? o->state : widest;
            const char *own = arena_printf(a, "%s.connection", o->path);
            size_t length = strlen(own);
            for (size_t j = 0; j < m->param.n; j++)
                if (!strncmp(m->param.v[j].path, own, length) && m->param.v[j].path[length] == '.')
                    weights += m->param.v[j].elements;
        }
        if (seen)
            continue;
        put(p, "<tr>");
        element(p, "td", s->connection);
        number_cell(p, counted(a, count));
        number_cell(p, low == high ? counted(a, low) : arena_printf(a, "%s to %s", counted(a, low), counted(a, high)));
        number_cell(p, counted(a, widest));
        number_cell(p, counted(a, weights));
        put(p, "</tr>\n");
    }
    table_close(p);
}

static void cost_row(Page *p, const char *name, const char *value)
{
    put(p, "<tr>");
    element(p, "td", name);
    number_cell(p, value);
    put(p, "</tr>\n");
}

static void costs(Page *p, Unit *u)
{
    static const struct {
        const char *key, *name;
    } of[] = {{"stored", "weights stored"}, {"live", "weights that can learn"}, {"active", "weights for a token"},
              {"flops_per_token", "FLOPs of a token, forward"}, {"flop_training", "FLOPs of a token, training"},
              {"run_tokens", "tokens of the run"}, {"run_pf_days", "PF-days of the run"}, {"kv_per_token", "bytes of keys and values for a token"}};
    static const char *const head[] = {"costs", ">", NULL}, *const modules[] = {"module", ">times", ">weights", ">FLOPs, forward", NULL};
    Arena *a = p->session.arena;
    Buf b = buf_new(a);
    JsonError error;
    MemoryNeed need = session_memory(p->session.ctx, u->model, u->train, 0, NULL);
    ReportMemory memory = {.batch_seqs = u->train ? u->train->micro_seqs : 1, .training = u->train != NULL, .total = need.total};
    report_cost(&b, u, &memory, NULL, true);
    const Json *cost = json_read(a, b.s, strcspn(b.s, "\n"), &error);
    if (!cost)
        vwn_bug(p->session.ctx, "the costs are no JSON: %s", error.what);
    table_open(p, head);
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++) {
        double v = event_number(cost, of[i].key);
        if (isfinite(v))
            cost_row(p, of[i].name, v == floor(v) && v < 1e15 ? counted(a, (int64_t)v) : arena_printf(a, "%.4g", v));
    }
    const struct {
        const char *name;
        uint64_t bytes;
    } parts[] = {{"weights and buffers", need.weights + need.buffers}, {"gradients", need.gradients}, {"optimizer", need.optimizer},
                 {"averages", need.average}, {"activations", need.arena}, {"all memory, as planned", need.total}};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (parts[i].bytes)
            cost_row(p, arena_printf(a, "memory: %s", parts[i].name), bytes_text(a, (double)parts[i].bytes));
    table_close(p);
    put(p, "</div><div>");
    table_open(p, modules);
    const Json *list = json_get(cost, "modules");
    for (const Json *v = list && list->kind == JSON_ARRAY ? list->first : NULL; v; v = v->next) {
        put(p, "<tr>");
        element(p, "td", json_string(v, "path"));
        number_cell(p, counted(a, (int64_t)event_number(v, "instances")));
        number_cell(p, counted(a, (int64_t)event_number(v, "stored")));
        number_cell(p, counted(a, (int64_t)(event_number(v, "flop_products") + event_number(v, "flop_attention"))));
        put(p, "</tr>\n");
    }
    table_close(p);
}

static void model_section(Page *p, size_t i)
{
    const PageModel *m = &p->model.v[i];
    put(p, "<section><h2>Model");
    if (!m->why && m->unit->model->name) {
        put(p, " ");
        xml_text(&p->b, m->unit->model->name);
    }
    put(p, "</h2>\n<p>of ");
    for (size_t k = 0, n = 0; k < p->n; k++)
        if (p->run[k].model == i) {
            put(p, n++ ? ", " : "");
            mark_of(p, &p->run[k]);
            xml_text(&p->b, p->run[k].state.name);
        }
    put(p, "</p>\n");
    if (m->why) {
        element(p, "p", m->why);
    } else {
        put(p, "<div class=\"plots wide\">\n");
        widths(p, m->unit->model);
        put(p, "<div>");
        if (m->unit->model->sublayer.n)
            connections(p, m->unit->model);
        costs(p, m->unit);
        put(p, "</div></div>\n");
    }
    put(p, "<details><summary>The file, with every default written out</summary><div class=\"box\" tabindex=\"0\"><pre>");
    xml_text(&p->b, m->text);
    put(p, "</pre></div></details></section>\n");
}

/* ---- connections of trained models ---- */

enum { MEASURED_MOST = 8 };

static void put_matrix(void *user, const char *name, const char *title, const char *caption, const char *svg, size_t n)
{
    Page *p = user;
    (void)name;
    put(p, "<figure>");
    buf_put(&p->b, svg, n);
    put(p, "<figcaption>");
    if (*caption)
        buf_printf(&p->b, "%s. ", title);
    xml_text(&p->b, caption);
    put(p, "</figcaption></figure>\n");
}

/* Why there is no picture of a run, for its reader; NULL: it is drawn, from `part`'s first picture on. */
static const char *draw_matrices(Page *p, const PageRun *r, InsidePart *part)
{
    Ctx *ctx = p->session.ctx;
    Status st = inside_part(p->session.owner, part, p->hooks);
    if (st == ST_BUG || st == ST_INTERRUPTED)
        ctx_raise(ctx, st, "%s", arena_printf(p->session.arena, "%s", ctx->message));
    if (st != ST_OK)
        return arena_printf(p->session.arena, "Its connections are not measured: %s.", ctx->message);
    if (part->plain)
        return "Its connections have no weights, and the state is what sublayers read: each reads the sum of all that was written before it.";
    if (part->left_out)
        return arena_printf(p->session.arena, "Its connections are not measured, since that takes %.0f GFLOP: `vwn report --connections all` does, and "
                            "`vwn inspect %s -o DIR` draws more.", part->flops / 1e9, r->state.path);
    return NULL;
}

static void matrices(Page *p)
{
    int measured = 0, of_runs = 0;
    for (size_t i = 0; i < p->n; i++) {
        const PageRun *r = &p->run[i];
        const PageModel *m = r->model < p->model.n ? &p->model.v[r->model] : NULL;
        if (p->how->connections == VWN_PAGE_NONE || !m || m->why || !m->unit->model->sublayer.n)
            continue;
        put(p, of_runs++ ? "" : "<section><h2>Connections, measured</h2>\n<p class=\"small\">On held-out text, with the newest checkpoint. Numbers are those of "
                               "sublayers; point at a cell for its value.</p>\n");
        put(p, "<h3>");
        mark_of(p, r);
        xml_text(&p->b, r->state.name);
        put(p, "</h3>\n");
        size_t before = p->b.n;
        put(p, "<div class=\"plots\">\n");
        InsidePart part = {.run = r->state.path, .large = p->how->connections == VWN_PAGE_ALL, .picture = put_matrix, .user = p};
        bool many = measured == MEASURED_MOST && p->how->connections != VWN_PAGE_ALL;
        const char *why = many ? "Connections are measured of the first eight runs." : draw_matrices(p, r, &part);
        if (why) {
            p->b.n = before;
            element(p, "p", why);
            continue;
        }
        measured++;
        put(p, "</div>\n");
    }
    put(p, of_runs ? "</section>\n" : "");
}

/* ---- growth and notes ---- */

static void notes(Page *p)
{
    static const char *const head[] = {"run", ">step", "", "", NULL};
    bool any = false;
    for (size_t i = 0; i < p->n; i++)
        any |= p->run[i].state.note.n > 0;
    if (!any)
        return;
    put(p, "<section><h2>Growth and notes</h2>\n");
    table_open(p, head);
    for (size_t i = 0; i < p->n; i++) {
        const RunState *r = &p->run[i].state;
        for (size_t k = 0; k < r->note.n; k++) {
            put(p, "<tr><td>");
            mark_of(p, &p->run[i]);
            xml_text(&p->b, r->name);
            put(p, "</td>");
            number_cell(p, quantity(p->session.arena, r->note.v[k].step));
            element(p, "td", r->note.v[k].kind);
            element(p, "td class=\"w\"", r->note.v[k].text);
            put(p, "</tr>\n");
        }
    }
    table_close(p);
    put(p, "</section>\n");
}

/* ---- the page ---- */

static void page_head(Page *p)
{
    put(p, "<!DOCTYPE html>\n<html lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\"><head><meta charset=\"utf-8\"/>\n"
           "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/><meta name=\"color-scheme\" content=\"light dark\"/>\n<title>");
    xml_text(&p->b, p->n == 1 ? p->run[0].state.name : "Runs");
    put(p, "</title>\n<style>\n"
           ":root{color-scheme:light dark;--back:#fff;--ink:#222;--soft:#666;--line:#ddd}\n"
           "@media(prefers-color-scheme:dark){:root{--back:#16181d;--ink:#e6e6e6;--soft:#a0a0a0;--line:#32363f}}\n"
           "*{box-sizing:border-box}body{margin:0 auto;max-width:1120px;padding:16px;background:var(--back);color:var(--ink);"
           "font:15px/1.5 system-ui,sans-serif;overflow-wrap:anywhere}\n"
           "h1{font-size:24px;margin:8px 0}h2{font-size:18px;margin:32px 0 8px}h3{font-size:15px;margin:16px 0 8px}.small{color:var(--soft);font-size:13px}\n"
           ".box{overflow-x:auto;margin:8px 0}table{border-collapse:collapse;font-size:14px;overflow-wrap:normal}\n"
           "th,td{padding:4px 16px 4px 0;text-align:left;vertical-align:top;border-bottom:1px solid var(--line);white-space:nowrap}\n"
           "th{color:var(--soft);font-weight:600}.n{text-align:right;font-variant-numeric:tabular-nums}td.w{white-space:normal;min-width:260px}\n"
           "pre{font:13px/1.4 ui-monospace,monospace;margin:0}details{margin:8px 0}summary{cursor:pointer}\n"
           "dl{display:grid;grid-template-columns:max-content 1fr;gap:4px 16px;margin:8px 0;font-size:14px}dt{color:var(--soft)}dd{margin:0;white-space:pre-line}\n"
           ".plots{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,340px),1fr));gap:16px;align-items:start;width:100%}\n"
           ".plots.wide{grid-template-columns:repeat(auto-fill,minmax(min(100%,440px),1fr))}.plots>*{min-width:0}figure{margin:0}figure svg{display:block;width:100%;height:auto;max-width:520px}figcaption{color:var(--soft);font-size:13px}\n"
           ".k{width:14px;height:4px;vertical-align:middle}.by{display:flex;flex-wrap:wrap;gap:4px 20px}\n"
           ".by input{position:absolute;opacity:0}.by label{cursor:pointer;border-bottom:2px solid transparent}\n"
           ".by input:checked+label{font-weight:600;border-color:currentColor}.by input:focus-visible+label{outline:2px solid;outline-offset:2px}\n");
    for (int by = 0; by < HISTORY_AXES; by++)
        buf_printf(&p->b, ".plots.by%d{display:none}#by%d:checked~.by%d{display:grid}\n", by, by, by);
    chart_style(&p->b);
    heat_style(&p->b);
    put(p, "\n@media print{details:not([open])>*{display:block}}</style></head><body>\n");
}

static Status page_body(void *user)
{
    Page *p = user;
    session_open(&p->session, p->session.owner);
    Arena *a = p->session.arena;
    p->b = buf_new(a);
    RunPaths runs = run_paths(&p->session, p->how->run, p->how->n_runs);
    p->n = runs.n;
    p->run = NEW_ARRAY(a, PageRun, p->n + 1);
    for (size_t i = 0; i < p->n; i++) {
        p->run[i] = (PageRun){.number = i};
        read_run(p, &p->run[i], runs.v[i]);
    }
    page_head(p);
    put(p, "<main><h1>");
    xml_text(&p->b, p->n == 1 ? p->run[0].state.name : arena_printf(a, "%zu runs", p->n));
    put(p, "</h1>\n<section>");
    runs_table(p);
    for (size_t i = 0; i < p->n; i++)
        run_details(p, &p->run[i]);
    put(p, "</section>\n");
    curves(p);
    for (size_t i = 0; i < p->model.n; i++)
        model_section(p, i);
    matrices(p);
    notes(p);
    buf_printf(&p->b, "<footer class=\"small\">vwn %s</footer></main></body></html>\n", p->hooks->version);
    write_text(p->out, p->b.s, p->b.n);
    return ST_OK;
}

Status page_runs(vwn_context *owner, const vwn_page_options *how, const vwn_writer *out, const Hooks *hooks)
{
    Page p = {.session.owner = owner, .how = how, .out = out, .hooks = hooks};
    Status st = guarded(owner->ctx, page_body, &p);
    return session_end(&p.session, st);
}
