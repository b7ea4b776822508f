/* inside_report.c - Findings as a summary and as JSON. */
#include <math.h>
#include <stdio.h>

#include "compiler/report/report.h"
#include "inside.h"

enum { COLUMNS_MOST = 13, ROWS_MOST = 48 };

const char *findings_source(const Findings *f, size_t j) { return j ? f->m->sublayer.v[j - 1].path : "embedding"; }

const char *findings_row(const Findings *f, size_t row)
{
    return row < f->m->sublayer.n ? f->m->sublayer.v[row].path : "head";
}

const char *findings_entry(const Findings *f, const Histogram *h)
{
    const UnfoldFactor *x = &f->in.factor[h->factor];
    const Shape *s = shape_of(f->m->graph, x->value);
    const char *dot = strrchr(x->name, '.'), *name = dot ? dot + 1 : x->name;
    size_t columns = s->rank > shape_of(f->m->graph, f->m->embedded)->rank ? (size_t)s->d[s->rank - 1].n : 0;
    if (f->factor[h->factor].entries == 1)
        return name;
    if (!columns)
        return arena_printf(f->session.arena, "%s[%zu]", name, h->entry + 1);
    return arena_printf(f->session.arena, "%s[%zu,%zu]", name, h->entry / columns + 1, h->entry % columns + 1);
}

double findings_own(const Findings *f, const Contribution *c, const UnfoldPart *to, size_t j)
{
    const UnfoldPart *p = &f->in.u.source[j];
    int64_t n = p->segments < to->segments ? p->segments : to->segments;
    double sum = 0;
    for (int64_t a = 0; a < n; a++)
        sum += c->mean[((int64_t)p->first + a) * to->segments + a];
    return sum / (double)n;
}

/* ---- text ---- */

typedef struct Page {
    const Findings *f;
    Arena *a;
    Buf b;
} Page;

static void number(Table *t, const char *format, double x)
{
    char text[32] = "-";
    if (isfinite(x))
        snprintf(text, sizeof text, format, x);
    table_right(t, !strcmp(text, "-0.00") ? "0.00" : arena_copy(t->arena, text, strlen(text)));
}

static double worst_explained(const Findings *f, size_t *row)
{
    double worst = 0;
    for (size_t i = 0; i < f->in.u.rows; i++)
        if (f->unexplained[i] > worst) {
            worst = f->unexplained[i];
            *row = i;
        }
    return worst;
}

static void print_connections(Page *p)
{
    const Findings *f = p->f;
    const Unfolding *u = &f->in.u;
    size_t row = 0;
    double left = worst_explained(f, &row);
    bool cut = u->segments > u->n + 1;
    buf_printf(&p->b, "\nConnections: the factor with which what each sublayer wrote (0: the embedding) is in what a "
                      "later one reads\n  ");
    if (cut)
        buf_printf(&p->b, "of %lld segments, each in its own place: the mean; all of them: --json and -o\n  ",
                   (long long)u->source[u->n].segments);
    if (left < 1e-6)
        buf_puts(&p->b, "nothing else is in it\n\n");
    else
        buf_printf(
            &p->b,
            "%.2g of the square of what %s reads comes from no source: a bias, or no linear function of the state\n\n",
            left, findings_row(f, row));
    if (u->n + 1 > COLUMNS_MOST) {
        buf_printf(&p->b, "  %zu rows of up to %zu numbers: --json has them, -o draws them\n", u->rows, u->n + 1);
        return;
    }
    Table t = {.arena = p->a, .columns = u->n + 3};
    table_right(&t, "");
    table_text(&t, "reads");
    for (size_t j = 0; j <= u->n; j++)
        table_right(&t, arena_printf(p->a, "%zu", j));
    for (size_t i = 0; i < u->rows; i++) {
        table_right(&t, i < u->n ? arena_printf(p->a, "%zu", i + 1) : "");
        table_text(&t, findings_row(f, i));
        for (size_t j = 0; j <= u->n; j++)
            if (j <= i)
                number(&t, "%.2f", findings_own(f, &f->read[i], &u->read[i], j));
            else
                table_right(&t, "");
    }
    table_print(&p->b, &t);
}

