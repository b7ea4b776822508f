/* wirings.c - connections that are the same transformer written in two ways compute the same numbers.
 *
 * In:  pairs of models of the text below, every weight at random.   Out: `N passed, N failed`.
 * Given matrices of hyper-connections against plain wirings (arXiv 2409.19606 sections 3.1, 3.2, G and H, with
 * the correction that its parallel pair doubles the residual), AltUp against its matrix, norms in their places.
 * The one idea: a weight is random by its path, so a model has the same weights however it is wired.
 * When: quick.
 */
#include "support/models.h"

static const char text[] =
    "edition = 1\n"
    "import \"std/transformer\"\n"
    "import \"std/connections\"\n"
    "let D = 12\nlet wide = D\nlet scale = 1\nlet n = 2\nlet abreast = 0\n"
    "let norm = rms_norm(eps = 1e-6)\nlet before = norm\nlet behind = none\nlet conn = residual()\n"
    "let P = [[1.2, 0.3, -0.4], [0.5, 0.8, 0.1], [-0.2, 0.6, 1.1]]\n"
    "let g = [0.7, -1.3, 0.9]\n"
    "block head_probe()(x: [B, T, E]) -> [B, T, E] { output.logits = x, loss.probe = mean(x * x), return x }\n"
    "block embed_centred()() -> [B, T, wide] {\n"
    "  param W : [17, D] = normal(std = 1)\n"
    "  x = gather(W, input.tokens)\n"
    "  x = scale * (x - mean(x, over = -1, keep = true))\n"
    "  return if wide == D then x else concat(x, x)\n"
    "}\n"
    /* What the plain wirings need that is no block of the library. */
    "block doubled(a: float) {\n"
    "  block open()(e: [.., D]) -> [.., D] { return e }\n"
    "  block step(k: int)(x: [.., D], f: block) -> [.., D] { return a * x + f(x) }\n"
    "  block close()(x: [.., D]) -> [.., D] { return x }\n"
    "}\n"
    "block normed() {\n"
    "  block open()(e: [.., D]) -> [.., D] { return e }\n"
    "  block step(k: int)(x: [.., D], f: block) -> [.., D] { return x + norm(f(x)) }\n"
    "  block close()(x: [.., D]) -> [.., D] { return x }\n"
    "}\n"
    "block post_matrix() {\n"
    "  block open()(e: [.., D]) -> [.., D] { return e }\n"
    "  block step(k: int)(x: [.., D], f: block) -> [.., D] {\n"
    "    y = f(x)\n"
    "    y = y - mean(y, over = -1, keep = true)\n"
    "    b = 1 / sqrt(mean(x * x + y * y + 2 * x * y, over = -1, keep = true) + 1e-5)\n"
    "    return b * y + b * x\n"
    "  }\n"
    "  block close()(x: [.., D]) -> [.., D] { return x }\n"
    "}\n"
    "block hop(attention: block, ffn: block)(x: [B, T, D]) -> [B, T, D] {\n"
    "  return ffn(norm(x + attention(norm(x))))\n"
    "}\n"
    "block add_up()(x: [.., E]) -> [.., D] { return sum(reshape(x, [.., E / D, D]), over = -2) }\n"
    "block altup_matrix(j: int, own: bool) {\n"
    "  return hyper_matrix(B = g, A_m = [if i == j then 1 else 0 for i in 1..3], A_r = [[\n"
    "    P[b, a] - g[b] * P[j, a] + (if own and a == j then g[b] else 0) for b in 1..3] for a in 1..3])\n"
    "}\n"
    "let attn = attention(heads = 2, position = rope(base = 100))\n"
    "let mlp  = ffn(hidden = 10, activation = gelu)\n"
    "model small {\n"
    "  context = 8, width = D, mask = causal, connection = conn, connection_per = sublayer, pre_norm = before, "
    "out_norm = behind\n"
    "  init = normal(std = 0.3), out_init = normal(std = 0.3), allow = [no_norm]\n"
    "  embed centred { }\n"
    "  for layer in 1..2 {\n"
    "    if abreast == 0 {\n"
    "      attention { heads = 2, position = rope(base = 100) }\n"
    "      ffn { hidden = 10, activation = gelu }\n"
    "      if n == 3 { ffn third { hidden = 9, activation = gelu } }\n"
    "    } else if abreast == 1 {\n"
    "      parallel {\n"
    "        attention { heads = 2, position = rope(base = 100) }\n"
    "        ffn { hidden = 10, activation = gelu }\n"
    "      }\n"
    "    } else if abreast == 2 {\n"
    "      parallel {\n"
    "        attention { heads = 2, position = rope(base = 100) }\n"
    "        ffn { hidden = 10, activation = gelu }\n"
    "        ffn third { hidden = 9, activation = gelu }\n"
    "      }\n"
    "    } else if abreast == 3 {\n"
    "      hop { attention = attn, ffn = mlp, pre_norm = none }\n"
    "    } else {\n"
    "      shared_norm { norm = norm, left = attn, right = mlp, pre_norm = none }\n"
    "    }\n"
    "  }\n"
    "  head probe { }\n"
    "}\n"
    /* The matrices as the sheet of the papers has them. */
    "check wiring(kind = sequential) == [[[0, 1, 1], [1, 1, 0], [0, 0, 1]]]\n"
    "check wiring(kind = parallel) == [[[0, 1, 0], [1, 0, 1], [1, 0, 1]], [[0, 0, 1], [0, 1, 0], [1, 0, 1]]]\n"
    "check wiring(kind = parallel_doubled) == [[[0, 1, 0], [1, 1, 1], [1, 1, 1]], [[0, 0, 1], [0, 1, 0], [1, 0, 1]]]\n"
    "check wiring(kind = two_hop) == [[[0, 0, 1], [1, 1, 1], [0, 0, 0]], [[0, 1, 0], [0, 1, 0], [1, 0, 0]]]\n"
    "check wiring(kind = sequential, n = 1) == [[[0, 1], [1, 1]]]\n";

