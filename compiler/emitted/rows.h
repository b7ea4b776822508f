/* rows.h - calls of kernels on the CPU.
 *
 * In:  nothing.     Out: the type of a kernel of kernels.c, and the functions that plan.c calls.
 */
#ifndef ROWS_H
#define ROWS_H

#include "compute.h"
#include "threads.h"

struct Device {
    Pool *pool;
};

/* One function of kernels.c: rows lo <= row < hi; p: buffers, n: sizes and keys, s: numbers. */
typedef void Kernel(void *const *p, const int64_t *n, const double *s, int64_t lo, int64_t hi);

/* The kernel on rows 0 .. rows - 1, `grain` of them at a time, by all threads. */
void rows(Run *run, Kernel *kernel, int64_t rows, int64_t grain, void *const *p, const int64_t *n, const double *s);

/* Rows of x are multiplied by the matrix of their expert. A pair is a token and one of its
 * choices, index[pair] its expert; an index that is no expert gives zeros.
 *     weights = false: y[pair] = x[pair] W[index[pair]]         (W transposed if asked for)
 *     weights = true:  y[e] = sum over the pairs of expert e of x[pair]^T w[pair] */
typedef struct ExpertProduct {
    bool weights, transpose_w;
    bool x_per_pair; /* x has a row for each pair, else for each token */
    int64_t tokens, choices, experts, in, out;
} ExpertProduct;
void expert_product(Run *run, const ExpertProduct *how, const void *x, const void *w, const void *index, void *y);

#endif
