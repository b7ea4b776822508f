/* page.c - `vwn report`: runs as one HTML page that needs nothing else.
 *
 * In:  run directories.   Out: a text that is HTML: a table of the runs, curves, what the models are, how they grew.
 * The one idea: what is read is written as HTML, and the numbers that are looked at by script, curves and settings, once more
 * as JSON, so that a reader without scripts loses the curves alone. What several runs have in common stands there once.
 */
#include <math.h>

#include "compiler/file/check_unit.h"
#include "compiler/report/report.h"
#include "page.h"
#include "pages.h"
#include "runtime/checkpoint/run_list.h"
#include "runtime/checkpoint/source.h"

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
    RunsPage *page;
    PageModel *model;
    const char *path, *text;
} Checking;

static Status check_text(void *user)
{
    Checking *c = user;
    CheckOptions how = {.path = c->path, .text = c->text, .text_length = strlen(c->text)};
    c->model->unit = c->page->hooks->check(c->page->session.ctx, &how);
    return ST_OK;
}

/* A file that does not check, or that checking gives up, leaves the rest of the page as it is. */
static void check_model(RunsPage *p, PageModel *m, const char *path)
{
    Ctx *ctx = p->session.ctx;
    Checking c = {p, m, path, p->run[m->run].text};
    size_t before = diag_count(ctx);
    Status st = guarded(ctx, check_text, &c);
    if (st != ST_OK && st != ST_INPUT)
        ctx_raise(ctx, st, "%s", arena_printf(p->session.arena, "%s", ctx->message));
    if (st == ST_OK && diag_only_checks(ctx, before)) {
        m->why = m->unit->model ? NULL : "its file has no model";
    } else {
        m->why = "its file does not check with this version of vwn";
        session_warn(&p->session,
                     arena_printf(p->session.arena,
                                  "%.300s does not check with this version of vwn: the report leaves its model out",
                                  path));
    }
    diag_truncate(ctx, before);
}

/* The model of that run's file, which is checked once for all that share it. */
static size_t model_of(RunsPage *p, const PageRun *r, const char *path)
{
    for (size_t i = 0; i < p->model.n; i++) {
        const PageRun *first = &p->run[p->model.v[i].run];
        if (!strcmp(first->text, r->text) || settings_same_model(&first->setting, &r->setting)) {
            p->model.v[i].n++;
            return i;
        }
    }
    vec_push(p->session.arena, &p->model, ((PageModel){.run = r->number, .n = 1}));
    check_model(p, &p->model.v[p->model.n - 1], path);
    return p->model.n - 1;
}

static double best_eval(const RunState *r)
{
    double best = NAN;
    const RunCurve *c = &r->curve.v[CURVE_EVAL];
    for (size_t i = 0; i < c->point.n; i++)
        best = fmin(best, c->point.v[i].value); /* of a NaN and a number: the number */
    return best;
}

static void read_run(RunsPage *p, PageRun *r, const char *where)
{
    Session *s = &p->session;
    char *text;
    size_t n;
    r->state = run_state_read(s, where);
    r->best = best_eval(&r->state);
    events_warn(s, where, &r->state.events);
    const char *path = arena_printf(s->arena, "%s/" RESOLVED_FILE, where);
    r->model = SIZE_MAX;
    r->set = run_settings(s->ctx, s->arena, where);
    r->setting = settings_read(s, s->arena, where);
    text = run_read_file(s->arena, path, &n);
    if (!text) {
        session_warn(s, arena_printf(s->arena, "%.300s cannot be read: the report leaves its model out", path));
        return;
    }
    r->text = text;
    r->origin = origin_of(s->arena, text);
    r->model = model_of(p, r, path);
}

/* Runs of one name are told apart by what stands before it in their paths: "runs/a/nano" and "runs/b/nano". */
static void name_runs(RunsPage *p)
{
    for (size_t i = 0; i < p->n; i++)
        for (size_t k = 0; k < p->n; k++)
            if (k != i && !strcmp(run_name(p->session.arena, p->run[k].state.path),
                                  run_name(p->session.arena, p->run[i].state.path)))
                p->run[i].state.name = p->run[i].state.path;
}