static void spread_cells(Table *t, const Spread *s)
{
    number(t, "%.4g", s->mean);
    number(t, "%.4g", s->std);
    number(t, "%.4g", s->low);
    number(t, "%.4g", s->middle);
    number(t, "%.4g", s->high);
}

static void spread_head(Table *t)
{
    static const char *const head[] = {"mean", "std", "5 %", "median", "95 %"};
    for (size_t i = 0; i < COUNT_OF(head); i++)
        table_right(t, head[i]);
}

static void more(Page *p, size_t n)
{
    if (n > ROWS_MOST)
        buf_printf(&p->b, "  and %zu more: --json\n", n - ROWS_MOST);
}

static void print_weights(Page *p)
{
    const Findings *f = p->f;
    buf_puts(
        &p->b,
        "\nWeights of connections that depend on the data: all entries together, and the mean of their fixed part\n\n");
    Table t = {.arena = p->a, .columns = 8};
    table_text(&t, "named after its fixed part");
    table_right(&t, "entries");
    table_right(&t, "fixed");
    spread_head(&t);
    for (size_t i = 0; i < f->in.n_factors && i < ROWS_MOST; i++) {
        const FactorFound *x = &f->factor[i];
        double fixed = x->fixed ? 0 : NAN;
        for (size_t e = 0; x->fixed && e < x->fixed_entries; e++)
            fixed += x->fixed[e] / (double)x->fixed_entries;
        table_text(&t, arena_printf(p->a, "%s%s", f->in.factor[i].name, f->in.factor[i].divides ? " (divides)" : ""));
        table_count(&t, (int64_t)x->entries);
        number(&t, "%.4g", fixed);
        spread_cells(&t, &x->all);
    }
    table_print(&p->b, &t);
    more(p, f->in.n_factors);
}

static void print_inputs(Page *p)
{
    const Findings *f = p->f;
    size_t n = f->m->sublayer.n;
    if (n < 2)
        return;
    buf_puts(&p->b, "\nCosine of what a sublayer reads and what the following one reads\n\n");
    Table t = {.arena = p->a, .columns = 6};
    table_text(&t, "");
    spread_head(&t);
    for (size_t i = 0; i + 1 < n && i < ROWS_MOST; i++) {
        table_text(&t, arena_printf(p->a, "%s, %s", f->m->sublayer.v[i].path, f->m->sublayer.v[i + 1].path));
        spread_cells(&t, &f->next[i]);
    }
    table_print(&p->b, &t);
    more(p, n - 1);
}

static void print_activations(Page *p)
{
    const Findings *f = p->f;
    buf_printf(
        &p->b,
        "\nActivations: the share above a size, dimensions that no token uses (%.2g), the participation ratio\n\n",
        INSIDE_USED);
    Table t = {.arena = p->a, .columns = 8};
    static const char *const head[] = {"dimensions", "> 0.01", "> 0.1", "> 1", "unused", "ratio", "of all"};
    table_text(&t, "");
    for (size_t i = 0; i < COUNT_OF(head); i++)
        table_right(&t, head[i]);
    for (size_t i = 0; i < f->in.n_activations && i < ROWS_MOST; i++) {
        const ActivationFound *a = &f->activation[i];
        int64_t dims = f->in.activation[i].dims * f->in.activation[i].experts;
        table_text(&t, f->in.activation[i].path);
        table_count(&t, dims);
        number(&t, "%.3f", a->density[1]);
        number(&t, "%.3f", a->density[3]);
        number(&t, "%.3f", a->density[5]);
        table_count(&t, (int64_t)a->never);
        number(&t, "%.1f", a->ratio);
        number(&t, "%.3f", a->ratio / (double)dims);
    }
    table_print(&p->b, &t);
    more(p, f->in.n_activations);
}

