/* models.c - compiled kernels against the float64 reference evaluator, on whole models.
 *
 * In:  the small models of models.h with randomised parameters, forward and backward, fused and not,
 *      at sizes 1, a prime and more.   Out: `N passed, N failed`.
 * Every loss and every gradient tensor must agree to float32 bounds; 1, 2 and 4 threads give the same bits. Each model has
 * one of the two sizes in turn; all with VWN_TEST_WHOLE=1.
 * When: first, optimised, computes.
 */
#include "support/gradients.h"

typedef struct Sizes {
    int64_t B, T;
} Sizes;
static const Sizes sizes[] = {{1, 1}, {2, 7}};
static const char *const unfused[] = {"ghc (2,3)"}; /* many kernels to compile: one suffices */

typedef struct Case {
    const Variant *v;
    Agreement is;
} Case;

static void compare(Ctx *ctx, void *arg)
{
    Case *c = arg;
    gradients_compare(ctx, load_text(ctx, variant_text(ctx, c->v), c->v->set), &c->is);
}

static bool listed(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(unfused); i++)
        if (!strcmp(unfused[i], name))
            return true;
    return false;
}

/* Three of four models, and what is not fused, are compiled without optimising, in a seventh of the time; all are optimised where
 * all is looked at. */
static void choose_compiler(size_t i, const char *asked)
{
    if (i % 4 && !test_whole())
        setenv("CC", VWN_SOURCE_DIR "/tests/cc_O0.sh", 1);
    else if (asked)
        setenv("CC", asked, 1);
    else
        unsetenv("CC");
}

static bool run_case(const Variant *v, Sizes at, bool no_fusion)
{
    Ctx *ctx = ctx_new(NULL);
    Case c = {v, {.B = at.B, .T = at.T, .no_fusion = no_fusion, .worst = INFINITY, .name = ""}};
    guarded(ctx, compare, &c);
    bool ok = c.is.worst < 2e-5 && c.is.compared > 20 && c.is.same_bits;
    printf("%-18s B %lld T %lld %-8s worst %.1e at %s%s%s\n", v->name, (long long)at.B, (long long)at.T,
           no_fusion ? "unfused" : "fused", c.is.worst, c.is.name, c.is.same_bits ? "" : ", threads differ",
           ok ? "" : "  FAILED");
    fflush(stdout);
    ctx_free(ctx);
    return ok;
}

int main(int argc, char **argv)
{
    char named[256] = "";
    const char *asked = getenv("CC") ? named : NULL;
    if (asked)
        snprintf(named, sizeof named, "%s", getenv("CC"));
    int passed = 0, failed = 0;
    CaseDraw draw = {.one_in = 26, .sanitized = 26, .first = 1};
    for (size_t i = 0; i < MODELS; i++) {
        const Variant *v = model_variant(i);
        if (argc > 1 && strcmp(argv[1], v->name)) /* an argument names the only one */
            continue;
        choose_compiler(i, asked);
        for (size_t k = i < TEXT_MODELS ? 0 : 1; k < COUNT_OF(sizes); k++) /* images have no T */
            if (i >= TEXT_MODELS || argc > 1 || case_drawn(&draw, i + k))
                run_case(v, sizes[k], false) ? passed++ : failed++;
        choose_compiler(1, asked);
        if (listed(v->name))
            run_case(v, sizes[1], true) ? passed++ : failed++;
    }
    cases_end(&draw);
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
