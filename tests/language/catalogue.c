/* catalogue.c - the published ways to grow a model, and what is known of each.
 *
 * In:  a small model, a growth step, what papers and their algebra say of it.   Out: 0 when growth_prove says the same.
 * The one idea: whether a way preserves the function and which blocks learn when was derived by hand and measured
 * elsewhere (Net2Net, bert2BERT, LEMON, Hyper-Connections, Nexusformer, Tokenformer); here it is one row each.
 */
#include "support.h"

#include "compiler/growth/growth.h"
#include "support/drawn.h"

enum { HALF_STEPS = -3 }; /* not looked at */
typedef struct Row {
    const char *name, *set, *lets, *fill; /* `set`: lets of the model that differ, "a = 1|b = 2" */
    bool preserved;
    int alive; /* updates until every new block has a gradient; NEVER; HALF_STEPS */
    const char *code; /* of what is said where it is not preserved; NULL: E0701 */
} Row;

static const char model[] =
    "edition = 1\nimport \"std/transformer\"\nimport \"std/connections\"\nimport \"std/growable\"\n"
    "block scaled(slots: int, out: dim = scope.width)(x: [.., D]) -> [.., out] {\n"
    "  param K : [slots, D] = scope.init\n  param V : [slots, out] = scope.init\n  s = x @ K.T\n"
    "  return gelu(s / sqrt(sum(s * s, over = -1, keep = true)) * sqrt(slots)) @ V\n}\n"
    "block valued(e: int)(x: [B, T, D]) -> [B, T, D] {\n"
    "  let q = linear(out = 16)\n  let k = linear(out = 16)\n  let v = linear(out = 2 * e)\n  let o = linear(out = D)\n"
    "  a = sdpa(reshape(q(x), [B, T, 2, 8]), reshape(k(x), [B, T, 2, 8]), reshape(v(x), [B, T, 2, e]), mask = causal, scale = 0.35)\n"
    "  return o(reshape(a, [B, T, 2 * e]))\n}\n"
    "block fused(heads: int, turned: bool = false)(x: [B, T, D]) -> [B, T, D] {\n" /* one product for queries, keys and values */
    "  param W : [D, 3 * heads * 4] = scope.init\n  let o = linear(out = D)\n  p = split(x @ W, 3)\n"
    "  q = reshape(p[1], [B, T, heads, 4])\n  k = reshape(p[2], [B, T, heads, 4])\n"
    "  if turned {\n    q = rotary(q, base = 100)\n    k = rotary(k, base = 100)\n  }\n"
    "  return o(reshape(sdpa(q, k, reshape(p[3], [B, T, heads, 4]), mask = causal, scale = 0.5), [B, T, heads * 4]))\n}\n"
    "let D = 16\nlet F = 24\nlet heads = 2\nlet kv = 2\nlet h = 8\nlet L = 2\nlet V = 32\nlet S = 8\nlet E = D\n"
    "let act = gelu\nlet gated = false\nlet scale = 0.35\nlet conn = residual()\nlet norm = rms_norm(eps = 1e-5)\n"
    "let out = normal(std = 0.02)\nlet turn = none\nlet qk = none\nlet map = linear()\n"
    "let sub = ffn(hidden = F, activation = act, gated = gated)\nlet experts = 3\nlet tied = false\nlet learned = false\nlet eps = 1e-5\nlet context = 8\nlet e = 8\nlet turned = false\nlet loud = 1\n"
    "model m {\n  context = context\n  width = D\n  mask = causal\n  init = normal(std = 0.02)\n  out_init = out\n"
    "  pre_norm = norm\n  connection = conn\n  embed tokens { vocab = V, width = E }\n  if learned { embed position { size = context } }\n"
    "  for layer in 1..L {\n    attention { heads = heads, kv_heads = kv, head_dim = h, scale = scale, position = turn, qk_norm = qk,\n"
    "      q_proj = map, k_proj = map, v_proj = map }\n    sub\n  }\n  if tied { head lm { norm = norm, tie = tokens } } else { head lm { norm = norm, scale = loud } }\n}\n";

