/* cpu_expert.c - products of rows grouped by expert.
 *
 * In:  rows x, an expert number per (token, choice), weights or output gradients.
 * Out: y[pair] = x[pair] W[expert of pair], or dW[e] = sum over the pairs of e of x[pair]^T
 * dy[pair].
 * The one idea: a stable counting sort lists the pairs of each expert in order; workers
 * gather a block of them into their own scratch, multiply, and put the rows back. Blocks are
 * cut by the counts alone, so the bits do not depend on threads. A pair whose index is no
 * expert gives zeros and adds nothing. Operands of bf16 are multiplied as such, in tiles that were made before: so their rows
 * are few numbers of rows, and what a block has less of is filled with zeros.
 */
#include "cpu.h"

#include <stdatomic.h>

enum { STEPS = 8 }; /* sizes of a tile of bf16 */

typedef struct ExpertRun {
    const Blas *blas;
    const PlanExpert *how;
    const char *x, *w; /* w: or dy */
    size_t item;       /* bytes of one of their elements */
    float *out;
    int64_t *start;                                /* experts + 1: where the pairs of each begin in `order` */
    int64_t *first;                                /* experts + 1: number of row blocks before each */
    int64_t *order;                                /* pair numbers, by expert */
    float *work;                                   /* `room` floats for each worker */
    int64_t room, block, depth, tile_in, tile_out; /* depth: pairs that a tile of dW adds up at once */
    const Bf16Tile *bf16[2][2][STEPS]; /* by whether it is the last in its column, its row; and by size_at() */
    atomic_bool *failed;
} ExpertRun;

enum {
    BLOCK_MOST = 128,
    BLOCK_LEAST = 16,
    WIDE_LEAST = 64,
    ROOM_MOST = 1 << 23, /* numbers of a block's rows, where they are wide */
    DEPTH = 256,
    TILE_MOST = 384,
    TILE_LEAST = 96
};
/* In bf16 the library lays each matrix out anew for a block, so blocks are longer: of so many rows, or added up over so many. */
static const int64_t rows_bf16[STEPS] = {BLOCK_LEAST, 32, 64, 128, 192, 256, 384, 512},
                     depths_bf16[STEPS] = {32, 64, 96, 128, 192, 256, 512, 1024};

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0); }

/* Rows of one block: enough of them for 16 blocks, or 8, where there are many pairs. */
static int64_t rows_per_block(int64_t pairs, Half half)
{
    int64_t rows = ceil_div(pairs / (half ? 8 : 16), 16) * 16;
    return rows < BLOCK_LEAST ? BLOCK_LEAST : least(rows, half ? rows_bf16[STEPS - 1] : BLOCK_MOST);
}

/* A tile of dW: few experts are cut finer, so that there is work for all threads. */
static int64_t weight_tile(int64_t extent, int64_t experts)
{
    int64_t most = experts >= 8 ? TILE_MOST : TILE_MOST / 2;
    if (extent <= TILE_LEAST)
        return extent;
    return least(ceil_div(ceil_div(extent, ceil_div(extent, most)), 16) * 16, extent);
}

/* Sets the sizes that depend on the shape; returns all scratch bytes or -1. */
static int64_t measure(ExpertRun *run, int threads)
{
    const PlanExpert *how = run->how;
    int64_t pairs, room, bytes, lists;
    if (!mul_i64(how->tokens, how->choices, &pairs))
        return -1;
    run->block = how->per_row ? 1 : rows_per_block(pairs, how->half);
    while (how->half && run->block > WIDE_LEAST && run->block > ROOM_MOST / (how->in + how->out + 1))
        run->block = run->block / 32 * 16;
    run->depth = how->half ? depths_bf16[STEPS - 1] : DEPTH;
    run->tile_in = weight_tile(how->in, how->experts);
    run->tile_out = weight_tile(how->out, how->experts);
    int64_t rows = how->what == EXPERT_Y ? run->block : run->depth;
    int64_t wide = how->what == EXPERT_Y ? how->in : run->tile_in;
    int64_t far = how->what == EXPERT_Y ? how->out : run->tile_out;
    if (!add_i64(wide, far, &room) || !mul_i64(room, rows, &room) || !add_i64(room, 15, &room))
        return -1;
    if (how->half && how->what == EXPERT_DW && !add_i64(room, run->tile_in * run->tile_out, &room))
        return -1;
    run->room = room / 16 * 16;
    if (!mul_i64(run->room, (int64_t)sizeof(float), &bytes) || !mul_i64(bytes, threads, &bytes) ||
        !add_i64(pairs, 2 * (how->experts + 1) + 8, &lists) || !mul_i64(lists, (int64_t)sizeof(int64_t), &lists) ||
        !add_i64(bytes, lists, &bytes))
        return -1;
    return bytes;
}

