/* vision.c - transformers of images: published counts, and what the sublayers of DiT do at first.
 *
 * In:  examples/27 to 30, and a small model of noise in images.   Out: `N passed, N failed`.
 * ViT (arXiv 2010.11929) and DiT (2212.09748), plain and with hyper-connections (2409.19606).
 * When: quick.
 */
#include "compiler/file/check_unit.h"
#include "support/models.h"

static int passed, failed;

static void expect(const char *what, bool ok, double got)
{
    printf("%-58s %.12g%s\n", what, got, ok ? "" : "  FAILED");
    ok ? passed++ : failed++;
}

/* ---- counts ---- */

typedef struct Count {
    const char *what, *file, *set[6];
    int64_t params;
} Count;

static void count(Ctx *ctx, void *arg)
{
    const Count *c = arg;
    size_t n = 0;
    while (c->set[n])
        n++;
    char path[600];
    snprintf(path, sizeof path, "%s/examples/%s", VWN_SOURCE_DIR, c->file);
    CheckOptions how = {.path = path, .set = c->set, .n_set = n, .model_only = true};
    Unit *u = check_file(ctx, &how);
    show_diagnostics(ctx);
    ModelCount m = u->model ? model_count(u->model) : (ModelCount){0};
    expect(c->what, m.live == c->params && m.stored == c->params && m.buffers == 0, (double)m.live);
}

#define HYPER(D, L) (2 * (L) * ((D) * (2 + 2) + 2 * (2 + 2) + 2))
static const Count counts[] = {
    {"ViT-B/16", "27_vit.vwn", {NULL}, 86567656},
    {"ViT-B/16, hyper 2", "27_vit.vwn", {"conn=hyper(n = 2, dynamic = true)"}, 86567656 + HYPER(768, 12)},
    {"ViT-L/16", "27_vit.vwn", {"D=1024", "L=24", "H=16"}, 304326632},
    {"ViT-L/16, hyper 2",
     "27_vit.vwn",
     {"D=1024", "L=24", "H=16", "conn=hyper(n = 2, dynamic = true)"},
     304326632 + HYPER(1024, 24)},
    {"DiT-XL/2", "29_dit.vwn", {NULL}, 674834720},
    {"DiT-XL/2, hyper 2", "29_dit.vwn", {"conn=hyper(n = 2, dynamic = true)"}, 674834720 + HYPER(1152, 28)},
    {"DiT-XL/2, hyper 2, norm of queries and keys",
     "29_dit.vwn",
     {"conn=hyper(n = 2, dynamic = true)", "qk=rms_norm(eps = 1e-6)"},
     674834720 + HYPER(1152, 28) + 28 * 2 * 72},
};

/* ---- gates of zero ---- */

static double largest(const Tensor *t)
{
    double most = 0;
    for (int64_t k = 0; t && k < t->size; k++)
        most = fmax(most, fabs(t->real[k]));
    return most;
}

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);
    return n >= m && !strcmp(s + n - m, end);
}

/* The head's map of zeros hides everything below it: here it is at random. */
static const char *const with_head[] = {"head.noise.init=normal(std = 0.3)", NULL};
static const char *const with_head_hyper[] = {"head.noise.init=normal(std = 0.3)", "conn=hyper(n = 2, dynamic = true)",
                                              NULL};

/* Only gates have a gradient, and through them the condition has none yet; a connection's weights of the
 * output have none, since what they weigh is zero. */
static void first_gradients(Ctx *ctx, void *arg)
{
    Unit *u = load_text(ctx, variant_text(ctx, &image_variants[2].v), arg);
    const Model *m = u->model;
    Graph *g = step_gradient(m, u->train, true, ctx->program);
    RefBinding *bind = bind_all(ctx->program, g, m, 3, 1, 0);
    RefRun run = {.B = 3, .T = 1, .seed = 1, .bind = bind, .n_bind = g->ext.n};
    ref_evaluate(g, ctx->program, &run, NEW_ARRAY(ctx->program, Tensor *, g->out.n + 1));
    double gate = 0, rest = 0, inner = 0, weight = 0, patches = 0;
    for (size_t i = 0; i < m->param.n; i++) {
        const char *path = m->param.v[i].path;
        const Tensor *d = bound(bind, g, EXT_GRAD, m->param.v[i].path);
        if (!d || strncmp(path, "layer", 5) != 0) {
            if (!strncmp(path, "embed.", 6))
                patches = fmax(patches, largest(d));
        } else if (ends_with(path, ".map.b")) {
            int64_t D = d->size / 3; /* shift, scale, gate */
            for (int64_t k = 0; k < d->size; k++) {
                double *at = k < 2 * D ? &rest : &gate;
                *at = fmax(*at, fabs(d->real[k]));
            }
        } else if (strstr(path, ".f.")) {
            inner = fmax(inner, largest(d));
        } else if (ends_with(path, ".connection.B")) {
            weight = fmax(weight, largest(d));
        }
    }
    expect("  gradient of the gates", gate > 1e-6, gate);
    expect("  of scales and shifts", rest == 0, rest);
    expect("  of what is inside", inner == 0, inner);
    expect("  of a connection's weights of the output", weight == 0, weight);
    expect("  of the embedding, past silent sublayers", patches > 1e-6, patches);
}

