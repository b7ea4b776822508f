/* training.c - see file.h: `train`, the weights it begins with, growth steps, sweeps. */
#include "file.h"

#include <string.h>

static const char *length_text(File *f, int steps) /* of a warm-up, a decay */
{
    switch (roll(&f->w, 3)) {
    case 0: return "20%";
    case 1: return TEXT(f, "%d steps", steps);
    default: return TEXT(f, "%d tokens", steps * 16);
    }
}

static const char *rate_text(File *f, double peak)
{
    static const char *const run[] = {"if step < 1 then %g else %g * (1 - 0.5 * progress)",
                                      "%g * min(1, (step + 1) / 3) + 0 * %g",
                                      "if train.loss > 3 then %g else 0.9 * %g",
                                      "%g * exp(-progress) + 0 * tokens * %g",
                                      "if grad_norm < 5 and step > 0 then %g else 0.8 * %g",
                                      "max(%g, 0.5 * %g) / sqrt(1 + epoch)",
                                      "%g * cos(step / length) ^ 2 + 0.1 * %g",
                                      "if step mod 2 == 0 then %g else %g / 2"};
    double floor = peak / 10;
    switch (roll(&f->w, 7)) {
    case 0: return TEXT(f, "constant(peak = %g, warmup = %s)", peak, length_text(f, 2));
    case 1: return TEXT(f, "linear(peak = %g, floor = %g, warmup = %s)", peak, floor, length_text(f, 1));
    case 2:
        return TEXT(f, "cosine(peak = %g, floor = %g, warmup = %s%s)", peak, floor, length_text(f, 1),
                    one_in(&f->w, 2) ? ", total = 7 steps" : "");
    case 3: return TEXT(f, "power(peak = %g, scale = %g, exponent = -0.4)", peak, 3 * peak);
    case 4: return TEXT(f, "wsd(peak = %g, warmup = %s, decay = %s)", peak, length_text(f, 1), length_text(f, 2));
    case 5: return TEXT(f, ANY(&f->w, run), peak, peak);
    default: return TEXT(f, "%g", peak);
    }
}

/* ---- optimizers ---- */

/* Rules for groups that every model may name, and for paths that this one has. */
static void groups(File *f, const char *indent, bool muon)
{
    static const char *const known[] = {"matrix", "vector", "embedding", "static",
                                        "router", "token",  "matrix",    "vector"};
    static const char *const how[] = {"frozen = true",
                                      "frozen = false",
                                      "lr_scale = 0",
                                      "lr_scale = 0.4",
                                      "weight_decay = 0",
                                      "weight_decay = 0.3, lr_scale = 2",
                                      "frozen = true, weight_decay = 0"};
    bool text = strstr(f->w.b.s, "embed tokens") != NULL;
    for (int i = one_in(&f->w, 2) ? range(&f->w, 1, 3) : 0; i > 0; i--) {
        const char *of = ANY(&f->w, known);
        switch (roll(&f->w, 8)) {
        case 0: of = "\"embed.*\""; break;
        case 1: of = f->s.layers > 0 ? "\"layer[*].ffn.last.*\"" : of; break;
        case 2: of = text && !f->s.tied ? "\"head.lm.W\"" : of; break;
        case 3: of = one_in(&f->w, 4) ? "\"*\"" : of; break;
        default: break;
        }
        PUT(f, "%sgroup %s { %s }\n", indent, of, ANY(&f->w, how));
    }
    if (muon && one_in(&f->w, 3))
        PUT(f, "%sgroup %s { update = adamw%s }\n", indent, one_in(&f->w, 2) ? "matrix" : "vector",
            one_in(&f->w, 2) ? "" : ", weight_decay = 0.05");
    if (muon && text && one_in(&f->w, 4))
        PUT(f, "%sgroup \"embed.tokens.W\" { update = muon }\n", indent);
}

