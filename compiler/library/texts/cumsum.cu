#ifndef TEXT_NAME
#include "alone.cu"
#endif
/* running sum along the middle axis of x[outer][count][inner], from the end when `back` is 1;
 * a thread for each of the others */
KERNEL(128) TEXT_NAME(
    const real *__restrict__ x, real *__restrict__ out, int64_t count, int64_t inner, int64_t back,
    int64_t rows)
{
    const int64_t next = (int64_t)gridDim.x * 128;
    for (int64_t r = (int64_t)blockIdx.x * 128 + threadIdx.x; r < rows; r += next) {
        const int64_t base = r / inner * count * inner + r % inner;
        real sum = 0;
        #pragma unroll 8
        for (int64_t k = 0; k < count; k++) {
            const int64_t at = base + (back ? count - 1 - k : k) * inner;
            sum += x[at];
            out[at] = sum;
        }
    }
}
