/* interval.h - how much a mean of a few runs tells.
 *
 * In:  a number of each of several runs that differ in their seeds.   Out: the mean, and how far from it the mean of very many
 * such runs may lie.
 * The one idea: numbers of seeds are taken as normal, so a mean of n of them has a 95 % confidence interval by Student's t with
 * n - 1 degrees of freedom, and a difference of two means one by Welch's t, whose spreads need not be alike. One run has none.
 */
#ifndef VWN_INTERVAL_H
#define VWN_INTERVAL_H

#include <stdbool.h>
#include <stddef.h>

typedef struct SeedMean {
    size_t n;
    double mean, low, high; /* NaN: of nothing; least and greatest number */
    double variance;        /* of the numbers, by n - 1; NaN: one alone */
    double half;            /* the interval is mean - half to mean + half; NaN: one alone */
} SeedMean;
/* Numbers that are not finite are left out. */
SeedMean interval_of(const double *v, size_t n);

/* Of b beside a. */
typedef struct SeedGap {
    double by;   /* b's mean less a's */
    double half; /* of its interval; NaN: one of them has no spread */
    bool differ; /* the interval leaves 0 out */
} SeedGap;
SeedGap interval_gap(const SeedMean *a, const SeedMean *b);

/* t with P(|T| < t) = 0.95 for that many degrees of freedom, at least 1. */
double student_95(double freedom);

#endif
