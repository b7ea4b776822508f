/* unfolded.c - what a connection hands from each sublayer to later ones, against what the papers' formulas say.
 *
 * In:  models of every connection, weights at random, and wirings whose matrices are known.   Out: `N passed, N failed`.
 * 1. All sources together, each times its contribution, are what a sublayer reads: of every variant of models.h.
 * 2. Known wirings have the matrices that can be written down (Hyper-Connections, section 4.5).
 * 3. Dynamic hyper-connections of four streams and GHC (2,3): the recurrence of the unfolding (Eqs. 27 to 29; of segments
 *    that of Virtual Width Networks), written as loops here, of the coefficients that each token has.
 * When: quick.
 */
#include "support/models.h"

#include "compiler/model/unfold.h"

struct Seen;
typedef struct Case {
    const char *name;
    const char *text;
    const char *const *set;
    double amount; /* of noise on the weights */
    bool (*check)(Ctx *ctx, const struct Case *c, const struct Seen *s);
    const double *wanted;
} Case;

/* One model, evaluated. */
typedef struct Seen {
    const Model *m;
    Unfolding u;
    const Graph *g;
    Tensor **out;
    const Graph *plain; /* with explanations and factors */
    Tensor **value;
    UnfoldFactor *factor;
    size_t n_factors;
} Seen;

enum { B = 2, T = 6 };

static const Tensor *output_of(const Graph *g, Tensor **out, const char *name)
{
    for (size_t i = 0; i < g->out.n; i++)
        if (!strcmp(g->out.v[i].name, name))
            return out[i];
    return NULL;
}

/* Entry: what segment a of source j gives to segment b of row k; `which`: 0 the mean, 1 of its square, 2 of squares. */
static double entry(Ctx *ctx, const Seen *s, const char *kind, size_t k, size_t b, size_t j, size_t a, size_t which)
{
    const Tensor *t = output_of(s->g, s->out, arena_printf(ctx->program, "%s.%zu", kind, k));
    if (!t)
        return 0;
    size_t segments = (size_t)t->d[2];
    return t->real[(which * s->u.segments + s->u.source[j].first + a) * segments + b];
}

static Tensor **evaluate_at(Ctx *ctx, const Graph *g, const Model *m, const Unfolding *u, double amount)
{
    RefBinding *bind = bind_all(ctx->program, g, m, B, T, amount);
    Tensor *select = bound(bind, g, EXT_STATE, name_str(ctx, UNFOLD_SELECT));
    for (size_t i = 0; select && i < u->segments; i++)
        select->real[i * u->segments + i] = 1;
    RefRun run = {.B = B, .T = T, .seed = 1, .bind = bind, .n_bind = g->ext.n};
    Tensor **out = NEW_ARRAY(ctx->program, Tensor *, g->out.n + 1);
    ref_evaluate(g, ctx->program, &run, out);
    return out;
}

static Seen look(Ctx *ctx, const Case *c)
{
    Unit *unit = load_text(ctx, c->text, c->set);
    Seen s = {.m = unit->model, .u = unfolding_of(unit->model, ctx->program)};
    if (s.u.why_not)
        vwn_bug(ctx, "%s", s.u.why_not);
    s.g = unfold_impulses(s.m, &s.u, (int64_t)s.u.segments, ctx->program);
    s.out = evaluate_at(ctx, s.g, s.m, &s.u, c->amount);
    s.factor = unfold_factors(s.m, &s.u, &s.n_factors, ctx->program);
    size_t n = 0;
    Val *root = NEW_ARRAY(ctx->program, Val, 2 * s.u.n + s.n_factors + 2), *map;
    for (size_t i = 0; i < s.u.n; i++) {
        root[n++] = s.m->sublayer.v[i].read;
        root[n++] = s.m->sublayer.v[i].after;
    }
    if (s.u.closed)
        root[n++] = s.m->closed;
    for (size_t i = 0; i < s.n_factors; i++)
        root[n++] = s.factor[i].value;
    Graph *plain = step_values(s.m, root, n, &map, ctx->program);
    unfold_explain(plain, s.m, &s.u, map);
    for (size_t i = 0; i < s.n_factors; i++)
        ir_output(plain, name_printf(ctx, "factor.%zu", i), map[s.factor[i].value]);
    s.plain = plain;
    s.value = evaluate_at(ctx, plain, s.m, &s.u, c->amount);
    return s;
}

