/* bf16.c - CUDA kernels that store and load bf16, emulated, against the float64 evaluator of the same rounding.
 *
 * In:  models of models.h, wide enough for bf16, with randomised parameters, forward and backward.
 * Out: `N passed, N failed`; 77 without a C++ compiler.
 * Every loss and gradient agrees to a bound that follows from bf16: a float32 value beside the middle of two
 * bf16 ones may be rounded the other way than its float64 twin. That this means something is seen from the
 * CPU's program in float32, which lies farther off by a factor. The four ways of backend_emu.h give the same bits.
 */
#include "emulated.h"

static const double WORST = 6e-3, FACTOR = 10;

typedef struct Case {
    const Variant v;
    Agreement is;
    int narrow; /* parameters of kernels that are bf16 and loaded, at least */
    int loads;
    double plain;
} Case;

#define WIDE "D=64", "sub=ffn(hidden = 72, activation = silu, gated = true)"
/* 72 and 66 positions; 256 are read eight numbers at once, 64 four, 67 one. */
static Case cases[] = {
    {{"gpt", {WIDE, NULL}}, {.B = 3, .T = 24}, 8, 0, 0},
    {{"gpt, 256 wide", {"D=256", "widths=[D]", "sub=ffn(hidden = 64, activation = silu, gated = true)", NULL}}, {.B = 2, .T = 33}, 6, 0, 0},
    {{"gelu, layer norm", {"D=80", "norm=layer_norm(eps = 1e-5)", "sub=ffn(hidden = 67, activation = gelu, bias = true)", NULL}}, {.B = 3, .T = 24}, 8, 0, 0},
    {{"ghc (2,3)", {WIDE, "wide=96", "conn=ghc(m = 2, n = 3, dynamic = true, reduce = linear(out = D))", NULL}}, {.B = 3, .T = 24}, 12, 0, 0},
    {{"moe", {"D=64", "sub=moe(experts = 3, active = 2, hidden = 72, activation = silu, scores = softmax, "
              "normalize = true, balance = 0.01, shared = 1)", NULL}}, {.B = 3, .T = 24}, 8, 0, 0},
};

static int count(const char *text, const char *what)
{
    int n = 0;
    for (; (text = strstr(text, what)); text += strlen(what))
        n++;
    return n;
}

/* Parameters of kernels that are loaded from bf16. */
static int narrow_loads(Ctx *ctx, const Unit *u, const Agreement *c)
{
    PlanOptions how = {.B = c->B, .T = c->T, .bf16 = true, .cuda = true};
    Graph *g = step_gradient(u->model, u->train, true, ctx->program);
    Plan *p = plan_build(ctx, ctx->program, plan_graph(g, ctx->program, &how), &how);
    int n = 0;
    for (size_t i = 0; i < p->n_kernel; i++)
        n += p->kernel[i].grid.threads ? count(p->kernel[i].text, "const bf16 *__restrict__") : 0;
    return n;
}

static void compare(Ctx *ctx, void *arg)
{
    Case *c = arg;
    const Unit *u = load_text(ctx, model_text, c->v.set);
    c->is.bf16_wanted = c->is.cuda = true;
    c->is.noise = 0.1;
    Agreement plain = c->is;
    c->is.bf16 = true;
    c->loads = narrow_loads(ctx, u, &c->is);
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
    bool ok = c->is.worst < WORST && c->plain > FACTOR * c->is.worst && c->is.compared > 10 &&
              c->is.same_bits && c->loads >= c->narrow;
    printf("%-20s %d loaded as bf16, worst %.1e at %s; in float32 %.1e%s%s\n", c->v.name, c->loads, c->is.worst,
           c->is.name, c->plain, c->is.same_bits ? "" : ", orders differ", ok ? "" : "  FAILED");
    fflush(stdout);
    ctx_free(ctx);
    return ok;
}

int main(int argc, char **argv)
{
    char why[512];
    int passed = 0, failed = 0;
    if (!emu_possible(why)) {
        printf("skipped: %s\n", why);
        return 77;
    }
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        if (argc < 2 || strcmp(argv[1], cases[i].v.name) == 0)
            run_case(&cases[i]) ? passed++ : failed++;
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
