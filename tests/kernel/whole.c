/* whole.c - kernel programs of whole models, interpreted in float64, against the reference evaluator.
 *
 * In:  the models of models.h and of examples/, made small; every parameter, gradient and moment at
 *      random; forward, backward and update graphs; fused and unfused; rows 1, 31, 33 and a prime.
 * Out: `N passed, N failed`. Every tensor that a program stores or returns agrees to 1e-9 of its size;
 *      every kernel reads back from its lines and prints the same C; a plan made twice is the same.
 * The one idea: without rounding and without a compiler between them nothing is left that a tolerance
 * could hide.
 */
#include "../models.h"

#include "interpret.h"

typedef struct Source {
    const char *file; /* of examples/; NULL: the text of models.h */
    Variant v;
} Source;

/* What stands in an example, and what stands there instead. */
static const char *const smaller[][2] = {
    {"vocab = 151_936", "vocab = 23"}, {"vocab = 50_304", "vocab = 23"},
    {"vocab = 32_000", "vocab = 23"},  {"vocab = 65", "vocab = 23"},
    {"hidden = 8192", "hidden = 20"},  {"hidden = 3072", "hidden = 20"},
    {"hidden = 2048", "hidden = 20"},  {"hidden     = 1024", "hidden     = 7"},
    {"head_dim = 128", "head_dim = 4"}, {"head_dim = 64", "head_dim = 6"},
    {"layer in 1..8", "layer in 1..4"}, {"experts    = 64", "experts    = 9"},
    {"active     = 8", "active     = 2"}, {"heads = 16", "heads = 4"},
    {"heads    = 16", "heads    = 4"}, {"kv_heads = 8", "kv_heads = 2"},
    {"patch = 16", "patch = 112"},     {"image = 224", "image = 336"},
    {"context    = 197", "context    = 10"}, {"size = 197", "size = 10"},
    {"heads  = 16", "heads  = 4"},     {"classes = 1000", "classes = 11"},
    {"round      = 32", "round      = 8"}, {"let V       = 32_000", "let V = 23"},
    {"let L         = 24", "let L = 1"},
};