#define UPCYCLED "layer[*].sub.up { layers = copy(of = layer[*].sub.up.W) }, layer[*].sub.gate { layers = copy(of = layer[*].sub.gate.W) }, layer[*].sub.down { layers = copy(of = layer[*].sub.down.W) }"
#define RANDOM "normal(std = 0.02)"
/* Rows leave out what is NULL. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
static const Row rows[] = {
    /* feed-forward layers (Net2Net 2016, LEMON 2024) */
    {"ffn, gelu, down = 0", NULL, "let F = 40", "entry = " RANDOM ", exit = zeros", true, 1},
    {"ffn, gelu, up = 0", NULL, "let F = 40", "entry = zeros, exit = " RANDOM, true, 1},
    {"ffn, gelu, both random", NULL, "let F = 40", "entry = " RANDOM ", exit = " RANDOM, false, 0},
    {"ffn, gelu, both 0", NULL, "let F = 40", "entry = zeros, exit = zeros", true, NEVER},
    {"ffn, relu, up = 0", "act = relu", "let F = 40", "entry = zeros, exit = " RANDOM, true, NEVER},
    {"ffn, relu, down = 0", "act = relu", "let F = 40", "entry = " RANDOM ", exit = zeros", true, 1},
    {"ffn, sigmoid, up = 0", "act = sigmoid", "let F = 40", "entry = zeros, exit = " RANDOM, false, 0},
    {"ffn, sigmoid, both 0", "act = sigmoid", "let F = 40", "entry = zeros, exit = zeros", true, 1},
    {"swiglu, down = 0", "act = silu|gated = true", "let F = 40", "entry = " RANDOM ", exit = zeros", true, 1},
    {"swiglu, gate = 0", "act = silu|gated = true", "let F = 40", "entry = " RANDOM ", exit = " RANDOM ", layer[*].sub.gate { entry = zeros }", true, 1},
    {"swiglu, up = 0", "act = silu|gated = true", "let F = 40", "entry = " RANDOM ", exit = " RANDOM ", layer[*].sub.up { entry = zeros }", true, 1},
    {"swiglu, gate = up = 0", "act = silu|gated = true", "let F = 40", "entry = zeros, exit = " RANDOM, true, NEVER},
    {"swiglu, all 0", "act = silu|gated = true", "let F = 40", "entry = zeros, exit = zeros", true, NEVER},
    /* copies of units: incoming weights copied, outgoing ones shared out (Net2Wider; LEMON: sizes that do not divide, shares
     * that are not equal) */
    {"net2wider, gelu", NULL, "let F = 40", "entry = copy, exit = split", true, 0},
    {"net2wider, relu, twice as wide", "act = relu", "let F = 48", "entry = copy, exit = split", true, 0},
    {"net2wider, beside", NULL, "let F = 72", "entry = replicate, exit = replicate", true, 0},
    {"net2wider, swiglu", "act = silu|gated = true", "let F = 100", "entry = copy, exit = split", true, 0},
    {"net2wider, sigmoid, biases", "act = sigmoid|sub = ffn(hidden = F, activation = act, bias = true)", "let F = 40", "entry = copy, exit = split", true, 0},
    {"lemon, unequal shares", NULL, "let F = 40", "entry = copy, exit = split(share = 0.3)", true, 0},
    {"copies without shares", NULL, "let F = 40", "entry = copy, exit = copy", false, 0, "E0711"},
    {"copies that are not read", NULL, "let F = 40", "entry = copy, exit = zeros", true, 1},
    {"shares of what is no copy", NULL, "let F = 40", "entry = " RANDOM ", exit = split", false, 0},
    {"copies in another order than they are read", NULL, "let F = 48", "entry = replicate, exit = split", false, 0, "E0711"},
    {"experts, net2wider", "sub = moe(experts = experts, active = 2, hidden = F, activation = silu, scores = softmax, normalize = true, balance = 0)",
     "let F = 40", "entry = copy, exit = split", true, 0},
    {"heads, copies", NULL, "let heads = 4\n  let kv = 4", "entry = copy, exit = split", true, 0},
    {"heads, copies, sizes that do not divide", NULL, "let heads = 3\n  let kv = 3", "entry = copy, exit = split(share = 0.4)", true, 0},
    {"groups of heads, copies", "heads = 4|kv = 2", "let heads = 8\n  let kv = 4", "entry = copy, exit = split", true, 0},
    {"more kv heads, each beside its copies", "heads = 4|kv = 2|turn = rope(base = 100)", "let kv = 4", "entry = replicate", true, 0},
    {"more kv heads, of one", "heads = 4|kv = 1", "let kv = 4", "entry = replicate", true, 0},
    {"more kv heads, copies behind", "heads = 4|kv = 2", "let kv = 4", "entry = copy", false, 0, "E0711"},
    {"head_dim, copies", NULL, "let h = 12", "entry = copy, exit = split", false, HALF_STEPS, "E0711"}, /* scores grow */
    /* attention */
    {"heads, o = 0", NULL, "let heads = 3\n  let kv = 3", "entry = " RANDOM ", exit = zeros", true, 1},
    {"heads, v = 0", NULL, "let heads = 3\n  let kv = 3", "entry = " RANDOM ", exit = " RANDOM ", layer[*].attention.v_proj { entry = zeros }", true, 1},
    {"heads, v = o = 0", NULL, "let heads = 3\n  let kv = 3", "entry = " RANDOM ", exit = zeros, layer[*].attention.v_proj { entry = zeros }", true, NEVER},
    {"heads, all random", NULL, "let heads = 3\n  let kv = 3", "entry = " RANDOM ", exit = " RANDOM, false, 0},
    {"heads share kv, o = 0", "kv = 1", "let heads = 3", "entry = " RANDOM ", exit = zeros", true, 1},
    {"head_dim, k = 0, o = 0", NULL, "let h = 12", "entry = " RANDOM ", exit = zeros, layer[*].attention.k_proj { entry = zeros }", true, 1},
    {"head_dim, q = k = 0", NULL, "let h = 12", "entry = zeros, exit = zeros, layer[*].attention.v_proj { entry = " RANDOM " }", true, NEVER},
    {"head_dim, scale follows", "scale = 1 / sqrt(h)", "let h = 12", "entry = " RANDOM ", exit = zeros, layer[*].attention.k_proj { entry = zeros }", false, HALF_STEPS, "E0711"},
    {"head_dim, rope moves", "turn = rope(base = 100)", "let h = 12", "entry = " RANDOM ", exit = zeros, layer[*].attention.k_proj { entry = zeros }", false, HALF_STEPS},
    {"head_dim, qk norm", "qk = rms_norm(eps = 1e-5)", "let h = 12", "entry = " RANDOM ", exit = zeros, layer[*].attention.k_proj { entry = zeros }", false, HALF_STEPS},
    {"width re-cuts heads", "h = D / heads|scale = 0.35", "let D = 20", "entry = zeros, exit = zeros, inner = zeros", false, HALF_STEPS},
    {"one product for all of a head, o = 0", "sub = fused(heads = heads, turned = turned)", "let heads = 3\n  let kv = 3", "entry = " RANDOM ", exit = zeros", true, 1},
    {"one product for all of a head, rope, o = 0", "sub = fused(heads = heads, turned = turned)|turned = true", "let heads = 4\n  let kv = 4", "entry = " RANDOM ", exit = zeros", true, 1},
    {"one product for all of a head, copies", "sub = fused(heads = heads, turned = turned)", "let heads = 4\n  let kv = 4", "entry = copy, exit = split", true, 0},
    {"one product for all of a head, copies without shares", "sub = fused(heads = heads, turned = turned)", "let heads = 4\n  let kv = 4", "entry = copy, exit = copy", false, 0},
    {"one product for all of a head, all random", "sub = fused(heads = heads, turned = turned)", "let heads = 3\n  let kv = 3", "entry = " RANDOM ", exit = " RANDOM, false, 0},
    /* outputs that become larger or smaller as a whole, beside weights that grow without a change */
    {"half the output", NULL, "let loud = 0.5\n  let F = 40", "entry = " RANDOM ", exit = zeros", false, 1},
    {"twice the output", NULL, "let loud = 2\n  let F = 40", "entry = " RANDOM ", exit = zeros", false, 1},
    {"half the output, nothing else", NULL, "let loud = 0.5", "", false, HALF_STEPS},
    {"twice the output, nothing else", NULL, "let loud = 2", "", false, HALF_STEPS},
    {"minus the output", NULL, "let loud = -1\n  let F = 40", "entry = " RANDOM ", exit = zeros", false, 1},
    {"another eps, nothing else", "norm = rms_norm(eps = eps)", "let eps = 2e-5", "", false, HALF_STEPS, "E0703"},
    /* depth */
    {"depth, o = down = 0", "out = zeros", "let L = 3", "", true, 1},
    {"depth, identity", NULL, "let L = 3", "layers = identity", true, 1},
    {"depth, all 0", NULL, "let L = 3", "layers = zeros", true, NEVER},
    {"depth, identity, hyper", "conn = hyper(n = 2, dynamic = true)", "let L = 3", "layers = identity", true, HALF_STEPS},
    {"depth, identity, virtual width", "conn = ghc(m = 2, n = 4, dynamic = true)|E = 32", "let L = 3", "layers = identity", true, HALF_STEPS},
    {"depth, identity, gated", "act = silu|gated = true", "let L = 4", "layers = identity", true, 1},
    {"depth, identity, experts", "sub = moe(experts = experts, active = 2, hidden = F, activation = silu, scores = softmax, normalize = true, balance = 0)",
     "let L = 3", "layers = identity", true, HALF_STEPS},
    {"depth, random", NULL, "let L = 3", "", false, 0},
    {"depth, stacked", NULL, "let L = 4", "layers = copy", false, 0, "E0711"},
    {"depth, stacked, by number", NULL, "let L = 4", "layers = copy(layer - 2)", false, 0, "E0711"},
    {"depth, interleaved", NULL, "let L = 4", "layers = replicate", false, 0, "E0711"},
    {"depth, stacked, o = down = 0", NULL, "let L = 3", "layers = copy, layer[*].attention.o_proj { layers = zeros }, layer[*].sub.down { layers = zeros }", true, 1},
    {"depth, interleaved, o = down = 0", NULL, "let L = 6", "layers = replicate, layer[*].attention.o_proj { layers = zeros }, layer[*].sub.down { layers = zeros }",
     true, 1},
    {"depth, post-norm, identity", "conn = post_norm(norm = rms_norm(eps = 1e-5))|norm = none", "let L = 3", "layers = identity", false, HALF_STEPS, "E0711"},
    /* width of the stream: a mean over more coordinates */
    {"width, rms_norm", NULL, "let D = 20", "entry = zeros, exit = " RANDOM ", inner = zeros", false, 1},
    {"width, rms_norm, gains and eps", "norm = rms_norm(eps = eps)", "let D = 20\n  let eps = 1e-5 * 16 / 20", "entry = zeros, exit = " RANDOM ", norms = rescale", true, 1},
    {"width, rms_norm, gains alone", "norm = rms_norm(eps = eps)", "let D = 20", "entry = zeros, exit = " RANDOM ", norms = rescale", false, 1},
    {"width, rms_norm, eps alone", "norm = rms_norm(eps = eps)", "let D = 20\n  let eps = 1e-5 * 16 / 20", "entry = zeros, exit = " RANDOM, false, 1, "E0703"},
    {"width, rms_norm without eps, gains", "norm = rms_norm(eps = 0)", "let D = 20", "entry = zeros, exit = " RANDOM ", norms = rescale", true, 1},
    {"width, rms_norm without gain, folded", "norm = rms_norm(eps = eps, gain = false)", "let D = 20\n  let eps = 1e-5 * 16 / 20", "entry = zeros, exit = " RANDOM ", norms = rescale",
     true, 1},
    {"width, rms_norm, read = write = 0", "norm = rms_norm(eps = eps)", "let D = 20\n  let eps = 1e-5 * 16 / 20", "entry = zeros, exit = zeros, norms = rescale", true, NEVER},
    {"width, rms_norm, all random", "norm = rms_norm(eps = eps)", "let D = 20\n  let eps = 1e-5 * 16 / 20", "entry = " RANDOM ", exit = " RANDOM ", norms = rescale", false, 0},
    {"width, layer_norm, twice", "norm = layer_norm(eps = 1e-5)", "let D = 32", "entry = copy, exit = split", true, 0},
    {"width, layer_norm, copies of some", "norm = layer_norm(eps = 1e-5)", "let D = 20", "entry = copy, exit = split", false, 0, "E0711"},
    {"width, tied table", "norm = rms_norm(eps = eps)|tied = true", "let D = 20\n  let eps = 1e-5 * 16 / 20",
     "entry = zeros, exit = " RANDOM ", norms = rescale, embed.tokens { exit = zeros }", true, 1},
    {"width, layer_norm", "norm = layer_norm(eps = 1e-5)", "let D = 20", "entry = zeros, exit = " RANDOM ", inner = zeros", false, HALF_STEPS},
    /* hyper-connections */
    {"residual to hyper, mean", NULL, "let conn = hyper(n = 2, dynamic = true, collapse = mean)", "", true, HALF_STEPS},
    {"residual to hyper, sum", NULL, "let conn = hyper(n = 2, dynamic = true)", "", false, HALF_STEPS, "E0711"},
    {"residual to virtual width", NULL, "let conn = ghc(m = 2, n = 2, dynamic = true)", "", true, HALF_STEPS},
    {"residual to virtual width 3/2", NULL, "let E = 24\n  let conn = ghc(m = 2, n = 3, dynamic = true, reduce = linear(out = D, init = eye))", "", true, HALF_STEPS},
    {"residual to virtual width 3/2, reduce random", NULL, "let E = 24\n  let conn = ghc(m = 2, n = 3, dynamic = true, reduce = linear(out = D))", "", false, HALF_STEPS},
    {"residual to frac", NULL, "let conn = frac(m = 2, dynamic = true)", "", true, HALF_STEPS},
    {"hyper, one more stream, zero", "conn = hyper(n = 2, dynamic = true, replicate = [1, 1])", "let conn = hyper(n = 3, dynamic = true, replicate = [1, 1, 0])",
     "entry = zeros, exit = " RANDOM ", layer[*].attention.connection.B { norms = zeros }, layer[*].sub.connection.B { norms = zeros }", true, HALF_STEPS},
    {"hyper, one more stream, and it is written", "conn = hyper(n = 2, dynamic = true, replicate = [1, 1])", "let conn = hyper(n = 3, dynamic = true, replicate = [1, 1, 0])",
     "entry = zeros, exit = " RANDOM, false, HALF_STEPS, "E0711"},
    {"hyper, one more stream, mean", "conn = hyper(n = 2, dynamic = true, replicate = [1, 1], collapse = mean)",
     "let conn = hyper(n = 3, dynamic = true, replicate = [1, 1, 0], collapse = mean)",
     "entry = zeros, exit = " RANDOM ", layer[*].attention.connection.B { norms = zeros }, layer[*].sub.connection.B { norms = zeros }", false, HALF_STEPS, "E0703"},
    {"virtual width, a new slot", "conn = ghc(m = 2, n = 2, dynamic = true, tau = 2.8, reduce = linear(out = D))",
     "let E = 24\n  let conn = ghc(m = 2, n = 3, dynamic = true, tau = 2.8, reduce = linear(out = D))",
     "entry = " RANDOM ", exit = zeros, layer[*].attention.connection.S_ac { norms = zeros }, layer[*].sub.connection.S_ac { norms = zeros }, "
     "layer[*].attention.connection.S_ai { norms = zeros }, layer[*].sub.connection.S_ai { norms = zeros }", true, HALF_STEPS},
    {"virtual width, a new slot whose scales are 1", "conn = ghc(m = 2, n = 2, dynamic = true, tau = 2.8, reduce = linear(out = D))",
     "let E = 24\n  let conn = ghc(m = 2, n = 3, dynamic = true, tau = 2.8, reduce = linear(out = D))", "entry = " RANDOM ", exit = zeros", false, HALF_STEPS},
    {"hyper, a stream that reads 1", "conn = hyper(n = 2, dynamic = true)", "let conn = hyper(n = 3, dynamic = true)", "entry = zeros, exit = zeros, inner = zeros", false, HALF_STEPS, "E0711"},
    /* experts, ids */
    {"experts wider, down = 0", "sub = moe(experts = experts, active = 2, hidden = F, activation = silu, scores = softmax, normalize = true, balance = 0)",
     "let F = 40", "entry = " RANDOM ", exit = zeros", true, 1},
    {"dense to experts, weights add up to 1", "act = silu|gated = true", "let sub = moe(experts = 4, active = 2, hidden = F, activation = silu, scores = softmax, normalize = true, balance = 0.01)",
     UPCYCLED, true, HALF_STEPS},
    {"dense to experts, softmax of the chosen", "act = silu|gated = true", "let sub = moe(experts = 4, active = 2, hidden = F, activation = silu, scores = softmax, normalize = false, balance = 0.01, order = topk_first)",
     UPCYCLED, true, HALF_STEPS},
    {"dense to experts, weights as they are", "act = silu|gated = true", "let sub = moe(experts = 4, active = 2, hidden = F, activation = silu, scores = softmax, normalize = false, balance = 0.01)",
     UPCYCLED, false, HALF_STEPS},
    {"more experts", "sub = moe(experts = experts, active = 2, hidden = F, activation = silu, scores = softmax, normalize = true, balance = 0)",
     "let experts = 4", "entry = zeros, exit = zeros", false, HALF_STEPS, "E0711"},
    {"copies of ids", NULL, "let V = 40", "entry = copy, exit = copy", false, HALF_STEPS, "E0711"},
    {"head_dim, given frequencies", "turn = rope_at(freqs = [1, 0.3, 0.1, 0.03])", "let h = 12", "entry = " RANDOM ", exit = zeros, layer[*].attention.k_proj { entry = zeros }", true, 1},
    {"value dim, o = 0", "sub = valued(e = e)", "let e = 12", "entry = " RANDOM ", exit = zeros", true, 1},
    {"value dim, v = 0", "sub = valued(e = e)", "let e = 12", "entry = zeros, exit = " RANDOM, true, 1},
    {"value dim, both random", "sub = valued(e = e)", "let e = 12", "entry = " RANDOM ", exit = " RANDOM, false, 0},
    {"10 % noise", NULL, "let F = 40", "entry = noise(share = 10%), exit = noise(share = 10%)", false, 0},
    {"10 % noise, nothing reads it", NULL, "let F = 40", "entry = noise(share = 10%), exit = zeros", true, 1},
    {"longer context", "turn = rope(base = 100)", "let context = 16", "", true, HALF_STEPS},
    {"longer context, learned positions", "learned = true", "let context = 16", "entry = " RANDOM, true, HALF_STEPS},
    {"more ids", NULL, "let V = 40", "entry = zeros, exit = zeros", false, HALF_STEPS, "E0711"},
    /* Tokenformer (2024): keys are new on the written axis of their transpose */
    {"tokens, keys = 0, tau kept", "map = pattention(slots = S)", "let S = 12", "entry = zeros, exit = " RANDOM, true, 1},
    {"tokens, both 0", "map = pattention(slots = S)", "let S = 12", "entry = zeros, exit = zeros", true, NEVER},
    {"tokens, values = 0", "map = pattention(slots = S)", "let S = 12", "entry = " RANDOM ", exit = zeros", false, HALF_STEPS},
    {"tokens, as released", "map = pattention(slots = S)", "let S = 12", "entry = " RANDOM ", exit = " RANDOM, false, 0},
    {"tokens, tau follows", "map = scaled(slots = S)", "let S = 12", "entry = zeros, exit = " RANDOM, false, HALF_STEPS, "E0703"},
    {"tokens, softmax", "map = pattention(slots = S, normalise = softmax)", "let S = 12", "entry = zeros, exit = " RANDOM, false, HALF_STEPS, "E0711"},
    {"tokens, gelu then l2", "map = pattention(slots = S, normalise = gelu_l2)", "let S = 12", "entry = zeros, exit = " RANDOM, true, 1},
};

