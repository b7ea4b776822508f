#ifndef TEXT_NAME
#include "alone.cu"
#endif
/* out[index[i]][..] += dy[i][..] in the order of i, zeros before: the gradient of a table (rows, width).
 * A block of 128 threads: a group of rows, of large ones 64 rows, and 256 columns, in at most 65,536 bytes of shared memory. It
 * looks through the indices of its group alone: all that agree but for their last `low` bits, as they are sorted in `start` and
 * `order`. So much memory leaves room for three blocks, so a thread may have the registers that it wants. */
KERNEL(128, 3) TEXT_NAME(
    const TEXT_ELEMENT *__restrict__ dy, const integer *__restrict__ index, const integer *__restrict__ start,
    const integer *__restrict__ order, real *__restrict__ out,
    int64_t width, int64_t of_table, int64_t low, int64_t rows)
{
    enum { ROWS = 64, COLUMNS = 256, THREADS = 128, WARPS = THREADS / 32, EACH = COLUMNS / THREADS };
    enum { UNDER_WAY = 8 };              /* rows of dy that are loaded before they are added */
    __shared__ uint32_t found[2][WARPS]; /* a bit for each index of a warp that is of these rows */
    __shared__ int row[2][THREADS];      /* its row, */
    __shared__ int64_t place[2][THREADS]; /* and its place in dy */
    DYN_SMEM(memory);
    real *const sums = (real *)memory;
    const uint32_t parts = (uint32_t)((width + COLUMNS - 1) / COLUMNS);
    const int64_t at_once = low < 6 ? 1 << low : ROWS, r0 = blockIdx.x / parts * at_once, c0 = blockIdx.x % parts * COLUMNS;
    const int64_t of_rows = of_table - r0 < at_once ? of_table - r0 : at_once;
    const int64_t of_columns = width - c0 < COLUMNS ? width - c0 : COLUMNS;
    const int me = threadIdx.x;
    #pragma unroll 8
    for (int i = me * 4; i < of_rows * COLUMNS; i += THREADS * 4)
        vwn_at<4>(&sums[i]) = vwn_all<4>(0);
    const int64_t first = start[r0 >> low], end = start[(r0 >> low) + 1];
    int stage = 0;
    for (int64_t i0 = first; i0 < end; i0 += THREADS, stage ^= 1) {
        const int64_t i = i0 + me < end ? order[i0 + me] : -1, at = i >= 0 ? index[i] - r0 : -1;
        const bool is = at >= 0 && at < of_rows;
        place[stage][me] = i;
        const uint32_t bits = __ballot_sync(0xffffffffu, is);
        row[stage][me] = (int)(is ? at : 0);
        if (me % 32 == 0)
            found[stage][me / 32] = bits;
        __syncthreads(); /* the next turn writes the other stage */
        for (int w = 0; w < WARPS; w += 2)
            for (uint64_t left = (uint64_t)found[stage][w + 1] << 32 | found[stage][w]; left;) {
                real x[UNDER_WAY][EACH];
                int to[UNDER_WAY];
                #pragma unroll
                for (int j = 0; j < UNDER_WAY; j++, left &= left - 1) {
                    const int k = left ? w * 32 + __ffsll((long long)left) - 1 : 0;
                    const TEXT_ELEMENT *const from = dy + (left ? place[stage][k] : 0) * width + c0;
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
    __syncthreads(); /* other threads write what this one has added up */
    if (width % 4 == 0) {
        #pragma unroll 4
        for (int r = me / (COLUMNS / 4); r < of_rows; r += THREADS / (COLUMNS / 4)) {
            const int c = me % (COLUMNS / 4) * 4;
            if (c < of_columns)
                vwn_at<4>(&out[(r0 + r) * width + c0 + c]) = vwn_at<4>(&sums[r * COLUMNS + c]);
        }
    } else {
        for (int r = 0; r < of_rows; r++)
            for (int c = me; c < of_columns; c += THREADS)
                out[(r0 + r) * width + c0 + c] = sums[r * COLUMNS + c];
    }
}
