#ifndef TEXT_NAME
#include "alone.cu"
#endif
/* gradients of experts' matrices: y[e] = sum over pairs of e of x[token]^T w[pair]; TEXT_ELEMENT on tensor cores. A block of
 * TEXT_THREADS threads computes TEXT_ROWS rows and TEXT_COLUMNS columns, from tiles in TEXT_SHARED bytes of shared memory. */
KERNEL(TEXT_THREADS, 1) TEXT_NAME(
    const TEXT_ELEMENT *__restrict__ x, const TEXT_ELEMENT *__restrict__ w,
    const integer *__restrict__ start, const integer *__restrict__ order,
    TEXT_Y *__restrict__ y,
    int64_t share, int64_t experts, int64_t in, int64_t out, int64_t pitch_x, int64_t pitch_w, int64_t rows)
{
#include "expert_16bit_sizes.cu"
    enum { STEP_X = THREADS / (ROWS / 8), TIMES_X = DEPTH / STEP_X, STEP_W = COPIERS / (COLUMNS / 8), TIMES_W = DEPTH / STEP_W };
    enum { LINE_X = TEXT_WARPGROUPS ? 64 : ROWS, LINE_W = TEXT_WARPGROUPS ? 64 : COLUMNS };
    const int row_x = threadIdx.x / (ROWS / 8), at_x = threadIdx.x % (ROWS / 8) * 8;
    const int row_w = threadIdx.x / (COLUMNS / 8), at_w = threadIdx.x % (COLUMNS / 8) * 8;
    int64_t *const list = (int64_t *)(tiles + STAGES * STAGE); /* where the rows of x and of w of a tile begin, and of the next one */
    const int64_t each = (in + ROWS - 1) / ROWS * columns;
    for (int64_t block = blockIdx.x; block < rows; block += gridDim.x) {
        const int64_t e = block / each, first = start[e], count = start[e + 1] - first;
        const int64_t r0 = block % each / columns * ROWS, c0 = block % columns * COLUMNS;
        int64_t k0 = 0; /* of the tiles that are copied next, and where to */
        int to = 0, of = 0;
        uint32_t next = 0;
        const auto look = [&](int64_t k) {
            next = threadIdx.x < DEPTH && k + threadIdx.x < count ? (uint32_t)order[first + k + threadIdx.x] : 0;
        };
        const auto keep = [&](int which) {
            if (threadIdx.x < DEPTH) {
                list[which * 2 * DEPTH + threadIdx.x] = next / (uint32_t)share * pitch_x;
                list[which * 2 * DEPTH + DEPTH + threadIdx.x] = next * pitch_w;
            }
        };
        const int wide_x = vwn_within<8>(in - r0 - at_x), wide_w = vwn_within<8>(out - c0 - at_w);
        const elem *const from_x = x + r0 + at_x, *const from_w = w + c0 + at_w;
        /* columns that are not there are left as they are: nothing of them is stored */
        const auto copy = [&]() {
            elem *const tile_x = tiles + to * STAGE + vwn_in_tile<TEXT_WARPGROUPS, ROWS, DEPTH>(row_x, at_x);
            elem *const tile_w = tiles + to * STAGE + X + vwn_in_tile<TEXT_WARPGROUPS, COLUMNS, DEPTH>(row_w, at_w);
            const int64_t *const at_token = list + of * 2 * DEPTH, *const at_pair = at_token + DEPTH;
            const int left = vwn_within<DEPTH>(count - k0);
            #pragma unroll
            for (int i = 0; i < TIMES_X && wide_x > 0; i++) {
                const int r = row_x + i * STEP_X;
                vwn_copy_chunk<TEXT_WIDTH_X>(tile_x + i * STEP_X * LINE_X, from_x + at_token[r], r < left ? wide_x : 0);
            }
            #pragma unroll
            for (int i = 0; i < TIMES_W && wide_w > 0 && threadIdx.x < COPIERS; i++) {
                const int r = row_w + i * STEP_W;
                vwn_copy_chunk<TEXT_WIDTH_W>(tile_w + i * STEP_W * LINE_W, from_w + at_pair[r], r < left ? wide_w : 0);
            }
            k0 += DEPTH;
            to = to + 1 < STAGES ? to + 1 : 0;
            of ^= 1;
        };
        real sum[M / 16][N / 8][4] = {};
        __syncthreads(); /* nobody reads tiles of the block before */
        for (int i = 0; i < AHEAD; i++) {
            look(k0);
            keep(of);
            __syncthreads();
            if (k0 < count)
                copy();
            vwn_copies_commit();
        }
        look(k0);
        keep(of);
        int at = 0;
        #pragma unroll 1
        for (int64_t k = 0; k < count; k += DEPTH) {
            vwn_copies_wait<AHEAD - 1>();
#if TEXT_WARPGROUPS
            vwn_proxy_fence();
#endif
            __syncthreads(); /* the tiles and the list are there, and what is written next is done with */
            const elem *const tile = tiles + at * STAGE;
#if TEXT_WARPGROUPS
            if (r0 + top < in)
                vwn_group_mul<true, DEPTH, DEPTH, DEPTH, true, true>(sum[0], tile, top, tile + X, 0);
#endif
            if (k0 < count)
                copy();
            vwn_copies_commit();
            look(k0);
#if TEXT_WARPGROUPS
            vwn_group_wait<1>();
#else
            if (r0 + m0 < in && c0 + n0 < out)
                vwn_mul_chunks<M, N, DEPTH, ROWS, COLUMNS, true, true>(sum, tile, m0, tile + X, n0);
#endif
            keep(of);
            at = at + 1 < STAGES ? at + 1 : 0;
        }
#if TEXT_WARPGROUPS
        vwn_group_wait<0>();
        vwn_group_registers(sum[0]);
#endif
        const int right = vwn_within<N>(out - c0 - n0);
        #pragma unroll
        for (int i = 0; i < M / 16; i++)
            for (int r = 0; r < 2; r++) {
                const int64_t at_row = r0 + row + i * 16 + 8 * r;
                TEXT_Y *const to_row = y + (e * in + (at_row < in ? at_row : 0)) * out + c0 + n0;
                #pragma unroll
                for (int j = 0; j < N / 8; j += 2)
                    vwn_put_columns<TEXT_WIDTH_Y>(to_row, j * 8, column, right, sum[i][j] + 2 * r, sum[i][j + 1] + 2 * r,
                                                  at_row < in);
            }
    }
}