static const GrowthProof *prove(Test *t, Checked *c, const char *name, const GrowthPlan **plan)
{
    bool good = c->unit && !diag_errors(c->ctx) && c->unit->grow.n == 1;
    EXPECT(t, name, good);
    if (!good) {
        print_diagnostics(c);
        return NULL;
    }
    *plan = growth_plan(&c->unit->grow.v[0], c->ctx->program);
    return growth_prove(*plan, c->ctx->program);
}

/* Copies the model into `text`, with the lets of "a = 1|b = f(x, y)" in the place of its own. */
static size_t put_model(char *text, size_t most, const char *set)
{
    size_t n = (size_t)snprintf(text, most, "%s", model);
    while (set && *set) {
        size_t length = strcspn(set, "|"), name = strcspn(set, "=");
        char find[64];
        snprintf(find, sizeof find, "let %.*s=", (int)name, set);
        char *at = strstr(text, find), *end = at ? strchr(at, '\n') : NULL;
        if (!end)
            abort();
        memmove(at + 4 + length, end, (size_t)(text + n + 1 - end));
        memcpy(at + 4, set, length);
        n = strlen(text);
        set += length + (set[length] == '|');
    }
    return n;
}

/* A step that claims nothing of life says that it need not be alive, so that dead ones can be looked at. */
static void put_row(char *text, size_t most, const Row *r, const char *claim)
{
    size_t n = put_model(text, most, r->set);
    snprintf(text + n, most - n, "grow g {\n  when = step >= 1\n  %s\n%s%s%s%s%s}\n", r->lets, *r->fill ? "  fill { " : "", r->fill,
             *r->fill ? " }\n" : "", claim, strstr(claim, "alive") ? "" : "  check alive(none)\n");
}

