#ifndef TEXT_NAME
#include "alone.c"
#endif
/* a table of numbers, 64 at a time: out[r] = s[r] */
KERNEL TEXT_NAME(void *const *p, const int64_t *n, const double *s, int64_t lo, int64_t hi)
{
    real *const restrict out = p[0];
    (void)n;
    for (int64_t r = lo; r < hi; r++)
        out[r] = (real)s[r];
}
