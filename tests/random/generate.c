/* generate.c - see generate.h: models and their connections. */
#include "file.h"

#include <math.h>
#include <string.h>

static const char *yes(File *f) { return one_in(&f->w, 2) ? "true" : "false"; }

static const char *norm_text(File *f)
{
    switch (roll(&f->w, 6)) {
    case 0: return "layer_norm(eps = 1e-2)";
    case 1: return "layer_norm(eps = 1e-2, gain = false, bias = false)";
    case 2: return "rms_norm(eps = 1e-2, gain = false)";
    case 3: return TEXT(f, "layer_norm(eps = %g, bias = %s)", 0.05, yes(f));
    default: return "rms_norm(eps = 1e-3)";
    }
}

/* Up to `most`, often 1, at times 0. */
static int extent(File *f, int most) { return one_in(&f->w, 24) ? 0 : one_in(&f->w, 8) ? 1 : range(&f->w, 1, most); }

static const char *activation(File *f)
{
    static const char *const all[] = {"silu", "gelu", "relu", "gelu_tanh", "tanh", "sigmoid", "softplus"};
    return ANY(&f->w, all);
}

static const char *reading(File *f, int n) /* a list of streams */
{
    Buf b = buf_new(f->w.b.arena);
    buf_puts(&b, "[");
    for (int i = 0, size = range(&f->w, 1, 3); i < size; i++)
        buf_printf(&b, "%s%d", i ? ", " : "", range(&f->w, 1, n));
    buf_puts(&b, "]");
    return b.s;
}

static const char *numbers(File *f, int n)
{
    Buf b = buf_new(f->w.b.arena);
    buf_puts(&b, "[");
    for (int i = 0; i < n; i++)
        buf_printf(&b, "%s%g", i ? ", " : "", 0.25 * range(&f->w, 1, 7));
    buf_puts(&b, "]");
    return b.s;
}

static const char *collapse(File *f, bool more)
{
    static const char *const all[] = {"sum", "mean", "learned", "predicted"};
    return all[roll(&f->w, more ? 4 : 3)];
}

/* ---- connections; each sets what the rest of the model must fit ---- */

static const char *fixed_matrices(File *f, int n)
{
    static const char *const kinds[] = {"sequential", "parallel", "parallel_doubled"};
    if (n == 2 && one_in(&f->w, 4))
        return "wiring(kind = two_hop)";
    if (one_in(&f->w, 2))
        return TEXT(f, "wiring(kind = %s, n = %d)", ANY(&f->w, kinds), n);
    Buf b = buf_new(f->w.b.arena);
    buf_puts(&b, "[");
    for (int k = 0, all = range(&f->w, 1, 2); k < all; k++) {
        buf_printf(&b, "%s[", k ? ", " : "");
        for (int i = 0; i <= n; i++) {
            buf_printf(&b, "%s[", i ? ", " : "");
            for (int j = 0; j <= n; j++)
                buf_printf(&b, "%s%g", j ? ", " : "", i + j == 0 ? 0.0 : i == j ? 0.9 : 0.2 * range(&f->w, 1, 3));
            buf_puts(&b, "]");
        }
        buf_puts(&b, "]");
    }
    buf_puts(&b, "]");
    return b.s;
}

static int divisor(File *f, int of) /* of a width */
{
    int d;
    do
        d = range(&f->w, 1, 4);
    while (of % d);
    return d;
}

static const char *carried_text(File *f)
{
    static const char *const expand[] = {"carry", "carry", "zero", "missing", "full"};
    Shape *s = &f->s;
    const char *how = ANY(&f->w, expand);
    bool before = one_in(&f->w, 2), scaled = one_in(&f->w, 3);
    s->varies = s->carried = s->by_layer = true;
    s->own_norm = before;
    if (s->layers == 0)
        s->layers = 1;
    for (int i = 0; i < s->layers; i++)
        s->widths[i] = range(&f->w, 1, 16);
    return TEXT(f, "carried(widths = widths, head = D, expand = %s%s%s%s, sublayers = %d)", how,
                before ? ", norm = rms_norm(eps = 1e-3)" : ", final = after_slice",
                scaled ? ", branch_scale = 0.4" : "", one_in(&f->w, 3) ? ", map = linear(bias = true)" : "",
                s->sublayers);
}

