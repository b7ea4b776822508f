/* decode.c - predicting position by position against predicting the whole text at once.
 *
 * In:  the small models of models.h and models that look back in other ways, parameters at random.
 * Out: `N passed, N failed`.
 * Each model's logits at every position must be those of the whole-context graph: with steps of one
 * position, of several, and after a restart over what an earlier text left, in the reference evaluator and
 * with compiled kernels; and where each sequence stands at a position of its own. What the other sequences hold, and tables that are switched off, must not change a
 * bit. Models that cannot be computed in this order are refused with the operator's place.
 * When: computes.
 */
#include "runtime/cpu/backend_cpu.h"
#include "support/models.h"

#include "compiler/model/decode.h"
#include "runtime/exec/exec.h"

enum { B = 3, T = 8, V = 17 };

static const char other_text[] =
    "edition = 1\n"
    "import \"std/transformer\"\n"
    "import \"std/connections\"\n"
    "let D    = 12\n"
    "let conn = residual()\n"
    "let norm = rms_norm(eps = 1e-6)\n"
    "let attn = attention(heads = 2, position = rope(base = 100))\n"
    "let look = ffn(hidden = 10, activation = silu)\n"
    "let size = [D, D]\n"
    "let see  = 0\n"
    "block embed_pairs(buckets: dim, back: int)() -> [B, T, _] {\n"
    "  param W : [buckets, scope.width] = normal(std = 0.3)\n"
    "  return gather(W, (input.tokens + 5 * shift(input.tokens, back)) mod buckets)\n"
    "}\n"
    "block running()(x: [B, T, D]) -> [B, T, D] {\n"
    "  param w : [D] = ones\n"
    "  return w * cumsum(x, over = 2) / (1 + unsqueeze(cast(arange(T), real)))\n"
    "}\n"
    "block before(k: int)(x: [B, T, D]) -> [B, T, D] {\n"
    "  param w : [D] = ones\n"
    "  return w * shift(x, k, axis = 2, fill = 0.5) + shift(x, 1, axis = 2) * shift(roll(x, 0), 0)\n"
    "}\n"
    "block beside()(x: [B, T, D]) -> [B, T, D] {\n"
    "  return shift(x, -2, axis = 3) + 2 * shift(x, 1, axis = 3) + roll(x, 1, axis = 3) + cumsum(x, over = 3) / D\n"
    "}\n"
    "block slots(n: int)(x: [B, T, D]) -> [B, T, D] {\n"
    "  param k : [1, n, 2, 6] = normal(std = 0.3)\n"
    "  param v : [1, n, 2, 6] = normal(std = 0.3)\n"
    "  q = reshape(x, [B, T, 2, 6])\n"
    "  a = sdpa(q, broadcast(k, [B, n, 2, 6]), broadcast(v, [B, n, 2, 6]), mask = full, scale = 0.4)\n"
    "  return reshape(a, [B, T, D])\n"
    "}\n"
    "block pooled()(x: [B, T, D]) -> [B, T, D] { return x + sum(x, over = 2, keep = true) }\n"
    "block around()(x: [B, T, D]) -> [B, T, D] { return roll(x, 1, axis = 2) }\n"
    "block future()(x: [B, T, D]) -> [B, T, D] { return shift(x, -1, axis = 2) }\n"
    "block backwards()(x: [B, T, D]) -> [B, T, D] { return cumsum(x, over = 2, reverse = true) }\n"
    "block counted()(x: [B, T, D]) -> [B, T, D] { return x / cast(T, real) }\n"
    "block noisy()(x: [B, T, D]) -> [B, T, D] { return x + randn([B, T, D]) }\n"
    "block squares()(x: [B, T, D]) -> [B, T, D] { return (x @ x.T) @ x }\n"
    "block batch()(x: [B, T, D]) -> [B, T, D] { return x - sum(x, over = 1, keep = true) }\n"
    "model other {\n"
    "  context = 8, width = D, mask = causal, connection = conn, pre_norm = norm\n"
    "  init = normal(std = 0.3), out_init = normal(std = 0.3)\n"
    "  embed tokens { vocab = 17 }\n"
    "  embed pairs { buckets = 23, back = 2 }\n"
    "  embed position { size = 8 }\n"
    "  embed sinusoidal { base = 50 }\n"
    "  for layer in 1..2 {\n"
    "    attn\n"
    "    look\n"
    "  }\n"
    "  head lm { norm = norm }\n"
    "}\n";

