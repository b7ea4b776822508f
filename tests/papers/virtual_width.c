/* virtual_width.c - Virtual Width Networks and multi-token heads: counts, work, and what they compute.
 *
 * In:  the library's ghc, head_mtp and embed_ngrams with random weights.   Out: `N passed, N failed`.
 * Each is compared with a plain loop written from the definition: the unrolled state of section 3.2, the modules of
 * DeepSeek-V3 and their mixing by segments, the hashed n-grams of over-encoding.
 */
#include "support/gradients.h"

#include "compiler/model/cost.h"

typedef struct Tally {
    int passed, failed;
} Tally;

static void verdict(Tally *t, bool ok, const char *name, double value)
{
    printf("%-44s %.3g%s\n", name, value, ok ? "" : "  FAILED");
    ok ? t->passed++ : t->failed++;
}

static bool starts(const char *s, const char *with) { return !strncmp(s, with, strlen(with)); }

/* ---- counts and work of one module ---- */

static const char counted[] =
    "edition = 1\n"
    "import \"std/transformer\"\n"
    "import \"std/connections\"\n"
    "let D = 2048\nlet m = 2\nlet n = 3\nlet dynamic = true\n"
    "model counted {\n"
    "  context = 8, width = D, mask = causal, pre_norm = rms_norm(eps = 1e-6)\n"
    "  init = normal(std = 0.02), out_init = normal(std = 0.02)\n"
    "  connection = ghc(m = m, n = n, dynamic = dynamic, reduce = group_reduce(size = D / m, out = D))\n"
    "  embed tokens { vocab = 64, width = D * n / m }\n"
    "  for layer in 1..2 {\n"
    "    attention { heads = 16 }\n"
    "    ffn { hidden = 16, activation = gelu }\n"
    "  }\n"
    "  head lm { norm = rms_norm(eps = 1e-6) }\n"
    "}\n";

/* The paper's formulas in D = m w, and what it prints where it does. Products of a module: the prediction 2 (2m + n) n w,
 * reading and carrying 2 (m + n) n w, writing 2 n m w. A norm is 4 n w operations and a few for every segment. Of (2,3) the
 * paper prints 42 D = 36 D of products + 6 D of the norm, and 6 D to write: here 42 D are all the products. */
static const struct Rate {
    int m, n;
    int64_t at_2048, fixed; /* weights of a module at D = 2048; those of a static one; 0: not printed */
    double products,
        block; /* FLOPs by D of a module's products; of a block of two modules with norms; 0: not printed */
} rates[] = {{2, 3, 8234, 21, 42, 96},
             {4, 8, 0, 128, 0, 0},
             {8, 16, 0, 512, 0, 0},
             {8, 32, 0, 1536, 0, 0},
             {8, 64, 30976, 5120, 2560, 5184},
             {1, 1, 0, 3, 0, 0},
             {1, 4, 0, 24, 0, 0},
             {4, 4, 0, 48, 0, 0},
             {16, 17, 0, 833, 0, 0}};

typedef struct Counted {
    const struct Rate *rate;
    int D;
    bool dynamic;
    int64_t weights;
    double products, norm;
} Counted;

static void count(Ctx *ctx, void *arg)
{
    Counted *c = arg;
    char set[4][40];
    snprintf(set[0], 40, "D=%d", c->D);
    snprintf(set[1], 40, "m=%d", c->rate->m);
    snprintf(set[2], 40, "n=%d", c->rate->n);
    snprintf(set[3], 40, "dynamic=%s", c->dynamic ? "true" : "false");
    Unit *u = load_text(ctx, counted, (const char *const[]){set[0], set[1], set[2], set[3], NULL});
    for (size_t i = 0; i < u->model->param.n; i++)
        c->weights += starts(u->model->param.v[i].path, "layer[2].ffn.connection.") ? u->model->param.v[i].elements : 0;
    CostGroups groups = model_cost_groups(u->model, 0, ctx->program);
    for (size_t i = 0; i < groups.n; i++) {
        if (starts(groups.v[i].path, "layer[*].ffn.connection"))
            c->products += groups.v[i].work.products / 2;
        if (!strcmp(groups.v[i].path, "layer[*].ffn.connection.norm"))
            c->norm += groups.v[i].work.elementwise / 2;
    }
}