static const char *hyper_text(File *f, int n, bool alone)
{
    Buf b = buf_new(f->w.b.arena);
    buf_printf(&b, "hyper(n = %d, dynamic = %s", n, yes(f));
    if (one_in(&f->w, 4))
        buf_printf(&b, ", norm = %s", one_in(&f->w, 3) ? "none" : norm_text(f));
    if (one_in(&f->w, 5))
        buf_puts(&b, ", squash = none");
    if (one_in(&f->w, 4))
        buf_printf(&b, ", factor = %s", one_in(&f->w, 2) ? "none" : "0.5");
    if (alone && one_in(&f->w, 2))
        buf_printf(&b, ", collapse = %s", collapse(f, false));
    if (alone && one_in(&f->w, 4))
        buf_printf(&b, ", replicate = %s", numbers(f, n));
    if (one_in(&f->w, 4))
        buf_printf(&b, ", read = %s", reading(f, n));
    if (one_in(&f->w, 6))
        buf_puts(&b, ", learn_B = false");
    if (one_in(&f->w, 6))
        buf_puts(&b, ", learn_WC = false");
    buf_puts(&b, ")");
    return b.s;
}

static const char *mhc_text(File *f, int n)
{
    static const char *const start[] = {"exp", "softmax", "sigmoid"};
    Buf b = buf_new(f->w.b.arena);
    buf_printf(&b, "mhc(n = %d, iterations = %d", n, range(&f->w, 0, 4));
    if (one_in(&f->w, 2))
        buf_printf(&b, ", start = %s", ANY(&f->w, start));
    if (one_in(&f->w, 3))
        buf_puts(&b, ", eps = 1e-3");
    if (one_in(&f->w, 3))
        buf_puts(&b, ", transposed = true");
    if (one_in(&f->w, 3))
        buf_printf(&b, ", post = %g", one_in(&f->w, 2) ? 0.7 : 1.5);
    if (one_in(&f->w, 2))
        buf_printf(&b, ", collapse = %s", collapse(f, true));
    if (one_in(&f->w, 4))
        buf_printf(&b, ", replicate = %s", numbers(f, n));
    buf_puts(&b, ")");
    return b.s;
}

static const char *altup_text(File *f, int n)
{
    Shape *s = &f->s;
    static const char *const how[] = {"sum", "mean", "learned", "concat"};
    const char *close = ANY(&f->w, how);
    bool wide = one_in(&f->w, 3);
    if (wide)
        s->embed = n * s->D;
    if (*close == 'c')
        s->closed = n * s->D;
    return TEXT(f, "altup(n = %d, collapse = %s%s%s%s%s)", n, close, wide ? ", embedding = wide" : "",
                one_in(&f->w, 3) ? ", own_residual = false" : "",
                one_in(&f->w, 3) ? ", correct = normal(std = 0.3)" : "",
                one_in(&f->w, 3) ? TEXT(f, ", read = %s", reading(f, n)) : "");
}

static const char *ghc_text(File *f)
{
    Shape *s = &f->s;
    int m = divisor(f, s->D), n = m + range(&f->w, 0, 3), wide = s->D / m * n;
    s->embed = s->closed = wide;
    const char *reduce = "";
    if (one_in(&f->w, 2)) {
        s->closed = s->D;
        reduce = wide % s->D == 0 && one_in(&f->w, 2) ? ", reduce = group_reduce(size = D, out = D)"
                                                      : ", reduce = linear(out = D)";
    }
    return TEXT(f, "ghc(m = %d, n = %d, dynamic = %s%s%s%s%s)", m, n, yes(f), one_in(&f->w, 4) ? ", tau = 1.5" : "",
                one_in(&f->w, 4) ? ", factor = 0.1" : "", one_in(&f->w, 4) ? TEXT(f, ", norm = %s", norm_text(f)) : "",
                reduce);
}

