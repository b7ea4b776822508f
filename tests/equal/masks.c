/* masks.c - blocks of one's own against others that compute the same: attention with a mask of -inf against that of the library; what
 * integers, extents and tied tensors mean against the same in real numbers, sizes that are written out, and tensors that are passed on.
 *
 * In:  pairs of sublayers, weights of the same paths.   Out: `N passed, N failed`.
 * Both losses are equal in the reference evaluator, and the compiled gradients of the first are those of the evaluator.
 */
#include "support/gradients.h"

#include <string.h>

#define MODEL(own, sublayers)                                                                                          \
    "edition = 1\nimport \"std/transformer\"\nimport \"std/connections\"\nlet D = 12\n" own                            \
    "model small {\n  context = 8, width = D, mask = causal, connection = residual(), pre_norm = rms_norm(eps = "      \
    "1e-6)\n"                                                                                                          \
    "  init = normal(std = 0.3), out_init = normal(std = 0.3)\n  embed tokens { vocab = 17 }\n" sublayers              \
    "  head lm { norm = rms_norm(eps = 1e-6) }\n}\n"                                                                   \
    "train {\n  data = text_file(\"none.txt\"), tokenizer = chars(), batch = 4 seqs, length = 10 steps, seed = 1\n"    \
    "  precision = fp32\n  optimizer sgd { lr = 1e-2, momentum = 0, weight_decay = 0 }\n}\n"

#define MASKED                                                                                                         \
    "block own(low: float)(x: [B, T, D]) -> [B, T, D] {\n  let d = D / 2\n"                                            \
    "  let q_proj = linear(out = D)\n  let k_proj = linear(out = D)\n  let v_proj = linear(out = D)\n"                 \
    "  let o_proj = linear(out = D, init = scope.out_init)\n"                                                          \
    "  q = permute(reshape(q_proj(x), [B, T, 2, d]), [1, 3, 2, 4])\n"                                                  \
    "  k = permute(reshape(k_proj(x), [B, T, 2, d]), [1, 3, 2, 4])\n"                                                  \
    "  v = permute(reshape(v_proj(x), [B, T, 2, d]), [1, 3, 2, 4])\n"                                                  \
    "  a = softmax(where(unsqueeze(arange(T)) >= arange(T), q @ k.T / sqrt(d), low)) @ v\n"                            \
    "  return o_proj(reshape(permute(a, [1, 3, 2, 4]), [B, T, D]))\n}\n"
/* Two of five rows of a table of 20, whose numbers stand in a list of integers. */
#define ROWS(chosen)                                                                                                   \
    "block own()(x: [B, T, D]) -> [B, T, D] {\n  param W : [20, D] = scope.init\n  let choose = linear(out = 5)\n"     \
    "  top = top_k(choose(x), 2)\n  all = broadcast(reshape((arange(5) * 7 + 3) mod 20, [1, 1, 5]), [B, T, 5])\n"      \
    "  id = " chosen "\n  metric.id = mean(id)\n  return sum(gather(W, id) * unsqueeze(top.values), over = -2)\n}\n"
/* The second half of the positions gets a gain of its own. */
#define HALVES(late)                                                                                                   \
    "block own()(x: [B, T, D]) -> [B, T, D] {\n  param g : [2, D] = scope.init { group = vector }\n  n = arange(T)\n"  \
    "  late = " late "\n  return x * where(unsqueeze(late), rest(g, 1, axis = 1), first(g, 1, axis = 1))\n}\n"
/* Layers 2 and 3 read what layer 1 has computed: by its name, or as what an input of weights says. */
#define TIED(value)                                                                                                    \
    "block own(number: int)(x: [B, T, D]) -> [B, T, D] {\n  let map = linear(out = D)\n  v = map(x)\n"                 \
    "  if number > 1 {\n    v = " value "\n  }\n  return tanh(v)\n}\n"
#define LOOP                                                                                                           \
    "  for layer in 1..3 {\n    if layer == 1 { own one { number = layer } } else { own { number = layer } }\n  }\n"

static const struct {
    const char *what, *text, *same;
} pairs[] = {
    {"a mask of -inf", MODEL(MASKED, "  own one { low = -inf }\n"),
     MODEL("", "  let own = attention(heads = 2)\n  own one { }\n")},
    {"a mask of -inf, and of -1e30", MODEL(MASKED, "  own one { low = -inf }\n"),
     MODEL(MASKED, "  own one { low = -1e30 }\n")},
    {"integers that are picked", MODEL(ROWS("pick(all, top.index)"), "  own\n"),
     MODEL(ROWS("cast(pick(cast(all, real), top.index), int)"), "  own\n")},
    {"extents beside integers", MODEL(HALVES("2 * n >= T"), "  own\n"), MODEL(HALVES("cast(n, real) >= 4"), "  own\n")},
    {"extents beside integers, mod", MODEL(HALVES("(n + 3) mod T < 4"), "  own\n"),
     MODEL(HALVES("where(cast(n, real) < 5, cast(n, real) + 3 < 4, cast(n, real) - 5 < 4)"), "  own\n")},
    {"a tensor of another iteration", MODEL(TIED("v + tied(own, one, v)"), LOOP),
     MODEL(TIED("v + tied(own, one, map)(tied(own, one, x))"), LOOP)},
};

typedef struct Case {
    const char *text[2];
    double loss[2];
    Agreement is;
} Case;

static double loss_of(Ctx *ctx, Unit *u)
{
    Graph *g = step_evaluate(u->model, ctx->program);
    RefBinding *bind = bind_all(ctx->program, g, u->model, 2, 8, 0.3);
    double vars[HV_COUNT] = {0};
    RefRun run = {.B = 2, .T = 8, .seed = 1, .bind = bind, .n_bind = g->ext.n, .host_vars = vars};
    Tensor **r = NEW_ARRAY(ctx->program, Tensor *, g->out.n + 1);
    ref_evaluate(g, ctx->program, &run, r);
    return r[0]->real[0];
}

static void compare(Ctx *ctx, void *arg)
{
    Case *c = arg;
    for (int k = 0; k < 2; k++)
        c->loss[k] = loss_of(ctx, load_text(ctx, c->text[k], NULL));
    gradients_compare(ctx, load_text(ctx, c->text[0], NULL), &c->is);
}

int main(void)
{
    int passed = 0, failed = 0;
    for (size_t i = 0; i < COUNT_OF(pairs); i++) {
        Ctx *ctx = ctx_new(NULL);
        Case c = {.text = {pairs[i].text, pairs[i].same}, .is = {.B = 2, .T = 8, .worst = INFINITY, .name = ""}};
        bool ok = guarded(ctx, compare, &c) && fabs(c.loss[0] - c.loss[1]) < 1e-12 && c.is.worst < 2e-5 &&
                  c.is.same_bits && !c.is.dead;
        printf("%-32s loss %.12f and %.12f, compiled %.1e %s%s\n", pairs[i].what, c.loss[0], c.loss[1], c.is.worst,
               c.is.name, ok ? "" : "  FAILED");
        ok ? passed++ : failed++;
        ctx_free(ctx);
    }
    printf("%d passed, %d failed\n", passed, failed);
    return failed > 0;
}