#define BARE              "norm=rms_norm(eps = 1e-6, gain = false)"
#define FIXED(kind, n)    "conn=hyper_fixed(n = " n ", matrices = wiring(kind = " kind ", n = " n ")"
#define ALTUP(own)        "conn=altup(n = 3, own_residual = " own ", predict = P, correct = [[x] for x in g])"
#define ALTUP_MATRIX(own) "conn=hyper_fixed(n = 3, matrices = [altup_matrix(j = j, own = " own ") for j in 1..3])"

static const struct Pair {
    const char *name, *a[8], *b[8];
    enum { SAME, SAME_BY_LAYER, DIFFER } are; /* BY_LAYER: weights of a layer's connections are drawn by one name */
} pairs[] = {
    {"sequential, n = 1", {FIXED("sequential", "1") ")"}, {NULL}, SAME},
    {"sequential, n = 2, mean", {FIXED("sequential", "2") ", collapse = mean)"}, {NULL}, SAME},
    {"sequential, n = 4, mean", {FIXED("sequential", "4") ", collapse = mean)"}, {NULL}, SAME},
    {"parallel pair", {FIXED("parallel", "2") ")"}, {"abreast=1", "scale=2"}, SAME},
    {"parallel pair, one copy", {FIXED("parallel", "2") ", replicate = [0, 1])"}, {"abreast=1"}, SAME},
    {"parallel three", {FIXED("parallel", "3") ")", "n=3"}, {"abreast=2", "scale=3"}, SAME},
    {"the paper's pair doubles s",
     {FIXED("parallel_doubled", "2") ")"},
     {"abreast=1", "scale=2", "conn=doubled(a = 2)"},
     SAME},
    {"the paper's three",
     {FIXED("parallel_doubled", "3") ")", "n=3"},
     {"abreast=2", "scale=3", "conn=doubled(a = 3)"},
     SAME},
    {"the paper's pair is no parallel", {FIXED("parallel_doubled", "2") ")"}, {"abreast=1", "scale=2"}, DIFFER},
    {"two-hop", {FIXED("two_hop", "2") ")", BARE}, {"abreast=3", BARE}, SAME},
    {"post-norm as a matrix",
     {"conn=post_matrix()", "before=none"},
     {"conn=post_norm(norm = layer_norm(eps = 1e-5, gain = false, bias = false))", "before=none"},
     SAME},
    {"AltUp of layers", {ALTUP("true")}, {ALTUP_MATRIX("true")}, SAME},
    {"AltUp of functions", {ALTUP("false")}, {ALTUP_MATRIX("false")}, SAME},
    {"AltUp of layers is not of functions", {ALTUP("true")}, {ALTUP("false")}, DIFFER},
    {"AltUp of one stream", {"conn=altup(n = 1)"}, {NULL}, SAME},
    {"sandwich norm", {"behind=norm", BARE}, {"conn=normed()", BARE}, SAME},
    {"reordered norm", {"behind=norm", "before=none", BARE}, {"conn=normed()", "before=none", BARE}, SAME},
    {"one norm of two side by side", {"abreast=4", BARE}, {"abreast=1", BARE}, SAME},
    {"hyper reading one stream is ghc (1,2)",
     {"conn=hyper(n = 2, dynamic = false, read = [1])"},
     {"conn=ghc(m = 1, n = 2, dynamic = false, reduce = add_up())", "wide=24"},
     SAME},
    {"dynamic for attention alone, two ways",
     {"conn=hyper(n = 2, dynamic = true)", "layer[*].ffn.connection=hyper(n = 2, dynamic = false)"},
     {"conn=hyper(n = 2, dynamic = false)", "layer[*].attention.connection=hyper(n = 2, dynamic = true)"},
     SAME},
    {"dynamic for attention alone is not for all",
     {"conn=hyper(n = 2, dynamic = true)", "layer[*].ffn.connection=hyper(n = 2, dynamic = false)"},
     {"conn=hyper(n = 2, dynamic = true)"},
     DIFFER},
    {"off for the FFN is its sequential matrix",
     {"conn=hyper(n = 2, dynamic = true)",
      "layer[*].ffn.connection=hyper_fixed(n = 2, matrices = wiring(kind = sequential))"},
     {"conn=hyper_fixed(n = 2, matrices = wiring(kind = sequential))",
      "layer[*].attention.connection=hyper(n = 2, dynamic = true)"},
     SAME},
    {"one connection for a layer is two with the same weights",
     {"conn=hyper(n = 2, dynamic = true, read = [1], norm = layer_norm(eps = 1e-5))", "model.connection_per=layer"},
     {"conn=hyper(n = 2, dynamic = true, read = [1], norm = layer_norm(eps = 1e-5))"},
     SAME_BY_LAYER},
    {"one connection for a layer is not two",
     {"conn=hyper(n = 2, dynamic = true, read = [1])", "model.connection_per=layer"},
     {"conn=hyper(n = 2, dynamic = true, read = [1])"},
     DIFFER},
    {"reading in turn is another model",
     {"conn=hyper(n = 2, dynamic = false, read = [1, 1, 2, 2])"},
     {"conn=hyper(n = 2, dynamic = false)"},
     DIFFER},
};