/* The same step that claims it of itself: fine, or refused with one error of these codes. */
static void test_claim(Test *t, const char *name, const char *text, bool holds, const char *wanted, size_t *refused)
{
    Checked c = check_text("catalogue.vwn", text, NULL);
    if (holds) {
        bool proved = expect_fine(t, name, &c) && c.unit->check.n > 0;
        for (size_t i = 0; proved && i < c.unit->check.n; i++)
            proved = c.unit->check.v[i].state == CHECK_TRUE;
        EXPECT(t, name, proved);
    } else {
        expect_error(t, name, &c, wanted);
        ++*refused;
    }
    ctx_free(c.ctx);
}

/* `alive` updates are enough for all new blocks, and one less is not. */
static void test_claims(Test *t, const Row *r, const GrowthProof *p, size_t *refused)
{
    char text[8192], claim[64];
    put_row(text, sizeof text, r, "  check preserves(1e-6)\n");
    test_claim(t, r->name, text, r->preserved, r->code ? r->code : "E0701", refused);
    put_row(text, sizeof text, r, "  check preserves(none)\n");
    test_claim(t, r->name, text, true, "", refused);
    if (p->undefined)
        return;
    snprintf(claim, sizeof claim, "  check alive(steps = %d)\n", p->alive_after == NEVER ? 1000 : p->alive_after);
    put_row(text, sizeof text, r, claim);
    test_claim(t, r->name, text, p->alive_after != NEVER, "E0702", refused);
    if (p->alive_after <= 0)
        return;
    snprintf(claim, sizeof claim, "  check alive(steps = %d)\n", p->alive_after - 1);
    put_row(text, sizeof text, r, claim);
    test_claim(t, r->name, text, false, "E0702", refused);
}

