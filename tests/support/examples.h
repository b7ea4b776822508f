/* examples.h - the examples, each made small enough to be computed in float64.
 *
 * In:  the number of a Source.   Out: its text, without what it claims about its own size and without
 *      growth; the overrides that make it small.
 */
#ifndef VWN_TEST_EXAMPLES_H
#define VWN_TEST_EXAMPLES_H

#include <dirent.h>

#include "models.h"

typedef struct Source {
    const char *file; /* of examples/; NULL: the text of models.h */
    Variant v;
} Source;

/* What stands in an example, and what stands there instead. */
static const char *const smaller[][2] = {
    {"vocab = 151_936", "vocab = 23"},
    {"vocab = 50_304", "vocab = 23"},
    {"vocab = 32_000", "vocab = 23"},
    {"vocab = 65", "vocab = 23"},
    {"hidden = 8192", "hidden = 20"},
    {"hidden = 3072", "hidden = 20"},
    {"hidden = 2048", "hidden = 20"},
    {"hidden     = 1024", "hidden     = 7"},
    {"head_dim = 128", "head_dim = 4"},
    {"head_dim = 64", "head_dim = 6"},
    {"layer in 1..8", "layer in 1..4"},
    {"experts    = 64", "experts    = 9"},
    {"active     = 8", "active     = 2"},
    {"heads = 16", "heads = 4"},
    {"heads    = 16", "heads    = 4"},
    {"kv_heads = 8", "kv_heads = 2"},
    {"image = 224", "image = 48"},
    {"context    = 197", "context    = 10"},
    {"size = 197", "size = 10"},
    {"heads  = 16", "heads  = 4"},
    {"classes = 1000", "classes = 17"},
    {"round      = 32", "round      = 8"},
    {"let V       = 32_000", "let V = 23"},
    {"let L         = 24", "let L = 1"},
    {"D / 64", "2"},
    {"D / 128", "2"},
    {"vocab = 8192", "vocab = 23"},
};

