/* cuda_expert.c - see cuda_expert.h. */
#include "cuda_expert.h"

#include "compiler/graph/target.h"
#include "library_text.h"

/* ---- which text a product has ---- */

enum { DEPTH = 64 }; /* a number of the texts */

/* The widest access, up to `most` elements, that divides a number of elements. */
static int width_of(int most, int64_t n)
{
    while (n % most)
        most /= 2;
    return most;
}

static int64_t tiles_of(int64_t n, int64_t tile) { return (n + tile - 1) / tile; }

void cuda_expert_choose(CudaExpertClass *c, const CudaExpertSizes *s, int64_t x_at, int64_t w_at)
{
    c->half = c->x_half == c->w_half ? c->x_half : HALF_NONE;
    c->x_width = width_of(width_of(16 / half_bytes(c->x_half), s->pitch_x), x_at);
    c->w_width = width_of(width_of(16 / half_bytes(c->w_half), s->pitch_w), w_at);
    if (!c->half) { /* what is behind a row may be anything, and only copies of 16 bits leave it out */
        c->x_width = width_of(c->x_width, s->in);
        c->w_width = width_of(c->w_width, c->transposed ? s->in : s->out);
    }
    c->tile = CUDA_EXPERT_SMALL;
    bool whole = c->half && c->x_width > 1 &&
                 c->w_width > 1; /* one number at a time passes through registers, which sums want */
    for (int tile = CUDA_EXPERT_SQUARE; whole && tile <= CUDA_EXPERT_WIDE; tile++) {
        CudaExpertLaunch l = cuda_expert_launch(
            &(CudaExpertClass){.half = c->half, .tile = (CudaExpertTile)tile, .warpgroups = c->warpgroups});
        int64_t groups =
            s->experts < s->pairs ? s->experts : s->pairs; /* of which each has as many, if all goes well */
        int64_t high = c->dw ? s->in : groups ? s->pairs / groups : 0;
        int64_t blocks = groups * tiles_of(high, l.rows) * tiles_of(s->out, l.columns);
        int64_t least = c->warpgroups ? l.rows / 2 : l.rows * 3 / 4; /* groups without rows multiply nothing */
        if (high >= least && 4 * s->out >= 3 * l.columns && blocks >= target_gpu.tuned->expert_blocks)
            c->tile = (CudaExpertTile)tile;
    }
}

static bool by_groups(const CudaExpertClass *c) { return c->half && c->warpgroups && c->tile != CUDA_EXPERT_SMALL; }

CudaExpertLaunch cuda_expert_launch(const CudaExpertClass *c)
{
    static const CudaExpertLaunch of[] = {
        [CUDA_EXPERT_SMALL] = {.rows = 64, .columns = 64, .threads = 128, .stages = 3, .blocks = 4},
        [CUDA_EXPERT_SQUARE] = {.rows = 128, .columns = 128, .threads = 128, .stages = 3, .blocks = 1},
        [CUDA_EXPERT_WIDE] = {.rows = 128, .columns = 256, .threads = 256, .stages = 2, .blocks = 1},
    };
    static const CudaExpertLaunch of_groups[] = {
        [CUDA_EXPERT_SQUARE] = {.rows = 128, .columns = 128, .threads = 256, .stages = 3, .blocks = 2},
        [CUDA_EXPERT_WIDE] = {.rows = 192,
                              .columns = 256,
                              .threads = 384,
                              .stages = 4,
                              .blocks = 1}, /* so many rows that caches keep up */
    };
    CudaExpertLaunch l = by_groups(c) ? of_groups[c->tile] : of[c->half ? c->tile : CUDA_EXPERT_SMALL];
    if (c->half) { /* and numbers of pairs and what a block finds, or lists of where rows begin */
        enum { FOUND = 4 * 8 };
        const int lists = by_groups(c) ? l.stages - 1 : l.stages;
        l.shared = 2ll * l.stages * (l.rows + l.columns) * DEPTH + (c->dw ? 8 * 2 * DEPTH * lists : 4 * l.rows + FOUND);
    }
    return l;
}

int64_t cuda_expert_blocks(const CudaExpertClass *c, const CudaExpertSizes *s)
{
    CudaExpertLaunch l = cuda_expert_launch(c);
    int64_t columns = tiles_of(s->out, l.columns);
    if (c->dw)
        return s->experts * tiles_of(s->in, l.rows) * columns;
    int64_t groups = s->experts + 1 < s->pairs ? s->experts + 1 : s->pairs; /* each may have a tile in part */
    return (s->pairs / l.rows + groups) * columns;
}

void cuda_expert_multiples(const CudaExpertClass *c, int64_t multiple[4])
{
    multiple[0] = c->half ? 1 : c->transposed && c->w_width > c->x_width ? c->w_width : c->x_width;
    multiple[1] = c->half || c->transposed ? 1 : c->w_width;
    multiple[2] = c->x_width;
    multiple[3] = c->w_width;
}

/* ---- texts ---- */

const char *cuda_expert_sort(Arena *arena, size_t *length)
{
    Buf b = buf_new(arena);
    library_text(&b, "expert_sort.cu", NULL, 0);
    *length = b.n;
    return b.s;
}

const char *cuda_expert(Arena *arena, const CudaExpertClass *c, size_t *length)
{
    CudaExpertLaunch l = cuda_expert_launch(c);
    const TextValue value[] = {
        {"ELEMENT", half_word(c->half)},
        {"X", half_word(c->x_half)},
        {"W", half_word(c->w_half)},
        {"Y", half_word(c->y_half)},
        {"WIDTH_X", text_number(arena, c->x_width)},
        {"WIDTH_W", text_number(arena, c->w_width)},
        {"TRANSPOSED", text_number(arena, c->transposed)},
        {"GRADIENT", text_number(arena, c->dw)},
        {"ROWS", text_number(arena, l.rows)},
        {"COLUMNS", text_number(arena, l.columns)},
        {"THREADS", text_number(arena, l.threads)},
        {"BLOCKS", text_number(arena, l.blocks)},
        {"STAGES", text_number(arena, l.stages)},
        {"DOWN", text_number(arena, by_groups(c) ? l.threads / 32 : 2)},
        {"WARPGROUPS", text_number(arena, by_groups(c))},
        {"SHARED", text_number(arena, l.shared)},
    };
    Buf b = buf_new(arena);
    library_text(&b,
                 !c->half ? "expert.cu"
                 : c->dw  ? "expert_16bit_grad.cu"
                          : "expert_16bit.cu",
                 value, COUNT_OF(value));
    *length = b.n;
    return b.s;
}