static void print_states(Page *p)
{
    const Findings *f = p->f;
    bool states = f->what & INSIDE_STATES, lens = f->what & INSIDE_LENS;
    buf_printf(&p->b, "\nThe state of %lld coordinates behind each sublayer%s%s\n\n", (long long)f->coordinates,
               states ? ": how evenly it is spread (entropy from 0 to 1, rank, participation ratio)" : "",
               lens ? states ? ";\nand what the head would make of it, in nats"
                             : ": what the head would make of it, in nats"
                    : "");
    Table t = {.arena = p->a, .columns = 1 + (states ? 3 : 0) + (lens ? 3 : 0)};
    table_text(&t, "behind");
    for (int i = 0; states && i < 3; i++)
        table_right(&t, i == 0 ? "entropy" : i == 1 ? "rank" : "ratio");
    for (int i = 0; lens && i < 3; i++)
        table_right(&t, i == 0 ? "ln p(target)" : i == 1 ? "its entropy" : "moved by");
    for (size_t i = 0; i <= f->m->sublayer.n && i <= ROWS_MOST; i++) {
        const StateFound *s = &f->at[i];
        table_text(&t, findings_source(f, i));
        if (states) {
            number(&t, "%.4f", s->spectrum ? s->entropy : NAN);
            number(&t, "%.0f", s->spectrum ? (double)s->rank : NAN);
            number(&t, "%.1f", s->spectrum ? s->ratio : NAN);
        }
        if (lens) {
            number(&t, "%.4f", s->target);
            number(&t, "%.4f", s->uncertainty);
            number(&t, "%.4f", s->moved);
        }
    }
    table_print(&p->b, &t);
    more(p, f->m->sublayer.n);
}

Buf findings_text(const Findings *f)
{
    Page p = {f, f->session.arena, buf_new(f->session.arena)};
    buf_printf(&p.b, "%s, after step %lld%s, on ", f->how->source, (long long)f->source.checkpoint->progress.step,
               f->averaged ? ", with the average of the weights" : "");
    buf_count(&p.b, f->data.text ? f->windows * f->source.unit->train->context : f->windows);
    buf_puts(&p.b, f->data.text ? " tokens that are held out\n" : " examples that are held out\n");
    if (f->of_heads.n)
        buf_printf(&p.b, "%zu sublayer%s of heads %s left out: %s%s%s\n", f->of_heads.n, f->of_heads.n > 1 ? "s" : "",
                   f->of_heads.n > 1 ? "are" : "is", f->of_heads.v[0],
                   f->of_heads.n > 1 ? f->of_heads.n > 2 ? " to " : ", " : "",
                   f->of_heads.n > 1 ? f->of_heads.v[f->of_heads.n - 1] : "");
    if (f->what & INSIDE_CONNECTIONS)
        print_connections(&p);
    if (f->what & INSIDE_WEIGHTS)
        print_weights(&p);
    if (f->what & INSIDE_INPUTS)
        print_inputs(&p);
    if (f->what & INSIDE_ACTIVATIONS)
        print_activations(&p);
    if (f->what & (INSIDE_STATES | INSIDE_LENS))
        print_states(&p);
    return p.b;
}

/* ---- JSON ---- */

static void put_list(JsonText *j, const char *name, const double *v, size_t n)
{
    json_open(j, name, '[');
    for (size_t i = 0; i < n; i++)
        json_put_number(j, NULL, v[i]);
    json_close(j, ']');
}

