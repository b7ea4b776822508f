/* kernel_set.h - the different kernels of many plans.
 *
 * In:  plans, from any threads.   Out: their kernels, each once, in a memory of their own, as a plan that has nothing else.
 * The one idea: plans that are made only to know their kernels are gone before the next one is made; what stays does not
 * grow with their number.
 */
#ifndef VWN_KERNEL_SET_H
#define VWN_KERNEL_SET_H

#include "compiler/plan/plan.h"

typedef struct KernelSet KernelSet;
KernelSet *kernel_set_new(void); /* NULL: no memory */
void kernel_set_free(KernelSet *s);
/* ST_OK, or why there is no memory. */
Status kernel_set_add(KernelSet *s, const Plan *plan, char why[512]);
/* All kernels in the order of their names, whatever the order of the plans; when nobody adds any more. Raises in `ctx`. */
Plan *kernel_set_plan(KernelSet *s, Ctx *ctx, Arena *arena);

#endif
