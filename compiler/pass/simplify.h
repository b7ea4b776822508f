/* simplify.h - a graph that does the same with less.
 *
 * In:  a graph.   Out: another one with the same outputs.
 */
#ifndef VWN_SIMPLIFY_H
#define VWN_SIMPLIFY_H

#include "compiler/graph/ir.h"

/* CSE, constant folding, algebraic identities, permute into matmul flags, dead code. Outputs,
 * ext and host tables keep their order. STOP nodes go when the graph was differentiated. Lives
 * in `arena`. */
Graph *graph_simplify(const Graph *g, Arena *arena);

#endif
