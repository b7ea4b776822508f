#ifndef TEXT_NAME
#include "alone.cu"
#endif
/* table[b][start[b] + i] = x[b][i] for every b that is on, rows of words of 4 bytes */
KERNEL(256) TEXT_NAME(
    const uint32_t *__restrict__ x, const integer *__restrict__ start, const integer *__restrict__ on,
    uint32_t *__restrict__ table, int64_t count, int64_t of_table, int64_t words, int64_t rows)
{
    const int64_t next = (int64_t)gridDim.x * 256;
    for (int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x; i < rows * words; i += next) {
        const int64_t r = i / words, b = r / count, to = start[b] + r % count;
        if (on[b] && to >= 0 && to < of_table)
            table[(b * of_table + to) * words + i % words] = x[i];
    }
}
