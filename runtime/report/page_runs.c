/* page_runs.c - the parts of the page that tell of runs: their table, each by itself, side by side, what happened.
 *
 * In:  runs that were read.   Out: HTML.
 * The one idea: a row of the table is what `vwn runs` has of a run; what the runs differ in are columns of it.
 */
#include <math.h>
#include <stdio.h>

#include "compiler/report/report.h"
#include "page.h"
#include "runtime/look/look.h"
#include "runtime/checkpoint/record.h"

enum { SETTINGS_MOST = 24, NOTES_MOST = 40 };

/* ---- the table ---- */

static void loss_cell(RunsPage *p, const RunCurve *c, double v)
{
    Arena *a = p->session.arena;
    if (c && run_curve_odd(c))
        html_number(&p->b, "nan or inf");
    else
        html_number(&p->b, isfinite(v) ? arena_printf(a, "%.4f", v) : "\u2013");
}

static void table_row(RunsPage *p, const PageRun *run, size_t shown)
{
    Arena *a = p->session.arena;
    const RunState *r = &run->state;
    buf_printf(&p->b, "<tr data-run=\"%zu\"><td>", run->number);
    page_mark(p, run);
    buf_puts(&p->b, "</td>");
    html_element(&p->b, "td", run_phase_names[r->phase]);
    for (size_t i = 0; i < shown; i++) {
        const char *v = settings_get(&run->setting, p->setting.v[i]);
        html_element(&p->b, "td class=\"v\"", v ? v : "");
    }
    html_number(&p->b, isfinite(r->weights) ? page_count(a, (int64_t)r->weights) : "\u2013");
    html_number(&p->b, isfinite(r->steps) ? arena_printf(a, "%.0f / %.0f", r->last.x[BY_STEP], r->steps)
                                          : page_quantity(a, r->last.x[BY_STEP]));
    html_number(&p->b, page_quantity(a, r->last.x[BY_TOKENS]));
    html_number(&p->b, page_quantity(a, r->last.x[BY_FLOPS]));
    html_number(&p->b, duration_text(a, r->last.x[BY_SECONDS]));
    loss_cell(p, &r->curve.v[CURVE_LOSS], run_curve_last(r, CURVE_LOSS));
    loss_cell(p, &r->curve.v[CURVE_EVAL], run_curve_last(r, CURVE_EVAL));
    loss_cell(p, NULL, run_curve_last(r, CURVE_BITS));
    loss_cell(p, NULL, run->best);
    html_number(&p->b, page_quantity(a, run_curve_last(r, CURVE_RATE)));
    buf_puts(&p->b, "</tr>\n");
}

void page_table(RunsPage *p)
{
    static const char *const before[] = {"run", "state"}, *const behind[] = {">weights",  ">steps",     ">tokens",
                                                                             ">FLOPs",    ">time",      ">loss",
                                                                             ">held out", ">bits/byte", ">best",
                                                                             ">tokens/s"};
    size_t shown = p->setting.n < SETTINGS_MOST ? p->setting.n : SETTINGS_MOST, n = 0;
    const char **head = NEW_ARRAY(p->session.arena, const char *, COUNT_OF(before) + shown + COUNT_OF(behind) + 1);
    for (size_t i = 0; i < COUNT_OF(before); i++)
        head[n++] = before[i];
    for (size_t i = 0; i < shown; i++)
        head[n++] = p->setting.v[i];
    for (size_t i = 0; i < COUNT_OF(behind); i++)
        head[n++] = behind[i];
    buf_puts(&p->b, "<section id=\"runs\">");
    html_table_begin(&p->b, "runs", head);
    for (size_t i = 0; i < p->n; i++)
        table_row(p, &p->run[i], shown);
    html_table_end(&p->b);
    buf_puts(&p->b,
             "<p class=\"small\">Loss and held out: the last of each. Bits/byte: of held-out text, which compares "
             "runs with different tokenizers. Best: the lowest held-out loss. FLOPs are "
             "of training, forward and "
             "backward.");
    if (p->setting.n)
        buf_printf(&p->b, " Behind the state: settings that differ%s.",
                   shown < p->setting.n
                       ? arena_printf(p->session.arena, ", the first %d of %zu", SETTINGS_MOST, p->setting.n)
                       : "");
    buf_puts(&p->b, "</p></section>\n");
}

/* ---- each by itself ---- */

/* What stands in the last brackets: "nano: 80,112 weights, ... (cpu)". */
static const char *device_of(Arena *a, const char *start)
{
    const char *open = strrchr(start, '(');
    return open ? arena_copy(a, open + 1, strcspn(open + 1, ")")) : "";
}

static const char *settings_text(Arena *a, const Settings *set)
{
    Buf b = buf_new(a);
    for (size_t i = 0; i < set->n; i++)
        buf_printf(&b, "%s%s", i ? "\n" : "", set->v[i]);
    return set->n ? b.s : "none: as the file says";
}

/* The value of a name in the file, a `let` that it passes on followed. */
static const char *said(RunsPage *p, const PageRun *r, const char *name)
{
    Ctx *ctx = p->session.ctx;
    const char *v = settings_get(&r->setting, settings_holder(&r->setting, ctx, name_str(ctx, name)));
    return v ? v : "";
}

static void put_record(RunsPage *p, const char *run)
{
    Records all = records_read(&p->session, run);
    const Json *j = all.n ? all.v[all.n - 1].json : NULL;
    const char *date = j ? json_string(j, "date") : NULL, *host = j ? json_string(j, "host") : NULL,
               *processor = j ? json_string(j, "processor") : NULL;
    const char *build = j ? json_string(j, "build") : NULL, *commit = j ? json_string(j, "commit") : NULL;
    Arena *a = p->session.arena;
    html_row(&p->b, "last started", date ? date : "");
    if (host && processor)
        html_row(&p->b, "machine", arena_printf(a, "%s, %s", host, processor));
    if (build)
        html_row(&p->b, "build", commit && *commit ? arena_printf(a, "%s, commit %.12s", build, commit) : build);
}

