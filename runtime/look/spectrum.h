/* spectrum.h - eigenvalues of a symmetric matrix, and how evenly they are spread. */
#ifndef VWN_SPECTRUM_H
#define VWN_SPECTRUM_H

#include <stddef.h>

/* a [n, n] is symmetric and is overwritten; value[n] in falling order; room[n]. Householder, then QL with implicit shifts:
 * about 4/3 n^3 multiply-adds. False when it does not converge, as with numbers that are not finite. */
int symmetric_eigenvalues(double *a, size_t n, double *value, double *room);
/* - sum p log p / log r of p = value / sum, over the r first ones above `least`, r the number of these; 0 for r = 1, NaN for 0.
 * `value` in falling order. */
double normalized_entropy(const double *value, size_t n, double least, size_t *r);
/* (sum e)^2 / sum e^2: how many of n numbers there are that count; NaN where all are 0. */
double participation_ratio(const double *e, size_t n);

#endif
