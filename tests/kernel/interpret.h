/* interpret.h - runs kernel programs and whole plans without a compiler, in float64 or float32.
 *
 * In:  a plan made with PlanOptions.programs, tensors.
 * Out: results and stored tensors.
 * The one idea: the interpreter does what the lines of a kernel say and nothing else, every access
 * checked, so that the lowering, the schedule and the dump are compared with the reference without
 * the printer between them.
 */
#ifndef VWN_INTERPRET_H
#define VWN_INTERPRET_H

#include "compiler/print/emit.h"
#include "compiler/kernel/kernel_text.h"
#include "plan_host.h"

/* The memory of one buffer of a kernel; canaries stand around it. */
typedef struct Cells {
    DType dtype;
    int64_t n;
    double *real;
    int64_t *integer;
    uint8_t *stores; /* of each element, since it was cleared */
} Cells;

typedef struct KernelCall {
    const Kernel *k;
    Cells **buffer;       /* by number in the kernel; of a part: all partitions one after the other */
    const double *scalar; /* by number */
    uint64_t seed, step, first;
    bool single; /* round every result to float32 */
} KernelCall;

/* Rows (or partitions) lo <= row < hi. */
void interpret_kernel(const KernelCall *call, int64_t lo, int64_t hi);

/* As host_run(), in memory of its own. What the plan's texts say is also printed again, and must be
 * what the plan holds. */
void interpret_plan(Ctx *ctx, const Plan *p, const HostRun *how, bool single, Tensor **results, Tensor **stored);

#endif
