#ifndef TEXT_NAME
#include "alone.c"
#endif
/* out[index[i]][..] += dy[i][..] in the order of i; a table row belongs to one range */
KERNEL TEXT_NAME(void *const *p, const int64_t *n, const double *s, int64_t lo, int64_t hi)
{
    const real *const restrict dy = p[0];
    const integer *const restrict index = p[1];
    real *const restrict out = p[2];
    const int64_t count = n[0], width = n[1];
    (void)s;
    for (int64_t j = lo * width; j < hi * width; j++)
        out[j] = 0;
    for (int64_t i = 0; i < count; i++) {
        const int64_t r = index[i];
        if (r < lo || r >= hi)
            continue;
        #pragma omp simd
        for (int64_t j = 0; j < width; j++)
            out[r * width + j] += dy[i * width + j];
    }
}
