/* interval.c - see interval.h. */
#include "interval.h"

#include <math.h>

SeedMean interval_of(const double *v, size_t n)
{
    SeedMean out = {.mean = 0, .low = INFINITY, .high = -INFINITY, .variance = NAN, .half = NAN};
    double squares = 0;
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(v[i]))
            continue;
        double was = out.mean;
        out.n++;
        out.mean += (v[i] - was) / (double)out.n;
        squares += (v[i] - was) * (v[i] - out.mean);
        out.low = fmin(out.low, v[i]);
        out.high = fmax(out.high, v[i]);
    }
    if (!out.n)
        out.mean = out.low = out.high = NAN;
    if (out.n > 1) {
        out.variance = squares / (double)(out.n - 1);
        out.half = student_95((double)out.n - 1) * sqrt(out.variance / (double)out.n);
    }
    return out;
}

SeedGap interval_gap(const SeedMean *a, const SeedMean *b)
{
    SeedGap gap = {.by = b->mean - a->mean, .half = NAN};
    if (a->n < 2 || b->n < 2)
        return gap;
    double x = a->variance / (double)a->n, y = b->variance / (double)b->n, all = x + y;
    /* Welch and Satterthwaite; without any spread nothing is left to chance */
    double freedom = all > 0 ? all * all / (x * x / (double)(a->n - 1) + y * y / (double)(b->n - 1)) : 1;
    gap.half = student_95(freedom) * sqrt(all);
    gap.differ = fabs(gap.by) > gap.half;
    return gap;
}

/* ---- Student's t ---- */

/* The continued fraction of the incomplete beta function, from the front on (Lentz); for x < (a + 1) / (a + b + 2). */
static double beta_fraction(double a, double b, double x)
{
    enum { TERMS = 500 };
    const double tiny = 1e-300;
    double c = 1, d = 1 - (a + b) * x / (a + 1), f;
    d = 1 / (fabs(d) < tiny ? tiny : d);
    f = d;
    for (int m = 1; m < TERMS; m++) {
        double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        for (int k = 0; k < 2; k++) {
            double term = k ? odd : even;
            d = 1 + term * d;
            c = 1 + term / c;
            d = 1 / (fabs(d) < tiny ? tiny : d);
            c = fabs(c) < tiny ? tiny : c;
            f *= c * d;
        }
        if (fabs(c * d - 1) < 1e-15)
            break;
    }
    return f;
}

static double beta_share(double a, double b, double x)
{
    double front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
    return x < (a + 1) / (a + b + 2) ? front * beta_fraction(a, b, x) / a : 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double student_95(double freedom)
{
    double low = 1.9, high = 12.8; /* of infinitely many, 1.96, and of one, 12.71 */
    for (int i = 0; i < 60; i++) {
        double t = (low + high) / 2, outside = beta_share(freedom / 2, 0.5, freedom / (freedom + t * t));
        *(outside > 0.05 ? &low : &high) = t;
    }
    return (low + high) / 2;
}
