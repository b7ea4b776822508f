/* join.h - products of a row that have one left factor become one product.
 *
 * In:  a simplified graph.     Out: an equal one; the same where nothing is joined.
 */
#ifndef VWN_JOIN_H
#define VWN_JOIN_H

#include "compiler/graph/target.h"

Graph *graph_join(Graph *g, Arena *arena, const PlanOptions *how);

#endif