/* By source, by its segment, by own segment. */
static void put_contribution(JsonText *j, const Findings *f, const char *name, const double *v, const UnfoldPart *to,
                             size_t sources)
{
    size_t own = (size_t)to->segments;
    json_open(j, name, '[');
    for (size_t s = 0; s < sources; s++) {
        const UnfoldPart *p = &f->in.u.source[s];
        json_open(j, NULL, '[');
        for (size_t a = 0; a < (size_t)p->segments; a++)
            put_list(j, NULL, v + (p->first + a) * own, own);
        json_close(j, ']');
    }
    json_close(j, ']');
}

static void put_row(JsonText *j, const Findings *f, const Contribution *c, const UnfoldPart *to, const char *path,
                    size_t sources)
{
    json_open(j, NULL, '{');
    json_put_string(j, "path", path);
    json_put_integer(j, "segments", to->segments);
    json_put_integer(j, "width", to->width);
    put_contribution(j, f, "mean", c->mean, to, sources);
    put_contribution(j, f, "std", c->std, to, sources);
    put_contribution(j, f, "gain", c->gain, to, sources);
}

static void json_connections(JsonText *j, const Findings *f)
{
    const Unfolding *u = &f->in.u;
    json_open(j, "connections", '{');
    json_open(j, "sources", '[');
    for (size_t i = 0; i <= u->n; i++) {
        json_open(j, NULL, '{');
        json_put_string(j, "path", findings_source(f, i));
        json_put_integer(j, "segments", u->source[i].segments);
        json_put_integer(j, "width", u->source[i].width);
        json_close(j, '}');
    }
    json_close(j, ']');
    json_open(j, "reads", '[');
    for (size_t i = 0; i < u->rows; i++) {
        put_row(j, f, &f->read[i], &u->read[i], findings_row(f, i), i + 1);
        json_put_number(j, "unexplained", f->unexplained[i]);
        json_close(j, '}');
    }
    json_close(j, ']');
    json_open(j, "states", '[');
    for (size_t i = 0; i <= u->n; i++) {
        put_row(j, f, &f->state[i], &u->state[i], findings_source(f, i), i + 1);
        json_close(j, '}');
    }
    json_close(j, ']');
    json_close(j, '}');
}

static void put_spread(JsonText *j, const char *name, const Spread *s)
{
    json_open(j, name, '{');
    json_put_number(j, "mean", s->mean);
    json_put_number(j, "std", s->std);
    json_put_number(j, "p5", s->low);
    json_put_number(j, "median", s->middle);
    json_put_number(j, "p95", s->high);
    json_close(j, '}');
}

static void json_weights(JsonText *j, const Findings *f)
{
    json_open(j, "weights", '[');
    for (size_t i = 0; i < f->in.n_factors; i++) {
        const FactorFound *x = &f->factor[i];
        json_open(j, NULL, '{');
        json_put_string(j, "path", f->in.factor[i].name);
        json_put_string(j, "of", findings_row(f, f->in.factor[i].sublayer));
        json_put_bool(j, "divides", f->in.factor[i].divides);
        if (x->fixed)
            put_list(j, "fixed", x->fixed, x->fixed_entries);
        put_spread(j, "all", &x->all);
        json_open(j, "entries", '[');
        for (size_t e = 0; e < x->entries; e++)
            put_spread(j, NULL, &x->entry[e]);
        json_close(j, ']');
        json_close(j, '}');
    }
    json_close(j, ']');
    json_open(j, "weight_histograms", '[');
    for (size_t i = 0; i < f->n_histograms; i++) {
        const Histogram *h = &f->histogram[i];
        json_open(j, NULL, '{');
        json_put_string(j, "path", f->in.factor[h->factor].name);
        json_put_string(j, "entry", findings_entry(f, h));
        json_put_number(j, "low", h->lo);
        json_put_number(j, "high", h->hi);
        put_list(j, "share", h->share, HISTOGRAM_BINS);
        json_close(j, '}');
    }
    json_close(j, ']');
}

