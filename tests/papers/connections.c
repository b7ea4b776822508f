/* connections.c - baselines and connections of the papers: their sizes, their gradients, and that they train.
 *
 * In:  examples/ with other connections; a small model wired and normed in every way.
 * Out: `N passed, N failed`. Sizes are those that the papers print or that follow from their formulas; the CPU's
 *      loss and gradients agree with the float64 reference, no weight is without one; ten steps lower the loss.
 *      Compiling is what takes time here: systems whose kernels tests/support/examples.h has compared elsewhere, and those
 *      that differ from another one by a plain operator, are trained by the reference.
 */
#include "compiler/file/check_unit.h"
#include "support/gradients.h"

#include "runtime/vwn.h"

/* ---- sizes ---- */

enum { MODULES = 32 }; /* connections of OLMo-1B */
#define OLMO        "02_olmo_1b.vwn"
#define OLMO_PARAMS 1176764416
#define OLMOE       "15_olmoe_1b_7b.vwn"
#define PLUS        "16_transformer_pp.vwn"

static const struct Size {
    const char *file, *set[6];
    int64_t params;
} sizes[] = {
    {OLMO, {NULL}, OLMO_PARAMS},
    {"03_qwen3_0_6b.vwn", {NULL}, 596049920},
    {OLMOE, {NULL}, 6919161856},
    {OLMOE, {"gain=false"}, 6919094272},
    {OLMOE, {"gain=false", "conn=hyper(n = 4, dynamic = true)"}, 6919488320},
    {PLUS, {NULL}, 83112448},
    {PLUS, {"tied=true"}, 66728448},
    {PLUS, {"D=1024", "F=2560"}, 210265088},
    {PLUS, {"D=1024", "F=2560", "tied=true"}, 177497088},
    {PLUS, {"D=1408", "F=3648", "L=24"}, 650317184},
    {PLUS, {"D=1408", "F=3648", "L=24", "tied=true"}, 605261184},
    {PLUS, {"D=1632", "F=4243", "L=24", "head_dim=96"}, 858786144},
    {PLUS, {"D=1632", "F=4243", "L=24", "head_dim=96", "tied=true"}, 806562144},
    {OLMO, {"conn=hyper(n = 1, dynamic = false)"}, OLMO_PARAMS + MODULES * 3},
    {OLMO, {"conn=hyper(n = 2, dynamic = false)"}, OLMO_PARAMS + MODULES * 8},
    {OLMO, {"conn=hyper(n = 4, dynamic = false)"}, OLMO_PARAMS + 768},
    {OLMO, {"conn=hyper(n = 8, dynamic = false)"}, OLMO_PARAMS + MODULES * 80},
    {OLMO, {"conn=hyper(n = 1, dynamic = true)"}, OLMO_PARAMS + 196768},
    {OLMO, {"conn=hyper(n = 2, dynamic = true)"}, OLMO_PARAMS + 262464},
    {OLMO, {"conn=hyper(n = 3, dynamic = true)"}, OLMO_PARAMS + MODULES *(2048 * 5 + 3 * 5 + 2)},
    {OLMO, {"conn=hyper(n = 4, dynamic = true)"}, OLMO_PARAMS + 394048},
    {OLMO,
     {"conn=hyper(n = 4, dynamic = true)", "layer[*].attention.connection_per=layer",
      "layer[*].ffn.connection_per=layer"},
     OLMO_PARAMS + 394048 / 2},
    {OLMO, {"conn=hyper(n = 8, dynamic = true)"}, OLMO_PARAMS + 657984},
    {OLMO, {"conn=hyper(n = 8, dynamic = true, squash = none)"}, OLMO_PARAMS + 657984},
    {OLMO, {"conn=hyper(n = 4, dynamic = true, learn_WC = false)"}, OLMO_PARAMS + 394048},
    {OLMO, {"conn=hyper(n = 4, dynamic = true, factor = none)"}, OLMO_PARAMS + 394048 - 2 * MODULES},
    {OLMO, {"conn=hyper(n = 4, dynamic = true, collapse = learned)"}, OLMO_PARAMS + 394048 + 4},
    {OLMO, {"conn=hyper(n = 4, dynamic = true, norm = layer_norm(eps = 1e-5))"}, OLMO_PARAMS + 394048 + MODULES * 4096},
    {OLMO, {"conn=hyper_fixed(n = 2, matrices = wiring(kind = parallel))"}, OLMO_PARAMS},
    {OLMO, {"conn=frac(m = 4, dynamic = false)"}, OLMO_PARAMS + 1152},
    {OLMO, {"conn=frac(m = 4, dynamic = true)"}, OLMO_PARAMS + 165056},
    {OLMO, {"conn=frac(m = 4, dynamic = true, norm = rms_norm(eps = 1e-6, gain = false))"}, OLMO_PARAMS + 148672},
    {OLMO, {"conn=frac(m = 4, dynamic = true, norm = none, factor = none)"}, OLMO_PARAMS + 148672 - 2 * MODULES},
    {OLMO, {"conn=mhc(n = 4)"}, OLMO_PARAMS + MODULES *(4 * 2048 * 24 + 24 + 3)},
    {OLMO,
     {"conn=mhc(n = 4, collapse = predicted)"},
     OLMO_PARAMS + MODULES *(4 * 2048 * 24 + 24 + 3) + 4 * 2048 * 4 + 5},
    {OLMO, {"conn=altup(n = 2)"}, OLMO_PARAMS + MODULES * 6},
    {OLMO,
     {"conn=depth_weighted()"},
     OLMO_PARAMS + MODULES / 2 * (MODULES / 2 + 3) / 2}, /* arXiv 2402.02622: L (L + 3) / 2 */
};

