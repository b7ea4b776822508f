/* interval.c - means over a few seeds: quantiles and intervals against numbers of scipy, and which differences are told from chance.
 *
 * In:  nothing.   Out: `N passed, N failed`.
 * The numbers are what scipy 1.17.1 gives: stats.t.ppf(0.975, df), stats.ttest_ind(b, a, equal_var = False).confidence_interval(0.95),
 * std(ddof = 1) / sqrt(n) * t.ppf.
 */
#include "runtime/base/interval.h"

#include <math.h>
#include <stdio.h>

#include "tests/support/harness.h"

static bool near(double x, double y) { return fabs(x - y) <= 1e-8 * fabs(y); }

static void quantiles(Harness *h)
{
    static const double of[][2] = {{1, 12.7062047364},   {2, 4.30265272975},    {3, 3.18244630528},
                                   {4, 2.7764451052},    {5, 2.57058183564},    {7.5, 2.33303962686},
                                   {2.3, 3.80716320823}, {9, 2.2621571628},     {29, 2.04522964213},
                                   {100, 1.98397151852}, {1000, 1.96233908083}, {1e6, 1.95996635681}};
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++) {
        char text[100];
        snprintf(text, sizeof text, "t of %g: %.12g, not %.12g", of[i][0], student_95(of[i][0]), of[i][1]);
        CHECK_CASE(h, near(student_95(of[i][0]), of[i][1]), text);
    }
}

static void means(Harness *h)
{
    const double a[] = {1.21, 1.25, 1.19, 1.24, 1.22}, b[] = {1.30, 1.22, 1.27, NAN};
    const SeedMean x = interval_of(a, 5), y = interval_of(b, 4);
    CHECK(h, x.n == 5 && near(x.mean, 1.222) && near(x.half, 0.0296443216507) && x.low == 1.19 && x.high == 1.25);
    CHECK(h, y.n == 3 && near(y.mean, 1.26333333333) && near(y.half, 0.100395230361));
    const SeedGap gap = interval_gap(&x, &y), back = interval_gap(&y, &x);
    CHECK(h, near(gap.by, 0.0413333333333) && near(gap.half, 0.083926944793) && !gap.differ);
    CHECK(h, near(back.by, -gap.by) && near(back.half, gap.half));
}

/* Of one number nothing is told, and of equal ones everything. */
static void edges(Harness *h)
{
    const double same[] = {2, 2, 2}, other[] = {2, 2}, less[] = {1.5, 1.5}, one[] = {3}, bad[] = {NAN, INFINITY};
    const SeedMean x = interval_of(same, 3), y = interval_of(other, 2), z = interval_of(less, 2),
                   u = interval_of(one, 1), v = interval_of(bad, 2);
    CHECK(h, x.half == 0 && interval_gap(&x, &y).half == 0 && !interval_gap(&x, &y).differ);
    CHECK(h, interval_gap(&x, &z).differ && interval_gap(&x, &z).by == -0.5);
    CHECK(h,
          u.n == 1 && u.mean == 3 && isnan(u.half) && isnan(interval_gap(&x, &u).half) && !interval_gap(&x, &u).differ);
    CHECK(h, v.n == 0 && isnan(v.mean) && isnan(v.low) && !interval_gap(&v, &x).differ);
}

/* Means of normal numbers: 95 % of the intervals have the true mean in them, and of two samples of one mean 5 % are told apart. */
static void coverage(Harness *h)
{
    enum { TRIES = 2000, MOST = 5 };
    uint64_t state = 7;
    for (int n = 2; n <= MOST; n += 3) {
        int inside = 0, told = 0;
        for (int i = 0; i < TRIES; i++) {
            double v[2][MOST];
            for (int k = 0; k < 2 * n; k++) { /* twelve of a box are nearly normal */
                double sum = 0;
                for (int j = 0; j < 12; j++)
                    sum += harness_random(&state);
                v[k / n][k % n] = (k / n ? 3 : 1) * sum;
            }
            const SeedMean x = interval_of(v[0], (size_t)n), y = interval_of(v[1], (size_t)n);
            inside += fabs(x.mean) <= x.half;
            told += interval_gap(&x, &y).differ;
        }
        CHECK(h, inside > 0.93 * TRIES && inside < 0.97 * TRIES);
        CHECK(h, told < 0.07 * TRIES && told > 0.01 * TRIES);
    }
}

int main(void)
{
    Harness h = {0};
    quantiles(&h);
    means(&h);
    edges(&h);
    coverage(&h);
    return harness_end(&h);
}