static void details(RunsPage *p, const PageRun *r)
{
    static const struct {
        const char *head, *name;
    } of[] = {{"seed", "train.seed"},
              {"precision", "train.precision"},
              {"optimizer", "train.optimizer"},
              {"a step", "train.batch"},
              {"positions", "context"}};
    Arena *a = p->session.arena;
    const RunState *s = &r->state;
    buf_printf(&p->b, "<details%s><summary>", p->n == 1 ? " open" : "");
    page_mark(p, r);
    buf_puts(&p->b, "</summary><dl>\n");
    html_row(&p->b, "directory", s->path);
    html_row(&p->b, "file", r->origin ? r->origin : "");
    html_row(&p->b, "settings", settings_text(a, &r->set));
    html_row(&p->b, "device", device_of(a, s->start));
    put_record(p, s->path);
    html_row(&p->b, "began as", s->start);
    if (s->starts > 1)
        html_row(&p->b, "starts",
                 arena_printf(a, "it went on %lld time%s", (long long)s->starts - 1, s->starts == 2 ? "" : "s"));
    for (size_t i = 0; i < COUNT_OF(of); i++)
        html_row(&p->b, of[i].head, said(p, r, of[i].name));
    html_row(&p->b, "kernels", s->compile);
    html_row(&p->b, "memory", isfinite(s->memory) && s->memory > 0 ? bytes_text(a, s->memory) : "");
    for (size_t i = 0; i < s->rank.n; i++) {
        const RankState *k = &s->rank.v[i];
        html_row(&p->b, arena_printf(a, "rank %zu", i),
                 arena_printf(a, "computing %s, waiting %s, communicating %s; %s sent; memory %s",
                              duration_text(a, k->computing), duration_text(a, k->waiting),
                              duration_text(a, k->communicating), bytes_text(a, k->sent), bytes_text(a, k->memory)));
    }
    html_row(&p->b, "ended as", *s->end ? s->end : run_phase_names[s->phase]);
    if (s->events.damaged)
        html_row(&p->b, "damaged",
                 arena_printf(a, "%lld lines of events.jsonl, the first is line %lld", (long long)s->events.damaged,
                              (long long)s->events.first_damaged));
    buf_puts(&p->b, "</dl></details>\n");
}

void page_details(RunsPage *p)
{
    buf_puts(&p->b, p->n > 1 ? "<section><h2>Each run</h2>\n" : "<section><h2>The run</h2>\n");
    for (size_t i = 0; i < p->n; i++)
        details(p, &p->run[i]);
    buf_puts(&p->b, "</section>\n");
}

/* ---- side by side ---- */

static void take_text(void *user, const char *text, size_t n) { buf_put(user, text, n); }

void page_comparison(RunsPage *p)
{
    Arena *a = p->session.arena;
    if (p->n < 2)
        return;
    const char **run = NEW_ARRAY(a, const char *, p->n);
    for (size_t i = 0; i < p->n; i++)
        run[i] = p->run[i].state.path;
    Buf text = buf_new(a);
    vwn_compare_options how = {.run = run, .n_runs = p->n, .group = true, .form = VWN_COMPARE_TABLE};
    vwn_writer out = {.user = &text, .put = take_text};
    Ctx *ctx = p->session.ctx;
    Status st = compare_runs(p->session.owner, &how, &out);
    if (st != ST_OK && st != ST_USAGE)
        ctx_raise_again(ctx);
    buf_puts(&p->b, "<section id=\"compared\"><h2>Compared</h2><p class=\"small\">As <code>vwn compare --group</code> "
                    "says it: runs that differ in their "
                    "seeds alone are one row.</p>\n<div class=\"box\" tabindex=\"0\" role=\"region\" aria-label=\"runs "
                    "compared\"><pre>");
    if (st == ST_OK)
        xml_text(&p->b, text.s);
    else
        xml_text(&p->b, arena_printf(a, "They are not compared: %s.", ctx->message));
    buf_puts(&p->b, "</pre></div></section>\n");
}

/* ---- what happened ---- */

void page_notes(RunsPage *p)
{
    static const char *const head[] = {"run", ">step", "what", "in words", NULL};
    Arena *a = p->session.arena;
    bool any = false;
    for (size_t i = 0; i < p->n; i++)
        any |= p->run[i].state.note.n > 0;
    if (!any)
        return;
    buf_puts(&p->b, "<section><h2>Growth and notes</h2>\n");
    html_table_begin(&p->b, "growth and notes", head);
    for (size_t i = 0; i < p->n; i++) {
        const RunState *r = &p->run[i].state;
        for (size_t k = 0; k < r->note.n && k < NOTES_MOST; k++) {
            buf_puts(&p->b, "<tr><td>");
            page_mark(p, &p->run[i]);
            buf_puts(&p->b, "</td>");
            html_number(&p->b, page_quantity(a, r->note.v[k].step));
            html_element(&p->b, "td", r->note.v[k].kind);
            html_element(&p->b, "td class=\"w\"",
                         k + 1 == NOTES_MOST && r->note.n > NOTES_MOST
                             ? arena_printf(a, "and %zu more in events.jsonl", r->note.n - NOTES_MOST + 1)
                             : r->note.v[k].text);
            buf_puts(&p->b, "</tr>\n");
        }
    }
    html_table_end(&p->b);
    buf_puts(&p->b, "</section>\n");
}
