/* steps.c - hyper-, frac-, manifold-constrained, two-stream and depth-weighted connections against their equations, in C.
 *
 * In:  a stack of sublayers f(x) = tanh(2 x + 1) between connections, every weight at random.
 * Out: `N passed, N failed`. What the head reads agrees to 1e-13 with loops over streams and coordinates
 *      (arXiv 2409.19606 Eqs. 10 to 13; 2503.14125 Algorithm 1; 2512.24880 section 4; 2304.14802; 2402.02622 Eq. 2), for every knob.
 * When: quick.
 */
#include "support/models.h"

enum { D = 6, LAYERS = 3, MOST = 4 };

static const char text[] =
    "edition = 1\n"
    "import \"std/transformer\"\n"
    "import \"std/connections\"\n"
    "let conn = residual()\n"
    "block head_probe()(x: [B, T, E]) -> [B, T, E] { output.logits = x, loss.probe = mean(x * x), return x }\n"
    "block bend()(x: [.., D]) -> [.., D] { return tanh(2 * x + 1) }\n"
    "model small {\n"
    "  context = 8, width = 6, mask = causal, connection = conn, pre_norm = none, init = normal(std = 1)\n"
    "  embed tokens { vocab = 17 }\n"
    "  for layer in 1..3 { bend {} }\n"
    "  head probe { }\n"
    "}\n";

typedef enum Kind { HYPER, FRAC, MHC, DUAL, WEIGHTED } Kind;
typedef enum Norm { NO_NORM, CENTRED, RMS, RMS_GAIN } Norm;
typedef enum Collapse { SUM, MEAN, LEARNED, PREDICTED } Collapse;
typedef enum Start { EXP, SOFTMAX, SIGMOID } Start;

static const struct Case {
    const char *conn;
    Kind kind;
    int n; /* streams or fractions; sublayers of a block that is weighted */
    Norm norm;
    bool dynamic, tanh, factor;
    Collapse collapse;
    double replicate[MOST]; /* zeros: ones */
    int read[MOST];         /* zeros: in turn */
    Start start;
    int iterations;
    double eps, post;
    bool transposed;
} cases[] = {
    {"hyper(n = 3, dynamic = true)", HYPER, 3, CENTRED, .dynamic = true, .tanh = true, .factor = true},
    {"hyper(n = 1, dynamic = true, collapse = mean)", HYPER, 1, CENTRED, .dynamic = true, .tanh = true, .factor = true,
     .collapse = MEAN},
    {"hyper(n = 4, dynamic = false, collapse = learned)", HYPER, 4, NO_NORM, .collapse = LEARNED},
    {"hyper(n = 3, dynamic = false, replicate = [1, 2, -1])", HYPER, 3, NO_NORM, .replicate = {1, 2, -1}},
    {"hyper(n = 2, dynamic = true, squash = none, norm = rms_norm(eps = 1e-5, gain = false), replicate = [1, -0.5])",
     HYPER, 2, RMS, .dynamic = true, .factor = true, .replicate = {1, -0.5}},
    {"hyper(n = 3, dynamic = true, factor = none, norm = rms_norm(eps = 1e-5), read = [2, 2, 3])", HYPER, 3, RMS_GAIN,
     .dynamic = true, .tanh = true, .read = {2, 2, 3}},
    {"hyper(n = 2, dynamic = true, norm = none, learn_B = false, learn_WC = false)", HYPER, 2, NO_NORM, .dynamic = true,
     .tanh = true, .factor = true},
    {"hyper(n = 2, dynamic = true, norm = none, learn_WC = false)", HYPER, 2, NO_NORM, .dynamic = true, .tanh = true,
     .factor = true},
    {"frac(m = 3, dynamic = true, norm = rms_norm(eps = 1e-5))", FRAC, 3, RMS_GAIN, .dynamic = true, .tanh = true,
     .factor = true},
    {"frac(m = 2, dynamic = true, norm = none, squash = none, factor = none)", FRAC, 2, NO_NORM, .dynamic = true},
    {"frac(m = 3, dynamic = false)", FRAC, 3, .norm = NO_NORM},
    {"mhc(n = 3, norm = rms_norm(eps = 1e-5, gain = false))", MHC, 3, RMS, .iterations = 20, .post = 2},
    {"mhc(n = 2, norm = rms_norm(eps = 1e-5, gain = false), start = softmax, eps = 1e-2, transposed = true, "
     "iterations = 3, post = 1, collapse = predicted)",
     MHC, 2, RMS, .collapse = PREDICTED, .start = SOFTMAX, .iterations = 3, .eps = 1e-2, .post = 1, .transposed = true},
    {"mhc(n = 4, norm = rms_norm(eps = 1e-5), start = sigmoid, iterations = 2, collapse = mean, "
     "replicate = [1, 2, 3, 4])",
     MHC, 4, RMS_GAIN, .collapse = MEAN, .start = SIGMOID, .iterations = 2, .post = 2, .replicate = {1, 2, 3, 4}},
    {"mhc(n = 1, norm = rms_norm(eps = 1e-5, gain = false), collapse = predicted)", MHC, 1, RMS, .collapse = PREDICTED,
     .iterations = 20, .post = 2},
    {"mhc(n = 1, norm = rms_norm(eps = 1e-5), start = sigmoid, eps = 1e-2, iterations = 0, transposed = true, post = "
     "1)",
     MHC, 1, RMS_GAIN, .start = SIGMOID, .eps = 1e-2, .post = 1, .transposed = true},
    {"residual_dual(norm = rms_norm(eps = 1e-5))", DUAL, 2, .norm = RMS_GAIN},
    {"depth_weighted(sublayers = 1)", WEIGHTED, 1, .norm = NO_NORM},
    {"depth_weighted()", WEIGHTED, 2, .norm = NO_NORM},
    {"depth_weighted(sublayers = 3)", WEIGHTED, 3, .norm = NO_NORM},
};

