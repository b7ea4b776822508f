/* cuda_expert.h - products of rows by their experts' matrices, as CUDA text.
 *
 * In:  a class of products.     Out: the text of a kernel with @NAME@ for its name, and how it is launched.
 * The one idea: pairs (a token and one of its choices) are sorted by expert on the device, and a
 * block finds its expert from where these begin: no count comes to the host, no row is padded.
 *
 * A pair's index that is no expert's belongs to a group behind the last one, whose results are 0.
 * Every element of a result is added up by one thread in one order: results are deterministic, and
 * those of a row do not depend on the others.
 */
#ifndef VWN_CUDA_EXPERT_H
#define VWN_CUDA_EXPERT_H

#include "compiler/graph/ir.h"

typedef struct CudaExpertClass {
    bool dw;         /* dw [E, in, out] of x and dy; else y of x and w */
    bool transposed; /* of w: [E, out, in] */
    Half half;       /* products on tensor cores; else float32 */
    Half x_half, w_half, y_half; /* what lies in memory: x, w or dy, y or dw */
    int x_width, w_width;        /* elements of one access to x and to w or dy */
} CudaExpertClass;
enum { CUDA_EXPERT_THREADS = 128, CUDA_EXPERT_SORT_THREADS = 256 };
#define CUDA_EXPERT_PAIRS ((int64_t)1 << 32) /* at most: a pair's number has 32 bits where its token is found */

/* The widest access, up to 16 bytes, that divides two numbers of elements. */
int cuda_expert_width(Half half, int64_t row, int64_t place);
/* How many blocks; of the sort one for each expert and one more. */
int64_t cuda_expert_blocks(const CudaExpertClass *c, int64_t pairs, int64_t experts, int64_t in,
                           int64_t out);
/* Arguments: index (pairs), start (experts + 2), order (pairs); pairs, experts; blocks. The pairs
 * order[start[e]] .. order[start[e + 1] - 1] are those of expert e, from the first to the last. */
const char *cuda_expert_sort(Arena *arena, size_t *length);
/* Arguments: x, w or dy, start, order, y or dw; how many pairs share a row of x, experts, in, out;
 * blocks. y and dy have a row for each pair. */
const char *cuda_expert(Arena *arena, const CudaExpertClass *c, size_t *length);

#endif
