/* cuda_attention.h - attention and its gradients as CUDA text.
 *
 * In:  a class of attention.
 * Out: the text of a kernel with @NAME@ for its name, and how it is launched.
 * The one idea: a warp holds 16 or 32 rows of a tile of scores, and two products of tiles are all
 * that the kernels are made of. What they are on tensor cores and what in float32 stands in
 * attention_tiles.cu, a part of the prelude; the kernels are the same.
 *
 * Arguments, in the order of the CPU's kernels (library.h): buffers, then the integers T, S, H,
 * K, d, dv, causal, window, the strides of q, k and v over batch, position and head, the key
 * and the step of dropout; then the doubles scale, cap, rate; then how many blocks there are.
 * Buffers:
 *     forward              q, k, v, out, lse
 *     gradient of q        q, k, v, out, lse, dout, dq, mean
 *     gradient of k and v  q, k, v, mean, lse, dout, dk, dv
 * `mean` (B, T, H) is written by the gradient of q and read by the other: the sums of dout out.
 * With `oldest` one more buffer, integers (B, T): the first key that each query sees. Every
 * element of a result is added up by one thread in one order, so results are deterministic.
 */
#ifndef VWN_CUDA_ATTENTION_H
#define VWN_CUDA_ATTENTION_H

#include "compiler/kernel/launch.h"

typedef enum CudaAttentionKernel { CUDA_SDPA, CUDA_SDPA_GRAD_Q, CUDA_SDPA_GRAD_K, CUDA_SDPA_COUNT } CudaAttentionKernel;

typedef struct CudaAttentionClass {
    int d, dv; /* of cuda_attention_pad(), at most CUDA_HEAD_MOST */
    Half half; /* q, k, v, out and their gradients; products on tensor cores */
    bool capped, dropped, oldest;
    int width; /* elements of one access: cuda_attention_width, or CUDA_ACCESS_ANY */
    bool
        warpgroups; /* the target has them, and they multiply where there is such a text: 16 bits at 16 bytes an access, heads of
                        up to 64 or 128, without dropout */
} CudaAttentionClass;
enum { CUDA_HEAD_MOST = 256, CUDA_ACCESS_ANY = 0 };

typedef struct CudaAttentionLaunch {
    int threads;    /* of a block */
    int rows;       /* of T, or of S for CUDA_SDPA_GRAD_K, that a block computes */
    int columns;    /* of the other, at a time */
    int64_t shared; /* bytes of dynamic shared memory */
} CudaAttentionLaunch;

/* The widest access, up to 16 bytes and of 16-bit types 16 or 4, that divides the head sizes and all strides; 0 when there
 * is none: 16 bits and an odd number of elements. Buffers begin at multiples of 16 bytes. */
int cuda_attention_width(Half half, const int64_t *sizes, size_t n);
/* Of such a class there is a text that finds out while it runs how wide its accesses may be, for as many registers: the
 * function that copies a tile by 4 bytes is one that is called. Others would spill. */
bool cuda_attention_takes_any(const CudaAttentionClass *c);
/* The class of a head size: a multiple of 16, above 64 of 32. */
int cuda_attention_pad(int64_t d);
/* How many of q, k and v come by tensor maps, the last ones of these, which are its last arguments; at most CUDA_ATTENTION_MAPS. */
enum { CUDA_ATTENTION_MAPS = 3 };
uint32_t cuda_attention_maps(CudaAttentionKernel which, const CudaAttentionClass *c);
CudaAttentionLaunch cuda_attention_launch(CudaAttentionKernel which, const CudaAttentionClass *c);
/* The n-th of these of a launch for B sequences with these integers. */
LaunchMap cuda_attention_map(CudaAttentionKernel which, const CudaAttentionClass *c, uint32_t n, int64_t B,
                             const int64_t *ints);
/* How many blocks for so many sequences, rows (T or S) and heads (H, or K for
 * CUDA_SDPA_GRAD_K). */
int64_t cuda_attention_blocks(const CudaAttentionLaunch *l, int64_t B, int64_t rows, int64_t heads);
const char *cuda_attention(Arena *arena, CudaAttentionKernel which, const CudaAttentionClass *c, size_t *length);

#endif