static void count(Ctx *ctx, void *arg)
{
    struct {
        const struct Size *size;
        int64_t got;
    } *job = arg;
    const struct Size *s = job->size;
    size_t n = 0;
    while (s->set[n])
        n++;
    const char *path = arena_printf(ctx->program, "%s/examples/%s", VWN_SOURCE_DIR, s->file);
    CheckOptions how = {.path = path, .set = s->set, .n_set = n, .model_only = true};
    Unit *u = check_file(ctx, &how);
    if (u->model && !diag_errors(ctx))
        job->got = model_count(u->model).live;
    else
        show_diagnostics(ctx);
}

static bool check_size(const struct Size *s)
{
    struct {
        const struct Size *size;
        int64_t got;
    } job = {s, -1};
    Ctx *ctx = ctx_new(NULL);
    guarded(ctx, count, &job);
    bool ok = job.got == s->params;
    if (!ok)
        printf("%s %s: %lld weights, wanted %lld  FAILED\n", s->file, s->set[0] ? s->set[0] : "", (long long)job.got,
               (long long)s->params);
    ctx_free(ctx);
    return ok;
}

/* ---- the scale of output projections ---- */

/* Weights by path, born in OLMo-1B made small. */
typedef struct Births {
    const char *gain;
    double o[64 * 64], down[8192 * 64], q[64 * 64];
} Births;

static void give_birth(Ctx *ctx, void *arg)
{
    Births *b = arg;
    const char *set[] = {"D=64", "L=1", "conn=hyper(n = 4, dynamic = true)", b->gain};
    const char *path = arena_printf(ctx->program, "%s/examples/" OLMO, VWN_SOURCE_DIR);
    CheckOptions how = {.path = path, .set = set, .n_set = COUNT_OF(set), .model_only = true};
    Unit *u = check_file(ctx, &how);
    for (size_t i = 0; u->model && i < u->model->param.n; i++) {
        const Param *p = &u->model->param.v[i];
        double *to = !strcmp(p->path, "layer[1].attention.o_proj.W")   ? b->o
                     : !strcmp(p->path, "layer[1].attention.q_proj.W") ? b->q
                     : !strcmp(p->path, "layer[1].ffn.down.W")         ? b->down
                                                                       : NULL;
        if (to)
            param_init(p, 1, to);
    }
}

/* The "factor of sqrt(n)" on the output projections, read both ways: the same draws, twice as large or half. */
static bool check_scales(void)
{
    static Births at[] = {{.gain = "out_gain=1"}, {.gain = "out_gain=1/sqrt(4)"}, {.gain = "out_gain=sqrt(4)"}};
    bool ok = true;
    for (size_t i = 0; i < COUNT_OF(at); i++) {
        Ctx *ctx = ctx_new(NULL);
        ok &= guarded(ctx, give_birth, &at[i]);
        ctx_free(ctx);
    }
    for (size_t i = 0; i < COUNT_OF(at[0].o); i++) {
        ok &= at[0].o[i] != 0 && fabs(2 * at[1].o[i] - at[0].o[i]) < 1e-15 && fabs(at[2].o[i] - 2 * at[0].o[i]) < 1e-15;
        ok &= at[0].q[i] != 0 && at[1].q[i] == at[0].q[i];
    }
    for (size_t i = 0; i < COUNT_OF(at[0].down); i++)
        ok &= at[0].down[i] != 0 && fabs(2 * at[1].down[i] - at[0].down[i]) < 1e-15;
    printf("scales of output projections%s\n", ok ? "" : "  FAILED");
    return ok;
}

/* ---- systems ---- */