/* ---- 1. sources explain what is read ---- */

static bool explains(Ctx *ctx, const Case *c, const Seen *s)
{
    double worst = 0;
    for (size_t i = 0; i < s->u.rows; i++) {
        const Tensor *left = output_of(s->plain, s->value, arena_printf(ctx->program, "left.%zu", i));
        const Tensor *size = output_of(s->plain, s->value, arena_printf(ctx->program, "size.%zu", i));
        worst = fmax(worst, size->real[0] > 0 ? left->real[0] / size->real[0] : INFINITY);
    }
    bool bias = strstr(c->name, "post norm") || strstr(c->name, "(4,8)"); /* what a bias adds comes from no source */
    bool ok = bias ? worst > 1e-6 && worst < 1 : worst < 1e-24;
    printf("%-34s unexplained: %.1e%s\n", c->name, worst, ok ? "" : "  FAILED");
    return ok;
}

/* ---- 2. known matrices ---- */

/* wanted: rows of n + 1 numbers, one segment each; the last row is what the head reads. */
static bool as_written(Ctx *ctx, const Case *c, const Seen *s)
{
    double worst = 0;
    for (size_t k = 0; k < s->u.rows; k++)
        for (size_t j = 0; j <= s->u.n; j++) {
            double x = entry(ctx, s, "read", k, 0, j, 0, 0), want = c->wanted[k * (s->u.n + 1) + j];
            worst = fmax(worst, fabs(x - want) + fabs(entry(ctx, s, "read", k, 0, j, 0, 2) - want * want));
        }
    bool ok = worst < 1e-12 && s->u.rows == s->u.n + 1;
    printf("%-34s |difference| of all entries: %.1e%s\n", c->name, worst, ok ? "" : "  FAILED");
    return ok;
}

/* GHC (2,3) at its initial values: the first segments are those of a residual, the third one follows the first's outputs. */
static bool segments_as_written(Ctx *ctx, const Case *c, const Seen *s)
{
    double worst = 0;
    for (size_t k = 0; k < s->u.n; k++)
        for (size_t j = 0; j <= s->u.n; j++)
            for (size_t b = 0; b < 2; b++)
                for (size_t a = 0; a < (j ? 2u : 3u); a++)
                    worst = fmax(worst, fabs(entry(ctx, s, "read", k, b, j, a, 0) - (j <= k && a == b ? 1 : 0)));
    for (size_t b = 0; b < 3; b++)
        for (size_t j = 0; j <= s->u.n; j++)
            for (size_t a = 0; a < (j ? 2u : 3u); a++)
                worst = fmax(worst, fabs(entry(ctx, s, "state", s->u.n, b, j, a, 0) - (a == (j ? b % 2 : b) ? 1 : 0)));
    bool ok = worst < 1e-12 && s->u.segments == 3 + 2 * s->u.n;
    printf("%-34s |difference| of all entries: %.1e%s\n", c->name, worst, ok ? "" : "  FAILED");
    return ok;
}

/* ---- 3. the recurrence ---- */

