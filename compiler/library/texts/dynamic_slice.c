#ifndef TEXT_NAME
#include "alone.c"
#endif
/* out[b][i] = table[b][start[b] + i], the fill outside; rows of words of 4 bytes */
KERNEL TEXT_NAME(void *const *p, const int64_t *n, const double *s, int64_t lo, int64_t hi)
{
    const int32_t *const restrict table = p[0];
    const integer *const restrict start = p[1];
    int32_t *const restrict out = p[2];
    const int64_t count = n[0], rows = n[1], words = n[2], odd = n[5];
    (void)s;
    for (int64_t r = lo; r < hi; r++) {
        const int64_t b = r / count, i = start[b] + r % count;
        for (int64_t j = 0; j < words; j++)
            out[r * words + j] = i >= 0 && i < rows ? table[(b * rows + i) * words + j]
                                                    : (int32_t)n[j & odd ? 4 : 3];
    }
}