#define MECHANISMS        "../tests/kernel/models/" /* from the examples */
#define PLUS(width, head) "D=" width, "L=1", "F=20", "V=23", "head_dim=" head
static const Source sources[] = {
    {"01_nano.vwn", {"nano", {"D=24", "L=2", NULL}}},
    {"02_olmo_1b.vwn", {"olmo", {"D=24", "L=2", NULL}}},
    {"02_olmo_1b.vwn", {"olmo hyper", {"D=24", "L=2", "conn=hyper(n = 4, dynamic = true)", NULL}}},
    {"02_olmo_1b.vwn",
     {"olmo frac",
      {"D=24", "L=1", "conn=frac(m = 4, dynamic = true, norm = rms_norm(eps = 1e-6, gain = false))", NULL}}},
    {"03_qwen3_0_6b.vwn", {"qwen3", {"D=24", "L=2", NULL}}},
    {"06_vwn_1_5x_mtp.vwn", {"vwn 1.5x, mtp", {"D=24", "L=1", NULL}}},
    {"06_vwn_1_5x_mtp.vwn", {"vwn (4,8)", {"D=32", "L=1", "m=4", "n=8", NULL}}},
    {"07_vwn_x8_moe.vwn", {"vwn x8, moe", {"D=16", "L=1", "V=23", NULL}}},
    {"08_xformer_500m.vwn", {"xformer", {"d=48", "L=4", "V=23", NULL}}},
    {"09_nexus_growth.vwn", {"nexus", {"D=24", "M=26", "A=30", "F=20", "L=1", "h=6", "heads=4", "V=23", NULL}}},
    {"10_tokenformer_growth.vwn", {"tokenformer", {"D=32", "slots=9", "ffn_slots=11", "V=23", "heads=4", NULL}}},
    {"24_xformer_moe.vwn", {"xformer moe", {"d=48", "L=3", "V=23", "experts=5", NULL}}},
    {"25_nexus_released.vwn", {"nexus, all maps", {"D=24", "M=26", "A=30", "F=40", "L=1", "V=23", NULL}}},
    {"13_vit_hyper.vwn", {"vit", {"D=16", "L=1", NULL}}},
    {"14_own_connection.vwn", {"own connection", {"D=16", NULL}}},
    {"15_olmoe_1b_7b.vwn", {"olmoe", {"D=24", "L=1", "V=23", "F=5", "E=9", "H=4", NULL}}},
    {"15_olmoe_1b_7b.vwn",
     {"olmoe hyper",
      {"D=24", "L=1", "V=23", "F=5", "E=9", "H=4", "gain=false", "conn=hyper(n = 4, dynamic = true)", NULL}}},
    {"16_transformer_pp.vwn", {"altup", {PLUS("24", "6"), "conn=altup(n = 3)", NULL}}},
    {"16_transformer_pp.vwn",
     {"mhc", {PLUS("16", "4"), "conn=mhc(n = 2, iterations = 3, start = softmax, eps = 1e-6)", NULL}}},
    {"16_transformer_pp.vwn",
     {"mhc, otherwise",
      {PLUS("16", "4"),
       "conn=mhc(n = 2, iterations = 2, start = sigmoid, "
       "transposed = true, collapse = predicted)",
       NULL}}},
    {"16_transformer_pp.vwn",
     {"hyper 8", {PLUS("16", "4"), "conn=hyper(n = 8, dynamic = true, collapse = mean)", NULL}}},
    {"16_transformer_pp.vwn",
     {"hyper, linear",
      {PLUS("24", "6"),
       "conn=hyper(n = 3, dynamic = true, squash = none, "
       "norm = none, factor = none, replicate = [1, 0, 2], collapse = learned)",
       NULL}}},
    {"16_transformer_pp.vwn",
     {"frac, linear",
      {PLUS("24", "6"),
       "conn=frac(m = 3, dynamic = true, norm = none, "
       "squash = none, factor = none)",
       NULL}}},
    {"16_transformer_pp.vwn",
     {"two-hop",
      {PLUS("24", "6"), "conn=hyper_fixed(n = 2, matrices = wiring(kind = two_hop))", "before=none", "behind=norm",
       NULL}}},
    {"16_transformer_pp.vwn",
     {"residual_dual", {PLUS("24", "6"), "conn=residual_dual(norm = norm)", "before=none", "abreast=true", NULL}}},
    {"16_transformer_pp.vwn", {"post norm", {PLUS("24", "6"), "conn=post_norm(norm = norm)", "before=none", NULL}}},
    {"16_transformer_pp.vwn",
     {"parallel", {PLUS("24", "6"), "conn=hyper_fixed(n = 2, matrices = wiring(kind = parallel))", NULL}}},
    {"19_over_encoding.vwn", {"over-encoding", {"D=64", "L=1", "V=23", "rows=40", NULL}}},
    {"20_mtp_chain.vwn", {"mtp chain", {"D=64", "L=1", "V=23", "m=2", "n=4", "depths=2", NULL}}},
    {"21_deepseek_mtp.vwn", {"deepseek mtp", {"D=24", "L=1", "V=23", "F=20", NULL}}},
    {"26_width_shapes.vwn", {"width shapes", {"d=64", "L=3", NULL}}},
    {"27_vit.vwn", {"vit, patches", {"D=24", "L=1", "H=4", "S=48", NULL}}},
    {"27_vit.vwn", {"vit, hyper", {"D=24", "L=1", "H=4", "S=32", "conn=hyper(n = 2, dynamic = true)", NULL}}},
    {"29_dit.vwn", {"dit", {"D=24", "L=1", "H=2", "S=8", NULL}}},
    {"29_dit.vwn",
     {"dit hyper",
      {"D=64", "L=1", "H=2", "S=8", "conn=hyper(n = 2, dynamic = true)", "qk=rms_norm(eps = 1e-6)", NULL}}},
    {"pays.vwn", {"pays, ghc", {"D=24", "L=2", "E=36", "conn=ghc(m = 2, n = 3, dynamic = true)", NULL}}},
    {"pays.vwn", {"pays, moe", {"D=24", "L=2", "experts=5", NULL}}},
    {"quickstart.vwn", {"quickstart", {"D=24", "L=2", NULL}}},
    {"33_fine_tune.vwn", {"fine tune", {NULL}}},
    {"34_lora.vwn", {"lora", {NULL}}},
    {"35_convert.vwn", {"convert", {NULL}}},
    {"36_sweep_bottleneck.vwn", {"widths of a sweep", {"d=32", "L=2", NULL}}},
    {"37_sweep_widths.vwn", {"drawn widths", {"d=32", "L=2", NULL}}},
    {"growth_nexus.vwn", {"nexus that grows", {"D=24", "M=26", "A=30", NULL}}},
    {"growth_width.vwn", {"residual that grows", {"D=24", NULL}}},
    /* mechanisms of others */
    {MECHANISMS "rotary.vwn", {"rotary, turned", {"D=16", NULL}}},
    {MECHANISMS "mamba2.vwn", {"mamba-2", {"D=16", "model.context=8", NULL}}},
    {MECHANISMS "kda.vwn", {"delta attention", {"D=16", "C=4", "model.context=8", NULL}}},
    {MECHANISMS "ttt.vwn", {"test-time training", {"D=16", "C=4", "model.context=8", NULL}}},
    {MECHANISMS "shifts.vwn", {"shifted scores", {"D=16", "model.context=8", NULL}}},
    {NULL, {"a state that grows", {"conn=depth_weighted(sublayers = 1)", NULL}}},
    /* products of matrices of one row */
    {NULL,
     {"ghc (8,16)", {"conn=ghc(m = 8, n = 16, dynamic = true, reduce = linear(out = D))", "D=128", "wide=256", NULL}}},
    {NULL,
     {"ghc (8,32)", {"conn=ghc(m = 8, n = 32, dynamic = true, reduce = linear(out = D))", "D=64", "wide=256", NULL}}},
};

