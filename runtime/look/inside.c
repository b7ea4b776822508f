/* inside.c - `vwn inspect RUN`: what a trained model does inside, on held-out data.
 *
 * In:  a run or a checkpoint.   Out: Findings, and from them text, JSON and pictures.
 * The one idea: two programs. One evaluates the model and measures on the way (compiler/model/inside.h), a batch at a time; one
 * sends impulses through its connections (compiler/model/unfold.h), as many at a time as memory allows. Means over batches are
 * means over positions, since all batches have as many.
 */
#include "inside.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "compiler/model/cost.h"
#include "compiler/model/decode.h"
#include "growth_metrics.h"
#include "spectrum.h"
#include "look.h"

enum { TOKENS = 1024, AT_ONCE = 1024 };
static const double PART_FLOPS = 3e10; /* about a second of two cores */
static const double IMPULSE_NUMBERS = 1 << 23, SAMPLE_NUMBERS = 1 << 23, GRAM_NUMBERS = 1 << 26;

/* ---- the measuring program ---- */

typedef struct Measuring {
    Findings *f;
    Program *p;
    SeriesSet *factor, next;
    double **gram; /* by state; NULL: not measured */
    double *v;     /* room for the largest result */
    size_t room;
    double batches;
    double *active, **used, **energy, **chosen, *lens;
    size_t positions; /* of a batch */
} Measuring;

/* Reads a result of the last run; its numbers, 0 when there is none. */
static size_t result(Measuring *k, const char *name, size_t i, double **v)
{
    Session *s = &k->f->session;
    char full[64];
    snprintf(full, sizeof full, i == SIZE_MAX ? "%s" : "%s.%zu", name, i);
    *v = k->v;
    for (size_t r = 0; r < program_results(k->p); r++) {
        Name is = program_result_name(k->p, r);
        uint8_t rank;
        int64_t d[MAX_RANK];
        size_t n = program_result_size(k->p, r);
        if (strcmp(is, full))
            continue;
        Status st = program_tensor(k->p, is, &rank, d, k->v, k->room);
        if (st != ST_OK)
            ctx_raise(s->ctx, st, "%s", program_why(k->p));
        return n;
    }
    return 0;
}

static void add_to(double *sum, const double *v, size_t n, double share)
{
    for (size_t i = 0; i < n; i++)
        sum[i] += v[i] * share;
}

/* Adds x^T x, its lower half: a few rows of it at a time, which stay in a cache, and four of x, so that a number of it is
 * loaded once for four products. */
static void gram_add(double *gram, const double *x, size_t rows, size_t d)
{
    enum { ROWS = 8, AT_A_TIME = 4 };
    for (size_t first = 0; first < d; first += ROWS)
        for (size_t t = 0; t < rows; t += AT_A_TIME) {
            const double *v[AT_A_TIME];
            for (size_t k = 0; k < AT_A_TIME; k++)
                v[k] = x + (t + k < rows ? t + k : t) * d;
            for (size_t i = first; i < first + ROWS && i < d; i++) {
                double *row = gram + i * d, f[AT_A_TIME];
                for (size_t k = 0; k < AT_A_TIME; k++)
                    f[k] = t + k < rows ? v[k][i] : 0;
                for (size_t j = 0; j <= i; j++)
                    row[j] += f[0] * v[0][j] + f[1] * v[1][j] + f[2] * v[2][j] + f[3] * v[3][j];
            }
        }
}

