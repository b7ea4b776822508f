/* growth_algebra.h - private to the proof of growth steps: a graph without what cancels in it. */
#ifndef VWN_GROWTH_ALGEBRA_H
#define VWN_GROWTH_ALGEBRA_H

#include "compiler/graph/ir.h"

/* Numbers between which a value lies, whatever the weights are. */
typedef struct ValueRange {
    double lo, hi;
} ValueRange;

/* The same outputs, as real numbers, for every value of what the graph reads: what is the same by algebra is one value, what
 * depends on nothing is a number. Slopes are those of the function that is left, so what it does not depend on has none.
 * `positions`: of every sequence, 0: not known; `drops`: masks of dropout are as they are drawn, else ones. *map, unless NULL: what each value has become;
 * *range, unless NULL: of each value of the result. */
Graph *growth_algebra(const Graph *g, int64_t positions, bool drops, Arena *arena, const Val **map,
                      const ValueRange **range);

#endif