/* The name by which a weight is drawn: its path without what only says how sublayers are placed. */
static const char *weight_name(Ctx *ctx, const char *path, bool per_layer)
{
    static const char *const same[][2] = {{"parallel.", ""},
                                          {"hop.", ""},
                                          {"shared_norm.left", "attention"},
                                          {"shared_norm.right", "ffn"},
                                          {".A_in", ".A_m"},
                                          {".A_carry", ".A_r"},
                                          {"attention.connection", "connection"},
                                          {"ffn.connection", "connection"}};
    enum { OF_LAYERS = 2 }; /* the last ones */
    size_t n = COUNT_OF(same) - (per_layer ? 0 : OF_LAYERS);
    Buf b = buf_new(ctx->program);
    while (*path) {
        size_t i = 0;
        while (i < n && strncmp(path, same[i][0], strlen(same[i][0])) != 0)
            i++;
        if (i == n) {
            buf_putc(&b, *path++);
        } else {
            buf_puts(&b, same[i][1]);
            path += strlen(same[i][0]);
        }
    }
    return b.s;
}

typedef struct Run {
    const char *const *set;
    bool per_layer;
    Tensor *x; /* what the head reads */
    size_t weights;
} Run;

/* Weights of sublayers are drawn; those of a connection are what the pair gives, or theirs and a little. */
static void state_of(Ctx *ctx, void *arg)
{
    Run *r = arg;
    Unit *u = load_text(ctx, text, r->set);
    for (size_t i = 0; i < u->check.n; i++)
        if (u->check.v[i].state == CHECK_FALSE)
            vwn_bug(ctx, "false: %s", u->check.v[i].text);
    Graph *g = step_predict(u->model, ctx->program);
    RefBinding *bind = bind_all(ctx->program, g, u->model, 2, 8, 0);
    for (size_t i = 0; i < u->model->param.n; i++) {
        const Param *p = &u->model->param.v[i];
        Tensor *t = bound(bind, g, EXT_PARAM, p->path);
        bool given = strstr(p->path, "connection.") && p->group == name_str(ctx, "static");
        double amount = !given ? 0.6 : strstr(r->set[0] ? r->set[0] : "", "altup") ? 0 : 0.3;
        uint64_t state = seed_of(weight_name(ctx, p->path, r->per_layer), 3);
        for (int64_t k = 0; t && k < t->size; k++)
            t->real[k] = (given ? t->real[k] : 0) + amount * noise(&state);
        r->weights += t != NULL;
    }
    RefRun run = {.B = 2, .T = 8, .seed = 1, .bind = bind, .n_bind = g->ext.n};
    Tensor **out = NEW_ARRAY(ctx->program, Tensor *, g->out.n + 1);
    ref_evaluate(g, ctx->program, &run, out);
    r->x = out[0];
}

static bool compare(const struct Pair *p)
{
    Ctx *ca = ctx_new(NULL), *cb = ctx_new(NULL);
    Run a = {.set = p->a, .per_layer = p->are == SAME_BY_LAYER},
        b = {.set = p->b, .per_layer = p->are == SAME_BY_LAYER};
    double worst = INFINITY, size = 0;
    if (guarded(ca, state_of, &a) && guarded(cb, state_of, &b) && a.x->size == b.x->size) {
        worst = 0;
        for (int64_t k = 0; k < a.x->size; k++) {
            double d = fabs(a.x->real[k] - b.x->real[k]);
            worst = isnan(d) ? INFINITY : fmax(worst, d);
            size = fmax(size, fabs(a.x->real[k]));
        }
    }
    bool ok = size > 0.1 && a.weights > 10 &&
              (p->are == DIFFER ? worst > 1e-3 * size && worst < INFINITY : worst < 1e-13 * size);
    printf("%-40s %zu weights, max |difference| %.1e of %.2f%s\n", p->name, a.weights, worst, size,
           ok ? "" : "  FAILED");
    ctx_free(ca);
    ctx_free(cb);
    return ok;
}

int main(void)
{
    int passed = 0, failed = 0;
    for (size_t i = 0; i < COUNT_OF(pairs); i++)
        compare(&pairs[i]) ? passed++ : failed++;
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
