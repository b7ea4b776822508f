/* growth_build.h - private to the files that make the plan of a growth step. */
#ifndef VWN_GROWTH_BUILD_H
#define VWN_GROWTH_BUILD_H

#include "growth.h"

/* ---- growth_parts.c: the parts of an axis ---- */
/* How new coordinates copy old ones. */
typedef struct Copying {
    bool copies;  /* else they are new */
    bool beside;  /* each copy stands beside what it copies; else they follow all that is old, in turn */
    double share; /* of a coordinate's copies together; EQUAL_SHARES: a coordinate and its copies get the same */
} Copying;
/* Of a read axis, weights are shared out among the copies of a coordinate when `shares`; of a written one gradients are. */
GrowthAxis growth_axis(const AxisShape *was, const AxisShape *is, int64_t had, int64_t now, const Copying *how,
                       bool shares, Arena *arena);

/* ---- growth_norms.c: which weights make up for means over more coordinates ---- */
/* By parameter and axis of `m`: over how many coordinates the mean of squares is taken that divides what this axis is
 * multiplied by, in `extent[param][axis]`; 0: over none, -1: over several of different extents. */
int64_t **growth_means(const Model *m, Arena *arena);

#endif
