/* growth_text.h - growth steps made at random.
 *
 * In:  a seed.   Out: the text of a file with one step, and what of its weights learns, as it was drawn.
 * The one idea: what is proved wrongly stands at edges, so edges are drawn as often as all else: one expert, one
 * active expert, one position, a rate of 0, a frozen group, values that cancel or have no slope.
 */
#ifndef LANGUAGE_GROWTH_TEXT_H
#define LANGUAGE_GROWTH_TEXT_H

#include "compiler/base/base.h"

#include <stdint.h>
#include <string.h>

/* What was drawn of training. */
typedef struct Drawn {
    const char *text;
    const char *frozen;        /* part of the paths of what the file freezes; NULL: nothing */
    const char *rate;          /* part of the paths of what has a rate of 0, "" of all; NULL: nothing */
    bool new_stays, old_stays; /* `new` and `old` have a rate of 0 */
    bool waits;                /* `new` has one for a time */
    int64_t positions;
} Drawn;

/* Numbers are added in l2 norms, for without them what is read may be of any length, and weights of streams, which change
 * nothing else, have no gradient in any model, old or new. */

typedef struct Draw {
    uint64_t state;
} Draw;

static int pick(Draw *d, int n)
{
    d->state = d->state * 6364136223846793005u + 1442695040888963407u;
    return (int)((d->state >> 33) % (uint64_t)n);
}

#define ONE_OF(d, ...) one_of(d, (const char *const[]){__VA_ARGS__}, COUNT_OF(((const char *const[]){__VA_ARGS__})))
static const char *one_of(Draw *d, const char *const *text, size_t n) { return text[pick(d, (int)n)]; }

static const char *fill_of(Draw *d) { return pick(d, 9) < 6 ? "zeros" : "normal(std = 0.3)"; }

/* A value of a block of two products h and g of its input: operators drawn of a pool, so that the same is met again. */
static void put_odd(Buf *b, Draw *d)
{
    static const char *const one[] = {"gelu(%s)",
                                      "tanh(%s)",
                                      "relu(%s)",
                                      "sigmoid(%s)",
                                      "exp(tanh(%s))",
                                      "%s * 0.7",
                                      "%s + 0.3",
                                      "-%s",
                                      "abs(%s)",
                                      "%s ^ 2",
                                      "floor(%s)",
                                      "sign(%s)",
                                      "round(2 * %s)",
                                      "stop_gradient(%s)",
                                      "%s ^ 0",
                                      "softmax(%s, over = -1)",
                                      "clamp(%s, -0.3, 0.3)",
                                      "clamp(sigmoid(%s), 2, 3)",
                                      "relu(-exp(%s))",
                                      "where(%s < 0, -0.2, 0.1)",
                                      "0 * %s",
                                      "log(exp(%s))",
                                      "mean(%s, over = -1, keep = true) + 0 * h",
                                      "h + stop_gradient(round(%s) - h)"};
    static const char *const two[] = {"%s + %s",
                                      "%s - %s",
                                      "%s * %s",
                                      "%s * sigmoid(%s)",
                                      "%s / (1 + abs(%s))",
                                      "%s / (sum(abs(%s), over = -1, keep = true) + 0.1)",
                                      "%s / exp(%s)",
                                      "max(%s, %s)",
                                      "min(%s, %s)",
                                      "where(%s < %s, h, g)",
                                      "%s - stop_gradient(%s)",
                                      "%s + stop_gradient(%s)",
                                      "%s * stop_gradient(%s)",
                                      "max(exp(%s), -abs(%s))"};
    const char *pool[8] = {"h", "g"};
    static const char *const name[] = {"a", "b", "c", "e", "f"};
    int n = 2, steps = 1 + pick(d, 4);
    for (int i = 0; i < steps; i++, n++) {
        const char *x = pool[pick(d, n)], *y = pool[pick(d, n)];
        buf_printf(b, "  %s = ", name[i]);
        if (pick(d, 2)) {
            const char *form = one[pick(d, COUNT_OF(one))];
            buf_printf(b, form, x);
        } else {
            buf_printf(b, two[pick(d, COUNT_OF(two))], x, y);
        }
        buf_puts(b, "\n");
        pool[n] = name[i];
    }
    const char *last = pool[n - 1];
    buf_printf(b, pick(d, 3) ? "  return %s @ W\n" : "  return (%s - %s + h) @ W\n", last, last);
}

static const char *bool_of(Draw *d) { return ONE_OF(d, "true", "false"); }

