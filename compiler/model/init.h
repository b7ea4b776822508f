/* init.h - initial values by ranges, for tensors too large to draw at once. */
#ifndef VWN_INIT_H
#define VWN_INIT_H

#include "model.h"

/* Elements from <= i < from + count of what param_init() draws. */
void param_init_range(const Param *p, uint64_t seed, int64_t from, int64_t count, double *out);
/* The same numbers, rounded. */
void param_init_floats(const Param *p, uint64_t seed, int64_t from, int64_t count, float *out);

#endif
