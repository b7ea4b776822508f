/* cuda_expert.c - see cuda_expert.h. */
#include "cuda_expert.h"

#include "library_text.h"

enum { TILE = 64 }; /* rows and columns of a block's result; a number of the texts */

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

const char *cuda_expert_sort(Arena *arena, size_t *length)
{
    Buf b = buf_new(arena);
    library_text(&b, "expert_sort.cu", NULL, 0);
    *length = b.n;
    return b.s;
}

const char *cuda_expert(Arena *arena, const CudaExpertClass *c, size_t *length)
{
    const char *type = half_word(c->half);
    const TextValue value[] = {
        {"ELEMENT", type},
        {"KIND", c->half ? arena_printf(arena, "%s on tensor cores", type) : "float32"},
        {"X", half_word(c->x_half)},
        {"W", half_word(c->w_half)},
        {"Y", half_word(c->y_half)},
        {"WIDTH_X", text_number(arena, c->x_width)},
        {"WIDTH_W", text_number(arena, c->w_width)},
        {"TRANSPOSED", text_number(arena, c->transposed)},
        {"GRADIENT", text_number(arena, c->dw)},
    };
    Buf b = buf_new(arena);
    library_text(&b, "expert.cu", value, COUNT_OF(value));
    *length = b.n;
    return b.s;
}
