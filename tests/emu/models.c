/* models.c - CUDA kernels of whole models, emulated, against the float64 reference evaluator.
 *
 * In:  models of models.h, a few numbers wide (rows without loops) and wider (rows of a warp, of a block), with
 *      randomised parameters, forward and backward.     Out: `N passed, N failed`; 77 without a C++ compiler.
 * Every second one, whose families examples.c has, too. Every loss and every gradient agrees to float32 bounds; the four ways of backend_emu.h give the same bits.
 * When: slow. It runs hundreds of kernels, of which emu.examples has a part.
 */
#include "emulated.h"

/* The CPU's kernels differ by up to 7e-5 in these cases, where large numbers cancel. */
static const double WORST = 1e-4;

typedef struct Case {
    const Variant v;
    Agreement is;
} Case;

/* A state that is carried and scaled as a whole, by a number or by a weight: rows of parts are read where they are
 * made, and recomputed. */
static const char scaled_text[] = "block scaled(stream: dim, learned: bool = false) {\n"
                                  "  block open()(e: [.., E]) -> [.., stream] { return pad(e, stream) }\n"
                                  "  block step(k: int)(x: [.., R], f: block) -> [.., R] {\n"
                                  "    let d = scope.width\n"
                                  "    s = 0.7\n"
                                  "    if learned {\n"
                                  "      param g : [] = ones { group = static }\n"
                                  "      s = g\n"
                                  "    }\n"
                                  "    seen = if learned then silu(first(x, d)) else s * first(x, d)\n"
                                  "    y = seen + 0.5 * f(seen)\n"
                                  "    return s * concat(y, rest(x, d))\n"
                                  "  }\n"
                                  "  block close()(x: [.., R]) -> [.., D] { return first(x, D) }\n"
                                  "}\n";

/* Rows: 1, 31, 33, 37 positions. Widths of 12 are unrolled; 36 takes loops of a warp, 520 those of a block;
 * 36 and 520 are read four numbers at once, 18 two, 37 one. In memory: where a block has 64 bytes of shared memory,
 * arrays of a row lie in the arena. */
static Case cases[] = {
    {{"gpt", {NULL}}, {.B = 1, .T = 1}},
    {{"gpt, 520 wide", {"D=520", "parts=4", "sub=ffn(hidden = 33, activation = silu, gated = true)", NULL}},
     {.B = 1, .T = 3}},
    {{"layer norm, gelu",
      {"D=36", "norm=layer_norm(eps = 1e-5)", "sub=ffn(hidden = 37, activation = gelu, bias = true)", NULL}},
     {.B = 1, .T = 37}},
    {{"hyper 4 dynamic", {"D=36", "conn=hyper(n = 4, dynamic = true)", NULL}}, {.B = 1, .T = 13}},
    {{"carried, wider again",
      {"D=40", "widths=[84, 20, 44, 84]", "conn=carried(widths = widths, head = D, final = after_slice)", NULL}},
     {.B = 1, .T = 3}},
    {{"carried, up and down",
      {"D=40", "widths=[100, 60, 20, 60, 100, 40, 40, 100]",
       "conn=carried(widths = widths, head = D, branch_scale = 0.22, final = after_slice)", NULL}},
     {.B = 1, .T = 3}},
    {{"scaled, up and down",
      {"D=36", "widths=[36, 132, 36, 132, 36]", "conn=scaled(stream = 132)", "train.recompute=[attention]", NULL}},
     {.B = 1, .T = 3}},
    {{"hyper-12,-1024-wide", {"D=1024", "parts=8", "conn=hyper(n = 12, dynamic = true)", NULL}}, {.B = 1, .T = 2}},
    {{"frac 4", {"D=36", "conn=frac(m = 4, dynamic = true)", NULL}}, {.B = 1, .T = 5}},
    {{"scaled-by-a-weight",
      {"D=60", "widths=[20, 60]", "conn=scaled(stream = 60, learned = true)", "train.recompute=[attention]", NULL}},
     {.B = 1, .T = 3, .noise = 0.1}},
    {{"ghc (2,3)", {"conn=ghc(m = 2, n = 3, dynamic = true, reduce = linear(out = D))", "wide=18", NULL}},
     {.B = 1, .T = 31}},
    {{"ghc (2,3), 76 wide",
      {"D=76", "conn=ghc(m = 2, n = 3, dynamic = true, reduce = linear(out = D))", "wide=114", NULL}},
     {.B = 1, .T = 3}},
    {{"mhc 3", {"D=36", "conn=mhc(n = 3)", NULL}}, {.B = 1, .T = 3}},
    {{"mhc 8, 264 wide", {"D=264", "parts=4", "conn=mhc(n = 8)", NULL}}, {.B = 1, .T = 3}},
    {{"nexus", {"D=36", "map=nexus_rank(M = 13, A = 14)", NULL}}, {.B = 1, .T = 7}},
    {{"pattention", {"D=36", "map=pattention(slots = 37)", NULL}}, {.B = 1, .T = 7}},
    {{"moe",
      {"D=36",
       "sub=moe(experts = 5, active = 2, hidden = 7, activation = silu, scores = softmax, normalize = true, "
       "balance = 0.01, z_loss = 0.001, shared = 1)",
       NULL}},
     {.B = 1, .T = 33}},
    {{"ghc (2,3), unfused",
      {"D=36", "conn=ghc(m = 2, n = 3, dynamic = true, reduce = linear(out = D))", "wide=54", NULL}},
     {.B = 2, .T = 7, .no_fusion = true}},
    {{"hyper 4, 520 wide, in memory", {"D=520", "parts=4", "conn=hyper(n = 4, dynamic = true)", NULL}},
     {.B = 1, .T = 3, .shared = 64}},
    {{"ghc (2,3), in memory",
      {"D=76", "conn=ghc(m = 2, n = 3, dynamic = true, reduce = linear(out = D))", "wide=114", NULL}},
     {.B = 1, .T = 3, .shared = 64}},
    {{"frac 4, in memory", {"D=36", "conn=frac(m = 4, dynamic = true)", NULL}}, {.B = 1, .T = 5, .shared = 64}},
};

static void compare(Ctx *ctx, void *arg)
{
    Case *c = arg;
    gradients_emulated(ctx, load_text(ctx, arena_printf(ctx->program, "%s%s", model_text, scaled_text), c->v.set),
                       &c->is);
}

static bool run_case(Case *c)
{
    Ctx *ctx = ctx_new(NULL);
    c->is.worst = INFINITY;
    c->is.name = "";
    guarded(ctx, compare, c);
    bool ok = c->is.worst < WORST && c->is.compared > 20 && c->is.same_bits && (c->is.aside > 0) == (c->is.shared > 0);
    printf("%-24s B %lld T %-3lld worst %.1e at %s, %zu in memory%s%s\n", c->v.name, (long long)c->is.B,
           (long long)c->is.T, c->is.worst, c->is.name, c->is.aside, c->is.same_bits ? "" : ", orders differ",
           ok ? "" : "  FAILED");
    fflush(stdout);
    ctx_free(ctx);
    return ok;
}

static const char *case_name(size_t i) { return cases[i].v.name; }
static bool run_one(size_t i) { return run_case(&cases[i]); }

int main(int argc, char **argv)
{
    return emulated_drawn(argc, argv, &(CaseDraw){.one_in = 6, .sanitized = 6}, COUNT_OF(cases), case_name, run_one);
}
