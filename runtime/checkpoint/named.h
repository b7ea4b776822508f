/* named.h - tensors as a `names` table has them: where the numbers of a weight lie there.
 *
 * In:  a ModelAlias.   Out: the extents of the other tensor; numbers from one side to the other.
 * The one idea: one walk over the numbers that both sides have serves files that are read and files that are written.
 */
#ifndef VWN_NAMED_H
#define VWN_NAMED_H

#include "compiler/model/model.h"

/* The extents of the tensor of the other name, in its own order. The rank. */
int named_shape(const Model *m, const ModelAlias *a, int64_t d[MAX_RANK]);
/* Copies what the alias says from `tensor`, all numbers of that name, to `weight`, all of the parameter; or, `out`, the reverse.
 * Both row-major. */
void named_move(const Model *m, const ModelAlias *a, double *weight, double *tensor, bool out);

#endif
