/* models.h - small models of every connection, for tests of whole graphs.
 *
 * In:  the name of a connection.   Out: a checked Model with random parameters, float64 on the host.
 * Randomising matters: at their initial values most dynamic weights are zero and hide their path.
 */
#ifndef TEST_MODELS_H
#define TEST_MODELS_H

#include "compiler/file/check_unit.h"
#include "drawn.h"

#include "compiler/model/model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const char model_text[] =
    "edition = 1\n"
    "import \"std/transformer\"\n"
    "import \"std/connections\"\n"
    "import \"std/growable\"\n"
    "let D    = 12\n"
    "let wide = D\n"
    "let widths = [D, D]\n"
    "let parts = 2\n"
    "let conn = residual()\n"
    "let map  = linear()\n"
    "let norm = rms_norm(eps = 1e-6)\n"
    "let turn = rope(base = 100)\n"
    "let sub  = ffn(hidden = 10, activation = silu, gated = true)\n"
    "model small {\n"
    "  context = 8, width = D, mask = causal, connection = conn, pre_norm = norm\n"
    "  init = normal(std = 0.3), out_init = normal(std = 0.3)\n"
    "  embed tokens { vocab = 17, width = wide }\n"
    "  for layer in 1..size(widths) {\n"
    "    width = widths[layer]\n"
    "    attention { heads = parts, q_proj = map, position = turn }\n"
    "    sub\n"
    "  }\n"
    "  head lm { norm = norm }\n"
    "}\n"
    "train {\n"
    "  data = text_file(\"none.txt\"), tokenizer = chars(), batch = 4 seqs, length = 10 steps, seed = 1\n"
    "  precision = fp32, clip = 1\n"
    "  optimizer adamw { lr = 1e-2, betas = [0.9, 0.95], eps = 1e-8, weight_decay = 0.1 }\n"
    "}\n";

/* Images instead of text, attention over all positions, one label per image. */
static const char classify_text[] =
    "edition = 1\n"
    "import \"std/transformer\"\n"
    "import \"std/connections\"\n"
    "let D    = 24\n"
    "let conn = residual()\n"
    "model small {\n"
    "  context = 37, width = D, mask = full, connection = conn, pre_norm = layer_norm(eps = 1e-6)\n"
    "  init = normal(std = 0.3), out_init = normal(std = 0.3)\n"
    "  embed patches { image = 12, patch = 2, channels = 3, scale = 2, shift = -0.5 }\n"
    "  embed class { }\n"
    "  embed position { size = 37 }\n"
    "  for layer in 1..2 {\n"
    "    attention { heads = 2, q_proj = linear(bias = true), k_proj = linear(bias = true), v_proj = linear(bias = "
    "true),\n"
    "                o_proj = linear(bias = true, init = scope.out_init) }\n"
    "    ffn { hidden = 40, activation = gelu, bias = true }\n"
    "  }\n"
    "  head classify { norm = layer_norm(eps = 1e-6), pool = first, classes = 17, bias = true, smoothing = 0.1 }\n"
    "}\n";

/* Noise in images is predicted, given a time and a class, by sublayers that these modulate. */
static const char denoise_text[] =
    "edition = 1\n"
    "import \"std/transformer\"\n"
    "import \"std/connections\"\n"
    "import \"std/vision\"\n"
    "let D    = 24\n"
    "let conn = residual()\n"
    "let free = layer_norm(eps = 1e-6, gain = false, bias = false)\n"
    "model small {\n"
    "  context = 36, width = D, mask = full, connection = conn, pre_norm = free\n"
    "  init = normal(std = 0.3), out_init = normal(std = 0.3)\n"
    "  cond = time_and_class(classes = 16, drop_class = 0.3, features = 6)\n"
    "  embed noised { image = 12, patch = 2, channels = 3, steps = 40 }\n"
    "  embed grid { side = 6 }\n"
    "  for layer in 1..2 {\n"
    "    adaptive attention { f = attention(heads = 2, qk_norm = rms_norm(eps = 1e-6)) }\n"
    "    adaptive ffn { f = ffn(hidden = 40, activation = gelu_tanh, bias = true) }\n"
    "  }\n"
    "  head noise { norm = free, variance = fixed }\n"
    "}\n";

static const char train_images[] =
    "train {\n"
    "  data = arrays(image = \"none.npy\", labels = \"none.npy\"), batch = 4 images, length = 10 steps, seed = 1\n"
    "  precision = fp32, clip = 1\n"
    "  optimizer adamw { lr = 1e-2, betas = [0.9, 0.95], eps = 1e-8, weight_decay = 0.1 }\n"
    "}\n";

