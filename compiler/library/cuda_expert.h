/* cuda_expert.h - products of rows by their experts' matrices, as CUDA text.
 *
 * In:  a class of products.     Out: the text of a kernel with @NAME@ for its name, and how it is launched.
 * The one idea: pairs (a token and one of its choices) are sorted by expert on the device, and a
 * block finds its expert from where these begin: no count comes to the host, no row is padded, and an
 * expert without pairs has no block.
 *
 * A pair's index that is no expert's belongs to a group behind the last one, whose results are 0.
 * Every element of a result is added up by one thread in one order: results are deterministic, and
 * those of a row do not depend on the others. Operands that are both bf16 or both fp16 are multiplied on tensor
 * cores and added up in float32, all others in float32 as they are. Where the target has
 * warpgroups these multiply the larger tiles.
 */
#ifndef VWN_CUDA_EXPERT_H
#define VWN_CUDA_EXPERT_H

#include "compiler/graph/ir.h"

/* Rows and columns of a block's result: 64 x 64, and of operands in 16 bits more where there is enough to do. */
typedef enum CudaExpertTile { CUDA_EXPERT_SMALL, CUDA_EXPERT_SQUARE, CUDA_EXPERT_WIDE } CudaExpertTile;
typedef struct CudaExpertClass {
    bool dw;                     /* dw [E, in, out] of x and dy; else y of x and w */
    bool transposed;             /* of w: [E, out, in] */
    Half half;                   /* both operands are; else products are float32 */
    Half x_half, w_half, y_half; /* what lies in memory: x, w or dy, y or dw */
    int x_width, w_width;        /* elements of one access to x, to w or dy */
    bool warpgroups; /* the target has them: tiles but the small ones are multiplied by groups of four warps */
    CudaExpertTile tile;
} CudaExpertClass;
/* Sizes of a product: rows of x and of w or dy are so many elements apart. */
typedef struct CudaExpertSizes {
    int64_t pairs, experts, in, out, pitch_x, pitch_w;
} CudaExpertSizes;
typedef struct CudaExpertLaunch {
    int rows, columns;           /* of a block's result */
    int threads, stages, blocks; /* blocks: of a multiprocessor there are registers for, at least */
    int64_t shared;              /* bytes of dynamic shared memory */
} CudaExpertLaunch;
enum { CUDA_EXPERT_SORT_THREADS = 1024 };
#define CUDA_EXPERT_PAIRS (((int64_t)1 << 32) - 1) /* at most: a pair's number has 32 bits where its token is found */

/* Of a class with what lies in memory and what is transposed: the rest. x_at, w_at: elements before the first one, from
 * where memory is aligned. */
void cuda_expert_choose(CudaExpertClass *c, const CudaExpertSizes *s, int64_t x_at, int64_t w_at);
CudaExpertLaunch cuda_expert_launch(const CudaExpertClass *c);
/* How many blocks; of the sort one for each expert and one more. */
int64_t cuda_expert_blocks(const CudaExpertClass *c, const CudaExpertSizes *s);
/* What in, out, pitch_x and pitch_w are multiples of. */
void cuda_expert_multiples(const CudaExpertClass *c, int64_t multiple[4]);
/* Arguments: index (pairs), start (experts + 2), order (pairs); pairs, experts, low; blocks. The pairs
 * order[start[e]] .. order[start[e + 1] - 1] are those of expert e, from the first to the last: those whose index, without its
 * last `low` bits, is e. */
const char *cuda_expert_sort(Arena *arena, size_t *length);
/* Arguments: x, w or dy, start, order, y or dw; how many pairs share a row of x, experts, in, out, pitch_x, pitch_w;
 * blocks. y and dy have a row for each pair. */
const char *cuda_expert(Arena *arena, const CudaExpertClass *c, size_t *length);

#endif
