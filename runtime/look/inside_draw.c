/* inside_draw.c - Findings as the pictures that papers have of them. */
#include <math.h>
#include <stdlib.h>

#include "runtime/draw/chart.h"
#include "runtime/draw/heat.h"
#include "runtime/draw/html.h"
#include "inside.h"

enum { STREAMS_MOST = 12, DIMENSIONS_MOST = 120, SERIES_MOST = 8, PART_SEGMENTS = 96, PART_STREAMS = 4 };

typedef struct Pen {
    Findings *f;
    Arena *a;
} Pen;

static void hand_over(const Pen *p, const char *name, const char *title, const char *caption, const Buf *svg)
{
    p->f->how->picture(p->f->how->picture_user, name, title, caption, svg->s, svg->n);
    if (p->f->page.arena)
        html_picture(&p->f->page, arena_printf(p->a, "%s.svg", name), title, caption);
}

static void show(const Pen *p, const char *name, const char *caption, const Heat *h)
{
    Buf b = buf_new(p->a);
    Heat own = *h;
    own.part = p->f->part;
    heat_svg(&b, &own);
    hand_over(p, name, h->title, caption, &b);
}

static void show_chart(const Pen *p, const char *name, const char *caption, const Chart *c)
{
    Buf b = buf_new(p->a);
    chart_svg(&b, c, 1);
    hand_over(p, name, c->title, caption, &b);
}

/* ---- connections ---- */

/* The segments of the sources as columns. */
static HeatAxis source_axis(const Pen *p)
{
    const Unfolding *u = &p->f->in.u;
    const char **label = NEW_ARRAY(p->a, const char *, u->segments + 1);
    bool *begins = NEW_ARRAY(p->a, bool, u->segments + 1), cut = u->segments > u->n + 1;
    for (size_t j = 0; j <= u->n; j++) {
        label[u->source[j].first] = arena_printf(p->a, "%zu", j);
        begins[u->source[j].first] = true;
    }
    return (HeatAxis){u->segments, label, cut ? begins : NULL,
                      p->f->part ? "what wrote it, 0 the embedding" : "columns: what wrote it, 0 the embedding"};
}

static HeatAxis row_axis(const Pen *p, size_t rows, bool closed, const UnfoldPart *part, const char *title)
{
    size_t n = 0, k = 0;
    for (size_t i = 0; i < rows; i++)
        n += part ? (size_t)part[i].segments : 1;
    const char **label = NEW_ARRAY(p->a, const char *, n + 1);
    bool *begins = NEW_ARRAY(p->a, bool, n + 1);
    for (size_t i = 0; i < rows; i++) {
        bool named = part && !p->f->part;
        label[k] = closed && i + 1 == rows
                       ? "head"
                       : arena_printf(p->a, named ? "%s  %zu" : "%.0s%zu", findings_row(p->f, i), i + 1);
        begins[k] = true;
        k += part ? (size_t)part[i].segments : 1;
    }
    return (HeatAxis){n, label, n > rows ? begins : NULL, title};
}

/* Row by row, of each its segments; `which`: 0 the mean, 1 the deviation. */
static const double *read_matrix(const Pen *p, size_t rows, int which)
{
    const Findings *f = p->f;
    const Unfolding *u = &f->in.u;
    double *v = NEW_ARRAY(p->a, double, rows * u->segments + 1), *at = v;
    for (size_t i = 0; i < u->rows; i++)
        for (int64_t b = 0; b < u->read[i].segments; b++)
            for (size_t j = 0; j <= u->n; j++)
                for (int64_t a = 0; a < u->source[j].segments; a++) {
                    const double *from = which ? f->read[i].std : f->read[i].mean;
                    *at++ = j <= i ? from[((int64_t)u->source[j].first + a) * u->read[i].segments + b] : NAN;
                }
    return v;
}