static void read_batch(Measuring *k)
{
    Findings *f = k->f;
    const Inside *in = &f->in;
    double *v, share = 1 / k->batches;
    size_t n, sublayers = f->m->sublayer.n;
    for (size_t i = 0; i < in->u.rows && f->unexplained; i++) {
        double left = result(k, "left", i, &v) ? v[0] : 0, size = result(k, "size", i, &v) ? v[0] : 0;
        f->unexplained[i] += share * (size > 0 ? left / size : 0);
    }
    for (size_t i = 0; i < in->n_factors && k->factor; i++) {
        if ((n = result(k, "factor", i, &v)))
            series_add(&k->factor[i], v, n / k->factor[i].n);
        if ((n = result(k, "fixed", i, &v)) && !f->factor[i].fixed) {
            double *fixed = NEW_ARRAY(f->session.arena, double, n);
            memcpy(fixed, v, n * sizeof *fixed);
            f->factor[i].fixed = fixed;
            f->factor[i].fixed_entries = n;
        }
    }
    if (f->cosine && (n = result(k, "cosine", SIZE_MAX, &v)))
        add_to(f->cosine, v, n, share);
    if (f->next && k->next.n && (n = result(k, "next", SIZE_MAX, &v)))
        series_add(&k->next, v, n / k->next.n);
    for (size_t i = 0; i < in->n_activations && k->chosen; i++) {
        n = result(k, "active", i, &v);
        add_to(f->activation[i].density, v, n, share);
        n = result(k, "used", i, &v);
        add_to(f->activation[i].used, v, n, share);
        n = result(k, "energy", i, &v);
        add_to(f->activation[i].energy, v, n, share);
        if (k->chosen[i] && (n = result(k, "chosen", i, &v)))
            add_to(k->chosen[i], v, n, share);
    }
    for (size_t i = 0; i <= sublayers && k->gram; i++) {
        if (k->gram[i] && (n = result(k, "state", i, &v)))
            gram_add(k->gram[i], v, n / (size_t)f->coordinates, (size_t)f->coordinates);
        if (k->lens && result(k, "lens", i, &v))
            add_to(k->lens + 4 * i, v, 3, share);
        if (k->lens && i && result(k, "moved", i, &v))
            k->lens[4 * i + 3] += v[0] * share;
    }
}

static size_t factor_entries(const Findings *f, const UnfoldFactor *x)
{
    const Shape *s = shape_of(f->m->graph, x->value);
    size_t n = 1;
    for (int k = shape_of(f->m->graph, f->m->embedded)->rank - 1; k < s->rank; k++)
        n *= (size_t)s->d[k].n;
    return n;
}

/* States whose matrices fit into memory together, spread evenly, with the last one. */
static void choose_states(Findings *f)
{
    Session *s = &f->session;
    size_t n = f->m->sublayer.n + 1;
    double each = (double)f->coordinates * (double)f->coordinates;
    size_t fit = (size_t)fmin(GRAM_NUMBERS / each, (double)n);
    if (!fit)
        session_warn(s, arena_printf(s->arena,
                                     "the spread of states of %lld coordinates is not measured: of 8,192 at most",
                                     (long long)f->coordinates));
    else if (fit < n)
        session_warn(s,
                     arena_printf(s->arena, "the spread of %zu of %zu states is measured, for want of memory", fit, n));
    bool *wanted = NEW_ARRAY(s->arena, bool, n);
    for (size_t i = 0; i < fit; i++)
        wanted[n - 1 - i * n / fit] = true;
    f->in.state = wanted;
}

/* Before the first batch: room for what is to be found. */
static void prepare(Measuring *k)
{
    Findings *f = k->f;
    Arena *a = f->session.arena;
    const Inside *in = &f->in;
    size_t n = f->m->sublayer.n, all = k->positions * (size_t)k->batches, entries = 1;
    if (f->what & INSIDE_CONNECTIONS && !in->u.why_not)
        f->unexplained = NEW_ARRAY(a, double, in->u.rows + 1);
    if (f->what & INSIDE_WEIGHTS && in->n_factors) {
        f->factor = NEW_ARRAY(a, FactorFound, in->n_factors);
        k->factor = NEW_ARRAY(a, SeriesSet, in->n_factors);
        for (size_t i = 0; i < in->n_factors; i++)
            entries += f->factor[i].entries = factor_entries(f, &in->factor[i]);
        for (size_t i = 0; i < in->n_factors; i++)
            k->factor[i] = series_new(a, f->factor[i].entries, all,
                                      SAMPLE_NUMBERS * (double)f->factor[i].entries / (double)entries);
    }
    if (f->what & INSIDE_INPUTS && !in->u.why_not) {
        f->cosine = NEW_ARRAY(a, double, n *n + 1);
        f->next = n > 1 ? NEW_ARRAY(a, Spread, n) : NULL;
        k->next = series_new(a, n > 1 ? n - 1 : 1, all, SAMPLE_NUMBERS);
    }
    if (f->what & INSIDE_ACTIVATIONS && in->n_activations) {
        f->activation = NEW_ARRAY(a, ActivationFound, in->n_activations);
        k->chosen = NEW_ARRAY(a, double *, in->n_activations);
        for (size_t i = 0; i < in->n_activations; i++) {
            const InsideActivation *x = &in->activation[i];
            f->activation[i].used = NEW_ARRAY(a, double, (size_t)(x->experts * x->dims) + 1);
            f->activation[i].energy = NEW_ARRAY(a, double, (size_t)(x->experts * x->dims) + 1);
            k->chosen[i] = x->index ? NEW_ARRAY(a, double, (size_t)x->experts + 1) : NULL;
        }
    }
    bool lens = f->what & INSIDE_LENS && in->logits;
    if (!(f->what & INSIDE_STATES) && !lens)
        return;
    f->at = NEW_ARRAY(a, StateFound, n + 1);
    k->lens = lens ? NEW_ARRAY(a, double, 4 * n + 4) : NULL;
    k->gram = NEW_ARRAY(a, double *, n + 1);
    for (size_t i = 0; i <= n; i++)
        if (in->state && in->state[i])
            k->gram[i] = NEW_ARRAY(a, double, (size_t)(f->coordinates * f->coordinates));
}

