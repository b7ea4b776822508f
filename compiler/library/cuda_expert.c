/* cuda_expert.c - see cuda_expert.h. */
#include "cuda_expert.h"

enum { TILE = 64 }; /* rows and columns of a block's result; a number of the texts */

/* clang-format off */
static const char *const SORT[] = {
"/* Pairs by expert: order[start[e] .. start[e + 1] - 1] are those whose index is e, from the first to the",
" * last; behind the last expert those whose index is none. A block an expert. */",
"KERNEL(256) @NAME@(",
"    const integer *__restrict__ index, integer *__restrict__ start, integer *__restrict__ order,",
"    int64_t pairs, int64_t experts, int64_t rows)",
"{",
"    enum { THREADS = 256, WARPS = THREADS / 32 };",
"    __shared__ int64_t before[WARPS];",
"    __shared__ int found[2][WARPS];",
"    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;",
"    for (int64_t e = blockIdx.x; e < rows; e += gridDim.x) {",
"        int64_t less = 0, to = 0;",
"        for (int64_t i = threadIdx.x; i < pairs; i += THREADS) {",
"            const integer at = index[i];",
"            less += (at >= 0 && at < experts ? at : experts) < e;",
"        }",
"        less = vwn_warp_sum(less);",
"        if (lane == 0)",
"            before[warp] = less;",
"        __syncthreads();",
"        for (int w = 0; w < WARPS; w++)",
"            to += before[w];",
"        if (threadIdx.x == 0)",
"            start[e] = to;",
"        if (threadIdx.x == 0 && e == experts)",
"            start[e + 1] = pairs;",
"        int stage = 0;",
"        for (int64_t i0 = 0; i0 < pairs; i0 += THREADS, stage ^= 1) {",
"            const int64_t i = i0 + threadIdx.x, at = i < pairs ? index[i] : -1;",
"            const bool is = i < pairs && (at >= 0 && at < experts ? at : experts) == e;",
"            const uint32_t bits = __ballot_sync(0xffffffffu, is);",
"            if (lane == 0)",
"                found[stage][warp] = __popc(bits);",
"            __syncthreads(); /* the next turn writes the other stage */",
"            int64_t place = to + __popc(bits & ((1u << lane) - 1));",
"            for (int w = 0; w < WARPS; w++) {",
"                place += w < warp ? found[stage][w] : 0;",
"                to += found[stage][w];",
"            }",
"            if (is)",
"                order[place] = i;",
"        }",
"        __syncthreads();",
"    }",
"}",
0,
};

static const char *const ARGUMENTS[] = {
"    const integer *__restrict__ start, const integer *__restrict__ order,",
"    int64_t share, int64_t experts, int64_t in, int64_t out, int64_t rows)",
"{",
"    enum { ROWS = 64, COLUMNS = 64, DEPTH = 32, THREADS = 128, GAP = 16 / (int)sizeof(elem) };",
"    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;",
"    /* this thread's rows of a result are `row` and row + 8, its columns `column` and the next */",
"    const int row = warp * 16 + lane / 4, column = lane % 4 * 2;",
"    const int64_t columns = (out + COLUMNS - 1) / COLUMNS;",
0,
};

static const char *const PRODUCT[] = {
"    enum { PITCH = DEPTH + GAP, PITCH_W = (TRANSPOSED ? DEPTH : COLUMNS) + GAP };",
"    __shared__ __align__(16) elem X[ROWS * PITCH], W[(TRANSPOSED ? COLUMNS : DEPTH) * PITCH_W];",
"    __shared__ int64_t pair[ROWS];",
"    for (int64_t block = blockIdx.x; block < rows; block += gridDim.x) {",
"        int64_t tile = block / columns, e = 0, first = 0, count = 0;",
"        #pragma unroll 1",
"        for (; e <= experts; e++) {",
"            first = start[e];",
"            count = start[e + 1] - first;",
"            if (tile < (count + ROWS - 1) / ROWS)",
"                break;",
"            tile -= (count + ROWS - 1) / ROWS;",
"        }",
"        if (e > experts) /* the block is one for which there would be work with other counts */",
"            continue;",
"        const int64_t c0 = block % columns * COLUMNS;",
"        const int there = vwn_within<ROWS>(count - tile * ROWS);",
"        if (threadIdx.x < ROWS)",
"            pair[threadIdx.x] = threadIdx.x < there ? order[first + tile * ROWS + threadIdx.x] : 0;",
"        __syncthreads();",
"        real sum[COLUMNS / 8][4];",
"        vwn_clear<COLUMNS>(sum);",
"        for (int64_t k0 = 0; k0 < (e < experts ? in : 0); k0 += DEPTH) {",
"            vwn_tile_load<ROWS, DEPTH, WIDTH_X, THREADS>(X, in - k0, [&](int r) {",
"                return r < there ? x + (uint32_t)pair[r] / (uint32_t)share * in + k0 : nullptr;",
"            });",
"            if constexpr (TRANSPOSED)",
"                vwn_tile_load<COLUMNS, DEPTH, WIDTH_W, THREADS>(W, in - k0, [&](int r) {",
"                    return c0 + r < out ? w + (e * out + c0 + r) * in + k0 : nullptr;",
"                });",
"            else",
"                vwn_tile_load<DEPTH, COLUMNS, WIDTH_W, THREADS>(W, out - c0, [&](int r) {",
"                    return k0 + r < in ? w + (e * in + k0 + r) * out + c0 : nullptr;",
"                });",
"            __syncthreads();",
"            vwn_mul_tiles<COLUMNS, DEPTH, PITCH, PITCH_W, false, !TRANSPOSED>(sum, X + warp * 16 * PITCH, W);",
"            __syncthreads();",
"        }",
"        for (int r = 0; r < 2; r++)",
"            if (row + 8 * r < there)",
"                for (int i = 0; i < COLUMNS / 8; i++)",
"                    vwn_put_two(y + pair[row + 8 * r] * out + c0, i * 8 + column, out - c0,",
"                                sum[i][2 * r], sum[i][2 * r + 1]);",
"        __syncthreads();",
"    }",
"}",
0,
};

