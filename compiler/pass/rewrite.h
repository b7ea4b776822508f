/* rewrite.h - a graph made of another one, node by node.
 *
 * In:  a graph, and what becomes of each node.     Out: a new graph, and where each value of the old one is in it.
 * The one idea: nodes stand in an order in which they can be computed, so one walk from the first to the last finds the
 * inputs of each already rewritten. Spans and names of nodes, results and stores go with them.
 */
#ifndef VWN_REWRITE_H
#define VWN_REWRITE_H

#include "compiler/graph/ir.h"

typedef struct Rewrite {
    const Graph *from;
    Graph *to;
    Val *map; /* by Val of `from`: what stands for it; 0: nothing yet, or nothing at all */
} Rewrite;

/* Makes what stands for node v; `to` has its span and name for what is made. */
typedef Val RewriteRule(Rewrite *r, Val v, void *user);

/* A new graph with the tables of external tensors and host scalars of `from`, and room for so many nodes. What is
 * made lives in `arena`, the map in `memory`. */
Rewrite rewrite_begin(const Graph *from, Arena *arena, Arena *memory, size_t room);
/* All nodes, or those that are wanted; then the results and stores, and the graph's own span and name. */
Graph *graph_rewrite(Rewrite *r, const bool *wanted, RewriteRule *rule, void *user);
/* The nodes alone. */
void rewrite_nodes(Rewrite *r, const bool *wanted, RewriteRule *rule, void *user);

/* The rule that changes nothing, of a graph with the tables of `from`; with other inputs than the mapped ones, where
 * `in` is not NULL. */
Val rewrite_same(Rewrite *r, Val v, const Val *in);
Val *rewrite_inputs(const Rewrite *r, Arena *memory, Val v); /* the mapped ones */

/* Which nodes the results and stores need. */
bool *graph_live(const Graph *g, Arena *memory);

#endif