typedef struct Stack {
    Ctx *ctx;
    const struct Case *c;
    const Graph *g;
    RefBinding *bind;
    char scope[64]; /* of the connection's weights */
    double H[MOST][D];
} Stack;

static const double *weights(const Stack *m, const char *name)
{
    char path[128];
    snprintf(path, sizeof path, "%s%s", m->scope, name);
    Tensor *t = bound(m->bind, m->g, EXT_PARAM, name_str(m->ctx, path));
    if (!t)
        vwn_bug(m->ctx, "no weight %s", path);
    return t->real;
}

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

/* out = the case's norm of x, `size` coordinates. */
static void normalise(const Stack *m, const double *x, int size, double *out)
{
    double mean = 0, square = 0;
    const double *gain = m->c->norm == RMS_GAIN ? weights(m, "norm.g") : NULL;
    for (int i = 0; i < size; i++)
        mean += m->c->norm == CENTRED ? x[i] / size : 0;
    for (int i = 0; i < size; i++)
        square += (x[i] - mean) * (x[i] - mean) / size;
    for (int i = 0; i < size; i++)
        out[i] = m->c->norm == NO_NORM ? x[i] : (x[i] - mean) / sqrt(square + 1e-5) * (gain ? gain[i] : 1);
}

/* Entry (i, j) of `fixed` plus what row i of the state adds through W: n_out columns, `size` coordinates. */
static double coefficient(const Stack *m, const double *z, int size, const char *fixed, const char *W,
                          const char *scale, int i, int j, int n_out)
{
    double u = 0;
    if (!m->c->dynamic)
        return weights(m, fixed)[i * n_out + j];
    for (int d = 0; d < size; d++)
        u += z[d] * weights(m, W)[d * n_out + j];
    u = m->c->tanh ? tanh(u) : u;
    return weights(m, fixed)[i * n_out + j] + (m->c->factor ? weights(m, scale)[0] : 1) * u;
}

static void hyper_step(Stack *m, double to[MOST][D])
{
    int n = m->c->n;
    double h[D] = {0}, z[MOST][D];
    memset(to, 0, sizeof m->H);
    for (int i = 0; i < n; i++) {
        normalise(m, m->H[i], D, z[i]);
        double a = coefficient(m, z[i], D, "A_m", "W_m", "s_a", i, 0, 1);
        for (int d = 0; d < D; d++)
            h[d] += a * m->H[i][d];
        for (int j = 0; j < n; j++) {
            double c = coefficient(m, z[i], D, "A_r", "W_r", "s_a", i, j, n);
            for (int d = 0; d < D; d++)
                to[j][d] += c * m->H[i][d];
        }
    }
    for (int j = 0; j < n; j++) {
        double b = coefficient(m, z[j], D, "B", "W_b", "s_b", j, 0, 1);
        for (int d = 0; d < D; d++)
            to[j][d] += b * tanh(2 * h[d] + 1);
    }
}