#define PLUS(width, head) "D=" width, "L=1", "F=20", "V=23", "head_dim=" head
static const Source sources[] = {
    {"01_nano.vwn", {"nano", {"D=24", "L=2", NULL}}},
    {"02_olmo_1b.vwn", {"olmo", {"D=24", "L=2", NULL}}},
    {"02_olmo_1b.vwn", {"olmo hyper", {"D=24", "L=2", "conn=hyper(n = 4, dynamic = true)", NULL}}},
    {"03_qwen3_0_6b.vwn", {"qwen3", {"D=24", "L=2", NULL}}},
    {"06_vwn_1_5x_mtp.vwn", {"vwn 1.5x, mtp", {"D=24", "L=1", NULL}}},
    {"07_vwn_x8_moe.vwn", {"vwn x8, moe", {"D=16", "L=1", "V=23", NULL}}},
    {"08_xformer_500m.vwn", {"xformer", {"d=48", "L=4", "V=23", NULL}}},
    {"09_nexus_growth.vwn", {"nexus", {"D=24", "M=26", "L=1", NULL}}},
    {"10_tokenformer_growth.vwn", {"tokenformer", {"D=32", "slots=9", "ffn_slots=11", "V=23", "heads=4", NULL}}},
    {"24_xformer_moe.vwn", {"xformer moe", {"d=48", "L=3", "V=23", "experts=5", NULL}}},
    {"25_nexus_released.vwn", {"nexus, all maps", {"D=24", "M=26", "A=30", "F=40", "L=1", "V=23", NULL}}},
    {"13_vit_hyper.vwn", {"vit", {"D=16", "L=1", NULL}}},
    {"14_own_connection.vwn", {"own connection", {"D=16", NULL}}},
    {"15_olmoe_1b_7b.vwn", {"olmoe", {"D=24", "L=1", "V=23", "F=5", "E=9", "H=4", NULL}}},
    {"16_transformer_pp.vwn", {"altup", {PLUS("24", "6"), "conn=altup(n = 3)", NULL}}},
    {"16_transformer_pp.vwn", {"mhc", {PLUS("16", "4"), "conn=mhc(n = 2, iterations = 3, start = softmax, eps = 1e-6)",
                                       NULL}}},
    {"16_transformer_pp.vwn", {"mhc, otherwise", {PLUS("16", "4"), "conn=mhc(n = 2, iterations = 2, start = sigmoid, "
                                                                   "transposed = true, collapse = predicted)", NULL}}},
    {"16_transformer_pp.vwn", {"hyper, linear", {PLUS("24", "6"), "conn=hyper(n = 3, dynamic = true, squash = none, "
                                                  "norm = none, factor = none, replicate = [1, 0, 2], collapse = learned)",
                                                 NULL}}},
    {"16_transformer_pp.vwn", {"frac, linear", {PLUS("24", "6"), "conn=frac(m = 3, dynamic = true, norm = none, "
                                                                 "squash = none, factor = none)", NULL}}},
    {"16_transformer_pp.vwn", {"two-hop", {PLUS("24", "6"), "conn=hyper_fixed(n = 2, matrices = wiring(kind = two_hop))",
                                           "before=none", "behind=norm", NULL}}},
    {"16_transformer_pp.vwn", {"residual_dual", {PLUS("24", "6"), "conn=residual_dual(norm = norm)", "before=none",
                                                 "abreast=true", NULL}}},
    {"quickstart.vwn", {"quickstart", {"D=24", "L=2", NULL}}},
    /* products of matrices of one row */
    {NULL, {"ghc (8,16)", {"conn=ghc(m = 8, n = 16, dynamic = true, reduce = linear(out = D))",
                           "D=128", "wide=256", NULL}}},
    {NULL, {"ghc (8,32)", {"conn=ghc(m = 8, n = 32, dynamic = true, reduce = linear(out = D))",
                           "D=64", "wide=256", NULL}}},
};

static const char train_text[] =
    "\ntrain {\n"
    "  data = text_file(\"none.txt\"), tokenizer = chars(), batch = 4 seqs, length = 10 steps, seed = 1\n"
    "  precision = fp32, clip = 1\n"
    "  optimizer adamw { lr = 1e-2, betas = [0.9, 0.95], eps = 1e-8, weight_decay = 0.1 }\n"
    "}\n";

typedef struct Sizes {
    int64_t B, T;
} Sizes;
static const Sizes sizes[] = {{1, 1}, {1, 31}, {3, 11}, {37, 1}};

typedef struct Case {
    const Source *source;
    const char *program;
    Sizes at;
    bool no_fusion, skipped;
    double worst; /* relative to the size of the tensor */
    const char *name;
    size_t compared;
} Case;

static void replace_all(Buf *out, const char *text)
{
    while (*text) {
        size_t i = 0;
        while (i < COUNT_OF(smaller) && strncmp(text, smaller[i][0], strlen(smaller[i][0])) != 0)
            i++;
        if (i == COUNT_OF(smaller)) {
            buf_putc(out, *text++);
        } else {
            buf_puts(out, smaller[i][1]);
            text += strlen(smaller[i][0]);
        }
    }
}

/* The example without what it claims about its own size and without its growth steps. */
static const char *small_text(Ctx *ctx, const Source *s)
{
    char path[512], line[1024];
    Buf text = buf_new(ctx->program), out = buf_new(ctx->program);
    snprintf(path, sizeof path, "%s/examples/%s", VWN_SOURCE_DIR, s->file);
    FILE *f = fopen(path, "r");
    bool train = false, grow = false;
    while (f && fgets(line, sizeof line, f)) {
        train = train || strncmp(line, "train {", 7) == 0;
        grow = grow || strncmp(line, "grow ", 5) == 0;
        if (!grow && strncmp(line, "check ", 6) != 0 && !strstr(line, "recompute"))
            buf_puts(&text, line);
        grow = grow && line[0] != '}';
    }
    if (!f)
        vwn_bug(ctx, "no %s", path);
    fclose(f);
    replace_all(&out, text.s);
    if (!train && !strstr(text.s, "head classify"))
        buf_puts(&out, train_text);
    return out.s;
}

