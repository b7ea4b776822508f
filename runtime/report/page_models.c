/* page_models.c - what the runs' models are: widths, connections, costs; and what connections have become.
 *
 * In:  models, each with the runs that share it.   Out: HTML with pictures.
 * The one idea: of a hundred runs a model stands there once: files that differ in how they train alone have one.
 */
#include <math.h>
#include <stdio.h>

#include "compiler/report/report.h"
#include "page.h"
#include "runtime/look/inside.h"

/* DRAWN_MOST: models with pictures, costs and files; the others are rows of a table. */
enum { PICTURE_WIDE = 400, PICTURE_HIGH = 260, DRAWN_MOST = 8, NAMED_MOST = 12, MEASURED_MOST = 8 };

static void put(RunsPage *p, const char *html) { buf_puts(&p->b, html); }

/* ---- models ---- */

static void widths(RunsPage *p, const Model *m)
{
    Arena *a = p->session.arena;
    size_t n = m->step.n;
    double *x = NEW_ARRAY(a, double, n + 1), *reads = NEW_ARRAY(a, double, n + 1), *state = NEW_ARRAY(a, double, n + 1);
    for (size_t i = 0; i < n; i++) {
        x[i] = (double)(i + 1);
        reads[i] = (double)m->step.v[i].reads;
        state[i] = (double)m->step.v[i].state;
    }
    ChartSeries s[2] = {{.name = "R", .x = x, .y = reads, .n = n, .points = n <= 80},
                        {.name = "S", .x = x, .y = state, .n = n, .points = n <= 80}};
    bool same = true;
    for (size_t i = 0; i < n; i++)
        same &= reads[i] == state[i];
    Chart c = {.title = "widths over depth",
               .x_label = "sublayer",
               .y_label = "coordinates",
               .series = s,
               .n = same ? 1 : 2,
               .wide = PICTURE_WIDE,
               .high = PICTURE_HIGH,
               .id = arena_printf(a, "p%d", p->pictures++),
               .whole = true};
    if (n < 2)
        return;
    put(p, "<figure>");
    chart_svg(&p->b, &c, 1);
    put(p, same ? "<figcaption>Coordinates of a position that a sublayer reads, as many as the state "
                  "has.</figcaption></figure>\n"
                : "<figcaption>R: coordinates of a position that a sublayer reads. S: those of the state that goes "
                  "past it.</figcaption></figure>\n");
}

static void connections(RunsPage *p, const Model *m)
{
    static const char *const head[] = {"connection", ">sublayers", ">read", ">state", ">weights", NULL};
    Arena *a = p->session.arena;
    html_table_begin(&p->b, "connections", head);
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
        html_element(&p->b, "td", s->connection);
        html_number(&p->b, page_count(a, count));
        html_number(&p->b, low == high ? page_count(a, low)
                                       : arena_printf(a, "%s to %s", page_count(a, low), page_count(a, high)));
        html_number(&p->b, page_count(a, widest));
        html_number(&p->b, page_count(a, weights));
        put(p, "</tr>\n");
    }
    html_table_end(&p->b);
}

static void cost_row(RunsPage *p, const char *name, const char *value)
{
    put(p, "<tr>");
    html_element(&p->b, "td", name);
    html_number(&p->b, value);
    put(p, "</tr>\n");
}