static const char *connection_text(File *f)
{
    Shape *s = &f->s;
    int n = range(&f->w, 1, 4);
    s->streams = 0;
    switch (roll(&f->w, 13)) {
    case 0:
        return one_in(&f->w, 3)   ? "residual(branch_scale = if step < 2 then 0.5 else 0.7)"
               : one_in(&f->w, 2) ? "residual()"
                                  : "residual(branch_scale = 0.3)";
    case 1: return TEXT(f, "post_norm(norm = %s)", norm_text(f));
    case 2: return TEXT(f, "residual_dual(norm = %s)", norm_text(f));
    case 3: return carried_text(f);
    case 4:
    case 5: s->streams = n; return hyper_text(f, n, true);
    case 6:
        s->streams = n;
        return TEXT(f, "hyper_fixed(n = %d, matrices = %s, collapse = %s)", n, fixed_matrices(f, n),
                    collapse(f, false));
    case 7: return altup_text(f, n);
    case 8: s->streams = n; return mhc_text(f, n);
    case 9: return ghc_text(f);
    case 10:
        return TEXT(f, "frac(m = %d, dynamic = %s%s%s)", divisor(f, s->D), yes(f),
                    one_in(&f->w, 3) ? ", squash = none" : "", one_in(&f->w, 3) ? ", factor = none" : "");
    case 11: return "gated(strength = 0.8)";
    default: return "leaky()";
    }
}

/* Connections of the file's own. */
static void own_connections(File *f)
{
    if (strcmp(f->connection, "leaky()") == 0)
        PUT(f, "## The state before the last one counts, too.\n"
               "block leaky() {\n"
               "  block open()(e: [.., E]) -> [.., 2 * E] { return concat(e, 0.5 * e) }\n"
               "  block step(k: int)(H: [.., S], f: block) -> [.., S] {\n"
               "    let d = S / 2\n"
               "    param decay : [d] = fill(0.4) { group = static }\n"
               "    x = first(H, d)\n"
               "    y = x + f(x) * sigmoid(decay)\n"
               "    return concat(y, rest(H, d) * tanh(decay) + 0.3 * x)\n"
               "  }\n"
               "  block close()(H: [.., S]) -> [.., _] { return first(H, S / 2) + 0.1 * "
               "rest(H, S / 2) }\n"
               "}\n");
    if (strncmp(f->connection, "gated", 5) == 0)
        PUT(f,
            "block gated(strength: float) {\n"
            "  check strength > 0 \"`strength` = {strength} is not positive\"\n"
            "  block open()(e: [.., D]) -> [.., D] { return e }\n"
            "  block step(k: int)(x: [.., D], f: block) -> [.., D] {\n"
            "    let map = linear(out = D, bias = %s)\n"
            "    g = sigmoid(map(x) / k)\n"
            "    return g * x + strength * (1 - g) * f(x)\n"
            "  }\n"
            "  block close(k: int)(x: [.., D]) -> [.., D] { return x / (k + 1) }\n"
            "}\n",
            yes(f));
}

/* ---- sublayers ---- */

static const char *map_text(File *f) /* a projection */
{
    switch (roll(&f->w, 6)) {
    case 0:
        return TEXT(f, "nexus_rank(M = %d, A = %d, activation = %s%s)", range(&f->w, 1, 6), range(&f->w, 1, 6),
                    activation(f), one_in(&f->w, 3) ? ", normalise = l2" : "");
    case 1:
        return TEXT(f, "pattention(slots = %d, eps = 1e-2%s)", range(&f->w, 1, 6),
                    one_in(&f->w, 3)   ? ", normalise = softmax"
                    : one_in(&f->w, 2) ? ", normalise = gelu_l2"
                                       : "");
    case 2: return "linear(init = normal(std = 1 / sqrt(fan_in)))";
    default: return "linear(bias = true)";
    }
}

static const char *position_text(File *f, int d)
{
    int pairs = d / 2;
    if (pairs == 0)
        return NULL;
    switch (roll(&f->w, 4)) {
    case 0: return TEXT(f, "rope_at(freqs = %s)", numbers(f, range(&f->w, 1, pairs)));
    case 1: return TEXT(f, "rope(base = 100, fraction = %d / %d)", 2 * range(&f->w, 1, pairs), d);
    default: return d % 2 ? NULL : "rope(base = 100)";
    }
}