static void test_row(Test *t, const Row *r, size_t *refused)
{
    char text[8192];
    put_row(text, sizeof text, r, "");
    Checked c = check_text("catalogue.vwn", text, NULL);
    const GrowthPlan *plan;
    const GrowthProof *p = prove(t, &c, r->name, &plan);
    if (p) {
        EXPECT(t, r->name, p->preserved == r->preserved);
        EXPECT(t, r->name, r->alive == HALF_STEPS || p->alive_after == r->alive);
        if (p->preserved != r->preserved || (r->alive != HALF_STEPS && p->alive_after != r->alive))
            printf("    preserved %d, alive after %d of %zu blocks (%zu dead)\n", p->preserved, p->alive_after, p->blocks, p->dead);
    }
    if (p)
        test_claims(t, r, p, refused);
    ctx_free(c.ctx);
}

/* ---- the table of Nexusformer's growth: P, Q1, Q2, Q3, S, each 0 or random ---- */

typedef struct NexusRow {
    const char *blocks; /* '0' or 'r' of P, Q1, Q2, Q3, S */
    bool paper, l2;     /* preserves: Eq. 3 as printed; with the l2 norm of the released code */
    const char *after;  /* updates until each has a gradient, of Eq. 3; '-' never, '?' not said */
} NexusRow;
static const NexusRow nexus[] = {
    {"00000", true, true, "-----"}, {"rr000", true, false, "11010"}, {"rr0r0", true, false, "11010"}, {"00rrr", true, true, "00111"},
    {"00r0r", true, true, "00111"}, {"r000r", true, false, "10001"}, {"0rr00", true, false, "011?0"}, {"r0000", true, false, "1-0--"},
    {"0000r", true, true, "-0--1"}, {"r0r00", false, false, "?????"}, {"rrrrr", false, false, "00000"}, {"000r0", true, true, "-----"}};

