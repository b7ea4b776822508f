/* optimizer.h - the part of step.c that turns gradients into new weights. */
#ifndef VWN_OPTIMIZER_H
#define VWN_OPTIMIZER_H

#include "model.h"

/* Whether Model.param[i] is neither a buffer nor frozen by the file: then it has states and an average. */
bool param_learns(const Model *m, const Train *t, size_t i);
/* Whether a growth step has frozen it as a whole, in a file where it would learn; its states are kept. */
bool param_is_held(const Model *m, const Train *t, size_t i);
/* Whether it is learned under `t`: it learns and is not held. */
bool param_is_trained(const Model *m, const Train *t, size_t i);

/* With t->owner: for each parameter the rank that has its states and updates it. Parameters stand in one order, and each rank has a
 * range of them, as even in elements that learn as whole tensors allow: at most half of a tensor above its share at either end. A
 * tensor is never divided: so its sum of squares, and its step in Muon, are computed as one rank alone does. */
const int *param_owners(const Model *m, const Train *t, int ranks, Arena *arena);
/* Whether this rank updates Model.param[i]: with one rank, always. */
static inline bool param_is_here(const Train *t, size_t i) { return !t->owner || t->owner[i] == t->rank; }

/* Appends clipping by the global norm and the update of every trained parameter: reads
 * EXT_GRAD, EXT_PARAM and EXT_STATE, stores EXT_PARAM and EXT_STATE. Returns the gradient's
 * norm before clipping, a scalar. When that norm is a NaN or an infinity nothing changes. */
Val optimizer_update(Graph *g, const Model *m, const Train *t);
/* Outputs of step_squares(); how many. */
size_t optimizer_squares(Graph *g, const Model *m, const Train *t);

/* A number of the run in a step that `t` trains. Where updates decide and fp16 may skip the step before, which nobody has
 * been told yet, the host gives two, and the device takes the one that is. */
Val step_scalar(Graph *g, const Train *t, const HostExpr *e);

/* The optimizer states of Model.param[i], for memory counts: 0, 1 or 2 tensors of its shape. */
int optimizer_states(const Optimizer *o, size_t i);
/* The EXT_STATE tensor that holds the average of a trained parameter. */
Name average_name(Ctx *ctx, const Param *p);

#endif