static void attention_text(File *f, const char *sep)
{
    Shape *s = &f->s;
    int kv = range(&f->w, 1, 3), heads = kv * range(&f->w, 1, 3), d = range(&f->w, 1, 9);
    bool divides = !s->carried && s->D % heads == 0 && one_in(&f->w, 2);
    if (divides)
        d = s->D / heads;
    PUT(f, "heads = %d", heads);
    if (kv < heads && one_in(&f->w, 2))
        PUT(f, "%skv_heads = %d", sep, kv);
    if (!divides && s->varies && s->in_layer && !s->carried)
        PUT(f, "%shead_dim = widths[layer]", sep);
    else if (!divides)
        PUT(f, "%shead_dim = %d", sep, d);
    const char *position = !divides && s->varies && s->in_layer && !s->carried ? NULL : position_text(f, d);
    if (position && one_in(&f->w, 2))
        PUT(f, "%sposition = %s", sep, position);
    static const char *const maps[] = {"q_proj", "k_proj", "v_proj", "o_proj"};
    for (int i = 0; i < 4; i++)
        if (one_in(&f->w, 6))
            PUT(f, "%s%s = %s", sep, maps[i], map_text(f));
    if (one_in(&f->w, 4)) {
        PUT(f, "%sqk_norm = %s", sep, norm_text(f));
        if (one_in(&f->w, 3))
            PUT(f, "%sqk_whole = true", sep);
    }
    if (one_in(&f->w, 4))
        PUT(f, "%swindow = %d", sep, range(&f->w, 1, 5));
    if (one_in(&f->w, 5))
        PUT(f, "%ssoftcap = %g", sep, 0.5 * range(&f->w, 1, 8));
    if (one_in(&f->w, 5))
        PUT(f, "%sdropout = 0.2", sep);
    if (one_in(&f->w, 6))
        PUT(f, "%sscale = 0.3", sep);
    if (one_in(&f->w, 8) && strcmp(s->mask, "causal") == 0)
        PUT(f, "%smask = full", sep);
}

static void ffn_text(File *f, const char *sep)
{
    if (f->s.varies && f->s.in_layer && one_in(&f->w, 2))
        PUT(f, "hidden = 2 * widths[layer]");
    else
        PUT(f, "hidden = %d", extent(f, 19));
    PUT(f, "%sactivation = %s", sep, activation(f));
    if (one_in(&f->w, 2))
        PUT(f, "%sgated = true", sep);
    if (one_in(&f->w, 3))
        PUT(f, "%sbias = true", sep);
    if (one_in(&f->w, 5))
        PUT(f, "%sdropout = 0.25", sep);
    if (one_in(&f->w, 8))
        PUT(f, "%sup = %s", sep, map_text(f));
}

static void moe_text(File *f, const char *sep)
{
    int experts = one_in(&f->w, 4) ? 1 : range(&f->w, 1, 6);
    int active = one_in(&f->w, 3) ? 1 : range(&f->w, 1, experts < 3 ? experts : 3);
    PUT(f, "experts = %d%sactive = %d%shidden = %d%sactivation = %s%sscores = %s", experts, sep, active, sep,
        extent(f, 9), sep, activation(f), sep, one_in(&f->w, 2) ? "sigmoid" : "softmax");
    PUT(f, "%snormalize = %s%sbalance = %g", sep, yes(f), sep, one_in(&f->w, 4) ? 0.0 : 0.02);
    if (one_in(&f->w, 3))
        PUT(f, "%sz_loss = 0.01", sep);
    if (one_in(&f->w, 3))
        PUT(f, "%sshared = %d", sep, range(&f->w, 1, 2));
    if (one_in(&f->w, 3))
        PUT(f, "%scapacity = %g", sep, 0.25 * range(&f->w, 1, 6));
    if (one_in(&f->w, 5))
        PUT(f, "%spriority = token", sep);
    if (one_in(&f->w, 4))
        PUT(f, "%sorder = topk_first", sep);
    if (one_in(&f->w, 4))
        PUT(f, "%sscale = 1.5", sep);
    if (one_in(&f->w, 4))
        PUT(f, "%srouter_bias = normal(std = 0.1)", sep);
    if (one_in(&f->w, 5))
        PUT(f, "%sbalance_share = tokens", sep);
}