static void test_nexus(Test *t, const NexusRow *r, bool l2, size_t *refused)
{
    static const char *const weight[] = {"W_M", "W_A", "W_A", "W_A", "W_D"}, *const role[] = {"entry", "entry", "exit", "inner", "exit"};
    static const GrowthRole roles[] = {ROLE_ENTRY, ROLE_ENTRY, ROLE_EXIT, ROLE_INNER, ROLE_EXIT};
    char text[8192];
    size_t n = put_model(text, sizeof text, l2 ? "map = nexus_rank(M = M, A = A, normalise = l2)" : "map = nexus_rank(M = M, A = A)");
    n += (size_t)snprintf(text + n, sizeof text - n, "let M = 20\nlet A = 24\ngrow g {\n  when = step >= 1\n  let M = 22\n  let A = 27\n  fill {\n");
    for (int i = 0; i < 5; i++)
        for (const char *qkv = "qkv"; *qkv; qkv++)
            n += (size_t)snprintf(text + n, sizeof text - n, "    layer[*].attention.%c_proj.%s { %s = %s }\n", *qkv, weight[i], role[i],
                                  r->blocks[i] == '0' ? "zeros" : RANDOM);
    snprintf(text + n, sizeof text - n, "  }\n  check preserves(1e-6)\n  check alive(none)\n}\n");
    test_claim(t, r->blocks, text, l2 ? r->l2 : r->paper, "E0701", refused);
    if (strchr(r->after, '?') == NULL) {
        snprintf(text + n, sizeof text - n, "  }\n  check alive(steps = 3)\n}\n");
        test_claim(t, r->blocks, text, strchr(r->after, '-') == NULL, "E0702", refused);
    }
    snprintf(text + n, sizeof text - n, "  }\n  check alive(none)\n}\n");
    Checked c = check_text("nexus.vwn", text, NULL);
    const GrowthPlan *plan;
    const GrowthProof *p = prove(t, &c, r->blocks, &plan);
    if (p)
        EXPECT(t, r->blocks, p->preserved == (l2 ? r->l2 : r->paper));
    for (size_t i = 0; p && !l2 && i < plan->n; i++)
        for (int k = 0; k < 5; k++) {
            char path[64];
            snprintf(path, sizeof path, "layer[1].attention.q_proj.%s", weight[k]);
            int after = p->life[i].after[roles[k]], want = r->after[k] == '-' ? NEVER : r->after[k] - '0';
            if (r->after[k] == '?' || strcmp(plan->entry[i].path, path) != 0)
                continue;
            EXPECT(t, r->blocks, after == want);
            if (after != want)
                printf("    block %d: %d, not %d\n", k, after, want);
        }
    ctx_free(c.ctx);
}

