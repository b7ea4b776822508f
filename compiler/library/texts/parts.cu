#ifndef TEXT_NAME
#include "alone.cu"
#endif
/* second stage of a TEXT_WHAT over rows: out[r] = TEXT_SHORT over parts of x[part][r].TEXT_ORDER
 * A block of 256 threads for 32 elements: each of its warps takes every eighth part. */
KERNEL(256) TEXT_NAME(
    const real *__restrict__ x, real *__restrict__ out, int64_t parts, int64_t size,
#if TEXT_AT
    int64_t e0, int64_t e1, int64_t e2, int64_t e3, int64_t e4, int64_t e5,
    int64_t s0, int64_t s1, int64_t s2, int64_t s3, int64_t s4, int64_t s5,
#endif
    int64_t rows)
{
    __shared__ real total[8][32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int64_t r0 = (int64_t)blockIdx.x * 32; r0 < rows; r0 += (int64_t)gridDim.x * 32) {
        const int64_t r = r0 + lane;
#if !TEXT_AT
        const int64_t at = r;
#else
        int64_t rest = r, at = rest % e5 * s5;
        rest /= e5, at += rest % e4 * s4;
        rest /= e4, at += rest % e3 * s3;
        rest /= e3, at += rest % e2 * s2;
        rest /= e2, at += rest % e1 * s1;
        rest /= e1, at += rest % e0 * s0;
#endif
#if !TEXT_MAX
        real y = 0;
#else
        real y = -INFINITE;
#endif
        for (int64_t part = r < rows ? warp : parts; part < parts; part += 8)
#if !TEXT_MAX
            y += x[part * size + at];
#else
            y = x[part * size + at] > y ? x[part * size + at] : y;
#endif
        total[warp][lane] = y;
        __syncthreads();
        for (int k = 1; k < 8; k++)
#if !TEXT_MAX
            y += total[k][lane];
#else
            y = total[k][lane] > y ? total[k][lane] : y;
#endif
        if (warp == 0 && r < rows)
            out[r] = y;
        __syncthreads();
    }
}
