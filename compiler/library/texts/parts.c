#ifndef TEXT_NAME
#include "alone.c"
#endif
#if TEXT_MAX
/* second stage of a maximum over rows: out[r] = max over parts of x[part][r] */
#else
/* second stage of a sum over rows: out[r] = sum over parts of x[part][r] */
#endif
KERNEL TEXT_NAME(void *const *p, const int64_t *n, const double *s, int64_t lo, int64_t hi)
{
    const real *const restrict x = p[0];
    real *const restrict out = p[1];
    const int64_t parts = n[0], size = n[1];
    (void)s;
    for (int64_t r = lo; r < hi; r++)
        out[r] = x[r];
    for (int64_t part = 1; part < parts; part++) {
        #pragma omp simd
        for (int64_t r = lo; r < hi; r++)
#if TEXT_MAX
            out[r] = x[part * size + r] > out[r] ? x[part * size + r] : out[r];
#else
            out[r] += x[part * size + r];
#endif
    }
}