static const Variant others[] = {
    {"n-grams, positions", {NULL}},
    {"running sums", {"look=running()", NULL}},
    {"shifts", {"look=before(k = 3)", NULL}},
    {"shifts along channels", {"look=beside()", NULL}},
    {"shifts past the start", {"look=before(k = 9)", NULL}},
    {"grouped queries", {"attn=attention(heads = 4, kv_heads = 2, head_dim = 6, position = rope(base = 100))", NULL}},
    {"window", {"attn=attention(heads = 4, kv_heads = 1, window = 3)", NULL}},
    {"softcap, qk norm", {"attn=attention(heads = 2, softcap = 2, qk_norm = norm, position = rope(base = 100))", NULL}},
    {"slots", {"look=slots(n = 5)", NULL}},
    {"hyper", {"conn=hyper(n = 3, dynamic = true)", "look=before(k = 2)", NULL}},
};

static const char wide_text[] =
    "edition = 1\n"
    "import \"std/transformer\"\n"
    "import \"std/connections\"\n"
    "let width = [12, 6, 8, 12]\n"
    "let norm = rms_norm(eps = 1e-5)\n"
    "model wide {\n"
    "  context = 8, mask = causal, pre_norm = norm\n"
    "  connection = carried(stream = 12, head = 12, branch_scale = 0.22, final = after_slice)\n"
    "  allow = [dead_weights]\n"
    "  embed tokens { vocab = 17, width = 12, init = normal(std = 0.3) }\n"
    "  for layer in 1..4 {\n"
    "    width = width[layer], init = normal(std = 0.3), out_init = normal(std = 0.3)\n"
    "    attention { heads = 2, head_dim = 4, position = rope(base = 100) }\n"
    "    ffn { hidden = 9, activation = silu, gated = true }\n"
    "  }\n"
    "  head lm { norm = norm, init = normal(std = 0.3) }\n"
    "}\n";

static const char ahead_text[] =
    "edition = 1\n"
    "import \"std/transformer\"\n"
    "import \"std/connections\"\n"
    "let D = 12\n"
    "let norm = rms_norm(eps = 1e-5)\n"
    "let attn = attention(heads = 2, position = rope(base = 100))\n"
    "let mlp = ffn(hidden = 9, activation = silu, gated = true)\n"
    "model ahead {\n"
    "  context = 8, width = D, mask = causal, pre_norm = norm\n"
    "  init = normal(std = 0.3), out_init = normal(std = 0.3)\n"
    "  connection = ghc(m = 2, n = 3, dynamic = true, reduce = linear(out = D))\n"
    "  embed tokens { vocab = 17, width = 18 }\n"
    "  embed ngrams { vocab = 17, order = 3, rows = 9, tables = 2, width = 5, combine = sum }\n"
    "  for layer in 1..2 {\n"
    "    attn\n"
    "    mlp\n"
    "  }\n"
    "  head lm { norm = norm }\n"
    "  head mtp {\n"
    "    predict = 2, weight = 0.3, norm = norm, mix = linear(), tie = lm\n"
    "    layer {\n"
    "      attn\n"
    "      mlp\n"
    "    }\n"
    "  }\n"
    "}\n";

/* ---- one model, whole and in steps ---- */

typedef struct Case {
    const char *text;
    const Variant *v;
    double worst[2]; /* reference, kernels: relative to the largest logit */
    const char *why; /* what went wrong, or NULL */
} Case;

typedef struct Bench {
    Ctx *ctx;
    const Graph *g;
    Backend *backend;
    Store *store;
    Program *one, *many;
    bool each;        /* sequences stand at positions of their own */
    RefBinding *bind; /* parameters and tokens of the whole text */
    const Graph *whole;
} Bench;

enum { MANY = 3 };