static void sublayer(File *f, const char *indent, bool inside)
{
    Shape *s = &f->s;
    uint32_t kind = roll(&f->w, inside ? 9 : 11);
    PUT(f, "%s", indent);
    if (kind == 9 && s->D > 0) {
        PUT(f, "parallel {\n");
        for (int i = range(&f->w, 1, 3); i > 0; i--)
            sublayer(f, TEXT(f, "%s  ", indent), true);
        PUT(f, "%s}\n", indent);
        return;
    }
    if (kind == 10 && one_in(&f->w, 2)) {
        PUT(f, "shared_norm s%d { norm = %s, left = ffn(", f->w.names++, norm_text(f));
        ffn_text(f, ", ");
        PUT(f, "), right = attention(");
        attention_text(f, ", ");
        PUT(f, "), pre_norm = none }\n");
        return;
    }
    if (kind >= 6 && s->blocks) {
        PUT(f, "%s n%d { }\n", s->block[roll(&f->w, (uint32_t)s->blocks)], f->w.names++);
        return;
    }
    static const char *const words[] = {"attention", "ffn", "moe"};
    static void (*const how[])(File *, const char *) = {attention_text, ffn_text, moe_text};
    int of = kind < 3 ? 0 : kind < 6 ? 1 : 2;
    PUT(f, "%s n%d { ", words[of], f->w.names++);
    how[of](f, ", ");
    if (one_in(&f->w, 7))
        PUT(f, ", pre_norm = %s", one_in(&f->w, 3) ? "none" : norm_text(f));
    if (one_in(&f->w, 7))
        PUT(f, ", out_norm = %s", norm_text(f));
    if (!inside && s->streams && !s->shares && one_in(&f->w, 6))
        PUT(f, ", connection = %s", one_in(&f->w, 2) ? hyper_text(f, s->streams, false) : mhc_text(f, s->streams));
    PUT(f, " }\n");
}

/* ---- embeddings and heads ---- */

static void embeddings(File *f)
{
    Shape *s = &f->s;
    bool expand = one_in(&f->w, 6);
    PUT(f, "  embed tokens { vocab = %d, width = %s%s }\n", s->vocab,
        expand ? TEXT(f, "%d", range(&f->w, 1, 9)) : TEXT(f, "%d", s->embed),
        expand             ? TEXT(f, ", expand = linear(out = %d)", s->embed)
        : one_in(&f->w, 4) ? ", scale = 1.7"
                           : "");
    if (one_in(&f->w, 5))
        PUT(f, "  embed position { size = %d, width = %d }\n", s->context + range(&f->w, 0, 3), s->embed);
    if (s->embed % 2 == 0 && one_in(&f->w, 6))
        PUT(f, "  embed sinusoidal { base = 100, width = %d }\n", s->embed);
    if (one_in(&f->w, 5))
        PUT(f, "  embed ngrams { vocab = %d, order = %d, rows = %d, tables = %d, width = %d%s }\n", s->vocab,
            range(&f->w, 2, 4), range(&f->w, 1, 9), range(&f->w, 1, 2), range(&f->w, 1, 5),
            one_in(&f->w, 2) ? ", combine = sum" : "");
    if (expand)
        s->embed = 0; /* not what a tied head could read */
}

static void mtp_heads(File *f, int n)
{
    static const char *const joins[] = {"", ", join = whole"};
    PUT(f,
        "  for depth in 1..%d {\n    head mtp { predict = depth + 1, weight = 0.3, mix = "
        "linear(%s), norm = %s%s%s%s\n",
        n, one_in(&f->w, 2) ? "bias = true" : "", norm_text(f), ANY(&f->w, joins),
        one_in(&f->w, 3) ? ", order = embedding_first" : "", one_in(&f->w, 3) ? ", detach = true" : "");
    PUT(f, "      layer {\n");
    for (int i = range(&f->w, 1, f->lean ? 1 : 2); i > 0; i--)
        sublayer(f, "        ", true);
    PUT(f, "      }\n    }\n  }\n");
}

static void heads(File *f)
{
    Shape *s = &f->s;
    bool tied = s->tied = s->embed == s->closed && s->embed && one_in(&f->w, 4);
    PUT(f, "  head lm { ");
    PUT(f, "norm = %s", s->own_norm || one_in(&f->w, 8) ? "none" : norm_text(f));
    if (tied)
        PUT(f, ", tie = tokens");
    else if (one_in(&f->w, 5))
        PUT(f, ", vocab = %d", s->vocab);
    if (one_in(&f->w, 6))
        PUT(f, ", scale = 0.5");
    if (one_in(&f->w, 5))
        PUT(f, ", softcap = 4");
    if (one_in(&f->w, 5))
        PUT(f, ", bias = true");
    if (one_in(&f->w, 5))
        PUT(f, ", z_loss = 0.01");
    if (one_in(&f->w, 5))
        PUT(f, ", smoothing = 0.1");
    PUT(f, " }\n");
    if (!s->by_layer && !s->varies && !tied && one_in(&f->w, 4))
        mtp_heads(f, range(&f->w, 1, f->lean ? 1 : 3));
}

/* ---- files ---- */