/* Fractions lie one after the other in rows of w = D / m coordinates. */
static void frac_step(Stack *m, double to[MOST][D])
{
    int n = m->c->n, w = D / n;
    double h[MOST][D] = {{0}}, z[MOST][D];
    memset(to, 0, sizeof m->H);
    for (int i = 0; i < n; i++) {
        normalise(m, m->H[i], w, z[i]);
        for (int j = 0; j < n; j++) {
            double y = coefficient(m, z[i], w, "Y_s", "W_y", "s_a", i, j, n);
            double a = coefficient(m, z[i], w, "A_s", "W_a", "s_a", i, j, n);
            for (int d = 0; d < w; d++) {
                h[j][d] += y * m->H[i][d];
                to[j][d] += a * m->H[i][d];
            }
        }
    }
    for (int j = 0; j < n; j++)
        for (int d = 0; d < w; d++)
            to[j][d] += coefficient(m, z[j], w, "b_s", "W_b", "s_b", j, 0, 1) * tanh(2 * h[j][d] + 1);
}

static double started(Start start, const double *u, int n, int j)
{
    double sum = 0;
    for (int k = 0; k < n; k++)
        sum += exp(u[k]);
    return start == EXP ? exp(u[j]) : start == SOFTMAX ? exp(u[j]) / sum : sigmoid(u[j]);
}

/* Divides rows (or columns) of P by their sums plus eps. */
static void divide(double P[MOST][MOST], int n, bool columns, double eps)
{
    for (int i = 0; i < n; i++) {
        double sum = 0;
        for (int j = 0; j < n; j++)
            sum += columns ? P[j][i] : P[i][j];
        for (int j = 0; j < n; j++)
            *(columns ? &P[j][i] : &P[i][j]) /= sum + eps;
    }
}

/* u = norm(flat H) W, n_out columns. */
static void predict(const Stack *m, int n_out, double *u)
{
    double x[MOST * D], z[MOST * D];
    for (int i = 0; i < m->c->n * D; i++)
        x[i] = m->H[i / D][i % D];
    normalise(m, x, m->c->n * D, z);
    for (int k = 0; k < n_out; k++) {
        u[k] = 0;
        for (int i = 0; i < m->c->n * D; i++)
            u[k] += z[i] * weights(m, "W")[i * n_out + k];
    }
}

static void mhc_step(Stack *m, double to[MOST][D])
{
    const struct Case *c = m->c;
    int n = c->n;
    double u[2 * MOST + MOST * MOST], v[MOST], P[MOST][MOST], h[D] = {0};
    predict(m, 2 * n + n * n, u);
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++)
            v[j] = weights(m, "carry")[i * n + j] + weights(m, "s_c")[0] * u[2 * n + i * n + j];
        for (int j = 0; j < n; j++)
            P[i][j] = started(c->start, v, n, j) + c->eps;
    }
    for (int k = 0; k < c->iterations; k++) {
        if (k || c->start != SOFTMAX)
            divide(P, n, false, c->eps);
        divide(P, n, true, c->eps);
    }
    for (int i = 0; i < n; i++) {
        double r = sigmoid(weights(m, "read")[i] + weights(m, "s_r")[0] * u[i]) + c->eps;
        for (int d = 0; d < D; d++)
            h[d] += r * m->H[i][d];
    }
    for (int j = 0; j < n; j++) {
        double w = c->post * sigmoid(weights(m, "write")[j] + weights(m, "s_w")[0] * u[n + j]);
        for (int d = 0; d < D; d++) {
            to[j][d] = w * tanh(2 * h[d] + 1);
            for (int i = 0; i < n; i++)
                to[j][d] += (c->transposed ? P[j][i] : P[i][j]) * m->H[i][d];
        }
    }
}

static void dual_step(Stack *m, double to[MOST][D])
{
    double sum[D];
    for (int d = 0; d < D; d++) {
        double y = tanh(2 * m->H[0][d] + 1);
        sum[d] = m->H[0][d] + y;
        to[1][d] = m->H[1][d] + y;
    }
    normalise(m, sum, D, to[0]);
}