/* Experts, as many and as few as there can be. */
static void put_routed(Buf *b, Draw *d, int experts, const char *act)
{
    int active = pick(d, 3) ? 1 : 1 + pick(d, experts);
    buf_printf(b,
               "    moe { experts = X, active = %d, hidden = F, activation = %s, scores = %s, normalize = %s, balance "
               "= %s, order = %s%s }\n",
               active, act, ONE_OF(d, "softmax", "softmax", "sigmoid"), bool_of(d), ONE_OF(d, "0", "0", "0.01"),
               ONE_OF(d, "scores_first", "scores_first", "topk_first"), ONE_OF(d, "", "", ", router_bias = zeros"));
}

/* `train`, and what of the weights does not learn. */
static const char *train_of(Arena *arena, Draw *d, Drawn *out)
{
    static const char *const part[] = {".attention", ".ffn", ".moe", "head", "q_proj", "embed"};
    static const char *const glob[] = {"*.attention.*", "*.ffn.*", "*.moe.*", "head.*", "*q_proj*", "embed.*"};
    Buf b = buf_new(arena);
    int i = pick(d, 6), what = pick(d, 12);
    buf_printf(&b,
               "train {\n  data = token_files(\"none.bin\", dtype = u16), tokenizer = file(\"none.json\"), batch = 2 "
               "seqs, length = 20 steps, seed = 1\n"
               "  precision = fp32\n  optimizer sgd { lr = %s, momentum = 0, weight_decay = 0\n",
               what == 0   ? "0"
               : what == 1 ? "cosine(peak = 0, floor = 0)"
                           : "0.1");
    if (what < 2)
        out->rate = "";
    if (what == 2 || what == 3 || what == 4) {
        out->frozen = part[i];
        buf_printf(&b, "    group \"%s\" { frozen = true }\n", glob[i]);
    } else if (what == 5) {
        out->rate = part[i];
        buf_printf(&b, "    group \"%s\" { lr_scale = 0 }\n", glob[i]);
    }
    buf_puts(&b, "  }\n}\n");
    return b.s;
}