/* One cell for a source and a reader of many segments: the mean of those that are in the same place. */
static void draw_sources(const Pen *p)
{
    const Findings *f = p->f;
    const Unfolding *u = &f->in.u;
    size_t columns = u->n + 1;
    double *v = NEW_ARRAY(p->a, double, u->rows *columns + 1);
    const char **label = NEW_ARRAY(p->a, const char *, columns + 1);
    for (size_t j = 0; j < columns; j++)
        label[j] = arena_printf(p->a, "%zu", j);
    for (size_t i = 0; i < u->rows; i++)
        for (size_t j = 0; j < columns; j++)
            v[i * columns + j] = j <= i ? findings_own(f, &f->read[i], &u->read[i], j) : NAN;
    Heat h = {.title = "What each sublayer reads of what earlier ones wrote",
              .panel = &(HeatPanel){"C(0)", v},
              .n = 1,
              .is_signed = true};
    h.row = row_axis(p, u->rows, u->closed, NULL, "what reads");
    h.column = (HeatAxis){columns, label, NULL, "what wrote it, 0 the embedding"};
    show(p, "connections",
         "C(0): row k, column j is the factor with which what sublayer j wrote reaches what sublayer k reads, in the "
         "mean over tokens "
         "and over segments in their own place.",
         &h);
}

static void draw_connections(const Pen *p)
{
    const Unfolding *u = &p->f->in.u;
    if (p->f->part && u->segments > PART_SEGMENTS) {
        draw_sources(p);
        return;
    }
    HeatPanel panel = {"C(0)", NULL};
    Heat h = {
        .title = "What each sublayer reads of what earlier ones wrote", .panel = &panel, .n = 1, .is_signed = true};
    h.row = row_axis(p, u->rows, u->closed, u->read, "what reads");
    h.column = source_axis(p);
    panel.v = read_matrix(p, h.row.n, 0);
    show(p, "connections",
         "The unfolded connection matrix C(0): row k, column j is the factor with which what sublayer j wrote reaches "
         "what "
         "sublayer k reads, in the mean over tokens. Between lines stand the segments of one source or reader.",
         &h);
    panel = (HeatPanel){"deviation", read_matrix(p, h.row.n, 1)};
    h.title = "How much that varies from token to token";
    h.is_signed = false;
    double most = 0;
    for (size_t i = 0; i < h.row.n * h.column.n; i++)
        most = fmax(most, isfinite(panel.v[i]) ? panel.v[i] : 0);
    if (most > 1e-6 && (p->f->part || !p->f->how->what))
        show(p, "connections_deviation", "The standard deviation over tokens of the entries of C(0).", &h);
}

/* C(i): what stream i keeps of earlier outputs behind sublayer k's mixing, before what sublayer k itself wrote is added. */
static void draw_streams(const Pen *p)
{
    const Findings *f = p->f;
    const Unfolding *u = &f->in.u;
    size_t streams = (size_t)u->state[0].segments, shown = f->part ? PART_STREAMS : STREAMS_MOST,
           n = streams < shown ? streams : shown;
    if (streams < 2 || (f->part && u->segments > PART_SEGMENTS))
        return;
    HeatPanel *panel = NEW_ARRAY(p->a, HeatPanel, n);
    for (size_t i = 0; i < n; i++) {
        double *v = NEW_ARRAY(p->a, double, u->n * u->segments + 1);
        for (size_t k = 0; k < u->n; k++)
            for (size_t s = 0; s < u->segments; s++)
                v[k * u->segments + s] = s < u->source[k + 1].first ? f->state[k + 1].mean[s * streams + i] : NAN;
        panel[i] = (HeatPanel){arena_printf(p->a, "C(%zu)", i + 1), v};
    }
    Heat h = {.title = arena_printf(p->a, "What the streams of the state hold of what earlier sublayers wrote%s",
                                    n < streams ? arena_printf(p->a, ": the first %zu of %zu", n, streams) : ""),
              .panel = panel,
              .n = n,
              .is_signed = true};
    h.row = row_axis(p, u->n, false, NULL, f->part ? "behind sublayer" : "behind the mixing of sublayer");
    h.column = source_axis(p);
    static const char caption[] = "The matrices C(i): row k, column j is the factor with which what sublayer j wrote "
                                  "is in stream i behind sublayer k's "
                                  "mixing, before what sublayer k wrote is added, in the mean over tokens.";
    if (!f->part) {
        show(p, "streams", caption, &h);
        return;
    }
    for (size_t i = 0; i < n; i++) /* one below the other, with one scale */
        for (size_t k = 0; k < h.row.n * h.column.n; k++)
            h.most = fmax(h.most, isfinite(panel[i].v[k]) ? fabs(panel[i].v[k]) : 0);
    h.n = 1;
    for (size_t i = 0; i < n; i++, h.panel++)
        show(p, "streams",
             i             ? ""
             : n < streams ? arena_printf(p->a, "%s The first %zu of %zu.", caption, n, streams)
                           : caption,
             &h);
}

