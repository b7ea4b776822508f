/* pieces.c - CUDA kernels of wide rows, emulated, against the float64 reference evaluator: what loops compute in pieces, sums of
 * rows that a block holds or that lie in memory, guarded loads, rows of two warps.
 *
 * In:  texts of models of 2,048 numbers with connections of few streams, in float32 and in 16 bits.
 * Out: `N passed, N failed`; 77 without a C++ compiler. Every loss and gradient agrees to a bound that follows from the type,
 *      whichever way the emulator runs; the texts have so many loads of each kind at least.
 */
#include "emulated.h"

typedef struct Case {
    const char *name, *connection, *precision;
    Half half;
    double worst;                      /* that it may be */
    int pieces, guarded, sums, turned; /* loads in pieces, of these guarded, of sums and of turned rows */
    int pairs, columns;                /* kernels of two warps a row; places of lanes */
    int arrays;                        /* that there may be */
    Agreement is;
    int seen[7];
} Case;

static const char body[] =
    "import \"std/transformer\"\nimport \"std/connections\"\nlet D = 2048\nmodel m {\n"
    "  context = 8, width = D, mask = causal, init = normal(std = 0.02), out_init = normal(std = 0.1)\n"
    "  pre_norm = rms_norm(eps = 1e-5)\n  connection = %s\n"
    "  for layer in 1..3 { ffn { hidden = 64, activation = tanh, gated = true } }\n  head lm { norm = rms_norm(eps = "
    "1e-5) }\n}\n"
    "train {\n  data = text_file(\"none.txt\"), tokenizer = bytes(), batch = 1 seqs, length = 3 steps\n"
    "  seed = 1, precision = %s\n  optimizer sgd { lr = 1e-3, momentum = 0, weight_decay = 0 }\n}\n";

#define GHC                                                                                                            \
    "ghc(m = 2, n = 3, dynamic = true, reduce = linear(out = D))\n  embed tokens { vocab = 256, width = D * 3 / 2 }"
#define GHC_OF_ONE                                                                                                     \
    "ghc(m = 1, n = 3, dynamic = true, reduce = linear(out = D))\n  embed tokens { vocab = 256, width = D * 3 }"
#define HYPER "hyper(n = 4, dynamic = true)\n  embed tokens { vocab = 256 }"
static Case cases[] = {
    {.name = "(2,3)",
     .connection = GHC,
     .precision = "fp32",
     .worst = 2e-5,
     .pieces = 90,
     .guarded = 3,
     .sums = 16,
     .pairs = 2,
     .columns = 70,
     .arrays = 69},
    {.name = "(2,3), bf16",
     .connection = GHC,
     .precision = "mixed(compute = bf16, master = fp32)",
     .half = HALF_BF16,
     .worst = 6e-3,
     .pieces = 90,
     .guarded = 3,
     .sums = 16,
     .turned = 30,
     .pairs = 2,
     .columns = 70,
     .arrays = 69},
    {.name = "(2,3), fp16",
     .connection = GHC,
     .precision = "mixed(compute = fp16, master = fp32)",
     .half = HALF_FP16,
     .worst = 1e-3,
     .pieces = 90,
     .guarded = 3,
     .sums = 16,
     .turned = 30,
     .pairs = 2,
     .columns = 70,
     .arrays = 69},
    {.name = "(1,3)",
     .connection = GHC_OF_ONE,
     .precision = "fp32",
     .worst = 2e-5,
     .pieces = 100,
     .guarded = 9,
     .sums = 16,
     .pairs = 2,
     .columns = 70,
     .arrays = 55},
    {.name = "hyper 4, bf16",
     .connection = HYPER,
     .precision = "mixed(compute = bf16, master = fp32)",
     .half = HALF_BF16,
     .worst = 2e-2,
     .pieces = 160,
     .guarded = 2,
     .sums = 12,
     .turned = 25,
     .pairs = 1,
     .columns = 20,
     .arrays = 49},
};

static void count(Ctx *ctx, const Unit *u, Case *c)
{
    static const char *const what[] = {"vwn_piece<",    "vwn_many_if<", "vwn_add_piece(", "vwn_many_turned(",
                                       "THREADS = 64,", "= vwn_array<", "vwn_column"};
    PlanOptions how = {.B = c->is.B, .T = c->is.T, .half = c->half, .target = &target_gpu};
    Graph *g = step_gradient(u->model, u->train, true, ctx->program);
    Plan *p = plan_build(ctx, ctx->program, plan_graph(g, ctx->program, &how), &how);
    for (size_t i = 0; i < p->n_kernel; i++)
        for (size_t w = 0; w < COUNT_OF(what); w++)
            c->seen[w] += count_of(p->kernel[i].text, what[w]);
}

static void compare(Ctx *ctx, void *arg)
{
    Case *c = arg;
    const Unit *u = load_text(ctx, arena_printf(ctx->program, body, c->connection, c->precision), NULL);
    c->is.half = c->is.half_wanted = c->half;
    c->is.target = &target_gpu;
    c->is.noise = 0.1;
    count(ctx, u, c);
    gradients_emulated(ctx, u, &c->is);
}

static bool run_one(size_t i)
{
    Case *c = &cases[i];
    Ctx *ctx = ctx_new(NULL);
    c->is = (Agreement){.B = 1, .T = 5, .worst = INFINITY, .name = ""};
    bool ok = guarded(ctx, compare, c) && c->is.worst < c->worst && c->is.compared > 10 && c->is.same_bits &&
              c->seen[0] >= c->pieces && c->seen[1] >= c->guarded && c->seen[2] >= c->sums && c->seen[3] >= c->turned &&
              c->seen[4] >= c->pairs && c->seen[5] <= c->arrays && c->seen[6] >= c->columns;
    printf("%-14s worst %.1e at %s, %zu compared; loads in pieces %d, guarded %d, sums %d, turned rows %d; kernels of "
           "two warps a row %d, arrays %d, places of lanes %d%s%s\n",
           c->name, c->is.worst, c->is.name, c->is.compared, c->seen[0], c->seen[1], c->seen[2], c->seen[3], c->seen[4],
           c->seen[5], c->seen[6], c->is.same_bits ? "" : ", orders differ", ok ? "" : "  FAILED");
    ctx_free(ctx);
    return ok;
}

static const char *case_name(size_t i) { return cases[i].name; }

int main(int argc, char **argv)
{
    return emulated_drawn(argc, argv, &(CaseDraw){.one_in = 5, .sanitized = 5}, COUNT_OF(cases), case_name, run_one);
}