static void scope_attributes(File *f)
{
    Shape *s = &f->s;
    PUT(f, "  context = %d\n  width = D\n  mask = %s\n  connection = %s\n", s->context, s->mask, f->connection);
    PUT(f, "  init = %s\n  out_init = normal(std = 0.3)\n",
        one_in(&f->w, 4)   ? "uniform(low = -0.4, high = 0.4)"
        : one_in(&f->w, 4) ? "normal(std = 1 / sqrt(fan_in))"
                           : "normal(std = 0.3)");
    PUT(f, "  pre_norm = %s\n", one_in(&f->w, 8) ? "none" : norm_text(f));
    if (one_in(&f->w, 8))
        PUT(f, "  out_norm = %s\n", norm_text(f));
    s->shares = one_in(&f->w, 6);
    if (s->shares)
        PUT(f, "  connection_per = layer\n");
}

static void layers(File *f)
{
    Shape *s = &f->s;
    PUT(f, "  for layer in 1..%s {\n", s->varies ? "size(widths)" : "L");
    if (s->carried)
        PUT(f, "    width = widths[layer]\n");
    s->in_layer = true;
    for (int i = 0; i < s->sublayers; i++)
        sublayer(f, "    ", false);
    s->in_layer = false;
    PUT(f, "    ffn last { hidden = F, activation = %s }\n  }\n", activation(f));
}

static int width_of(File *f)
{
    static const int odd[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 16, 17, 18, 24, 31, 33, 36, 40};
    return ANY(&f->w, odd);
}

static void text_model(File *f)
{
    Shape *s = &f->s;
    s->D = s->embed = s->closed = width_of(f);
    s->layers = range(&f->w, 0, f->lean ? 1 : 2);
    s->sublayers = range(&f->w, 1, f->lean ? 1 : 3);
    static const int far[] = {160, 1024, 2048};
    s->vocab = one_in(&f->w, 24) ? 1 : range(&f->w, 2, 24);
    s->context = one_in(&f->w, 24) ? ANY(&f->w, far) : one_in(&f->w, 8) ? 1 : range(&f->w, 1, 14);
    bool wide = one_in(&f->w, 20); /* products that are rounded */
    if (wide)
        s->D = s->embed = s->closed = s->vocab = 64, s->context = 32;
    s->sublayers++; /* the last one is there in every model */
    f->connection = connection_text(f);
    s->sublayers--;
    s->documents = !s->by_layer && one_in(&f->w, 5);
    s->mask = s->documents ? "document" : "causal";
    if (!s->varies && s->layers && one_in(&f->w, 6)) {
        s->varies = true;
        for (int i = 0; i < s->layers; i++)
            s->widths[i] = range(&f->w, 1, 9);
    }
    s->blocks = range(&f->w, 0, f->lean ? 1 : BLOCKS_MOST);
    for (int i = 0; i < s->blocks; i++) {
        s->block[i] = TEXT(f, "own%d", i);
        write_block(&f->w, s->block[i], s->carried ? 0 : s->D, s->vocab, f->lean ? 6 : 14);
    }
    own_connections(f);
    s->hidden = wide ? 64 : extent(f, 13);
    PUT(f, "\nlet D = %d\nlet F = %d\n", s->D, s->hidden);
    if (s->varies) {
        PUT(f, "let widths = [");
        for (int i = 0; i < s->layers; i++)
            PUT(f, "%s%d", i ? ", " : "", s->widths[i]);
        PUT(f, "]\n");
    } else {
        PUT(f, "let L = %d\n", s->layers);
    }
    PUT(f, "\nmodel made {\n");
    scope_attributes(f);
    embeddings(f);
    if (s->documents)
        PUT(f, "  attention within { heads = 1, head_dim = %d }\n", range(&f->w, 1, 4));
    if (!s->by_layer && one_in(&f->w, 4))
        sublayer(f, "  ", true);
    layers(f);
    heads(f);
    PUT(f, "}\n");
    if (one_in(&f->w, 3))
        PUT(f, "\ncheck params >= 0\ncheck near(stored_params, stored_params, 1%%)\n");
    if (one_in(&f->w, 12))
        return;
    int distinct = s->vocab < 12 ? s->vocab : 12;
    if (one_in(&f->w, 4))
        write_training(f, TEXT(f, "data = token_files(\"tokens_%d.bin\", dtype = u16, val = 20%%%s)", s->vocab,
                               s->documents ? ", separator = 0" : ""));
    else
        write_training(f, TEXT(f, "data = text_file(\"text_%d.txt\", val = 20%%%s)\n  tokenizer = chars()", distinct,
                               s->documents ? ", separator = \"a\"" : ""));
    if (!s->varies && one_in(&f->w, 3))
        write_growth(f);
}