static const char text[] =
    "edition = 1\n"
    "import \"std/transformer\"\n"
    "import \"std/connections\"\n"
    "let D      = 16\n"
    "let norm   = rms_norm(eps = 1e-6)\n"
    "let before = norm\n"
    "let behind = none\n"
    "let last   = norm\n"
    "let conn   = residual()\n"
    "let attn   = attention(heads = 4, position = rope(base = 100))\n"
    "let mlp    = ffn(hidden = 24, activation = silu, gated = true)\n"
    "let places = 0\nlet abreast = 0\nlet tied = false\nlet gain = 1\nlet out = 1\nlet wide = D\n"
    "model small {\n"
    "  context = 16, width = D, mask = causal, connection = conn, pre_norm = before, out_norm = behind\n"
    "  init = normal(std = 0.1), out_init = normal(std = 0.1)\n"
    "  embed tokens { vocab = 32, scale = gain, width = wide }\n"
    "  if places == 1 { embed position { size = 16 } }\n"
    "  if places == 2 { embed sinusoidal { base = 100 } }\n"
    "  if abreast == 0 {\n"
    "    attn\n"
    "    mlp\n"
    "  } else if abreast == 1 {\n"
    "    parallel {\n"
    "      attn\n"
    "      mlp\n"
    "    }\n"
    "  } else {\n"
    "    shared_norm { norm = norm, left = attn, right = mlp, pre_norm = none }\n"
    "  }\n"
    "  if tied { head lm { norm = last, tie = tokens, scale = out } } else { head lm { norm = last } }\n"
    "}\n"
    "train {\n"
    "  data = text_file(\"text.txt\"), tokenizer = chars(), batch = 4 seqs, length = 10 steps, seed = 1\n"
    "  precision = fp32, clip = 1\n"
    "  optimizer adamw { lr = 2e-2, betas = [0.9, 0.95], eps = 1e-8, weight_decay = 0.1 }\n"
    "}\n";

static const struct System {
    const char *name;
    enum {
        NEW,
        KNOWN,
        SMALL
    } kernels; /* NEW: gradients are compared here. KNOWN: by tests of the label `equal`.
                                            SMALL: nothing is compiled here, the reference evaluator trains */
    const char *set[8];
} systems[] = {
    {"pre-norm", KNOWN, {NULL}},
    {"post-norm, GELU, learned positions, tied",
     NEW,
     {"before=none", "last=none", "conn=post_norm(norm = layer_norm(eps = 1e-5))", "places=1", "tied=true",
      "mlp=ffn(hidden = 24, activation = gelu, bias = true)"}},
    {"reordered norm, QK-norm whole, frequencies",
     SMALL,
     {"before=none", "behind=norm",
      "attn=attention(heads = 4, qk_norm = norm, qk_whole = true, position = rope_at(freqs = [1]))"}},
    {"sandwich, QK-norm per head, GQA, partial rotation, window",
     NEW,
     {"behind=norm", "attn=attention(heads = 4, kv_heads = 2, head_dim = 8, qk_norm = norm, window = 5, "
                     "position = rope(base = 100, fraction = 0.5))"}},
    {"side by side, two norms",
     SMALL,
     {"abreast=1", "places=2", "norm=layer_norm(eps = 1e-5, gain = false, bias = false)"}},
    {"side by side, one norm", SMALL, {"abreast=2"}},
    {"muP: scales of embedding, branches, attention, logits",
     SMALL,
     {"gain=4", "conn=residual(branch_scale = 0.22)", "out=0.25", "tied=true",
      "attn=attention(heads = 4, scale = 1 / 4, position = rope(base = 100))"}},
    {"ResiDual", SMALL, {"before=none", "last=none", "conn=residual_dual(norm = norm)"}},
    {"AltUp", SMALL, {"conn=altup(n = 2)"}},
    {"DenseFormer", SMALL, {"conn=depth_weighted(sublayers = 1)"}},
    {"AltUp, wide table", SMALL, {"conn=altup(n = 2, embedding = wide, collapse = concat, read = [2])", "wide=32"}},
    {"two-hop", SMALL, {"conn=hyper_fixed(n = 2, matrices = wiring(kind = two_hop))"}},
    {"parallel by matrices", NEW, {"conn=hyper_fixed(n = 2, matrices = wiring(kind = parallel), replicate = [1, 0])"}},
    {"SHC x 2", SMALL, {"conn=hyper(n = 2, dynamic = false)"}},
    {"DHC x 4", KNOWN, {"conn=hyper(n = 4, dynamic = true)"}},
    {"DHC x 8", SMALL, {"conn=hyper(n = 8, dynamic = true, collapse = mean)"}},
    {"DHC x 2 without B, linear, no norm, no factor, learned end",
     SMALL,
     {"conn=hyper(n = 2, dynamic = true, learn_B = false, squash = none, norm = none, factor = none, read = [1], "
      "replicate = [1, 0.5], collapse = learned)"}},
    {"DHC x 2 without WC", SMALL, {"conn=hyper(n = 2, dynamic = true, learn_WC = false)"}},
    {"SFC x 2", NEW, {"conn=frac(m = 2, dynamic = false)"}},
    {"DFC x 4", KNOWN, {"conn=frac(m = 4, dynamic = true)"}},
    {"DFC x 2, linear, no norm, no factor",
     SMALL,
     {"conn=frac(m = 2, dynamic = true, squash = none, norm = none, factor = none)"}},
    {"mHC x 2", KNOWN, {"conn=mhc(n = 2)"}},
    {"mHC x 4, with kernels of the iterations alone", NEW, {"D=32", "conn=mhc(n = 4)"}},
    {"mHC x 2, softmax, eps, transposed, predicted end",
     SMALL,
     {"conn=mhc(n = 2, iterations = 2, start = softmax, eps = 1e-6, transposed = true, post = 1, collapse = "
      "predicted)"}},
    {"mHC x 2, sigmoid", SMALL, {"conn=mhc(n = 2, iterations = 1, start = sigmoid, collapse = mean)"}},
};

