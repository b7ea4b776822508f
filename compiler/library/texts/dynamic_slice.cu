#ifndef TEXT_NAME
#include "alone.cu"
#endif
/* out[b][i] = table[b][start[b] + i], the fill outside; rows of words of 4 bytes */
KERNEL(256) TEXT_NAME(
    const uint32_t *__restrict__ table, const integer *__restrict__ start, uint32_t *__restrict__ out,
    int64_t count, int64_t of_table, int64_t words, int64_t fill, int64_t fill_odd, int64_t pairs,
    int64_t rows)
{
    const int64_t next = (int64_t)gridDim.x * 256;
    for (int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x; i < rows * words; i += next) {
        const int64_t r = i / words, j = i % words, b = r / count, at = start[b] + r % count;
        out[i] = at >= 0 && at < of_table ? table[(b * of_table + at) * words + j]
                                          : (uint32_t)(j & pairs ? fill_odd : fill);
    }
}
