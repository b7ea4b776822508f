/* decompose.h - small matrix products become products and sums, concatenations of many become concatenations of
 * concatenations; and how later passes recognise such nodes.
 *
 * In:  a simplified graph.     Out: an equal one, in which every product is either a kernel's or the library's.
 */
#ifndef VWN_DECOMPOSE_H
#define VWN_DECOMPOSE_H

#include "compiler/graph/index.h"
#include "compiler/graph/target.h"

enum { PARTS_MAX = 32 }; /* inputs of a concatenation that one kernel computes */
typedef struct Decomposed {
    const bool *to_library; /* given, by value: products of a row that stay the library's; or NULL */
    bool *copied;           /* by value of the new graph: must be transposed, or put together, once and kept */
    Val *made;              /* by value: what it has become */
    size_t values;          /* of the graph before */
} Decomposed;

bool product_is_library(const Graph *g, Val v, const PlanOptions *how); /* a MATMUL that stays */
/* Would it be of a row, and a kernel's, if its right factor had so many columns? */
bool product_is_kernels(const Graph *g, Val v, Dim columns, const PlanOptions *how);
/* In the new graph: a MATMUL of one small matrix by another for each row, or a sum of such over
 * rows, that kernels compute. */
static inline bool product_is_of_row(const Graph *g, Val v)
{
    MadeHow made = node_at(g, v)->a.made;
    return made == PRODUCT_OF_ROW || made == PRODUCT_OF_PARTS;
}
/* v, or what it is the sum of both halves of; 0: v is no product of a row. */
Val product_of_row_under(const Graph *g, Val v);
/* The left factor of such a product; of one by parts the one that is there twice, behind three views. */
Val product_left(const Graph *g, Val v);
static inline Dim product_depth(const Graph *g, Val v) /* K */
{
    const Shape *a = shape_of(g, node_at(g, v)->in[0]);
    return a->d[a->rank - (node_at(g, v)->a.i & 1 ? 2 : 1)];
}
Graph *decompose(Ctx *ctx, Arena *arena, const Graph *g, const PlanOptions *how, Decomposed *d);

/* concat_buffers.c: rows of slices of different age, put together by copies. */
typedef struct ConcatLayout ConcatLayout;
ConcatLayout *concat_layout_new(Arena *arena, const Graph *g, const PlanOptions *how);
/* Is v wanted at all, when rows are made so? */
bool concat_wants(const ConcatLayout *a, Val v);
/* v in the new graph, when it is such; else 0. */
Val assembled(const ConcatLayout *a, Graph *g, Val v, Val *map);
/* Is v a row with zeros around it that is read behind the next product too? Then it lies in memory so. */
bool padded_for_later(const ConcatLayout *a, Val v);
/* By whom a CONCAT of the new graph is made. */
static inline bool concat_of_copies(const Graph *g, Val v) { return node_at(g, v)->a.made == CONCAT_OF_COPIES; }
static inline bool concat_of_parts(const Graph *g, Val v) { return node_at(g, v)->a.made == CONCAT_OF_PARTS; }
static inline bool concat_in_place(const Graph *g, Val v) { return node_at(g, v)->a.made == CONCAT_IN_PLACE; }
static inline bool concat_stored(const Graph *g, Val v)
{
    return concat_of_copies(g, v) || concat_in_place(g, v) || node_at(g, v)->a.made == CONCAT_OF_KERNEL;
}
/* Does v round its input to that type? */
bool node_is_rounded(const Graph *g, Val v, Half to);
/* Is v computed by a library, whole, and not by a kernel over rows? */
bool node_is_library(const Graph *g, Val v);

#endif
