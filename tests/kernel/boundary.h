/* boundary.h - which launches of a plan stand between two sublayers.
 *
 * In:  a plan; the weights of the products that end a sublayer and begin the next.
 * Out: the launches between them, forward and backward.
 * The one idea: a launch stands at a boundary when it depends on the product before it and on
 * none behind it. So a kernel that only the state needs counts as much as one that the next
 * sublayer waits for, and a product of the connection's own is seen.
 */
#ifndef VWN_BOUNDARY_H
#define VWN_BOUNDARY_H

#include "compiler/plan/plan.h"

typedef struct Boundary {
    size_t *launch; /* indices in Plan.launch, in order */
    size_t n;
    size_t rows;    /* of them, kernels over rows */
    size_t library; /* products and what else a library does; the others add up parts of sums */
} Boundary;

/* Parameter paths; NULL at the end of each list. */
typedef struct BoundaryWeights {
    const char *end;      /* multiplied last by the sublayer before */
    const char *begin[4]; /* multiplied first by what comes behind */
} BoundaryWeights;
Boundary boundary_forward(Arena *arena, const Plan *p, const BoundaryWeights *w);
Boundary boundary_backward(Arena *arena, const Plan *p, const BoundaryWeights *w);
/* Is the kernel of this launch printed from expressions? */
bool boundary_is_rows(const Plan *p, const Launch *l);
void boundary_print(const Plan *p, const Boundary *b);

/* How many kernels of `of` are none of `in`: by name, which is made of the text. */
size_t plan_missing(const Plan *in, const Plan *of);

#endif
