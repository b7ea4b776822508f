/* growth_rows.h - the published ways to grow a model, and what is known of each.
 *
 * In:  nothing.   Out: a small model, growth steps of it, and what papers and their algebra say of each: one table for
 * the test of the proof (tests/language/catalogue.c) and for runs through every step (growth_runs.h).
 * The one idea: whether a way preserves the function and which blocks learn when was derived by hand and measured
 * elsewhere (Net2Net, bert2BERT, LEMON, Hyper-Connections, Nexusformer, Tokenformer); here it is one row each.
 */
#ifndef VWN_TESTS_GROWTH_ROWS_H
#define VWN_TESTS_GROWTH_ROWS_H

#include "compiler/growth/growth.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HALF_STEPS = -3 }; /* not looked at */
typedef struct GrowthRow {
    const char *name, *set, *lets, *fill; /* `set`: lets of the model that differ, "a = 1|b = 2" */
    bool preserved;
    int alive;        /* updates until every new block has a gradient; NEVER; HALF_STEPS */
    const char *code; /* of what is said where it is not preserved; NULL: E0701 */
    bool longer;      /* it is not, for outputs become longer; what was there stays */
} GrowthRow;

static const char growth_model[] =
    "edition = 1\nimport \"std/transformer\"\nimport \"std/connections\"\nimport \"std/growable\"\n"
    "block scaled(slots: int, out: dim = scope.width)(x: [.., D]) -> [.., out] {\n"
    "  param K : [slots, D] = scope.init\n  param V : [slots, out] = scope.init\n  s = x @ K.T\n"
    "  return gelu(s / sqrt(sum(s * s, over = -1, keep = true)) * sqrt(slots)) @ V\n}\n"
    "block valued(e: int)(x: [B, T, D]) -> [B, T, D] {\n"
    "  let q = linear(out = 16)\n  let k = linear(out = 16)\n  let v = linear(out = 2 * e)\n  let o = linear(out = D)\n"
    "  a = sdpa(reshape(q(x), [B, T, 2, 8]), reshape(k(x), [B, T, 2, 8]), reshape(v(x), [B, T, 2, e]), mask = causal, "
    "scale = 0.35)\n"
    "  return o(reshape(a, [B, T, 2 * e]))\n}\n"
    "block fused(heads: int, turned: bool = false)(x: [B, T, D]) -> [B, T, D] {\n" /* one product for queries, keys and values */
    "  param W : [D, 3 * heads * 4] = scope.init\n  let o = linear(out = D)\n  p = split(x @ W, 3)\n"
    "  q = reshape(p[1], [B, T, heads, 4])\n  k = reshape(p[2], [B, T, heads, 4])\n"
    "  if turned {\n    q = rotary(q, base = 100)\n    k = rotary(k, base = 100)\n  }\n"
    "  return o(reshape(sdpa(q, k, reshape(p[3], [B, T, heads, 4]), mask = causal, scale = 0.5), [B, T, heads * "
    "4]))\n}\n"
    "let D = 16\nlet F = 24\nlet heads = 2\nlet kv = 2\nlet h = 8\nlet L = 2\nlet V = 32\nlet S = 8\nlet E = D\n"
    "let act = gelu\nlet gated = false\nlet scale = 0.35\nlet conn = residual()\nlet norm = rms_norm(eps = 1e-5)\n"
    "let out = normal(std = 0.02)\nlet turn = none\nlet qk = none\nlet map = linear()\n"
    "let sub = ffn(hidden = F, activation = act, gated = gated)\nlet experts = 3\nlet tied = false\nlet learned = "
    "false\nlet eps = 1e-5\nlet context = 8\nlet e = 8\nlet turned = false\nlet loud = 1\nlet window = 0\n"
    "model m {\n  context = context\n  width = D\n  mask = causal\n  init = normal(std = 0.02)\n  out_init = out\n"
    "  pre_norm = norm\n  connection = conn\n  embed tokens { vocab = V, width = E }\n  if learned { embed position { "
    "size = context } }\n"
    "  for layer in 1..L {\n    attention { heads = heads, kv_heads = kv, head_dim = h, scale = scale, position = "
    "turn, qk_norm = qk, window = window,\n"
    "      q_proj = map, k_proj = map, v_proj = map }\n    sub\n  }\n  if tied { head lm { norm = norm, tie = tokens } "
    "} else { head lm { norm = norm, scale = loud } }\n}\n";

