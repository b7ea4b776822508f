/* cuda_attention.c - see cuda_attention.h: what the names of its texts stand for, and launches. */
#include "cuda_attention.h"

#include "compiler/kernel/library.h"
#include "library_text.h"

int cuda_attention_width(Half half, const int64_t *sizes, size_t n)
{
    int width = 16 / half_bytes(half);
    for (size_t i = 0; i < n; i++)
        while (width > 1 && sizes[i] % width != 0)
            width /= half ? 4 : 2; /* 4 bytes are the least that is copied */
    return width;
}

int cuda_attention_pad(int64_t d)
{
    int64_t step = d > 64 ? 32 : 16;
    return (int)((d + step - 1) / step * step);
}

static bool is_large(const CudaAttentionClass *c) { return c->d > 128 || c->dv > 128; }

bool cuda_attention_takes_any(const CudaAttentionClass *c)
{
    return c->half && !c->capped && !c->dropped && !c->oldest;
}

static bool is_small(const CudaAttentionClass *c) { return c->d <= 64 && c->dv <= 64; }

static bool by_groups(const CudaAttentionClass *c)
{
    bool lines = (c->d == 64 || c->d == 128) && (c->dv == 64 || c->dv == 128) && c->width == 8;
    return c->warpgroups && c->half && lines && !c->dropped;
}

uint32_t cuda_attention_maps(CudaAttentionKernel which, const CudaAttentionClass *c)
{
    return !by_groups(c) || which == CUDA_SDPA_GRAD_K ? 0 : which == CUDA_SDPA ? 3 : 2;
}

/* Groups of warps that multiply: of small heads as many as there are registers for. */
static int groups(CudaAttentionKernel which, const CudaAttentionClass *c)
{
    return which == CUDA_SDPA && is_small(c) ? 3 : 2;
}

/* A warp has 32 rows of a result, so that it reads half as much of shared memory for each product; with a soft cap, random
 * numbers, large heads, or heads of more than 96 and a function that is called, a thread has no registers for that. */
static bool is_tall(const CudaAttentionClass *c)
{
    bool called = c->width == CUDA_ACCESS_ANY && (c->d > 96 || c->dv > 96);
    return c->half && !by_groups(c) && !is_large(c) && !c->capped && !c->dropped && !called;
}

/* Where the sums of dk and dv are more than a thread has registers half of the warps add up dk, the others dv. */
static bool is_split(CudaAttentionKernel which, const CudaAttentionClass *c)
{
    return which == CUDA_SDPA_GRAD_K && (is_large(c) || (is_tall(c) && !is_small(c)));
}

/* Whether a warp has registers for the rows that its products multiply with tiles: of small heads, of half of the warps of a
 * split kernel; of warpgroups for the gradient of q. */
static bool is_kept(CudaAttentionKernel which, const CudaAttentionClass *c)
{
    if (by_groups(c))
        return which == CUDA_SDPA_GRAD_Q;
    return c->half && (is_split(which, c) || (is_tall(c) && is_small(c)));
}

/* Scores of so many columns have registers at once. */
static int at_once(CudaAttentionKernel which, const CudaAttentionClass *c, int columns)
{
    if (by_groups(c))
        return columns;
    if (is_split(which, c) || (which == CUDA_SDPA_GRAD_K && is_kept(which, c)))
        return 16;
    return which == CUDA_SDPA_GRAD_Q && columns > 32 ? (c->oldest ? 16 : 32) : columns;
}

/* Places of tiles that pass: one is multiplied, the next one copied; of warpgroups what the last one adds is not waited for, and those
 * that take turns are half a tile apart. */
static int stages(CudaAttentionKernel which, const CudaAttentionClass *c)
{
    if (!by_groups(c))
        return 2;
    return which == CUDA_SDPA_GRAD_Q || (which == CUDA_SDPA && is_small(c)) ? 4 : 3;
}

/* Numbers from one row of a tile to the next: vwn_laid of attention_tiles.cu. */
static int64_t pitch(const CudaAttentionClass *c, int d)
{
    return c->half && d % 64 == 0 ? d : d + 16 / half_bytes(c->half);
}

/* As many columns as warpgroups have registers for, beside their sums. */
static int group_columns(CudaAttentionKernel which, const CudaAttentionClass *c)
{
    if (which == CUDA_SDPA)
        return 128;
    return is_small(c) ? 96 : 64;
}

/* Bytes of shared memory behind all others: barriers, or where the block's rows begin. */
static int aside(CudaAttentionKernel which, const CudaAttentionClass *c)
{
    int barriers = 1 + 4 * stages(which, c) + groups(which, c);
    return cuda_attention_maps(which, c) ? (8 * barriers + 15) / 16 * 16 : 32;
}

/* Registers of a thread in groups that multiply and in the one that copies, of those that a block of them all begins with. */
static void group_registers(int groups, int *more, int *fewer)
{
    enum { ALL = 65536 / 128, UNIT = 8 };
    *fewer = groups == 2 ? 24 : 32;
    *more = (ALL / (groups + 1) / UNIT * UNIT * (groups + 1) - *fewer) / groups / UNIT * UNIT;
}

