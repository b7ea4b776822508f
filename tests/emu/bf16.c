/* bf16.c - CUDA kernels that store and load bf16 or fp16, emulated, against the float64 evaluator of the same rounding.
 *
 * In:  models of models.h, wide enough for bf16, with randomised parameters, forward and backward.
 * Out: `N passed, N failed`; 77 without a C++ compiler.
 * Every loss and gradient agrees to a bound that follows from the type: a float32 value beside the
 * middle of two such numbers may be rounded the other way than its float64 twin. Such ones are eight
 * times as many in fp16, each an eighth as far off: the bound is an eighth of bf16's, but in the first
 * model a third. There two evaluators whose values differ by 1e-7 before they are rounded are apart by
 * 3e-3 to 1e-2 in fp16, by 3e-2 to 4e-2 in bf16; what lies below fp16's range moves it by 2e-9.
 * That agreement means something is seen from the CPU's program in float32, which lies farther off by
 * a factor. The four ways of backend_emu.h give the same bits.
 * When: slow. It runs hundreds of kernels, of which emu.examples has a part.
 */
#include "emulated.h"

typedef struct Case {
    const Variant v;
    Agreement is;
    bool attention;  /* in 16 bits, whose rounded probabilities the evaluator does not have */
    int narrow;      /* parameters of kernels that are in 16 bits and loaded, at least */
    int products;    /* with results in 16 bits, at least */
    int inside;      /* on tensor cores inside kernels over rows, at least */
    int narrow_most; /* 0: any number. What coefficients are computed to and of is not in 16 bits */
    Half half;       /* 0: bf16 */
    bool long_rows;  /* whose coefficients are computed of rows as they lie */
    Narrow is_narrow;
    double plain;
} Case;

/* Probabilities that are rounded differently move numbers across middles everywhere behind them: what is left
 * is the size of all rounding, and the float32 program lies no farther off. tests/emu/attention.c looks closer.
 * Nor does it at so few positions that no product is rounded. Where coefficients of a long row are computed of what lies there in
 * float32, as those of (4,8), more numbers come to lie on the other side: at five numbers of positions the worst is 1.0e-2 to 1.6e-2
 * off, and 1e-3 where nothing is rounded between kernels, as if each product were one of its own. */
static double bound_of(const Case *c)
{
    double bf16 = c->attention ? 5e-2 : c->long_rows ? 2e-2 : 8e-3;
    return c->half != HALF_FP16 ? bf16 : c->attention || !c->products ? bf16 / 8 : bf16 / 3;
}
static double factor_of(const Case *c) { return c->attention || !c->products ? 0 : 10; }

#define FFN  "sub=ffn(hidden = 72, activation = silu, gated = true)"
#define GHC  "conn=ghc(m = 2, n = 3, dynamic = true, reduce = linear(out = D))"
#define FP16 "train.precision=mixed(compute = fp16, master = fp32)"
#define WIDE "conn=ghc(m = 8, n = 32, dynamic = true, reduce = linear(out = D))"
#define LONG "conn=ghc(m = 4, n = 8, dynamic = true, reduce = linear(out = D))"
#define ODD  "conn=ghc(m = 7, n = 11, dynamic = true, reduce = linear(out = D))"
/* 72 and 65 positions; 256 are read eight numbers at once, 64 four. Heads of 36 and
 * 44 numbers are copied 8 bytes at once, those of 32 numbers 16. */
