/* inside.c - what `vwn inspect` measures, against loops over the values themselves.
 *
 * In:  small models, weights at random, and matrices whose eigenvalues are known.   Out: `N passed, N failed`.
 * 1. Eigenvalues: of a chain's Laplacian, which are known, and of random matrices by Jacobi's rotations.
 * 2. Entropy and participation ratio of cases that can be done by hand; means and quantiles of numbers in order.
 * 3. Cosines, activations (of experts, too), and the lens: from what sublayers read, from activations and from the last
 *    norm and head written out here.
 * 4. Every variant of models.h can be measured.
 * When: quick.
 */
#include "support/models.h"

#include "compiler/model/inside.h"
#include "runtime/look/series.h"
#include "runtime/look/spectrum.h"

enum { B = 2, T = 8, D = 12, V = 17, N = 24 };

static int passed, failed;

static void check(const char *name, double x, double want, double tolerance)
{
    bool ok = isfinite(want) && fabs(x - want) <= tolerance * fmax(1, fabs(want));
    ok ? passed++ : failed++;
    if (!ok)
        printf("%s: %.15g, wanted %.15g  FAILED\n", name, x, want);
}

/* ---- 1, 2 ---- */

static int falling(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

static void jacobi(double a[N][N], double *value)
{
    for (int round = 0; round < 100; round++)
        for (int p = 0; p < N; p++)
            for (int q = p + 1; q < N; q++) {
                if (fabs(a[p][q]) < 1e-300)
                    continue;
                double theta = (a[q][q] - a[p][p]) / (2 * a[p][q]);
                double t = copysign(1, theta) / (fabs(theta) + sqrt(theta * theta + 1)), c = 1 / sqrt(t * t + 1),
                       s = t * c;
                for (int k = 0; k < N; k++) {
                    double x = a[k][p], y = a[k][q];
                    a[k][p] = c * x - s * y;
                    a[k][q] = s * x + c * y;
                }
                for (int k = 0; k < N; k++) {
                    double x = a[p][k], y = a[q][k];
                    a[p][k] = c * x - s * y;
                    a[q][k] = s * x + c * y;
                }
            }
    for (int k = 0; k < N; k++)
        value[k] = a[k][k];
    qsort(value, N, sizeof *value, falling);
}

static void eigenvalues(void)
{
    double a[N][N] = {{0}}, copy[N][N], value[N], want[N], room[N];
    for (int i = 0; i < N; i++) {
        a[i][i] = 2;
        if (i)
            a[i][i - 1] = a[i - 1][i] = -1;
        want[N - 1 - i] = 2 - 2 * cos((i + 1) * 3.14159265358979323846 / (N + 1));
    }
    check("converges", symmetric_eigenvalues(&a[0][0], N, value, room), 1, 0);
    for (int i = 0; i < N; i++)
        check("a chain", value[i], want[i], 1e-13);
    uint64_t state = 5;
    for (int c = 0; c < 4; c++) {
        double x[N][N]; /* c < 2: of rank 6 */
        for (int i = 0; i < N; i++)
            for (int k = 0; k < N; k++)
                x[i][k] = k < (c < 2 ? 6 : N) ? noise(&state) : 0;
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++) {
                a[i][j] = 0;
                for (int k = 0; k < N; k++)
                    a[i][j] += x[i][k] * x[j][k];
            }
        memcpy(copy, a, sizeof a);
        jacobi(copy, want);
        check("converges", symmetric_eigenvalues(&a[0][0], N, value, room), 1, 0);
        for (int i = 0; i < N; i++)
            check("a random matrix", value[i], want[i], 1e-12);
        size_t rank;
        normalized_entropy(value, N, value[0] * 1e-12, &rank);
        check("its rank", (double)rank, c < 2 ? 6 : N, 0);
    }
    a[3][4] = a[4][3] = NAN;
    check("no number", symmetric_eigenvalues(&a[0][0], N, value, room), 0, 0);
}

