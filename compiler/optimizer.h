/* optimizer.h - the part of step.c that turns gradients into new weights. */
#ifndef VWN_OPTIMIZER_H
#define VWN_OPTIMIZER_H

#include "model.h"

/* Whether Model.param[i] is learned under `t`: neither a buffer nor frozen. */
bool param_is_trained(const Model *m, const Train *t, size_t i);

/* Appends clipping by the global norm and the update of every trained parameter: reads
 * EXT_GRAD, EXT_PARAM and EXT_STATE, stores EXT_PARAM and EXT_STATE. Returns the gradient's
 * norm before clipping, a scalar. When that norm is a NaN or an infinity nothing changes. */
Val optimizer_update(Graph *g, const Model *m, const Train *t);

/* The optimizer states of Model.param[i], for memory counts: 0, 1 or 2 tensors of its shape. */
int optimizer_states(const Optimizer *o, size_t i);
/* The EXT_STATE tensor that holds the average of a trained parameter. */
Name average_name(Ctx *ctx, const Param *p);

#endif