static void counts(Tally *t)
{
    for (size_t i = 0; i < COUNT_OF(rates); i++)
        for (int dynamic = 0; dynamic < 2; dynamic++)
            for (int D = 1024; D <= 2048; D += 1024) {
                const struct Rate *r = &rates[i];
                Ctx *ctx = ctx_new(NULL);
                Counted c = {.rate = r, .D = D, .dynamic = dynamic};
                double m = r->m, n = r->n, w = D / m;
                int64_t fixed = (int64_t)(n * (2 * m + n)),
                        want = dynamic ? (int64_t)(2 * n * (2 * m + n) + w * (2 * m + n) + w) : fixed;
                double products = 2 * (m + n) * n * w + 2 * n * D + dynamic * 2 * (2 * m + n) * n * w;
                bool ok = guarded(ctx, count, &c) && c.weights == want && c.products == products;
                ok &= r->fixed == fixed && (!dynamic || D != 2048 || !r->at_2048 || c.weights == r->at_2048);
                ok &= !dynamic || !r->products || c.products == r->products * D;
                ok &= !dynamic || (c.norm >= 4 * n * w && c.norm <= 4 * n * w + 4 * n);
                ok &= !dynamic || !r->block || 2 * (c.products + 4 * n * w) == r->block * D;
                char name[80];
                snprintf(name, sizeof name, "(%d,%d) %s, D = %d: %lld weights", r->m, r->n,
                         dynamic ? "dynamic" : "static", D, (long long)c.weights);
                verdict(t, ok, name, c.products / D);
                ctx_free(ctx);
            }
}

/* ---- running a model ---- */

typedef struct Trial { /* a text at some sizes; every graph gets the same weights and tokens */
    Ctx *ctx;
    Unit *unit;
    int64_t B, T;
    double noise;
    double host[HV_COUNT];
    RefBinding *bind;
    const Graph *g;
    Tensor **out;
} Trial;

static void trial_bind(Trial *t, const Graph *g)
{
    t->g = g;
    t->bind = bind_all(t->ctx->program, g, t->unit->model, t->B, t->T, t->noise);
}

static void trial_run(Trial *t)
{
    RefRun run = {.B = t->B, .T = t->T, .seed = 1, .bind = t->bind, .n_bind = t->g->ext.n, .host_vars = t->host};
    t->out = NEW_ARRAY(t->ctx->program, Tensor *, t->g->out.n + 1);
    ref_evaluate(t->g, t->ctx->program, &run, t->out);
}

static const double *result(const Trial *t, const char *name)
{
    for (size_t i = 0; i < t->g->out.n; i++)
        if (!strcmp(t->g->out.v[i].name, name))
            return t->out[i]->real;
    vwn_bug(t->ctx, "no result %s", name);
}

static const double *weight(const Trial *t, const char *fmt, const char *of)
{
    Tensor *w = bound(t->bind, t->g, EXT_PARAM, name_printf(t->ctx, fmt, of));
    if (!w)
        vwn_bug(t->ctx, "no weight %s of %s", fmt, of);
    return w->real;
}

/* ---- the state, unrolled over depth ---- */

enum { LAYERS = 4, WIDTH = 8 };