/* ---- the bound ---- */

/* What is predicted exactly, with the smallest variance, is the true step back: at times above 0 the
 * bound is 0. Half way between the variances it is what the formula says. */
static const char bound_text[] =
    "edition = 1\n"
    "import \"std/transformer\"\n"
    "import \"std/connections\"\n"
    "import \"std/vision\"\n"
    "let v = 0\n"
    "block head_bound()(x: [B, N, D]) -> [B, N, D] {\n"
    "  let bound = step_bound()\n"
    "  y = bound(tied(embed, noised, noise), broadcast(v, [B, 48]))\n"
    "  time = tied(embed, noised, time)\n"
    "  loss.all = mean(y * unsqueeze(time > 0))\n"
    "  loss.first = mean(where(unsqueeze(time) == 0, y, 0))\n"
    "  output.logits = x\n"
    "  return x\n"
    "}\n"
    "model small {\n"
    "  context = 4, width = 8, mask = full, connection = residual(), init = normal(std = 0.3)\n"
    "  embed noised { image = 4, patch = 2, channels = 3, steps = 50 }\n"
    "  head bound { }\n"
    "}\n";

static double bound_of(Ctx *ctx, const char *v, const char *loss)
{
    const char *set[] = {arena_printf(ctx->program, "v=%s", v), NULL};
    Unit *u = load_text(ctx, bound_text, set);
    Graph *g = step_evaluate(u->model, ctx->program);
    enum { B = 400 };
    RefBinding *bind = bind_all(ctx->program, g, u->model, B, 1, 0);
    RefRun run = {.B = B, .T = 1, .seed = 1, .bind = bind, .n_bind = g->ext.n};
    Tensor **r = NEW_ARRAY(ctx->program, Tensor *, g->out.n + 1);
    ref_evaluate(g, ctx->program, &run, r);
    for (size_t i = 0; i < g->out.n; i++)
        if (!strcmp(g->out.v[i].name, loss))
            return r[i]->real[0];
    return NAN;
}

/* The same from the definition, for the times that were drawn. */
static double bound_by_hand(double v)
{
    enum { STEPS = 50, B = 400 };
    double beta[STEPS], bar[STEPS], all = 1, sum = 0;
    for (int i = 0; i < STEPS; i++) {
        beta[i] = 1000.0 / STEPS * (1e-4 + (0.02 - 1e-4) * i / (STEPS - 1));
        bar[i] = all *= 1 - beta[i];
    }
    uint64_t key = philox_key(1, "embed.noised#1");
    for (uint64_t i = 0; i < B; i++) {
        int t = (int)floor(philox_uniform(key, 0, i) * STEPS);
        if (t == 0)
            continue;
        double low = log(beta[t] * (1 - bar[t - 1]) / (1 - bar[t])), lv = low + (1 + v) / 2 * (log(beta[t]) - low);
        sum += (lv - low - 1 + exp(low - lv)) / 2 / log(2);
    }
    return sum / B;
}

static void bounds(Ctx *ctx, void *arg)
{
    (void)arg;
    double none = bound_of(ctx, "-1", "loss.all"), half = bound_of(ctx, "0", "loss.all"), want = bound_by_hand(0);
    double first = bound_of(ctx, "-1", "loss.first");
    expect("bound of the true step back", fabs(none) < 1e-12, none);
    expect("bound half way between the variances", fabs(half - want) < 1e-9 * want && want > 1e-3, half);
    expect("bound at time 0: a likelihood below 1", first > 0 && first < 1, first);
}

static void with_ctx(void (*fn)(Ctx *, void *), const void *arg)
{
    Ctx *ctx = ctx_new(NULL);
    if (!guarded(ctx, fn, (void *)arg))
        failed++;
    ctx_free(ctx);
}

int main(void)
{
    for (size_t i = 0; i < COUNT_OF(counts); i++)
        with_ctx(count, &counts[i]);
    printf("at first, residual\n");
    with_ctx(first_gradients, with_head);
    printf("at first, hyper 2\n");
    with_ctx(first_gradients, with_head_hyper);
    with_ctx(bounds, NULL);
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
