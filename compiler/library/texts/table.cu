#ifndef TEXT_NAME
#include "alone.cu"
#endif
/* a table of numbers, 64 at a time: out[r] = s[r] */
KERNEL(64) TEXT_NAME(
    real *__restrict__ out,
    TEXT_NUMBERS
    int64_t rows)
{
    real x = s0;
    TEXT_CHOICES
    if (blockIdx.x == 0 && threadIdx.x < rows)
        out[threadIdx.x] = x;
}