typedef struct Job {
    const struct System *system;
    Agreement is;
    size_t frozen, params;
} Job;

static void compare(Ctx *ctx, void *arg)
{
    Job *job = arg;
    const Unit *u = load_text(ctx, text, job->system->set);
    gradients_compare(ctx, u, &job->is);
    job->params = u->model->param.n;
    for (size_t i = 0; i < u->model->param.n; i++)
        job->frozen += u->model->param.v[i].frozen;
}

static bool check_gradients(const struct System *s)
{
    Job job = {.system = s, .is = {.B = 4, .T = 16, .worst = INFINITY, .name = ""}};
    Ctx *ctx = ctx_new(NULL);
    guarded(ctx, compare, &job);
    /* A weight that is frozen has no gradient; every other has one that is not 0. */
    bool ok = job.is.worst < 2e-5 && job.is.compared == job.params - job.frozen && !job.is.dead && job.is.same_bits;
    printf("%-66s gradients %zu, worst %.1e at %s%s%s\n", s->name, job.is.compared, job.is.worst, job.is.name,
           job.is.dead ? job.is.dead : "", ok ? "" : "  FAILED");
    ctx_free(ctx);
    return ok;
}

/* ---- training ---- */

typedef struct Losses {
    double first, last, least_norm;
    int64_t steps;
} Losses;

static void on_event(void *user, const vwn_event *e)
{
    Losses *l = user;
    if (e->kind != VWN_EVENT_STEP)
        return;
    l->first = l->steps ? l->first : e->loss;
    l->last = e->loss;
    l->least_norm = l->steps ? fmin(l->least_norm, e->grad_norm) : e->grad_norm;
    l->steps++;
}

static void print(void *user, const char *s, size_t length) { fwrite(s, 1, length, user); }

static bool check_training(const struct System *s)
{
    Losses l = {NAN, NAN, NAN, 0};
    vwn_context *v = vwn_open(&(vwn_options){.threads = 1, .reference = s->kernels == SMALL});
    vwn_unit *u = NULL;
    size_t n = 0;
    while (s->set[n])
        n++;
    vwn_file_options file = {.path = "-", .text = text, .text_length = strlen(text), .set = s->set, .n_set = n};
    vwn_train_options how = {.run = "run", .overwrite = true, .event = on_event, .user = &l};
    vwn_status st = vwn_check(v, &file, &u);
    st = st == VWN_OK ? vwn_train(u, &how) : st;
    bool ok = st == VWN_OK && l.steps == 10 && l.last < 0.9 * l.first && l.least_norm > 0;
    printf("%-66s loss %.3f to %.3f%s\n", s->name, l.first, l.last, ok ? "" : "  FAILED");
    if (st != VWN_OK) {
        printf("status %d: %s\n", (int)st, vwn_message(v));
        vwn_diagnostics(v, &(vwn_writer){print, stdout}, false, false, NULL);
    }
    fflush(stdout);
    vwn_close(v);
    return ok;
}

int main(int argc, char **argv)
{
    int passed = 0, failed = 0;
    FILE *f = fopen("text.txt", "w");
    for (int i = 0; f && i < 2000; i++)
        fputc('a' + i % 7 % 5, f);
    if (!f || fclose(f) != 0)
        return 1;
    for (size_t i = 0; i < COUNT_OF(sizes); i++)
        check_size(&sizes[i]) ? passed++ : failed++;
    check_scales() ? passed++ : failed++;
    for (size_t i = 0; i < COUNT_OF(systems); i++) {
        if (argc > 1 && strcmp(argv[1], systems[i].name) != 0) /* an argument names the only one */
            continue;
        if (systems[i].kernels == NEW)
            check_gradients(&systems[i]) ? passed++ : failed++;
        check_training(&systems[i]) ? passed++ : failed++;
    }
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