/* Sublayers that return a constant, so that the outputs z_l are known; the head shows the state. */
static const char constant[] = "edition = 1\n"
                               "import \"std/transformer\"\n"
                               "import \"std/connections\"\n"
                               "let m = 2\nlet n = 3\n"
                               "block say()(x: [.., D]) -> [.., D] {\n"
                               "  param z : [D] = normal(std = 1)\n"
                               "  return 0 * x + z\n"
                               "}\n"
                               "block head_probe()(x: [B, T, E]) -> [B, T, E] {\n"
                               "  output.logits = x\n"
                               "  loss.probe    = mean(x * x)\n"
                               "  return x\n"
                               "}\n"
                               "model small {\n"
                               "  context = 8, width = 8, pre_norm = none, init = normal(std = 1), connection = ghc(m "
                               "= m, n = n, dynamic = false)\n"
                               "  embed tokens { vocab = 17, width = 8 * n / m }\n"
                               "  for layer in 1..4 {\n"
                               "    say\n"
                               "  }\n"
                               "  head probe {}\n"
                               "}\n";

/* y = x A^T for A [n, n] on the rows of x [n, w]: what one more layer does to a term. */
static void carry(const double *A, int n, int w, double *x)
{
    double y[64];
    for (int j = 0; j < n; j++)
        for (int c = 0; c < w; c++) {
            y[j * w + c] = 0;
            for (int i = 0; i < n; i++)
                y[j * w + c] += A[i * n + j] * x[i * w + c];
        }
    memcpy(x, y, (size_t)(n * w) * sizeof *y);
}

typedef struct Unrolled {
    int m, n;
    double worst;
} Unrolled;

/* H^L = sum_l (Ac_L^T ... Ac_l+1^T) B_l^T z_l + (Ac_L^T ... Ac_1^T) H^0: every term by itself, the latest layer last. */
static void unroll(Ctx *ctx, void *arg)
{
    Unrolled *u = arg;
    char set[2][20];
    snprintf(set[0], 20, "m=%d", u->m);
    snprintf(set[1], 20, "n=%d", u->n);
    Trial t = {.ctx = ctx, .B = 1, .T = 2, .noise = 0.7};
    t.unit = load_text(ctx, constant, (const char *const[]){set[0], set[1], NULL});
    trial_bind(&t, step_predict(t.unit->model, ctx->program));
    trial_run(&t);
    const int64_t *token = bound(t.bind, t.g, EXT_INPUT, name_str(ctx, "tokens"))->integer;
    int w = WIDTH / u->m, size = u->n * w;
    for (int p = 0; p < 2; p++) {
        double sum[64], term[64];
        memset(sum, 0, sizeof sum);
        for (int from = 0; from <= LAYERS; from++) {
            char path[40];
            snprintf(path, sizeof path, "layer[%d].say", from);
            if (from == 0)
                memcpy(term, weight(&t, "embed.%s", "tokens.W") + token[p] * size, (size_t)size * sizeof *term);
            for (int j = 0; from && j < size; j++) {
                term[j] = 0;
                for (int i = 0; i < u->m; i++)
                    term[j] +=
                        weight(&t, "%s.connection.B", path)[i * u->n + j / w] * weight(&t, "%s.z", path)[i * w + j % w];
            }
            for (int l = from + 1; l <= LAYERS; l++) {
                snprintf(path, sizeof path, "layer[%d].say", l);
                carry(weight(&t, "%s.connection.A_carry", path), u->n, w, term);
            }
            for (int j = 0; j < size; j++)
                sum[j] += term[j];
        }
        for (int j = 0; j < size; j++)
            u->worst = fmax(u->worst, fabs(sum[j] - result(&t, "logits")[p * size + j]));
    }
}

static void unrolled(Tally *t)
{
    static const int pair[][2] = {{1, 1}, {2, 3}, {4, 8}, {1, 4}, {8, 8}};
    for (size_t i = 0; i < COUNT_OF(pair); i++) {
        Ctx *ctx = ctx_new(NULL);
        Unrolled u = {pair[i][0], pair[i][1], 0};
        char name[40];
        snprintf(name, sizeof name, "(%d,%d) unrolled over depth", u.m, u.n);
        bool ok = guarded(ctx, unroll, &u) && u.worst < 1e-12;
        verdict(t, ok, name, u.worst);
        ctx_free(ctx);
    }
}