/* Images, read by a classifier or noised. */
static void image_model(File *f, bool noise)
{
    Shape *s = &f->s;
    int patch = range(&f->w, 1, 2), side = range(&f->w, 1, 3), channels = range(&f->w, 1, 3),
        classes = range(&f->w, 2, 6);
    s->D = s->embed = s->closed = noise ? 4 * range(&f->w, 1, 5) : width_of(f);
    s->layers = range(&f->w, 0, f->lean ? 1 : 2);
    s->sublayers = range(&f->w, 1, f->lean ? 1 : 2);
    s->mask = "full";
    do {
        s->embed = s->closed = s->D;
        s->varies = s->carried = s->by_layer = s->own_norm = false;
        f->connection = connection_text(f);
    } while (s->varies || s->embed != s->D || s->closed != s->D);
    bool class = !noise && one_in(&f->w, 2), adaptive = noise;
    s->context = side * side + class;
    own_connections(f);
    s->hidden = extent(f, 13);
    PUT(f, "\nlet D = %d\nlet F = %d\nlet L = %d\n\nmodel made {\n", s->D, s->hidden, s->layers);
    scope_attributes(f);
    if (noise)
        PUT(f, "  cond = time_and_class(classes = %d, drop_class = %g, features = %d)\n", classes,
            one_in(&f->w, 2) ? 0.3 : 0.0, 2 * range(&f->w, 1, 3));
    PUT(f, "  embed %s { image = %d, patch = %d, channels = %d%s }\n", noise ? "noised" : "patches", side * patch,
        patch, channels,
        noise              ? ", steps = 20, last_beta = 0.004"
        : one_in(&f->w, 2) ? ", scale = 2, shift = -0.5"
                           : "");
    if (class)
        PUT(f, "  embed class { }\n");
    if (s->D % 4 == 0 && noise)
        PUT(f, "  embed grid { side = %d }\n", side);
    else if (one_in(&f->w, 2))
        PUT(f, "  embed position { size = %d }\n", s->context);
    PUT(f, "  for layer in 1..L {\n");
    for (int i = 0; i < s->sublayers; i++) {
        if (!adaptive) {
            sublayer(f, "    ", false);
            continue;
        }
        bool reads = one_in(&f->w, 2);
        PUT(f, "    adaptive n%d { f = %s(", f->w.names++, reads ? "attention" : "ffn");
        (reads ? attention_text : ffn_text)(f, ", ");
        PUT(f, ")%s }\n", one_in(&f->w, 2) ? ", init = normal(std = 0.2)" : "");
    }
    PUT(f, "    ffn last { hidden = F, activation = %s }\n  }\n", activation(f));
    if (noise)
        PUT(f,
            "  head noise { norm = layer_norm(eps = 1e-2, gain = false, bias = false), "
            "variance = %s, init = normal(std = 0.2) }\n}\n",
            !f->lean && one_in(&f->w, 2) ? "learned"
                                         : "fixed"); /* its bound is a difference of near numbers: not for float32 */
    else
        PUT(f,
            "  head classify { norm = %s, pool = %s, classes = %d, bias = %s, smoothing = %g "
            "}\n}\n",
            norm_text(f), one_in(&f->w, 2) ? "first" : "mean", classes, yes(f), one_in(&f->w, 2) ? 0.1 : 0.0);
    write_training(f, TEXT(f,
                           "data = arrays(image = \"image_%d_%d.npy\", labels = \"labels_%d.npy\", "
                           "val = 25%%)",
                           channels, side * patch, classes));
    if (one_in(&f->w, 3))
        write_growth(f);
}

char *generate_file(Arena *arena, uint64_t seed)
{
    File f = {.w = {.b = buf_new(arena), .state = (seed + 1) * 0x9e3779b97f4a7c15u}, .lean = is_lean(seed)};
    roll(&f.w, 2);
    uint32_t kind = roll(&f.w, 12);
    PUT(&f,
        "edition = 1\nimport \"std/transformer\"\nimport \"std/connections\"\nimport "
        "\"std/growable\"\n%s\n",
        kind == 0 ? "import \"std/vision\"\n" : "");
    kind < 2 ? image_model(&f, kind == 0) : text_model(&f);
    return f.w.b.s;
}