#define UPCYCLED                                                                                                       \
    "layer[*].sub.up { layers = copy(of = layer[*].sub.up.W) }, layer[*].sub.gate { layers = copy(of = "               \
    "layer[*].sub.gate.W) }, layer[*].sub.down { layers = copy(of = layer[*].sub.down.W) }"
#define RANDOM "normal(std = 0.02)"
/* Rows leave out what is NULL. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
static const GrowthRow growth_rows[] = {
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
    {"swiglu, gate = 0", "act = silu|gated = true", "let F = 40",
     "entry = " RANDOM ", exit = " RANDOM ", layer[*].sub.gate { entry = zeros }", true, 1},
    {"swiglu, up = 0", "act = silu|gated = true", "let F = 40",
     "entry = " RANDOM ", exit = " RANDOM ", layer[*].sub.up { entry = zeros }", true, 1},
    {"swiglu, gate = up = 0", "act = silu|gated = true", "let F = 40", "entry = zeros, exit = " RANDOM, true, NEVER},
    {"swiglu, all 0", "act = silu|gated = true", "let F = 40", "entry = zeros, exit = zeros", true, NEVER},
    /* copies of units: incoming weights copied, outgoing ones shared out (Net2Wider; LEMON: sizes that do not divide, shares
     * that are not equal) */
    {"net2wider, gelu", NULL, "let F = 40", "entry = copy, exit = split", true, 0},
    {"net2wider, relu, twice as wide", "act = relu", "let F = 48", "entry = copy, exit = split", true, 0},
    {"net2wider, beside", NULL, "let F = 72", "entry = replicate, exit = replicate", true, 0},
    {"net2wider, swiglu", "act = silu|gated = true", "let F = 100", "entry = copy, exit = split", true, 0},
    {"net2wider, sigmoid, biases", "act = sigmoid|sub = ffn(hidden = F, activation = act, bias = true)", "let F = 40",
     "entry = copy, exit = split", true, 0},
    {"lemon, unequal shares", NULL, "let F = 40", "entry = copy, exit = split(share = 0.3)", true, 0},
    {"copies without shares", NULL, "let F = 40", "entry = copy, exit = copy", false, 0, "E0711"},
    {"copies that are not read", NULL, "let F = 40", "entry = copy, exit = zeros", true, 1},
    {"shares of what is no copy", NULL, "let F = 40", "entry = " RANDOM ", exit = split", false, 0},
    {"copies in another order than they are read", NULL, "let F = 48", "entry = replicate, exit = split", false, 0,
     "E0711"},
    {"experts, net2wider",
     "sub = moe(experts = experts, active = 2, hidden = F, activation = silu, scores = softmax, normalize = true, "
     "balance = 0)",
     "let F = 40", "entry = copy, exit = split", true, 0},
    {"heads, copies", NULL, "let heads = 4\n  let kv = 4", "entry = copy, exit = split", true, 0},
    {"heads, copies, sizes that do not divide", NULL, "let heads = 3\n  let kv = 3",
     "entry = copy, exit = split(share = 0.4)", true, 0},
    {"groups of heads, copies", "heads = 4|kv = 2", "let heads = 8\n  let kv = 4", "entry = copy, exit = split", true,
     0},
    {"more kv heads, each beside its copies", "heads = 4|kv = 2|turn = rope(base = 100)", "let kv = 4",
     "entry = replicate", true, 0},
    {"more kv heads, of one", "heads = 4|kv = 1", "let kv = 4", "entry = replicate", true, 0},
    {"more kv heads, copies behind", "heads = 4|kv = 2", "let kv = 4", "entry = copy", false, 0, "E0711"},
    {"head_dim, copies", NULL, "let h = 12", "entry = copy, exit = split", false, HALF_STEPS,
     "E0711"}, /* scores grow */
    /* attention */
    {"heads, o = 0", NULL, "let heads = 3\n  let kv = 3", "entry = " RANDOM ", exit = zeros", true, 1},
    {"heads, v = 0", NULL, "let heads = 3\n  let kv = 3",
     "entry = " RANDOM ", exit = " RANDOM ", layer[*].attention.v_proj { entry = zeros }", true, 1},
    {"heads, v = o = 0", NULL, "let heads = 3\n  let kv = 3",
     "entry = " RANDOM ", exit = zeros, layer[*].attention.v_proj { entry = zeros }", true, NEVER},
    {"heads, all random", NULL, "let heads = 3\n  let kv = 3", "entry = " RANDOM ", exit = " RANDOM, false, 0},
    {"heads share kv, o = 0", "kv = 1", "let heads = 3", "entry = " RANDOM ", exit = zeros", true, 1},
    {"head_dim, k = 0, o = 0", NULL, "let h = 12",
     "entry = " RANDOM ", exit = zeros, layer[*].attention.k_proj { entry = zeros }", true, 1},
    {"head_dim, q = k = 0", NULL, "let h = 12",
     "entry = zeros, exit = zeros, layer[*].attention.v_proj { entry = " RANDOM " }", true, NEVER},
    {"head_dim, scale follows", "scale = 1 / sqrt(h)", "let h = 12",
     "entry = " RANDOM ", exit = zeros, layer[*].attention.k_proj { entry = zeros }", false, HALF_STEPS, "E0711"},
    {"head_dim, rope moves", "turn = rope(base = 100)", "let h = 12",
     "entry = " RANDOM ", exit = zeros, layer[*].attention.k_proj { entry = zeros }", false, HALF_STEPS},
    {"head_dim, qk norm", "qk = rms_norm(eps = 1e-5)", "let h = 12",
     "entry = " RANDOM ", exit = zeros, layer[*].attention.k_proj { entry = zeros }", false, HALF_STEPS},
    {"width re-cuts heads", "h = D / heads|scale = 0.35", "let D = 20", "entry = zeros, exit = zeros, inner = zeros",
     false, HALF_STEPS},
    {"one product for all of a head, o = 0", "sub = fused(heads = heads, turned = turned)",
     "let heads = 3\n  let kv = 3", "entry = " RANDOM ", exit = zeros", true, 1},
    {"one product for all of a head, rope, o = 0", "sub = fused(heads = heads, turned = turned)|turned = true",
     "let heads = 4\n  let kv = 4", "entry = " RANDOM ", exit = zeros", true, 1},
    {"one product for all of a head, copies", "sub = fused(heads = heads, turned = turned)",
     "let heads = 4\n  let kv = 4", "entry = copy, exit = split", true, 0},
    {"one product for all of a head, copies without shares", "sub = fused(heads = heads, turned = turned)",
     "let heads = 4\n  let kv = 4", "entry = copy, exit = copy", false, 0},
    {"one product for all of a head, all random", "sub = fused(heads = heads, turned = turned)",
     "let heads = 3\n  let kv = 3", "entry = " RANDOM ", exit = " RANDOM, false, 0},
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
    {"depth, identity, hyper", "conn = hyper(n = 2, dynamic = true)", "let L = 3", "layers = identity", true,
     HALF_STEPS},
    {"depth, identity, virtual width", "conn = ghc(m = 2, n = 4, dynamic = true)|E = 32", "let L = 3",
     "layers = identity", true, HALF_STEPS},
    {"depth, identity, gated", "act = silu|gated = true", "let L = 4", "layers = identity", true, 1},
    {"depth, identity, experts",
     "sub = moe(experts = experts, active = 2, hidden = F, activation = silu, scores = softmax, normalize = true, "
     "balance = 0)",
     "let L = 3", "layers = identity", true, HALF_STEPS},
    {"depth, random", NULL, "let L = 3", "", false, 0},
    {"depth, stacked", NULL, "let L = 4", "layers = copy", false, 0, "E0711"},
    {"depth, stacked, by number", NULL, "let L = 4", "layers = copy(layer - 2)", false, 0, "E0711"},
    {"depth, interleaved", NULL, "let L = 4", "layers = replicate", false, 0, "E0711"},
    {"depth, stacked, o = down = 0", NULL, "let L = 3",
     "layers = copy, layer[*].attention.o_proj { layers = zeros }, layer[*].sub.down { layers = zeros }", true, 1},
    {"depth, interleaved, o = down = 0", NULL, "let L = 6",
     "layers = replicate, layer[*].attention.o_proj { layers = zeros }, layer[*].sub.down { layers = zeros }", true, 1},
    {"depth, post-norm, identity", "conn = post_norm(norm = rms_norm(eps = 1e-5))|norm = none", "let L = 3",
     "layers = identity", false, HALF_STEPS, "E0711"},
    /* width of the stream: a mean over more coordinates */
    {"width, rms_norm", NULL, "let D = 20", "entry = zeros, exit = " RANDOM ", inner = zeros", false, 1},
    {"width, rms_norm, gains and eps", "norm = rms_norm(eps = eps)", "let D = 20\n  let eps = 1e-5 * 16 / 20",
     "entry = zeros, exit = " RANDOM ", norms = rescale", true, 1},
    {"width, rms_norm, gains alone", "norm = rms_norm(eps = eps)", "let D = 20",
     "entry = zeros, exit = " RANDOM ", norms = rescale", false, 1},
    {"width, rms_norm, eps alone", "norm = rms_norm(eps = eps)", "let D = 20\n  let eps = 1e-5 * 16 / 20",
     "entry = zeros, exit = " RANDOM, false, 1, "E0703"},
    {"width, rms_norm without eps, gains", "norm = rms_norm(eps = 0)", "let D = 20",
     "entry = zeros, exit = " RANDOM ", norms = rescale", true, 1},
    {"width, rms_norm without gain, folded", "norm = rms_norm(eps = eps, gain = false)",
     "let D = 20\n  let eps = 1e-5 * 16 / 20", "entry = zeros, exit = " RANDOM ", norms = rescale", true, 1},
    {"width, rms_norm, read = write = 0", "norm = rms_norm(eps = eps)", "let D = 20\n  let eps = 1e-5 * 16 / 20",
     "entry = zeros, exit = zeros, norms = rescale", true, NEVER},
    {"width, rms_norm, all random", "norm = rms_norm(eps = eps)", "let D = 20\n  let eps = 1e-5 * 16 / 20",
     "entry = " RANDOM ", exit = " RANDOM ", norms = rescale", false, 0},
    {"width, layer_norm, twice", "norm = layer_norm(eps = 1e-5)", "let D = 32", "entry = copy, exit = split", true, 0},
    {"width, layer_norm, copies of some", "norm = layer_norm(eps = 1e-5)", "let D = 20", "entry = copy, exit = split",
     false, 0, "E0711"},
    {"width, tied table", "norm = rms_norm(eps = eps)|tied = true", "let D = 20\n  let eps = 1e-5 * 16 / 20",
     "entry = zeros, exit = " RANDOM ", norms = rescale, embed.tokens { exit = zeros }", true, 1},
    {"width, layer_norm", "norm = layer_norm(eps = 1e-5)", "let D = 20",
     "entry = zeros, exit = " RANDOM ", inner = zeros", false, HALF_STEPS},
    /* hyper-connections */
    {"residual to hyper, mean", NULL, "let conn = hyper(n = 2, dynamic = true, collapse = mean)", "", true, HALF_STEPS},
    {"residual to hyper, sum", NULL, "let conn = hyper(n = 2, dynamic = true)", "", false, HALF_STEPS, "E0711"},
    {"residual to virtual width", NULL, "let conn = ghc(m = 2, n = 2, dynamic = true)", "", true, HALF_STEPS},
    {"residual to virtual width 3/2", NULL,
     "let E = 24\n  let conn = ghc(m = 2, n = 3, dynamic = true, reduce = linear(out = D, init = eye))", "", true,
     HALF_STEPS},
    {"residual to virtual width 3/2, reduce random", NULL,
     "let E = 24\n  let conn = ghc(m = 2, n = 3, dynamic = true, reduce = linear(out = D))", "", false, HALF_STEPS},
    {"residual to frac", NULL, "let conn = frac(m = 2, dynamic = true)", "", true, HALF_STEPS},
    {"hyper, one more stream, zero", "conn = hyper(n = 2, dynamic = true, replicate = [1, 1])",
     "let conn = hyper(n = 3, dynamic = true, replicate = [1, 1, 0])",
     "entry = zeros, exit = " RANDOM
     ", layer[*].attention.connection.B { norms = zeros }, layer[*].sub.connection.B { norms = zeros }",
     true, HALF_STEPS},
    {"hyper, one more stream, and it is written", "conn = hyper(n = 2, dynamic = true, replicate = [1, 1])",
     "let conn = hyper(n = 3, dynamic = true, replicate = [1, 1, 0])", "entry = zeros, exit = " RANDOM, false,
     HALF_STEPS, "E0711"},
    {"hyper, one more stream, mean", "conn = hyper(n = 2, dynamic = true, replicate = [1, 1], collapse = mean)",
     "let conn = hyper(n = 3, dynamic = true, replicate = [1, 1, 0], collapse = mean)",
     "entry = zeros, exit = " RANDOM
     ", layer[*].attention.connection.B { norms = zeros }, layer[*].sub.connection.B { norms = zeros }",
     false, HALF_STEPS, "E0703"},
    {"virtual width, a new slot", "conn = ghc(m = 2, n = 2, dynamic = true, tau = 2.8, reduce = linear(out = D))",
     "let E = 24\n  let conn = ghc(m = 2, n = 3, dynamic = true, tau = 2.8, reduce = linear(out = D))",
     "entry = " RANDOM ", exit = zeros, layer[*].attention.connection.S_ac { norms = zeros }, "
     "layer[*].sub.connection.S_ac { norms = zeros }, "
     "layer[*].attention.connection.S_ai { norms = zeros }, layer[*].sub.connection.S_ai { norms = zeros }",
     true, HALF_STEPS},
    {"virtual width, a new slot whose scales are 1",
     "conn = ghc(m = 2, n = 2, dynamic = true, tau = 2.8, reduce = linear(out = D))",
     "let E = 24\n  let conn = ghc(m = 2, n = 3, dynamic = true, tau = 2.8, reduce = linear(out = D))",
     "entry = " RANDOM ", exit = zeros", false, HALF_STEPS},
    {"hyper, a stream that reads 1", "conn = hyper(n = 2, dynamic = true)", "let conn = hyper(n = 3, dynamic = true)",
     "entry = zeros, exit = zeros, inner = zeros", false, HALF_STEPS, "E0711"},
    /* experts, ids */
    {"experts wider, down = 0",
     "sub = moe(experts = experts, active = 2, hidden = F, activation = silu, scores = softmax, normalize = true, "
     "balance = 0)",
     "let F = 40", "entry = " RANDOM ", exit = zeros", true, 1},
    {"dense to experts, weights add up to 1", "act = silu|gated = true",
     "let sub = moe(experts = 4, active = 2, hidden = F, activation = silu, scores = softmax, normalize = true, "
     "balance = 0.01)",
     UPCYCLED, true, HALF_STEPS},
    {"dense to experts, softmax of the chosen", "act = silu|gated = true",
     "let sub = moe(experts = 4, active = 2, hidden = F, activation = silu, scores = softmax, normalize = false, "
     "balance = 0.01, order = topk_first)",
     UPCYCLED, true, HALF_STEPS},
    {"dense to experts, weights as they are", "act = silu|gated = true",
     "let sub = moe(experts = 4, active = 2, hidden = F, activation = silu, scores = softmax, normalize = false, "
     "balance = 0.01)",
     UPCYCLED, false, HALF_STEPS},
    {"more experts",
     "sub = moe(experts = experts, active = 2, hidden = F, activation = silu, scores = softmax, normalize = true, "
     "balance = 0)",
     "let experts = 4", "entry = zeros, exit = zeros", false, HALF_STEPS, "E0711"},
    {"copies of ids", NULL, "let V = 40", "entry = copy, exit = copy", false, HALF_STEPS, "E0711", .longer = true},
    {"more ids, the mean of the old", NULL, "let V = 40", "embed.tokens { exit = mean }, head.lm { entry = mean }",
     false, HALF_STEPS, "E0711", .longer = true},
    {"the mean of all units, nothing reads it", NULL, "let F = 40", "entry = mean, exit = zeros", true, 1},
    {"the mean of all units, read as their mean", NULL, "let F = 40", "entry = mean, exit = mean", false, 0},
    {"the mean of all coordinates", "norm = rms_norm(eps = eps)", "let D = 20",
     "entry = mean, exit = mean, inner = mean, norms = mean", false, HALF_STEPS},
    {"head_dim, given frequencies", "turn = rope_at(freqs = [1, 0.3, 0.1, 0.03])", "let h = 12",
     "entry = " RANDOM ", exit = zeros, layer[*].attention.k_proj { entry = zeros }", true, 1},
    {"value dim, o = 0", "sub = valued(e = e)", "let e = 12", "entry = " RANDOM ", exit = zeros", true, 1},
    {"value dim, v = 0", "sub = valued(e = e)", "let e = 12", "entry = zeros, exit = " RANDOM, true, 1},
    {"value dim, both random", "sub = valued(e = e)", "let e = 12", "entry = " RANDOM ", exit = " RANDOM, false, 0},
    {"10 % noise", NULL, "let F = 40", "entry = noise(share = 10%), exit = noise(share = 10%)", false, 0},
    {"10 % noise, nothing reads it", NULL, "let F = 40", "entry = noise(share = 10%), exit = zeros", true, 1},
    {"longer context", "turn = rope(base = 100)", "let context = 16", "", true, HALF_STEPS},
    {"longer context, learned positions", "learned = true", "let context = 16", "entry = " RANDOM, true, HALF_STEPS},
    {"more ids", NULL, "let V = 40", "entry = zeros, exit = zeros", false, HALF_STEPS, "E0711", .longer = true},
    /* extents of 0 and 1 */
    {"ffn out of nothing", "F = 0", "let F = 8", "entry = " RANDOM ", exit = zeros", true, 1},
    {"ffn stays nothing", "F = 0", "let L = 3", "layers = identity", true, HALF_STEPS},
    {"swiglu out of nothing", "act = silu|gated = true|F = 0", "let F = 8", "entry = " RANDOM ", exit = zeros", true,
     1},
    {"more ids beside nothing", "F = 0", "let V = 40", "entry = zeros, exit = zeros", false, HALF_STEPS, "E0711",
     .longer = true},
    {"one unit more than one", "F = 1", "let F = 2", "entry = copy, exit = split(share = 0.4)", true, 0},
    {"heads beside one of one coordinate", "heads = 1|kv = 1|h = 1", "let heads = 3\n  let kv = 3",
     "entry = copy, exit = split(share = 0.4)", true, 0},
    {"one layer, stacked", "L = 1", "let L = 2",
     "layers = copy, layer[*].attention.o_proj { layers = zeros }, layer[*].sub.down { layers = zeros }", true, 1},
    {"one expert more than one",
     "sub = moe(experts = experts, active = 1, hidden = F, activation = silu, scores = softmax, normalize = false, "
     "balance = 0)|experts = 1",
     "let F = 40", "entry = " RANDOM ", exit = zeros", true, 1},
    {"one position, ffn", "context = 1", "let F = 40", "entry = " RANDOM ", exit = zeros", true, 1},
    {"one position, twice as wide", "context = 1|act = relu", "let F = 48", "entry = copy, exit = split", true, 0},
    {"one position, depth", "context = 1", "let L = 3", "layers = identity", true, HALF_STEPS},
    {"one position to eight", "context = 1|turn = rope(base = 100)", "let context = 8", "", true, HALF_STEPS},
    {"width out of one", "D = 1|E = 1|norm = none|h = 2|F = 3", "let D = 2\n  let E = 2",
     "entry = zeros, exit = " RANDOM ", inner = zeros", true, HALF_STEPS},
    /* Tokenformer (2024): keys are new on the written axis of their transpose */
    {"tokens, keys = 0, tau kept", "map = pattention(slots = S)", "let S = 12", "entry = zeros, exit = " RANDOM, true,
     1},
    {"tokens, both 0", "map = pattention(slots = S)", "let S = 12", "entry = zeros, exit = zeros", true, NEVER},
    {"tokens, values = 0", "map = pattention(slots = S)", "let S = 12", "entry = " RANDOM ", exit = zeros", false,
     HALF_STEPS},
    {"tokens, as released", "map = pattention(slots = S)", "let S = 12", "entry = " RANDOM ", exit = " RANDOM, false,
     0},
    {"tokens, tau follows", "map = scaled(slots = S)", "let S = 12", "entry = zeros, exit = " RANDOM, false, HALF_STEPS,
     "E0703"},
    {"tokens, softmax", "map = pattention(slots = S, normalise = softmax)", "let S = 12",
     "entry = zeros, exit = " RANDOM, false, HALF_STEPS, "E0711"},
    {"tokens, gelu then l2", "map = pattention(slots = S, normalise = gelu_l2)", "let S = 12",
     "entry = zeros, exit = " RANDOM, true, 1},
};
#pragma GCC diagnostic pop

/* Copies the model into `text`, with the lets of "a = 1|b = f(x, y)" in the place of its own. */
static inline size_t put_growth_model(char *text, size_t most, const char *set)
{
    size_t n = (size_t)snprintf(text, most, "%s", growth_model);
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

/* The model, its training where it has one, and the step of the row with what it claims. */
static inline void put_growth_row(char *text, size_t most, const GrowthRow *r, const char *train, const char *when,
                                  const char *claims)
{
    size_t n = put_growth_model(text, most, r->set);
    snprintf(text + n, most - n, "%sgrow g {\n  when = %s\n  %s\n%s%s%s%s}\n", train, when, r->lets,
             *r->fill ? "  fill { " : "", r->fill, *r->fill ? " }\n" : "", claims);
}

#endif
