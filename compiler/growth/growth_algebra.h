/* growth_algebra.h - private to the proof of growth steps: a graph without what cancels in it. */
#ifndef VWN_GROWTH_ALGEBRA_H
#define VWN_GROWTH_ALGEBRA_H

#include "compiler/graph/ir.h"

/* The same outputs, as real numbers, for every value of what the graph reads: what is the same by algebra is one value, what
 * depends on nothing is a number. Slopes are those of the function that is left, so what it does not depend on has none.
 * `single`: a sequence has one position. */
Graph *growth_algebra(const Graph *g, bool single, Arena *arena);

#endif
