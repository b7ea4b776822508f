#ifndef TEXT_NAME
#include "alone.c"
#endif
/* indices of the k largest of each row of n0, ties to the lowest index, NaN last */
KERNEL TEXT_NAME(void *const *p, const int64_t *n, const double *s, int64_t lo, int64_t hi)
{
    const real *const restrict x = p[0];
    integer *const restrict out = p[1];
    const int64_t count = n[0], k = n[1];
    (void)s;
    for (int64_t r = lo; r < hi; r++) {
        const real *const row = x + r * count;
        int64_t last = -1;
        for (int64_t c = 0; c < k; c++) {
            int64_t best = -1;
            for (int64_t i = 0; i < count; i++) {
                if (last >= 0) {
                    const real a = row[last], b = row[i];
                    const int equal = a == b || (a != a && b != b);
                    if (!(a > b || (a == a && b != b) || (equal && last < i)))
                        continue;
                }
                const real b = row[i], most = best < 0 ? b : row[best];
                if (best < 0 || b > most || (most != most && b == b))
                    best = i;
            }
            out[r * k + c] = best;
            last = best;
        }
    }
}