/* What grows, and how its blocks are filled. */
static Drawn text_of(Arena *arena, uint64_t seed)
{
    Drawn out = {0};
    Draw d = {seed * 0x9e3779b97f4a7c15u + 77};
    for (int i = 0; i < 8; i++)
        pick(&d, 2);
    int heads = 1 + pick(&d, 3), group = 1 + pick(&d, 2), h = 2 * (1 + pick(&d, 3)), D = 4 * (2 + pick(&d, 3));
    int F = 3 + pick(&d, 9), M = 3 + pick(&d, 5), A = 3 + pick(&d, 5), S = 3 + pick(&d, 4), n = 2 + pick(&d, 2);
    const char *map = ONE_OF(&d, "linear()", "linear()", "nexus_rank(M = M, A = A)",
                             "nexus_rank(M = M, A = A, normalise = l2)", "pattention(slots = S, eps = 0.01)",
                             "pattention(slots = S, normalise = gelu_l2)", "linear(bias = true)");
    const char *norm = ONE_OF(&d, "rms_norm(eps = eps)", "rms_norm(eps = eps)", "layer_norm(eps = eps)",
                              "rms_norm(eps = eps, gain = false)");
    const char *conn = ONE_OF(&d, "residual()", "residual()", "residual()", "hyper(n = n, dynamic = false)",
                              "hyper(n = n, dynamic = true, collapse = mean)", "ghc(m = 2, n = n + 1, dynamic = true)",
                              "frac(m = 2, dynamic = true)", "residual(branch_scale = 0.5)");
    const char *act = ONE_OF(&d, "gelu", "silu", "relu", "tanh", "sigmoid");
    const char *gated = ONE_OF(&d, "true", "false");
    const char *sub = ONE_OF(&d, "ffn", "ffn", "ffn", "moe", "routed", "routed", "odd", "odd", "pattention");
    int X = pick(&d, 4) ? 2 + pick(&d, 3) : 1;
    out.positions = pick(&d, 6) ? 8 : 1;
    if (!strcmp(sub, "odd") && !pick(&d, 3))
        F = 1;
    int layers = 1 + !pick(&d, 4);
    bool upcycle = !strcmp(sub, "ffn") && !strcmp(gated, "true") && !pick(&d, 4);
    Buf b = buf_new(arena), lets = buf_new(arena);
    const char *copies = pick(&d, 4)
                             ? NULL
                             : ONE_OF(&d, "entry = copy, exit = split", "entry = copy, exit = split",
                                      "entry = copy, exit = split(share = 0.3)", "entry = replicate, exit = replicate",
                                      "entry = copy, exit = zeros", "entry = copy, exit = copy",
                                      "entry = zeros, exit = split", "entry = replicate, exit = split");
    buf_printf(
        &b,
        "edition = 1\nimport \"std/transformer\"\nimport \"std/connections\"\nimport \"std/growable\"\nlet eps = 1e-3\n"
        "let D = %d\nlet F = %d\nlet heads = %d\nlet kv = %d\nlet h = %d\nlet n = %d\nlet L = %d\nlet M = %d\nlet A = "
        "%d\n"
        "let S = %d\nlet X = %d\nlet V = 17\nlet dense = true\nlet conn = %s\nlet E = %s\n",
        D, F, heads * group, heads, h, n, layers, M, A, S, X, conn, !strncmp(conn, "ghc", 3) ? "D * (n + 1) / 2" : "D");
    if (!strcmp(sub, "odd")) {
        buf_puts(&b, "block odd()(x: [B, T, D]) -> [B, T, D] {\n  param U : [D, F] = scope.init\n  param G : [D, F] = "
                     "scope.init\n  param W : [F, D] = scope.init\n"
                     "  h = x @ U\n  g = x @ G\n");
        put_odd(&b, &d);
        buf_puts(&b, "}\n");
    }
    buf_printf(
        &b,
        "model m {\n  context = %d, width = D, mask = %s, init = normal(std = 0.3), out_init = normal(std = 0.3)\n"
        "  pre_norm = %s, connection = conn\n  embed tokens { vocab = V, width = E }\n  for layer in 1..L {\n"
        "    attention { heads = heads, kv_heads = kv, head_dim = h, scale = %s, q_proj = %s, k_proj = %s, v_proj = "
        "%s%s%s }\n",
        (int)out.positions, ONE_OF(&d, "causal", "causal", "full"), norm, pick(&d, 4) ? "0.4" : "1 / sqrt(h)", map, map,
        map, pick(&d, 2) ? ", position = rope(base = 100)" : "", pick(&d, 4) ? "" : ", qk_norm = rms_norm(eps = 1e-3)");
    if (!strcmp(sub, "moe"))
        buf_printf(&b,
                   "    moe { experts = 3, active = 2, hidden = F, activation = %s, scores = softmax, normalize = "
                   "true, balance = 0.01 }\n",
                   act);
    else if (!strcmp(sub, "routed"))
        put_routed(&b, &d, X, act);
    else if (!strcmp(sub, "odd"))
        buf_puts(&b, "    odd { }\n");
    else if (!strcmp(sub, "pattention"))
        buf_puts(&b, "    pattention { slots = S, out = D, eps = 0.01 }\n");
    else if (
        upcycle) /* not all experts: those that are copies of one another give the router no gradient then, and balance none */
        buf_printf(&b,
                   "    if dense { ffn { hidden = F, activation = %s, gated = true } } else { moe { experts = 3, "
                   "active = %s, hidden = F, "
                   "activation = %s, scores = %s, normalize = %s, order = %s, balance = 0.01 } }\n",
                   act, ONE_OF(&d, "1", "2"), act, ONE_OF(&d, "softmax", "softmax", "sigmoid"),
                   ONE_OF(&d, "true", "true", "false"), ONE_OF(&d, "scores_first", "topk_first"));
    else
        buf_printf(&b, "    ffn { hidden = F, activation = %s, gated = %s, bias = %s }\n", act, gated,
                   ONE_OF(&d, "true", "false", "false"));
    bool tied = !pick(&d, 4);
    buf_printf(&b, "  }\n  head lm { norm = %s%s }\n}\n", norm, tied ? ", tie = tokens" : "");
    const char *train = pick(&d, 2) ? train_of(arena, &d, &out) : "";
    static const int same[] = {0, 0, 0, 1, 2, 3, 3, 4, 4, 5, 6, 7, 8, 9, 10}; /* what grows, by draw */
    bool plain = !strncmp(conn, "residual", 8);
    int times = 1 + pick(&d, 2), first = -1;
    bool rescale = false;
    for (int i = 0; i < times; i++) {
        int what = pick(&d, plain ? 14 : 12);
        if (!strcmp(sub, "routed") && pick(&d, 2))
            what = 14;
        if (first >= 0 && same[what] == same[first])
            continue;
        first = what;
        switch (what) {
        case 0:
        case 1:
        case 2:
            F += 1 + pick(&d, 4);
            buf_printf(&lets, "  let F = %d\n", F);
            break;
        case 3:
            if (group > 1 && pick(&d, 3) == 0) { /* each of the old groups becomes several */
                buf_printf(&lets, "  let kv = %d\n", heads * group);
                copies = ONE_OF(&d, "entry = replicate", "entry = replicate", "entry = copy");
                break;
            }
            heads += 1 + pick(&d, 2);
            buf_printf(&lets, "  let heads = %d\n  let kv = %d\n", heads * group, heads);
            break;
        case 4:
            h += 2;
            buf_printf(&lets, "  let h = %d\n", h);
            break;
        case 5:
        case 6:
            M += 1 + pick(&d, 3);
            A += 1 + pick(&d, 3);
            buf_printf(&lets, "  let M = %d\n  let A = %d\n", M, A);
            break;
        case 7:
        case 8:
            S += 1 + pick(&d, 3);
            buf_printf(&lets, "  let S = %d\n", S);
            break;
        case 9:
            if (pick(&d, 3) && !copies) {
                buf_printf(&lets, "  let eps = 1e-3 * %d / %d\n", D, D + 4);
                rescale = true;
            }
            D += copies && pick(&d, 2) ? D : 4;
            buf_printf(&lets, "  let D = %d\n", D);
            break;
        case 10: buf_printf(&lets, "  let L = %d\n", 2 * layers + i); break;
        case 12:
            if (!pick(&d, 4)) {
                buf_printf(&lets,
                           "  let E = D * 3 / 2\n  let conn = ghc(m = 2, n = 3, dynamic = true, reduce = linear(out = "
                           "D, init = %s))\n",
                           ONE_OF(&d, "eye", "eye", "normal(std = 0.3)"));
                break;
            }
            buf_printf(&lets, "  let conn = %s\n",
                       ONE_OF(&d, "hyper(n = 2, dynamic = true, collapse = mean)",
                              "hyper(n = 3, dynamic = false, collapse = mean)", "hyper(n = 2, dynamic = true)",
                              "ghc(m = 1, n = 1, dynamic = true)", "ghc(m = 2, n = 2, dynamic = true)",
                              "frac(m = 2, dynamic = true)", "frac(m = 2, dynamic = false)"));
            break;
        case 14:
            X += 1 + pick(&d, 2);
            buf_printf(&lets, "  let X = %d\n", X);
            break;
        case 13: buf_puts(&lets, "  let V = 20\n"); break;
        case 11:
            n += 1;
            buf_printf(&lets, "  let n = %d\n", n);
            break;
        }
    }
    if (upcycle)
        buf_puts(&lets, "  let dense = false\n");
    buf_puts(&b, train);
    buf_printf(&b, "grow g {\n  when = step >= 10\n%s  fill { ", lets.s);
    if (copies)
        buf_puts(&b, copies);
    else
        buf_printf(&b, "entry = %s, exit = %s, inner = %s", fill_of(&d), fill_of(&d), fill_of(&d));
    if (rescale)
        buf_puts(&b, ", norms = rescale");
    if (upcycle)
        buf_puts(&b, ", layer[*].moe.pre_norm { layers = copy(of = layer[*].ffn.pre_norm) }, layer[*].moe.up { layers "
                     "= copy(of = layer[*].ffn.up.W) }, "
                     "layer[*].moe.gate { layers = copy(of = layer[*].ffn.gate.W) }, layer[*].moe.down { layers = "
                     "copy(of = layer[*].ffn.down.W) }");
    if (pick(&d, 2))
        buf_printf(&b, ", layers = %s",
                   ONE_OF(&d, "identity", "identity", "normal(std = 0.2)", "copy", "replicate",
                          "copy, layer[*].attention.o_proj { layers = zeros }, layer[*].ffn.down { layers = zeros }"));
    if (pick(&d, 3) == 0 && !strcmp(sub, "ffn") && !upcycle)
        buf_printf(&b, ", layer[*].ffn.%s { entry = %s }", !strcmp(gated, "true") ? ONE_OF(&d, "up", "gate") : "up",
                   fill_of(&d));
    if (pick(&d, 3) == 0)
        buf_printf(&b, ", layer[*].attention.%s { entry = %s }", ONE_OF(&d, "q_proj", "k_proj", "v_proj"), fill_of(&d));
    buf_puts(&b, " }\n");
    out.new_stays = *train && !pick(&d, 8);
    out.old_stays = *train && !pick(&d, 6);
    out.waits = *train && !out.new_stays && !pick(&d, 8);
    if (out.new_stays)
        buf_puts(&b, "  new { lr_scale = 0 }\n");
    if (out.waits)
        buf_puts(&b, "  new { lr_scale = if step < 15 then 0 else 1 }\n");
    if (out.old_stays)
        buf_puts(&b, "  old { lr_scale = 0 }\n");
    buf_puts(&b, "  check alive(none)\n}\n");
    out.text = b.s;
    return out;
}

#endif