/* ---- from sums to findings ---- */

/* The entries of the last sublayer's factors that vary most, in their order. */
static void choose_entries(Findings *f)
{
    size_t last = f->in.n_factors;
    while (last && f->in.factor[last - 1].sublayer >= f->m->sublayer.n)
        last--;
    f->histogram = NEW_ARRAY(f->session.arena, Histogram, HISTOGRAMS_MOST + 1);
    for (size_t i = 0; i < last; i++)
        for (size_t e = 0; f->in.factor[i].sublayer == f->in.factor[last - 1].sublayer && e < f->factor[i].entries;
             e++) {
            f->histogram[f->n_histograms++] = (Histogram){.factor = i, .entry = e};
            if (f->n_histograms <= HISTOGRAMS_MOST)
                continue;
            size_t least = 0;
            for (size_t h = 0; h < f->n_histograms; h++)
                if (f->factor[f->histogram[h].factor].entry[f->histogram[h].entry].std <
                    f->factor[f->histogram[least].factor].entry[f->histogram[least].entry].std)
                    least = h;
            f->n_histograms--;
            for (size_t h = least; h < f->n_histograms; h++)
                f->histogram[h] = f->histogram[h + 1];
        }
}

static void finish_histograms(Measuring *k)
{
    Findings *f = k->f;
    double lo = INFINITY, hi = -INFINITY;
    choose_entries(f);
    for (int pass = 0; pass < 2; pass++)
        for (size_t h = 0; h < f->n_histograms; h++) {
            Histogram *x = &f->histogram[h];
            const SeriesSet *s = &k->factor[x->factor];
            x->lo = lo;
            x->hi = hi;
            for (size_t i = 0; i < s->n_kept; i++) {
                double v = s->kept[x->entry * s->room + i];
                if (pass)
                    x->share[histogram_bin(v, lo, hi, HISTOGRAM_BINS)] += 1 / (double)s->n_kept;
                lo = pass ? lo : fmin(lo, v);
                hi = pass ? hi : fmax(hi, v);
            }
        }
}

static void finish_factors(Measuring *k)
{
    Findings *f = k->f;
    for (size_t i = 0; i < f->in.n_factors && k->factor; i++) {
        const SeriesSet *s = &k->factor[i];
        double *room = NEW_ARRAY(f->session.arena, double, s->n * s->room + 1);
        f->factor[i].entry = NEW_ARRAY(f->session.arena, Spread, s->n + 1);
        for (size_t e = 0; e < s->n; e++)
            f->factor[i].entry[e] = series_spread(s, e, 1, room);
        f->factor[i].all = series_spread(s, 0, s->n, room);
    }
    if (k->factor)
        finish_histograms(k);
    double *room = NEW_ARRAY(f->session.arena, double, k->next.room + 1);
    for (size_t i = 0; f->next && i < k->next.n; i++)
        f->next[i] = series_spread(&k->next, i, 1, room);
}