/* ---- series over sublayers ---- */

static double *numbers(const Pen *p, size_t n, double from)
{
    double *x = NEW_ARRAY(p->a, double, n + 1);
    for (size_t i = 0; i < n; i++)
        x[i] = from + (double)i;
    return x;
}

static const char *last_word(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot ? dot + 1 : path;
}

/* A curve for each word that names weights, over sublayers, and the band from 5 to 95 % of tokens and entries. */
static void draw_weights(const Pen *p)
{
    const Findings *f = p->f;
    ChartSeries *s = NEW_ARRAY(p->a, ChartSeries, SERIES_MOST);
    size_t n = 0;
    for (size_t i = 0; i < f->in.n_factors; i++) {
        const char *name = last_word(f->in.factor[i].name);
        size_t k = 0;
        while (k < n && strcmp(s[k].name, name))
            k++;
        if (k == SERIES_MOST)
            continue;
        if (k == n)
            s[n++] = (ChartSeries){.name = name,
                                   .x = numbers(p, f->in.n_factors, 0),
                                   .y = numbers(p, f->in.n_factors, 0),
                                   .low = numbers(p, f->in.n_factors, 0),
                                   .high = numbers(p, f->in.n_factors, 0),
                                   .points = true};
        size_t at = s[k].n++;
        ((double *)s[k].x)[at] = (double)f->in.factor[i].sublayer + 1;
        ((double *)s[k].y)[at] = f->factor[i].all.middle;
        ((double *)s[k].low)[at] = f->factor[i].all.low;
        ((double *)s[k].high)[at] = f->factor[i].all.high;
    }
    show_chart(
        p, "weights",
        "The median, and the range from 5 to 95 %, of all entries of the connection's weights that depend on the data, "
        "over "
        "tokens. Entries apart are in inspect.json.",
        &(Chart){.title = "Weights of connections",
                 .x_label = "sublayer",
                 .y_label = "value",
                 .series = s,
                 .n = n,
                 .whole = true});
}

/* Curves over the bins' middles. */
static void draw_distribution(const Pen *p)
{
    const Findings *f = p->f;
    ChartSeries s[HISTOGRAMS_MOST];
    double *x = numbers(p, HISTOGRAM_BINS, 0.5);
    for (size_t i = 0; f->n_histograms && i < HISTOGRAM_BINS; i++)
        x[i] = f->histogram[0].lo + x[i] * (f->histogram[0].hi - f->histogram[0].lo) / HISTOGRAM_BINS;
    for (size_t i = 0; i < f->n_histograms; i++)
        s[i] = (ChartSeries){
            .name = findings_entry(f, &f->histogram[i]), .x = x, .y = f->histogram[i].share, .n = HISTOGRAM_BINS};
    if (f->n_histograms && !f->how->what)
        show_chart(p, "weights_distribution",
                   "How entries of the last sublayer's weights are distributed over tokens, those that vary most.",
                   &(Chart){.title = "Distribution of weights in the last sublayer",
                            .x_label = "value",
                            .y_label = "share of tokens",
                            .series = s,
                            .n = f->n_histograms});
}

