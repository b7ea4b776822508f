#ifndef TEXT_NAME
#include "alone.c"
#endif
/* running sum along the middle axis of x[outer][count][inner], from the end when n2 = 1 */
KERNEL TEXT_NAME(void *const *p, const int64_t *n, const double *s, int64_t lo, int64_t hi)
{
    const real *const restrict x = p[0];
    real *const restrict out = p[1];
    const int64_t count = n[0], inner = n[1], back = n[2];
    (void)s;
    for (int64_t r = lo; r < hi; r++) {
        const int64_t base = r * count * inner;
        for (int64_t k = 0; k < count; k++) {
            const int64_t at = base + (back ? count - 1 - k : k) * inner;
            const int64_t before = back ? at + inner : at - inner;
            #pragma omp simd
            for (int64_t j = 0; j < inner; j++)
                out[at + j] = k ? out[before + j] + x[at + j] : x[at + j];
        }
    }
}