static void finish_activations(Measuring *k)
{
    Findings *f = k->f;
    for (size_t i = 0; i < f->in.n_activations && k->chosen; i++) {
        const InsideActivation *x = &f->in.activation[i];
        ActivationFound *a = &f->activation[i];
        size_t n = (size_t)(x->experts * x->dims);
        a->ratio = participation_ratio(a->energy, n);
        for (size_t d = 0; d < n; d++) {
            double rows = k->chosen[i] ? k->chosen[i][d / (size_t)x->dims] : 1;
            a->never += a->used[d] == 0;
            a->used[d] = rows > 0 ? a->used[d] / rows : 0;
            a->energy[d] = rows > 0 ? a->energy[d] / rows : 0;
        }
    }
}

static void finish_states(Measuring *k)
{
    Findings *f = k->f;
    size_t d = (size_t)f->coordinates;
    for (size_t i = 0; i <= f->m->sublayer.n && k->gram; i++) {
        StateFound *s = &f->at[i];
        s->target = s->uncertainty = s->moved = NAN;
        if (k->lens) {
            const double *l = k->lens + 4 * i;
            s->target = l[1] > 0 ? l[0] / l[1] : NAN;
            s->uncertainty = l[2];
            s->moved = i ? l[3] : NAN;
        }
        if (!k->gram[i])
            continue;
        ArenaMark mark = arena_mark(f->session.arena);
        double *value = NEW_ARRAY(f->session.arena, double, d), *room = NEW_ARRAY(f->session.arena, double, d);
        double *a = k->gram[i];
        for (size_t p = 0; p < d; p++)
            for (size_t q = 0; q < p; q++)
                a[q * d + p] = a[p * d + q];
        if (symmetric_eigenvalues(a, d, value, room)) {
            /* numpy's rule for the rank of a matrix of float32: sigma above eps sigma_1 max(rows, columns) */
            double least = 0x1p-23 * fmax((double)f->positions, (double)d);
            s->spectrum = true;
            s->entropy = normalized_entropy(value, d, value[0] * least * least, &s->rank);
            s->ratio = participation_ratio(value, d);
        }
        arena_reset(f->session.arena, mark);
    }
}

/* ---- impulses ---- */

static void finish_contribution(Findings *f, Contribution *c, const UnfoldPart *to)
{
    const Unfolding *u = &f->in.u;
    size_t own = (size_t)to->segments;
    for (size_t j = 0; j <= u->n; j++) {
        double least = (double)(u->source[j].width < to->width ? u->source[j].width : to->width),
               scale = (double)to->width / least;
        for (size_t i = u->source[j].first * own; i < (u->source[j].first + (size_t)u->source[j].segments) * own; i++) {
            double mean = c->mean[i] * scale, square = c->std[i] * scale * scale;
            c->mean[i] = mean;
            c->std[i] = sqrt(fmax(square - mean * mean, 0));
            c->gain[i] = sqrt(fmax(c->gain[i] * scale, 0));
        }
    }
}

static void contribution_new(Findings *f, Contribution *c, const UnfoldPart *to)
{
    size_t n = f->in.u.segments * (size_t)to->segments + 1;
    c->mean = NEW_ARRAY(f->session.arena, double, n);
    c->std = NEW_ARRAY(f->session.arena, double, n);
    c->gain = NEW_ARRAY(f->session.arena, double, n);
}

/* Adds what the impulses from `first` on did in a batch. */
static void contribution_add(Measuring *k, Contribution *c, const char *name, size_t i, size_t own, size_t first,
                             size_t impulses)
{
    double *v, *to[] = {c->mean, c->std, c->gain};
    size_t all = k->f->in.u.segments, n = first + impulses > all ? all - first : impulses;
    if (!result(k, name, i, &v))
        return;
    for (int w = 0; w < 3; w++)
        add_to(to[w] + first * own, v + (size_t)w * impulses * own, n * own, 1 / k->batches);
}

static size_t impulses_at_once(const Findings *f, int64_t B, int64_t T)
{
    double numbers = (double)f->coordinates * (double)B * (double)T;
    double n = floor(IMPULSE_NUMBERS / numbers);
    return n < 1 ? 1 : n < (double)f->in.u.segments ? (size_t)n : f->in.u.segments;
}