static void spreads(void)
{
    size_t r;
    const double even[] = {2, 2, 2, 2}, one[] = {5, 0, 0, 0}, two[] = {3, 1, 0, 0};
    check("all alike", normalized_entropy(even, 4, 1e-9, &r), 1, 1e-15);
    check("one direction", normalized_entropy(one, 4, 1e-9, &r), 0, 0);
    check("three to one", normalized_entropy(two, 4, 1e-9, &r), (0.75 * log(4.0 / 3) + 0.25 * log(4)) / log(2), 1e-14);
    check("its rank", (double)r, 2, 0);
    check("participation of all", participation_ratio(even, 4), 4, 1e-15);
    check("participation of one", participation_ratio(one, 4), 1, 1e-15);
    check("three to one", participation_ratio(two, 4), 1.6, 1e-15);
}

/* ---- 3 ---- */

typedef struct Seen {
    const Model *m;
    const Graph *g;
    Tensor **out;
    RefBinding *bind;
} Seen;

/* Of v in falling order: between the two numbers around q (n - 1) from below, in proportion. */
static double in_order(const double *v, size_t n, double q)
{
    double at = q * (double)(n - 1), below = floor(at);
    return v[n - 1 - (size_t)below] + (at - below) * (v[n - 1 - (size_t)ceil(at)] - v[n - 1 - (size_t)below]);
}

/* n series over some positions, added in batches: those from `first` on as one. Tied numbers, too. */
static void one_spread(Arena *a, size_t n, size_t positions, double numbers, size_t first, size_t count)
{
    enum { MOST = 1000 };
    static double v[MOST], kept[MOST], room[MOST];
    SeriesSet s = series_new(a, n, positions, numbers);
    size_t n_kept = 0, all = 0, each = (positions + s.every - 1) / s.every;
    double sum = 0, squares = 0;
    for (size_t i = 0; i < n * positions; i++) {
        v[i] = i % 3 ? sin((double)(7 * i)) : floor(4 * cos((double)i));
        size_t at = i / n, of = i % n;
        if (of < first || of >= first + count)
            continue;
        sum += v[i];
        all++;
        if (at % s.every == 0)
            kept[n_kept++] = v[i];
    }
    for (size_t i = 0; i < n * positions; i++)
        if (i % n >= first && i % n < first + count)
            squares += (v[i] - sum / (double)all) * (v[i] - sum / (double)all);
    series_add(&s, v, positions / 3);
    series_add(&s, v + positions / 3 * n, positions - positions / 3);
    check("all that was added is seen", (double)s.seen, (double)positions, 0);
    check("numbers kept of a series", (double)s.n_kept, (double)each, 0);
    Spread x = series_spread(&s, first, count, room);
    qsort(kept, n_kept, sizeof *kept, falling);
    check("mean of a series", x.mean, sum / (double)all, 1e-12);
    check("deviation of a series", x.std, sqrt(squares / (double)all), 1e-12);
    check("5 of 100 are below", x.low, in_order(kept, n_kept, 0.05), 1e-12);
    check("half of them are below", x.middle, in_order(kept, n_kept, 0.5), 1e-12);
    check("95 of 100 are below", x.high, in_order(kept, n_kept, 0.95), 1e-12);
}

static void series(void)
{
    Ctx *ctx = ctx_new(NULL);
    Arena *a = arena_new(ctx);
    for (size_t positions = 1; positions <= 130; positions++) {
        one_spread(a, 1, positions, 1000, 0, 1);
        one_spread(a, 4, positions, 1000, 1, 1);
        one_spread(a, 4, positions, 1000, 2, 2);
        one_spread(a, 5, positions, 6 * 65, 1,
                   3); /* 65 of each are kept while there are as many, then every second one */
        check("every number, or every second one", (double)series_new(a, 5, positions, 6 * 65).every,
              1 + (positions > 65), 0);
        check("64 of a series at least", (double)series_new(a, 5, positions, 1).every,
              positions > 128 ? 3 : 1 + (positions > 64), 0);
    }
    SeriesSet none = series_new(a, 2, 5, 100);
    double room[2];
    Spread x = series_spread(&none, 0, 2, room);
    check("nothing was added", isnan(x.mean) && isnan(x.std) && isnan(x.low) && isnan(x.middle) && isnan(x.high), 1, 0);
    arena_free(a);
    ctx_free(ctx);
}