/* The values of binding `name` of sublayer k's connection at a position: [rows, columns]. */
static const double *coefficient(Ctx *ctx, const Seen *s, size_t k, const char *name, size_t at, size_t numbers)
{
    const char *want = arena_printf(ctx->program, ".%s", name);
    for (size_t i = 0; i < s->n_factors; i++) {
        const char *path = s->factor[i].name;
        size_t n = strlen(path), l = strlen(want);
        if (s->factor[i].sublayer != k || n < l || strcmp(path + n - l, want))
            continue;
        const Tensor *t = output_of(s->plain, s->value, arena_printf(ctx->program, "factor.%zu", i));
        if ((size_t)t->size != (size_t)(B * T) * numbers)
            vwn_bug(ctx, "%s has %lld numbers", path, (long long)t->size);
        return t->real + at * numbers;
    }
    for (size_t i = 0; i < s->n_factors; i++)
        fprintf(stderr, "%zu %s\n", s->factor[i].sublayer, s->factor[i].name);
    vwn_bug(ctx, "sublayer %zu has no factor %s", k, name);
}

enum { MOST = 64 };

/* n streams or segments, m of which a sublayer reads: R[j][i] is what segment j of all sources gives to stream i. */
static bool recurrence(Ctx *ctx, const Case *c, const Seen *s)
{
    bool hyper = strstr(c->name, "hyper") != NULL;
    size_t m = hyper ? 1 : 2, n = hyper ? 4 : 3, all = s->u.segments;
    double want[MOST][MOST][8] = {{{0}}}, squares[MOST][MOST][8] = {{{0}}}, carried[MOST][MOST][8] = {{{0}}},
           spread = 0, worst = 0;
    for (size_t at = 0; at < B * T; at++) {
        double r[MOST][8] = {{0}};
        for (size_t i = 0; i < n; i++)
            r[hyper ? 0 : i][i] = 1;
        for (size_t k = 0; k < s->u.n; k++) {
            const double *in = coefficient(ctx, s, k, hyper ? "A_m" : "A_in", at, n * m);
            const double *through = coefficient(ctx, s, k, hyper ? "A_r" : "A_carry", at, n * n);
            const double *out = coefficient(ctx, s, k, "B", at, m * n);
            size_t own = s->u.source[k + 1].first;
            for (size_t j = 0; j < all; j++) {
                double now[8] = {0}, x[2] = {0};
                for (size_t i = 0; i < n; i++) {
                    for (size_t b = 0; b < m; b++)
                        x[b] += r[j][i] * in[i * m + b];
                    for (size_t i2 = 0; i2 < n; i2++)
                        now[i2] += r[j][i] * through[i * n + i2];
                }
                for (size_t b = 0; b < m; b++) {
                    want[k][j][b] += x[b] / (B * T);
                    squares[k][j][b] += x[b] * x[b] / (B * T);
                }
                for (size_t i = 0; i < n; i++)
                    r[j][i] = now[i] + (j >= own && j < own + m ? out[(j - own) * n + i] : 0);
                for (size_t i = 0; i < n; i++)
                    carried[k][j][i] += r[j][i] / (B * T);
            }
        }
    }
    for (size_t k = 0; k < s->u.n; k++)
        for (size_t j = 0; j <= s->u.n; j++)
            for (size_t a = 0; a < (size_t)s->u.source[j].segments; a++) {
                size_t at = s->u.source[j].first + a;
                for (size_t b = 0; b < m; b++) {
                    double x = entry(ctx, s, "read", k, b, j, a, 0), square = entry(ctx, s, "read", k, b, j, a, 1);
                    worst = fmax(worst, fabs(x - want[k][at][b]) + fabs(square - squares[k][at][b]));
                    spread = fmax(spread, square - x * x);
                }
                for (size_t i = 0; i < n; i++)
                    worst = fmax(worst, fabs(entry(ctx, s, "state", k + 1, i, j, a, 0) - carried[k][at][i]));
            }
    bool ok = worst < 1e-11 && spread > 1e-4; /* tokens differ */
    printf("%-34s |difference|: %.1e, largest variance over tokens %.3f%s\n", c->name, worst, spread,
           ok ? "" : "  FAILED");
    return ok;
}

#define SET(...)                                                                                                       \
    (const char *const[]) { __VA_ARGS__, NULL }