static Program *build(Bench *b, int64_t positions)
{
    Program *p;
    BuildReport report;
    ProgramOptions how = {.name = "decode", .B = B, .T = positions};
    if (program_build(b->store, b->g, &how, &p, &report) != ST_OK)
        vwn_bug(b->ctx, "build: %s", report.why);
    return p;
}

static void open_bench(Bench *b, bool kernels)
{
    char why[512];
    b->backend = NULL;
    if (kernels && backend_cpu_open(b->ctx, &(BackendOptions){.threads = 2}, &b->backend, why) != ST_OK)
        vwn_bug(b->ctx, "no backend: %s", why);
    b->store = store_new(b->ctx, b->backend);
    b->one = build(b, 1);
    b->many = build(b, MANY);
    for (size_t i = 0; i < b->whole->ext.n; i++) {
        const Ext *e = &b->whole->ext.v[i];
        StoreEntry *to = store_find(b->store, e->kind, e->name);
        if (to && (e->kind == EXT_PARAM || e->kind == EXT_BUFFER))
            store_put_f64(b->store, to, 0, to->elements, b->bind[i].tensor->real);
    }
}

static void close_bench(Bench *b)
{
    program_free(b->one);
    program_free(b->many);
    store_free(b->store);
    if (b->backend)
        b->backend->ops->close(b->backend);
}

static void put(Bench *b, const char *name, int64_t n, const int64_t *v)
{
    StoreEntry *e = store_find(b->store, EXT_INPUT, name_str(b->ctx, name));
    if (e && store_put_i64(b->store, e, 0, n, v) != ST_OK)
        vwn_bug(b->ctx, "%s: %s", name, store_why(b->store));
}

/* `n` positions from at[s] on of each sequence of text[B][T]; their logits go to out[B][T][V]. */
static void step_each(Bench *b, const int64_t at[B], int64_t n, const int64_t *text, const int64_t on[B], double *out)
{
    int64_t tokens[B * T];
    for (int64_t s = 0; s < B; s++)
        memcpy(tokens + s * n, text + s * T + at[s], (size_t)n * sizeof *tokens);
    put(b, "tokens", B * n, tokens);
    put(b, DECODE_AT, b->each ? B : 1, at);
    put(b, DECODE_ON, B, on);
    Program *p = n == 1 ? b->one : b->many;
    double vars[HV_COUNT] = {0}, got[B * T * V];
    uint8_t rank;
    int64_t d[MAX_RANK];
    if (program_run(p, &(RunArgs){.host_vars = vars, .seed = 1}) != ST_OK ||
        program_tensor(p, name_str(b->ctx, "logits"), &rank, d, got, B * T * V) != ST_OK)
        vwn_bug(b->ctx, "run: %s", program_why(p));
    for (int64_t s = 0; s < B; s++)
        if (on[s])
            memcpy(out + (s * T + at[s]) * V, got + s * n * V, (size_t)(n * V) * sizeof *out);
}

static void step(Bench *b, int64_t at, int64_t n, const int64_t *text, const int64_t on[B], double *out)
{
    step_each(b, (int64_t[B]){at, at, at}, n, text, on, out);
}

static const int64_t all_on[B] = {1, 1, 1};

static void in_ones(Bench *b, const int64_t *text, double *out)
{
    for (int64_t at = 0; at < T; at++)
        step(b, at, 1, text, all_on, out);
}

static double distance(const double *a, const double *b)
{
    double worst = 0, size = 0;
    for (int64_t i = 0; i < B * T * V; i++) {
        worst = isnan(a[i]) ? INFINITY : fmax(worst, fabs(a[i] - b[i]));
        size = fmax(size, fabs(b[i]));
    }
    return worst / size;
}

/* Sequence 1 in other company, and with steps between that it takes no part in. */
static bool apart(Bench *b, const int64_t *text, const double *alone)
{
    int64_t company[B * T];
    double out[B * T * V], unused[B * T * V];
    for (int64_t i = 0; i < B * T; i++)
        company[i] = i / T == 1 ? text[i] : (text[i] * 3 + i) % V;
    for (int64_t at = 0; at < T; at++) {
        if (at % 3 == 1 && at + MANY <= T)
            step(b, at, MANY, text, (int64_t[B]){1, 0, 1}, unused);
        if (at == 5)
            step(b, 2, 1, company, (int64_t[B]){1, 0, 1}, unused);
        step(b, at, 1, company, all_on, out);
    }
    return !memcmp(out + T * V, alone + T * V, T * V * sizeof *out);
}

