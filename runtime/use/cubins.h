/* cubins.h - the machine code of a file's kernels, for whoever does something else with it than
 * `vwn ir --stage cubin`.
 *
 * In:  a checked file, an architecture.   Out: the plans of its programs and the code of their
 * kernels, while a function runs.
 */
#ifndef VWN_CUBINS_H
#define VWN_CUBINS_H

#include "compiler/plan/plan.h"
#include "runtime/cuda/nvrtc.h"
#include "runtime/exec/session.h"

typedef struct CubinsProgram {
    const char *name;
    const Plan *plan;
    int64_t runs; /* of a training step; 0: not of one */
} CubinsProgram;
typedef struct CubinsMade {
    Arena *arena;
    const Unit *unit;
    const CubinsProgram *program;
    size_t n_program;
    const Name *kernel; /* of all programs; code[i] is that of kernel[i] */
    const CudaCode *code;
    size_t n_kernel;
} CubinsMade;
typedef struct CubinsUse {
    bool step;                                        /* programs of a training step alone */
    void (*call)(void *user, const CubinsMade *made); /* may raise */
    void *user;
} CubinsUse;

Status cubins_make(vwn_context *owner, Unit *unit, const vwn_cubin_options *how, const CubinsUse *use);

#endif