static const double *numbers(const Seen *s, const char *name)
{
    for (size_t i = 0; i < s->g->out.n; i++)
        if (!strcmp(s->g->out.v[i].name, name))
            return s->out[i]->dtype == DT_REAL ? s->out[i]->real : NULL;
    fprintf(stderr, "no result %s\n", name);
    exit(1);
}

static Seen evaluate(Ctx *ctx, const Model *m, const Graph *g)
{
    Seen s = {m, g, NEW_ARRAY(ctx->program, Tensor *, g->out.n + 1), bind_all(ctx->program, g, m, B, T, 0.5)};
    RefRun run = {.B = B, .T = T, .seed = 1, .bind = s.bind, .n_bind = g->ext.n};
    ref_evaluate(g, ctx->program, &run, s.out);
    return s;
}

/* The values that are measured, as they are: "read.I", "state.I", "activation.I", "index.I" (as real numbers). */
static Seen values(Ctx *ctx, const Inside *in)
{
    const Model *m = in->m;
    Val root[64], *map;
    Name name[64];
    size_t n = 0;
    root[n] = m->opened;
    name[n++] = name_str(ctx, "state.0");
    for (size_t i = 0; i < m->sublayer.n; i++) {
        root[n] = m->sublayer.v[i].read;
        name[n++] = name_printf(ctx, "read.%zu", i);
        root[n] = m->sublayer.v[i].after;
        name[n++] = name_printf(ctx, "state.%zu", i + 1);
    }
    for (size_t i = 0; i < in->n_activations; i++) {
        root[n] = in->activation[i].value;
        name[n++] = name_printf(ctx, "activation.%zu", i);
        if (in->activation[i].index) {
            root[n] = in->activation[i].index;
            name[n++] = name_printf(ctx, "index.%zu", i);
        }
    }
    Graph *g = step_values(m, root, n, &map, ctx->program);
    for (size_t i = 0; i < n; i++)
        ir_output(g, name[i], ir_cast(g, map[root[i]], DT_REAL));
    return evaluate(ctx, m, g);
}

static double cosine(const double *x, const double *y, size_t n)
{
    double xy = 0, xx = 0, yy = 0;
    for (size_t i = 0; i < n; i++) {
        xy += x[i] * y[i];
        xx += x[i] * x[i];
        yy += y[i] * y[i];
    }
    return xy / sqrt(xx * yy);
}

static void inputs(Ctx *ctx, const Inside *in, const Seen *got, const Seen *is)
{
    size_t n = in->m->sublayer.n;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n; k++) {
            double sum = 0;
            for (size_t t = 0; t < B * T; t++) {
                const double *x = numbers(is, arena_printf(ctx->program, "read.%zu", i)) + t * D;
                const double *y = numbers(is, arena_printf(ctx->program, "read.%zu", k)) + t * D;
                double c = cosine(x, y, D);
                sum += c / (B * T);
                if (k == i + 1)
                    check("next", numbers(got, "next")[t * (n - 1) + i], c, 1e-12);
            }
            check("cosine", numbers(got, "cosine")[i * n + k], sum, 1e-12);
        }
}