static void costs(RunsPage *p, Unit *u)
{
    static const struct {
        const char *key, *name;
    } of[] = {{"stored", "weights stored"},
              {"live", "weights that can learn"},
              {"active", "weights for a token"},
              {"flops_per_token", "FLOPs of a token, forward"},
              {"flop_training", "FLOPs of a token, training"},
              {"run_tokens", "tokens of the run"},
              {"run_pf_days", "PF-days of the run"},
              {"kv_per_token", "bytes of keys and values for a token"}};
    static const char *const head[] = {"costs", ">", NULL}, *const modules[] = {"module", ">times", ">weights",
                                                                                ">FLOPs, forward", NULL};
    Arena *a = p->session.arena;
    Buf b = buf_new(a);
    JsonError error;
    MemoryNeed need = session_memory(p->session.ctx, u->model, u->train, 0, NULL);
    ReportMemory memory = {
        .batch_seqs = u->train ? u->train->micro_seqs : 1, .training = u->train != NULL, .total = need.total};
    report_cost(&b, u, &memory, NULL, NULL, true);
    const Json *cost = json_read(a, b.s, strcspn(b.s, "\n"), &error);
    if (!cost)
        vwn_bug(p->session.ctx, "the costs are no JSON: %s", error.what);
    html_table_begin(&p->b, "costs", head);
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++) {
        double v = event_number(cost, of[i].key);
        if (isfinite(v))
            cost_row(p, of[i].name, v == floor(v) && v < 1e15 ? page_count(a, (int64_t)v) : arena_printf(a, "%.4g", v));
    }
    const struct {
        const char *name;
        uint64_t bytes;
    } parts[] = {{"weights and buffers", need.weights + need.buffers},
                 {"gradients", need.gradients},
                 {"optimizer", need.optimizer},
                 {"averages", need.average},
                 {"activations", need.arena},
                 {"all memory, as planned", need.total}};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (parts[i].bytes)
            cost_row(p, arena_printf(a, "memory: %s", parts[i].name), bytes_text(a, (double)parts[i].bytes));
    html_table_end(&p->b);
    put(p, "</div><div>");
    html_table_begin(&p->b, "modules", modules);
    const Json *list = json_get(cost, "modules");
    for (const Json *v = list && list->kind == JSON_ARRAY ? list->first : NULL; v; v = v->next) {
        put(p, "<tr>");
        html_element(&p->b, "td", json_string(v, "path"));
        html_number(&p->b, page_count(a, (int64_t)event_number(v, "instances")));
        html_number(&p->b, page_count(a, (int64_t)event_number(v, "stored")));
        html_number(&p->b,
                    page_count(a, (int64_t)(event_number(v, "flop_products") + event_number(v, "flop_attention"))));
        put(p, "</tr>\n");
    }
    html_table_end(&p->b);
}

/* The runs that share a model; of many the first few by name. */
static void of_runs(RunsPage *p, size_t model)
{
    size_t n = 0;
    put(p, "<p>of ");
    for (size_t k = 0; k < p->n; k++) {
        if (p->run[k].model != model || n++ >= NAMED_MOST)
            continue;
        put(p, n > 1 ? ", " : "");
        page_mark(p, &p->run[k]);
    }
    if (n > NAMED_MOST)
        buf_printf(&p->b, " and %zu more runs", n - NAMED_MOST);
    put(p, "</p>\n");
}

static void model_section(RunsPage *p, size_t i)
{
    const PageModel *m = &p->model.v[i];
    put(p, "<section><h2>Model");
    if (!m->why && m->unit->model->name) {
        put(p, " ");
        xml_text(&p->b, m->unit->model->name);
    }
    put(p, "</h2>\n");
    of_runs(p, i);
    if (m->why) {
        html_element(&p->b, "p", m->why);
    } else {
        put(p, "<div class=\"plots wide\">\n");
        widths(p, m->unit->model);
        put(p, "<div>");
        if (m->unit->model->sublayer.n)
            connections(p, m->unit->model);
        costs(p, m->unit);
        put(p, "</div></div>\n");
        if (m->n > 1)
            put(p, "<p class=\"small\">Memory and tokens are those of the first of these runs.</p>\n");
    }
    put(p, "<details><summary>The file");
    if (m->n > 1) {
        put(p, " of ");
        xml_text(&p->b, p->run[m->run].state.name);
    }
    put(p, ", with every default written out</summary><div class=\"box\" tabindex=\"0\" role=\"region\" "
           "aria-label=\"file\"><pre>");
    xml_text(&p->b, p->run[m->run].text);
    put(p, "</pre></div></details></section>\n");
}

/* Models beyond the first: a row each. */
static void model_rows(RunsPage *p)
{
    static const char *const head[] = {"first run",  ">runs", ">weights", ">FLOPs of a token, forward",
                                       ">sublayers", NULL};
    Arena *a = p->session.arena;
    buf_printf(&p->b,
               "<section><h2>%zu more models</h2><p class=\"small\">The first %d are shown above. <code>vwn report "
               "RUN</code> shows that of a run, "
               "<code>vwn resolve</code> its file.</p>\n",
               p->model.n - DRAWN_MOST, DRAWN_MOST);
    html_table_begin(&p->b, "more models", head);
    for (size_t i = DRAWN_MOST; i < p->model.n; i++) {
        const PageModel *m = &p->model.v[i];
        const PageRun *r = &p->run[m->run];
        put(p, "<tr><td>");
        page_mark(p, r);
        put(p, "</td>");
        html_number(&p->b, page_count(a, (int64_t)m->n));
        html_number(&p->b, isfinite(r->state.weights) ? page_count(a, (int64_t)r->state.weights) : "\u2013");
        html_number(&p->b, m->why ? "\u2013" : page_quantity(a, model_flops_per_token(m->unit->model)));
        html_number(&p->b, m->why ? "\u2013" : page_count(a, (int64_t)m->unit->model->sublayer.n));
        put(p, "</tr>\n");
    }
    html_table_end(&p->b);
    put(p, "</section>\n");
}

