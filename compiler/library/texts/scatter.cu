#ifndef TEXT_NAME
#include "alone.cu"
#endif
/* out[index[i]][..] += dy[i][..] in the order of i, zeros before: the gradient of a table (rows, width).
 * A block of 128 threads: 64 rows and 256 columns, in 65,536 bytes of shared memory. */
KERNEL(128) TEXT_NAME(
    const TEXT_ELEMENT *__restrict__ dy, const integer *__restrict__ index, real *__restrict__ out,
    int64_t count, int64_t width, int64_t of_table, int64_t rows)
{
    enum { ROWS = 64, COLUMNS = 256, THREADS = 128, WARPS = THREADS / 32, EACH = COLUMNS / THREADS };
    enum { UNDER_WAY = 4 };              /* rows of dy that are loaded before they are added */
    __shared__ uint32_t found[2][WARPS]; /* a bit for each index of a warp that is of these rows */
    __shared__ int row[2][THREADS];      /* its row */
    DYN_SMEM(memory);
    real *const sums = (real *)memory;
    const int64_t parts = (width + COLUMNS - 1) / COLUMNS;
    const int64_t r0 = blockIdx.x / parts * ROWS, c0 = blockIdx.x % parts * COLUMNS;
    const int64_t of_rows = of_table - r0 < ROWS ? of_table - r0 : ROWS;
    const int64_t of_columns = width - c0 < COLUMNS ? width - c0 : COLUMNS;
    const int me = threadIdx.x;
    for (int r = 0; r < of_rows; r++)
        for (int c = me; c < of_columns; c += THREADS)
            sums[r * COLUMNS + c] = 0;
    int stage = 0;
    for (int64_t i0 = 0; i0 < count; i0 += THREADS, stage ^= 1) {
        const int64_t at = i0 + me < count ? index[i0 + me] - r0 : -1;
        const bool is = at >= 0 && at < of_rows;
        const uint32_t bits = __ballot_sync(0xffffffffu, is);
        row[stage][me] = (int)(is ? at : 0);
        if (me % 32 == 0)
            found[stage][me / 32] = bits;
        __syncthreads(); /* the next turn writes the other stage */
        for (int w = 0; w < WARPS; w++)
            for (uint32_t left = found[stage][w]; left;) {
                real x[UNDER_WAY][EACH];
                int to[UNDER_WAY];
                #pragma unroll
                for (int j = 0; j < UNDER_WAY; j++, left &= left - 1) {
                    const int k = left ? w * 32 + __ffs(left) - 1 : 0;
                    const TEXT_ELEMENT *const from = dy + (i0 + k) * width + c0;
                    to[j] = left ? row[stage][k] * COLUMNS : -1;
                    #pragma unroll
                    for (int e = 0; e < EACH; e++)
                        x[j][e] = left && me + e * THREADS < of_columns ? vwn_number(from[me + e * THREADS]) : 0.0f;
                }
                #pragma unroll
                for (int j = 0; j < UNDER_WAY; j++)
                    #pragma unroll
                    for (int e = 0; e < EACH; e++)
                        if (to[j] >= 0)
                            sums[to[j] + me + e * THREADS] += x[j][e];
            }
    }
    for (int r = 0; r < of_rows; r++)
        for (int c = me; c < of_columns; c += THREADS)
            out[(r0 + r) * width + c0 + c] = sums[r * COLUMNS + c];
}
