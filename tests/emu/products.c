/* products.c - products of the matrices of one row in CUDA kernels, emulated.
 *
 * In:  wide connections with randomised parameters, whose boundaries multiply matrices for each token.
 * Out: `N passed, N failed`; 77 without a C++ compiler. Every loss and gradient agrees with the
 *      reference evaluator, with the same bits whoever runs first; kernels multiply, and keep within
 *      their shared memory.
 * The one idea: 24, 40 and 8 columns, so that whole pieces of a warp and parts of them occur.
 */
#include "emulated.h"

#include "compiler/plan/plan.h"

/* As in models.c: large numbers cancel. */
static const double WORST = 1e-4;

typedef struct Case {
    const Variant v;
    Agreement is;
    size_t products;
    uint64_t shared; /* bytes of the largest */
} Case;

#define GHC(m, n, dynamic) "conn=ghc(m = " #m ", n = " #n ", dynamic = " #dynamic ", reduce = linear(out = D))"

static Case cases[] = {
    {.v = {"(8,32), 24 wide", {"D=192", GHC(8, 32, true), "wide=768", NULL}}, .is = {.B = 1, .T = 3}},
    {.v = {"(8,64), 40 wide", {"D=320", GHC(8, 64, true), "wide=2560", NULL}}, .is = {.B = 2, .T = 1}},
    {.v = {"(8,16), 8 wide", {"D=64", GHC(8, 16, true), "wide=128", NULL}}, .is = {.B = 1, .T = 1}},
    {.v = {"(8,32), static", {"D=192", GHC(8, 32, false), "wide=768", NULL}}, .is = {.B = 1, .T = 1}},
};

static void count_products(Case *c, const Plan *p)
{
    for (size_t i = 0; i < p->n_launch; i++) {
        const Launch *l = &p->launch[i];
        const PlanKernel *k = l->kind == LAUNCH_KERNEL ? &p->kernel[l->kernel] : NULL;
        if (!k || !strstr(k->text, "vwn_product"))
            continue;
        int64_t n[256];
        for (uint32_t j = 0; j < l->n_int && j < COUNT_OF(n); j++)
            n[j] = l->ints[j].value;
        uint64_t shared = plan_shared_bytes(&k->grid, n);
        c->shared = shared > c->shared ? shared : c->shared;
        c->products++;
    }
}

static void compare(Ctx *ctx, void *arg)
{
    Case *c = arg;
    Unit *u = load_text(ctx, model_text, c->v.set);
    Graph *g = step_gradient(u->model, u->train, true, ctx->program);
    PlanOptions how = {.B = c->is.B, .T = c->is.T, .target = &target_gpu};
    count_products(c, plan_build(ctx, ctx->program, plan_graph(g, ctx->program, &how), &how));
    gradients_emulated(ctx, u, &c->is);
}

static bool run_case(Case *c)
{
    Ctx *ctx = ctx_new(NULL);
    c->is.worst = INFINITY;
    c->is.name = "";
    guarded(ctx, compare, c);
    bool ok =
        c->is.worst < WORST && c->is.compared > 20 && c->is.same_bits && c->products > 3 && c->shared <= 96 * 1024;
    printf("%-20s B %lld T %-3lld worst %.1e at %s, %zu launches with products, %llu bytes%s%s\n", c->v.name,
           (long long)c->is.B, (long long)c->is.T, c->is.worst, c->is.name, c->products, (unsigned long long)c->shared,
           c->is.same_bits ? "" : ", orders differ", ok ? "" : "  FAILED");
    fflush(stdout);
    ctx_free(ctx);
    return ok;
}

static const char *case_name(size_t i) { return cases[i].v.name; }
static bool run_one(size_t i) { return run_case(&cases[i]); }

int main(int argc, char **argv) { return emulated_cases(argc, argv, COUNT_OF(cases), case_name, run_one); }
