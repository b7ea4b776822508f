/* cuda_scatter.c - see cuda_scatter.h. */
#include "cuda_scatter.h"

#include "compiler/graph/target.h"
#include "library_text.h"

enum { ROWS = 64, COLUMNS = 256 }; /* of a block; the numbers of the text */

int cuda_scatter_low(int64_t rows)
{
    int low = 0;
    while (rows >> low > target_gpu.tuned->scatter_groups)
        low++;
    return low;
}

int64_t cuda_scatter_groups(int64_t rows) { return ((rows - 1) >> cuda_scatter_low(rows)) + 1; }

int64_t cuda_scatter_blocks(int64_t rows, int64_t width)
{
    int64_t group = (int64_t)1 << cuda_scatter_low(rows), each = group < ROWS ? group : ROWS;
    return (rows + each - 1) / each * ((width + COLUMNS - 1) / COLUMNS);
}

const char *cuda_scatter(Arena *arena, CudaScatterKernel which, Half half, size_t *length)
{
    static const char *const file[] = {"scatter.cu", "scatter_zeros.cu", "scatter_any.cu"};
    const TextValue value[] = {{"ELEMENT", half_word(half)}};
    Buf b = buf_new(arena);
    library_text(&b, file[which], value, COUNT_OF(value));
    *length = b.n;
    return b.s;
}