static void draw_inputs(const Pen *p)
{
    const Findings *f = p->f;
    size_t n = f->m->sublayer.n;
    Heat h = {.title = "How alike the inputs of sublayers are",
              .panel = &(HeatPanel){"cosine", f->cosine},
              .n = 1,
              .is_signed = true,
              .most = 1};
    UnfoldPart *whole = NEW_ARRAY(p->a, UnfoldPart, n + 1);
    for (size_t i = 0; i < n; i++)
        whole[i].segments = 1;
    h.row = row_axis(p, n, false, whole, "sublayer");
    h.column = row_axis(p, n, false, NULL, "columns: sublayer");
    show(p, "cosine", "The mean over tokens of the cosine of what two sublayers read, before their norms.", &h);
    if (n < 2 || f->how->what)
        return;
    ChartSeries s = {.name = "median, 5 to 95 %",
                     .x = numbers(p, n - 1, 1),
                     .y = numbers(p, n, 0),
                     .low = numbers(p, n, 0),
                     .high = numbers(p, n, 0),
                     .n = n - 1,
                     .points = true};
    for (size_t i = 0; i + 1 < n; i++) {
        ((double *)s.y)[i] = f->next[i].middle;
        ((double *)s.low)[i] = f->next[i].low;
        ((double *)s.high)[i] = f->next[i].high;
    }
    show_chart(p, "cosine_next",
               "The cosine of what a sublayer reads and what the following one reads: median and the range from 5 to "
               "95 % of tokens.",
               &(Chart){.title = "Cosine of consecutive inputs",
                        .x_label = "sublayer",
                        .whole = true,
                        .y_label = "cosine with the next one's input",
                        .series = &s,
                        .n = 1});
}

/* ---- activations ---- */