static void read_runs(RunsPage *p)
{
    Arena *a = p->session.arena;
    RunPaths runs = run_paths(&p->session, p->how->run, p->how->n_runs);
    p->n = runs.n;
    p->run = NEW_ARRAY(a, PageRun, p->n + 1);
    const SettingList **all = NEW_ARRAY(a, const SettingList *, p->n + 1);
    for (size_t i = 0; i < p->n; i++) {
        PageRun *r = &p->run[i];
        *r = (PageRun){.number = i, .group = i};
        read_run(p, r, runs.v[i]);
        all[i] = &r->setting;
        for (size_t k = 0; k < i && r->group == i; k++)
            if (p->run[k].group == k && settings_same_but_seed(&p->run[k].setting, &r->setting, p->session.ctx))
                r->group = k;
    }
    name_runs(p);
    p->setting = settings_differing(a, all, p->n);
}

/* ---- pieces ---- */

void page_mark(RunsPage *p, const PageRun *r)
{
    buf_printf(&p->b,
               "<svg class=\"k\" viewBox=\"0 0 14 4\" aria-hidden=\"true\"><path class=\"s%zu k%zu\" "
               "stroke-width=\"4\" d=\"M0 2h14\"/></svg> ",
               r->number % 8, r->number);
    xml_text(&p->b, r->state.name);
}

const char *page_quantity(Arena *a, double v)
{
    Buf text = buf_new(a);
    if (!isfinite(v))
        return "\u2013";
    chart_tick(&text, v, fabs(v) >= 9999.5 ? pow(10, floor(log10(fabs(v))) - 2) : v == floor(v) ? 1 : 0.1);
    return text.s;
}

const char *page_count(Arena *a, int64_t n)
{
    Buf b = buf_new(a);
    buf_count(&b, n);
    return b.s;
}

/* ---- the page ---- */

static void put_scripts(RunsPage *p)
{
    static const char *const file[] = {"report.js", "axes.js", "curves.js", "parallel.js", "runs.js"};
    html_style(&p->b, "uPlot.min.css", NULL);
    html_script(&p->b, "uPlot.iife.min.js", "LICENSE");
    for (size_t i = 0; i < COUNT_OF(file); i++)
        html_script(&p->b, file[i], NULL);
}

static Status page_body(void *user)
{
    static const char *const sheets[] = {"report.css"};
    RunsPage *p = user;
    session_open(&p->session, p->session.owner);
    Arena *a = p->session.arena;
    p->b = buf_new(a);
    read_runs(p);
    const char *title = p->n == 1 ? p->run[0].state.name : arena_printf(a, "%zu runs", p->n);
    html_begin(&p->b, HTML_SCRIPTS, "vwn report", title, sheets, COUNT_OF(sheets));
    html_element(&p->b, "h1", title);
    page_table(p);
    buf_puts(&p->b, "<section id=\"curves\"><h2>Curves</h2><noscript><p>Curves are drawn by the script in this page, "
                    "which your browser does not "
                    "run. All else is here.</p></noscript></section>\n");
    page_comparison(p);
    page_models(p);
    page_connections(p);
    page_notes(p);
    page_details(p);
    page_data(p);
    put_scripts(p);
    html_end(&p->b, p->hooks->version);
    write_text(p->out, p->b.s, p->b.n);
    if (p->how->shown)
        *p->how->shown = p->n;
    return ST_OK;
}

Status page_runs(vwn_context *owner, const vwn_page_options *how, const vwn_writer *out, const Hooks *hooks)
{
    RunsPage p = {.session.owner = owner, .how = how, .out = out, .hooks = hooks};
    Status st = guarded(owner->ctx, page_body, &p);
    return session_end(&p.session, st);
}
