/* estimate.c - the time of a step that is said without running it: launches add up, each by the
 * rates of its kind, and what is slower counts.
 *
 * In:  made-up rates, and launches of one need each.   Out: `N passed, N failed`.
 * The one idea: every rate is a prime, so a launch that reads the wrong one gives another time.
 * When: quick, checked, optimised.
 */
#include "runtime/measure/rates.h"
#include "support/harness.h"

#include <math.h>

enum { THREADS = 4 };

static Rates prime_rates(void)
{
    Rates r = {.threads = THREADS};
    double p = 101;
    for (int i = 0; i < RATE_COUNT; i++, p += 2) {
        for (bool prime = false; !prime; p += prime ? 0 : 2) {
            prime = true;
            for (double q = 3; q * q <= p && prime; q += 2)
                prime = fmod(p, q) != 0;
        }
        r.v[i] = p;
    }
    for (int i = 0; i < RATE_MOVES; i++) { /* larger and slower */
        r.v[RATE_MOVE_BYTES + i] = 1000 * pow(10, i);
        r.v[RATE_MOVE + i] = 1e6 / (i + 1);
    }
    r.v[RATE_LAUNCHES] = 1e6;
    return r;
}

static bool near(double a, double b) { return fabs(a - b) <= 1e-9 * fabs(b); }

/* Of a launch on all threads, without what every launch takes. */
static double work_of(const Rates *r, Launch l)
{
    l.rows = l.rows ? l.rows : 1000;
    return estimate_launch(r, &l, 1) - 1 / r->v[RATE_LAUNCHES];
}

static void test_products(Harness *h, const Rates *r)
{
    static const Half half[] = {HALF_NONE, HALF_BF16, HALF_FP16};
    for (size_t i = 0; i < COUNT_OF(half); i++)
        for (int t = 0; t < 3; t++) {
            PlanMatmul m = {.m = 2,
                            .n = 3,
                            .k = 5,
                            .batch = 7,
                            .half = half[i],
                            .transpose_a = t == PRODUCT_LEFT,
                            .transpose_b = t == PRODUCT_RIGHT};
            Launch l = {.kind = LAUNCH_MATMUL, .matmul = m, .flops = 1e4};
            int base = half[i] == HALF_BF16 ? RATE_BF16 : RATE_MATMUL;
            double numbers = 7 * (2 * 5 + 5 * 3 + 2 * 3);
            CHECK(h, near(work_of(r, l), 1e4 / r->v[base + t] + numbers / r->v[base + 3 + t]));
        }
    Rates without = *r; /* of bf16 products: they are done in float32 */
    memset(without.v + RATE_BF16, 0, 6 * sizeof *without.v);
    Launch l = {.kind = LAUNCH_MATMUL, .matmul = {.half = HALF_BF16}, .flops = 1e4};
    CHECK(h, near(work_of(&without, l), 1e4 / r->v[RATE_MATMUL]));
    Launch e = {.kind = LAUNCH_EXPERT, .flops = 1e4, .expert = {.what = EXPERT_DW}};
    CHECK(h, near(work_of(r, e), 1e4 / r->v[RATE_EXPERT + PRODUCT_LEFT]));
}

static void test_kernels(Harness *h, const Rates *r)
{
    const struct {
        PlanWork work;
        RateKind rate;
    } kind[] = {{{.lane = 1e4}, RATE_LANE},
                {{.single = 1e4}, RATE_SINGLE},
                {{.call = 1e4}, RATE_CALL},
                {{.random = 1e4}, RATE_RANDOM},
                {{.product = 1e4}, RATE_PRODUCT}};
    PlanWork all = {0};
    double sum = 0;
    for (size_t i = 0; i < COUNT_OF(kind); i++) {
        double seconds = work_of(r, (Launch){.work = kind[i].work});
        CHECK(h, near(seconds, 1e4 / r->v[kind[i].rate]));
        sum += seconds;
    }
    all = (PlanWork){.lane = 1e4, .single = 1e4, .call = 1e4, .random = 1e4, .product = 1e4};
    CHECK(h, near(work_of(r, (Launch){.work = all}), sum));
    for (int back = 0; back < 2; back++) {
        PlanWork w = {.attention = 1e4, .scores = 1e3, .backward = back};
        CHECK(h, near(work_of(r, (Launch){.work = w}),
                      1e4 / r->v[RATE_ATTENTION + back] + 1e3 / r->v[RATE_SCORES + back]));
    }
    /* chunks of rows that are fewer than the threads leave some without work */
    Launch few = {.work = {.lane = 1e4}, .rows = 6, .grain = 4};
    CHECK(h, near(work_of(r, few), 1e4 / r->v[RATE_LANE] * THREADS / 2));
    few.grain = 1;
    CHECK(h, near(work_of(r, few), 1e4 / r->v[RATE_LANE]));
}

/* What moves is as fast as the place that all of the plan fits into, and counts when it takes longer. */
static void test_moving(Harness *h, const Rates *r)
{
    double empty = 1 / r->v[RATE_LAUNCHES];
    Launch l = {.bytes = 1e6, .rows = 1000};
    CHECK(h, near(estimate_launch(r, &l, 10) - empty, 1));
    CHECK(h, near(estimate_launch(r, &l, 1e9) - empty, RATE_MOVES));
    double between = estimate_launch(r, &l, 3e3) - empty;
    CHECK(h, between > 1 && between < 2);
    l.work.lane = 0.5 * r->v[RATE_LANE];
    CHECK(h, near(estimate_launch(r, &l, 10) - empty, 1));
    l.work.lane = 2 * r->v[RATE_LANE];
    CHECK(h, near(estimate_launch(r, &l, 10) - empty, 2));
}

static void test_plan(Harness *h, const Rates *r)
{
    Launch launch[] = {{.kind = LAUNCH_MATMUL, .flops = 1e4, .bytes = 10},
                       {.kind = LAUNCH_EXPERT, .flops = 1e4},
                       {.kind = LAUNCH_KERNEL, .work = {.lane = 1e4}, .rows = 1000},
                       {.kind = LAUNCH_KERNEL, .work = {.scores = 1e4}, .rows = 1000},
                       {.kind = LAUNCH_KERNEL, .bytes = 1e5, .rows = 1000}};
    Plan plan = {.launch = launch, .n_launch = COUNT_OF(launch), .arena_bytes = 5000};
    double seconds = 0;
    for (size_t i = 0; i < plan.n_launch; i++)
        seconds += estimate_launch(r, &launch[i], estimate_plan_bytes(&plan));
    Estimate once = {0}, often = {0};
    estimate_add(&once, r, &plan, 1);
    estimate_add(&often, r, &plan, 3);
    estimate_add(&often, r, &plan, 2);
    CHECK(h, near(estimate_seconds(&once), seconds));
    CHECK(h, near(estimate_seconds(&often), 5 * seconds) && often.launches == 5 * once.launches);
    CHECK(h, near(once.products, estimate_launch(r, &launch[0], 5000)));
    CHECK(h, near(once.experts, estimate_launch(r, &launch[1], 5000)));
    CHECK(h, near(once.attention, estimate_launch(r, &launch[3], 5000)));
}

int main(void)
{
    Harness h = {0};
    Rates r = prime_rates();
    test_products(&h, &r);
    test_kernels(&h, &r);
    test_moving(&h, &r);
    test_plan(&h, &r);
    return harness_end(&h);
}
