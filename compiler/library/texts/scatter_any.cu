#ifndef TEXT_NAME
#include "alone.cu"
#endif
/* out[index[i]][..] += dy[i][..]: the gradient of a table (rows, width) that is zeros. In any order, so its
 * last bits may be others each time. A warp takes a row of dy. */
KERNEL(256) TEXT_NAME(
    const TEXT_ELEMENT *__restrict__ dy, const integer *__restrict__ index, real *__restrict__ out,
    int64_t width, int64_t of_table, int64_t rows)
{
    const int64_t next = (int64_t)gridDim.x * 8;
    for (int64_t i = (int64_t)blockIdx.x * 8 + threadIdx.x / 32; i < rows; i += next) {
        const integer at = index[i];
        #pragma unroll 4
        for (int64_t c = threadIdx.x % 32; c < (at >= 0 && at < of_table ? width : 0); c += 32)
            atomicAdd(&out[at * width + c], vwn_number(dy[i * width + c]));
    }
}