static void activation(Ctx *ctx, const Inside *in, const Seen *got, const Seen *is, size_t i)
{
    const InsideActivation *a = &in->activation[i];
    const double *x = numbers(is, arena_printf(ctx->program, "activation.%zu", i));
    const double *index = a->index ? numbers(is, arena_printf(ctx->program, "index.%zu", i)) : NULL;
    size_t chosen = a->index ? 2 : 1, rows = B * T * chosen, dims = (size_t)a->dims, all = dims * (size_t)a->experts;
    double share[INSIDE_THRESHOLDS] = {0}, used[256] = {0}, energy[256] = {0};
    for (size_t r = 0; r < rows; r++)
        for (size_t d = 0; d < dims; d++) {
            double v = x[r * dims + d];
            size_t at = (index ? (size_t)index[r] : 0) * dims + d;
            for (int k = 0; k < INSIDE_THRESHOLDS; k++)
                share[k] += (fabs(v) > inside_threshold[k]) / (double)(rows * dims);
            used[at] += (fabs(v) > 0.1) / (double)rows;
            energy[at] += v * v / (double)rows;
        }
    for (int k = 0; k < INSIDE_THRESHOLDS; k++)
        check("density", numbers(got, arena_printf(ctx->program, "active.%zu", i))[k], share[k], 1e-12);
    check("some are dense, some are not", share[3] > 0.01 && share[3] < 0.99, 1, 0);
    for (size_t d = 0; d < all; d++) {
        check("used", numbers(got, arena_printf(ctx->program, "used.%zu", i))[d], used[d], 1e-12);
        check("energy", numbers(got, arena_printf(ctx->program, "energy.%zu", i))[d], energy[d], 1e-12);
    }
    for (size_t e = 0; index && e < (size_t)a->experts; e++) {
        double n = 0;
        for (size_t r = 0; r < rows; r++)
            n += (index[r] == (double)e) / (double)rows;
        check("chosen", numbers(got, arena_printf(ctx->program, "chosen.%zu", i))[e], n, 1e-12);
    }
}

/* ln softmax(W norm(x)), the last norm and the head of the residual model. */
static void predict(const Seen *s, const double *x, double *log_p)
{
    const double *gain = NULL, *w = NULL;
    for (size_t i = 0; i < s->g->ext.n; i++) {
        const char *name = s->bind[i].name;
        if (s->bind[i].kind == EXT_PARAM && !strncmp(name, "head.", 5))
            *(s->bind[i].tensor->size == D ? &gain : &w) = s->bind[i].tensor->real;
    }
    double square = 0, sum = 0;
    for (int i = 0; i < D; i++)
        square += x[i] * x[i] / D;
    for (int v = 0; v < V; v++) {
        log_p[v] = 0;
        for (int i = 0; i < D; i++)
            log_p[v] += x[i] / sqrt(square + 1e-6) * gain[i] * w[i * V + v];
        sum += exp(log_p[v]);
    }
    for (int v = 0; v < V; v++)
        log_p[v] -= log(sum);
}

static void lens(Ctx *ctx, const Inside *in, const Seen *got, const Seen *is)
{
    const int64_t *label = bound(got->bind, got->g, EXT_INPUT, name_str(ctx, "labels"))->integer;
    for (size_t i = 0; i <= in->m->sublayer.n; i++) {
        double target = 0, there = 0, entropy = 0, moved = 0;
        for (size_t t = 0; t < B * T; t++) {
            double p[V], before[V];
            predict(got, numbers(is, arena_printf(ctx->program, "state.%zu", i)) + t * D, p);
            if (i)
                predict(got, numbers(is, arena_printf(ctx->program, "state.%zu", i - 1)) + t * D, before);
            if (label[t] >= 0) {
                target += p[label[t]] / (B * T);
                there += 1.0 / (B * T);
            }
            for (int v = 0; v < V; v++) {
                entropy -= exp(p[v]) * p[v] / (B * T);
                if (i)
                    moved += 0.5 * (exp(p[v]) * (p[v] - before[v]) + exp(before[v]) * (before[v] - p[v])) / (B * T);
            }
        }
        const double *l = numbers(got, arena_printf(ctx->program, "lens.%zu", i));
        check("target", l[0], target, 1e-12);
        check("share of positions with targets", l[1], there, 1e-12);
        check("entropy", l[2], entropy, 1e-12);
        if (i)
            check("moved", *numbers(got, arena_printf(ctx->program, "moved.%zu", i)), moved, 1e-12);
    }
}

