#ifndef TEXT_NAME
#include "alone.cu"
#endif
/* running sum along the middle axis of x[outer][count][inner], from the end when `back` is 1
 * A block has `columns` of the lines that are summed along, a power of two, and cuts each into chunks, of which a thread
 * has one. Threads sum their chunks; the sums of all that come before are added up in shared memory, in a tree that
 * depends on the sizes alone; then each thread goes through its chunk once more, from there on. */
KERNEL(512) TEXT_NAME(
    const real *__restrict__ x, real *__restrict__ out, int64_t count, int64_t inner, int64_t back,
    int64_t lines, int64_t columns, int64_t rows)
{
    enum { THREADS = 512 };
    __shared__ real total[THREADS];
    const int width = (int)columns, column = threadIdx.x % width, chunk = threadIdx.x / width;
    const int64_t each = (count * width + THREADS - 1) / THREADS, first = chunk * each;
    const int64_t most = first < count ? count - first : 0, length = each < most ? each : most;
    const int64_t step = back ? -inner : inner;
    for (int64_t group = blockIdx.x; group < rows; group += gridDim.x) {
        const int64_t line = group * width + column, n = line < lines ? length : 0;
        const int64_t from = line / inner * count * inner + line % inner + (back ? count - 1 - first : first) * inner;
        real sum = 0;
        if (width < THREADS) { /* else a line is one chunk */
            #pragma unroll 8
            for (int64_t k = 0; k < n; k++)
                sum += x[from + k * step];
            total[threadIdx.x] = sum;
            for (int far = width; far < THREADS; far *= 2) {
                __syncthreads();
                const real before = (int)threadIdx.x >= far ? total[threadIdx.x - far] : 0;
                __syncthreads();
                total[threadIdx.x] += before;
            }
            __syncthreads();
            sum = chunk > 0 ? total[threadIdx.x - width] : 0;
        }
        #pragma unroll 8
        for (int64_t k = 0; k < n; k++) {
            sum += x[from + k * step];
            out[from + k * step] = sum;
        }
        __syncthreads();
    }
}