static const char *const GRADIENT[] = {
"    enum { PITCH = ROWS + GAP };",
"    __shared__ __align__(16) elem X[DEPTH * PITCH], DY[DEPTH * PITCH];",
"    const int64_t each = (in + ROWS - 1) / ROWS * columns;",
"    for (int64_t block = blockIdx.x; block < rows; block += gridDim.x) {",
"        const int64_t e = block / each, first = start[e], count = start[e + 1] - first;",
"        const int64_t r0 = block % each / columns * ROWS, c0 = block % columns * COLUMNS;",
"        real sum[COLUMNS / 8][4];",
"        vwn_clear<COLUMNS>(sum);",
"        for (int64_t k0 = 0; k0 < count; k0 += DEPTH) {",
"            const integer *const pair = order + first + k0;",
"            vwn_tile_load<DEPTH, ROWS, WIDTH_X, THREADS>(X, in - r0, [&](int r) {",
"                return k0 + r < count ? x + (uint32_t)pair[r] / (uint32_t)share * in + r0 : nullptr;",
"            });",
"            vwn_tile_load<DEPTH, COLUMNS, WIDTH_W, THREADS>(DY, out - c0, [&](int r) {",
"                return k0 + r < count ? w + pair[r] * out + c0 : nullptr;",
"            });",
"            __syncthreads();",
"            vwn_mul_tiles<COLUMNS, DEPTH, PITCH, PITCH, true, true>(sum, X + warp * 16, DY);",
"            __syncthreads();",
"        }",
"        for (int r = 0; r < 2; r++)",
"            if (r0 + row + 8 * r < in)",
"                for (int i = 0; i < COLUMNS / 8; i++)",
"                    vwn_put_two(y + (e * in + r0 + row + 8 * r) * out + c0, i * 8 + column, out - c0,",
"                                sum[i][2 * r], sum[i][2 * r + 1]);",
"    }",
"}",
0,
};
/* clang-format on */

int cuda_expert_width(Half half, int64_t row, int64_t place)
{
    int width = half ? 8 : 4;
    while (row % width || place % width)
        width /= 2;
    return width;
}

int64_t cuda_expert_blocks(const CudaExpertClass *c, int64_t pairs, int64_t experts, int64_t in,
                           int64_t out)
{
    int64_t columns = (out + TILE - 1) / TILE;
    if (c->dw)
        return experts * ((in + TILE - 1) / TILE) * columns;
    int64_t groups = experts + 1 < pairs ? experts + 1 : pairs; /* each may have a tile in part */
    return (pairs / TILE + groups) * columns;
}

static void put_lines(Buf *b, const char *const *line)
{
    for (; *line; line++)
        buf_printf(b, "%s\n", *line);
}

const char *cuda_expert_sort(Arena *arena, size_t *length)
{
    Buf b = buf_new(arena);
    put_lines(&b, SORT);
    *length = b.n;
    return b.s;
}

const char *cuda_expert(Arena *arena, const CudaExpertClass *c, size_t *length)
{
    Buf b = buf_new(arena);
    buf_printf(&b, "/* %s\n * %s. A block of %d threads computes %d rows and as many columns. */\n",
               c->dw ? "gradients of experts' matrices: y[e] = sum over pairs of e of x[token]^T w[pair];"
                     : "products by expert: y[pair] = x[token] w[expert of the pair];",
               c->half ? arena_printf(arena, "%s on tensor cores", half_word(c->half)) : "float32", CUDA_EXPERT_THREADS, TILE);
    buf_printf(&b, "KERNEL(%d, 1) @NAME@(\n", CUDA_EXPERT_THREADS);
    buf_printf(&b, "    const %s *__restrict__ x, const %s *__restrict__ w,\n", half_word(c->x_half),
               half_word(c->w_half));
    const char *const *line = ARGUMENTS;
    buf_printf(&b, "%s\n    %s *__restrict__ y,\n", *line++, half_word(c->y_half));
    for (; strcmp(*line, "{") != 0; line++)
        buf_printf(&b, "%s\n", *line);
    buf_printf(&b, "{\n    typedef %s elem;\n", half_word(c->half));
    buf_printf(&b, "    enum { TRANSPOSED = %d, WIDTH_X = %d, WIDTH_W = %d };\n", c->transposed,
               c->x_width, c->w_width);
    put_lines(&b, line + 1);
    put_lines(&b, c->dw ? GRADIENT : PRODUCT);
    *length = b.n;
    return b.s;
}
