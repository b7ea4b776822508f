/* ulp.h - functions that kernels have, in double of the C library, and how far a float is from them.
 *
 * In:  a float, and what it should be.   Out: the distance in units in the last place.
 * The one idea: the C library's double is the oracle for both preludes.
 */
#ifndef VWN_TEST_ULP_H
#define VWN_TEST_ULP_H

#include <math.h>

static const double ulp_pi = 3.14159265358979323846;

static inline double ulp_sigmoid(double x) { return 1 / (1 + exp(-x)); }
static inline double ulp_silu(double x) { return x / (1 + exp(-x)); }
static inline double ulp_gelu(double x) { return 0.5 * x * erfc(-x * sqrt(0.5)); }
static inline double ulp_gelu_slope(double x)
{
    return 0.5 * erfc(-x * sqrt(0.5)) + x * exp(-0.5 * x * x) / sqrt(2 * ulp_pi);
}
static inline double ulp_gelu_tanh(double x)
{
    return x / (1 + exp(-2 * sqrt(2 / ulp_pi) * (x + 0.044715 * x * x * x)));
}

static inline double ulp_of(double x)
{
    int e;
    if (fabs(x) < 0x1p-126)
        return 0x1p-149;
    frexp(x, &e);
    return ldexp(1, e - 24);
}

static inline double ulp_between(float is, double want)
{
    return (float)want == is ? 0 : fabs((double)is - want) / ulp_of(want);
}

#endif
