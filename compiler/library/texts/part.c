#ifndef TEXT_NAME
#include "alone.c"
#endif
/* rows of n0 bytes, n1 apart, as a part of rows n2 apart; words of 4 bytes */
KERNEL TEXT_NAME(void *const *p, const int64_t *n, const double *s, int64_t lo, int64_t hi)
{
    const uint32_t *const restrict x = p[0];
    uint32_t *const restrict out = p[1];
    const int64_t words = n[0] / 4, from = n[1] / 4, to = n[2] / 4;
    (void)s;
    for (int64_t r = lo; r < hi; r++)
        for (int64_t i = 0; i < words; i++)
            out[r * to + i] = x[r * from + i];
}
