#ifndef TEXT_NAME
#include "alone.cu"
#endif
/* gradients of experts' matrices: y[e] = sum over pairs of e of x[token]^T w[pair]; TEXT_ELEMENT on tensor cores. A block of
 * TEXT_THREADS threads computes TEXT_ROWS rows and TEXT_COLUMNS columns, from tiles in TEXT_SHARED bytes of shared memory. */
KERNEL(TEXT_THREADS, TEXT_BLOCKS) TEXT_NAME(
    const TEXT_ELEMENT *__restrict__ x, const TEXT_ELEMENT *__restrict__ w,
    const integer *__restrict__ start, const integer *__restrict__ order,
    TEXT_Y *__restrict__ y,
    int64_t share, int64_t experts, int64_t in, int64_t out, int64_t pitch_x, int64_t pitch_w, int64_t rows)
{
#include "expert_16bit_sizes.cu"
    enum { LINE_X = TEXT_WARPGROUPS ? 64 : ROWS, LINE_W = TEXT_WARPGROUPS ? 64 : COLUMNS, NEXT = TEXT_WARPGROUPS ? DEPTH * 64 : 64 };
    /* Where the rows of x and of w begin of tiles that are copied and of the one behind; tile by tile, in turn. */
    enum { LISTS = AHEAD + 1 };
    int64_t *const at_token = (int64_t *)(tiles + STAGES * STAGE), *const at_pair = at_token + LISTS * DEPTH;
    const int64_t each = (int64_t)vwn_tiles_of<ROWS>(in) * columns;
    for (int64_t block = blockIdx.x; block < rows; block += gridDim.x) {
        const int64_t e = block / each, first = start[e];
        const uint32_t count = (uint32_t)(start[e + 1] - first);
        const uint32_t of_e = (uint32_t)(block - e * each), down = of_e / columns;
        const int64_t r0 = (int64_t)down * ROWS, c0 = (int64_t)(of_e - down * columns) * COLUMNS;
        const auto look = [&](uint32_t k) { return k < count ? (uint32_t)order[first + k] : 0; };
        const auto keep = [&](int at, uint32_t pair) {
            at_token[at] = pair / (uint32_t)share * pitch_x;
            at_pair[at] = pair * pitch_w;
        };
        /* Tiles along the sum; how many are copied, where the next one goes and where its list is. */
        const int steps = vwn_tiles_of<DEPTH>(count), last = (int)(count - (uint32_t)(steps - 1) * DEPTH);
        int copied = 0, to = 0, of = 0;
        const int wide_x = vwn_within<ROWS>(in - r0), wide_w = vwn_within<COLUMNS>(out - c0); /* columns that are there */
        const bool whole = TEXT_WIDTH_X == 8 && TEXT_WIDTH_W == 8 && wide_x == ROWS && wide_w == COLUMNS;
        const elem *const from_x = x + r0 + vwn_piece(), *const from_w = w + c0 + vwn_piece();
        /* columns that are not there are left as they are: nothing of them is stored */
        const auto copy = [&]() {
            const int line = vwn_line(), piece = vwn_piece();
            const int left = copied + 1 < steps ? DEPTH : last;
            elem *const tile_x = tiles + to * STAGE + vwn_in_tile<TEXT_WARPGROUPS, ROWS, DEPTH>(line, piece);
            elem *const tile_w = tiles + to * STAGE + X + vwn_in_tile<TEXT_WARPGROUPS, COLUMNS, DEPTH>(line, piece);
            #pragma unroll
            for (int r = 0; r < DEPTH && threadIdx.x < COPIERS; r += STEP) {
                const elem *const row_x = from_x + at_token[of * DEPTH + line + r], *const row_w = from_w + at_pair[of * DEPTH + line + r];
                if (whole && left == DEPTH) {
                    #pragma unroll
                    for (int c = 0; c < ROWS; c += 64)
                        vwn_copy_whole(tile_x + r * LINE_X + c / 64 * NEXT, row_x + c);
                    #pragma unroll
                    for (int c = 0; c < COLUMNS; c += 64)
                        vwn_copy_whole(tile_w + r * LINE_W + c / 64 * NEXT, row_w + c);
                } else {
                    #pragma unroll
                    for (int c = 0; c < ROWS; c += 64)
                        if (piece + c < wide_x)
                            vwn_copy_chunk<TEXT_WIDTH_X>(tile_x + r * LINE_X + c / 64 * NEXT, row_x + c, line + r < left ? wide_x - piece - c : 0);
                    #pragma unroll
                    for (int c = 0; c < COLUMNS; c += 64)
                        if (piece + c < wide_w)
                            vwn_copy_chunk<TEXT_WIDTH_W>(tile_w + r * LINE_W + c / 64 * NEXT, row_w + c, line + r < left ? wide_w - piece - c : 0);
                }
            }
            copied++;
            to = to + 1 < STAGES ? to + 1 : 0;
            of = of + 1 < LISTS ? of + 1 : 0;
        };
        real sum[M / 16][N / 8][4] = {};
        __syncthreads(); /* nobody reads tiles of the block before */
        for (int t = threadIdx.x; t < LISTS * DEPTH; t += THREADS)
            keep(t, look(t));
        __syncthreads();
        for (int i = 0; i < AHEAD; i++) {
            if (copied < steps)
                copy();
            vwn_copies_commit();
        }
        int at = 0;
        #pragma unroll 1
        for (int step = 0; step < steps; step++) {
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
            if (copied < steps)
                copy();
            vwn_copies_commit();
            const uint32_t next = threadIdx.x < DEPTH ? look((uint32_t)copied * DEPTH + threadIdx.x) : 0;
#if TEXT_WARPGROUPS
            vwn_group_wait<1>();
#else
            if (r0 + m0 < in && c0 + n0 < out)
                vwn_mul_chunks<M, N, DEPTH, ROWS, COLUMNS, true, true>(sum, tile, m0, tile + X, n0);
#endif
            if (threadIdx.x < DEPTH)
                keep(of * DEPTH + threadIdx.x, next);
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
                vwn_put_any<N>(to_row, column, right, sum[i], r, at_row < in, out % 4 == 0);
            }
    }
}
