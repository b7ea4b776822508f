/* parts.h - losses of a batch that is computed in parts.
 *
 * In:  a model.   Out: the sums over a batch that its data alone decides, and of every loss what a
 * part of the batch adds to it.
 * The one idea: a sum over sequences is the sum of those of the parts. What such sums are divided
 * by (the number of targets) follows from the data, so it is added up over all parts before any of
 * them is computed; with that, a mean over targets is a sum that parts add to.
 */
#ifndef VWN_PARTS_H
#define VWN_PARTS_H

#include "model.h"

typedef struct Parts Parts;
Parts *parts_of(const Model *m, Arena *arena);

/* The sums that data decides, as nodes of the model: how many, and the EXT_TOTAL tensor of each. */
size_t parts_totals(const Parts *p);
Val parts_total(const Parts *p, size_t i, Name *name);

/* Whether what the parts add up to is loss i of the batch. Else it is the mean of the parts' own, as
 * of a loss that multiplies two sums over the batch. */
bool parts_exact(const Parts *p, size_t i);

/* Of the last part of an evaluation not all sequences count, but HV_FILLED of them, the first ones: what stands in g for
 * input 0 of node v of the model, whose copy is x. Where v is a sum over sequences the others add 0; else it is x. */
Val parts_filled(const Parts *p, Graph *g, Val v, Val x);
/* And for an extent: that of the sequences that count. */
Val parts_filled_dim(Graph *g, Dim d);

/* map[v] is the copy of node v of the model in `g`. The copies of losses and metrics become what a
 * part adds to them; `share` is the scalar (sequences of the part) / (sequences of the batch). The
 * graph then reads EXT_TOTAL tensors. filled: with parts_filled(), as the copies are. */
void parts_apply(const Parts *p, Graph *g, Val *map, Val share, bool filled);

#endif
