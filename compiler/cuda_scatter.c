/* cuda_scatter.c - see cuda_scatter.h. */
#include "cuda_scatter.h"

enum { ROWS = 64, COLUMNS = 256 }; /* of a block; the numbers of the text */

/* clang-format off */
static const char *const TEXT[] = {
"/* out[index[i]][..] += dy[i][..] in the order of i, zeros before: the gradient of a table (rows, width).",
" * A block of 128 threads: 64 rows and 256 columns, in 65,536 bytes of shared memory. */",
"KERNEL(128) @NAME@(",
"    const @ELEM@ *__restrict__ dy, const integer *__restrict__ index, real *__restrict__ out,",
"    int64_t count, int64_t width, int64_t of_table, int64_t rows)",
"{",
"    enum { ROWS = 64, COLUMNS = 256, THREADS = 128, WARPS = THREADS / 32 };",
"    __shared__ uint32_t found[2][WARPS]; /* a bit for each index of a warp that is of these rows */",
"    __shared__ int row[2][THREADS];      /* its row */",
"    DYN_SMEM(memory);",
"    real *const sums = (real *)memory;",
"    const int64_t parts = (width + COLUMNS - 1) / COLUMNS;",
"    const int64_t r0 = blockIdx.x / parts * ROWS, c0 = blockIdx.x % parts * COLUMNS;",
"    const int64_t of_rows = of_table - r0 < ROWS ? of_table - r0 : ROWS;",
"    const int64_t of_columns = width - c0 < COLUMNS ? width - c0 : COLUMNS;",
"    const int me = threadIdx.x;",
"    for (int r = 0; r < of_rows; r++)",
"        for (int c = me; c < of_columns; c += THREADS)",
"            sums[r * COLUMNS + c] = 0;",
"    int stage = 0;",
"    for (int64_t i0 = 0; i0 < count; i0 += THREADS, stage ^= 1) {",
"        const int64_t at = i0 + me < count ? index[i0 + me] - r0 : -1;",
"        const bool is = at >= 0 && at < of_rows;",
"        const uint32_t bits = __ballot_sync(0xffffffffu, is);",
"        row[stage][me] = (int)(is ? at : 0);",
"        if (me % 32 == 0)",
"            found[stage][me / 32] = bits;",
"        __syncthreads(); /* the next turn writes the other stage */",
"        for (int w = 0; w < WARPS; w++)",
"            for (uint32_t left = found[stage][w]; left; left &= left - 1) {",
"                const int k = w * 32 + __ffs(left) - 1;",
"                const @ELEM@ *const from = dy + (i0 + k) * width + c0;",
"                real *const to = sums + row[stage][k] * COLUMNS;",
"                for (int c = me; c < of_columns; c += THREADS)",
"                    to[c] += vwn_number(from[c]);",
"            }",
"    }",
"    for (int r = 0; r < of_rows; r++)",
"        for (int c = me; c < of_columns; c += THREADS)",
"            out[(r0 + r) * width + c0 + c] = sums[r * COLUMNS + c];",
"}",
};
/* clang-format on */

int64_t cuda_scatter_blocks(int64_t rows, int64_t width)
{
    return (rows + ROWS - 1) / ROWS * ((width + COLUMNS - 1) / COLUMNS);
}

const char *cuda_scatter(Arena *arena, bool bf16, size_t *length)
{
    static const char mark[] = "@ELEM@";
    Buf b = buf_new(arena);
    for (size_t i = 0; i < COUNT_OF(TEXT); i++) {
        const char *at = strstr(TEXT[i], mark);
        if (at)
            buf_printf(&b, "%.*s%s%s\n", (int)(at - TEXT[i]), TEXT[i], bf16 ? "bf16" : "real",
                       at + strlen(mark));
        else
            buf_printf(&b, "%s\n", TEXT[i]);
    }
    *length = b.n;
    return b.s;
}