/* ---- hashed n-grams ---- */

enum { ORDER = 5, TABLES = 2, ROWS = 37, ROW = 3, VOCAB = 100263, EMBEDDED = 4 };

static const char grams[] =
    "edition = 1\n"
    "import \"std/transformer\"\n"
    "import \"std/connections\"\n"
    "block head_probe()(x: [B, T, E]) -> [B, T, E] {\n"
    "  output.logits = x\n"
    "  loss.probe    = mean(x * x)\n"
    "  return x\n"
    "}\n"
    "model grams {\n"
    "  context = 8, width = 4, init = normal(std = 0.5), connection = residual(), allow = [vocab_not_padded]\n"
    "  embed tokens { vocab = 100_263 }\n"
    "  embed ngrams { vocab = 100_263, order = 5, rows = 37, tables = 2, width = 3, combine = mean }\n"
    "  head probe {}\n"
    "}\n";

typedef struct Grams {
    bool mean;
    double worst;
} Grams;

static void ngrams(Ctx *ctx, void *arg)
{
    Grams *r = arg;
    Trial t = {.ctx = ctx, .B = 2, .T = 8};
    t.unit = load_text(ctx, grams, (const char *const[]){r->mean ? NULL : "embed.ngrams.combine=sum", NULL});
    trial_bind(&t, step_predict(t.unit->model, ctx->program));
    Tensor *token = bound(t.bind, t.g, EXT_INPUT, name_str(ctx, "tokens"));
    uint64_t state = 3;
    for (int64_t i = 0; i < token->size; i++)
        token->integer[i] = i == 3 ? VOCAB - 1 : (int64_t)((noise(&state) + 1) / 2 * VOCAB);
    trial_run(&t);
    for (int64_t i = 0; i < token->size; i++) {
        double y[EMBEDDED];
        memcpy(y, weight(&t, "embed.%s", "tokens.W") + token->integer[i] * EMBEDDED, sizeof y);
        for (int N = 2; N <= ORDER; N++)
            for (int k = 1; k <= TABLES; k++) {
                int64_t M = ROWS + 2 * ((N - 2) * TABLES + k - 1) + 1, id = 0;
                for (int64_t j = N - 1; j >= 0; j--) /* Horner's rule, the oldest token first */
                    id = (id * VOCAB + (i % 8 >= j ? token->integer[i - j] : 0)) % M;
                char path[60];
                snprintf(path, sizeof path, "embed.ngrams.N[%d].k[%d]", N, k);
                const double *row = weight(&t, "%s.W", path) + id * ROW, *proj = weight(&t, "%s.proj.W", path);
                for (int c = 0; c < ROW; c++)
                    for (int d = 0; d < EMBEDDED; d++)
                        y[d] += row[c] * proj[c * EMBEDDED + d];
            }
        for (int d = 0; d < EMBEDDED; d++)
            r->worst = fmax(r->worst, fabs(y[d] / (r->mean ? 1 + (ORDER - 1) * TABLES : 1) -
                                           result(&t, "logits")[i * EMBEDDED + d]));
    }
}

/* ---- multi-token heads ---- */

enum { CHAIN = 4, LEN = 7, SEQS = 2, CLASSES = 17 };