typedef struct Variant {
    const char *name;
    const char *set[9]; /* overrides of the text; NULL at the end */
} Variant;
static const Variant variants[] = {
    {"gpt", {NULL}},
    {"documents", {"model.mask=document", "train.data=text_file(\"none.txt\", separator = \"x\")", NULL}},
    {"recompute", {"train.recompute=[layer]", "conn=hyper(n = 2, dynamic = true)", NULL}},
    {"layer norm, gelu",
     {"norm=layer_norm(eps = 1e-5)", "turn=rope(base = 100, interleaved = true, fraction = 4 / 6)",
      "sub=ffn(hidden = 9, activation = gelu, bias = true)", NULL}},
    {"post norm", {"conn=post_norm(norm = layer_norm(eps = 1e-5))", NULL}},
    {"hyper 4 static",
     {"conn=hyper(n = 4, dynamic = false)", "norm=rms_norm(eps = 1e-6, offset = 1)",
      "turn=rope(base = 100, interleaved = true)", NULL}},
    {"hyper 4 dynamic", {"conn=hyper(n = 4, dynamic = true)", NULL}},
    {"hyper 1, mean", {"conn=hyper(n = 1, dynamic = true, collapse = mean)", NULL}},
    {"frac 4", {"conn=frac(m = 4, dynamic = true)", NULL}},
    {"ghc (2,3)", {"conn=ghc(m = 2, n = 3, dynamic = true, reduce = linear(out = D))", "wide=18", NULL}},
    {"ghc (4,8)",
     {"conn=ghc(m = 4, n = 8, dynamic = true, reduce = group_reduce(size = D, out = D))", "wide=24", NULL}},
    {"ghc (1,4)", {"conn=ghc(m = 1, n = 4, dynamic = true, reduce = linear(out = D))", "wide=48", NULL}},
    {"mhc 3", {"conn=mhc(n = 3, iterations = 4)", NULL}},
    {"nexus", {"map=nexus_rank(M = 13, A = 14)", NULL}},
    {"nexus, released",
     {"map=nexus_rank(M = 13, A = 14, normalise = l2)", "sub=nexus_rank(M = 13, A = 10, out = D, normalise = l2)",
      NULL}},
    {"pattention", {"map=pattention(slots = 7)", NULL}},
    {"pattention, others",
     {"map=pattention(slots = 7, normalise = gelu_l2)", "sub=pattention(slots = 5, normalise = softmax)", NULL}},
    {"carried", {"widths=[8, 16]", "conn=carried(widths = widths, head = D, norm = norm)", "head.lm.norm=none", NULL}},
    {"carried, wider again",
     {"D=40", "widths=[84, 20, 44, 84]", /* parts of two ages are put together by copies */
      "conn=carried(widths = widths, head = D, final = after_slice)", NULL}},
    {"carried, missing",
     {"widths=[16, 8]", "conn=carried(widths = widths, head = D, expand = missing, final = after_slice)", NULL}},
    {"moe",
     {"sub=moe(experts = 5, active = 2, hidden = 7, activation = silu, scores = softmax, normalize = true, "
      "balance = 0.01, z_loss = 0.001, shared = 1)",
      NULL}},
};

static const struct ImageVariant {
    Variant v;
    const char *text;
    bool constants; /* something that moves is a constant in the backward pass */
} image_variants[] = {
    {{"images", {NULL}}, classify_text, false},
    {{"images, hyper 2", {"conn=hyper(n = 2, dynamic = true)", NULL}}, classify_text, false},
    {{"noise", {NULL}}, denoise_text, false},
    {{"noise, hyper 2", {"conn=hyper(n = 2, dynamic = true)", NULL}}, denoise_text, false},
    {{"noise, bound", {"head.noise.variance=learned", NULL}}, denoise_text, true},
};

enum {
    TEXT_MODELS = sizeof variants / sizeof *variants,
    MODELS = TEXT_MODELS + sizeof image_variants / sizeof *image_variants
};

/* Those of text come first. */
static inline const Variant *model_variant(size_t i)
{
    return i < TEXT_MODELS ? &variants[i] : &image_variants[i - TEXT_MODELS].v;
}

static inline const char *variant_text(Ctx *ctx, const Variant *v)
{
    for (size_t i = 0; i < MODELS - TEXT_MODELS; i++)
        if (image_variants[i].v.name == v->name)
            return arena_printf(ctx->program, "%s%s", image_variants[i].text, train_images);
    return model_text;
}