static void select_impulses(Findings *f, size_t first, size_t impulses)
{
    Session *s = &f->session;
    StoreEntry *e = store_find(s->store, EXT_STATE, name_str(s->ctx, UNFOLD_SELECT));
    size_t all = f->in.u.segments;
    double *v = NEW_ARRAY(s->arena, double, impulses *all);
    for (size_t i = 0; i < impulses && first + i < all; i++)
        v[i * all + first + i] = 1;
    session_store_ok(s, store_put_f64(s->store, e, 0, (int64_t)(impulses * all), v));
}

/* ---- the whole ---- */

static size_t largest_result(const Program *p)
{
    size_t most = 1;
    for (size_t i = 0; i < program_results(p); i++)
        most = program_result_size(p, i) > most ? program_result_size(p, i) : most;
    return most;
}

static void find_all(Findings *f, Program *measure, Program *impulse, size_t impulses, int64_t B)
{
    Session *s = &f->session;
    const Train *t = f->source.unit->train;
    Feed feed = feed_open(s, f->data.split, B, t->context);
    f->averaged = source_load(s, &f->source, f->how->last);
    double vars[HV_COUNT];
    held_out_vars(&f->source, &f->data, vars);
    size_t batches = (size_t)(f->windows / B);
    Measuring k = {
        .f = f, .p = measure, .batches = (double)batches, .positions = (size_t)(f->positions / (int64_t)batches)};
    k.room = largest_result(measure);
    k.room = impulse && largest_result(impulse) > k.room ? largest_result(impulse) : k.room;
    k.v = NEW_ARRAY(s->arena, double, k.room);
    prepare(&k);
    for (size_t i = 0; i < batches; i++) {
        feed_fixed(&feed, f->data.split, (int64_t)i * B, f->windows);
        k.p = measure;
        RunArgs args = run_untrained(vars, (int64_t)i * B);
        session_run(s, measure, &args);
        read_batch(&k);
        k.p = impulse;
        for (size_t first = 0; impulse && first < f->in.u.segments; first += impulses) {
            ArenaMark mark = arena_mark(s->arena);
            select_impulses(f, first, impulses);
            session_run(s, impulse, &args);
            for (size_t r = 0; r < f->in.u.rows; r++)
                contribution_add(&k, &f->read[r], "read", r, (size_t)f->in.u.read[r].segments, first, impulses);
            for (size_t r = 0; r <= f->in.u.n; r++)
                contribution_add(&k, &f->state[r], "state", r, (size_t)f->in.u.state[r].segments, first, impulses);
            arena_reset(s->arena, mark);
        }
    }
    for (size_t r = 0; impulse && r < f->in.u.rows; r++)
        finish_contribution(f, &f->read[r], &f->in.u.read[r]);
    for (size_t r = 0; impulse && r <= f->in.u.n; r++)
        finish_contribution(f, &f->state[r], &f->in.u.state[r]);
    finish_factors(&k);
    finish_activations(&k);
    finish_states(&k);
}

/* Why there is nothing of this, or NULL. */
static const char *missing_of(const Findings *f, InsideWhat what)
{
    const char *why = f->in.u.why_not;
    switch (what) {
    case INSIDE_CONNECTIONS:
    case INSIDE_INPUTS:
    case INSIDE_STATES: return why;
    case INSIDE_WEIGHTS: return why ? why : f->in.n_factors ? NULL : "no weight of its connections depends on the data";
    case INSIDE_ACTIVATIONS:
        return f->in.n_activations ? NULL : "no product with weights reads what an activation function returns";
    case INSIDE_LENS: return f->in.no_lens;
    case INSIDE_ALL: break;
    }
    return NULL;
}

static void choose_what(Findings *f)
{
    static const char *const word[] = {"connections", "weights", "inputs", "activations", "states", "lens"};
    f->what = 0;
    for (size_t i = 0; i < COUNT_OF(word); i++)
        if (!f->how->what || !strcmp(f->how->what, word[i]))
            f->what |= 1u << i;
    if (!f->what)
        ctx_raise(f->session.ctx, ST_USAGE,
                  "`%.100s` cannot be looked at; what can: connections, weights, inputs, activations, states, lens",
                  f->how->what);
    size_t missing = 0, asked = 0;
    for (size_t i = 0; i < COUNT_OF(word); i++) {
        const char *why = f->what >> i & 1 ? missing_of(f, (InsideWhat)(1u << i)) : NULL;
        asked += f->what >> i & 1;
        missing += why != NULL;
        if (!why)
            continue;
        if (f->how->what)
            ctx_raise(f->session.ctx, ST_INPUT, "%s: %s", word[i], why);
        if (why == f->in.u.why_not ||
            why == f->in.no_lens) /* else the model has none of that, and nobody asked for it */
            session_warn(&f->session, arena_printf(f->session.arena, "nothing of `%s`: %s", word[i], why));
        f->what &= ~(1u << i);
    }
    if (missing == asked)
        ctx_raise(f->session.ctx, ST_INPUT, "nothing can be measured of this model");
}

