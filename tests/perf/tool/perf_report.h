/* perf_report.h - what every kernel of a step should take on a GPU, as a table or as JSON.
 *
 * In:  the plans of a step's programs, their machine code.   Out: text.
 */
#ifndef VWN_PERF_REPORT_H
#define VWN_PERF_REPORT_H

#include "perf.h"
#include "runtime/cuda/nvrtc.h"

typedef struct PerfProgram {
    const char *name;
    const Plan *plan;
    int64_t runs; /* of a training step; 0: not of one */
    PerfMemory *memory;
} PerfProgram;
typedef struct PerfCode {
    Name kernel;
    const CudaCode *code;
} PerfCode;
typedef struct PerfReport {
    Arena *arena;
    const Gpu *gpu;
    const char *disassembler;
    const PerfProgram *program;
    size_t n_program;
    const PerfCode *code; /* of all kernels of the programs */
    size_t n_code;
} PerfReport;

/* Raises where a kernel cannot be disassembled or followed. */
void perf_report(const PerfReport *r, Buf *out, bool json);

#endif
