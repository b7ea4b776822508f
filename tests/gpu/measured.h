/* measured.h - the calls that measure.c puts in place of those of blocks.h and compute.h. */
#ifndef VWN_TEST_MEASURED_H
#define VWN_TEST_MEASURED_H

#include "compute.h"

void measured_blocks(struct Run *run, int which, int64_t rows, int64_t number, uint64_t shared,
                     void *const *p, const int64_t *n, const double *s);
void measured_product(Run *run, const Product *how, const void *a, const void *b, void *c);
void measured_copy_parts(Run *run, int64_t rows, int64_t bytes, int64_t from, int64_t to, const void *x, void *out);

#endif
