/* products.c - products of the matrices of one row inside kernels, on whole models.
 *
 * In:  wide connections, whose boundaries multiply matrices for each token; parameters at random;
 *      1, 31, 33 and 37 rows.
 * Out: sums over the rows of a matrix run along its columns, also where a product and its gradient are loops of 24 sums; every gradient of the compiled kernels agrees with the reference evaluator, with the same
 *      bits on 1, 2 and 4 threads; the kernels print the products that they were lowered to.
 * The one idea: matrices of 8, 24, 32 and 40 columns, so that whole vectors, halves of them and
 * both occur, and factors that lie as they are and transposed.
 */
#include "compiler/pass/simplify.h"
#include "support/gradients.h"

#include "compiler/plan/plan.h"

static const char text[] = "edition = 1\n"
                           "import \"std/transformer\"\n"
                           "import \"std/connections\"\n"
                           "let D = 192\n"
                           "let m = 8\n"
                           "let n = 32\n"
                           "let conn = ghc(m = m, n = n, dynamic = true, reduce = linear(out = D))\n"
                           "model small {\n"
                           "  context = 40, width = D, mask = causal, connection = conn\n"
                           "  pre_norm = rms_norm(eps = 1e-6), init = normal(std = 0.2), out_init = normal(std = 0.2)\n"
                           "  embed tokens { vocab = 17, width = D * n / m }\n"
                           "  for layer in 1..2 { ffn { hidden = 10, activation = silu } }\n"
                           "  head lm { norm = rms_norm(eps = 1e-6) }\n"
                           "}\n"
                           "train {\n"
                           "  data = text_file(\"none.txt\"), tokenizer = chars(), batch = 4 seqs, length = 10 steps, "
                           "seed = 1\n"
                           "  precision = fp32\n"
                           "  optimizer sgd { lr = 1e-2, momentum = 0, weight_decay = 0 }\n"
                           "}\n";

typedef struct Case {
    const char *name, *set[4];
    int64_t B, T;
    size_t turned; /* kernels that transpose a factor first, at least */
    bool loops;    /* products of a row by one matrix are loops, whose gradients run along its rows as well */
    Agreement is;
    size_t products, turns; /* kernels with some */
    size_t
        scattered; /* of them, and where products are loops of all, those with a loop that steps through memory by rows */
} Case;

static Case cases[] = {
    {.name = "(8,32), 24 wide", .set = {NULL}, .B = 1, .T = 31, .turned = 1},
    {.name = "(8,32), 24 wide", .set = {NULL}, .B = 37, .T = 1, .turned = 1},
    {.name = "(8,64), 40 wide", .set = {"n=64", "D=320", NULL}, .B = 3, .T = 11, .turned = 1},
    {.name = "static (8,32), 24 wide",
     .set = {"conn=ghc(m = m, n = n, dynamic = false, reduce = linear(out = D))", NULL},
     .B = 1,
     .T = 1,
     .turned = 1},
    {.name = "24 sums over 256",
     .set = {"conn=mhc(n = 4, iterations = 2)", "n=8", "D=64", NULL},
     .B = 3,
     .T = 11,
     .loops = true},
};

static void count_products(Case *c, const Plan *p)
{
    for (size_t i = 0; i < p->n_kernel; i++) {
        const char *body = p->kernel[i].text;
        bool product = strstr(body, "vwn_product") != NULL;
        c->products += product;
        c->scattered +=
            (product && strstr(body, "simd reduction") != NULL) || (c->loops && strstr(body, "[i1 * n") != NULL);
        c->turns += strstr(body, "vwn_product_transposed(") != NULL;
    }
}

static void run(Ctx *ctx, void *arg)
{
    Case *c = arg;
    Unit *u = load_text(ctx, text, c->set);
    Graph *g = step_gradient(u->model, u->train, true, ctx->program);
    PlanOptions how = {.B = c->B, .T = c->T};
    Plan *p = plan_build(ctx, ctx->program, graph_simplify(g, ctx->program), &how);
    plan_verify(ctx, p);
    count_products(c, p);
    gradients_compare(ctx, u, &c->is);
}

static void print_bug(Ctx *ctx, const char *dump)
{
    (void)ctx;
    printf("%.20000s\n", dump);
}

int main(int argc, char **argv)
{
    int failed = 0;
    for (size_t i = argc > 1 ? (size_t)atoi(argv[1]) : 0; i < COUNT_OF(cases); i++) {
        Case *c = &cases[i];
        Ctx *ctx = ctx_new(NULL);
        ctx->on_bug = print_bug;
        c->is = (Agreement){.B = c->B, .T = c->T, .worst = INFINITY, .name = ""};
        bool ok = guarded(ctx, run, c) && c->is.worst < 2e-5 && c->is.compared > 10 && c->is.same_bits &&
                  (c->products > 1 || c->loops) && c->scattered == 0 && c->turns >= c->turned;
        printf("%-24s B %lld T %lld worst %.1e at %s, %zu kernels with products, %zu transpose%s%s\n", c->name,
               (long long)c->B, (long long)c->T, c->is.worst, c->is.name, c->products, c->turns,
               c->is.same_bits ? "" : ", threads differ", ok ? "" : "  FAILED");
        failed += !ok;
        ctx_free(ctx);
    }
    return failed != 0;
}