/* Tables are written where they lie: nothing of their size is copied. */
static bool in_place(const Program *p)
{
    const Plan *plan = program_plan(p);
    for (size_t i = 0; plan && i < plan->n_launch; i++)
        if (plan->launch[i].kind == LAUNCH_KERNEL && plan->launch[i].rows >= 8 * B * T &&
            strstr(plan->kernel[plan->launch[i].kernel].text, "copy: out[r]"))
            return false;
    return true;
}

/* Each sequence begins two steps behind the one before it, and takes several positions at once where it has come to `several`. */
static void staggered(Bench *b, const int64_t *text, int64_t several, double *out)
{
    int64_t done[B] = {0};
    for (int64_t t = 0; done[B - 1] < T; t++) {
        int64_t on[B], many[B], at[B];
        bool any[2] = {false, false};
        for (int64_t s = 0; s < B; s++) {
            bool now = t >= 2 * s && done[s] < T;
            many[s] = now && done[s] == several + s;
            on[s] = now && !many[s];
            any[0] |= on[s];
            any[1] |= many[s];
            at[s] = done[s] + MANY <= T ? done[s] : 0;
        }
        if (any[1])
            step_each(b, at, MANY, text, many, out);
        for (int64_t s = 0; s < B; s++) {
            done[s] += many[s] ? MANY : 0;
            at[s] = done[s] < T ? done[s] : 0;
        }
        if (any[0])
            step_each(b, at, 1, text, on, out);
        for (int64_t s = 0; s < B; s++)
            done[s] += on[s];
    }
}

/* At positions of their own, sequences have the logits of the whole text. */
static void compare_each(Case *c, Bench *b, int kernels, const int64_t *text, const double *want)
{
    double out[B * T * V];
    open_bench(b, kernels);
    for (int64_t several = 0; several < 4; several += 3) {
        memset(out, 0, sizeof out);
        staggered(b, text, several, out);
        c->worst[kernels] = fmax(c->worst[kernels], distance(out, want));
    }
    if (!in_place(b->one) || !in_place(b->many))
        c->why = "a table is copied where positions differ";
    close_bench(b);
}

static void compare_on(Case *c, Bench *b, int kernels, const int64_t *text, const double *want)
{
    double ones[B * T * V], mixed[B * T * V], again[B * T * V];
    open_bench(b, kernels);
    in_ones(b, text, ones);
    c->worst[kernels] = distance(ones, want);
    step(b, 0, MANY, text, all_on, mixed);
    step(b, 3, 1, text, all_on, mixed);
    step(b, 4, MANY, text, all_on, mixed);
    step(b, 7, 1, text, all_on, mixed);
    c->worst[kernels] = fmax(c->worst[kernels], distance(mixed, want));
    in_ones(b, text, again);
    if (memcmp(ones, again, sizeof ones))
        c->why = "a restart gives other bits";
    if (!apart(b, text, ones))
        c->why = "a sequence depends on the others";
    if (!in_place(b->one) || !in_place(b->many))
        c->why = "a table is copied";
    close_bench(b);
}

static void compare(Ctx *ctx, void *arg)
{
    Case *c = arg;
    Unit *u = load_text(ctx, c->text, c->v->set);
    DecodeRefusal no = {0};
    Bench b = {.ctx = ctx, .whole = step_predict(u->model, ctx->program)};
    b.g = decode_graph(b.whole, T, false, ctx->program, &no);
    if (!b.g) {
        c->why = no.why;
        return;
    }
    graph_verify(b.g);
    b.bind = bind_all(ctx->program, b.whole, u->model, B, T, 0.3);
    RefRun run = {.B = B, .T = T, .seed = 1, .bind = b.bind, .n_bind = b.whole->ext.n};
    Tensor *logits;
    ref_evaluate(b.whole, ctx->program, &run, &logits);
    const int64_t *text = bound(b.bind, b.whole, EXT_INPUT, name_str(ctx, "tokens"))->integer;
    for (int kernels = 0; kernels < 2; kernels++)
        compare_on(c, &b, kernels, text, logits->real);
    b.g = decode_graph(b.whole, T, true, ctx->program, &no);
    b.each = true;
    if (!b.g) {
        c->why = no.why;
        return;
    }
    graph_verify(b.g);
    for (int kernels = 0; kernels < 2; kernels++)
        compare_each(c, &b, kernels, text, logits->real);
}

