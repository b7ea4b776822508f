/* join.h - products of a row that have one left factor become one product.
 *
 * In:  a simplified graph.     Out: an equal one; the same where nothing is joined, as where no tensor cores are.
 */
#ifndef VWN_JOIN_H
#define VWN_JOIN_H

#include "compiler/graph/target.h"

/* Is v x [W1 | W2], of a row by a kernel? */
bool product_is_joined(const Graph *g, Val v, const PlanOptions *how);
const Graph *graph_join(const Graph *g, Arena *arena, const PlanOptions *how);

#endif