/* A prediction that can look at what it predicts says nothing. */
static void warn_of_later(Findings *f)
{
    DecodeRefusal where;
    if (f->what & INSIDE_LENS && f->data.text &&
        decode_looks_ahead(step_predict(f->m, f->session.arena), f->session.arena, &where))
        session_warn(
            &f->session,
            arena_printf(f->session.arena,
                         "predictions of this model depend on later tokens (%s), so `ln p(target)` may know its target",
                         where.why));
}

/* Connections without weights, and a state that is what sublayers read: each reads the sum of all before it. */
static bool is_plain(const Findings *f)
{
    const Model *m = f->m;
    bool plain = !f->in.n_factors && f->in.u.segments == f->in.u.n + 1;
    for (size_t i = 0; i < m->step.n && plain; i++) {
        const char *own = arena_printf(f->session.arena, "%s.connection.", m->step.v[i].path);
        plain = m->step.v[i].state == m->step.v[i].reads;
        for (size_t k = 0; k < m->param.n && plain; k++)
            plain = strncmp(m->param.v[k].path, own, strlen(own)) != 0;
    }
    return plain;
}

/* Multiply-adds twice: the model once for a batch and once more for every set of impulses, which move whole states. */
static double count_flops(const Findings *f, size_t impulses, int64_t tokens)
{
    double sets = ceil((double)f->in.u.segments / (double)impulses);
    double moves = 8.0 * (double)f->in.u.segments * (double)f->coordinates * (double)f->in.u.rows;
    return (double)tokens * ((1 + sets) * model_flops_per_token(f->m) + moves);
}

/* Windows of a whole number of batches, of as many tokens as were asked for where there are so many. */
static int64_t choose_windows(Findings *f)
{
    int64_t T = f->source.unit->train->context, want = f->how->tokens > 0 ? f->how->tokens : TOKENS;
    int64_t there = split_fixed_windows(f->data.split);
    f->windows = (want + T - 1) / T;
    f->windows = f->windows < there ? f->windows : there;
    int64_t B = AT_ONCE / T;
    B = B < 1 ? 1 : B > f->windows ? f->windows : B;
    f->windows -= f->windows % B;
    return B;
}

/* What would not fit is refused before it takes anything, or goes to the processor. Of two programs that share their arena. */
static void check_room(Findings *f, const Graph *measure, const Graph *impulse, ProgramOptions *how)
{
    static const double GIB = 1024.0 * 1024.0 * 1024.0;
    Session *s = &f->session;
    uint64_t left, other;
    if (!s->backend)
        return; /* the reference evaluator takes what it wants when it wants it */
    f->bytes = session_program_need(s, measure, how);
    other = impulse ? session_program_need(s, impulse, how) : 0;
    f->bytes = other > f->bytes ? other : f->bytes;
    if (!session_room(s, &left) || f->bytes <= left)
        return;
    const char *why = arena_printf(s->arena, "looking inside needs %.2f GiB and %.2f are available%s; %s",
                                   (double)f->bytes / GIB, (double)left / GIB, s->backend->kind->where,
                                   f->how->what ? "fewer `--tokens` may need less"
                                                : "one thing at a time, such as `--what lens`, may need less");
    if (!session_use_cpu(s, why))
        ctx_raise(s->ctx, ST_ENVIRONMENT, "%s", why);
    how->half = session_half(s, f->source.unit->train);
}

