#ifndef TEXT_NAME
#include "alone.c"
#endif
#if TEXT_MAX
/* second stage of a maximum over rows, parts laid out in another order: up to 6 axes */
#else
/* second stage of a sum over rows, parts laid out in another order: up to 6 axes */
#endif
KERNEL TEXT_NAME(void *const *p, const int64_t *n, const double *s, int64_t lo, int64_t hi)
{
    const real *const restrict x = p[0];
    real *const restrict out = p[1];
    const int64_t parts = n[0], size = n[1];
    (void)s;
    int64_t of[6], rest = lo, at = 0;
    for (int64_t axis = 5; axis >= 0; axis--) {
        of[axis] = rest % n[2 + axis];
        rest /= n[2 + axis];
        at += of[axis] * n[8 + axis];
    }
    for (int64_t r = lo; r < hi; r++) {
#if TEXT_MAX
        real most = -INFINITE;
        for (int64_t part = 0; part < parts; part++)
            most = x[part * size + at] > most ? x[part * size + at] : most;
        out[r] = most;
#else
        real total = 0;
        for (int64_t part = 0; part < parts; part++)
            total += x[part * size + at];
        out[r] = total;
#endif
        for (int64_t axis = 5; axis >= 0; axis--) {
            at += n[8 + axis];
            if (++of[axis] < n[2 + axis])
                break;
            of[axis] = 0;
            at -= n[2 + axis] * n[8 + axis];
        }
    }
}
