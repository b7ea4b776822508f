/* fit.c - measurements that are made from known constants, with noise: the fit finds these
 * constants again.
 *
 * In:  nothing; or `lines`: then they are printed as `predict --fit` reads them.
 * Out: `N passed, N failed`. The oracle: the constants that made the times. Each is found within
 * three of its standard errors, which are small where kernels say anything of it, and what is left
 * of each kernel is the noise.
 * When: quick, released.
 */
#include "perf/tool/fit.h"
#include "support/harness.h"

#include <math.h>

enum { KERNELS = 120, PRODUCTS = 60, ALL = KERNELS + PRODUCTS };
#define NOISE 0.02

static uint64_t state = 11;
static double between(double least, double most)
{
    return least * pow(most / least, 0.5 + 0.5 * harness_random(&state));
}
static double normal(void)
{
    double sum = 0;
    for (int i = 0; i < 12; i++)
        sum += 0.5 * harness_random(&state);
    return sum;
}

/* A kernel of some size, bound by memory, the second cache, instructions, tensor cores, its blocks'
 * waiting, or several. */
static FitKernel kernel(const Gpu *g, int i)
{
    FitKernel k = {
        .program = "train", .kernel = "", .perf = {.blocks = (int64_t)between(40, 20000), .resident = 1 + i % 8}};
    GpuCounts *c = &k.perf.counts;
    const double all = (double)k.perf.blocks, cycles = between(3e3, 1e5); /* of a block's busiest unit */
    const double share[] = {i % 4 == 0 ? 1 : between(0.05, 1), i % 4 == 1 ? 1 : between(0.05, 1),
                            i % 4 == 2 ? 1 : between(0.05, 1)};
    c->slots = share[0] * cycles * g->issue * all;
    c->unit[UNIT_FMA] = c->slots * between(0.1, 0.5);
    c->unit[UNIT_ALU] = c->slots * between(0.1, 0.5);
    c->unit[UNIT_XU] = c->slots * between(0.01, 0.05);
    c->wavefronts = share[1] * cycles * all;
    c->tensor = i % 3 == 0 ? share[2] * cycles * 1700 * all : 0;
    c->grouped = i % 2 ? c->tensor : 0;
    c->cycles = cycles * between(1, 1.5);
    k.perf.bytes = i % 4 == 3 ? cycles * all * between(10, 40) : cycles * all * between(0.1, 5);
    c->sectors_missed = (i % 4 == 2 ? cycles * all * between(30, 60) : k.perf.bytes) / 32;
    return k;
}

static FitKernel product(void)
{
    static const double sizes[] = {256, 512, 1024, 2048, 4096, 8192, 3072, 5632};
    double at[3];
    for (int i = 0; i < 3; i++)
        at[i] = sizes[(int)(4 + 3.999 * harness_random(&state))];
    return (FitKernel){.program = "train", .kernel = "", .m = at[0], .n = at[1], .k = at[2], .batch = 1, .half = true};
}

static Gpu true_one(void)
{
    Gpu g = *gpu_named("h100");
    g.copy = 2.7e12;
    g.l2 = 6.3e12;
    g.reached = 730e12;
    g.issue = 2.9;
    g.together = 2.9;
    g.beyond = 3.5;
    g.uncovered = 0.8;
    g.ramp = 3.1e-6;
    g.product_rate = 1.15;
    g.product_half = 22;
    g.product_end = 2.2e-6;
    return g;
}

static void measure(FitKernel all[ALL], double noise)
{
    const Gpu truth = true_one();
    for (int i = 0; i < ALL; i++) {
        all[i] = i < KERNELS ? kernel(&truth, i) : product();
        all[i].seconds = fit_seconds(&truth, &all[i]) * exp(noise * normal());
    }
}