/* What blocks have left, the embedding first, and the sum of it that the next sublayer reads. */
static void weighted(Stack *m, const double *e, double *out)
{
    double left[LAYERS + 1][D], x[D];
    int n = 1;
    memcpy(left[0], e, sizeof left[0]);
    memcpy(x, e, sizeof x);
    for (int k = 1; k <= LAYERS; k++) {
        for (int d = 0; d < D; d++)
            x[d] += tanh(2 * x[d] + 1);
        if (k % m->c->n)
            continue;
        snprintf(m->scope, sizeof m->scope, "layer[%d].bend.connection.", k);
        memcpy(left[n++], x, sizeof x);
        memset(x, 0, sizeof x);
        for (int j = 0; j < n; j++)
            for (int d = 0; d < D; d++)
                x[d] += weights(m, "weight")[j] * left[j][d];
    }
    memcpy(out, x, sizeof x);
}

static void close_streams(Stack *m, double *out)
{
    const struct Case *c = m->c;
    double u[MOST] = {0};
    snprintf(m->scope, sizeof m->scope, "head.probe.connection.close.%s", c->collapse == LEARNED ? "closed." : "");
    if (c->collapse == PREDICTED)
        predict(m, c->n, u);
    if (c->kind == DUAL) {
        normalise(m, m->H[1], D, out);
        for (int d = 0; d < D; d++)
            out[d] += m->H[0][d];
        return;
    }
    for (int d = 0; d < D; d++)
        out[d] = c->kind == FRAC ? m->H[d / (D / c->n)][d % (D / c->n)] : 0;
    for (int i = 0; c->kind != FRAC && i < c->n; i++) {
        double w = c->collapse == MEAN ? 1.0 / c->n : c->collapse == LEARNED ? weights(m, "weight")[i] : 1;
        if (c->collapse == PREDICTED)
            w = sigmoid(weights(m, "read")[i] + weights(m, "s_r")[0] * u[i]) + c->eps;
        for (int d = 0; d < D; d++)
            out[d] += w * m->H[i][d];
    }
}

static void (*const steps[])(Stack *m, double to[MOST][D]) = {hyper_step, frac_step, mhc_step, dual_step};

/* What the head reads for an embedding. */
static void by_hand(Stack *m, const double *e, double *out)
{
    const struct Case *c = m->c;
    bool all = c->replicate[0] == 0;
    if (c->kind == WEIGHTED) {
        weighted(m, e, out);
        return;
    }
    memset(m->H, 0, sizeof m->H);
    for (int i = 0; i < c->n; i++)
        for (int d = 0; d < (c->kind == FRAC ? D / c->n : D); d++)
            m->H[i][d] = c->kind == FRAC ? e[i * (D / c->n) + d] : (all ? 1 : c->replicate[i]) * e[d];
    for (int k = 1; k <= LAYERS; k++) {
        double to[MOST][D];
        snprintf(m->scope, sizeof m->scope, "layer[%d].bend.connection.", k);
        steps[c->kind](m, to);
        memcpy(m->H, to, sizeof to);
    }
    close_streams(m, out);
}

/* out = sum_j (R[j] . a) z[j] over the first k outputs. */
static void gather(double R[][MOST], double z[][D], int k, const double *a, int n, double *out)
{
    memset(out, 0, D * sizeof *out);
    for (int j = 0; j < k; j++)
        for (int i = 0; i < n; i++)
            for (int d = 0; d < D; d++)
                out[d] += R[j][i] * a[i] * z[j][d];
}

/* The same for static matrices that are closed by the sum, unfolded (arXiv 2409.19606 Eqs. 27 to 29): output j
 * (0: the embedding) is in stream i with the weight R[j][i]. */
static void unfolded(Stack *m, const double *e, double *out)
{
    static const double ones[MOST] = {1, 1, 1, 1};
    int n = m->c->n;
    double R[LAYERS + 1][MOST], z[LAYERS + 1][D], h[D];
    memcpy(R[0], m->c->replicate[0] == 0 ? ones : m->c->replicate, sizeof R[0]);
    memcpy(z[0], e, sizeof z[0]);
    for (int k = 1; k <= LAYERS; k++) {
        snprintf(m->scope, sizeof m->scope, "layer[%d].bend.connection.", k);
        const double *A_r = weights(m, "A_r"), *B = weights(m, "B");
        gather(R, z, k, weights(m, "A_m"), n, h);
        for (int d = 0; d < D; d++)
            z[k][d] = tanh(2 * h[d] + 1);
        for (int j = 0; j < k; j++) {
            double had[MOST];
            memcpy(had, R[j], sizeof had);
            for (int i = 0; i < n; i++) {
                R[j][i] = 0;
                for (int from = 0; from < n; from++)
                    R[j][i] += had[from] * A_r[from * n + i];
            }
        }
        memcpy(R[k], B, (size_t)n * sizeof *B);
    }
    gather(R, z, LAYERS + 1, ones, n, out);
}