static void optimizer(File *f)
{
    const char *decay = one_in(&f->w, 3) ? "0" : "0.1";
    switch (roll(&f->w, 4)) {
    case 0:
        PUT(f, "  optimizer sgd {\n    lr = %s\n    momentum = %g\n    weight_decay = %s\n", rate_text(f, 0.05),
            one_in(&f->w, 3) ? 0.0 : 0.8, decay);
        if (one_in(&f->w, 3))
            PUT(f, "    nesterov = true\n");
        if (one_in(&f->w, 3))
            PUT(f, "    decay = coupled\n");
        groups(f, "    ", false);
        break;
    case 1:
        PUT(f, "  optimizer lion {\n    lr = %s\n    betas = [0.9, 0.97]\n    weight_decay = %s\n", rate_text(f, 0.01),
            decay);
        groups(f, "    ", false);
        break;
    case 2:
        PUT(f,
            "  optimizer muon {\n    lr = %s\n    momentum = 0.9\n    weight_decay = %s\n    "
            "steps = %d\n",
            rate_text(f, 0.02), decay, range(&f->w, 1, 5));
        PUT(f, "    adamw { %sbetas = [0.8, 0.9], eps = 1e-6%s }\n",
            one_in(&f->w, 2) ? TEXT(f, "lr = %s, ", rate_text(f, 0.01)) : "",
            one_in(&f->w, 3) ? ", weight_decay = 0.02" : "");
        if (one_in(&f->w, 3))
            PUT(f, "    rms = 0.2\n");
        if (one_in(&f->w, 3))
            PUT(f, "    nesterov = false\n");
        if (one_in(&f->w, 5))
            PUT(f, "    coefficients = [3, -3.2, 1.2]\n");
        groups(f, "    ", true);
        break;
    default:
        PUT(f,
            "  optimizer adamw {\n    lr = %s\n    betas = [0.8, 0.9]\n    eps = 1e-6\n    "
            "weight_decay = %s\n",
            rate_text(f, 0.01), decay);
        groups(f, "    ", false);
    }
    PUT(f, "  }\n");
}

/* ---- train ---- */

static void amounts(File *f)
{
    int micro = range(&f->w, 1, 3), parts = one_in(&f->w, 3) ? range(&f->w, 2, 3) : 1;
    int batch = micro * parts, steps = range(&f->w, 4, 9);
    if (one_in(&f->w, 4))
        PUT(f, "  batch = %d tokens\n", batch * f->s.context);
    else
        PUT(f, "  batch = %d seqs\n", batch);
    if (parts > 1)
        PUT(f, "  micro_batch = %d seqs\n", micro);
    if (one_in(&f->w, 6))
        PUT(f, "  length = %d seqs\n", steps * batch);
    else
        PUT(f, "  length = %d steps\n", steps);
}

/* Weights of others: data.c writes the file from its name, this line and the table of names. */
static void start(File *f)
{
    static const char *const allowed[] = {"new = draw", "grown = draw", "cut = drop", "left = drop"};
    PUT(f, "  start_from = weights(\"weights_%d.safetensors\"", range(&f->w, 1, 999));
    for (int i = 0; i < 4; i++)
        if (one_in(&f->w, 2))
            PUT(f, ", %s", allowed[i]);
    PUT(f, ")\n");
}

static void names(File *f)
{
    const char *turned = one_in(&f->w, 2) ? ".T" : "";
    PUT(f, "\nnames others {\n");
    if (strstr(f->w.b.s, "embed tokens"))
        PUT(f, "  \"table\" = embed.tokens.W%s\n", turned);
    if (f->s.layers > 0) {
        PUT(f, "  \"block_{layer-1}/in\" = layer[*].ffn.last.up.W%s\n", turned);
        PUT(f, "  \"block_{layer-1}/out\" = layer[*].ffn.last.down.W%s\n", turned);
    }
    PUT(f, "}\n");
}

