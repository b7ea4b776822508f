#ifndef TEXT_NAME
#include "alone.cu"
#endif
#if TEXT_GRADIENT
/* gradients of experts' matrices: y[e] = sum over pairs of e of x[token]^T w[pair];
 * float32. A block of 128 threads computes 64 rows and as many columns. */
#else
/* products by expert: y[pair] = x[token] w[expert of the pair];
 * float32. A block of 128 threads computes 64 rows and as many columns. */
#endif
KERNEL(128, 1) TEXT_NAME(
    const TEXT_X *__restrict__ x, const TEXT_W *__restrict__ w,
    const integer *__restrict__ start, const integer *__restrict__ order,
    TEXT_Y *__restrict__ y,
    int64_t share, int64_t experts, int64_t in, int64_t out, int64_t pitch_x, int64_t pitch_w, int64_t rows)
{
    enum { TRANSPOSED = TEXT_TRANSPOSED, WIDTH_X = TEXT_WIDTH_X, WIDTH_W = TEXT_WIDTH_W };
    enum { ROWS = 64, COLUMNS = 64, DEPTH = 32, THREADS = 128, GAP = 4 };
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    /* this thread's rows of a result are `row` and row + 8, its columns `column` and the next */
    const int row = warp * 16 + lane / 4, column = lane % 4 * 2;
    const int64_t columns = (out + COLUMNS - 1) / COLUMNS;
#if TEXT_GRADIENT
    enum { PITCH = ROWS + GAP };
    __shared__ __align__(16) real X[DEPTH * PITCH], DY[DEPTH * PITCH];
    const int64_t each = (in + ROWS - 1) / ROWS * columns;
    for (int64_t block = blockIdx.x; block < rows; block += gridDim.x) {
        const int64_t e = block / each, first = start[e], count = start[e + 1] - first;
        const int64_t r0 = block % each / columns * ROWS, c0 = block % columns * COLUMNS;
        real sum[COLUMNS / 8][4];
        vwn_clear<COLUMNS>(sum);
        for (int64_t k0 = 0; k0 < count; k0 += DEPTH) {
            const integer *const pair = order + first + k0;
            vwn_tile_load<DEPTH, ROWS, WIDTH_X, THREADS>(X, in - r0, [&](int r) {
                return k0 + r < count ? x + (uint32_t)pair[r] / (uint32_t)share * pitch_x + r0 : nullptr;
            });
            vwn_tile_load<DEPTH, COLUMNS, WIDTH_W, THREADS>(DY, out - c0, [&](int r) {
                return k0 + r < count ? w + pair[r] * pitch_w + c0 : nullptr;
            });
            __syncthreads();
            vwn_mul_tiles<COLUMNS, DEPTH, PITCH, PITCH, true, true>(sum, X + warp * 16, DY);
            __syncthreads();
        }
        for (int r = 0; r < 2; r++)
            if (r0 + row + 8 * r < in)
                for (int i = 0; i < COLUMNS / 8; i++)
                    vwn_put_two(y + (e * in + r0 + row + 8 * r) * out + c0, i * 8 + column, out - c0,
                                sum[i][2 * r], sum[i][2 * r + 1]);
    }
}
#else
    enum { PITCH = DEPTH + GAP, PITCH_W = (TRANSPOSED ? DEPTH : COLUMNS) + GAP };
    __shared__ __align__(16) real X[ROWS * PITCH], W[(TRANSPOSED ? COLUMNS : DEPTH) * PITCH_W];
    __shared__ int64_t pair[ROWS];
    for (int64_t block = blockIdx.x; block < rows; block += gridDim.x) {
        int64_t tile = block / columns, e = 0, first = 0, count = 0;
        #pragma unroll 1
        for (; e <= experts; e++) {
            first = start[e];
            count = start[e + 1] - first;
            if (tile < (count + ROWS - 1) / ROWS)
                break;
            tile -= (count + ROWS - 1) / ROWS;
        }
        if (e > experts) /* the block is one for which there would be work with other counts */
            continue;
        const int64_t c0 = block % columns * COLUMNS;
        const int there = vwn_within<ROWS>(count - tile * ROWS);
        if (threadIdx.x < ROWS)
            pair[threadIdx.x] = threadIdx.x < there ? order[first + tile * ROWS + threadIdx.x] : 0;
        __syncthreads();
        real sum[COLUMNS / 8][4];
        vwn_clear<COLUMNS>(sum);
        for (int64_t k0 = 0; k0 < (e < experts ? in : 0); k0 += DEPTH) {
            vwn_tile_load<ROWS, DEPTH, WIDTH_X, THREADS>(X, in - k0, [&](int r) {
                return r < there ? x + (uint32_t)pair[r] / (uint32_t)share * pitch_x + k0 : nullptr;
            });
            if constexpr (TRANSPOSED)
                vwn_tile_load<COLUMNS, DEPTH, WIDTH_W, THREADS>(W, in - k0, [&](int r) {
                    return c0 + r < out ? w + (e * out + c0 + r) * pitch_w + k0 : nullptr;
                });
            else
                vwn_tile_load<DEPTH, COLUMNS, WIDTH_W, THREADS>(W, out - c0, [&](int r) {
                    return k0 + r < in ? w + (e * in + k0 + r) * pitch_w + c0 : nullptr;
                });
            __syncthreads();
            vwn_mul_tiles<COLUMNS, DEPTH, PITCH, PITCH_W, false, !TRANSPOSED>(sum, X + warp * 16 * PITCH, W);
            __syncthreads();
        }
        for (int r = 0; r < 2; r++)
            if (row + 8 * r < there)
                for (int i = 0; i < COLUMNS / 8; i++)
                    vwn_put_two(y + pair[row + 8 * r] * out + c0, i * 8 + column, out - c0,
                                sum[i][2 * r], sum[i][2 * r + 1]);
        __syncthreads();
    }
}
#endif
