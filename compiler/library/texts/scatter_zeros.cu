#ifndef TEXT_NAME
#include "alone.cu"
#endif
/* zeros: what the next kernel adds to */
KERNEL(256) TEXT_NAME(real *__restrict__ out, int64_t rows)
{
    const int64_t next = (int64_t)gridDim.x * 256;
    for (int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x; i < rows; i += next)
        out[i] = 0;
}