void write_training(File *f, const char *data)
{
    static const char *const precisions[] = {"fp32", "fp32", "mixed(compute = bf16, master = fp32)",
                                             "mixed(compute = fp16, master = fp32)"};
    bool foreign = one_in(&f->w, 6);
    PUT(f, "\ntrain {\n  %s\n", data);
    amounts(f);
    PUT(f, "  seed = %d\n  precision = %s\n", range(&f->w, 0, 99), ANY(&f->w, precisions));
    if (foreign)
        start(f);
    if (one_in(&f->w, 2))
        PUT(f, "  clip = %g\n", 0.5 * range(&f->w, 1, 4));
    if (one_in(&f->w, 3))
        PUT(f, "  average = ema(decay = %s)\n", one_in(&f->w, 2) ? "0.9" : "min(0.9, (step + 1) / (step + 3))");
    static const char *const again[] = {"attention", "ffn", "layer"};
    if (one_in(&f->w, 5) && f->s.layers > 0 && strstr(f->w.b.s, "    attention n"))
        PUT(f, "  recompute = [%s]\n", ANY(&f->w, again));
    optimizer(f);
    if (one_in(&f->w, 2))
        PUT(f, "  eval { every = %d steps, batches = 2%s }\n", range(&f->w, 1, 3),
            one_in(&f->w, 4) ? ", data = none" : "");
    if (one_in(&f->w, 3))
        PUT(f, "  checkpoint { every = 2 steps, keep = %d }\n", range(&f->w, 0, 2));
    if (one_in(&f->w, 3))
        PUT(f, "  log { every = %s }\n", one_in(&f->w, 2) ? "1 steps" : "3 steps");
    PUT(f, "}\n");
    if (foreign && (f->s.layers > 0 || strstr(f->w.b.s, "embed tokens")))
        names(f);
}

/* ---- growth ---- */

static void fill(File *f, int layers_before)
{
    static const char *const layers[] = {"identity", "normal(std = 0.02)", "copy", "replicate"};
    static const char *const pairs[][2] = {
        {"zeros", "normal(std = 0.02)"}, {"normal(std = 0.3)", "zeros"}, {"copy", "split"},
        {"copy", "split(share = 0.4)"},  {"replicate", "replicate"},     {"noise(share = 10%)", "zeros"},
        {"copy", "normal(std = 0.1)"}};
    const char *const *pair =
        pairs[roll(&f->w, f->s.hidden ? sizeof pairs / sizeof *pairs : 2)]; /* of nothing there are no copies */
    PUT(f, "  fill { entry = %s, exit = %s", pair[0], pair[1]);
    if (one_in(&f->w, 3))
        PUT(f, ", inner = normal(std = 0.1)");
    if (one_in(&f->w, 3))
        PUT(f, ", layers = %s", layers[roll(&f->w, layers_before == 1 ? 4 : layers_before > 0 ? 3 : 2)]);
    PUT(f, " }\n");
}

/* A step, or two, of what every model has: more hidden coordinates, more layers. */
void write_growth(File *f)
{
    static const char *const when[] = {"step >= 1", "step >= 2", "tokens >= 1", "progress >= 0.25",
                                       "plateau(train.loss, window = 1 steps, less_than = 60%)"};
    static const char *const rates[] = {"", "  old { lr_scale = 0.5, warmup = 2 steps }\n",
                                        "  new { lr_scale = if step < 5 then 2 else 1 }\n", "  old { lr_scale = 0 }\n",
                                        "  new { lr_scale = 3, warmup = 1 steps }\n"};
    bool muon = strstr(f->w.b.s, "optimizer muon") != NULL;
    int layers_before = f->s.layers;
    for (int i = 0, n = one_in(&f->w, 4) ? 2 : 1; i < n; i++) {
        uint32_t what = f->s.varies ? 0 : roll(&f->w, 3);
        const char *rate = ANY(&f->w, rates);
        PUT(f, "\ngrow larger%d {\n  when = %s\n", i, i ? "step >= 1" : ANY(&f->w, when));
        if (what != 1)
            PUT(f, "  let F = F + %d\n", range(&f->w, 1, 5));
        if (what != 0)
            PUT(f, "  let L = L + 1\n");
        fill(f, layers_before);
        layers_before += what != 0;
        if (!muon || !strstr(rate, "= 0 }"))
            PUT(f, "%s", rate);
        if (one_in(&f->w, 3))
            PUT(f, "  train { length = 4 steps, clip = 1 }\n");
        if (one_in(&f->w, 4) || i) /* copies of what was frozen have none to begin with */
            PUT(f, "  moments = zeros\n");
        PUT(f, "  check params >= 0\n  check alive(none)\n}\n");
    }
}