static const char chain[] =
    "edition = 1\n"
    "import \"std/transformer\"\n"
    "import \"std/connections\"\n"
    "let D = 8\nlet wide = D\nlet conn = residual()\nlet depths = 4\nlet grams = false\n"
    "let sub = scaled()\n"
    "block scaled()(x: [.., D]) -> [.., D] {\n"
    "  param s : [D] = normal(std = 0.5)\n"
    "  return x * s\n"
    "}\n"
    "model small {\n"
    "  context = 8, width = D, mask = causal, pre_norm = none, connection = conn\n"
    "  init = normal(std = 0.4), out_init = normal(std = 0.4)\n"
    "  embed tokens { vocab = 17, width = wide }\n"
    "  if grams {\n"
    "    embed ngrams { vocab = 17, order = 3, rows = 20, width = 6 }\n"
    "  }\n"
    "  sub\n"
    "  head lm { norm = rms_norm(eps = 1e-6) }\n"
    "  for depth in 1..depths {\n"
    "    head mtp {\n"
    "      predict = depth + 1, weight = if tokens < 100 then 0.3 else 0.1\n"
    "      mix = linear(), norm = rms_norm(eps = 1e-6)\n"
    "      layer { sub }\n"
    "    }\n"
    "  }\n"
    "}\n"
    "train {\n"
    "  data = text_file(\"none.txt\"), tokenizer = chars(), batch = 4 seqs, length = 10 steps, seed = 1\n"
    "  precision = fp32\n"
    "  optimizer adamw { lr = 1e-2, betas = [0.9, 0.95], eps = 1e-8, weight_decay = 0.1 }\n"
    "}\n";

typedef struct Head {
    const char *name;
    int m, n; /* 1, 1: a residual stream */
    bool embedding_first, whole, shared;
    enum { LINEAR, CENTRED, RMS } reduce;
    double tau; /* of a dynamic connection, else 0 */
    double worst;
} Head;

static const Head heads[] = {
    {"DeepSeek, [hidden; embedding]", 1, 1, .whole = false},
    {"DeepSeek, [embedding; hidden]", 1, 1, .embedding_first = true},
    {"DeepSeek, the head's own norm", 1, 1, .whole = true, .shared = true},
    {"(2,4) by segments, centred group norm", 2, 4, .reduce = CENTRED},
    {"(2,3) by segments, shared reduce and norm", 2, 3, .embedding_first = true, .shared = true},
    {"(2,4) as a whole, RMS groups, dynamic", 2, 4, .whole = true, .reduce = RMS, .tau = 2},
    {"(1,3) dynamic, another tau", 1, 3, .reduce = LINEAR, .tau = 0.7},
};
static const char *const reduces[] = {"linear(out = D)", "group_reduce(size = D, out = D)",
                                      "group_reduce(size = D, out = D, kind = rms)"};

/* Groups of `size` of x [n], divided by their root mean square, times g [size]; y may be x. */
static void rms(const double *x, int n, int size, const double *g, double *y)
{
    for (int i = 0; i < n; i += size) {
        double sum = 0;
        for (int k = i; k < i + size; k++)
            sum += x[k] * x[k];
        for (int k = i; k < i + size; k++)
            y[k] = x[k] / sqrt(sum / size + 1e-6) * g[k - i];
    }
}

/* The static coefficients plus, for a dynamic connection, scale * tanh(norm(x) W / tau): B transposed is [n, m]. */
static void coefficients(const Trial *t, const Head *h, const char *path, const double *x, double B[32], double A[32],
                         double C[32])
{
    int m = h->m, n = h->n, w = 8 / m;
    if (n == 1) {
        B[0] = A[0] = C[0] = 1;
        return;
    }
    memcpy(B, weight(t, "%s.connection.B", path), (size_t)(m * n) * sizeof *B);
    memcpy(A, weight(t, "%s.connection.A_in", path), (size_t)(n * m) * sizeof *A);
    memcpy(C, weight(t, "%s.connection.A_carry", path), (size_t)(n * n) * sizeof *C);
    if (h->tau == 0)
        return;
    double z[32];
    const double *W[] = {weight(t, "%s.connection.W_b", path), weight(t, "%s.connection.W_ai", path),
                         weight(t, "%s.connection.W_ac", path)};
    const double *S[] = {weight(t, "%s.connection.S_b", path), weight(t, "%s.connection.S_ai", path),
                         weight(t, "%s.connection.S_ac", path)};
    rms(x, n * w, w, weight(t, "%s.connection.norm.g", path), z);
    for (int which = 0; which < 3; which++)
        for (int j = 0; j < n; j++)
            for (int i = 0; i < (which == 2 ? n : m); i++) {
                int columns = which == 2 ? n : m, at = which == 0 ? i * n + j : j * columns + i;
                double u = 0;
                for (int k = 0; k < w; k++)
                    u += z[j * w + k] * W[which][k * columns + i];
                (which == 0 ? B : which == 1 ? A : C)[at] += S[which][at] * tanh(u / h->tau);
            }
}

