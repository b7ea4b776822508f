/* jump.h - a loss that jumps: more than 4 times the median of the last RECENT losses and more than 2 above it, once training
 * is under way. Private to runtime/.
 */
#ifndef VWN_JUMP_H
#define VWN_JUMP_H

#include "runtime/checkpoint/checkpoint.h"

/* Of the losses before the step behind `p`, which has RECENT of them. */
double jump_median(const Progress *p);
/* Whether this loss of the step behind `p` is one. */
bool jump_is(const Progress *p, double loss);
/* The same for an update that decides (step_update() in model.h), which has the last loss before its step: the numbers
 * `known`, of a step `ahead` steps behind that, 0 or 1. */
void jump_known(const Progress *p, int64_t ahead, double known[3]);

#endif