/* Copies whose gradients are those of what they copy are counted, by the coordinates of one layer and all. */
static void test_alike(Test *t)
{
    static const struct {
        const char *set, *lets, *fill;
        int64_t alike;
    } steps[] = {
        {NULL, "let F = 40", "entry = copy, exit = split", 2 * 16},
        {"act = silu|gated = true", "let F = 72", "entry = replicate, exit = replicate", 2 * 48},
        {NULL, "let F = 40", "entry = copy, exit = split(share = 0.4)", 0},
        {"act = silu|gated = true", "let F = 40", "entry = copy, exit = split, layer[*].sub.gate { entry = zeros }", 0},
        {NULL, "let F = 40", "entry = copy, exit = zeros", 0},
        {"heads = 4|kv = 2", "let kv = 4", "entry = replicate", 0}, /* each serves other queries */
        {"norm = layer_norm(eps = 1e-5)", "let D = 32", "entry = copy, exit = split", 16},
    };
    for (size_t i = 0; i < COUNT_OF(steps); i++) {
        char text[8192];
        put_row(text, sizeof text, &(Row){.set = steps[i].set, .lets = steps[i].lets, .fill = steps[i].fill}, "");
        Checked c = check_text("alike.vwn", text, NULL);
        const GrowthPlan *plan = NULL;
        if (prove(t, &c, steps[i].fill, &plan))
            EXPECT(t, steps[i].fill, plan->alike == steps[i].alike);
        ctx_free(c.ctx);
    }
}