/* One sublayer on the state x [n, w]: what it reads, scaled, written back. */
static void sublayer(const Trial *t, const Head *h, const char *path, double *x)
{
    int m = h->m, n = h->n, w = 8 / m;
    double read[8] = {0}, B[32], A[32], C[32];
    const double *s = weight(t, "%s.s", path);
    coefficients(t, h, path, x, B, A, C);
    for (int k = 0; k < m * w; k++)
        for (int j = 0; j < n; j++)
            read[k] += A[j * m + k / w] * x[j * w + k % w];
    carry(C, n, w, x);
    for (int j = 0; j < n * w; j++)
        for (int i = 0; i < m; i++)
            x[j] += B[i * n + j / w] * read[i * w + j % w] * s[i * w + j % w];
}

/* Groups of the backbone width: without their mean unless `rms`, a gain and, with the mean, a bias for each coordinate. */
static void group_norm(const Trial *t, const Head *h, const char *close, double *z)
{
    for (int i = 0; h->reduce && i < 8 * h->n / h->m; i += 8) {
        const double *g = weight(t, "%s.connection.close.reduce.norm.g", close);
        const double *b = h->reduce == CENTRED ? weight(t, "%s.connection.close.reduce.norm.b", close) : NULL;
        double mean = 0, square = 0;
        for (int k = i; b && k < i + 8; k++)
            mean += z[k] / 8;
        for (int k = i; k < i + 8; k++)
            square += (z[k] - mean) * (z[k] - mean) / 8;
        for (int k = i; k < i + 8; k++)
            z[k] = (z[k] - mean) / sqrt(square + 1e-5) * g[k] + (b ? b[k] : 0);
    }
}

/* The cross-entropy of label `want` after closing x and a norm with gain g. */
static double loss_at(const Trial *t, const Head *h, const char *close, const double *g, const double *x, int64_t want)
{
    int total = 8 * h->n / h->m;
    double y[8] = {0}, z[32], sum = 0, logit[CLASSES];
    const double *W = weight(t, "%s", "head.lm.W");
    memcpy(z, x, (size_t)total * sizeof *z);
    group_norm(t, h, close, z);
    for (int k = 0; h->n > 1 && k < 8; k++)
        for (int j = 0; j < total; j++)
            y[k] += z[j] * weight(t, h->reduce ? "%s.connection.close.reduce.proj.W" : "%s.connection.close.reduce.W",
                                  close)[j * 8 + k];
    rms(h->n > 1 ? y : x, 8, 8, g, y);
    for (int c = 0; c < CLASSES; c++) {
        logit[c] = 0;
        for (int k = 0; k < 8; k++)
            logit[c] += y[k] * W[k * CLASSES + c];
        sum += exp(logit[c]);
    }
    return log(sum) - logit[want];
}