CudaAttentionLaunch cuda_attention_launch(CudaAttentionKernel which, const CudaAttentionClass *c)
{
    CudaAttentionLaunch l = {.rows = 64, .columns = 32};
    int tall = is_tall(c) ? 2 : 1, halves = is_split(which, c) ? 2 : 1;
    if (is_tall(c))
        l.rows = 128;
    if (which == CUDA_SDPA && c->half && (tall == 2 || is_small(c)))
        l.columns = 64;
    if (which == CUDA_SDPA_GRAD_Q && tall == 2 && is_small(c))
        l.columns = 64;
    if (!c->half && is_large(c)) { /* 163 KiB are all that an A100 has */
        l.rows = 32;
        l.columns = 16;
    }
    if (by_groups(c))
        l = (CudaAttentionLaunch){.rows = 64 * groups(which, c), .columns = group_columns(which, c)};
    int warps = l.rows / (16 * tall);
    int64_t size = half_bytes(c->half), q = pitch(c, c->d), v = pitch(c, c->dv);
    int64_t kept = l.rows * (which == CUDA_SDPA ? q : q + v), passing = l.columns * (q + v);
    l.threads = 32 * warps * halves + (cuda_attention_maps(which, c) ? 128 : 0);
    if (is_kept(which, c)) /* but for v where it is half of it */
        kept = which == CUDA_SDPA_GRAD_K && halves == 1 && c->d + c->dv > 96 ? l.rows * v : 0;
    l.shared = (kept + stages(which, c) * passing) * size;
    if (!c->half)
        l.shared += 4ll * warps * halves * 16 * (l.columns + 4);
    if (which == CUDA_SDPA_GRAD_K)
        l.shared += 4ll * stages(which, c) * l.columns * (2 + 2 * c->oldest);
    if (halves == 2)
        l.shared += 4ll * l.rows * l.columns;
    if (which != CUDA_SDPA_GRAD_K)
        l.shared += 4ll * l.rows * c->oldest;
    l.shared += aside(which, c);
    return l;
}

/* Nobody goes from one to the next where there is one: any stride will do. */
LaunchMap cuda_attention_map(CudaAttentionKernel which, const CudaAttentionClass *c, uint32_t n, int64_t B,
                             const int64_t *ints)
{
    enum { T, S, H, K, D, DV };
    const CudaAttentionLaunch l = cuda_attention_launch(which, c);
    const uint32_t i = 3 - cuda_attention_maps(which, c) + n;
    const int64_t *by = ints + ATTENTION_STRIDE + 3 * i; /* of sequence, row, head */
    LaunchMap m = {.buffer = i,
                   .half = c->half,
                   .extent = {ints[i == 2 ? DV : D], ints[i ? K : H], ints[i ? S : T], B},
                   .stride = {1},
                   .box = {64, 1, (uint32_t)(i ? l.columns : l.rows), 1}};
    for (int k = 1; k < MAP_RANK; k++)
        m.stride[k] = m.extent[k] > 1 ? by[MAP_RANK - 1 - k] : m.stride[k - 1] * m.extent[k - 1];
    return m;
}

int64_t cuda_attention_blocks(const CudaAttentionLaunch *l, int64_t B, int64_t rows, int64_t heads)
{
    return B * heads * ((rows + l->rows - 1) / l->rows);
}

const char *cuda_attention(Arena *arena, CudaAttentionKernel which, const CudaAttentionClass *c, size_t *length)
{
    static const char *const file[] = {"sdpa.cu", "sdpa_grad_q.cu", "sdpa_grad_k.cu"};
    CudaAttentionLaunch l = cuda_attention_launch(which, c);
    /* A compiler would spill for the sake of more blocks. */
    int blocks = c->half && l.threads > 128 ? 1 : 2;
    const char *type = half_word(c->half);
    int of_copies = cuda_attention_maps(which, c) ? 128 : 0, more, fewer;
    group_registers(groups(which, c), &more, &fewer);
    const TextValue value[] = {
        {"ELEMENT", type},
        {"KIND", c->half ? arena_printf(arena, "%s on tensor cores", type) : "float32"},
        {"BOUNDS", arena_printf(arena, "%d, %d", l.threads, blocks)},
        {"D", text_number(arena, c->d)},
        {"DV", text_number(arena, c->dv)},
        {"ROWS", text_number(arena, l.rows)},
        {"COLUMNS", text_number(arena, l.columns)},
        {"AT_ONCE", text_number(arena, at_once(which, c, l.columns))},
        {"WARPS", text_number(arena, (l.threads - of_copies) / 32 / (is_split(which, c) ? 2 : 1))},
        {"THREADS", text_number(arena, l.threads)},
        {"MAPS", text_number(arena, of_copies > 0)},
        {"MORE", text_number(arena, more)},
        {"FEWER", text_number(arena, fewer)},
        {"ASIDE", text_number(arena, aside(which, c))},
        {"STAGES", text_number(arena, stages(which, c))},
        {"SHARED", text_number(arena, l.shared)},
        {"WIDTH", text_number(arena, c->width)},
        {"CAPPED", text_number(arena, c->capped)},
        {"DROPPED", text_number(arena, c->dropped)},
        {"OLDEST", text_number(arena, c->oldest)},
        {"SPLIT", text_number(arena, is_split(which, c))},
        {"KEPT", text_number(arena, is_kept(which, c))},
        {"WARPGROUPS", text_number(arena, by_groups(c))},
    };
    Buf b = buf_new(arena);
    library_text(&b, file[which], value, COUNT_OF(value));
    *length = b.n;
    return b.s;
}