/* Noise in all new blocks, as the paper's ablation has it: lossy, and alive at once. */
static void test_nexus_noise(Test *t, const char *share, size_t *refused)
{
    char text[8192];
    size_t n = put_model(text, sizeof text, "map = nexus_rank(M = M, A = A)");
    n += (size_t)snprintf(text + n, sizeof text - n, "let M = 20\nlet A = 24\ngrow g {\n  when = step >= 1\n  let M = 22\n  let A = 27\n"
                          "  fill { entry = noise(share = %s), exit = noise(share = %s), inner = noise(share = %s) }\n", share, share, share);
    snprintf(text + n, sizeof text - n, "  check preserves(none)\n  check alive(steps = 0)\n}\n");
    test_claim(t, share, text, true, "", refused);
    snprintf(text + n, sizeof text - n, "  check preserves(1e-2)\n}\n");
    test_claim(t, share, text, false, "E0701", refused);
}

/* A layer of a variable-width model that becomes wider reads coordinates that others wrote, so its norm is another one. */
static void test_one_layer(Test *t, size_t *refused)
{
    static const char wide[] =
        "edition = 1\nimport \"std/transformer\"\nimport \"std/connections\"\nlet w = 12\nlet widths = [16, w, 16]\n"
        "model m {\n  context = 8\n  mask = causal\n  pre_norm = rms_norm(eps = 1e-5)\n"
        "  connection = carried(head = 16, widths = widths, branch_scale = 0.22, final = after_slice)\n  init = normal(std = 0.02)\n  out_init = normal(std = 0.02)\n"
        "  embed tokens { vocab = 32, width = 16 }\n  for layer in 1..3 {\n    width = widths[layer]\n"
        "    attention { heads = 2, head_dim = 6, scale = 0.4 }\n    ffn { hidden = 24, activation = gelu }\n  }\n  head lm { norm = rms_norm(eps = 1e-5) }\n}\n"
        "grow g {\n  when = step >= 1\n  let w = 14\n  fill { entry = %s, exit = %s }\n  check preserves(%s)\n%s}\n";
    static const char *const fill[][3] = {{RANDOM, "zeros", "E0701"}, {"zeros", RANDOM, "E0701"}, {"zeros", "zeros", "E0711"}};
    char text[8192];
    for (size_t i = 0; i < COUNT_OF(fill); i++) {
        snprintf(text, sizeof text, wide, fill[i][0], fill[i][1], "1e-6", "  check alive(none)\n");
        test_claim(t, "one layer wider", text, false, fill[i][2], refused);
    }
    snprintf(text, sizeof text, wide, RANDOM, "zeros", "none", "");
    test_claim(t, "one layer wider, intended", text, true, "", refused);
}

int main(void)
{
    Test t = {0};
    size_t refused = 0;
    CaseDraw draw = {.one_in = 1, .sanitized = 8};
    test_alike(&t);
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (case_drawn(&draw, i))
            test_row(&t, &rows[i], &refused);
    for (size_t i = 0; i < COUNT_OF(nexus); i++)
        if (case_drawn(&draw, i)) {
            test_nexus(&t, &nexus[i], false, &refused);
            test_nexus(&t, &nexus[i], true, &refused);
        }
    test_nexus_noise(&t, "10%", &refused);
    test_nexus_noise(&t, "20%", &refused);
    test_one_layer(&t, &refused);
    printf("%zu claims refused\n", refused);
    EXPECT(&t, "claims refused", refused >= 100 / drawn_share(&draw));
    cases_end(&draw);
    return test_end(&t);
}