static void print_lines(void)
{
    static FitKernel all[ALL];
    measure(all, NOISE);
    for (int i = 0; i < ALL; i++) {
        const FitKernel *k = &all[i];
        const GpuCounts *c = &k->perf.counts;
        if (k->m > 0) {
            printf("{\"event\":\"measured\",\"kernel\":\"product_%d\",\"product\":[%.0f,%.0f,%.0f,"
                   "1],\"half\":true,\"seconds\":%.17g}\n",
                   i, k->m, k->n, k->k, k->seconds);
            continue;
        }
        printf("{\"event\":\"measured\",\"kernel\":\"k_%d\",\"seconds\":%.17g}\n", i, k->seconds);
        printf("{\"event\":\"predicted\",\"program\":\"train\",\"kernel\":\"k_%d\",\"blocks\":%lld,"
               "\"resident\":%d,\"bytes\":%.17g,\"instructions\":%.17g,"
               "\"shared_cycles\":%.17g,\"sectors_missed\":%.17g,\"multiply_adds\":%.17g,"
               "\"grouped\":%.17g,\"block_cycles\":%.17g,"
               "\"units\":{\"fma\":%.17g,\"alu\":%.17g,\"xu\":%.17g}}\n",
               i, (long long)k->perf.blocks, k->perf.resident, k->perf.bytes, c->slots, c->wavefronts,
               c->sectors_missed, c->tensor, c->grouped, c->cycles, c->unit[UNIT_FMA], c->unit[UNIT_ALU],
               c->unit[UNIT_XU]);
    }
    printf("{\"event\":\"measured\",\"kernel\":\"k_nobody\",\"seconds\":1}\n");
}

/* In the order of FitConstant. */
static void truths(double of[FIT_CONSTANTS])
{
    const Gpu g = true_one();
    const double t[] = {g.copy,      g.l2,   g.reached,      g.issue,        g.together,   g.beyond,
                        g.uncovered, g.ramp, g.product_rate, g.product_half, g.product_end};
    memcpy(of, t, sizeof t);
}

static void check(Harness *h, const char *what, double noise, double most)
{
    static FitKernel all[ALL];
    double of[FIT_CONSTANTS];
    char text[160];
    Fit f;
    measure(all, noise);
    if (most > 0) /* some have another text: they take twice as long, or half */
        for (int i = 0; i < ALL; i += 20)
            all[i].seconds *= i % 40 ? 2 : 0.5;
    fit_constants(gpu_named("h100"), all, ALL, &f);
    truths(of);
    for (int i = 0; i < FIT_CONSTANTS; i++) {
        const FitConstant *c = &f.constant[i];
        const double off = fabs(log(c->value / of[i]));
        snprintf(text, sizeof text, "%s: %s is %g, not %g (of %g), error %.1f %%", what, c->name, c->value, of[i],
                 c->before, 100 * c->error);
        CHECK_CASE(h, off < 3 * c->error + most && c->error < (most > 0 ? 0.2 : 0.15), text);
    }
    snprintf(text, sizeof text, "%s: %.1f %% are left of %.1f", what, 100 * f.rms, 100 * f.rms_before);
    CHECK_CASE(h, f.rms < f.rms_before && (most > 0 || f.rms < fmax(1.1 * noise, 1e-3)), text);
}

/* Of kernels that only copy, the rate of a copy and the ramp are known, and nothing else moves. */
static void check_copies(Harness *h)
{
    FitKernel k[12];
    Fit f;
    Gpu truth = *gpu_named("h200");
    truth.copy = 3.9e12;
    truth.ramp = 6e-6;
    for (int i = 0; i < 12; i++) {
        k[i] = (FitKernel){.program = "", .kernel = "copy", .perf.bytes = 4e6 * pow(2, i)};
        k[i].seconds = fit_seconds(&truth, &k[i]);
    }
    fit_constants(gpu_named("h200"), k, 12, &f);
    for (int i = 0; i < FIT_CONSTANTS; i++) {
        const FitConstant *c = &f.constant[i];
        const bool said = !strcmp(c->name, "copy") || !strcmp(c->name, "ramp");
        const double want = !said ? c->before : !strcmp(c->name, "copy") ? truth.copy : truth.ramp;
        CHECK_CASE(h, fabs(c->value / want - 1) < 0.01 && (said ? c->error < 0.05 : c->error > 0.3), c->name);
    }
}

int main(int argc, char **argv)
{
    Harness h = {0};
    if (argc > 1 && !strcmp(argv[1], "lines")) {
        print_lines();
        return 0;
    }
    check(&h, "without noise", 0, 0);
    for (int i = 0; i < 3; i++)
        check(&h, "with noise", NOISE, 0);
    check(&h, "with some that are far off", NOISE, 0.03);
    check_copies(&h);
    return harness_end(&h);
}