/* The matrix A_m as it is born says which stream a sublayer begins with. */
static bool reads_in_turn(Ctx *ctx, const struct Case *c, const Stack *m)
{
    RefBinding *born = bind_all(
        ctx->program, m->g,
        load_text(ctx, text, (const char *[]){arena_printf(ctx->program, "conn=%s", c->conn), NULL})->model, 1, 1, 0);
    int size = 0;
    while (size < MOST && c->read[size])
        size++;
    for (int k = 0; k < LAYERS && c->kind == HYPER; k++) {
        Name path = name_printf(ctx, "layer[%d].bend.connection.A_m", k + 1);
        const Tensor *t = bound(born, m->g, EXT_PARAM, path);
        int active = size ? c->read[k % size] - 1 : k % c->n;
        for (int i = 0; i < c->n; i++)
            if (t->real[i] != (i == active))
                return false;
    }
    return true;
}

/* `learn_B` and `learn_WC` freeze their side, and nothing else does. */
static bool freezes(const struct Case *c, const Model *model)
{
    static const char *const write[] = {".B", ".W_b", ".s_b"}, *const read[] = {".A_m", ".A_r", ".W_m", ".W_r", ".s_a"};
    bool B = strstr(c->conn, "learn_B = false"), WC = strstr(c->conn, "learn_WC = false");
    for (size_t i = 0; i < model->param.n; i++) {
        const Param *p = &model->param.v[i];
        const char *name = strrchr(p->path, '.');
        bool want = false;
        for (size_t k = 0; k < COUNT_OF(write); k++)
            want |= B && !strcmp(name, write[k]);
        for (size_t k = 0; k < COUNT_OF(read); k++)
            want |= WC && !strcmp(name, read[k]);
        if (p->frozen != want)
            return false;
    }
    return true;
}

typedef struct Job {
    const struct Case *c;
    double worst, size;
    bool born; /* reads in turn and freezes what it should */
} Job;

static void compare(Ctx *ctx, void *arg)
{
    Job *job = arg;
    const char *set[] = {arena_printf(ctx->program, "conn=%s", job->c->conn), NULL};
    Unit *u = load_text(ctx, text, set);
    Graph *g = step_predict(u->model, ctx->program);
    RefBinding *bind = bind_all(ctx->program, g, u->model, 2, 8, 0.4);
    RefRun run = {.B = 2, .T = 8, .seed = 1, .bind = bind, .n_bind = g->ext.n};
    Tensor **out = NEW_ARRAY(ctx->program, Tensor *, g->out.n + 1);
    ref_evaluate(g, ctx->program, &run, out);
    Stack m = {.ctx = ctx, .c = job->c, .g = g, .bind = bind};
    const Tensor *W = bound(bind, g, EXT_PARAM, name_str(ctx, "embed.tokens.W"));
    const Tensor *tokens = bound(bind, g, EXT_INPUT, name_str(ctx, "tokens"));
    job->worst = 0;
    for (int64_t t = 0; t < tokens->size; t++) {
        double want[D], other[D];
        const double *e = &W->real[tokens->integer[t] * D];
        by_hand(&m, e, want);
        memcpy(other, want, sizeof other);
        if (m.c->kind == HYPER && !m.c->dynamic && m.c->collapse == SUM)
            unfolded(&m, e, other);
        for (int d = 0; d < D; d++) {
            double error = fabs(out[0]->real[t * D + d] - want[d]);
            error = fmax(error, fabs(out[0]->real[t * D + d] - other[d]));
            job->worst = isnan(error) ? INFINITY : fmax(job->worst, error);
            job->size = fmax(job->size, fabs(want[d]));
        }
    }
    job->born = reads_in_turn(ctx, job->c, &m) && freezes(job->c, u->model);
}

int main(void)
{
    int passed = 0, failed = 0;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        Ctx *ctx = ctx_new(NULL);
        Job job = {.c = &cases[i], .worst = INFINITY};
        bool ok = guarded(ctx, compare, &job) && job.worst < 1e-13 * job.size && job.size > 0.1 && job.born;
        printf("max |difference| %.1e of %6.2f  %s%s\n", job.worst, job.size, cases[i].conn, ok ? "" : "  FAILED");
        ok ? passed++ : failed++;
        ctx_free(ctx);
    }
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
