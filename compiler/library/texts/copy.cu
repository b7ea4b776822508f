#ifndef TEXT_NAME
#include "alone.cu"
#endif
/* copy: out[r] = x[r]; elements of 4 bytes times `words` */
KERNEL(256) TEXT_NAME(
    const uint32_t *__restrict__ x, uint32_t *__restrict__ out, int64_t words, int64_t rows)
{
    const int64_t next = (int64_t)gridDim.x * 256;
    for (int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x; i < rows * words; i += next)
        out[i] = x[i];
}