static int falling(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

/* One row for each activation: its dimensions in falling order of use, in as many cells of means. */
static void draw_used(const Pen *p)
{
    const Findings *f = p->f;
    size_t n = f->in.n_activations, columns = DIMENSIONS_MOST;
    for (size_t i = 0; i < n; i++) {
        size_t d = (size_t)(f->in.activation[i].dims * f->in.activation[i].experts);
        columns = d < columns ? d : columns;
    }
    double *v = NEW_ARRAY(p->a, double, n *columns + 1);
    const char **label = NEW_ARRAY(p->a, const char *, n + 1), **share = NEW_ARRAY(p->a, const char *, columns + 1);
    for (size_t i = 0; i < n; i++) {
        size_t d = (size_t)(f->in.activation[i].dims * f->in.activation[i].experts);
        double *sorted = NEW_ARRAY(p->a, double, d + 1);
        memcpy(sorted, f->activation[i].used, d * sizeof *sorted);
        qsort(sorted, d, sizeof *sorted, falling);
        for (size_t c = 0; c < columns; c++) {
            size_t from = c * d / columns, to = (c + 1) * d / columns;
            for (size_t k = from; k < to; k++)
                v[i * columns + c] += sorted[k] / (double)(to - from);
        }
        label[i] = f->in.activation[i].path;
    }
    for (size_t c = 0; c < columns; c++)
        share[c] =
            c == 0 || (c + 1) % ((columns + 3) / 4) == 0 ? arena_printf(p->a, "%zu %%", (c + 1) * 100 / columns) : NULL;
    Heat h = {.title = "How often dimensions of activations are used", .panel = &(HeatPanel){"", v}, .n = 1, .most = 1};
    h.row = (HeatAxis){n, label, NULL, ""};
    h.column = (HeatAxis){columns, share, NULL, "columns: dimensions, the most used first"};
    show(p, "activations_used",
         "The share of tokens for which a dimension of an activation is larger than 0.1, dimensions in falling order "
         "(of an expert: "
         "of its own tokens).",
         &h);
}

static void draw_activations(const Pen *p)
{
    const Findings *f = p->f;
    size_t n = f->in.n_activations, curves = n < SERIES_MOST ? n : SERIES_MOST, first = 1;
    ChartSeries *s = NEW_ARRAY(p->a, ChartSeries, curves + 1),
                share = {.name = "share", .x = numbers(p, n, 1), .n = n, .points = true};
    double *x = numbers(p, INSIDE_THRESHOLDS, 0), *y = numbers(p, n, 0), *raw = numbers(p, n, 0);
    for (size_t i = first; i < INSIDE_THRESHOLDS; i++)
        x[i] = log10(inside_threshold[i]);
    for (size_t i = 0; i < curves; i++) {
        size_t at = curves > 1 ? i * (n - 1) / (curves - 1) : 0;
        s[i] = (ChartSeries){.name = f->in.activation[at].path,
                             .x = x + first,
                             .y = f->activation[at].density + first,
                             .n = INSIDE_THRESHOLDS - first,
                             .points = true};
    }
    draw_used(p);
    if (f->how->what)
        return;
    show_chart(p, "activations_density", "The share of all numbers of an activation whose size is above a threshold.",
               &(Chart){.title = "Density of activations",
                        .x_label = "log10 of the threshold",
                        .y_label = "share above it",
                        .series = s,
                        .n = curves});
    for (size_t i = 0; i < n; i++) {
        raw[i] = f->activation[i].ratio;
        y[i] = f->activation[i].ratio / (double)(f->in.activation[i].dims * f->in.activation[i].experts);
    }
    share.y = y;
    show_chart(p, "participation_share",
               "The participation ratio, (sum e)^2 / sum e^2 of the energies e of dimensions, by their number.",
               &(Chart){.title = "Participation ratio of activations, by width",
                        .x_label = "activation",
                        .whole = true,
                        .y_label = "share of dimensions",
                        .series = &share,
                        .n = 1});
    share.y = raw;
    share.name = "dimensions";
    show_chart(p, "participation",
               "The participation ratio: how many dimensions there would be, were all that count equal.",
               &(Chart){.title = "Participation ratio of activations",
                        .x_label = "activation",
                        .whole = true,
                        .y_label = "dimensions",
                        .series = &share,
                        .n = 1});
}

/* ---- states ---- */

static void draw_state(const Pen *p, const char *name, const char *title, const char *label, const char *caption,
                       double (*of)(const StateFound *))
{
    size_t n = p->f->m->sublayer.n + 1;
    double *y = numbers(p, n, 0);
    for (size_t i = 0; i < n; i++)
        y[i] = of(&p->f->at[i]);
    ChartSeries s = {.name = p->f->m->name, .x = numbers(p, n, 0), .y = y, .n = n, .points = true};
    show_chart(p, name, caption,
               &(Chart){.title = title,
                        .x_label = "sublayers behind the embedding",
                        .y_label = label,
                        .series = &s,
                        .n = 1,
                        .whole = true});
}

static double entropy_of(const StateFound *s) { return s->spectrum ? s->entropy : NAN; }
static double target_of(const StateFound *s) { return s->target; }
static double uncertainty_of(const StateFound *s) { return s->uncertainty; }
static double moved_of(const StateFound *s) { return s->moved; }

void findings_draw(Findings *f)
{
    if (f->how->page)
        f->page = buf_new(f->session.arena);
    Pen p = {f, f->session.arena};
    if (f->what & INSIDE_CONNECTIONS) {
        draw_connections(&p);
        draw_streams(&p);
    }
    if (f->what & INSIDE_WEIGHTS) {
        draw_weights(&p);
        draw_distribution(&p);
    }
    if (f->what & INSIDE_INPUTS)
        draw_inputs(&p);
    if (f->what & INSIDE_ACTIVATIONS)
        draw_activations(&p);
    if (f->what & INSIDE_STATES)
        draw_state(
            &p, "state_entropy", "Normalized matrix entropy of the state", "entropy",
            "Of the squared singular values of tokens by state, not centred: 1 where all directions are used alike.",
            entropy_of);
    if (f->what & INSIDE_LENS) {
        draw_state(&p, "lens_target", "Log probability of the target, from each state", "nats",
                   "The model from its last state on, applied to the state behind each sublayer.", target_of);
        draw_state(&p, "lens_divergence", "How much a sublayer changes the prediction", "nats",
                   "The mean of both Kullback-Leibler divergences between the predictions before and behind it.",
                   moved_of);
        draw_state(&p, "lens_entropy", "Entropy of the prediction, from each state", "nats", "Of the same predictions.",
                   uncertainty_of);
    }
}

void findings_page(Findings *f, const Buf *summary)
{
    Buf b = buf_new(f->session.arena);
    const char *title = arena_printf(f->session.arena, "Inside %s", f->how->source);
    html_begin(&b, HTML_PICTURES, "vwn inspect", title, NULL, 0);
    html_element(&b, "h1", title);
    buf_puts(&b, "<p>Every number: <a href=\"inspect.json\">inspect.json</a></p>\n");
    buf_put(&b, f->page.s, f->page.n);
    buf_puts(&b,
             "<section><h2>Summary</h2><div class=\"box\" tabindex=\"0\" role=\"region\" aria-label=\"summary\"><pre>");
    xml_text(&b, summary->s);
    buf_puts(&b, "</pre></div></section>\n");
    html_end(&b, f->hooks->version);
    write_text(f->how->page, b.s, b.n);
}