static Graph *program_of(Ctx *ctx, const Unit *u, const char *program)
{
    if (strcmp(program, "eval") == 0)
        return step_evaluate(u->model, ctx->program);
    if (!u->train)
        return NULL;
    return strcmp(program, "train") == 0 ? step_gradient(u->model, u->train, true, ctx->program)
                                         : step_update(u->model, u->train, ctx->program);
}

static RefBinding *bindings(Ctx *ctx, const Graph *g, const Unit *u, Sizes at)
{
    RefBinding *bind = bind_all(ctx->program, g, u->model, at.B, at.T, 0.3);
    uint64_t state = 5;
    for (size_t i = 0; i < g->ext.n; i++) {
        ExtKind kind = bind[i].kind;
        for (int64_t k = 0; (kind == EXT_GRAD || kind == EXT_STATE) && k < bind[i].tensor->size; k++) {
            double x = noise(&state); /* moments: some must not be negative */
            if (bind[i].tensor->dtype == DT_REAL)
                bind[i].tensor->real[k] = kind == EXT_STATE ? fabs(x) : x;
        }
    }
    return bind;
}

static RefBinding *copies(Ctx *ctx, const RefBinding *from, size_t n)
{
    RefBinding *to = NEW_ARRAY(ctx->program, RefBinding, n + 1);
    for (size_t i = 0; i < n; i++) {
        const Tensor *t = from[i].tensor;
        to[i] = from[i];
        to[i].tensor = tensor_new(ctx->program, t->dtype, t->rank, t->d);
        memcpy(t->dtype == DT_INT ? (void *)to[i].tensor->integer : (void *)to[i].tensor->real,
               t->dtype == DT_INT ? (void *)t->integer : (void *)t->real, (size_t)t->size * 8);
    }
    return to;
}

static double largest_of(const Tensor *t)
{
    double most = 0;
    for (int64_t k = 0; t->dtype == DT_REAL && k < t->size; k++)
        most = fmax(most, fabs(t->real[k]));
    return most;
}

static void compare(Case *c, const Tensor *got, const Tensor *want, double scale, const char *name)
{
    double size = fmax(largest_of(want), scale), worst = 0;
    c->compared++;
    for (int64_t k = 0; k < want->size; k++) {
        double e;
        if (want->dtype == DT_INT)
            e = got->integer[k] == want->integer[k] ? 0 : INFINITY;
        else
            e = got->real[k] == want->real[k] ? 0 : fabs(got->real[k] - want->real[k]) / size;
        worst = e >= 0 ? fmax(worst, e) : INFINITY;
    }
    if (worst > c->worst) {
        c->worst = worst;
        c->name = name;
    }
}

static bool same_texts(Ctx *ctx, const Plan *a, const Plan *b)
{
    Buf x = buf_new(ctx->program), y = buf_new(ctx->program);
    plan_dump_programs(&x, a);
    plan_dump_kernels(&x, a);
    plan_dump_programs(&y, b);
    plan_dump_kernels(&y, b);
    return x.n == y.n && memcmp(x.s, y.s, x.n) == 0;
}

