/* models.c - training steps of the examples and of models of models.h by PTX, against the float64 reference evaluator.
 *
 *     test_ptx_models [NAME]
 *
 * In:  kernels as NVRTC compiles them to PTX, of sm_80 in float32, bf16 and fp16 and of sm_90a; a few orders of warps, threads and
 *      copies. Of the list a part is drawn: each type and both architectures are in it.
 * Out: a line for a case: the loss and every gradient agree within the bounds of the type, and every order gives the same
 *      bits. 77 where NVRTC is not.
 * When: slow, at most 3600 s. It runs what NVRTC makes of texts.
 */
#include "support/examples.h"
#include "support/gradients.h"

#include "backend_ptx.h"

enum { ORDERS = 2, WIDE = 2 };

/* Wide enough for products of 16 bits, and for warpgroups. */
static const Source wide[WIDE] = {
    {NULL, {"heads of 64", {"D=128", "widths=[D]", "model.context=150", NULL}}},
    {NULL,
     {"heads of 96, experts",
      {"D=192", "widths=[D]", "model.context=70",
       "sub=moe(experts = 3, active = 2, hidden = 72, "
       "activation = silu, scores = softmax, normalize = true, balance = 0.01)",
       NULL}}},
};
static const int64_t positions[WIDE] = {150, 70};

typedef struct Kind {
    const char *name;
    const Target *target;
    Half half;
    double bound;
} Kind;
static const Kind kinds[] = {{"f32", &target_gpu, HALF_NONE, 5e-5},
                             {"bf16", &target_gpu, HALF_BF16, 2e-2},
                             {"fp16", &target_gpu, HALF_FP16, 5e-3},
                             {"bf16, sm_90a", &target_sm_90a, HALF_BF16, 2e-2},
                             {"fp16, sm_90a", &target_sm_90a, HALF_FP16, 5e-3}};

typedef struct Case {
    Source source;
    const Kind *kind;
    int64_t B, T;
    Agreement is;
    uint64_t launches;
} Case;

static void order(Backend *b, int run) { backend_ptx_seed(b, 1000003u * (uint64_t)run); }

static void compare(Ctx *ctx, void *arg)
{
    Case *c = arg;
    char why[512];
    Unit *u = load_text(ctx, example_text(ctx, &c->source), c->source.v.set);
    c->is = (Agreement){.B = c->B,
                        .T = c->T,
                        .half = c->kind->half,
                        .half_wanted = c->kind->half,
                        .target = c->kind->target,
                        .runs = ORDERS,
                        .before = order,
                        .worst = INFINITY,
                        .name = ""};
    if (!u->train)
        vwn_bug(ctx, "%s does not train", c->source.v.name);
    if (backend_ptx_open(ctx, &(PtxOptions){.target = c->kind->target}, &c->is.on, why) != ST_OK)
        vwn_bug(ctx, "%s", why);
    gradients_compare(ctx, u, &c->is);
    c->launches = backend_ptx_launches(c->is.on);
}

static bool agrees(const Source *s, const Kind *k, int64_t B, int64_t T)
{
    Ctx *ctx = ctx_new(NULL);
    Case c = {.source = *s, .kind = k, .B = B, .T = T};
    const bool ran = guarded(ctx, compare, &c);
    const bool ok = ran && c.is.worst < k->bound && c.is.compared > 7 && c.is.same_bits && c.launches > 10;
    printf("%-24s %-13s %3zu gradients, %4llu launches, worst %.1e at %s%s%s\n", s->v.name, k->name, c.is.compared,
           (unsigned long long)c.launches, c.is.worst, c.is.name, ran && !c.is.same_bits ? ", runs differ" : "",
           ok ? "" : "  FAILED");
    fflush(stdout);
    ctx_free(ctx);
    return ok;
}

/* What is never left out: both architectures, products of both types of 16 bits. */
static bool always(const char *name, const Kind *k)
{
    return !strcmp(name, "heads of 64") && (k == &kinds[2] || k == &kinds[3]);
}

int main(int argc, char **argv)
{
    const size_t examples = COUNT_OF(sources), all = examples + MODELS + WIDE, n_kinds = COUNT_OF(kinds);
    int passed = 0, failed = 0;
    char why[512];
    CaseDraw draw = {.one_in = 997, .sanitized = 997};
    if (!ptx_possible(why)) {
        printf("skipped: %s\n", why);
        return PTX_SKIPPED;
    }
    for (size_t i = 0; i < all; i++) {
        const bool is_wide = i >= examples + MODELS;
        const Source own = is_wide        ? wide[i - examples - MODELS]
                           : i < examples ? sources[i]
                                          : (Source){NULL, *model_variant(i - examples)};
        for (size_t k = 0; k < n_kinds; k++) {
            if (kinds[k].target == &target_sm_90a && !is_wide)
                continue;
            const bool drawn = case_drawn(&draw, i * n_kinds + k) || always(own.v.name, &kinds[k]);
            if (argc > 1 ? strcmp(argv[1], own.v.name) != 0 : !drawn)
                continue;
            const int64_t T = is_wide ? positions[i - examples - MODELS] : 11;
            agrees(&own, &kinds[k], is_wide ? 1 : 3, T) ? passed++ : failed++;
        }
    }
    cases_end(&draw);
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0 || !passed;
}