static bool run_case(const char *text, const Variant *v)
{
    Ctx *ctx = ctx_new(NULL);
    Case c = {.text = text, .v = v, .worst = {INFINITY, INFINITY}};
    bool ok = guarded(ctx, compare, &c) && !c.why && c.worst[0] < 1e-12 && c.worst[1] < 2e-5;
    printf("%-22s reference %.1e kernels %.1e%s%s%s\n", v->name, c.worst[0], c.worst[1], c.why ? ": " : "",
           c.why ? c.why : "", ok ? "" : "  FAILED");
    fflush(stdout);
    ctx_free(ctx);
    return ok;
}

/* ---- refusals ---- */

typedef struct Refused {
    const char *set, *op, *why, *source; /* source: what the place begins with */
} Refused;
#define SEATS                                                                                                          \
    "look=moe(experts = 4, active = 2, hidden = 5, activation = silu, scores = softmax, normalize = true, balance = "  \
    "0, "                                                                                                              \
    "capacity = 1, priority = "
static const Refused refused[] = {
    {"look=pooled()", "sum", "mixes the positions", "sum(x"},
    {"look=around()", "roll", "mixes the positions", "roll(x"},
    {"look=future()", "shift", "reads later positions", "shift(x, -1"},
    {"look=backwards()", "cumsum", "sums later positions", "cumsum(x, over = 2, r"},
    {"look=counted()", "dim", "reads the number of positions", ""},
    {"look=noisy()", "randn", "draws for each position", "randn("},
    {"look=squares()", "matmul", "each pair of positions", "x @ x.T"},
    {"look=batch()", "sum", "mixes the sequences of a batch", "sum(x, over = 1"},
    {SEATS "choice)", "eq", "takes the positions in two orders", ""},
    {SEATS "token)", "sum", "mixes the positions", ""},
    {"attn=attention(heads = 2, mask = full)", "sdpa", "its mask is not causal", "sdpa("},
};

static void refuse_one(Ctx *ctx, void *arg)
{
    const Refused *r = arg;
    const char *set[2] = {r->set, NULL};
    Unit *u = load_text(ctx, other_text, set);
    DecodeRefusal no = {0};
    size_t n;
    if (decode_graph(step_predict(u->model, ctx->program), T, false, ctx->program, &no))
        ctx_raise(ctx, ST_BUG, "%s: not refused", r->set);
    const char *text = no.span.file ? source_text(ctx, no.span.file, &n) + no.span.lo : "";
    if (!strstr(no.why, r->op) || !strstr(no.why, r->why) || strncmp(text, r->source, strlen(r->source)))
        ctx_raise(ctx, ST_BUG, "%s: refused with: %s, at: %.30s", r->set, no.why, text);
}

int main(void)
{
    int passed = 0, failed = 0;
    static const Variant wide = {"carried widths", {NULL}}, ahead = {"mtp, n-grams", {NULL}};
    CaseDraw draw = {.one_in = 1, .sanitized = 16};
    for (size_t i = 0; i < COUNT_OF(variants) + COUNT_OF(others); i++) {
        bool first = i < COUNT_OF(variants);
        if (case_drawn(&draw, i))
            run_case(first ? model_text : other_text, first ? &variants[i] : &others[i - COUNT_OF(variants)])
                ? passed++
                : failed++;
    }
    cases_end(&draw);
    run_case(wide_text, &wide) ? passed++ : failed++;
    run_case(ahead_text, &ahead) ? passed++ : failed++;
    for (size_t i = 0; i < COUNT_OF(refused); i++) {
        Ctx *ctx = ctx_new(NULL);
        guarded(ctx, refuse_one, (void *)&refused[i]) ? passed++ : failed++;
        ctx_free(ctx);
    }
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