int64_t expert_scratch(const PlanExpert *how, int threads)
{
    ExpertRun run = {.how = how};
    return measure(&run, threads < 1 ? 1 : threads);
}

static void sort_pairs(ExpertRun *run, const int64_t *index)
{
    const PlanExpert *how = run->how;
    int64_t pairs = how->tokens * how->choices, experts = how->experts;
    memset(run->start, 0, (size_t)(experts + 1) * sizeof *run->start);
    for (int64_t i = 0; i < pairs; i++)
        if (index[i] >= 0 && index[i] < experts)
            run->start[index[i] + 1]++;
    run->first[0] = 0;
    for (int64_t e = 0; e < experts; e++) {
        run->first[e + 1] = run->first[e] + ceil_div(run->start[e + 1], run->block);
        run->start[e + 1] += run->start[e];
    }
    for (int64_t i = 0; i < pairs; i++)
        if (index[i] >= 0 && index[i] < experts)
            run->order[run->start[index[i]]++] = i;
    for (int64_t e = experts; e > 0; e--) /* the starts have become the ends */
        run->start[e] = run->start[e - 1];
    run->start[0] = 0;
}

/* The last expert whose blocks begin at or before `block`. */
static int64_t expert_of(const ExpertRun *run, int64_t block)
{
    int64_t lo = 0, hi = run->how->experts;
    while (hi - lo > 1) {
        int64_t mid = lo + (hi - lo) / 2;
        if (run->first[mid] <= block)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

static const char *row_of_x(const ExpertRun *run, int64_t pair)
{
    int64_t row = run->how->x_per_pair ? pair : pair / run->how->choices;
    return run->x + (size_t)(row * run->how->in) * run->item;
}

/* ---- tiles of bf16: rows of x, or of the sum ---- */

static int64_t size_at(const ExpertRun *run, int step)
{
    return run->how->what == EXPERT_Y ? least(rows_bf16[step], run->block) : depths_bf16[step];
}

/* The first that has so many. */
static int step_for(const ExpertRun *run, int64_t rows)
{
    int step = 0;
    while (size_at(run, step) < rows)
        step++;
    return step;
}

/* How many of the pairs that are left a tile of dW takes: all that fill most of it, else those that fill one. */
static int64_t pairs_at_once(const ExpertRun *run, int64_t left)
{
    if (!run->how->half || left >= run->depth)
        return least(left, run->depth);
    int step = step_for(run, left);
    return step == 0 || 5 * left >= 4 * size_at(run, step) ? left : size_at(run, step - 1);
}

static int64_t tile_extent(int64_t extent, int64_t tile, bool last)
{
    return last ? extent - (ceil_div(extent, tile) - 1) * tile : tile;
}

static TileShape shape_of_tile(const ExpertRun *run, bool last_in, bool last_out, int step)
{
    const PlanExpert *how = run->how;
    if (how->what == EXPERT_Y)
        return (TileShape){false,
                           how->transpose_w,
                           size_at(run, step),
                           how->out,
                           how->in,
                           how->in,
                           how->transpose_w ? how->in : how->out,
                           how->out};
    int64_t wide = tile_extent(how->in, run->tile_in, last_in), far = tile_extent(how->out, run->tile_out, last_out);
    return (TileShape){true, false, wide, far, size_at(run, step), wide, far, far};
}

static bool find_tiles(ExpertRun *run)
{
    bool good = true;
    for (int i = 0; i < 4 * STEPS && run->how->half; i++) {
        TileShape s = shape_of_tile(run, i & 1, i & 2, i / 4);
        const Bf16Tile *t = bf16_find(run->blas->bf16, &s);
        run->bf16[i & 1][i >> 1 & 1][i / 4] = t;
        good = good && t;
    }
    return good;
}

static bool is_empty(const PlanExpert *how) { return how->in <= 0 || how->out <= 0 || how->experts <= 0; }

bool expert_prepare(const Blas *blas, const PlanExpert *how)
{
    ExpertRun run = {.blas = blas, .how = how};
    if (!how->half || is_empty(how))
        return true;
    bool good = measure(&run, 1) >= 0;
    int outer = blas_begin(blas);
    if (blas->set_threads)
        blas->set_threads(1);
    for (int i = 0; good && i < 4 * STEPS; i++) {
        TileShape s = shape_of_tile(&run, i & 1, i & 2, i / 4);
        good = bf16_make(blas->bf16, &s);
    }
    blas_end(blas, outer);
    return good;
}

/* ---- blocks and tiles ---- */

static void forward_blocks(void *user, int64_t lo, int64_t hi, int worker)
{
    const ExpertRun *run = user;
    const PlanExpert *how = run->how;
    size_t wide = (size_t)how->in * run->item;
    char *xs = (char *)(run->work + worker * run->room);
    float *ys = run->work + worker * run->room + run->block * how->in;
    if (how->half && run->blas->set_threads)
        run->blas->set_threads(1); /* of this thread */
    for (int64_t block = lo; block < hi; block++) {
        int64_t e = expert_of(run, block);
        int64_t at = run->start[e] + (block - run->first[e]) * run->block;
        int64_t rows = least(run->start[e + 1] - at, run->block);
        const char *w = run->w + (size_t)(e * how->in * how->out) * run->item;
        for (int64_t r = 0; r < rows; r++)
            memcpy(xs + (size_t)r * wide, row_of_x(run, run->order[at + r]), wide);
        if (how->half) {
            int step = step_for(run, rows);
            memset(xs + (size_t)rows * wide, 0, (size_t)(size_at(run, step) - rows) * wide);
            if (!bf16_run(run->bf16[0][0][step], worker, (const uint16_t *)(void *)xs,
                          (const uint16_t *)(const void *)w, ys))
                atomic_store(run->failed, true);
        } else {
            blas_tile(run->blas, false, how->transpose_w, rows, how->out, how->in, (float *)(void *)xs, how->in,
                      (const float *)(const void *)w, how->transpose_w ? how->in : how->out, false, ys, how->out);
        }
        for (int64_t r = 0; r < rows; r++)
            memcpy(run->out + run->order[at + r] * how->out, ys + r * how->out, (size_t)how->out * sizeof *ys);
    }
}

/* A tile that stands alone, to where it belongs. */
static void put_tile(const float *from, int64_t rows, int64_t columns, bool add, float *to, int64_t ld)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            to[i * ld + j] = add ? to[i * ld + j] + from[i * columns + j] : from[i * columns + j];
}

static void weight_tiles(void *user, int64_t lo, int64_t hi, int worker)
{
    const ExpertRun *run = user;
    const PlanExpert *how = run->how;
    int64_t tiles_in = ceil_div(how->in, run->tile_in), tiles_out = ceil_div(how->out, run->tile_out);
    float *work = run->work + worker * run->room, *second = work + run->depth * run->tile_in;
    float *part = second + run->depth * run->tile_out;
    char *xs = (char *)work, *dys = (char *)second;
    if (how->half && run->blas->set_threads)
        run->blas->set_threads(1);
    for (int64_t t = lo; t < hi; t++) {
        int64_t e = t / tiles_out / tiles_in, at_in = t / tiles_out % tiles_in, at_out = t % tiles_out;
        int64_t i = at_in * run->tile_in, j = at_out * run->tile_out;
        int64_t wide = least(how->in - i, run->tile_in), far = least(how->out - j, run->tile_out);
        size_t x_bytes = (size_t)wide * run->item, dy_bytes = (size_t)far * run->item;
        float *dw = run->out + (e * how->in + i) * how->out + j;
        int64_t at = run->start[e], end = run->start[e + 1];
        bool add = false;
        do { /* once even without pairs: that writes the zeros */
            int64_t rows = pairs_at_once(run, end - at);
            for (int64_t r = 0; r < rows; r++) {
                int64_t pair = run->order[at + r];
                memcpy(xs + (size_t)r * x_bytes, row_of_x(run, pair) + (size_t)i * run->item, x_bytes);
                memcpy(dys + (size_t)r * dy_bytes, run->w + (size_t)(pair * how->out + j) * run->item, dy_bytes);
            }
            if (how->half) {
                int step = step_for(run, rows);
                size_t missing = (size_t)(size_at(run, step) - rows);
                memset(xs + (size_t)rows * x_bytes, 0, missing * x_bytes);
                memset(dys + (size_t)rows * dy_bytes, 0, missing * dy_bytes);
                if (!bf16_run(run->bf16[at_in == tiles_in - 1][at_out == tiles_out - 1][step], worker,
                              (const uint16_t *)(void *)xs, (const uint16_t *)(void *)dys, part))
                    atomic_store(run->failed, true);
                put_tile(part, wide, far, add, dw, how->out);
            } else {
                blas_tile(run->blas, true, false, wide, far, rows, work, wide, second, far, add, dw, how->out);
            }
            add = true;
            at += rows;
        } while (at < end);
    }
}

/* Rows of y whose index is no expert. */
static void clear_strays(const ExpertRun *run, const int64_t *index)
{
    const PlanExpert *how = run->how;
    for (int64_t i = 0; i < how->tokens * how->choices; i++)
        if (index[i] < 0 || index[i] >= how->experts)
            memset(run->out + i * how->out, 0, (size_t)how->out * sizeof *run->out);
}

bool expert_run(const Blas *blas, Pool *pool, const PlanExpert *how, const void *x, const void *w_or_dy,
                const int64_t *index, float *out, void *scratch)
{
    if (is_empty(how)) {
        if (how->what == EXPERT_Y && how->out > 0) /* an empty sum */
            memset(out, 0, (size_t)(how->tokens * how->choices * how->out) * sizeof *out);
        return true;
    }
    atomic_bool failed = false;
    ExpertRun run = {.blas = blas, .how = how, .x = x, .w = w_or_dy, .out = out, .failed = &failed};
    run.item = how->half ? sizeof(uint16_t) : sizeof(float);
    if (measure(&run, pool_threads(pool)) < 0 || !find_tiles(&run))
        return false; /* its scratch could not have been made either, or its tiles were not */
    run.work = scratch;
    run.start = (int64_t *)(run.work + run.room * pool_threads(pool));
    run.first = run.start + how->experts + 1;
    run.order = run.first + how->experts + 1;
    sort_pairs(&run, index);
    int outer = blas_begin(blas);
    if (how->what == EXPERT_DW) {
        int64_t tiles = ceil_div(how->in, run.tile_in) * ceil_div(how->out, run.tile_out);
        parallel_for(pool, tiles * how->experts, 1, weight_tiles, &run);
        blas_end(blas, outer);
        return !atomic_load(&failed);
    }
    if (run.start[how->experts] < how->tokens * how->choices)
        clear_strays(&run, index);
    parallel_for(pool, run.first[how->experts], 1, forward_blocks, &run);
    blas_end(blas, outer);
    return !atomic_load(&failed);
}
