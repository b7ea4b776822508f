/* library_cuda.h - the kernels that are written rather than derived, as CUDA text.
 *
 * In:  which one of library.h.     Out: its text, with @NAME@ for its name, and how it is launched.
 * The one idea: arguments are those of the CPU's kernel, each by itself: buffers, integers,
 * scalars, then the rows. Each result is computed by one thread or one warp in one order.
 * Attention, its gradients and the gradient of a table stand in cuda_attention.h and
 * cuda_scatter.h.
 */
#ifndef VWN_LIBRARY_CUDA_H
#define VWN_LIBRARY_CUDA_H

#include "compiler/kernel/launch.h"
#include "compiler/kernel/library.h"

/* LIB_CUMSUM has a row for each block of lines that are summed along, and two more integers. `a` is for LIB_SDPA_AT, and
 * `half` says what its q, k, v and out are. */
const char *library_cuda(Arena *arena, LibraryKernel which, const AttentionClass *a, Half half, PlanGrid *grid,
                         size_t *length);

#endif
