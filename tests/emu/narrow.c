/* narrow.c - CUDA kernels of models a few numbers wide, or less, emulated, against the float64 reference evaluator.
 *
 * In:  texts of models whose rows hold small matrices only: what a thread keeps of them crowds its registers, so that
 *      loops are tried instead.
 * Out: `N passed, N failed`; 77 without a C++ compiler. Every loss and gradient agrees to float32 bounds, whichever
 *      way the emulator runs; no kernel's text is longer than what is written out once.
 */
#include "emulated.h"

static const double WORST = 1e-4;
static const size_t TEXT_MOST = 250000; /* bytes of one kernel; tried as loops these were of megabytes */

typedef struct Case {
    const char *name, *body;
    Agreement is;
    size_t longest;
} Case;

#define BEGIN                                                                                                          \
    "import \"std/transformer\"\nimport \"std/connections\"\nmodel m {\n"                                              \
    "  mask = causal, init = normal(std = 0.2), out_init = normal(std = 0.1)\n"                                        \
    "  pre_norm = rms_norm(eps = 1e-5, gain = false)\n"
#define END                                                                                                            \
    "}\ntrain {\n  data = text_file(\"none.txt\"), tokenizer = bytes(), batch = 1 seqs, length = 3 steps\n"            \
    "  seed = 1, precision = fp32\n"                                                                                   \
    "  optimizer sgd { lr = if step < 2 then 1e-3 else 1e-4, momentum = 0, weight_decay = 0 }\n}\n"

static Case cases[] = {
    {.name = "heads without a hidden layer",
     .body = BEGIN
     "  context = 2, width = 3, connection = residual(branch_scale = 0.1)\n  embed tokens { vocab = 256 }\n"
     "  for layer in 0..1 { ffn { hidden = 7, activation = tanh } }\n"
     "  head lm { norm = layer_norm(eps = 1, bias = false) }\n"
     "  for depth in 1..2 { head mtp { predict = depth + 1, weight = 0.3, mix = linear(), norm = rms_norm(eps = 1), "
     "layer { ffn { hidden = 0, activation = silu } } } }\n" END,
     .is = {.B = 1, .T = 2}},
    {.name = "mhc of 3 numbers",
     .body = BEGIN
     "  context = 31, width = 3, connection = mhc(n = 2, collapse = mean)\n  embed tokens { vocab = 256 }\n"
     "  for layer in 1..3 { ffn { hidden = 7, activation = tanh } }\n  head lm { norm = layer_norm(eps = 1e-5) }\n" END,
     .is = {.B = 1, .T = 5}},
    {.name = "mhc of 3 numbers, gated",
     .body = BEGIN "  context = 31, width = 3, connection = mhc(n = 2, iterations = 2, collapse = mean)\n"
                   "  embed tokens { vocab = 256 }\n"
                   "  for layer in 1..3 {\n    if layer mod 2 == 0 { attention { heads = 3, softcap = 1 } }\n"
                   "    else { ffn odd { hidden = 16, activation = sigmoid, bias = true } }\n"
                   "    ffn { hidden = 7, activation = tanh, gated = true }\n  }\n"
                   "  head lm { norm = layer_norm(eps = 1e-5) }\n" END,
     .is = {.B = 1, .T = 5}},
};

static void compare(Ctx *ctx, void *arg)
{
    Case *c = arg;
    const Unit *u = load_text(ctx, c->body, NULL);
    PlanOptions how = {.B = c->is.B, .T = c->is.T, .target = &target_gpu};
    Graph *g = step_gradient(u->model, u->train, true, ctx->program);
    Plan *p = plan_build(ctx, ctx->program, plan_graph(g, ctx->program, &how), &how);
    for (size_t i = 0; i < p->n_kernel; i++)
        c->longest = p->kernel[i].length > c->longest ? p->kernel[i].length : c->longest;
    gradients_emulated(ctx, u, &c->is);
}

static bool run_one(size_t i)
{
    Case *c = &cases[i];
    Ctx *ctx = ctx_new(NULL);
    c->is.worst = INFINITY;
    c->is.name = "";
    bool ok = guarded(ctx, compare, c) && c->is.worst < WORST && c->longest > 0 && c->longest < TEXT_MOST &&
              c->is.compared > 2 && c->is.same_bits;
    printf("%-28s worst %.1e at %s, %zu compared, longest text %zu%s\n", c->name, c->is.worst, c->is.name,
           c->is.compared, c->longest, ok ? "" : "  FAILED");
    ctx_free(ctx);
    return ok;
}

static const char *case_name(size_t i) { return cases[i].name; }

int main(int argc, char **argv) { return emulated_cases(argc, argv, COUNT_OF(cases), case_name, run_one); }