void page_models(RunsPage *p)
{
    for (size_t i = 0; i < p->model.n && i < DRAWN_MOST; i++)
        model_section(p, i);
    if (p->model.n > DRAWN_MOST)
        model_rows(p);
}

/* ---- connections of trained models ---- */

static void put_matrix(void *user, const char *name, const char *title, const char *caption, const char *svg, size_t n)
{
    RunsPage *p = user;
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
static const char *draw_matrices(RunsPage *p, const PageRun *r, InsidePart *part)
{
    Ctx *ctx = p->session.ctx;
    Status st = inside_part(p->session.owner, part, p->hooks);
    if (st == ST_BUG || st == ST_INTERRUPTED)
        ctx_raise(ctx, st, "%s", arena_printf(p->session.arena, "%s", ctx->message));
    if (st != ST_OK)
        return arena_printf(p->session.arena, "Its connections are not measured: %s.", ctx->message);
    if (part->plain)
        return "Its connections have no weights, and the state is what sublayers read: each reads the sum of all that "
               "was written before it.";
    if (part->left_out)
        return arena_printf(
            p->session.arena,
            "Its connections are not measured, since that takes %.0f GFLOP: `vwn report --connections all` does, and "
            "`vwn inspect %s -o DIR` draws more.",
            part->flops / 1e9, r->state.path);
    return NULL;
}

static double judged(const PageRun *r)
{
    double eval = run_curve_last(&r->state, CURVE_EVAL), loss = run_curve_last(&r->state, CURVE_LOSS);
    return isfinite(eval) ? eval : isfinite(loss) ? loss : INFINITY;
}

/* Of the runs of a model the one with the lowest held-out loss. */
static const PageRun *lowest_of(RunsPage *p, size_t model)
{
    const PageRun *best = NULL;
    for (size_t i = 0; i < p->n; i++)
        if (p->run[i].model == model && (!best || judged(&p->run[i]) < judged(best)))
            best = &p->run[i];
    return best;
}

static void connections_of(RunsPage *p, const PageRun *r, size_t of, int *measured)
{
    put(p, "<h3>");
    page_mark(p, r);
    if (of > 1)
        buf_printf(&p->b, ", the lowest loss of %zu runs", of);
    put(p, "</h3>\n");
    size_t before = p->b.n;
    put(p, "<div class=\"plots\">\n");
    InsidePart part = {
        .run = r->state.path, .large = p->how->connections == VWN_PAGE_ALL, .picture = put_matrix, .user = p};
    bool many = *measured == MEASURED_MOST && p->how->connections != VWN_PAGE_ALL;
    const char *why = many ? "Connections are measured of the first eight models." : draw_matrices(p, r, &part);
    if (why) {
        p->b.n = before;
        html_element(&p->b, "p", why);
        return;
    }
    ++*measured;
    put(p, "</div>\n");
}

void page_connections(RunsPage *p)
{
    int measured = 0, shown = 0;
    for (size_t i = 0; i < p->model.n && (i < DRAWN_MOST || p->how->connections == VWN_PAGE_ALL); i++) {
        const PageModel *m = &p->model.v[i];
        if (p->how->connections == VWN_PAGE_NONE || m->why || !m->unit->model->sublayer.n)
            continue;
        put(p, shown++ ? ""
                       : "<section><h2>Connections, measured</h2>\n<p class=\"small\">On held-out text, with the "
                         "newest checkpoint. Numbers are those of "
                         "sublayers; point at a cell for its value.</p>\n");
        connections_of(p, lowest_of(p, i), m->n, &measured);
    }
    put(p, shown ? "</section>\n" : "");
}
