/* init.c - initial values of parameters.
 *
 * In:  a Param and a seed.   Out: float64 numbers.
 * The one idea: element i is a function of (seed, path, i) alone, so any range can be drawn by
 * itself, on any backend, and a model that gains a tensor keeps the values of the others.
 */
#include <math.h>

#include "init.h"

/* A standard normal cut at +-cutoff, by rejection: attempt a is step a of the counter, and `x` the
 * first. */
static double cut_normal(double x, uint64_t key, uint64_t i, double cutoff)
{
    for (uint64_t attempt = 1; fabs(x) > cutoff && attempt < 1000; attempt++)
        x = philox_normal(key, attempt, i);
    return fmax(-cutoff, fmin(cutoff, x)); /* a cutoff so small that drawing is hopeless */
}

/* Extents of the last two axes; a vector is one row. */
static void matrix_of(const Param *p, int64_t *rows, int64_t *cols)
{
    int r = p->shape.rank;
    *cols = r > 0 ? p->shape.d[r - 1].n : 1;
    *rows = r > 1 ? p->shape.d[r - 2].n : 1;
}

void param_init_range(const Param *p, uint64_t seed, int64_t from, int64_t count, double *out)
{
    const Init *init = &p->init;
    uint64_t key = philox_key(seed, p->path);
    int64_t rows, cols;
    matrix_of(p, &rows, &cols);
    if (init->kind == INIT_NORMAL || init->kind == INIT_TRUNC_NORMAL)
        philox_normals(key, 0, (uint64_t)from, (size_t)count, out);
    for (int64_t k = 0; k < count; k++) {
        uint64_t i = (uint64_t)(from + k);
        switch (init->kind) {
        case INIT_FILL: out[k] = init->a; break;
        case INIT_EYE: out[k] = (int64_t)i % cols == (int64_t)i / cols % rows ? 1.0 : 0.0; break;
        case INIT_NORMAL: out[k] *= init->a; break;
        case INIT_TRUNC_NORMAL: out[k] = init->a * cut_normal(out[k], key, i, init->b); break;
        case INIT_UNIFORM: out[k] = init->a + (init->b - init->a) * philox_uniform(key, 0, i); break;
        case INIT_LIST: out[k] = i < init->n ? init->list[i] : 0.0; break;
        }
    }
}

void param_init_floats(const Param *p, uint64_t seed, int64_t from, int64_t count, float *out)
{
    if (p->init.kind == INIT_NORMAL) {
        philox_normals_float(philox_key(seed, p->path), 0, (uint64_t)from, (size_t)count, p->init.a, out);
        return;
    }
    double some[512];
    for (int64_t at = 0, n; at < count; at += n) {
        n = count - at < (int64_t)COUNT_OF(some) ? count - at : (int64_t)COUNT_OF(some);
        param_init_range(p, seed, from + at, n, some);
        for (int64_t k = 0; k < n; k++)
            out[at + k] = (float)some[k];
    }
}

void param_init(const Param *p, uint64_t seed, double *out) { param_init_range(p, seed, 0, p->elements, out); }