/* Sublayers of heads are not looked into: their paths. */
static void find_left_out(Findings *f)
{
    const Model *m = f->m;
    Map own;
    map_init(&own, f->session.arena);
    for (size_t i = 0; i < m->sublayer.n; i++)
        *map_at(&own, (uintptr_t)m->sublayer.v[i].path) = f;
    for (size_t i = 0; i < m->step.n; i++)
        if (!map_get(&own, (uintptr_t)m->step.v[i].path)) {
            vec_push(f->session.arena, &f->of_heads, m->step.v[i].path);
            *map_at(&own, (uintptr_t)m->step.v[i].path) = f;
        }
}

static Status inside_body(void *user)
{
    Findings *f = user;
    Session *s = &f->session;
    session_open(s, s->owner);
    f->source = source_open(s, f->how->source, false, f->hooks);
    f->m = f->source.unit->model;
    f->in = inside_of(f->m, s->arena);
    find_left_out(f);
    choose_what(f);
    if (f->part && (f->plain = is_plain(f)))
        return ST_OK;
    f->data = held_out_open(s, &f->source, f->how->data);
    warn_of_later(f);
    const Train *t = f->source.unit->train;
    int64_t B = choose_windows(f), T = t->context;
    f->coordinates = f->m->state_width;
    f->flops = count_flops(f, impulses_at_once(f, B, T), f->windows * T);
    f->left_out = f->part && !f->large && f->flops > PART_FLOPS;
    if (f->left_out)
        return ST_OK;
    session_open_backend(s);
    session_warn(s, s->note);
    const Shape *e = shape_of(f->m->graph, f->m->embedded);
    f->positions = f->windows / B;
    for (int k = 0; k + 1 < e->rank; k++)
        f->positions *= dim_at(e->d[k], B, T);
    if (f->what & INSIDE_STATES)
        choose_states(f);
    ProgramOptions how = {.name = "inspect", .B = B, .T = T, .share_arena = true, .half = session_half(s, t)};
    BuildReport built = {0};
    size_t impulses = impulses_at_once(f, B, T);
    const Graph *graph = inside_graph(&f->in, f->what, s->arena);
    const Graph *sent =
        f->what & INSIDE_CONNECTIONS ? unfold_impulses(f->m, &f->in.u, (int64_t)impulses, s->arena) : NULL;
    check_room(f, graph, sent, &how);
    session_add_params(s, f->m);
    Program *measure = session_program(s, graph, &how, &built), *impulse = NULL;
    if (sent) {
        how.name = "impulses";
        impulse = session_program(s, sent, &how, &built);
        f->read = NEW_ARRAY(s->arena, Contribution, f->in.u.rows + 1);
        f->state = NEW_ARRAY(s->arena, Contribution, f->in.u.n + 1);
        for (size_t i = 0; i < f->in.u.rows; i++)
            contribution_new(f, &f->read[i], &f->in.u.read[i]);
        for (size_t i = 0; i <= f->in.u.n; i++)
            contribution_new(f, &f->state[i], &f->in.u.state[i]);
    }
    session_warn(s, built.note);
    find_all(f, measure, impulse, impulses, B);
    Buf summary = f->text || f->how->page ? findings_text(f) : (Buf){0};
    if (f->text)
        write_text(f->text, summary.s, summary.n);
    if (f->json)
        findings_json(f);
    if (f->how->picture)
        findings_draw(f);
    if (f->how->page)
        findings_page(f, &summary);
    return ST_OK;
}

Status inspect_inside(vwn_context *owner, const vwn_inside_options *how, const vwn_writer *text, const vwn_writer *json,
                      const Hooks *hooks)
{
    Findings f = {.session.owner = owner, .how = how, .text = text, .json = json, .hooks = hooks};
    Status st = guarded(owner->ctx, inside_body, &f);
    return session_end(&f.session, st);
}

Status inside_part(vwn_context *owner, InsidePart *part, const Hooks *hooks)
{
    vwn_inside_options how = {
        .source = part->run, .what = "connections", .picture = part->picture, .picture_user = part->user};
    Findings f = {.session.owner = owner, .how = &how, .hooks = hooks, .part = true, .large = part->large};
    Status st = guarded(owner->ctx, inside_body, &f);
    part->plain = f.plain;
    part->left_out = f.left_out;
    part->flops = f.flops;
    part->tokens = st == ST_OK && !f.plain ? f.windows * f.source.unit->train->context : 0;
    return session_end(&f.session, st);
}