/* The last state's lens is the model: its loss over the positions with a target. */
static void loss(Ctx *ctx, const Inside *in, const Seen *got)
{
    Seen s = evaluate(ctx, in->m, step_evaluate(in->m, ctx->program));
    const double *l = numbers(got, arena_printf(ctx->program, "lens.%zu", in->m->sublayer.n));
    check("the loss", -l[0] / l[1], *numbers(&s, "loss.next"), 1e-12);
}

static void model(Ctx *ctx, void *set)
{
    Unit *u = load_text(ctx, model_text, set);
    bool residual = !strcmp(*(const char **)set, "conn=residual()");
    Inside in = inside_of(u->model, ctx->program);
    Seen got = evaluate(ctx, u->model, inside_graph(&in, INSIDE_ALL, ctx->program)), is = values(ctx, &in);
    const char *first =
        *(const char **)
            set; /* layers times maps with an activation: experts and a shared one; two of a rank and the FFN */
    check("activations", (double)in.n_activations, 2 * (strstr(first, "moe") ? 2 : strstr(first, "nexus") ? 3 : 1), 0);
    inputs(ctx, &in, &got, &is);
    for (size_t i = 0; i < in.n_activations; i++)
        activation(ctx, &in, &got, &is, i);
    if (residual)
        lens(ctx, &in, &got, &is);
    loss(ctx, &in, &got);
}

/* Every variant can be measured, all numbers are finite, and where there is a lens the last state's is the model. */
static void variant(Ctx *ctx, void *arg)
{
    const Variant *v = arg;
    Unit *u = load_text(ctx, variant_text(ctx, v), v->set);
    Inside in = inside_of(u->model, ctx->program);
    Seen got = evaluate(ctx, u->model, inside_graph(&in, INSIDE_ALL, ctx->program));
    bool finite = got.g->out.n > 2 * u->model->sublayer.n;
    for (size_t i = 0; i < got.g->out.n; i++)
        for (int64_t k = 0; k < got.out[i]->size; k++)
            finite &= got.out[i]->dtype != DT_REAL || isfinite(got.out[i]->real[k]);
    check(v->name, finite, 1, 0);
    bool text = variant_text(ctx, v) == model_text;
    if (text)
        check("there is a lens", in.logits != 0, 1, 0);
    if (text && in.logits)
        loss(ctx, &in, &got);
}

#define SET(...)                                                                                                       \
    (const char *const[]) { __VA_ARGS__, NULL }

int main(void)
{
    const char *const *const models[] = {
        SET("conn=residual()"), SET("conn=mhc(n = 3, iterations = 4, collapse = predicted)"),
        SET("sub=moe(experts = 5, active = 2, hidden = 7, activation = silu, scores = softmax, normalize = true, "
            "balance = 0.01, z_loss = 0.001, shared = 1)"),
        SET("map=nexus_rank(M = 13, A = 14)")};
    eigenvalues();
    spreads();
    series();
    for (size_t i = 0; i < COUNT_OF(models); i++) {
        Ctx *ctx = ctx_new(NULL);
        if (!guarded(ctx, model, (void *)(uintptr_t)models[i]))
            failed++;
        ctx_free(ctx);
    }
    for (size_t i = 0; i < MODELS; i++) {
        Ctx *ctx = ctx_new(NULL);
        if (!guarded(ctx, variant, (void *)(uintptr_t)model_variant(i)))
            failed++;
        ctx_free(ctx);
    }
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