static void run(Ctx *ctx, void *arg)
{
    Case *c = arg;
    const char *text = c->source->file ? small_text(ctx, c->source) : variant_text(ctx, &c->source->v);
    Unit *u = load_text(ctx, text, c->source->v.set);
    Graph *g = program_of(ctx, u, c->program);
    c->skipped = !g;
    if (!g)
        return;
    g = graph_simplify(g, ctx->program);
    RefBinding *bind = bindings(ctx, g, u, c->at), *after = copies(ctx, bind, g->ext.n);
    double vars[HV_COUNT];
    for (int i = 0; i < HV_COUNT; i++)
        vars[i] = i + 1;
    PlanOptions how = {.B = c->at.B, .T = c->at.T, .no_fusion = c->no_fusion, .programs = true};
    Plan *p = plan_build(ctx, ctx->program, g, &how);
    plan_verify(ctx, p);
    if (!same_texts(ctx, p, plan_build(ctx, ctx->program, g, &how)))
        vwn_bug(ctx, "a plan made twice is not the same");
    HostRun run = {.B = c->at.B, .T = c->at.T, .seed = 7, .step = 3, .host_vars = vars, .bind = bind,
                   .n_bind = g->ext.n};
    Tensor **result = NEW_ARRAY(ctx->program, Tensor *, p->n_result + 1);
    Tensor **stored = NEW_ARRAY(ctx->program, Tensor *, g->ext.n + 1);
    interpret_plan(ctx, p, &run, false, result, stored);
    Tensor **want = NEW_ARRAY(ctx->program, Tensor *, g->out.n + 1);
    RefRun reference = {.B = c->at.B, .T = c->at.T, .seed = 7, .step = 3, .host_vars = vars,
                        .bind = after, .n_bind = g->ext.n};
    ref_evaluate(g, ctx->program, &reference, want);
    double scale = 1e-30;
    for (size_t i = 0; i < g->ext.n; i++)
        if (stored[i])
            scale = fmax(scale, largest_of(after[i].tensor) / 10);
    for (size_t i = 0, k = 0; i < g->out.n; i++)
        if (g->out.v[i].ext < 0)
            compare(c, result[k++], want[i], 1e-30, g->out.v[i].name);
    for (size_t i = 0; i < g->ext.n; i++)
        if (stored[i])
            compare(c, stored[i], after[i].tensor, scale, after[i].name);
}

static void print_bug(Ctx *ctx, const char *text)
{
    (void)ctx;
    printf("%.20000s\n", text);
}

static bool run_case(const Source *s, const char *program, Sizes at, bool no_fusion)
{
    Ctx *ctx = ctx_new(NULL);
    Case c = {.source = s, .program = program, .at = at, .no_fusion = no_fusion, .name = ""};
    ctx->on_bug = print_bug;
    bool ok = guarded(ctx, run, &c) && (c.skipped || (c.worst < 1e-9 && c.compared > 0));
    if (!c.skipped || !ok)
        printf("%-18s %-7s B %lld T %lld %-8s %zu tensors, worst %.1e at %s%s\n", s->v.name, program,
               (long long)at.B, (long long)at.T, no_fusion ? "unfused" : "fused", c.compared, c.worst,
               c.name, ok ? "" : "  FAILED");
    fflush(stdout);
    ctx_free(ctx);
    return ok;
}

int main(int argc, char **argv)
{
    static const char *const programs[] = {"train", "update", "eval"};
    int passed = 0, failed = 0;
    for (size_t i = 0; i < COUNT_OF(sources) + MODELS; i++) {
        Source own = i < COUNT_OF(sources) ? sources[i] : (Source){NULL, *model_variant(i - COUNT_OF(sources))};
        if (argc > 1 && strcmp(argv[1], own.v.name) != 0)
            continue;
        Sizes other = sizes[1 + i % 3], third = sizes[1 + (i + 1) % 3];
        for (int k = 0; k < 3; k++) {
            run_case(&own, programs[k], sizes[0], k == 2) ? passed++ : failed++;
            run_case(&own, programs[k], other, false) ? passed++ : failed++;
            run_case(&own, programs[k], third, true) ? passed++ : failed++;
        }
    }
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
