/* cuda_scatter.h - the gradient of a table that was read by index, as CUDA text.
 *
 * In:  nothing.     Out: the text of a kernel with @NAME@ for its name, and how it is launched.
 * The one idea: a block owns a piece of the table. Indices are sorted into groups of rows (cuda_expert_sort()), so few that
 * sorting costs little, and it looks through those of its group for those of its rows. So every sum is added up by one thread in the order of the indices:
 * deterministic, and the bits of the CPU's kernel.
 *
 * Arguments: dy (count, width), index (count), start (groups + 2), order (count), out (rows, width); width, rows, low; how many
 * blocks there are. Indices outside of the table are passed over.
 *
 * Where any order will do, zeros and then a row of dy for each warp: out and how many elements it has; dy,
 * index, out; width, rows, count.
 */
#ifndef VWN_CUDA_SCATTER_H
#define VWN_CUDA_SCATTER_H

#include "compiler/graph/ir.h"

enum { CUDA_SCATTER_THREADS = 128, CUDA_SCATTER_SHARED = 64 * 256 * 4 };
int64_t cuda_scatter_blocks(int64_t rows, int64_t width);
/* A group of rows is those that agree but for so many low bits; rows: at least 1. */
int cuda_scatter_low(int64_t rows);
int64_t cuda_scatter_groups(int64_t rows);
typedef enum CudaScatterKernel {
    CUDA_SCATTER,
    CUDA_SCATTER_ZEROS, /* 256 threads, an element each */
    CUDA_SCATTER_ANY    /* 256 threads for 8 rows */
} CudaScatterKernel;
/* half: what dy is; sums are float32. */
const char *cuda_scatter(Arena *arena, CudaScatterKernel which, Half half, size_t *length);

#endif
