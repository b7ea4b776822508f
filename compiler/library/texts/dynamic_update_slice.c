#ifndef TEXT_NAME
#include "alone.c"
#endif
/* table[b][start[b] + i] = x[b][i] for every b that is on, rows of words of 4 bytes */
KERNEL TEXT_NAME(void *const *p, const int64_t *n, const double *s, int64_t lo, int64_t hi)
{
    const int32_t *const restrict x = p[0];
    const integer *const restrict start = p[1], *const restrict on = p[2];
    int32_t *const restrict table = p[3];
    const int64_t count = n[0], rows = n[1], words = n[2];
    (void)s;
    for (int64_t r = lo; r < hi; r++) {
        const int64_t b = r / count, i = start[b] + r % count;
        if (!on[b] || i < 0 || i >= rows)
            continue;
        for (int64_t j = 0; j < words; j++)
            table[(b * rows + i) * words + j] = x[r * words + j];
    }
}
