#ifndef TEXT_NAME
#include "alone.cu"
#endif
/* products by expert: y[pair] = x[token] w[expert of the pair]; TEXT_ELEMENT on tensor cores. A block of TEXT_THREADS threads
 * computes TEXT_ROWS rows and TEXT_COLUMNS columns, from tiles in TEXT_SHARED bytes of shared memory. */
KERNEL(TEXT_THREADS, TEXT_BLOCKS) TEXT_NAME(
    const TEXT_ELEMENT *__restrict__ x, const TEXT_ELEMENT *__restrict__ w,
    const integer *__restrict__ start, const integer *__restrict__ order,
    TEXT_Y *__restrict__ y,
    int64_t share, int64_t experts, int64_t in, int64_t out, int64_t pitch_x, int64_t pitch_w, int64_t rows)
{
#include "expert_16bit_sizes.cu"
    enum { TRANSPOSED = TEXT_TRANSPOSED, WIDE = TRANSPOSED ? DEPTH : COLUMNS, HIGH = TRANSPOSED ? COLUMNS : DEPTH };
    enum { LINE_W = TEXT_WARPGROUPS ? 64 : WIDE, NEXT_W = TEXT_WARPGROUPS ? HIGH * 64 : 64 }; /* to a line below, and beside */
    enum { STEP_X = THREADS / 8, TIMES_X = ROWS / STEP_X };
    uint32_t *const pair = (uint32_t *)(tiles + STAGES * STAGE);
    const int64_t pitch = (uint32_t)pitch_w; /* of half as many registers */
    int64_t *const found = (int64_t *)(pair + ROWS); /* the tile's expert, where its pairs begin, how many from there on */
    for (int64_t block = blockIdx.x; block < rows; block += gridDim.x) {
        const int64_t tile = block / columns, c0 = (block - tile * columns) * COLUMNS;
        if (warp == 0) { /* whose is it? tiles of an expert follow those of the experts before */
            const int me = vwn_thread();
            const int64_t each = experts / 32 + 1, from = vwn_least(me * each, experts + 1), to = vwn_least(from + each, experts + 1);
            int own = 0; /* tiles of the experts from .. to - 1, which this thread looks at */
            #pragma unroll 4
            for (int64_t e = from; e < to; e++)
                own += vwn_tiles_of<ROWS>(start[e + 1] - start[e]);
            int upto = own;
            for (int k = 1; k < 32; k *= 2) {
                const int before = __shfl_up_sync(0xffffffffu, upto, k);
                upto += me >= k ? before : 0;
            }
            if (me == 31 && tile >= upto)
                found[0] = experts + 1;
            int64_t mine = tile - (upto - own);
            for (int64_t e = from; e < to && mine >= 0 && tile < upto; e++) {
                const int64_t first = start[e], count = start[e + 1] - first;
                if (mine < vwn_tiles_of<ROWS>(count)) {
                    found[0] = e;
                    found[1] = first + mine * ROWS;
                    found[2] = count - mine * ROWS;
                }
                mine -= vwn_tiles_of<ROWS>(count);
            }
        }
        __syncthreads();
        const int64_t e = found[0], first = found[1];
        if (e > experts) /* for this block, and those behind, there would be work with other counts */
            break;
        const int there = vwn_within<ROWS>(found[2]);
        const elem *from_x[TIMES_X], *from_w;
        {
            const int line = vwn_line(), piece = vwn_piece();
            from_w = w + e * (TRANSPOSED ? out : in) * pitch + (TRANSPOSED ? c0 + line : line) * pitch + (TRANSPOSED ? piece : c0 + piece);
            #pragma unroll
            for (int i = 0; i < TIMES_X; i++) {
                const int r = line + i * STEP_X;
                const uint32_t of = r < there ? (uint32_t)order[first + r] : 0;
                if (r < there && piece == 0)
                    pair[r] = of;
                from_x[i] = x + of / (uint32_t)share * pitch_x + piece;
            }
        }
        __syncthreads();
        const int high = vwn_within<COLUMNS>(out - c0); /* columns that are there */
        /* Tiles along the sum; a pair without an expert has none, and zeros. How many are copied, and where the next one goes. */
        const int steps = e < experts ? (int)vwn_tiles_of<DEPTH>(in) : 0;
        int copied = 0, to = 0;
        const bool whole = TEXT_WIDTH_X == 8 && TEXT_WIDTH_W == 8 && high == COLUMNS, copies_w = threadIdx.x < COPIERS;
        /* rows and columns that are not there are left as they are: nothing of them is stored */
        const auto copy = [&]() {
            const int line = vwn_line(), piece = vwn_piece();
            const int left = copied + 1 < steps ? DEPTH : (int)(((uint32_t)in - 1) % DEPTH) + 1;
            elem *const tile_x = tiles + to * STAGE + vwn_chunk<DEPTH>(line, piece);
            elem *const tile_w = tiles + to * STAGE + X + vwn_in_tile<TEXT_WARPGROUPS, WIDE, HIGH>(line, piece);
            const elem *from = from_w;
            if (whole && left == DEPTH) {
                #pragma unroll
                for (int i = 0; i < TIMES_X; i++)
                    if (line + i * STEP_X < there)
                        vwn_copy_whole(tile_x + i * STEP_X * DEPTH, from_x[i]);
                #pragma unroll
                for (int r = 0; r < HIGH && copies_w; r += STEP, from += STEP * pitch)
                    #pragma unroll
                    for (int c = 0; c < WIDE; c += 64)
                        vwn_copy_whole(tile_w + r * LINE_W + c / 64 * NEXT_W, from + c);
            } else {
                #pragma unroll
                for (int i = 0; i < TIMES_X; i++)
                    if (line + i * STEP_X < there)
                        vwn_copy_chunk<TEXT_WIDTH_X>(tile_x + i * STEP_X * DEPTH, from_x[i], left - piece);
                #pragma unroll 1 /* more would want registers of the sums */
                for (int r = 0; r < HIGH && copies_w; r += STEP, from += STEP * pitch)
                    #pragma unroll
                    for (int c = 0; c < WIDE; c += 64)
                        if ((TRANSPOSED ? line + r : piece + c) < high)
                            vwn_copy_chunk<TEXT_WIDTH_W>(tile_w + r * LINE_W + c / 64 * NEXT_W, from + c,
                                                         TRANSPOSED ? left - piece : line + r < left ? high - piece - c : 0);
            }
            #pragma unroll
            for (int i = 0; i < TIMES_X; i++)
                from_x[i] += DEPTH;
            from_w += TRANSPOSED ? DEPTH : DEPTH * pitch;
            copied++;
            to = to + 1 < STAGES ? to + 1 : 0;
        };
        real sum[M / 16][N / 8][4] = {};
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
            __syncthreads(); /* the tiles are there, and those that are copied over next are done with */
            const elem *const tile = tiles + at * STAGE;
#if TEXT_WARPGROUPS
            if (top < there)
                vwn_group_mul<true, DEPTH, ROWS, HIGH, false, !TRANSPOSED>(sum[0], tile, top, tile + X, 0);
#endif
            if (copied < steps)
                copy();
            vwn_copies_commit();
#if TEXT_WARPGROUPS
            vwn_group_wait<1>();
#else
            if (m0 < there && c0 + n0 < out)
                vwn_mul_chunks<M, N, DEPTH, DEPTH, WIDE, false, !TRANSPOSED>(sum, tile, m0, tile + X, n0);
#endif
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
                const int at_row = row + i * 16 + 8 * r;
                TEXT_Y *const to_row = y + pair[vwn_least(at_row, there - 1)] * out + c0 + n0;
                vwn_put_any<N>(to_row, column, right, sum[i], r, at_row < there, out % 4 == 0);
            }
    }
}