static void json_inputs(JsonText *j, const Findings *f)
{
    size_t n = f->m->sublayer.n;
    json_open(j, "inputs", '{');
    json_open(j, "cosine", '[');
    for (size_t i = 0; i < n; i++)
        put_list(j, NULL, f->cosine + i * n, n);
    json_close(j, ']');
    json_open(j, "next", '[');
    for (size_t i = 0; i + 1 < n; i++)
        put_spread(j, NULL, &f->next[i]);
    json_close(j, ']');
    json_close(j, '}');
}

static void json_activations(JsonText *j, const Findings *f)
{
    json_open(j, "activations", '[');
    for (size_t i = 0; i < f->in.n_activations; i++) {
        const InsideActivation *x = &f->in.activation[i];
        const ActivationFound *a = &f->activation[i];
        size_t n = (size_t)(x->dims * x->experts);
        json_open(j, NULL, '{');
        json_put_string(j, "path", x->path);
        json_put_string(j, "of", findings_row(f, x->sublayer));
        json_put_integer(j, "dimensions", x->dims);
        json_put_integer(j, "experts", x->experts);
        put_list(j, "thresholds", inside_threshold, INSIDE_THRESHOLDS);
        put_list(j, "density", a->density, INSIDE_THRESHOLDS);
        json_put_number(j, "participation", a->ratio);
        json_put_number(j, "participation_share", a->ratio / (double)n);
        json_put_integer(j, "unused", (int64_t)a->never);
        put_list(j, "used", a->used, n);
        put_list(j, "energy", a->energy, n);
        json_close(j, '}');
    }
    json_close(j, ']');
}

static void json_states(JsonText *j, const Findings *f)
{
    json_open(j, "states", '[');
    for (size_t i = 0; i <= f->m->sublayer.n; i++) {
        const StateFound *s = &f->at[i];
        json_open(j, NULL, '{');
        json_put_string(j, "behind", findings_source(f, i));
        if (f->what & INSIDE_STATES) {
            json_put_number(j, "entropy", s->spectrum ? s->entropy : NAN);
            json_put_number(j, "rank", s->spectrum ? (double)s->rank : NAN);
            json_put_number(j, "participation", s->spectrum ? s->ratio : NAN);
        }
        if (f->what & INSIDE_LENS) {
            json_put_number(j, "target_log_probability", s->target);
            json_put_number(j, "prediction_entropy", s->uncertainty);
            json_put_number(j, "divergence", s->moved);
        }
        json_close(j, '}');
    }
    json_close(j, ']');
}

static void json_all(JsonText *j, const Findings *f)
{
    json_open(j, NULL, '{');
    json_put_integer(j, "v", 1);
    json_put_string(j, "event", "inspect");
    json_put_integer(j, "step", f->source.checkpoint->progress.step);
    json_put_integer(j, "windows", f->windows);
    json_put_integer(j, "positions", f->positions);
    json_put_string(j, "weights_are", f->averaged ? "average" : "last");
    json_put_integer(j, "bytes", (int64_t)f->bytes);
    json_open(j, "left_out", '[');
    for (size_t i = 0; i < f->of_heads.n; i++)
        json_put_string(j, NULL, f->of_heads.v[i]);
    json_close(j, ']');
    if (f->what & INSIDE_CONNECTIONS)
        json_connections(j, f);
    if (f->what & INSIDE_WEIGHTS)
        json_weights(j, f);
    if (f->what & INSIDE_INPUTS)
        json_inputs(j, f);
    if (f->what & INSIDE_ACTIVATIONS)
        json_activations(j, f);
    if (f->what & (INSIDE_STATES | INSIDE_LENS))
        json_states(j, f);
    json_close(j, '}');
}

void findings_json(const Findings *f)
{
    JsonText j = {.full = true};
    for (size_t cap = 1 << 16; j.full; cap *= 4) {
        json_begin(&j, NEW_ARRAY(f->session.arena, char, cap), cap - 1);
        json_all(&j, f);
    }
    j.s[j.n] = '\n';
    write_text(f->json, j.s, j.n + 1);
}