/* state [SEQS * LEN, total] through the head of this depth; the mean loss over positions that have a target. */
static double depth_loss(const Trial *t, const Head *h, int depth, double *state, const double *table)
{
    int total = 8 * h->n / h->m, w = h->whole ? total : 8 / h->m, size = total % 8 ? 8 / h->m : 8, valid = 0;
    const int64_t *token = bound(t->bind, t->g, EXT_INPUT, name_str(t->ctx, "tokens"))->integer;
    const int64_t *label = bound(t->bind, t->g, EXT_INPUT, name_str(t->ctx, "labels"))->integer;
    char path[40], layer[60];
    snprintf(path, sizeof path, "depth[%d].head.mtp", depth);
    snprintf(layer, sizeof layer, "%s.layer.sub", path);
    const double *M = weight(t, "%s.mix.W", path),
                 *g = h->shared ? weight(t, "%s", "head.lm.norm.g") : weight(t, "%s.norm_out.g", path);
    double sum = 0;
    for (int p = 0; p < SEQS * LEN; p++) {
        double zero[32] = {0}, hs[32], es[32], x[32] = {0};
        bool inside = p % LEN + depth < LEN;
        rms(state + p * total, total, size, weight(t, "%s.norm_state.g", path), hs);
        rms(inside ? table + token[p + depth] * total : zero, total, size, weight(t, "%s.norm_embed.g", path), es);
        const double *first = h->embedding_first ? es : hs, *second = h->embedding_first ? hs : es;
        for (int s = 0; s < total; s += w)
            for (int k = 0; k < w; k++)
                for (int i = 0; i < w; i++)
                    x[s + k] += first[s + i] * M[i * w + k] + second[s + i] * M[(w + i) * w + k];
        sublayer(t, h, layer, x);
        memcpy(state + p * total, x, (size_t)total * sizeof *x);
        int64_t want = inside ? label[p + depth] : -1;
        valid += want >= 0;
        sum += want >= 0 ? loss_at(t, h, h->shared ? "head.lm" : path, g, x, want) : 0;
    }
    return sum / valid;
}

static Unit *chain_unit(Ctx *ctx, const Head *h, const char *more)
{
    char conn[200], wide[40];
    snprintf(conn, sizeof conn, "conn=ghc(m = %d, n = %d, dynamic = %s, tau = %g, factor = 0.5, reduce = %s)", h->m,
             h->n, h->tau > 0 ? "true" : "false", h->tau > 0 ? h->tau : 1, reduces[h->reduce]);
    snprintf(wide, sizeof wide, "wide=%d", 8 * h->n / h->m);
    const char *set[8] = {wide};
    size_t n = 1;
    if (h->n > 1)
        set[n++] = conn;
    if (h->embedding_first)
        set[n++] = "depth[*].head.mtp.order=embedding_first";
    if (h->whole)
        set[n++] = "depth[*].head.mtp.join=whole";
    if (h->shared)
        set[n++] = "depth[*].head.mtp.shared=true";
    set[n++] = more;
    return load_text(ctx, chain, set);
}

static void mixing(Ctx *ctx, void *arg)
{
    Head *h = arg;
    Trial t = {.ctx = ctx, .B = SEQS, .T = LEN, .noise = 0.3};
    t.unit = chain_unit(ctx, h, NULL);
    trial_bind(&t, step_evaluate(t.unit->model, ctx->program));
    t.host[HV_TOKENS] = 99;
    trial_run(&t);
    int total = 8 * h->n / h->m;
    double state[SEQS * LEN * 32], mean = 0;
    const double *table = weight(&t, "embed.%s", "tokens.W");
    const int64_t *token = bound(t.bind, t.g, EXT_INPUT, name_str(ctx, "tokens"))->integer;
    for (int p = 0; p < SEQS * LEN; p++) {
        memcpy(state + p * total, table + token[p] * total, (size_t)total * sizeof *state);
        sublayer(&t, h, "sub", state + p * total);
    }
    for (int depth = 1; depth <= CHAIN; depth++) {
        double want = depth_loss(&t, h, depth, state, table);
        h->worst = fmax(h->worst, fabs(want - *result(&t, name_printf(ctx, "metric.next_%d", depth + 1))));
        mean += want / CHAIN;
    }
    h->worst = fmax(h->worst, fabs(0.3 * mean - *result(&t, "loss.mtp")));
    t.host[HV_TOKENS] = 100;
    trial_run(&t);
    h->worst = fmax(h->worst, fabs(0.1 * mean - *result(&t, "loss.mtp")));
    if (h->worst == 0)
        h->worst = INFINITY; /* two programs do not agree to the bit unless nothing was compared */
}

