/* initial.c - at initialisation the connections are the residual model, exactly.
 *
 * In:  the small models of models.h at their initial values.   Out: `N passed, N failed`.
 * Hyper-connections (also manifold-constrained) closed by their mean, frac-connections, and the first D
 * coordinates of generalized hyper-connections (arXiv 2409.19606 section 2.3; 2503.14125; Virtual Width
 * Networks section 3.2).
 * When: quick.
 */
#include "support/models.h"

/* The state that the head reads, before its norm: as logits of a model whose head is the identity. */
static const char text[] =
    "edition = 1\n"
    "import \"std/transformer\"\n"
    "import \"std/connections\"\n"
    "let D = 12\nlet wide = D\nlet conn = residual()\n"
    "block head_probe()(x: [B, T, E]) -> [B, T, D] {\n"
    "  output.logits = first(x, D)\n"
    "  loss.probe = mean(x * x)\n"
    "  return first(x, D)\n"
    "}\n"
    "block embed_wide(width: dim)() -> [B, T, width] {\n"
    "  param W : [17, D] = normal(std = 1)\n"
    "  param X : [17, width - D] = normal(std = 1)\n"
    "  return concat(gather(W, input.tokens), gather(X, input.tokens))\n"
    "}\n"
    "model small {\n"
    "  context = 8, width = D, mask = causal, connection = conn, pre_norm = rms_norm(eps = 1e-6)\n"
    "  init = normal(std = 0.3), out_init = normal(std = 0.3)\n"
    "  embed wide { width = wide }\n"
    "  for layer in 1..3 {\n"
    "    attention { heads = 2, position = rope(base = 100) }\n"
    "    ffn { hidden = 10, activation = gelu }\n"
    "  }\n"
    "  head probe { }\n"
    "}\n";

typedef struct State {
    const char *const *set;
    Tensor *x;
} State;

static void state_of(Ctx *ctx, void *arg)
{
    State *s = arg;
    const char *const *set = s->set;
    Unit *u = load_text(ctx, text, set);
    Graph *g = step_predict(u->model, ctx->program);
    RefBinding *bind = bind_all(ctx->program, g, u->model, 2, 8, 0);
    RefRun run = {.B = 2, .T = 8, .seed = 1, .bind = bind, .n_bind = g->ext.n};
    Tensor **r = NEW_ARRAY(ctx->program, Tensor *, g->out.n + 1);
    ref_evaluate(g, ctx->program, &run, r);
    s->x = r[0];
}

int main(void)
{
    static const struct {
        const char *name, *set[3];
        double bound;
    } cases[] = {
        {"hyper 1, mean", {"conn=hyper(n = 1, dynamic = true, collapse = mean)"}, 0},
        {"hyper 2, mean", {"conn=hyper(n = 2, dynamic = true, collapse = mean)"}, 0},
        {"hyper 4, mean", {"conn=hyper(n = 4, dynamic = true, collapse = mean)"}, 0},
        {"hyper 4 static, mean", {"conn=hyper(n = 4, dynamic = false, collapse = mean)"}, 0},
        {"hyper 3, mean", {"conn=hyper(n = 3, dynamic = true, collapse = mean)"}, 1e-15}, /* x + x + x, then / 3 */
        {"hyper 5, mean", {"conn=hyper(n = 5, dynamic = true, collapse = mean)"}, 2e-15},
        {"hyper 6, mean", {"conn=hyper(n = 6, dynamic = true, collapse = mean)"}, 2e-15},
        {"hyper 7, mean", {"conn=hyper(n = 7, dynamic = true, collapse = mean)"}, 2e-15},
        {"hyper 8, mean", {"conn=hyper(n = 8, dynamic = true, collapse = mean)"}, 2e-15},
        {"frac 4", {"conn=frac(m = 4, dynamic = true)"}, 0},
        {"frac 3 static", {"conn=frac(m = 3, dynamic = false)"}, 0},
        {"ghc (2,3)", {"conn=ghc(m = 2, n = 3, dynamic = true)", "wide=18"}, 0},
        {"ghc (4,8)", {"conn=ghc(m = 4, n = 8, dynamic = true)", "wide=24"}, 0},
        {"ghc (1,4)", {"conn=ghc(m = 1, n = 4, dynamic = true)", "wide=48"}, 0},
        {"ghc (3,3)", {"conn=ghc(m = 3, n = 3, dynamic = true)"}, 0},
        /* Equal streams stay equal when what goes into each sums to 1: Sinkhorn's last step. */
        {"mhc 2, mean", {"conn=mhc(n = 2, collapse = mean)"}, 1e-14},
        {"mhc 4, mean", {"conn=mhc(n = 4, collapse = mean)"}, 1e-14},
        {"mhc 4 transposed, mean", {"conn=mhc(n = 4, collapse = mean, transposed = true)"}, 1e-14},
        {"mhc 3, predicted", {"conn=mhc(n = 3, collapse = predicted, start = softmax)"}, 1e-14},
        {"altup 1", {"conn=altup(n = 1)"}, 0},
        {"ghc (2,3), reduce [I; 0]",
         {"conn=ghc(m = 2, n = 3, dynamic = true, reduce = linear(out = D, init = eye))", "wide=18"},
         0},
        {"ghc (4,8), reduce [I; 0]",
         {"conn=ghc(m = 4, n = 8, dynamic = true, reduce = linear(out = D, init = eye))", "wide=24"},
         0},
    };
    int passed = 0, failed = 0;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        Ctx *a = ctx_new(NULL), *b = ctx_new(NULL);
        State p = {NULL, NULL}, q = {cases[i].set, NULL};
        double worst = INFINITY, size = 0;
        if (guarded(a, state_of, &p) && guarded(b, state_of, &q)) {
            worst = p.x->size == q.x->size && p.x->size > 0 ? 0 : INFINITY;
            for (int64_t k = 0; k < p.x->size && k < q.x->size; k++) {
                worst = fmax(worst, fabs(p.x->real[k] - q.x->real[k]));
                size = fmax(size, fabs(p.x->real[k]));
            }
        }
        bool ok = worst <= cases[i].bound * size && size > 0.1;
        printf("%-22s max |difference| %.1e of %.2f%s\n", cases[i].name, worst, size, ok ? "" : "  FAILED");
        ok ? passed++ : failed++;
        ctx_free(a);
        ctx_free(b);
    }
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
