#ifndef TEXT_NAME
#include "alone.cu"
#endif
/* indices of the k largest of each row of `count`, ties to the lowest index, NaN last; a warp a row.
 * Numbers and indices are compared as one integer of the same order. */
KERNEL(128) TEXT_NAME(
    const real *__restrict__ x, integer *__restrict__ out, int64_t count, int64_t k, int64_t rows)
{
    const int lane = threadIdx.x % 32;
    const int64_t next = (int64_t)gridDim.x * 4;
    for (int64_t r = (int64_t)blockIdx.x * 4 + threadIdx.x / 32; r < rows; r += next) {
        uint64_t last = ~(uint64_t)0;
        for (int64_t c = 0; c < k; c++) {
            uint64_t best = 0;
            for (int64_t i = lane; i < count; i += 32) {
                const real y = x[r * count + i] + 0.0f; /* both zeros are one */
                const uint32_t u = vwn_bits(y);
                const uint32_t order = y != y ? 0 : u >> 31 ? ~u : u | 0x80000000u;
                const uint64_t key = (uint64_t)order << 32 | ~(uint32_t)i;
                best = key < last && key > best ? key : best;
            }
            last = vwn_warp_max(best);
            if (lane == 0)
                out[r * k + c] = (integer)~(uint32_t)last;
        }
    }
}