static Case cases[] = {
    {{"gpt", {"D=72", FFN, "model.init=normal(std = 0.1)", NULL}}, {.B = 3, .T = 24}, true, 8, .products = 20},
    {{"gpt, attention", {"D=64", FFN, "model.init=normal(std = 0.1)", NULL}},
     {.B = 3, .T = 24},
     true,
     8,
     .products = 20},
    {{"gpt, 256 wide", {"D=256", "widths=[D]", "sub=ffn(hidden = 16, activation = silu, gated = true)", NULL}},
     {.B = 1, .T = 65},
     true,
     6,
     .products = 8},
    {{"ghc (2,3), attention", {"D=64", FFN, "wide=96", GHC, "model.init=normal(std = 0.1)", NULL}},
     {.B = 3, .T = 24},
     true,
     12,
     .products = 20},
    {{"moe",
      {"D=72",
       "sub=moe(experts = 3, active = 2, hidden = 67, activation = silu, scores = softmax, "
       "normalize = true, balance = 0.01, shared = 1)",
       "model.init=normal(std = 0.1)", NULL}},
     {.B = 3, .T = 24},
     true,
     8,
     .products = 10},
    {{"carried, wider again",
      {"D=80", "widths=[168, 72, 88, 168]", FFN, "model.init=normal(std = 0.1)",
       "conn=carried(widths = widths, head = D, final = after_slice)", NULL}},
     {.B = 1, .T = 65},
     true,
     8,
     .products = 20},
    {{"ghc(8,32)", {"D=192", "widths=[D]", "parts=16", "wide=768", WIDE, NULL}},
     {.B = 1, .T = 5},
     false,
     4,
     0,
     .inside = 20},
    {{"ghc(7,11)", {"D=168", "widths=[D]", "parts=14", "wide=264", "model.init=normal(std = 0.1)", ODD, NULL}},
     {.B = 1, .T = 5},
     false,
     4,
     0,
     .inside = 8},
    {{"gpt, fp16", {"D=72", FFN, "model.init=normal(std = 0.1)", FP16, NULL}},
     {.B = 3, .T = 24},
     true,
     8,
     .products = 20,
     .half = HALF_FP16},
    {{"ghc(4,8)-256",
      {"D=1024", "widths=[D]", "parts=16", "sub=ffn(hidden = 16, activation = silu, gated = true)", "wide=2048", LONG,
       NULL}},
     {.B = 1, .T = 3},
     false,
     4,
     0,
     .inside = 8,
     .narrow_most = 11,
     .long_rows = true},
    {{"ghc(4,8)-264",
      {"D=1056", "widths=[D]", "parts=16", "sub=ffn(hidden = 16, activation = silu, gated = true)", "wide=2112", LONG,
       NULL}},
     {.B = 1, .T = 3},
     false,
     4,
     0,
     .inside = 8,
     .long_rows = true},
    {{"ghc (2,3), attention, fp16", {"D=64", FFN, "wide=96", GHC, "model.init=normal(std = 0.1)", FP16, NULL}},
     {.B = 3, .T = 24},
     true,
     12,
     .products = 20,
     .half = HALF_FP16},
    {{"ghc (8,32), fp16", {"D=192", "widths=[D]", "parts=16", "wide=768", WIDE, FP16, NULL}},
     {.B = 1, .T = 5},
     false,
     4,
     0,
     .inside = 20,
     .half = HALF_FP16},
    {{"ghc(7,11), fp16",
      {"D=168", "widths=[D]", "parts=14", "wide=264", "model.init=normal(std = 0.1)", ODD, FP16, NULL}},
     {.B = 1, .T = 5},
     false,
     4,
     0,
     .inside = 8,
     .half = HALF_FP16},
};

static void compare(Ctx *ctx, void *arg)
{
    Case *c = arg;
    const Unit *u = load_text(ctx, model_text, c->v.set);
    c->half = c->half ? c->half : HALF_BF16;
    c->is.half_wanted = c->half;
    c->is.target = &target_gpu;
    c->is.noise = 0.1;
    Agreement plain = c->is;
    c->is.half = c->half;
    c->is_narrow = count_narrow(ctx, u, c->half, c->is.B, c->is.T);
    gradients_emulated(ctx, u, &c->is);
    gradients_compare(ctx, u, &plain);
    c->plain = plain.worst;
}

static bool run_case(Case *c)
{
    Ctx *ctx = ctx_new(NULL);
    c->is.worst = INFINITY;
    c->is.name = "";
    guarded(ctx, compare, c);
    bool ok = c->is.worst < bound_of(c) && c->plain > factor_of(c) * c->is.worst && c->is.compared > 10 &&
              c->is.same_bits && c->is_narrow.loads >= c->narrow &&
              (!c->narrow_most || c->is_narrow.loads <= c->narrow_most) && c->is_narrow.products >= c->products &&
              c->is_narrow.inside >= c->inside;
    printf("%-20s %d loads of 16 bits, %d products and %d inside, worst %.1e at %s; in float32 %.1e%s%s\n", c->v.name,
           c->is_narrow.loads, c->is_narrow.products, c->is_narrow.inside, c->is.worst, c->is.name, c->plain,
           c->is.same_bits ? "" : ", orders differ", ok ? "" : "  FAILED");
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
