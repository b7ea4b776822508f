/* fit.h - constants of the model from measured kernels.
 *
 * In:  counts of kernels, or shapes of products; seconds that each took.
 * Out: constants of a Gpu with how far they are known, and what is left of each kernel.
 * The one idea: logarithms of constants are moved until the squares of logarithms of predicted by
 * measured times are least; a kernel that is far off (another text, a clock that fell) counts less,
 * and what no kernel says stays near the table's value.
 */
#ifndef VWN_FIT_H
#define VWN_FIT_H

#include "perf.h"

typedef struct FitKernel {
    const char *program, *kernel;
    Perf perf;             /* of a kernel with machine code: blocks, resident, bytes, counts of the launch */
    double m, n, k, batch; /* of a product of the library; m 0: it is none */
    bool half;
    double seconds;       /* measured */
    double before, after; /* predicted with the constants of the table, and with those that were fitted */
} FitKernel;

enum { FIT_CONSTANTS = 11 };
typedef struct FitConstant {
    const char *name;
    double before, value;
    double error; /* standard error, as a part of the value */
} FitConstant;
typedef struct Fit {
    Gpu gpu; /* with the constants that were fitted */
    FitConstant constant[FIT_CONSTANTS];
    double rms_before, rms; /* of logarithms of predicted by measured seconds */
} Fit;

double fit_seconds(const Gpu *gpu, const FitKernel *k);
void fit_constants(const Gpu *table, FitKernel *k, size_t n, Fit *out);

/* fit_read.c: objects a line. "measured" (kernel, seconds; program where there are several of the
 * name; product: [m, n, k, batch] and half, of one that has no other line) beside "predicted", as
 * `predict --json` writes it. What is measured and not predicted is counted. False with `why`. */
bool fit_read(Arena *arena, const char *text, size_t n, FitKernel **kernel, size_t *n_kernel, size_t *lost,
              char why[256]);
void fit_report(const Fit *f, const FitKernel *k, size_t n, Buf *out, bool json);

#endif