#define FIXED(kind) SET("conn=hyper_fixed(n = 2, matrices = wiring(kind = " kind "))")
/* Two layers of attention and FFN: four sublayers, columns embedding to fourth output, last row the head's. */
static const double ones[] = {1, 0, 0, 0, 0, 1, 1, 0, 0, 0, 1, 1, 1, 0, 0, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1};
static const double scaled[] = {1, 0, 0, 0,   0,   1,   0.5, 0, 0,   0,   1,   0.5, 0.5,
                                0, 0, 1, 0.5, 0.5, 0.5, 0,   1, 0.5, 0.5, 0.5, 0.5};
static const double sequential[] = {1, 0, 0, 0, 0, 1, 1, 0, 0, 0, 1, 1, 1, 0, 0, 1, 1, 1, 1, 0, 2, 2, 2, 2, 2};
static const double parallel[] = {2, 0, 0, 0, 0, 2, 0, 0, 0, 0, 2, 1, 1, 0, 0, 2, 1, 1, 0, 0, 2, 1, 1, 1, 1};
static const double doubled[] = {2, 0, 0, 0, 0, 2, 0, 0, 0, 0, 4, 1, 1, 0, 0, 4, 1, 1, 0, 0, 8, 2, 2, 1, 1};
static const double two_hop[] = {1, 0, 0, 0, 0, 1, 1, 0, 0, 0, 1, 0, 1, 0, 0, 1, 0, 1, 1, 0, 1, 0, 1, 0, 1};

static const Case cases[] = {
    {"residual", model_text, SET("conn=residual()"), 0.3, as_written, ones},
    {"residual, half of each", model_text, SET("conn=residual(branch_scale = 0.5)"), 0.3, as_written, scaled},
    {"hyper 4 as it begins", model_text, SET("conn=hyper(n = 4, dynamic = true, collapse = mean)"), 0, as_written,
     ones},
    {"sequential", model_text, FIXED("sequential"), 0.3, as_written, sequential},
    {"parallel", model_text, FIXED("parallel"), 0.3, as_written, parallel},
    {"the paper's parallel", model_text, FIXED("parallel_doubled"), 0.3, as_written, doubled},
    {"two-hop", model_text, FIXED("two_hop"), 0.3, as_written, two_hop},
    {"frac 1 as it begins", model_text, SET("conn=frac(m = 1, dynamic = false)"), 0, as_written, ones},
    {"GHC (2,3) as it begins", model_text, SET("conn=ghc(m = 2, n = 3, dynamic = true)", "wide=18"), 0,
     segments_as_written, NULL},
    {"hyper 4, dynamic", model_text, SET("conn=hyper(n = 4, dynamic = true)"), 0.5, recurrence, NULL},
    {"hyper 4, dynamic, without tanh", model_text, SET("conn=hyper(n = 4, dynamic = true, squash = none)"), 0.5,
     recurrence, NULL},
    {"GHC (2,3), dynamic", model_text, SET("conn=ghc(m = 2, n = 3, dynamic = true)", "wide=18"), 0.5, recurrence, NULL},
};

typedef struct Trial {
    Case c;
    bool ok;
} Trial;

static void try(Ctx *ctx, void *arg)
{
    Trial *t = arg;
    Case c = t->c;
    if (!c.text)
        c.text = variant_text(ctx, &(Variant){c.name, {NULL}});
    Seen s = look(ctx, &c);
    t->ok = c.check(ctx, &c, &s);
}

static bool run_case(Case c)
{
    Ctx *ctx = ctx_new(NULL);
    Trial t = {c, false};
    bool ok = guarded(ctx, try, &t) && t.ok;
    ctx_free(ctx);
    return ok;
}

int main(void)
{
    int passed = 0, failed = 0;
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        run_case(cases[i]) ? passed++ : failed++;
    for (size_t i = 0; i < MODELS; i++) {
        const Variant *v = model_variant(i);
        run_case((Case){v->name, NULL, v->set, 0.3, explains, NULL}) ? passed++ : failed++;
    }
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