/* The gradient of the trunk's sublayer: with `detach` the heads add nothing to it. */
typedef struct Detached {
    double off, detached, joined; /* sums of squares of differences to the one without multi-token loss */
    bool owns;
} Detached;

static const double *trunk_gradient(Ctx *ctx, const char *more)
{
    Trial t = {.ctx = ctx, .B = SEQS, .T = LEN, .noise = 0.3};
    t.unit = chain_unit(ctx, &heads[3], more);
    trial_bind(&t, step_gradient(t.unit->model, t.unit->train, true, ctx->program));
    trial_run(&t);
    return bound(t.bind, t.g, EXT_GRAD, name_str(ctx, "sub.s"))->real;
}

static void detach(Ctx *ctx, void *arg)
{
    Detached *d = arg;
    const double *none = trunk_gradient(ctx, "depth[*].head.mtp.weight=0"),
                 *off = trunk_gradient(ctx, "depth[*].head.mtp.detach=true"),
                 *on = trunk_gradient(ctx, "depth[*].head.mtp.detach=false");
    for (int i = 0; i < 8; i++) {
        d->off += none[i] * none[i];
        d->detached += (off[i] - none[i]) * (off[i] - none[i]);
        d->joined += (on[i] - none[i]) * (on[i] - none[i]);
    }
    Unit *u = chain_unit(ctx, &heads[4], NULL);
    for (size_t i = 0; i < u->model->param.n; i++) {
        const char *path = u->model->param.v[i].path;
        d->owns |= strstr(path, "mtp") && (strstr(path, "close") || strstr(path, "norm_out"));
    }
}

static void compiled(Ctx *ctx, void *arg)
{
    Agreement *c = arg;
    Unit *u =
        load_text(ctx, chain,
                  (const char *const[]){
                      "wide=12", "conn=ghc(m = 2, n = 3, dynamic = true, reduce = group_reduce(size = 6, out = D))",
                      "depths=1", "grams=true", "sub=ffn(hidden = 10, activation = gelu)", NULL});
    gradients_compare(ctx, u, c);
}

int main(void)
{
    Tally t = {0, 0};
    counts(&t);
    unrolled(&t);
    for (int mean = 0; mean < 2; mean++) {
        Ctx *ctx = ctx_new(NULL);
        Grams r = {mean, 0};
        bool ok = guarded(ctx, ngrams, &r) && r.worst < 1e-12;
        verdict(&t, ok, mean ? "n-grams, averaged" : "n-grams, summed", r.worst);
        ctx_free(ctx);
    }
    for (size_t i = 0; i < COUNT_OF(heads); i++) {
        Ctx *ctx = ctx_new(NULL);
        Head h = heads[i];
        bool ok = guarded(ctx, mixing, &h) && h.worst < 1e-12;
        verdict(&t, ok, h.name, h.worst);
        ctx_free(ctx);
    }
    Ctx *ctx = ctx_new(NULL);
    Detached d = {0};
    bool ok = guarded(ctx, detach, &d);
    verdict(&t, ok && d.off > 1e-6 && d.detached < 1e-24 && d.joined > 1e-6 * d.off,
            "detached heads leave the trunk alone", d.detached);
    verdict(&t, ok && !d.owns, "shared heads own no reduce and no norm", d.owns);
    Agreement c = {.B = SEQS, .T = LEN, .worst = INFINITY, .name = ""};
    ok = guarded(ctx, compiled, &c);
    verdict(&t, ok && c.worst < 2e-5 && c.compared > 30 && c.same_bits && !c.dead,
            "compiled gradients of a (2,3) chain", c.worst);
    ctx_free(ctx);
    printf("%d passed, %d failed\n", t.passed, t.failed);
    return t.failed != 0;
}