static const char train_text[] =
    "\ntrain {\n"
    "  data = text_file(\"none.txt\"), tokenizer = chars(), batch = 4 seqs, length = 10 steps, seed = 1\n"
    "  precision = fp32, clip = 1\n"
    "  optimizer adamw { lr = 1e-2, betas = [0.9, 0.95], eps = 1e-8, weight_decay = 0.1 }\n"
    "}\n";

static inline void replace_all(Buf *out, const char *text)
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

/* A file without what it claims about its own size and without sweeps, and with `train` where it has none. small: without its growth
 * steps and recomputation, too. */
static inline const char *trained_text(Ctx *ctx, const char *path, bool small)
{
    char line[1024];
    Buf text = buf_new(ctx->program);
    FILE *f = fopen(path, "r");
    bool train = false, grow = false, sweep = false;
    while (f && fgets(line, sizeof line, f)) {
        train = train || strncmp(line, "train {", 7) == 0;
        grow = grow || strncmp(line, "grow ", 5) == 0;
        sweep = sweep || strncmp(line, "sweep ", 6) == 0;
        if (strncmp(line, "check ", 6) != 0 && !sweep && !(small && (grow || strstr(line, "recompute"))))
            buf_puts(&text, line);
        grow = grow && line[0] != '}';
        sweep = sweep && line[0] != '}';
    }
    if (!f)
        vwn_bug(ctx, "no %s", path);
    fclose(f);
    bool images = strstr(text.s, "head classify") || strstr(text.s, "head noise");
    if (!train)
        buf_puts(&text, images ? train_images : train_text);
    return text.s;
}

static inline const char *example_path(Ctx *ctx, const char *file)
{
    return arena_printf(ctx->program, "%s/examples/%s", VWN_SOURCE_DIR, file);
}

static inline const char *small_text(Ctx *ctx, const Source *s)
{
    Buf out = buf_new(ctx->program);
    replace_all(&out, trained_text(ctx, example_path(ctx, s->file), true));
    return out.s;
}

static inline const char *example_text(Ctx *ctx, const Source *s)
{
    return s->file ? small_text(ctx, s) : variant_text(ctx, &s->v);
}

/* ---- which there are ---- */

typedef VEC(const char *) ExampleFiles;

/* Is this in a line of the file? Behind a '\n': at the beginning of one. */
static inline bool example_has(Ctx *ctx, const char *file, const char *what)
{
    char line[1024] = "\n";
    FILE *f = fopen(example_path(ctx, file), "r");
    bool has = false;
    while (f && !has && fgets(line + 1, sizeof line - 1, f))
        has = strstr(line, what) != NULL;
    if (f)
        fclose(f);
    return has;
}

static inline int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The names of those that have it, in order. */
static inline ExampleFiles example_files(Ctx *ctx, const char *what)
{
    ExampleFiles found = {0};
    DIR *folder = opendir(VWN_SOURCE_DIR "/examples");
    for (struct dirent *d; folder && (d = readdir(folder));) {
        size_t n = strlen(d->d_name);
        if (n > 4 && !strcmp(d->d_name + n - 4, ".vwn") && example_has(ctx, d->d_name, what))
            vec_push(ctx->program, &found, arena_copy(ctx->program, d->d_name, n));
    }
    if (folder)
        closedir(folder);
    if (found.n)
        qsort(found.v, found.n, sizeof *found.v, by_name);
    return found;
}

/* How many of them are none of these sources; says which. No examples at all are one, too. */
static inline int examples_not_listed(const Source *list, size_t n, const char *what)
{
    Ctx *ctx = ctx_new(NULL);
    ExampleFiles files = example_files(ctx, what);
    int missing = files.n == 0;
    for (size_t k = 0; k < files.n; k++) {
        size_t i = 0;
        while (i < n && (!list[i].file || strcmp(list[i].file, files.v[k]) != 0))
            i++;
        if (i < n)
            continue;
        printf("%s is not listed  FAILED\n", files.v[k]);
        missing++;
    }
    ctx_free(ctx);
    return missing;
}

#endif