/* Runs fn(ctx, arg); false, with the reason on stderr, when it raised. */
static inline bool guarded(Ctx *ctx, void (*fn)(Ctx *ctx, void *arg), void *arg)
{
    CtxGuard guard;
    if (CTX_TRY(ctx, &guard)) {
        fn(ctx, arg);
        ctx_leave(ctx, &guard);
        return true;
    }
    fprintf(stderr, "raised %d: %s\n", ctx->raised, ctx->message);
    return false;
}

/* The exit status of a test of those of n cases that are drawn; an argument names the only one. */
static inline int run_drawn(int argc, char **argv, CaseDraw *d, size_t n, const char *(*name)(size_t),
                            bool (*run)(size_t))
{
    int passed = 0, failed = 0;
    for (size_t i = 0; i < n; i++)
        if (argc < 2 ? case_drawn(d, i) : strcmp(argv[1], name(i)) == 0)
            run(i) ? passed++ : failed++;
    cases_end(d);
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0 || !passed; /* a draw of nothing, and a name that no case has, prove nothing */
}

static inline int run_cases(int argc, char **argv, size_t n, const char *(*name)(size_t), bool (*run)(size_t))
{
    return run_drawn(argc, argv, &(CaseDraw){.one_in = 1, .sanitized = 1}, n, name, run);
}

static inline void show_diagnostics(Ctx *ctx)
{
    for (size_t i = 0; i < diag_count(ctx); i++) {
        Buf b = buf_new(ctx->program);
        diag_render(ctx, &b, diag_get(ctx, i), false);
        fputs(b.s, stderr);
    }
}

/* Checks `text` with overrides; exits with the diagnostics when it has errors. */
static inline Unit *load_text(Ctx *ctx, const char *text, const char *const *set)
{
    size_t n = 0;
    while (set && set[n])
        n++;
    CheckOptions how = {.path = "-", .text = text, .text_length = strlen(text), .set = set, .n_set = n};
    Unit *u = check_file(ctx, &how);
    if (!u->model || diag_errors(ctx)) {
        show_diagnostics(ctx);
        exit(1);
    }
    return u;
}

/* A reproducible number in [-1, 1). */
static inline double noise(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 11) / (double)(1ull << 52) - 1;
}

/* A seed of its own for every name (FNV-1a): numbers that a test was looked at with stay. */
static inline uint64_t seed_of(const char *name, uint64_t seed)
{
    uint64_t h = seed ^ 0xcbf29ce484222325u;
    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * 0x100000001b3u;
    h ^= h >> 32;
    return h * 0x9e3779b97f4a7c15u;
}

/* Parameter i as it is born, plus noise of size `amount`. */
static inline void random_param(const Param *p, double amount, double *out)
{
    param_init(p, 1, out);
    uint64_t state = seed_of(p->path, 7);
    for (int64_t i = 0; i < p->elements; i++)
        out[i] += amount * noise(&state);
}

/* Bindings for every ext tensor of g at B, T: parameters with noise, tokens and labels at random (every fifth
 * label absent), everything else zero. */
static inline RefBinding *bind_all(Arena *arena, const Graph *g, const Model *m, int64_t B, int64_t T, double amount)
{
    RefBinding *bind = NEW_ARRAY(arena, RefBinding, g->ext.n + 1);
    uint64_t state = 99;
    for (size_t i = 0; i < g->ext.n; i++) {
        const Ext *e = &g->ext.v[i];
        int64_t d[MAX_RANK];
        for (int k = 0; k < e->shape.rank; k++)
            d[k] = dim_at(e->shape.d[k], B, T);
        Tensor *t = tensor_new(arena, e->dtype, e->shape.rank, d);
        bind[i] = (RefBinding){e->kind, e->name, t};
        for (size_t k = 0; k < m->param.n; k++)
            if ((e->kind == EXT_PARAM || e->kind == EXT_BUFFER) && m->param.v[k].path == e->name)
                random_param(&m->param.v[k], m->param.v[k].buffer ? 0 : amount, t->real);
        if (e->kind != EXT_INPUT)
            continue;
        bool labels = e->name[0] == 'l';
        for (int64_t k = 0; k < t->size; k++) {
            double x = (noise(&state) + 1) / 2;
            if (e->dtype == DT_INT)
                t->integer[k] = labels && k % 5 == 4 ? -1 : (int64_t)(x * 17);
            else
                t->real[k] = x - 0.5;
        }
    }
    return bind;
}

static inline Tensor *bound(RefBinding *bind, const Graph *g, ExtKind kind, Name name)
{
    for (size_t i = 0; i < g->ext.n; i++)
        if (bind[i].kind == kind && bind[i].name == name)
            return bind[i].tensor;
    return NULL;
}

#endif
